"""Events, reports and bags in, a small table out that counts what is wrong with them or left
out."""

from __future__ import annotations

from typing import Any, get_args

from unbag.bags import Status
from unbag.sql._columns import Asking, constant, ibis, total
from unbag.sql._counts import sum_of_values
from unbag.sql._summary import CHECKS

HIDDEN = ("suppressed_by_value", "interval")


def find_faults(events: Any, reports: Any, bags: Any, weighed: Any, asking: Asking) -> Any:
    """One line for each check: its name, whether it is refused, how many rows break it, the first,
    and the rule."""
    looks = [_of_events(events), _of_reports(reports, asking), _of_bags(_with_strata(bags), asking)]
    looks += [_of_ids(events)] if asking.columns.id is not None else []
    noisy_classes = asking.columns.counts is not None and asking.columns.noise is not None
    looks += [_of_weights(weighed, asking)] if noisy_classes else []
    return as_lines(looks)


def as_lines(looks: list[tuple[Any, dict[str, tuple[Any, Any]]]]) -> Any:
    """Tables with what is looked for in each (whether a row is bad, and its words), as one line for
    each check."""
    whole, *others = [_totals(table, finds, i) for i, (table, finds) in enumerate(looks)]
    for other in others:
        whole = whole.cross_join(other)
    lines = [_line(whole, name, i) for i, (_, finds) in enumerate(looks) for name in finds]
    return whole.select(line=ibis().array(lines).unnest()).unpack("line")


def _totals(table: Any, finds: dict[str, tuple[Any, Any]], number: int) -> Any:
    """Of each find how many there are, and the first by its words; the number keeps names of two
    looks apart."""
    nothing = ibis().null("string")
    marks = {f"bad_{name}": bad.cast("int64") for name, (bad, _) in finds.items()}
    words = {f"said_{name}": nothing if text is None else text for name, (_, text) in finds.items()}
    marked = table.mutate(**marks, **words)
    count_of = lambda name: marked[f"bad_{name}"].sum().fill_null(0)
    first_of = lambda name: marked[f"said_{name}"].min(where=marked[f"bad_{name}"] > 0)
    found = {f"{name}_{number}": count_of(name) for name in finds}
    return marked.aggregate(**found, **{f"{name}_{number}_first": first_of(name) for name in finds})


def _line(whole: Any, name: str, number: int) -> Any:
    api, check = ibis(), CHECKS.get(name)
    n = whole[f"{name}_{number}"]
    if name in ("no_events", "no_reports", "nothing_observed"):  # found when nothing is
        n = (n == 0).cast("int64")
    return api.struct(
        {
            "check": api.literal(name),
            "refused": api.literal(bool(check and check.refused)),
            "rows": n,
            "first": whole[f"{name}_{number}_first"],
            "rule": api.literal(check.rule if check else f"How many {name} there are"),
        }
    )


def _of_events(events: Any) -> tuple[Any, dict[str, tuple[Any, Any]]]:
    everything = ibis().literal(True)
    gaps = [
        events[name].isnull() | events[name].isinf()
        for name in events.columns
        if name.startswith("g_")
    ]
    if len(gaps) > 1:
        gaps.append((total([events[f"g_{i}"] for i in range(len(gaps))]) - 1).abs() > 1e-6)
    no_reference = ibis().or_(*gaps).fill_null(True) if gaps else ibis().literal(False)
    return events, {
        "events": (everything, None),
        "no_events": (everything, None),
        "event_without_bag": (events.bag.isnull(), None),
        "event_without_stratum": (events.stratum.isnull(), None),
        "event_without_reference": (no_reference, None),
        "event_with_unclear_time": (events.unclear.notnull(), events.unclear),
    }


def _of_ids(events: Any) -> tuple[Any, dict[str, tuple[Any, Any]]]:
    """Ids that are missing, or come twice, in one bag or in several."""
    marked = events.mutate(named=events.bag.cast("string"))
    ids = marked.group_by("id").aggregate(
        n=marked.count(), low=marked.named.min(), high=marked.named.max()
    )
    known, twice = ids.id.notnull(), ids.n > 1
    two = known & twice & (ids.low != ids.high).fill_null(False)
    ids = ids.mutate(missing=ibis().ifelse(known, 0, ids.n), two=two)
    return ids, {
        "event_without_id": (ids.missing, None),
        "event_in_two_bags": (
            ids.two,
            "event " + ids.id + " is in bags " + ids.low + " and " + ids.high,
        ),
        "event_twice": (known & twice & ~ids.two, "event " + ids.id),
    }


def _of_reports(reports: Any, asking: Asking) -> tuple[Any, dict[str, tuple[Any, Any]]]:
    named, everything = reports.bag.notnull(), ibis().literal(True)
    dated = asking.columns.as_of is not None
    return reports, {
        "reports": (everything, None),
        "no_reports": (everything, None),
        "report_without_bag": (~named, None),
        "report_without_time": (
            named & reports.as_of.isnull() if dated else ibis().literal(False),
            "bag " + reports.bag.cast("string") + " has " + reports.unclear.fill_null("none"),
        ),
        "late_report": (named & reports.late, "bag " + reports.bag.cast("string")),
        "older_report": (named & reports.older, "bag " + reports.bag.cast("string")),
    }


def _with_strata(bags: Any) -> Any:
    """The bags with the number of reports in their stratum, and one bag of each stratum that stands
    for it."""
    within = ibis().window(group_by="stratum")
    name = bags.bag.cast("string")
    used = bags.mutate(name=name, stratum_seen=bags.seen.cast("int64").sum().over(within))
    leader = ibis().ifelse(used.used, used.name, ibis().null("string")).min().over(within)
    return used.mutate(leads=(used.used & (used.name == leader)).fill_null(False))


def _of_bags(bags: Any, asking: Asking) -> tuple[Any, dict[str, tuple[Any, Any]]]:
    named = "bag " + bags.name
    report = bags.has_report & bags.used
    refuse_size = asking.columns.wrong_sizes == "refuse"
    nothing = ibis().literal(False)
    finds = {
        "bags": (bags.seen, None),
        "bag_in_two_strata": (
            (bags.stratum != bags.other).fill_null(False),
            named + " has " + bags.stratum + " and " + bags.other,
        ),
        "bag_with_two_reports": ((bags.versions > 1).fill_null(False), named),
        "wrong_size": (bags.wrong if refuse_size else nothing, _sizes(bags)),
        "impossible_total": _impossible(bags, asking),
        "unknown_status": (
            report & ~bags.status.isin(get_args(Status)),
            named + " has " + bags.status,
        ),
        "hidden_by_value": (
            nothing if asking.accept_bias else report & bags.status.isin(HIDDEN),
            named + " has " + bags.status,
        ),
        "report_not_finite": (bags.seen & ~_finite(sum_of_values(bags, asking)), named),
        "wrong_noise": (
            bags.seen & ~(_finite(bags.noise) & (bags.noise >= 0)).fill_null(False),
            named,
        ),
        "nothing_observed": (bags.seen, None),
        "bag_without_events": (~bags.has_events, named),
        "late_bag": (bags.has_events & bags.late, named),
        "other_size": (nothing if refuse_size else bags.wrong & ~bags.late, _sizes(bags)),
        "bag_without_report": (bags.used & ~bags.has_report, named),
        "not_observed": (report & ~bags.observed, named + " is " + bags.status),
    }
    return bags, finds | _of_strata(bags, asking)


def _of_strata(bags: Any, asking: Asking) -> dict[str, tuple[Any, Any]]:
    """Strata with no report, or with one only, found at the bag that stands for each."""
    few = bags.leads & (bags.stratum_seen == 1)
    text = ibis().ifelse(bags.stratum == "", ibis().literal("all bags"), "stratum " + bags.stratum)
    return {
        "stratum_without_report": (bags.leads & (bags.stratum_seen == 0), text),
        "lone_bag": (ibis().literal(False) if asking.method == "easy" else few, text),
    }


def _of_weights(weighed: Any, asking: Asking) -> tuple[Any, dict[str, tuple[Any, Any]]]:
    """Bags whose class weights add up to nothing positive; with labels (1, y) that cannot
    happen."""
    whole = total([weighed[f"W_{i}"] for i in range(len(asking.parts))])
    own = (
        constant(1) / weighed.all if asking.method == "anchored" else 0.0
    )  # a reference adds up to 1
    return weighed, {
        "negative_weight": ((whole + own <= 0).fill_null(False), "bag " + _text(weighed.bag))
    }


def _sizes(bags: Any) -> Any:
    return (
        "bag "
        + bags.name
        + ": "
        + bags.reported_size.cast("string")
        + " reported, "
        + _text(bags.size)
        + " events"
    )


def _text(column: Any) -> Any:
    return column.cast("string")


def _finite(column: Any) -> Any:
    return (column.notnull() & ~column.isinf()).fill_null(False)


def _impossible(bags: Any, asking: Asking) -> tuple[Any, Any]:
    """Reports without noise that no labels could give; as `join` and `Bags` have it."""
    names, whole = asking.columns, sum_of_values(bags, asking)
    shares = [bags[f"a_{i}"] for i in range(len(asking.parts))][
        0 if names.counts is not None else 1 :
    ]
    high = (
        1.0 if names.reports_are != "total" else float("inf") if asking.cap is None else asking.cap
    )
    outside = ibis().or_(*((a < -1e-9) | (a > high + 1e-9) for a in shares))
    if names.counts is not None:
        outside = outside | ((whole - bags.size).abs() > 1e-6 * bags.size)
    bad = (bags.seen & bags.exact & outside).fill_null(False)
    return bad, "bag " + bags.name + ": " + _text(whole) + " for " + _text(bags.size) + " events"
