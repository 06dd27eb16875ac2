"""Events and reports brought together by bag, and every rule of `_rules` checked."""

# pyright: reportAttributeAccessIssue=false
# (the functions of pyarrow.compute are made when it is imported)

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NamedTuple, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unbag.bags import HIDDEN_BY_VALUE, Status, largest_report, reports_too_even
from unbag.tables._columns import Columns
from unbag.tables._events import EventCounts, Line, line
from unbag.tables._reports import ReportTable, choose_reports, first_of
from unbag.tables._rules import EVEN, TablesReport, number_text, tables_report


class Matched(NamedTuple):
    """The bags that are kept: their names, what `Bags` takes of them, and what the tables held.

    A bag without a report before the cut is pending.
    """

    name: pa.Array
    known: dict[str, Any]
    summary: TablesReport


class BagTable(NamedTuple):
    """All bags with events, each with its report, if it has one, and what follows from both."""

    name: pa.Array
    size: np.ndarray
    value: np.ndarray
    reported_size: np.ndarray
    noise: np.ndarray
    status: np.ndarray
    has_report: np.ndarray
    late: np.ndarray
    wrong: np.ndarray
    used: np.ndarray

    @property
    def usable(self) -> np.ndarray:
        """Whether a bag is used and has a report to learn from."""
        return self.used & (self.status == "observed")

    @property
    def known_status(self) -> np.ndarray:
        """Whether the status is a word that we know."""
        return np.isin(self.status, get_args(Status))

    def share(self, columns: Columns) -> np.ndarray:
        """The report as `Bags` takes it, one column for each value."""
        if columns.proportion is not None:
            return self.value
        return self.value / self.size[:, None]


def match_tables(
    events: EventCounts, reports: ReportTable, columns: Columns, *, cut: float
) -> Matched:
    """Bring the counted events and the reports together by bag.

    Parameters
    ----------
    events : EventCounts
        The events, counted by bag.
    reports : ReportTable
        All reports.
    columns : Columns
        What the user says of the columns.
    cut : float
        Nothing of this moment or later is used; NaN for none.
    """
    dated, sized = columns.as_of is not None, columns.size is not None
    kept, lines = choose_reports(reports, cut=cut, dated=dated, sized=sized)
    bags = _by_bag(events, kept, columns, cut)
    lines = [*events.lines, *lines, *_sums(bags), *_left_out(bags, kept, columns)]
    lines += [*_refused(bags, columns), *_fractions(bags, columns), *_impossible(bags, columns)]
    known = _known(bags, events, columns)
    lines += [_even(bags, known), _nothing(bags, kept)]
    return Matched(events.name.filter(pa.array(bags.used)), known, tables_report(lines))


def _by_bag(events: EventCounts, reports: ReportTable, columns: Columns, cut: float) -> BagTable:
    """Each bag with its report; where there is none, missing numbers and the status pending."""
    index = pc.index_in(events.name, value_set=reports.bag)
    has = index.is_valid().to_numpy(zero_copy_only=False)
    # a last line, of a report that is not there, is what bags without one get
    nothing = (np.full((1, reports.value.shape[1]), np.nan), [np.nan], [np.nan], ["pending"])
    where = index.fill_null(len(reports.bag)).to_numpy(zero_copy_only=False)
    value, size, noise, status = (
        np.concatenate([column, none])[where]
        for column, none in zip(reports[1:5], nothing, strict=True)
    )
    late = events.last >= cut
    wrong = (status == "observed") & ~np.isnan(size) & (size != events.size)
    used = ~late & ~(wrong & (columns.wrong_sizes == "leave_out"))
    return BagTable(events.name, events.size, value, size, noise, status, has, late, wrong, used)


def _known(bags: BagTable, events: EventCounts, columns: Columns) -> dict[str, Any]:
    """What `Bags` takes beside instances."""
    used = bags.used
    report, status = bags.share(columns)[used], bags.status[used]
    known: dict[str, Any] = {"kind": columns.reports_are, "report": report}
    if columns.counts is None:
        known["report"] = report[:, 0]
    if columns.noise is not None:
        known["noise"] = bags.noise[used]
    if columns.stratum is not None:
        stratum = np.array(events.stratum.fill_null("").to_pylist(), str)[used]
        known["stratum_names"], known["stratum"] = np.unique(stratum, return_inverse=True)
    if (status != "observed").any():
        known["status"] = status
    names = np.array(bags.name.filter(pa.array(used)).to_pylist())
    return known | {"names": names, "cap": columns.cap, "accept_bias": columns.accept_bias}


def _sums(bags: BagTable) -> list[Line]:
    return [
        line("bags", bags.used.sum()),
        line("observed", bags.usable.sum()),
        line("instances", bags.size[bags.used].sum()),
    ]


def _left_out(bags: BagTable, reports: ReportTable, columns: Columns) -> list[Line]:
    lone = pc.invert(pc.is_in(reports.bag, value_set=bags.name)).to_numpy(zero_copy_only=False)
    other = bags.wrong & ~bags.late & (columns.wrong_sizes == "leave_out")
    hidden = bags.has_report & bags.used & ~bags.usable & bags.known_status
    return [
        line("bag_without_events", lone.sum(), first_of(reports.bag, lone)),
        _line("late_bag", bags, bags.late, "{name}"),
        _line("other_size", bags, other, "{name}"),
        _line("bag_without_report", bags, bags.used & ~bags.has_report, "{name}"),
        _line("not_observed", bags, hidden, "{name} is {given}", bags.status),
    ]


def _refused(bags: BagTable, columns: Columns) -> list[Line]:
    reported, status = bags.has_report & bags.used, bags.status
    hidden = np.isin(status, HIDDEN_BY_VALUE) & (not columns.accept_bias)
    wrong = bags.wrong & (columns.wrong_sizes == "refuse")
    total, noise = bags.value.sum(axis=1), bags.noise
    sizes = "bag {name} has {given} reported and {size} in the table"
    return [
        _line("wrong_size", bags, wrong, sizes, bags.reported_size),
        _line("unknown_status", bags, reported & ~bags.known_status, HAS, status),
        _line("hidden_by_value", bags, reported & hidden, HAS, status),
        _line("report_not_finite", bags, bags.usable & ~np.isfinite(total), HAS, total),
        _line("wrong_noise", bags, bags.usable & ~(np.isfinite(noise) & (noise >= 0)), HAS, noise),
    ]


def _fractions(bags: BagTable, columns: Columns) -> list[Line]:
    """Counts that are none: proportions, or sums to which noise was added."""
    if columns.proportion is not None or columns.reports_are == "total":
        return []
    value = bags.value[bags.usable]
    inside = columns.total is not None and bool(((value >= 0) & (value <= 1)).all())
    broken = np.abs(bags.value - np.round(bags.value)) > 1e-9
    first = bags.value[np.arange(len(broken)), broken.argmax(axis=1)]
    fraction = broken.any(axis=1) & bags.usable
    noisy = fraction & (bags.noise == 0) & (not inside)
    return [
        _line("proportion_as_total", bags, fraction & inside, f"{HAS} of {{size}}", first),
        _line("fractional_count", bags, noisy, HAS, first),
    ]


def _impossible(bags: BagTable, columns: Columns) -> list[Line]:
    """Reports without noise that no labels could give."""
    exact, share = bags.usable & (bags.noise == 0), bags.share(columns)
    total = bags.value.sum(axis=1)
    high = largest_report(columns.reports_are, columns.cap)
    outside = ((share < -1e-9) | (share > high + 1e-9)).any(axis=1) & exact
    if columns.counts is not None:
        outside |= exact & (np.abs(total - bags.size) > 1e-6 * bags.size)
        return [_line("impossible_counts", bags, outside, f"{HAS} of {{size}}", total)]
    if columns.total is not None and columns.reports_are == "binary":
        return [_line("impossible_total", bags, outside, f"{HAS} of {{size}}", total)]
    return [_line("impossible_report", bags, outside, HAS, share[:, 0])]


def _even(bags: BagTable, known: dict[str, Any]) -> Line:
    """Reports that vary less than chance allows are mostly something else than was said."""
    usable = bags.usable[bags.used]
    parts = {name: known.get(name) for name in ("report", "noise", "stratum")}
    parts = {name: None if value is None else value[usable] for name, value in parts.items()}
    shown = SimpleNamespace(
        kind=known["kind"],
        size=bags.size[bags.usable],
        observed=np.ones(usable.sum(), bool),
        **parts,
    )
    sound = np.isfinite(np.asarray(parts["report"], float)).all()
    even = sound and not known["accept_bias"] and reports_too_even(shown)
    return line("reports_too_even", int(even), EVEN)


HAS = "bag {name} has {given}"


def _line(check: str, bags: BagTable, bad: Any, words: str, given: Any = None) -> Line:
    """How many bags break a rule, and words on the first: bags are sorted by their name."""
    if not bad.any():
        return line(check, 0)
    first = int(np.argmax(bad))
    shown = ""
    if given is not None:
        shown = given[first]
    if isinstance(shown, float):
        shown = number_text(shown)
    return line(
        check, bad.sum(), words.format(name=bags.name[first], given=shown, size=bags.size[first])
    )


def _nothing(bags: BagTable, reports: ReportTable) -> Line:
    ours, theirs = (first_of(each, np.ones(len(each), bool)) for each in (bags.name, reports.bag))
    ours, theirs = ours or "none", theirs or "none"
    words = f"none has; the first of the events is {ours}, of the reports {theirs}"
    some = bags.usable.any() or not bags.known_status.all()  # a word that nobody knows says why
    return line("nothing_observed", int(not some), words)
