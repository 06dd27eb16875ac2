"""Two tables in, what each bag has and what it reported out, and all that was left out or is
refused."""

# pyright: reportAttributeAccessIssue=false
# (the functions of pyarrow.compute are made when it is imported)

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unbag.bags import Bags
from unbag.tables._columns import Asked, ids_are_text
from unbag.tables._counts import Counted, count_events
from unbag.tables._reports import Reports, check_cut, keep_one_each, read_reports, unknown_bags
from unbag.tables._sources import Table
from unbag.tables._summary import TablesReport, count, some


class Matched(NamedTuple):
    """The bags that are kept: name, size, report, noise, status and stratum with its names; and
    what is told of others.

    A bag without a report before the cut is pending.
    """

    name: pa.Array
    size: np.ndarray
    report: np.ndarray
    noise: np.ndarray
    status: np.ndarray
    stratum: np.ndarray
    strata: np.ndarray
    told: TablesReport
    text: bool


def match_tables(events: Table, reports: Table, asked: Asked) -> Matched:
    """Count the events, choose the reports, and bring them together by bag."""
    events.need([asked.on, asked.stratum, asked.time, asked.id])
    reports.need([asked.on])
    text, cut = ids_are_text(events, reports, asked.on), check_cut(events, reports, asked)
    found = read_reports(reports, asked, text=text)
    counted = count_events(events, asked, text=text)
    kept = keep_one_each(found, cut=cut, dated=asked.as_of is not None)
    matched = by_bag(kept.reports, counted.name)
    wrong, refused = _sizes(matched, counted, asked)
    late = counted.last >= cut
    use = ~late & ~wrong
    refused += (
        *_impossible(matched, counted, asked, use),
        *_nothing(matched.status[use], counted, kept.reports),
    )
    told = TablesReport(
        events=int(counted.size.sum()) + counted.lost,
        reports=len(found.bag),
        bags=int(use.sum()),
        observed=int((matched.status[use] == "observed").sum()),
        instances=int(counted.size[use].sum()),
        left_out=(
            *unknown_bags(kept.reports, counted.name),
            *kept.left_out,
            *_gone(late, counted, "has events after the cut", "have events after the cut"),
            *_gone(
                wrong & ~late,
                counted,
                "has another size than was reported",
                "have other sizes than were reported",
            ),
            *_waiting(
                counted.name,
                use & pc.invert(pc.is_in(counted.name, value_set=kept.reports.bag)).to_numpy(False),
            ),
            *_statuses(
                matched.status,
                use & pc.is_in(counted.name, value_set=kept.reports.bag).to_numpy(False),
            ),
        ),
        refused=(*counted.refused, *kept.refused, *refused),
    )
    strata, stratum = np.unique(
        np.array(counted.stratum.fill_null("").to_pylist(), str)[use], return_inverse=True
    )
    report = _report(matched.value, counted.size, asked)[use]
    name, size = counted.name.filter(pa.array(use)), counted.size[use]
    return Matched(
        name, size, report, matched.noise[use], matched.status[use], stratum, strata, told, text
    )


def by_bag(reports: Reports, names: pa.Array) -> Reports:
    """The report of each bag; where there is none, missing numbers and the status pending."""
    index = pc.index_in(names, value_set=reports.bag)
    has = index.is_valid().to_numpy(zero_copy_only=False)
    where = index.fill_null(0).to_numpy(zero_copy_only=False)
    gap = lambda column: np.where(
        has.reshape((-1,) + (1,) * (column.ndim - 1)), column[where], np.nan
    )
    if len(reports.bag) == 0:
        empty = np.full(len(names), np.nan)
        return Reports(
            names,
            np.full((len(names), reports.value.shape[1]), np.nan),
            empty,
            empty,
            empty.astype(str),
            empty,
        )
    status = np.where(has, reports.status[where], "pending")
    return Reports(
        names, gap(reports.value), gap(reports.size), gap(reports.noise), status, gap(reports.as_of)
    )


def _report(value: np.ndarray, size: np.ndarray, asked: Asked) -> np.ndarray:
    """What `Bags` takes: the share of each total or class count, or the proportion as it came."""
    if asked.counts is not None:
        return value / size[:, None]
    return value[:, 0] if asked.proportion is not None else value[:, 0] / size


def _sizes(matched: Reports, counted: Counted, asked: Asked) -> tuple[np.ndarray, tuple[str, ...]]:
    """Which bags have another size than was reported, and the refusal."""
    wrong = (
        (matched.status == "observed") & ~np.isnan(matched.size) & (matched.size != counted.size)
    )
    if asked.wrong_sizes == "leave_out" or not wrong.any():
        return wrong & (asked.wrong_sizes == "leave_out"), ()
    first = int(np.argmax(wrong))
    return np.zeros_like(wrong), (
        f"A reported size must be the number of events of the bag: bag {counted.name[first]} has "
        f"{matched.size[first]:g} reported and {counted.size[first]} in the table "
        f"({count(int(wrong.sum()), 'bag')}). Find the missing or doubled events, or leave such "
        "bags out with wrong_sizes='leave_out'.",
    )


def _impossible(
    matched: Reports, counted: Counted, asked: Asked, use: np.ndarray
) -> tuple[str, ...]:
    """Totals and class counts without noise that no labels could give."""
    exact = use & (matched.status == "observed") & (matched.noise == 0)
    if asked.counts is not None:
        value = matched.value.sum(axis=1)
        bad = exact & (np.abs(value - counted.size) > 1e-6 * counted.size)
        rule = "Class counts must add up to the number of events"
        remedy = "Name all classes, also the one of events without a label, or give the variance of the noise with noise=."
    elif asked.total is not None and asked.reports_are == "binary":
        value = matched.value[:, 0]
        bad = exact & ((value < 0) | (value > counted.size))
        rule = "A total must lie between 0 and the number of events"
        remedy = "Say kind='total' where an event may count more than once, or give the variance of the noise with noise=."
    else:
        return ()
    if not bad.any():
        return ()
    first = int(np.argmax(bad))
    came = f"bag {counted.name[first]} has {value[first]:g} of {counted.size[first]}"
    return (f"{rule}: {came} ({count(int(bad.sum()), 'bag')}). {remedy}",)


def _nothing(status: np.ndarray, counted: Counted, reports: Reports) -> tuple[str, ...]:
    if (status == "observed").any():
        return ()
    ours, theirs = some(counted.name.to_pylist()), some(reports.bag.to_pylist()) or "none"
    return (
        "At least one bag must have events and a report: none of "
        f"{count(len(counted.name), 'bag')} has. The events are of {ours}, the reports of "
        f"{theirs}. Write the ids in the same way, or wait for reports.",
    )


def _gone(where: np.ndarray, counted: Counted, one: str, many: str) -> tuple[str, ...]:
    n = int(where.sum())
    if n == 0:
        return ()
    names, events = counted.name.filter(pa.array(where)).to_pylist(), int(counted.size[where].sum())
    verbs = (one, "was") if n == 1 else (many, "were")
    return (
        (
            f"{count(n, 'bag')} {verbs[0]} and {verbs[1]} left out, {count(events, 'event')}: "
            f"{some(names)}."
        ),
    )


def _waiting(name: pa.Array, where: Any) -> tuple[str, ...]:
    names = name.filter(pa.array(where)).to_pylist()
    if not names:
        return ()
    verbs = (
        "has no report and waits for it" if len(names) == 1 else "have no report and wait for it"
    )
    return (f"{count(len(names), 'bag')} {verbs} (pending): {some(names)}.",)


def _statuses(status: np.ndarray, where: Any) -> tuple[str, ...]:
    kinds, counts = np.unique(status[where], return_counts=True)
    told = [(kind, int(n)) for kind, n in zip(kinds, counts, strict=True) if kind != "observed"]
    return tuple(
        f"{count(n, 'report')} {'is' if n == 1 else 'are'} {kind} and not used." for kind, n in told
    )


def bag_arguments(matched: Matched, asked: Asked, **further: Any) -> dict[str, Any]:
    """What `Bags` takes beside instances."""
    return {
        "report": matched.report,
        "kind": asked.reports_are,
        "noise": None if asked.noise is None else matched.noise,
        "stratum": None if asked.stratum is None else matched.stratum,
        "stratum_names": None if asked.stratum is None else matched.strata,
        "names": np.array(matched.name.to_pylist()),
        "status": None if (matched.status == "observed").all() else matched.status,
        **further,
    }


def broken_rule(arguments: dict[str, Any]) -> tuple[str, ...]:
    """What `Bags` would refuse, with the bag's name instead of its number: tried with one instance
    in each bag."""
    names = arguments["names"]
    if len(names) == 0:
        return ()
    try:
        Bags(bag=np.arange(len(names)), **arguments)
    except ValueError as error:
        return (
            re.sub(
                r": bag (\d+) has", lambda found: f": bag {names[int(found[1])]} has", str(error)
            ),
        )
    return ()
