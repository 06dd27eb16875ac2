"""The rules that events and reports must keep, in the order in which they are checked, and who
breaks those on single bags: written once, for arrays and for columns of a database.

`join` checks them in memory, `unbag.sql` in a database. Both count who breaks each rule and name
the first; the words, the order and the report on the tables are made here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from operator import add, or_
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import numpy as np

from unbag._rules import PLURALS, Refusal, visible
from unbag.bags import HIDDEN_BY_VALUE, REPORT_RULES, Status, largest_report

if TYPE_CHECKING:
    from unbag.tables._columns import Columns

LATEST = (
    "Name with {as_of} the column that tells which is latest; of two as of one time drop one. "
    "Where several columns name a bag, name all of them."
)
NO_LABELS = (
    "Say {kind:total} where an event may count more than once, or give the variance of the noise "
    "with {noise}."
)

TWO_KINDS = (
    "A report that is there is observed, and one that is still to be made is pending. Hidden "
    "reports are of two kinds: suppressed_by_size where the bag was too small, which does no harm, "
    "and suppressed_by_value where its count was too small, which biases what is learned from the "
    "others."
)


EVEN = "they vary less than one in a million sets of random bags"


class TableRule(NamedTuple):
    """A rule that is refused when it is broken: who is counted, what must hold, what to do."""

    thing: str
    rule: str
    remedy: str


class LeftOut(NamedTuple):
    """What is left out without an error: who is counted, and what is said of one and of many."""

    thing: str
    one: str
    many: str


def _known(name: str) -> TableRule:
    """A rule of `unbag.bags.Reports`, which a database checks before there are any."""
    return TableRule("bag", REPORT_RULES[name].text, REPORT_RULES[name].remedy)


RULES: dict[str, TableRule] = {
    "no_events": TableRule(
        "table", "A table of events must hold at least one row", "Check the export."
    ),
    "no_reports": TableRule(
        "table", "A table of reports must hold at least one row", "Check the export."
    ),
    "event_without_bag": TableRule(
        "event", "A bag id must not be missing",
        "Give such events their bag, or drop them on purpose.",
    ),
    "event_without_stratum": TableRule(
        "event", "A stratum must not be missing", "Give it a stratum of its own."
    ),
    "event_without_id": TableRule("event", "An event id must not be missing", "Fill it in."),
    "event_without_reference": TableRule(
        "event", "A reference must be a finite number, and those of classes must add up to 1",
        "Predict for every event of a bag with a report.",
    ),
    "event_with_unclear_time": TableRule(
        "event", "A time must be written like 2026-11-16 or 2026-11-16 05:30", "Write it so."
    ),
    "bag_in_two_strata": TableRule(
        "bag", "A bag must lie within one stratum",
        "Cut it into one bag for each, or leave the stratum out.",
    ),
    "event_in_two_bags": TableRule(
        "event", "Bags must not overlap",
        "An event counts in one report only; choose which, as the reports do.",
    ),
    "event_twice": TableRule("event", "An event must occur once", "Drop the copies."),
    "report_without_bag": TableRule(
        "report", "A report must name its bag",
        "Drop such rows, which are often totals of the page.",
    ),
    "report_without_time": TableRule(
        "report", "An as-of time must not be missing, and text must look like 2026-11-16 05:30",
        "Fill it in, or write it so.",
    ),
    "bag_with_two_reports": TableRule("bag", "A bag must have one report", LATEST),
    "no_sizes": TableRule(
        "table", "A column of sizes must hold at least one",
        "Fill it in, or leave {size} out.",
    ),
    "wrong_size": TableRule(
        "bag", "A reported size must be the number of events of the bag",
        "Find the missing or doubled events, or leave such bags out with {wrong_sizes:leave_out}.",
    ),
    "unknown_status": TableRule(
        "bag", REPORT_RULES["status"].text,
        f"Say what your own words mean with {{status_map}}. {TWO_KINDS}",
    ),
    "hidden_by_value": _known("hidden"),
    "report_not_finite": _known("finite"),
    "wrong_noise": _known("noise"),
    "proportion_as_total": TableRule(
        "bag", "A total must be a number of events, and all of these lie between 0 and 1, as "
        "proportions do",
        "Name the column with {proportion} in place of {total}.",
    ),
    "fractional_count": TableRule(
        "bag", "A count without noise must be a whole number",
        "If noise was added, say so with {epsilon} or {noise}; name proportions with {proportion}, "
        "and say {kind:total} where events are not counted but measured.",
    ),
    "negative_report": TableRule(
        "bag", "A report without noise must not be negative",
        "If noise was added, say so with {epsilon}, or give its variance with {noise}.",
    ),
    "impossible_total": TableRule(
        "bag", "A total must lie between 0 and the number of events", NO_LABELS
    ),
    "impossible_counts": TableRule(
        "bag", "Class counts must add up to the number of events",
        "Name all classes, also the one of events without a label, or give the variance of the "
        "noise with {noise}.",
    ),
    "total_as_proportion": TableRule(
        "bag",
        "A proportion must lie between 0 and 1, and all of these are whole numbers, as totals are",
        "Name the column with {total} in place of {proportion}.",
    ),
    "impossible_proportion": TableRule(
        "bag", "A proportion must lie between 0 and 1",
        # without options, which a hint would take up: percentages are no mean counts
        "Divide percentages by 100. Mean counts are of the kind total, and noise that was added "
        "must be declared.",
    ),
    "impossible_report": TableRule(
        "bag", "A report without noise must be one that labels could give", NO_LABELS
    ),
    "reports_too_even": TableRule(
        "table", "Reports of bags must vary at least as much as chance makes them",
        "Look whether {total} names proportions, whether {noise} is too large, or whether the "
        "reports are rounded, smoothed or filled in; where bags were balanced on purpose, say so "
        "with {accept_bias:True}.",
    ),
    "nothing_observed": TableRule(
        "table", "At least one bag must have events and a report",
        "Write the ids in the same way in both tables, or wait for reports; a {cut} must come "
        "after some of them.",
    ),
    # what weights need beside
    "stratum_without_report": TableRule(
        "stratum", "A stratum must have at least one observed report",
        "Leave its bags out, or merge it with another.",
    ),
    "lone_bag": TableRule(
        "stratum",
        "A stratum must hold at least two bags with a report, because each bag is centred by the "
        "mean of the others",
        "Merge small strata, or cut them into random sub-bags; where a stratum has one report "
        "only, leave the strata out and train by matching or likelihood.",
    ),
    "negative_weight": TableRule(
        "bag", "A sample weight must be positive",
        "The noise on the class counts is too large for such bags: make them larger, or take one "
        "class at a time with {total}.",
    ),
    # what a design of bags needs
    "small_stratum": TableRule(
        "stratum",
        "A stratum must have instances for two bags, because each bag is centred by the mean of "
        "the others",
        "Make the bags smaller, or merge small strata.",
    ),
    "stratum_not_expected": TableRule(
        "event", "Every stratum must have an expected count",
        "Add it, so that its number of bags is fixed before the first id comes.",
    ),
}  # fmt: skip

LEFT_OUT: dict[str, LeftOut] = {
    "bag_without_events": LeftOut(
        "report", "of bags without events was left out", "of bags without events were left out"
    ),
    "late_report": LeftOut(
        "report", "was made after the cut and is left out",
        "were made after the cut and are left out",
    ),
    "older_report": LeftOut(
        "report", "was restated later, and the latest is used",
        "were restated later, and the latest of each bag is used",
    ),
    "late_bag": LeftOut(
        "bag", "has events after the cut and was left out",
        "have events after the cut and were left out",
    ),
    "other_size": LeftOut(
        "bag", "has another size than was reported and was left out",
        "have other sizes than were reported and were left out",
    ),
    "bag_without_report": LeftOut(
        "bag", "has no report and waits for it (pending)",
        "have no report and wait for it (pending)",
    ),
    "not_observed": LeftOut(
        "report", "is suppressed or pending and not used",
        "are suppressed or pending and not used",
    ),
}  # fmt: skip

TOTALS = ("events", "reports", "bags", "observed", "instances")


class TablesReport(NamedTuple):
    """What the tables hold, what is left out and why, and what is refused; `print` shows it.

    Parameters
    ----------
    events, reports : int
        How many were given.
    bags, observed, instances : int
        Bags that are used, how many of them have a report, and their events.
    left_out : tuple of str
        What was left out and why.
    refused : tuple of Refusal
        Broken rules; `str` of each is a sentence.
    """

    events: int
    reports: int
    bags: int
    observed: int
    instances: int
    left_out: tuple[str, ...]
    refused: tuple[Refusal, ...]

    @property
    def usable(self) -> bool:
        """Whether nothing is refused."""
        return not self.refused

    def __str__(self) -> str:
        verb = {1: "is"}.get(self.bags, "are")
        lines = [
            f"{count(self.events, 'event')} and {count(self.reports, 'report')} were read.",
            f"{count(self.bags, 'bag')} with {count(self.instances, 'event')} {verb} used, "
            f"{self.observed:,} with a report.",
            *(f"- {line}" for line in self.left_out),
        ]
        if self.refused:  # nothing is used then
            lines[1:] = [f"refused: {refusal}" for refusal in self.refused]
        return "\n".join(lines)


def tables_report(lines: Iterable[Mapping[str, Any]]) -> TablesReport:
    """The report on two tables from a count of each check.

    Parameters
    ----------
    lines : iterable of mappings
        Each with `check` (a key of RULES, LEFT_OUT or TOTALS), `rows` (how many) and `first` (words
        on the first, or None). The order does not matter.

    >>> late = {"check": "late_bag", "rows": 2, "first": "mon"}
    >>> print(tables_report([late, {"check": "events", "rows": 9, "first": None}]))
    9 events and 0 reports were read.
    0 bags with 0 events are used, 0 with a report.
    - 2 bags have events after the cut and were left out: mon and 1 more.
    """
    broken = {line["check"]: line for line in lines if line["rows"]}
    totals = [int(broken.get(name, {"rows": 0})["rows"]) for name in TOTALS]
    left_out = [_sentence(what, broken[name]) for name, what in LEFT_OUT.items() if name in broken]
    refused = [_refusal(rule, broken[name]) for name, rule in RULES.items() if name in broken]
    counts = dict(zip(TOTALS, totals, strict=True))
    return TablesReport(**counts, left_out=tuple(left_out), refused=tuple(refused))


def _refusal(rule: TableRule, line: Mapping[str, Any]) -> Refusal:
    n = int(line["rows"])
    if rule.thing == "table":
        return Refusal(rule.rule, line["first"] or "none given", rule.remedy)
    offender = line["first"] or f"one {rule.thing} has none"
    return Refusal(rule.rule, offender, rule.remedy, n, rule.thing)


def _sentence(what: LeftOut, line: Mapping[str, Any]) -> str:
    n, first = int(line["rows"]), visible(str(line["first"]))
    if n == 1:
        return f"1 {what.thing} {what.one}: {first}."
    return f"{count(n, what.thing)} {what.many}: {first} and {n - 1:,} more."


def count(n: int, thing: str) -> str:
    """A number with its noun.

    Parameters
    ----------
    n : int
        How many.
    thing : str
        What is counted, in the singular.

    >>> count(1, "bag"), count(12000, "event")
    ('1 bag', '12,000 events')
    """
    if n == 1:
        return f"1 {thing}"
    return f"{n:,} {PLURALS.get(thing, thing + 's')}"


def number_text(value: float) -> str:
    """A number as messages show it, and as databases write it.

    >>> number_text(3.0), number_text(2.5), number_text(float("nan"))
    ('3', '2.5', 'nan')
    """
    if value == np.round(value) and abs(value) < 2**63:
        return str(int(value))
    return str(float(value))


Finds = dict[str, tuple[Any, tuple[Any, ...]]]
WHOLE = 1e-9  # how close a count is to a whole number
LARGEST = 2.0**53  # of a number with a fraction in double precision


class Engine(NamedTuple):
    """What arrays and columns of a database do in different ways.

    Parameters
    ----------
    isin, finite, where : callable
        As those of NumPy.
    sure : callable
        A comparison, false where a number is missing: so that its opposite is true there.
    none : callable
        Whether something is true of no bag at all.
    """

    isin: Callable[[Any, Sequence[str]], Any]
    finite: Callable[[Any], Any]
    where: Callable[[Any, Any, Any], Any]
    sure: Callable[[Any], Any]
    none: Callable[[Any], Any]


def bag_checks(
    bags: Any, values: Sequence[Any], shares: Sequence[Any], columns: Columns, engine: Engine
) -> Finds:
    """Of each rule which bags break it (or what is added up), and words on a bag, part by part.

    Parameters
    ----------
    bags : BagTable or ibis.Table
        Of each bag with events `name`, `size`, `reported_size`, `noise`, `status`, and whether it
        `has_report`, is `late`, `wrong` in its size, `used`, `usable` and `exact`.
    values, shares : sequence of arrays or columns
        What the bags reported, and the same for each event.
    columns : Columns
        What the user says of the columns.
    engine : Engine
        How such columns are worked on.
    """
    has, whole = ("bag ", bags.name, " has "), reduce(add, values)
    known = engine.isin(bags.status, get_args(Status))
    hidden = engine.isin(bags.status, HIDDEN_BY_VALUE) & (not columns.accept_bias)
    variance = engine.finite(bags.noise) & (bags.noise >= 0)
    reported, leave_out = bags.has_report & bags.used, columns.wrong_sizes == "leave_out"
    sizes = (*has, bags.reported_size, " reported and ", bags.size, " in the table")
    return {
        "bags": (bags.used, ()),
        "observed": (bags.usable, ()),
        "instances": (engine.where(bags.used, bags.size, 0), ()),
        "wrong_size": (bags.wrong & (not leave_out), sizes),
        "unknown_status": (reported & ~known, (*has, bags.status)),
        "hidden_by_value": (reported & hidden, (*has, bags.status)),
        "report_not_finite": (bags.usable & ~engine.finite(whole), (*has, whole)),
        "wrong_noise": (bags.usable & ~variance, (*has, bags.noise)),
        "late_bag": (bags.late, (bags.name,)),
        "other_size": (bags.wrong & ~bags.late & leave_out, (bags.name,)),
        "bag_without_report": (bags.used & ~bags.has_report, (bags.name,)),
        "not_observed": (reported & ~bags.usable & known, (bags.name, " is ", bags.status)),
        **_fractions(bags, values, columns, engine),
        **_impossible(bags, whole, shares, columns, engine),
    }


def _fractions(bags: Any, values: Sequence[Any], columns: Columns, engine: Engine) -> Finds:
    """Counts that are none: proportions, or sums to which noise was added."""
    if columns.proportion is not None or columns.reports_are == "total":
        return {}
    # larger numbers are whole, and databases round to whole numbers, which cannot hold all of them
    small = [engine.where((v > -LARGEST) & (v < LARGEST), v, 0) for v in values]
    broken = [_outside(value - value.round(), 0, 0, WHOLE) for value in small]
    first = values[-1]
    for value, bad in zip(values[-2::-1], broken[-2::-1], strict=True):
        first = engine.where(bad, value, first)
    fraction, has = bags.usable & reduce(or_, broken), ("bag ", bags.name, " has ", first)
    if columns.total is None:
        return {"fractional_count": (fraction & bags.exact, has)}
    between = engine.sure((values[0] >= 0) & (values[0] <= 1))
    inside = engine.none(bags.usable & ~between)
    return {
        "proportion_as_total": (fraction & inside, (*has, " of ", bags.size)),
        "fractional_count": (fraction & bags.exact & ~inside, has),
    }


def _impossible(
    bags: Any, whole: Any, shares: Sequence[Any], columns: Columns, engine: Engine
) -> Finds:
    """Reports without noise that no labels could give."""
    high = largest_report(columns.reports_are, columns.cap)
    outside = reduce(or_, [_outside(share, 0, high, 1e-9) for share in shares])
    exact, has = bags.usable & bags.exact, ("bag ", bags.name, " has ")
    if columns.counts is not None:
        apart = _outside(whole - bags.size, 0, 0, 1e-6 * bags.size)
        return {"impossible_counts": (exact & (outside | apart), (*has, whole, " of ", bags.size))}
    low = shares[0] < -1e-9
    negative = {"negative_report": (exact & low, (*has, whole if columns.total else shares[0]))}
    beyond = exact & outside & ~low
    if columns.total is not None and columns.reports_are == "binary":
        return {**negative, "impossible_total": (beyond, (*has, whole, " of ", bags.size))}
    if columns.proportion is None or columns.reports_are != "binary":
        return {**negative, "impossible_report": (beyond, (*has, shares[0]))}
    fraction = _outside(shares[0] - shares[0].round(), 0, 0, WHOLE)
    # whole numbers above the size of a bag are percentages
    totals = engine.none(bags.usable & (fraction | (shares[0] > bags.size)))
    return {
        **negative,
        "total_as_proportion": (beyond & totals, (*has, shares[0])),
        "impossible_proportion": (beyond & ~totals, (*has, shares[0])),
    }


def _outside(value: Any, low: float, high: float, tolerance: Any) -> Any:
    return (value < low - tolerance) | (value > high + tolerance)
