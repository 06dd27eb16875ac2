"""The rules that events and reports must keep, in the order in which they are checked.

`join` checks them in memory, `unbag.sql` in a database. Both count who breaks each rule and name
the first; the words, the order and the report on the tables are made here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from unbag._rules import PLURALS, Refusal, visible
from unbag.bags import REPORT_RULES

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
        "Divide percentages by 100, say {kind:total} where these are mean counts, or give the "
        "variance of the noise with {noise}.",
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
