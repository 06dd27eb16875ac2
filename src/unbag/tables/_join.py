"""`join`: events and reports as checked `Bags` with features, in two passes over the events."""

# pyright: reportAttributeAccessIssue=false
# (the functions of pyarrow.compute are made when it is imported)

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Unpack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unbag._rules import Refusal, Refused, broken, refuse
from unbag.bags import Bags, check_prior
from unbag.tables._answers import ANSWER, answers
from unbag.tables._columns import ColumnNames, Columns, as_columns, cut_of, ids_are_text
from unbag.tables._infer import Overrides, Survey
from unbag.tables._match import BagCounter, Matched, id_counter, match_tables, read_reports
from unbag.tables._plan import FeaturePlan, as_wishes, csv_types
from unbag.tables._rules import TablesReport
from unbag.tables._sources import open_table
from unbag.tables._values import as_ids, as_numbers

SURE = 1e-6  # old probabilities of 0 and 1 are taken to be so far from it


class OldScore(NamedTuple):
    """Where events have what is added to their scores: the prediction of a model that is already
    there, or their exposure.

    Parameters
    ----------
    column : str
        Its name.
    probability : bool
        Whether it holds probabilities, so that scores are their logits.
    exposure : bool
        Whether it holds exposures, so that scores are their logarithms.
    """

    column: str
    probability: bool = False
    exposure: bool = False

    def scores(self, batch: pa.Table) -> np.ndarray:
        """The scores of some events."""
        return self.as_scores(as_numbers(batch[self.column], name=self.column))

    def as_scores(self, values: np.ndarray) -> np.ndarray:
        """Scores from the values of the column."""
        rule, bad = "An old score must be finite", ~np.isfinite(values)
        remedy = "Give every event its score."
        if self.exposure:
            rule, bad = "An exposure must be finite and positive", bad | (values <= 0)
            remedy = "Leave out events that were not watched at all."
        refuse(rule, bad, thing="event", given=values, remedy=remedy)
        if self.exposure:
            return np.log(values)
        if not self.probability:
            return values
        inside = np.clip(values, SURE, 1 - SURE)
        return np.log(inside / (1 - inside))

    @staticmethod
    def of(columns: Columns, values: np.ndarray) -> OldScore:
        """What a column holds: values that all lie between 0 and 1 are taken for probabilities.

        Parameters
        ----------
        columns : Columns
            What is said of the columns.
        values : numpy.ndarray
            The old scores, probabilities or exposures of the events.
        """
        column, kind = columns.offset or "", columns.reports_are
        if columns.exposure is not None:
            return OldScore(column, exposure=True)
        if kind == "histogram":
            raise broken(
                "An old score must be one of labels or counts",
                "class counts given",
                "Leave {score} out, and let its columns be features.",
            )
        inside = bool((values >= 0).all() and (values <= 1).all())
        return OldScore(column, kind == "binary" and inside)


class _Matrix:
    """The matrix of features of joined bags, made when somebody asks for it: learners of tables
    never do, and it is many times as large as the columns it is made from.

    An X that was given stands in the instance and hides this.
    """

    def __get__(self, bags: JoinedBags | None, owner: type) -> Any:
        if bags is None:
            return None  # the usual value of the field
        return bags._matrix


@dataclass(frozen=True, eq=False, repr=False)
class JoinedBags(Bags):
    """Bags from tables; their `X` is made from `table` by the plan when it is first asked for.

    Parameters
    ----------
    plan : FeaturePlan, optional
        How their features were made; beside what `Bags` has.
    summary : TablesReport, optional
        What the tables held.
    table : pyarrow.Table, optional
        The columns that became features as they were, for learners that read tables.
    old_score : OldScore, optional
        Where the scores of a model that is already there stand.
    """

    plan: FeaturePlan | None = None
    summary: TablesReport | None = None
    table: pa.Table | None = None
    old_score: OldScore | None = None

    X = _Matrix()
    _of_instances: ClassVar[tuple[str, ...]] = ("X", "offset", "rows", "table")

    def __post_init__(self) -> None:
        # an entry of the instance would hide `_Matrix`, also where it is None
        if vars(self)["X"] is None:
            del vars(self)["X"]
        super().__post_init__()

    @cached_property
    def _matrix(self) -> np.ndarray | None:
        if self.plan is None or self.table is None:
            return None
        return self.plan.features(self.table)

    @property
    def width(self) -> int:
        """How many numbers the features of an instance are."""
        if "X" in vars(self) or self.plan is None:
            return super().width
        return len(self.plan.names)

    def bare(self) -> Bags:
        """The same bags without features."""
        return replace(self, X=None, table=None)

    def as_read(self) -> JoinedBags:
        """The bags with the columns as they were as features, unless others were given."""
        if "X" in vars(self) or self.table is None:
            return self
        return replace(self, X=self.table)

    def without_answers(self, keep: Iterable[str] = ()) -> JoinedBags:
        """The same bags without columns that hold the label or the report; see `answers`.

        Parameters
        ----------
        keep : iterable of str
            Columns that stay whatever they hold.
        """
        if self.plan is None or self.table is None or self.summary is None:
            return self
        gone = [name for name in answers(self.table, self) if name not in set(keep)]
        if not gone:
            return self
        plan = self.plan.without(gone, ANSWER)
        notes = [f"Column {name} is left out: {ANSWER}." for name in gone]
        summary = self.summary._replace(left_out=(*self.summary.left_out, *notes))
        known = {"X": None, "plan": plan, "summary": summary}  # X was made by the old plan
        return replace(self, **known, table=self.table.select(plan.read))

    def rows_for(self, model: Any) -> Any:
        """The columns as they were, for a model that reads tables; else the matrix of features."""
        if getattr(model, "takes_tables", False):
            return self.table
        return self.X


def join(
    events: Any,
    reports: Any,
    on: str | Sequence[str] | Columns,
    *,
    features: Sequence[str] | None = None,
    plan: FeaturePlan | Overrides = None,
    prior: Any = None,
    **columns: Unpack[ColumnNames],
) -> JoinedBags:
    """Join a table of events with a table of reports into bags, and check both.

    Left out, with the reason in `bags.summary`: reports of bags without events, reports and bags of
    the cut or later, older versions of a report, and columns that hold the label, unless `features`
    or `plan` names them. Bags without a report are pending. Refused: bags
    or ids that are missing, doubled or overlap, two reports of one bag (unless `as_of` tells the
    latest), sizes that disagree, totals that cannot be.

    Parameters
    ----------
    events : frame, pyarrow.Table, DuckDB relation, str or Path
        One row for each event: a frame of pandas or polars, an Arrow table, a DuckDB relation, or a
        path of Parquet or CSV files, which may be larger than memory as long as the matrix of
        features is not.
    reports : the same
        One row for each bag.
    on : str, sequence of str or Columns
        The column with the bag's id, in both.
    features : sequence of str, optional
        Columns of the events to take; by default all that are none of the others. () for none.
    plan : FeaturePlan, mapping, str or Path, optional
        A plan, or a TOML file or mapping that overrides what is planned from the events.
    prior : float or array, optional
        The label marginal, if it is known from elsewhere; see `Bags`.
    **columns : ColumnNames
        Which other column is what, see `Columns`: total, counts, proportion, kind, size, noise,
        status, as_of, stratum, time, id, score, exposure, cut, wrong_sizes, cap, accept_bias.

    >>> events = pa.table({"day": ["mon", "mon", "tue", "tue"], "age": [20, 30, 40, 50]})
    >>> reports = pa.table({"day": ["mon", "tue"], "sales": [1, 2]})
    >>> bags = join(events, reports, on="day", total="sales")
    >>> bags
    Bags(2 bags of 2; 4 instances; binary, prior 0.75)
    >>> bags.plan.names
    ('age',)
    """
    said = as_columns(on, columns)
    _check_prior(prior, said)
    types = plan.csv_types if isinstance(plan, FeaturePlan) else csv_types(as_wishes(plan))
    pair = _Pair(events, reports, said, types)
    survey = planned = None
    if isinstance(plan, FeaturePlan):
        planned = plan
        pair.events.need(plan.read)
    else:
        survey = _survey(pair, features, plan)
    matched = pair.match(survey)
    if matched.summary.refused:
        raise Refused(*matched.summary.refused)
    if survey is not None:
        planned = survey.plan()
    rows = pair.read(matched, planned)
    # Arrow keeps the memory of the batches, which was as much as that of the table itself
    pa.default_memory_pool().release_unused()
    known = matched.known | {"known_prior": prior}
    known |= {"dropped": matched.summary.events - len(rows["bag"])}
    bags = JoinedBags(plan=planned, summary=matched.summary, **rows, **known)
    if survey is None or features is not None:
        return bags
    return bags.without_answers(survey.wishes)


def check_tables(
    events: Any, reports: Any, on: str | Sequence[str] | Columns, **columns: Unpack[ColumnNames]
) -> TablesReport:
    """What `join` would say of these tables: everything that is left out or refused, without an
    error.

    Columns that are not there and files that cannot be read are errors here too.

    Parameters
    ----------
    events, reports : frame, pyarrow.Table, DuckDB relation, str or Path
        The tables.
    on : str, sequence of str or Columns
        The column with the bag's id, in both.
    **columns : ColumnNames
        Which other column is what; see `join`.

    >>> events = pa.table({"day": ["mon", "mon", "tue"]})
    >>> reports = pa.table({"day": ["mon", "wed"], "sales": [3, 1]})
    >>> print(check_tables(events, reports, on="day", total="sales"))
    3 events and 2 reports were read.
    refused: A total must lie between 0 and the number of events: bag mon has 3 of 2 (1 such bag). \
Say kind='total' where an event may count more than once, or give the variance of the noise with \
noise=.
    """
    pair = _Pair(events, reports, as_columns(on, columns), {})
    return pair.match(_survey(pair, None, None)).summary


def plan_tables(
    events: Any,
    reports: Any,
    columns: Columns,
    *,
    features: Sequence[str] | None = None,
    override: Overrides = None,
    **wide: int,
) -> tuple[TablesReport, FeaturePlan | None]:
    """What these tables hold, and the plan of the features, from one pass over the events.

    Parameters
    ----------
    events, reports, columns, features : optional
        See `join`.
    override, **wide : optional
        See `plan_features`.

    Returns
    -------
    tuple of TablesReport and FeaturePlan
        Without a plan where something is refused, or where there are no features.
    """
    pair = _Pair(events, reports, columns, csv_types(as_wishes(override)))
    survey = _survey(pair, features, override, **wide)
    summary = pair.match(survey).summary
    if survey is None or summary.refused:
        return summary, None
    return summary, survey.plan()


def _check_prior(prior: Any, columns: Columns) -> None:
    """A known prior of labels lies between 0 and 1; at the ends there would be nothing to learn."""
    if prior is None:
        return
    p, kind = np.asarray(prior, float), columns.reports_are
    check_prior(p, kind, columns.cap)
    if kind != "histogram" and ((p <= 0) | (p >= {"binary": 1}.get(kind, np.inf))).any():
        raise broken(
            "A prior must leave something to learn, and so lie inside its range",
            f"{prior} given",
            "Leave {prior} out to take the size-weighted mean report.",
        )


def _survey(
    pair: _Pair, features: Sequence[str] | None, override: Overrides, **wide: int
) -> Survey | None:
    """A look at the features on the way; None when there are none."""
    events, columns = pair.events, pair.columns
    chosen: dict[str, Any] = {"leave_out": columns.no_features, "reported": columns.values}
    none = set(events.columns) <= set(columns.of_events)
    if features is not None:
        chosen, none = {"features": features}, len(features) == 0
    if none:
        return None
    chosen |= {"ids": columns.as_text, "types": pair.types} | wide
    return Survey(events, override=override, **chosen)


class _Pair:
    """The two tables, opened, with what is said of their columns."""

    def __init__(
        self, events: Any, reports: Any, columns: Columns, types: dict[str, pa.DataType]
    ) -> None:
        ids = dict.fromkeys(columns.as_text, pa.string())
        self.columns = columns
        self.events = open_table(events, types=types | ids).naming(columns.of_events)
        self.reports = open_table(reports, thing="reports", types=ids)
        self.types = self.events.schema
        if not self.events.typed and columns.of_features:  # what the ids would be, were they none
            self.types = open_table(events, types=types).schema
        self._check_columns()
        self.text = ids_are_text(self.events, self.reports, columns)

    def _check_columns(self) -> None:
        """Refuse all columns at once that are not there, and tables in the wrong order."""
        ours, theirs = self.columns.of_events, self.columns.of_reports
        missing = [*self.events.missing(ours), *self.reports.missing(theirs)]
        if missing and not (self.events.missing(theirs) or self.reports.missing(ours)):
            raise broken(
                "The events must come first, then the reports",
                f"the second table has no column {missing[-1].offender.split()[0]}, but the first "
                "has all columns of reports",
                "Give the two tables the other way round.",
            )
        if missing:
            raise Refused(*self._other_keys(), *missing)

    def _other_keys(self) -> list[Refusal]:
        """Keys that one table has and the other calls otherwise."""
        pairs = ((self.events, self.reports), (self.reports, self.events))
        return [
            Refusal(
                "A key must have the same name in both tables",
                f"{key!r} is in the {one.thing} and not in the {other.thing}",
                f"Rename the column; those of the {other.thing} are {', '.join(other.columns)}.",
            )
            for key in self.columns.keys
            for one, other in pairs
            if not one.missing([key]) and other.missing([key])
        ]

    def match(self, survey: Survey | None = None) -> Matched:
        """The first pass: count the events of each bag, and look at the features on the way."""
        columns = self.columns
        cut = cut_of(self.events, self.reports, columns)
        reports = read_reports(self.reports, columns, text=self.text)
        counter = BagCounter(columns, text=self.text)
        names, ids = columns.of_events, None
        lookers: list[Any] = [counter]
        with ExitStack() as stack:
            if columns.id is not None:
                ids = stack.enter_context(id_counter(columns))
                lookers.append(ids)
            if survey is not None:
                names = list(dict.fromkeys([*names, *survey.columns]))
                lookers.append(survey)
            for batch in self.events.batches(names):
                for looker in lookers:
                    looker.add(batch)
            counts = counter.counts()
            if ids is not None:
                counts.lines.extend(ids.lines())
        matched = match_tables(counts, reports, columns, cut=cut)
        if survey is None:
            return matched
        # after the pass, as only then the survey has seen all values
        left_out = (*matched.summary.left_out, *survey.notes)
        return matched._replace(summary=matched.summary._replace(left_out=left_out))

    def read(self, matched: Matched, plan: FeaturePlan | None) -> dict[str, Any]:
        """The second pass: bag number, row number, features and old score of each event in a kept
        bag."""
        n, columns = matched.summary.instances, self.columns
        bag, where, names = np.empty(n, np.int64), np.empty(n, np.int64), []
        offset = None
        if plan is not None:
            names = plan.read
        parts: dict[str, list[Any]] = {name: [] for name in names}
        if columns.offset is not None:
            names, offset = list(dict.fromkeys([*names, columns.offset])), np.empty(n)
        start = rows = 0
        for batch in self.events.batches(self.events.need([*columns.keys, *names])):
            ids = as_ids(batch, columns.keys, text=self.text)
            index = pc.index_in(ids, value_set=matched.name)
            kept = np.flatnonzero(np.asarray(index.is_valid()))
            here = slice(start, start + len(kept))
            bag[here] = np.asarray(index.take(pa.array(kept)))
            where[here] = rows + kept
            if plan is not None:
                read = plan.columns_of(batch).take(pa.array(kept))
                for name, chunks in parts.items():
                    chunks += read[name].chunks
            if offset is not None and columns.offset is not None:
                offset[here] = as_numbers(batch[columns.offset], name=columns.offset)[kept]
            start, rows = here.stop, rows + batch.num_rows
        made: dict[str, Any] = {"bag": bag, "rows": where}
        if offset is not None:
            old = OldScore.of(columns, offset)
            made |= {"offset": old.as_scores(offset), "old_score": old}
        if plan is not None:  # one column at a time, as each is there twice for a moment
            made["table"] = pa.table({name: _in_one(parts.pop(name)) for name in list(parts)})
        return made


def _in_one(chunks: list[Any]) -> Any:
    column = pa.chunked_array(chunks)
    if pa.types.is_dictionary(column.type):
        column = column.unify_dictionaries()
    return column.combine_chunks()
