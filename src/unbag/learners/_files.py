"""The additive model of tables that are larger than memory.

The events go to disk in parts of whole bags, in narrow form: a code in as few bytes as it
needs or a number (float32) for each column. The model is fitted, cross-fitted and judged by passes
over the parts (see `_sums`), so that at any time one part is in memory, and a few numbers for each
bag.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple, Unpack

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
from scipy.special import expit

from unbag import additive, metrics, tables
from unbag._io import scratch
from unbag._rules import Refused, broken
from unbag.bags import Kind, stable_hash
from unbag.learners._combine import Combination, log_likelihood_loss, offset_of
from unbag.learners._fitted import NOT_RANDOM, PESSIMISTIC, Fitted
from unbag.learners._folds import look_random, scores_by_own_fold

UNITS = {"KB": 2**10, "MB": 2**20, "GB": 2**30, "TB": 2**40}
# bytes that the work on one row of a part takes at most, for a table of some twenty columns
ROW = 2_000
# of a part: the work on fewer takes as long, and 32 MB are a fraction of what Python takes
FEWEST_ROWS = 16_384
SAMPLE = 200_000  # rows from which steps of numbers are planned
LEVEL = 0.95
FEWEST_BAGS = 10
PART = "unbag_part"


class FittedFiles(NamedTuple):
    """A model of tables that are larger than memory.

    Parameters
    ----------
    fitted : Fitted
        The model, with its evaluation.
    plan : FeaturePlan
        How the columns of the events are read.
    summary : TablesReport
        What the tables held.
    old_score : OldScore or None
        Where events have what is added to their scores.
    """

    fitted: Fitted
    plan: tables.FeaturePlan
    summary: tables.TablesReport
    old_score: tables.OldScore | None = None


def bytes_of(memory: str) -> int:
    """A size in words as a number of bytes.

    Parameters
    ----------
    memory : str
        As "2GB" or "500 MB".

    >>> bytes_of("2GB"), bytes_of("1.5 mb")
    (2147483648, 1572864)
    """
    text = memory.strip().upper().replace("IB", "B")
    try:
        size = float(text[:-2]) * UNITS[text[-2:]]
    except (KeyError, ValueError):
        size = 0.0
    if not size > 0:
        raise broken(
            f"A memory must be a number with one of {', '.join(UNITS)}",
            f"{memory!r} given",
            "Write it as 2GB.",
        )
    return int(size)


def fit_files(
    events: Any,
    reports: Any,
    on: str | Sequence[str] | tables.Columns,
    *,
    memory: str = "2GB",
    features: Sequence[str] | None = None,
    plan: Any = None,
    folds: int = 5,
    seed: int = 0,
    **columns: Unpack[tables.ColumnNames],
) -> FittedFiles:
    """The additive model of tables that may be larger than memory, judged in folds of bags.

    Parameters
    ----------
    events, reports : frame, Arrow table, DuckDB relation or path
        Files are read in batches.
    on : str, sequence of str or Columns
        The column with the bag's id, in both.
    memory : str
        About how much the work may take beside the program itself, such as "2GB", at least some
        32MB; parts of the tables go to the folder for temporary files.
    features, plan, **columns : optional
        See `join`.
    folds : int
        Of bags, by which the model is judged.
    seed : int
        Of the folds.

    Returns
    -------
    FittedFiles
        The model, the plan of its features, and what the tables held.
    """
    room, said = bytes_of(memory), tables.as_columns(on, columns)
    if isinstance(plan, tables.FeaturePlan):
        summary, planned = tables.plan_tables(events, reports, said, features=())[0], plan
    else:
        wide: dict[str, Any] = {
            "one_hot": additive.MOST_LEVELS,
            "most_buckets": additive.MOST_BUCKETS,
        }
        chosen: dict[str, Any] = {"features": features, "override": plan}
        summary, planned = tables.plan_tables(events, reports, said, **chosen, **wide)
    if summary.refused:
        raise Refused(*summary.refused)
    if planned is None:
        raise broken(
            "A model must have features",
            "the events have no column beside those you named",
            "Add some.",
        )
    with scratch() as folder:
        number = max(1, ceil(summary.events / max(room / ROW, FEWEST_ROWS)))
        stored = _Stored(Path(folder), said, planned, folds, seed)
        stored.write(events, reports, summary.events, number)
        fitted = _fitted(stored, folds)
    fitted = replace(fitted, needs_offset=stored.old_score is not None)
    return FittedFiles(fitted, planned, summary, stored.old_score)


class _Stored:
    """Parts of whole bags in files, made once and read in every pass."""

    def __init__(
        self, folder: Path, columns: tables.Columns, plan: tables.FeaturePlan, folds: int, seed: int
    ) -> None:
        self.folder, self.columns, self.plan = folder, columns, plan
        self.folds, self.seed = folds, seed
        self.files: list[Path] = []
        self.marks: np.ndarray | None = None
        self.kind: Kind = columns.reports_are
        self.classes = len(columns.counts or ("",))

    def __iter__(self) -> Iterator[additive.BagPart]:
        for file in self.files:
            yield pickle.loads(file.read_bytes())  # written here, read by nobody else

    def write(self, events: Any, reports: Any, rows: int, number: int) -> None:
        """Bring the rows of each bag together in one of so many parts, in narrow form."""
        self.few = rows <= metrics.EXACT
        types = dict.fromkeys(self.columns.as_text, pa.string())
        ours = tables.open_table(events, types=types)
        theirs = tables.open_table(reports, thing="reports", types=types)
        text = tables.ids_are_text(ours, theirs, self.columns)
        of_events = [*self.columns.of_events, *self.plan.read]
        self.old_score = self._old_score(ours)
        self.terms = self._planned_terms(ours, min(1.0, SAMPLE / rows))
        self._scatter(ours, list(ours.need(dict.fromkeys(of_events))), "events", number, text)
        self._scatter(theirs, list(theirs.need(self.columns.of_reports)), "reports", number, text)
        for part in range(number):
            self._narrow(part)

    def _old_score(self, table: Any) -> tables.OldScore | None:
        """What the column holds that is added to scores, by all rows: those of a part may all lie
        between 0 and 1 by chance."""
        name = self.columns.offset
        if name is None:
            return None
        ends = [np.array([0.0])]
        for batch in table.batches(table.need([name])):
            values = tables.as_numbers(batch[name], name=name)
            ends.append(np.array([values.min(), values.max()]))
        return tables.OldScore.of(self.columns, np.concatenate(ends))

    def _planned_terms(self, table: Any, share: float) -> additive.Terms:
        """The terms of a random share of the rows: where steps of numbers are, and their means."""
        rng, rows = np.random.default_rng(self.seed), []
        for batch in table.batches(self.plan.read):
            rows.append(batch.filter(pa.array(rng.random(batch.num_rows) < share)))
        return additive.terms_of(pa.concat_tables(rows), plan=tables.FeaturePlan(self.plan.used))[0]

    def _scatter(
        self, table: Any, names: Sequence[str], thing: str, number: int, text: bool
    ) -> None:
        """Rows to a folder for each part, by a hash of the bag's id."""
        keys, key_type = self.columns.keys, {True: pa.string(), False: pa.int64()}[text]
        types = {name: table.schema.field(name).type for name in names}
        schema = pa.schema([*(types | dict.fromkeys(keys, key_type)).items(), (PART, pa.int32())])

        def batches() -> Iterator[pa.RecordBatch]:
            for batch in table.batches(names):
                coded = tables.as_ids(batch, keys, text=text).dictionary_encode()
                hashed = stable_hash(coded.dictionary.to_pylist(), salt="part") % number
                part = pa.array(hashed.astype(np.int32)).take(coded.indices)
                for key in keys:
                    own = tables.as_ids(batch, [key], text=text)
                    batch = batch.set_column(names.index(key), key, own)
                batch = batch.append_column(PART, part)
                yield from batch.cast(schema).to_batches()

        ds.write_dataset(
            batches(),
            self.folder / thing,
            schema=schema,
            format="parquet",
            partitioning=ds.partitioning(pa.schema([(PART, pa.int32())]), flavor="hive"),
            use_threads=False,
            max_partitions=max(number, 1024),
            max_open_files=900,
        )

    def _narrow(self, part: int) -> None:
        ours, theirs = (self.folder / thing / f"{PART}={part}" for thing in ("events", "reports"))
        if not (ours.exists() and theirs.exists()):
            return  # events without any report, or reports without events
        events, reports = (ds.dataset(one, format="parquet").to_table() for one in (ours, theirs))
        summary, _ = tables.plan_tables(events, reports, self.columns, features=())
        if not summary.observed:
            return  # none of these few bags has a report yet
        joined = tables.join(events, reports, self.columns, features=())
        bags = joined.take(np.flatnonzero(joined.observed))
        if joined.old_score != self.old_score:  # logits that lie between 0 and 1 in this part
            bags = replace(bags, offset=expit(bags.offset))
        self.marks = metrics.join_marks(self.marks, metrics.marks(bags))
        Z = self.terms.matrix(events.take(pa.array(bags.rows)))
        stored = additive.stored_part(bags, Z, folds=self.folds, seed=[self.seed, part])
        self.files.append(self.folder / f"{part}.part")
        self.files[-1].write_bytes(pickle.dumps(stored, protocol=5))


def _fitted(stored: _Stored, folds: int) -> Fitted:
    """The model of all parts, and what folds of bags say of it."""
    parts, terms, kind, classes = (
        additive.LocalParts(stored),
        stored.terms,
        stored.kind,
        stored.classes,
    )
    alone = additive.SumsFit(parts, terms, kind, classes=classes)
    of_columns = alone.maximise()
    prior = alone.prior
    whole, state = alone.with_pairs(of_columns)
    if kind != "histogram":
        prior = prior[0]
    centre = np.zeros_like(prior)
    as_it_is = Combination(("additive",), np.ones(1), centre, centre[None], np.asarray(prior), kind)
    models: dict[str, Any] = {"additive": whole.model(state)}
    fitted = Fitted(kind, models, as_it_is, learned_=stored.marks, takes_tables=True)
    bags = sum(len(part.bags) for part in stored)
    if folds < 2 or bags < FEWEST_BAGS:
        return replace(fitted, notes=(f"{bags} bags in {folds} folds do not judge a model.",))
    of_fold = []
    for fold in range(folds):
        without = additive.SumsFit(parts, terms, kind, classes=classes, without=fold)
        without, state = without.with_pairs(without.maximise(of_columns))
        of_fold.append((without.terms, state.b))
    evaluation, gain = _judged(stored, of_fold, alone.prior)
    notes = (PESSIMISTIC.format(folds=folds),)
    return replace(fitted, evaluation=evaluation, gain=gain, notes=notes)


def _judged(
    stored: _Stored, of_fold: Sequence[tuple[additive.Terms, np.ndarray]], level: np.ndarray
) -> tuple[metrics.Evaluation, metrics.Estimate]:
    """What bags say of models that never saw them, part by part: losses where they are random."""
    evaluator, ours, theirs, answers = metrics.Evaluator(ordered=stored.few), [], [], []
    alarm = 0.01 / len(stored.files)  # that random bags of any part are called not random
    for part in stored:
        bags = part.bags
        scores = np.stack([terms.completed(part.Z) @ (terms.basis @ b) for terms, b in of_fold])
        if bags.kind != "histogram":
            scores = scores[:, :, 0]
        if np.bincount(bags.stratum_or_zero).max() > 1:  # bags alone in a part are like no other
            answers.append(look_random(scores, bags, part.fold, level=alarm))
        score, offset = scores_by_own_fold(scores, part.fold[bags.bag]), offset_of(bags)
        evaluator = evaluator.update(score + offset, bags)
        trivial = np.broadcast_to(level, (len(score), len(level))).reshape(score.shape) + offset
        for kept, own in ((ours, score + offset), (theirs, trivial)):
            kept.append(-log_likelihood_loss(own, bags))
    log, prior = np.concatenate(ours), np.concatenate(theirs)
    gain = metrics.mean_estimate(log - prior, LEVEL)
    evaluation = evaluator.compute()
    if not (answers and all(answers)):
        known = {"log_likelihood": metrics.mean_estimate(log, LEVEL), "gain_over_prior": gain}
        note = metrics.Note(
            f"Judged by the likelihood of the counts, because {NOT_RANDOM}.", "counts"
        )
        evaluation = replace(evaluation, estimates=known, calibration=[], strata=[], notes=(note,))
    return evaluation, gain
