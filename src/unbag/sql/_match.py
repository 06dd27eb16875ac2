"""Events and reports brought together by bag, as `unbag.tables` does it, in relational form."""

# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportOperatorIssue=false
# (the types of Ibis expressions are known when they are made)

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import ibis

from unbag._rules import broken, one_of
from unbag.methods import ANCHORED, LINEAR, UPM, Method
from unbag.sql._columns import (
    constant,
    id_column,
    later,
    moment_column,
    number_column,
    text_column,
    unclear,
)
from unbag.tables import Columns, Table, as_moments, as_numbers, cut_of, ids_are_text

NEVER = ibis.literal(False)


@dataclass(frozen=True)
class Request:
    """What is asked of two tables.

    Parameters
    ----------
    columns : Columns
        Which column is what.
    method : {"upm", "easy", "anchored"}
        How weights are made.
    reference : tuple of str
        For anchored, the column(s) of the events with a prediction.
    text : bool
        Whether bag ids are compared as text.
    cut : float
        A moment as a number, NaN when there is none.
    """

    columns: Columns
    method: Method
    reference: tuple[str, ...]
    text: bool
    cut: float

    @property
    def parts(self) -> tuple[str, ...]:
        """What the components are called: the classes of a histogram, else 1 and 2."""
        if self.columns.counts is None:
            return ("1", "2")
        return self.columns.values


def make_request(
    events: Any,
    reports: Any,
    columns: Columns,
    *,
    method: Method | None,
    reference: Any,
    typed: bool,
) -> Request:
    """Check names and types of the columns before anything is run.

    Parameters
    ----------
    events, reports : ibis.Table
        The tables.
    columns, method, reference, typed
        See `relate`.
    """
    if method is None:
        method = ANCHORED.name if reference else UPM.name
    one_of("A method in SQL", method, LINEAR)
    predictions = _references(columns, method, reference)
    # empty tables of the same schema, so that the checks of `join` serve here too
    ours, theirs = (
        Table(thing, table.schema().to_pyarrow().empty_table(), typed)
        for thing, table in (("events", events), ("reports", reports))
    )
    ours.need([*columns.of_events, *predictions])
    theirs.need(columns.of_reports)
    numbers = (*columns.values, columns.size, columns.variance)
    for table, names in ((ours, predictions), (theirs, numbers)):
        for name in filter(None, names):
            as_numbers(table.source[name], name=name, thing=table.thing)
    for table, name in ((ours, columns.time), (theirs, columns.as_of)):
        if name is not None:
            as_moments(table.source[name], name=name, thing=table.thing)
    text, cut = ids_are_text(ours, theirs, columns), cut_of(ours, theirs, columns)
    return Request(columns, method, predictions, text, cut)


def _references(columns: Columns, method: str, reference: Any) -> tuple[str, ...]:
    if isinstance(reference, str):
        reference = (reference,)
    names = tuple(reference or ())
    wanted = {"anchored": len(columns.values)}.get(method, 0)
    if len(names) != wanted:
        raise broken(
            f"Method {method} must have {wanted or 'no'} column(s) with a reference prediction",
            f"{len(names)} given",
            "Name with {reference} one of the events, or one for each class; only anchored has "
            "any.",
        )
    return names


def read_events(events: Any, request: Request) -> Any:
    """Of each event its bag, its stratum, its id, whether it is later than the cut, and its
    reference."""
    names = request.columns
    read = {
        "bag": id_column(events, names.keys, text=request.text, thing="events"),
        "stratum": ibis.literal(""),
        "id": ibis.null("string"),
        "late": NEVER,
        "unclear": ibis.null("string"),
    }
    for part in ("stratum", "id"):
        if getattr(names, part) is not None:
            read[part] = text_column(events, getattr(names, part), thing="events")
    if math.isfinite(request.cut) and names.time is not None:
        when = moment_column(events[names.time])
        # an event without a time is not known to lie before a cut
        read["late"] = later(when, request.cut).fill_null(True)
        read["unclear"] = unclear(events[names.time], when)
    predictions = {f"g_{i}": number_column(events[g]) for i, g in enumerate(request.reference)}
    return events.select(**read, **predictions)


def read_reports(reports: Any, request: Request) -> Any:
    """Of each report its bag, values, size, noise, status and time; those that are late or restated
    are marked."""
    names = request.columns
    read = {
        "bag": id_column(reports, names.keys, text=request.text, thing="reports"),
        "reported_size": ibis.null("float64"),
        "noise": constant(0),
        "status": ibis.literal("observed"),
        "late": NEVER,
        "as_of": ibis.null("int64"),
        "unclear": ibis.null("string"),
    }
    read |= {f"value_{i}": number_column(reports[name]) for i, name in enumerate(names.values)}
    if names.variance is None:
        read["noise"] = constant(float(names.noise or 0))
    for part, name in (("reported_size", names.size), ("noise", names.variance)):
        if name is not None:
            read[part] = number_column(reports[name])
    if names.status is not None:
        status = text_column(reports, names.status, thing="reports")
        own = status.fill_null("observed")
        read["status"] = own.substitute(dict(names.status_map or {"observed": "observed"}))
    if names.as_of is None:
        return reports.select(**read).mutate(older=NEVER)
    made = moment_column(reports[names.as_of])
    read |= {"as_of": made, "unclear": unclear(reports[names.as_of], made)}
    if math.isfinite(request.cut):
        read["late"] = later(made, request.cut).fill_null(False)
    table = reports.select(**read)
    in_time = ibis.ifelse(table.late, ibis.null(table.as_of.type()), table.as_of)
    latest = in_time.max().over(ibis.window(group_by="bag"))
    before = (table.as_of < latest) | (table.as_of.isnull() & latest.notnull())
    return table.mutate(older=(~table.late & before).fill_null(False))


def match_bags(events: Any, reports: Any, request: Request) -> Any:
    """All bags that have events or a report, with what is said of each.

    used : it has events, none after the cut, and of the size that was reported (or such bags are
        refused).
    usable : it is used and its report is observed; these are the bags to learn from.
    """
    counted, reported = _count_events(events), _one_each(reports).rename(report_bag="bag")
    both = counted.outer_join(reported, counted.bag == reported.report_bag)
    both = both.mutate(
        bag=both.bag.fill_null(both.report_bag),
        has_events=both.size.notnull(),
        has_report=both.versions.notnull(),
        late=both.late.fill_null(False),
        status=both.status.fill_null("pending"),
        stratum=both.stratum.fill_null(""),
    )
    observed = both.status == "observed"
    wrong = (both.has_events & observed & (both.reported_size != both.size)).fill_null(False)
    both = both.mutate(observed=observed, wrong=wrong)
    used = both.has_events & ~both.late
    if request.columns.wrong_sizes == "leave_out":
        used = used & ~both.wrong
    both = both.mutate(used=used)
    both = both.mutate(usable=both.used & both.observed, exact=(both.noise == 0).fill_null(False))
    return both.mutate(**{f"a_{i}": share for i, share in enumerate(_shares(both, request))})


def _count_events(events: Any) -> Any:
    """The size of each bag, its first and last stratum, whether it has late events, and its sums of
    references."""
    whole = events.filter(events.bag.notnull())
    sums = {name: whole[name].sum() for name in whole.columns if name.startswith("g_")}
    return whole.group_by("bag").aggregate(
        size=whole.count(),
        stratum=whole.stratum.min(),
        other=whole.stratum.max(),
        late=whole.late.any(),
        **sums,
    )


def _one_each(reports: Any) -> Any:
    """For each bag the report that was the latest at the cut, and how many of these there are."""
    known = reports.filter(reports.bag.notnull() & ~reports.late & ~reports.older)
    values = [name for name in known.columns if name.startswith("value_")]
    # of two reports as of one time, which are refused, the least is taken: a bag stays one line
    kept = {name: known[name].min() for name in ("reported_size", "noise", "status", *values)}
    return known.group_by("bag").aggregate(versions=known.count(), **kept)


def _shares(bags: Any, request: Request) -> list[Any]:
    """The report of each bag in component form."""
    names = request.columns
    values = [bags[f"value_{i}"] for i in range(len(names.values))]
    if names.proportion is not None:
        return [constant(1), values[0]]
    shares = [value / bags.size for value in values]
    if names.counts is not None:
        return shares
    return [constant(1), *shares]
