"""The table of reports: read as numbers, and at most one report chosen for each bag."""

# pyright: reportAttributeAccessIssue=false
# (the functions of pyarrow.compute are made when it is imported)

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unbag._rules import Refused, refuse
from unbag.bags import HIDDEN_BY_VALUE
from unbag.tables._columns import Columns
from unbag.tables._events import Line, line
from unbag.tables._rules import RULES, tables_report
from unbag.tables._sources import Table, no_rows, open_table
from unbag.tables._values import as_ids, as_moments, as_numbers, as_text


class ReportTable(NamedTuple):
    """One line for each report, in the order of the table: NaN where a number is missing."""

    bag: pa.Array
    value: np.ndarray
    size: np.ndarray
    noise: np.ndarray
    status: np.ndarray
    as_of: np.ndarray

    def take(self, where: np.ndarray) -> ReportTable:
        """These reports."""
        return ReportTable(self.bag.take(pa.array(where)), *(column[where] for column in self[1:]))


def read_reports(table: Table, columns: Columns, *, text: bool) -> ReportTable:
    """The reports as numbers; the status is observed where none is said."""
    rows = table.read(table.need(columns.of_reports))
    n = rows.num_rows
    if n == 0:
        raise no_rows(table.thing)

    def numbers(name: str | None) -> np.ndarray:
        if name is None:
            return np.full(n, np.nan)
        return as_numbers(rows[name], name=name, thing="reports")

    noise, as_of, status = numbers(columns.variance), np.full(n, np.nan), pa.nulls(n, pa.string())
    if columns.variance is None:
        noise = np.full(n, float(columns.noise or 0))
    if columns.as_of is not None:
        as_of = as_moments(rows[columns.as_of], name=columns.as_of, thing="reports")
    if columns.status is not None:
        status = as_text(rows[columns.status])
    meaning = columns.status_map or {}
    return ReportTable(
        bag=as_ids(rows, columns.keys, text=text),
        value=np.column_stack([numbers(name) for name in columns.values]),
        size=numbers(columns.size),
        noise=noise,
        status=np.array([meaning.get(s, s) for s in status.fill_null("observed").to_pylist()], str),
        as_of=as_of,
    )


class ObservedReports(NamedTuple):
    """Reports that are there, one for each bag.

    Parameters
    ----------
    bag : list of str
        The bags.
    share : numpy.ndarray
        Of each its proportion.
    size : numpy.ndarray
        Of each its number of events, NaN where none is reported.
    noise : numpy.ndarray
        Of each the variance of the noise on its count.
    """

    bag: list[str]
    share: np.ndarray
    size: np.ndarray
    noise: np.ndarray


def report_rows(source: Any, columns: Columns) -> ObservedReports:
    """The observed reports of a table on a binary label, as they are, without their events.

    Parameters
    ----------
    source : frame, pyarrow.Table, DuckDB relation, str or Path
        One row for each report.
    columns : Columns
        What is said of its columns.
    """
    ids = dict.fromkeys(columns.as_text, pa.string())
    table = open_table(source, thing="reports", types=ids)
    reports, lines = choose_reports(
        read_reports(table, columns, text=True),
        cut=np.nan,
        dated=columns.as_of is not None,
        sized=columns.size is not None,
    )
    report = tables_report(lines)
    if report.refused:
        raise Refused(*report.refused)
    hidden = np.isin(reports.status, HIDDEN_BY_VALUE) & (not columns.accept_bias)
    rule = RULES["hidden_by_value"]
    refuse(rule.rule, hidden, thing="bag", given=reports.status, remedy=rule.remedy,
           names=reports.bag.to_pylist())  # fmt: skip
    known = reports.take(np.flatnonzero(reports.status == "observed"))
    share = known.value[:, 0]
    if columns.total is not None:
        share = share / known.size
    return ObservedReports(known.bag.to_pylist(), share, known.size, known.noise)


def choose_reports(
    reports: ReportTable, *, cut: float, dated: bool, sized: bool
) -> tuple[ReportTable, list[Line]]:
    """For each bag the report that was the latest before the cut, and a line for each check.

    Parameters
    ----------
    reports : ReportTable
        All of them.
    cut : float
        Reports of this moment or later are left out; NaN for none.
    dated : bool
        Whether there are times of reports, so that the latest of a bag counts.
    sized : bool
        Whether a column of sizes was named.
    """
    named = ~reports.bag.is_null().to_numpy(zero_copy_only=False)
    late = named & (reports.as_of >= cut)
    known = reports.take(np.flatnonzero(named & ~late))
    number = known.bag.dictionary_encode().indices.to_numpy(zero_copy_only=False)
    when = np.nan_to_num(known.as_of, nan=-np.inf)
    last = np.full(number.max(initial=-1) + 1, -np.inf)
    np.maximum.at(last, number, when)
    latest = when == last[number]
    versions = np.bincount(number[latest], minlength=len(last))
    again = latest & (versions[number] > 1)
    kept = np.flatnonzero(latest)[np.unique(number[latest], return_index=True)[1]]
    undated = named & np.isnan(reports.as_of) & dated
    unsized = sized and bool(np.isnan(reports.size).all())
    lines = [
        line("reports", len(named)),
        line(
            "report_without_bag", (~named).sum(), f"row {np.argmin(named)} of the reports has none"
        ),
        line(
            "report_without_time", undated.sum(), f"bag {first_of(reports.bag, undated)} has none"
        ),
        line("no_sizes", int(unsized), "none of the reports has one"),
        line("late_report", late.sum(), first_of(reports.bag, late)),
        line("older_report", (~latest).sum(), first_of(known.bag, ~latest)),
        line(
            "bag_with_two_reports",
            (versions > 1).sum(),
            f"bag {first_of(known.bag, again)} has several",
        ),
    ]
    return known.take(np.sort(kept)), lines


def first_of(names: pa.Array, where: np.ndarray) -> str | None:
    """The least of these names, as text; None when there is none."""
    least = pc.min(names.filter(pa.array(where))).as_py()
    if least is None:
        return None
    return str(least)
