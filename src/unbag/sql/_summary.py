"""The lines of the checks in, sentences on what is left out, or an error, out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from unbag.bags import REPORT_RULES
from unbag.tables._summary import count

LONE = (
    "Merge small strata, or cut them into random sub-bags; where a stratum has one report only, "
    "leave the strata out and train by matching or likelihood."
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
    "event_with_unclear_time": Check(
        "event", True, "A time must be written like 2026-11-16 or 2026-11-16 05:30", "Write it so."
    ),
    "bag_in_two_strata": Check(
        "bag", True, "A bag must lie within one stratum", "Cut it into one bag for each, or leave the stratum out."
    ),
    "small_stratum": Check(
        "stratum", True,
        (
            "A stratum must have instances for two bags, because each bag is centred by the mean "
            "of the others"
        ),
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
    "report_without_time": Check(
        "report", True, "An as-of time must not be missing, and text must look like 2026-11-16 or 2026-11-16 05:30",
        "Fill it in, or write it so."
    ),
    "bag_with_two_reports": Check(
        "bag", True, "A bag must have one report",
        (
            "Name with as_of= the column that tells which is latest; of two as of the same time "
            "drop one."
        ),
    ),
    "wrong_size": Check(
        "bag", True, "A reported size must be the number of events of the bag",
        "Find the missing or doubled events, or leave such bags out with wrong_sizes='leave_out'.",
    ),
    "impossible_total": Check(
        "bag", True, "A report without noise must be one that labels could give",
        "Say kind='total' where an event may count more than once, name all classes of a "
        "histogram, or give the variance of the noise with noise=.",
    ),
    "unknown_status": Check("bag", True, *REPORT_RULES["status"]),
    "hidden_by_value": Check(
        "bag", True, "A report must not be hidden for its value, because leaving it out biases the result",
        (
            "Ask for noisy counts or larger bags, so that none is hidden, or accept the bias with "
            "accept_bias=True."
        ),
    ),
    "report_not_finite": Check(
        "bag", True, "A report must be finite",
        (
            "Say with status= which bags are suppressed or pending, or fix the export; never write "
            "0 for them."
        ),
    ),
    "wrong_noise": Check("bag", True, *REPORT_RULES["noise"]),
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
        (
            "A stratum must hold at least two bags with a report, because each bag is centred by "
            "the mean of the others"
        ),
        LONE,
    ),
    "negative_weight": Check(
        "bag", True, "A sample weight must be positive",
        "The noise on the class counts is too large for such bags: make them larger, or take "
        "one class at a time with total=.",
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
    """Read the lines of `Related.checks`: raise when anything is refused, else tell what is left
    out.

    Parameters
    ----------
    checks : lines with check, rows and first, e.g. `related.checks.to_pyarrow().to_pylist()`.
    refuse : whether to raise; False puts the sentences into `refused`.

    >>> confirm([{"check": "wrong_size", "rows": 2, "first": "mon: 3.0 reported, 2 events"}])
    Traceback (most recent call last):
    ValueError: A reported size must be the number of events of the bag: mon: 3.0 reported, 2 events
    (2 bags). Find \
the missing or doubled events, or leave such bags out with wrong_sizes='leave_out'.
    """
    found = {line["check"]: line for line in checks if line["rows"]}
    said: dict[str, str] = {
        name: _sentence(CHECKS[name], found[name]) for name in CHECKS if name in found
    }
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
