"""Events, reports and bags in, a small table of faults out; that table in, sentences or an error out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, get_args

from unbag.bags import Status
from unbag.tables.telling import count
from unbag.warehouse.asking import Asking, constant, ibis, total
from unbag.warehouse.counting import sum_of_values

HIDDEN = ("suppressed_by_value", "interval")
LONE = (
    "Merge small strata, or cut them into random sub-bags; where a stratum has one report only, leave the strata out "
    "and train by matching or likelihood."
)


class Check(NamedTuple):
    """What is looked for: the things counted, whether they are refused, and the words."""

    thing: str
    refused: bool
    rule: str
    remedy: str


CHECKS = {
    "no_events": Check("table", True, "A table of events must hold at least one row", "Look at the export."),
    "no_reports": Check("table", True, "A table of reports must hold at least one row", "Look at the export."),
    "event_without_bag": Check(
        "event", True, "A bag id must not be missing", "Give such events their bag, or drop them on purpose."
    ),
    "event_without_stratum": Check(
        "event", True, "A stratum must not be missing", "Give it a stratum of its own."
    ),
    "event_without_id": Check("event", True, "An event id must not be missing", "Fill it in."),
    "event_without_reference": Check(
        "event", True, "A reference must be a finite number, and those of classes must add up to 1",
        "Predict for every event of a bag with a report."
    ),
    "bag_in_two_strata": Check(
        "bag", True, "A bag must lie within one stratum", "Cut it into one bag for each, or leave the stratum out."
    ),
    "small_stratum": Check(
        "stratum", True,
        "A stratum must have instances for two bags, because each bag is centred by the mean of the others",
        "Make the bags smaller, or merge small strata.",
    ),
    "stratum_not_expected": Check(
        "event", True, "Every stratum must have an expected count",
        "Add it, so that its number of bags is fixed before the first id comes.",
    ),
    "event_in_two_bags": Check(
        "event", True, "Bags must not overlap", "An event counts in one report only; choose which, as the reports do."
    ),
    "event_twice": Check("event", True, "An event must come once", "Drop the copies."),
    "report_without_bag": Check(
        "report", True, "A report must name its bag", "Drop such rows, which are often totals of the page."
    ),
    "report_without_time": Check("report", True, "An as-of time must not be missing", "Fill it in."),
    "bag_with_two_reports": Check(
        "bag", True, "A bag must have one report",
        "Name with as_of= the column that tells which is latest; of two as of the same time drop one.",
    ),
    "wrong_size": Check(
        "bag", True, "A reported size must be the number of events of the bag",
        "Find the missing or doubled events, or leave such bags out with wrong_sizes='leave_out'.",
    ),
    "impossible_total": Check(
        "bag", True, "A report without noise must be one that labels could give",
        "Say kind='total' where an event may count more than once, name all classes of a histogram, or give the "
        "variance of the noise with noise=.",
    ),
    "unknown_status": Check(
        "bag", True, f"A status must be one of {', '.join(get_args(Status))}",
        "A report that came is observed; leave status out when all came.",
    ),
    "hidden_by_value": Check(
        "bag", True, "A report must not be hidden for its value, because leaving it out biases the result",
        "Ask for noisy counts or larger bags, so that none is hidden, or accept the bias with accept_bias=True.",
    ),
    "report_not_finite": Check(
        "bag", True, "A report must be finite",
        "Say with status= which bags are suppressed or pending, or fix the export; never write 0 for them.",
    ),
    "wrong_noise": Check(
        "bag", True, "A noise variance must be finite and not negative",
        "Give the variance of the noise on the bag's count, 0 for an exact report.",
    ),
    "nothing_observed": Check(
        "table", True, "At least one bag must have events and a report",
        "Write the ids in the same way in both tables, or wait for reports.",
    ),
    "stratum_without_report": Check(
        "stratum", True, "A stratum must have at least one observed report",
        "Leave its bags out, or merge it with another.",
    ),
    "lone_bag": Check(
        "stratum", True,
        "A stratum must hold at least two bags with a report, because each bag is centred by the mean of the others",
        LONE,
    ),
    "negative_weight": Check(
        "bag", True, "A sample weight must be positive",
        "The noise on the class counts is too large for such bags: make them larger, or take one class at a time "
        "with total=.",
    ),
    "bag_without_events": Check("report", False, "Reports of bags without events are left out", ""),
    "late_report": Check("report", False, "Reports that came after the cut are left out", ""),
    "older_report": Check("report", False, "Reports that came again later are left out; the latest is used", ""),
    "late_bag": Check("bag", False, "Bags with events after the cut are left out", ""),
    "other_size": Check("bag", False, "Bags of another size than was reported are left out", ""),
    "bag_without_report": Check("bag", False, "Bags without a report wait for it and are left out", ""),
    "not_observed": Check("bag", False, "Bags whose report is suppressed or pending are left out", ""),
}  # fmt: skip


class Told(NamedTuple):
    """What was looked at, and sentences on what is left out and what is refused."""

    events: int
    reports: int
    bags: int
    left_out: tuple[str, ...]
    refused: tuple[str, ...]


def confirm(checks: Iterable[Mapping[str, Any]], *, refuse: bool = True) -> Told:
    """Read the lines of `Related.checks`: raise when anything is refused, else tell what is left out.

    Parameters
    ----------
    checks : lines with check, rows and first, e.g. `related.checks.to_pyarrow().to_pylist()`.
    refuse : whether to raise; False puts the sentences into `refused`.

    >>> confirm([{"check": "wrong_size", "rows": 2, "first": "mon: 3.0 reported, 2 events"}])
    Traceback (most recent call last):
    ValueError: A reported size must be the number of events of the bag: mon: 3.0 reported, 2 events (2 bags). Find \
the missing or doubled events, or leave such bags out with wrong_sizes='leave_out'.
    """
    found = {line["check"]: line for line in checks if line["rows"]}
    said: dict[str, str] = {name: _sentence(CHECKS[name], found[name]) for name in CHECKS if name in found}
    refused = tuple(text for name, text in said.items() if CHECKS[name].refused)
    if refused and refuse:
        first, *others = refused
        more = f" ({count(len(others), 'further problem')}.)" if others else ""
        raise ValueError(f"{first}{more}")
    came = lambda name: int(found[name]["rows"]) if name in found else 0
    left_out = tuple(text for name, text in said.items() if not CHECKS[name].refused)
    return Told(came("events"), came("reports"), came("bags"), left_out, refused)


def _sentence(check: Check, line: Mapping[str, Any]) -> str:
    n = int(line["rows"])
    how_many = f"{n} strata" if check.thing == "stratum" and n > 1 else count(n, check.thing)
    first = f": {line['first']}" if line["first"] else ""
    return f"{check.rule}{first} ({how_many}). {check.remedy}".strip()


def find_faults(events: Any, reports: Any, bags: Any, weighed: Any, asking: Asking) -> Any:
    """One line for each check: its name, whether it is refused, how many rows break it, the first, and the rule."""
    looks = [_of_events(events), _of_reports(reports, asking), _of_bags(_with_strata(bags), asking)]
    looks += [_of_ids(events)] if asking.columns.id is not None else []
    noisy_classes = asking.columns.counts is not None and asking.columns.noise is not None
    looks += [_of_weights(weighed, asking)] if noisy_classes else []
    return as_lines(looks)


def as_lines(looks: list[tuple[Any, dict[str, tuple[Any, Any]]]]) -> Any:
    """Tables with what is looked for in each (whether a row is bad, and its words), as one line for each check."""
    whole, *others = [_totals(table, finds, i) for i, (table, finds) in enumerate(looks)]
    for other in others:
        whole = whole.cross_join(other)
    lines = [_line(whole, name, i) for i, (_, finds) in enumerate(looks) for name in finds]
    return whole.select(line=ibis().array(lines).unnest()).unpack("line")


def _totals(table: Any, finds: dict[str, tuple[Any, Any]], number: int) -> Any:
    """Of each find how many there are, and the first by its words; the number keeps names of two looks apart."""
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
    gaps = [events[name].isnull() | events[name].isinf() for name in events.columns if name.startswith("g_")]
    if len(gaps) > 1:
        gaps.append((total([events[f"g_{i}"] for i in range(len(gaps))]) - 1).abs() > 1e-6)
    no_reference = ibis().or_(*gaps).fill_null(True) if gaps else ibis().literal(False)
    return events, {
        "events": (everything, None),
        "no_events": (everything, None),
        "event_without_bag": (events.bag.isnull(), None),
        "event_without_stratum": (events.stratum.isnull(), None),
        "event_without_reference": (no_reference, None),
    }


def _of_ids(events: Any) -> tuple[Any, dict[str, tuple[Any, Any]]]:
    """Ids that are missing, or come twice, in one bag or in several."""
    marked = events.mutate(named=events.bag.cast("string"))
    ids = marked.group_by("id").aggregate(n=marked.count(), low=marked.named.min(), high=marked.named.max())
    known, twice = ids.id.notnull(), ids.n > 1
    two = known & twice & (ids.low != ids.high).fill_null(False)
    ids = ids.mutate(missing=ibis().ifelse(known, 0, ids.n), two=two)
    return ids, {
        "event_without_id": (ids.missing, None),
        "event_in_two_bags": (ids.two, "event " + ids.id + " is in bags " + ids.low + " and " + ids.high),
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
            "bag " + reports.bag.cast("string"),
        ),
        "late_report": (named & reports.late, "bag " + reports.bag.cast("string")),
        "older_report": (named & reports.older, "bag " + reports.bag.cast("string")),
    }


def _with_strata(bags: Any) -> Any:
    """The bags with the number of reports in their stratum, and one bag of each stratum that stands for it."""
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
        "unknown_status": (report & ~bags.status.isin(get_args(Status)), named + " has " + bags.status),
        "hidden_by_value": (
            nothing if asking.accept_bias else report & bags.status.isin(HIDDEN),
            named + " has " + bags.status,
        ),
        "report_not_finite": (bags.seen & ~_finite(sum_of_values(bags, asking)), named),
        "wrong_noise": (bags.seen & ~(_finite(bags.noise) & (bags.noise >= 0)).fill_null(False), named),
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
    """Bags whose class weights add up to nothing positive; with labels (1, y) that cannot happen."""
    whole = total([weighed[f"W_{i}"] for i in range(len(asking.parts))])
    own = constant(1) / weighed.all if asking.method == "anchored" else 0.0  # a reference adds up to 1
    return weighed, {"negative_weight": ((whole + own <= 0).fill_null(False), "bag " + _text(weighed.bag))}


def _sizes(bags: Any) -> Any:
    return "bag " + bags.name + ": " + bags.reported_size.cast("string") + " reported, " + _text(bags.size) + " events"


def _text(column: Any) -> Any:
    return column.cast("string")


def _finite(column: Any) -> Any:
    return (column.notnull() & ~column.isinf()).fill_null(False)


def _impossible(bags: Any, asking: Asking) -> tuple[Any, Any]:
    """Reports without noise that no labels could give; as `join` and `Bags` have it."""
    names, whole = asking.columns, sum_of_values(bags, asking)
    shares = [bags[f"a_{i}"] for i in range(len(asking.parts))][0 if names.counts is not None else 1 :]
    high = 1.0 if names.reports_are != "total" else float("inf") if asking.cap is None else asking.cap
    outside = ibis().or_(*((a < -1e-9) | (a > high + 1e-9) for a in shares))
    if names.counts is not None:
        outside = outside | ((whole - bags.size).abs() > 1e-6 * bags.size)
    bad = (bags.seen & bags.exact & outside).fill_null(False)
    return bad, "bag " + bags.name + ": " + _text(whole) + " for " + _text(bags.size) + " events"
