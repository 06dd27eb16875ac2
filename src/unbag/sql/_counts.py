"""Events and reports in, one line for each bag out: size, stratum, what it reported, and whether it
is used."""

from __future__ import annotations

import math
from typing import Any

from unbag.sql._columns import (
    Asking,
    constant,
    ibis,
    id_column,
    later,
    moment_column,
    number_column,
    text_column,
    total,
)


def read_events(events: Any, asking: Asking) -> Any:
    """Of each event its bag, its stratum, its id, whether it is later than the cut, and its
    reference."""
    names, api = asking.columns, ibis()
    text = lambda name: text_column(events, name, thing="events")
    cut = math.isfinite(asking.cut) and names.time is not None
    when = moment_column(events[names.time]) if cut else None
    return events.select(
        bag=id_column(events, names.on, text=asking.text, thing="events"),
        stratum=api.literal("") if names.stratum is None else text(names.stratum),
        id=api.null("string") if names.id is None else text(names.id),
        # an event without a time is not known to lie before a cut
        late=later(when, asking.cut).fill_null(True) if cut else api.literal(False),
        unclear=_unclear(events[names.time], when) if cut else api.null("string"),
        **{f"g_{i}": number_column(events[name]) for i, name in enumerate(asking.reference)},
    )


def read_reports(reports: Any, asking: Asking) -> Any:
    """Of each report its bag, values, size, noise, status and time; those that are late or restated
    are marked."""
    names, api = asking.columns, ibis()
    number = lambda name: number_column(reports[name])
    made = api.null("int64") if names.as_of is None else moment_column(reports[names.as_of])
    late = math.isfinite(asking.cut) and names.as_of is not None
    variance = number(names.noise) if isinstance(names.noise, str) else constant(names.noise or 0)
    status = (
        api.null("string")
        if names.status is None
        else text_column(reports, names.status, thing="reports")
    )
    read = reports.select(
        bag=id_column(reports, names.on, text=asking.text, thing="reports"),
        reported_size=api.null("float64") if names.size is None else number(names.size),
        noise=variance,
        status=status.fill_null("observed"),
        late=later(made, asking.cut).fill_null(False) if late else api.literal(False),
        as_of=made,
        unclear=api.null("string") if names.as_of is None else _unclear(reports[names.as_of], made),
        **{f"value_{i}": number(name) for i, name in enumerate(names.values)},
    )
    if names.as_of is None:
        return read.mutate(older=api.literal(False))
    in_time = api.ifelse(read.late, api.null(read.as_of.type()), read.as_of)
    latest = in_time.max().over(api.window(group_by="bag"))
    return read.mutate(
        older=(
            ~read.late & ((read.as_of < latest) | (read.as_of.isnull() & latest.notnull()))
        ).fill_null(False)
    )


def _unclear(column: Any, moment: Any) -> Any:
    """What is written where no time can be read."""
    if not column.type().is_string():
        return ibis().null("string")
    return ibis().ifelse(moment.isnull(), column.nullif(""), ibis().null("string"))


def one_each(reports: Any) -> Any:
    """For each bag the report that was the latest at the cut, and how many of these there are."""
    known = reports.filter(reports.bag.notnull() & ~reports.late & ~reports.older)
    values = [name for name in known.columns if name.startswith("value_")]
    kept = ["reported_size", "noise", "status", *values]
    # of two reports as of one time, which are refused, the least is taken so that a bag stays one
    # line
    return known.group_by("bag").aggregate(
        versions=known.count(), **{name: known[name].min() for name in kept}
    )


def count_events(events: Any) -> Any:
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


def match_bags(events: Any, reports: Any, asking: Asking) -> Any:
    """All bags that have events or a report, with what is said of each.

    used : it has events, none after the cut, and of the size that was reported (or such bags are
        refused).
    seen : it is used and its report is observed; these are the bags to learn from.
    """
    counted, reported = count_events(events), one_each(reports).rename(report_bag="bag")
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
    right = ~both.wrong if asking.columns.wrong_sizes == "leave_out" else ibis().literal(True)
    both = both.mutate(used=both.has_events & ~both.late & right)
    both = both.mutate(seen=both.used & both.observed, exact=(both.noise == 0).fill_null(False))
    return both.mutate(**{f"a_{i}": share for i, share in enumerate(_shares(both, asking))})


def _shares(bags: Any, asking: Asking) -> list[Any]:
    """The report of each bag in component form."""
    names = asking.columns
    values = [bags[f"value_{i}"] for i in range(len(names.values))]
    if names.proportion is not None:
        return [constant(1), values[0]]
    shares = [value / bags.size for value in values]
    return shares if names.counts is not None else [constant(1), *shares]


def sum_of_values(bags: Any, asking: Asking) -> Any:
    """What a bag reported in all: its total, its proportion, or the sum of its class counts."""
    return total([bags[f"value_{i}"] for i in range(len(asking.columns.values))])
