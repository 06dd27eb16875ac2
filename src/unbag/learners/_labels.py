"""Bags and labelled rows in, bags with both out: consenting users beside totals of the rest."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import sparse

from unbag import tables
from unbag._arrays import mean_by
from unbag._rules import broken, refuse
from unbag.bags import Bags

# a column differs when its means are so many standard deviations apart, and so many errors
APART, SURE = 0.1, 4.0
NAMED = 5


@dataclass(frozen=True, eq=False, repr=False)
class BagsWithLabels(Bags):
    """Bags of which some are labelled rows.

    Parameters
    ----------
    notes : tuple of str
        Whether the labelled rows are like the others; beside what `Bags` has.
    plan, old_score : object
        As `JoinedBags` has them, of joined bags.
    """

    notes: tuple[str, ...] = ()
    plan: tables.FeaturePlan | None = None
    old_score: tables.OldScore | None = None


def with_labels(bags: Bags, X: Any, y: Any, *, offset: Any = None) -> BagsWithLabels:
    """Add rows whose labels are known to bags, to learn from both in one fit.

    A labelled row is a bag of one. The labelled are a stratum of their own: those who consent are
    seldom like the others, so their level may differ; what the columns do is taken to be the same.
    A note says whether their columns are like those of the others.

    Parameters
    ----------
    bags : Bags
        With features, of which those without a report are left out.
    X : table, file or matrix
        The labelled rows, with the columns of the bags' rows.
    y : array or str
        Their labels: 0 or 1, counts, or numbers of classes; or the column of `X` that holds them.
    offset : array, optional
        Of the labelled rows, where bags have one; the old score of joined bags is read from `X`.

    >>> from unbag import random_bags
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 1))
    >>> bags = random_bags(X, X[:, 0] > 0, size=10, seed=0)
    >>> both = with_labels(bags, X[:20], X[:20, 0] > 0)
    >>> both
    Bags(60 bags of 1 to 10; 420 instances; binary, prior [0.4725, 0.45  ]; 2 strata)
    >>> both.notes
    ('The labelled rows look like the others in every column.',)
    """
    bags = bags.reported()
    theirs = getattr(bags, "table", None)
    if theirs is None or isinstance(X, np.ndarray):
        theirs = bags.X
    if theirs is None:
        raise broken("Bags to learn from must have features", "X is None", "Make them with X.")
    old = getattr(bags, "old_score", None)
    if isinstance(y, str):
        X, y = _read(X, y, theirs, old)
    if offset is None and old is not None:
        offset = old.scores(X)
    report = _reports(y, bags)
    labelled = len(report)
    rows = _stacked(theirs, X)
    if rows.shape[0] != len(bags.bag) + labelled:
        raise broken(
            "There must be one label for each labelled row",
            f"{labelled} given for {rows.shape[0] - len(bags.bag)} rows",
            "Give each row its own.",
        )
    return BagsWithLabels(
        bag=np.append(bags.bag, len(bags) + np.arange(labelled)),
        kind=bags.kind,
        X=rows,
        cap=bags.cap,
        **_of_bags(bags, report),
        offset=_offsets(bags, offset, labelled),
        notes=(_likeness(rows, len(bags.bag)),),
        plan=getattr(bags, "plan", None),
        old_score=old,
    )


def _of_bags(bags: Bags, report: np.ndarray) -> dict[str, Any]:
    """What is known of each bag, and then of each labelled row: it is exact, and of a stratum whose
    prior is the mean label."""
    labelled, prior, noise, names = len(report), bags.known_prior, bags.noise, bags.names
    stratum = bags.stratum_or_zero
    if prior is not None:
        own = np.reshape(prior, (-1, *report.shape[1:]))
        prior = np.concatenate([own, report.mean(axis=0)[None]])
    if noise is not None:
        noise = np.append(noise, np.zeros(labelled))
    if names is not None:
        names = np.array([*map(str, names), *(f"labelled {i}" for i in range(labelled))])
    return {
        "report": np.concatenate([bags.report, report]),
        "stratum": np.append(stratum, np.full(labelled, stratum.max() + 1)),
        "known_prior": prior,
        "noise": noise,
        "names": names,
    }


def _read(
    source: Any, label: str, theirs: Any, old: tables.OldScore | None
) -> tuple[pa.Table, np.ndarray]:
    """Labelled rows and their labels, from wherever they are."""
    table = tables.open_table(source, thing="labelled rows")
    columns = tables.open_table(theirs).schema.names
    rows = table.read(table.need([*columns, label, getattr(old, "column", None)]))
    return rows, tables.as_numbers(rows[label], name=label, thing="labelled rows")


def _reports(y: Any, bags: Bags) -> np.ndarray:
    y = np.asarray(y, float)
    largest = {"binary": 1.0, "total": np.inf, "histogram": bags.report.shape[-1] - 1.0}[bags.kind]
    whole = np.isfinite(y) & (y >= 0) & (y <= largest) & (y == np.floor(y))
    refuse(
        f"A label of a {bags.kind} report must be a whole number from 0 to {largest:g}",
        ~whole,
        thing="labelled row",
        given=y,
        remedy="Leave out rows whose label is not known.",
    )
    if bags.kind == "histogram":
        return np.eye(bags.report.shape[1])[y.astype(int)]
    return y


def _offsets(bags: Bags, offset: Any, labelled: int) -> np.ndarray | None:
    if (bags.offset is None) != (offset is None):
        raise broken(
            "An offset must come for bags and labelled rows, or for neither",
            "it is given for one of them",
            "Give {offset} for both.",
        )
    if bags.offset is None:
        return None
    return np.append(bags.offset, np.broadcast_to(np.asarray(offset, float), labelled))


def _stacked(first: Any, second: Any) -> Any:
    """The rows of both, of matrices or of tables."""
    if sparse.issparse(first):
        return sparse.vstack([first, sparse.csr_array(second)], format="csr")
    if isinstance(first, np.ndarray):
        return np.concatenate([first, np.asarray(second, first.dtype)])
    names = tables.open_table(first).schema.names
    read = [table.read(table.need(names)) for table in map(tables.open_table, (first, second))]
    above, below = (pa.table({name: tables.plain(each[name]) for name in names}) for each in read)
    both = [above, _cast(below, above.schema)]
    return pa.concat_tables(both, promote_options="permissive").combine_chunks()


def _cast(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table with times and text as the schema has them; numbers of any width go together."""
    columns = {}
    for name, wanted in zip(schema.names, schema.types, strict=True):
        column = table[name]
        if not (tables.is_number(wanted) and tables.is_number(column.type)):
            try:
                column = column.cast(wanted)
            except pa.ArrowException as error:
                raise broken(
                    "Labelled rows must have columns of the same type as the events",
                    f"{name!r} is {column.type} and cannot be read as {wanted}",
                    "Write it as in the events.",
                ) from error
        columns[name] = column
    return pa.table(columns)


def _likeness(rows: Any, others: int) -> str:
    """Whether the last rows are like the first, column by column."""
    names, matrix = _numbers(rows)
    if not names:
        return "The labelled rows have no columns to compare."
    group = (np.arange(len(matrix)) >= others).astype(int)
    size = np.bincount(group, minlength=2)
    mean = mean_by(group, matrix, size)
    spread = matrix.std(axis=0)
    gap = np.abs(mean[1] - mean[0]) / np.where(spread > 0, spread, 1.0)
    error = np.sqrt((1 / size).sum())
    differs = np.flatnonzero((gap > APART) & (gap > SURE * error))
    if len(differs) == 0:
        return "The labelled rows look like the others in every column."
    order = differs[np.argsort(-gap[differs])]
    words = [f"{names[j]} ({gap[j]:.1f} standard deviations)" for j in order[:NAMED]]
    return (
        f"The labelled rows are not like the others: their means differ in {', '.join(words)}. "
        "What they teach holds for the others only as far as the columns explain the labels."
    )


def _numbers(rows: Any) -> tuple[list[str], np.ndarray]:
    """Every column as numbers: levels one-hot, missing values as their own."""
    if sparse.issparse(rows):
        rows = rows.toarray()
    if isinstance(rows, np.ndarray):
        matrix = np.nan_to_num(rows.reshape(len(rows), -1).astype(float))
        return [f"column {j}" for j in range(matrix.shape[1])], matrix
    plan = tables.plan_features(rows)
    plan = replace(plan, columns=tuple(c for c in plan.columns if c.kind != "hash"))
    if not plan.used:
        return [], np.zeros((rows.shape[0], 0))
    return list(plan.names), plan.apply(rows).astype(float)
