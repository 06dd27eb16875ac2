"""Events and reports in, checked `Bags` with features out, and a report of what was left out and
why."""

# pyright: reportAttributeAccessIssue=false
# (the functions of pyarrow.compute are made when it is imported)

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unbag.bags import Bags, Kind
from unbag.tables._columns import Asked, Sizes
from unbag.tables._infer import plan_features
from unbag.tables._match import Matched, bag_arguments, broken_rule, match_tables
from unbag.tables._overrides import as_wishes
from unbag.tables._plan import CSV_TYPES, FeaturePlan
from unbag.tables._sources import Table, open_table
from unbag.tables._summary import TablesReport, count
from unbag.tables._values import as_ids


@dataclass(frozen=True, eq=False, repr=False)
class JoinedBags(Bags):
    """Bags from tables: with the plan of their features, and what the tables held."""

    plan: FeaturePlan | None = None
    told: TablesReport | None = None


def join(
    events: Any,
    reports: Any,
    on: str,
    *,
    total: str | None = None,
    counts: Sequence[str] | None = None,
    proportion: str | None = None,
    kind: Kind | None = None,
    size: str | None = None,
    noise: str | float | None = None,
    status: str | None = None,
    as_of: str | None = None,
    stratum: str | None = None,
    time: str | None = None,
    id: str | None = None,
    cut: Any = None,
    wrong_sizes: Sizes = "refuse",
    features: Sequence[str] | None = None,
    plan: Any = None,
    prior: Any = None,
    cap: float | None = None,
    accept_bias: bool = False,
) -> JoinedBags:
    """Join a table of events with a table of reports into bags, and check both.

    Left out, and told in `bags.told`: reports of bags without events, reports and bags of the cut
    or later, older versions of a report. Bags without a report are pending. Refused: bags or ids
    that are missing, doubled or overlap, two reports of one bag (unless `as_of` tells the latest),
    sizes that disagree, totals that cannot be.

    Parameters
    ----------
    events : one row for each event: a frame of pandas or polars, an Arrow table, a DuckDB relation,
        or a path of Parquet or CSV files, which may be larger than memory as long as the matrix of
        features is not.
    reports : one row for each bag.
    on : the column with the bag's id, in both.
    total, counts, proportion : column of the reports with each bag's total, columns with its class
        counts, or column with its proportion (mean count); one of these. Totals are divided by the
        number of events.
    kind : binary (default), or total where an event may count more than once. Class counts are a
        histogram.
    size, noise, status, as_of : columns of the reports: number of events, variance of the noise on
        the count (or one number for all), status (see `Bags`; empty is observed), and when it was
        made.
    stratum, time, id : columns of the events.
    cut : as if it were this moment: reports made then or later are left out, and whole bags with
        such events; a date is its first moment, so that nothing of that day is used.
    wrong_sizes : "refuse", or "leave_out" the bags whose reported size is not their number of
        events.
    features : columns of the events to take; by default all that are none of the above. () for
        none.
    plan : a `FeaturePlan`, or a TOML file or mapping that overrides what is planned from the
        events.
    prior, cap, accept_bias : see `Bags`.

    >>> events = pa.table({"day": ["mon", "mon", "tue", "tue"], "age": [20, 30, 40, 50]})
    >>> bags = join(events, pa.table({"day": ["mon", "tue"], "sales": [1, 2]}), on="day", total="sales")
    >>> bags
    Bags(2 bags of 2; 4 instances; binary, prior 0.75)
    >>> bags.plan.names
    ('age',)
    """
    asked = Asked(
        on,
        total,
        counts,
        proportion,
        kind,
        size,
        noise,
        status,
        as_of,
        stratum,
        time,
        id,
        cut,
        wrong_sizes,
    )
    table = open_table(events, types=_types(plan) | asked.text_columns())
    matched = match_tables(
        table, open_table(reports, thing="reports", types=asked.text_columns()), asked
    )
    arguments = bag_arguments(matched, asked, known_prior=prior, cap=cap, accept_bias=accept_bias)
    _raise(matched.told.refused or broken_rule(arguments))
    planned = _plan_for(table, asked, features, plan)
    bag, where, X = _read_events(table, matched, asked, planned)
    dropped = matched.told.events - len(bag)
    return JoinedBags(
        bag, X=X, rows=where, dropped=dropped, plan=planned, told=matched.told, **arguments
    )


def _raise(refused: tuple[str, ...]) -> None:
    """Raise the first refusal, and say how many more there are."""
    if refused:
        first, *others = refused
        more = (
            f" ({count(len(others), 'further problem')}: check_tables tells all.)" if others else ""
        )
        raise ValueError(first + more)


def _types(plan: Any) -> dict[str, pa.DataType]:
    """Types of the columns of CSV files that a plan, or what overrides it, asks for."""
    columns = {c.name: c for c in plan.used} if isinstance(plan, FeaturePlan) else as_wishes(plan)
    return {
        name: CSV_TYPES[column.kind] for name, column in columns.items() if column.kind in CSV_TYPES
    }


def _plan_for(
    events: Table, asked: Asked, features: Sequence[str] | None, plan: Any
) -> FeaturePlan | None:
    """The plan that came, or one made from the events; None when there are no features."""
    if isinstance(plan, FeaturePlan):
        events.need(column.name for column in plan.used)
        return plan
    own = [name for name in (asked.on, asked.stratum, asked.time, asked.id) if name is not None]
    if features is None:
        return (
            plan_features(events, leave_out=own, override=plan)
            if set(events.schema.names) - set(own)
            else None
        )
    return plan_features(events, features=features, override=plan) if features else None


def _read_events(
    events: Table, matched: Matched, asked: Asked, plan: FeaturePlan | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Of the events in the bags that are kept: the bag number, the row of the table, and the
    features."""
    n, columns = matched.told.instances, [column.name for column in plan.used] if plan else []
    bag, where = np.empty(n, np.int64), np.empty(n, np.int64)
    X = None if plan is None else np.empty((n, len(plan.names)), np.float32)
    start = rows = 0
    for batch in events.batches(events.need([asked.on, *columns])):
        index = pc.index_in(as_ids(batch[asked.on], text=matched.text), value_set=matched.name)
        kept = np.flatnonzero(index.is_valid().to_numpy(zero_copy_only=False))
        here = slice(start, start + len(kept))
        bag[here] = index.take(pa.array(kept)).to_numpy(zero_copy_only=False)
        where[here] = rows + kept
        if plan is not None and X is not None:
            X[here] = plan.features(batch)[kept]
        start, rows = here.stop, rows + batch.num_rows
    return bag, where, X


def check_tables(
    events: Any,
    reports: Any,
    on: str,
    *,
    cap: float | None = None,
    accept_bias: bool = False,
    **columns: Any,
) -> TablesReport:
    """What `join` would say of these tables: everything that is left out or refused, without an
    error.

    Columns that are not there and files that cannot be read are errors here too. Takes the columns
    and the cap of `join`.

    >>> events = pa.table({"day": ["mon", "mon", "tue"]})
    >>> print(check_tables(events, pa.table({"day": ["mon", "wed"], "sales": [3, 1]}), on="day", total="sales"))
    3 events and 2 reports came.
    2 bags with 3 events are used, 1 with a report.
    - 1 report of bags without events was left out: wed.
    - 1 bag has no report and waits for it (pending): tue.
    refused: A total must lie between 0 and the number of events: bag mon has 3 of 2 (1 bag). Say
    kind='total' where \
an event may count more than once, or give the variance of the noise with noise=.
    """
    asked = Asked(on, **columns)
    types = asked.text_columns()
    matched = match_tables(
        open_table(events, types=types), open_table(reports, thing="reports", types=types), asked
    )
    arguments = bag_arguments(matched, asked, cap=cap, accept_bias=accept_bias)
    more = () if matched.told.refused else broken_rule(arguments)
    return matched.told._replace(refused=(*matched.told.refused, *more))
