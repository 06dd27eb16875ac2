"""Events counted by bag, batch by batch; reports read and chosen; both brought together, and every
rule checked."""

# pyright: reportAttributeAccessIssue=false
# (the functions of pyarrow.compute are made when it is imported)

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, NamedTuple, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unbag._io import scratch
from unbag._rules import Refused, refuse
from unbag.bags import HIDDEN_BY_VALUE, Status, reports_too_even
from unbag.tables._columns import Columns
from unbag.tables._errors import no_rows, plain_duckdb
from unbag.tables._rules import (
    EVEN,
    RULES,
    Engine,
    TablesReport,
    bag_checks,
    number_text,
    tables_report,
)
from unbag.tables._sources import Table, open_table
from unbag.tables._values import as_ids, as_moments, as_numbers, as_text

# lines of batches between two sums, so that what is held grows with the bags and not with the rows
FOLD = 2**20
SUMS = {"size": "sum", "stratum": "min", "other": "max", "last": "max"}
DOUBLED = """
    select apart, count(*), min(id), arg_min(low, id), arg_min(high, id) from (
        select id, min(bag) as low, max(bag) as high, coalesce(low <> high, false) as apart
        from ids where id is not null group by id having count(*) > 1
    ) group by apart
"""

Line = dict[str, Any]


def line(check: str, rows: int, first: str | None = None) -> Line:
    """How many break a rule, and words on the first; see `tables_report`."""
    return {"check": check, "rows": rows, "first": first}


class EventCounts(NamedTuple):
    """Of each bag its name (sorted), size, stratum and last moment; and a line for each check."""

    name: pa.Array
    size: np.ndarray
    stratum: pa.Array
    last: np.ndarray
    lines: list[Line]


class BagCounter:
    """Counts the events of each bag; `add` batches, then ask for `counts`."""

    def __init__(self, columns: Columns, *, text: bool) -> None:
        self.columns, self.text = columns, text
        self.parts: list[pa.Table] = []
        self.rows = self.fresh = 0
        self.missing = {"bag": [0, -1], "stratum": [0, -1], "id": [0, -1]}  # how many, and first

    def add(self, batch: pa.Table) -> None:
        """Count a batch that has the columns."""
        names, n = self.columns, batch.num_rows
        bag = as_ids(batch, names.keys, text=self.text)
        self._note("bag", bag)
        part: dict[str, Any] = {"bag": bag, "size": np.ones(n, np.int64)}
        if names.stratum is not None:
            # least and greatest of a bag (see SUMS): they differ where it lies in two strata
            part["stratum"] = part["other"] = as_text(batch[names.stratum])
            self._note("stratum", part["stratum"])
        if names.id is not None:
            self._note("id", as_text(batch[names.id]))
        if names.time is not None:
            moment = as_moments(batch[names.time], name=names.time)
            part["last"] = np.where(np.isnan(moment), np.inf, moment)  # may not lie before a cut
        self.rows += n
        self.parts.append(_sum(pa.table(part)))
        self.fresh += self.parts[-1].num_rows
        # sum up once there are as many new lines as old ones: the work stays linear in the rows
        if self.fresh > max(FOLD, self.parts[0].num_rows):
            self.parts, self.fresh = [_sum(pa.concat_tables(self.parts))], 0

    def _note(self, what: str, values: pa.Array) -> None:
        gaps = np.flatnonzero(np.asarray(values.is_null()))
        if len(gaps):
            how_many, first = self.missing[what]
            self.missing[what] = [how_many + len(gaps), first]
            if how_many == 0:
                self.missing[what][1] = self.rows + int(gaps[0])

    def counts(self) -> EventCounts:
        """One line for each bag."""
        if self.rows == 0:
            raise no_rows("events")
        whole = _sum(pa.concat_tables(self.parts)).filter(pc.field("bag").is_valid())
        whole = whole.sort_by("bag")
        lines = [
            line(f"event_without_{what}", n, f"row {first} of the events has none")
            for what, (n, first) in self.missing.items()
        ]
        stratum, last = pa.repeat("", whole.num_rows), np.full(whole.num_rows, -np.inf)
        lines.append(line("events", self.rows))
        if self.columns.stratum is not None:
            split = whole.filter(pc.not_equal(whole["stratum"], whole["other"]))
            for bag in split[:1].to_pylist():
                words = f"bag {bag['bag']} has {bag['stratum']} and {bag['other']}"
                lines.append(line("bag_in_two_strata", split.num_rows, words))
            stratum = whole["stratum"].combine_chunks()
        if self.columns.time is not None:
            last = whole["last"].to_numpy()
        name = whole["bag"].combine_chunks()
        return EventCounts(name, whole["size"].to_numpy(), stratum, last, lines)


def _sum(part: pa.Table) -> pa.Table:
    """One line for each bag."""
    sums = {name: SUMS[name] for name in part.column_names[1:]}
    summed = part.group_by("bag").aggregate(list(sums.items()))
    names = ["bag", *(f"{name}_{how}" for name, how in sums.items())]
    return summed.select(names).rename_columns(part.column_names)


class IdCounter:
    """Finds ids that come twice, in one bag or in several; `add` batches, then ask for `lines`."""

    def __init__(self, columns: Columns, connection: Any) -> None:
        self.columns, self.connection = columns, connection
        connection.execute("create temp table ids (id varchar, bag varchar)")

    def add(self, batch: pa.Table) -> None:
        """Note the ids of a batch."""
        ids = {
            "id": as_text(batch[self.columns.id]),
            "bag": as_ids(batch, self.columns.keys, text=True),
        }
        self.connection.register("batch", pa.table(ids))
        self.connection.execute("insert into ids from batch")

    def lines(self) -> list[Line]:
        """A line for ids in two bags, and one for ids that come twice in a bag."""
        lines = []
        for apart, n, id, low, high in self.connection.execute(DOUBLED).fetchall():
            check, words = "event_twice", f"event {id} occurs again in the same bag"
            if apart:
                check, words = "event_in_two_bags", f"event {id} is in bags {low} and {high}"
            lines.append(line(check, n, words))
        return lines


@contextmanager
def id_counter(columns: Columns) -> Iterator[IdCounter]:
    """An `IdCounter` in DuckDB, which goes to disk when memory is short."""
    import duckdb

    remedy = "Free some of it, leave {id} out"
    with (
        scratch() as folder,
        plain_duckdb(held="the ids that are checked", remedy=remedy),
        duckdb.connect(config={"temp_directory": folder}) as connection,
    ):
        yield IdCounter(columns, connection)


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
        return as_numbers(rows[name], name=name, thing=table.thing)

    noise, as_of = numbers(columns.variance), np.full(n, np.nan)
    status = np.full(n, "observed")
    if columns.variance is None:
        noise = np.full(n, float(columns.noise or 0))
    if columns.as_of is not None:
        as_of = as_moments(rows[columns.as_of], name=columns.as_of, thing=table.thing)
    if columns.status is not None:
        known = as_text(rows[columns.status]).fill_null("observed").dictionary_encode()
        meaning = columns.status_map or {}
        words = np.array([meaning.get(s, s) for s in known.dictionary.to_pylist()], str)
        status = words[np.asarray(known.indices)]
    return ReportTable(
        bag=as_ids(rows, columns.keys, text=text),
        value=np.column_stack([numbers(name) for name in columns.values]),
        size=numbers(columns.size),
        noise=noise,
        status=status,
        as_of=as_of,
    )


def report_rows(source: Any, columns: Columns) -> ReportTable:
    """The observed reports of a table on a binary label as proportions, without their events.

    Parameters
    ----------
    source : frame, pyarrow.Table, DuckDB relation, str or Path
        One row for each report.
    columns : Columns
        What is said of its columns.
    """
    ids = dict.fromkeys(columns.as_text, pa.string())
    table = open_table(source, thing="reports", types=ids)
    reports, lines = choose_reports(read_reports(table, columns, text=True), columns, np.nan)
    report = tables_report(lines)
    if report.refused:
        raise Refused(*report.refused)
    hidden = np.isin(reports.status, HIDDEN_BY_VALUE) & (not columns.accept_bias)
    rule = RULES["hidden_by_value"]
    offenders = {"given": reports.status, "names": reports.bag.to_pylist()}
    refuse(rule.rule, hidden, thing="bag", remedy=rule.remedy, **offenders)
    known = reports.take(np.flatnonzero(reports.status == "observed"))
    share = known.value[:, 0]
    if columns.total is not None:
        share = share / known.size
    return known._replace(value=share)


def choose_reports(
    reports: ReportTable, columns: Columns, cut: float
) -> tuple[ReportTable, list[Line]]:
    """For each bag the report that was the latest before the cut, and a line for each check.

    Parameters
    ----------
    reports : ReportTable
        All of them.
    columns : Columns
        What is said of them.
    cut : float
        Reports of this moment or later are left out; NaN for none.
    """
    named = ~np.asarray(reports.bag.is_null())
    late = named & (reports.as_of >= cut)  # a cut of NaN, for none, makes nothing late
    known = reports.take(np.flatnonzero(named & ~late))
    number = np.asarray(known.bag.dictionary_encode().indices)
    when = np.nan_to_num(known.as_of, nan=-np.inf)
    last = np.full(number.max(initial=-1) + 1, -np.inf)
    np.maximum.at(last, number, when)
    latest = when == last[number]
    versions = np.bincount(number[latest], minlength=len(last))
    again = latest & (versions[number] > 1)
    # of several latest ones the first stays, so that all other checks see one report for each bag
    kept = np.flatnonzero(latest)[np.unique(number[latest], return_index=True)[1]]
    undated = named & np.isnan(reports.as_of) & (columns.as_of is not None)
    unsized = columns.size is not None and bool(np.isnan(reports.size).all())
    row, first = np.argmin(named), f"bag {first_of(reports.bag, undated)}"
    lines = [
        line("reports", len(named)),
        line("report_without_bag", (~named).sum(), f"row {row} of the reports has none"),
        line("report_without_time", undated.sum(), f"{first} has none"),
        line("no_sizes", int(unsized), "none of the reports has one"),
        line("late_report", late.sum(), first_of(reports.bag, late)),
        line("older_report", (~latest).sum(), first_of(known.bag, ~latest)),
    ]
    several = f"bag {first_of(known.bag, again)} has several"
    lines.append(line("bag_with_two_reports", (versions > 1).sum(), several))
    return known.take(np.sort(kept)), lines


def first_of(names: pa.Array, where: np.ndarray) -> str | None:
    """The least of these names, as text; None when there is none."""
    least = pc.min(names.filter(pa.array(where))).as_py()
    if least is None:
        return None
    return str(least)


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
    def exact(self) -> np.ndarray:
        """Whether the report has no noise."""
        return self.noise == 0

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
    kept, lines = choose_reports(reports, columns, cut)
    bags = _by_bag(events, kept, columns, cut)
    finds = bag_checks(bags, list(bags.value.T), list(bags.share(columns).T), columns, ARRAYS)
    lines = [*events.lines, *lines, *(_line(check, *find) for check, find in finds.items())]
    lone = np.asarray(pc.invert(pc.is_in(kept.bag, value_set=bags.name)))
    known = _known(bags, events, columns)
    lines.append(line("bag_without_events", lone.sum(), first_of(kept.bag, lone)))
    lines += [_even(bags, known, columns), _nothing(bags, kept)]
    return Matched(events.name.filter(pa.array(bags.used)), known, tables_report(lines))


def _by_bag(events: EventCounts, reports: ReportTable, columns: Columns, cut: float) -> BagTable:
    """Each bag with its report; where there is none, missing numbers and the status pending."""
    index = pc.index_in(events.name, value_set=reports.bag)
    has = np.asarray(index.is_valid())
    # a last line, of a report that is not there, is what bags without one get
    nothing = (np.full((1, reports.value.shape[1]), np.nan), [np.nan], [np.nan], ["pending"])
    where = np.asarray(index.fill_null(len(reports.bag)))
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


def _even(bags: BagTable, known: dict[str, Any], columns: Columns) -> Line:
    """Reports that vary less than chance allows are mostly something else than was said."""
    # reports that break another rule, which is told first, must not decide this one
    sound = bags.usable & np.isfinite(bags.noise) & np.isfinite(bags.share(columns)).all(axis=1)
    usual = {"noise": None, "stratum": None, "size": bags.size[bags.used]}
    shown = SimpleNamespace(**usual | known, observed=sound[bags.used])
    even = not columns.accept_bias and reports_too_even(shown)
    return line("reports_too_even", int(even), EVEN)


def _none(bad: np.ndarray) -> np.bool_:
    return ~bad.any()


ARRAYS = Engine(np.isin, np.isfinite, np.where, np.asarray, _none)  # NaN compares as false


def _line(check: str, bad: np.ndarray, words: tuple[Any, ...]) -> Line:
    """How many bags break a rule, and words on the first: bags are sorted by their name."""
    if not bad.any():
        return line(check, 0)
    first = int(np.argmax(bad))
    parts = [word if isinstance(word, str) else _shown(word[first]) for word in words]
    return line(check, bad.sum(), "".join(parts) or None)


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return number_text(value)
    return str(value)


def _nothing(bags: BagTable, reports: ReportTable) -> Line:
    ours, theirs = (first_of(each, np.ones(len(each), bool)) for each in (bags.name, reports.bag))
    ours, theirs = ours or "none", theirs or "none"
    words = f"none has; the first of the events is {ours}, of the reports {theirs}"
    known = np.isin(bags.status, get_args(Status))
    some = bags.usable.any() or not known.all()  # a word that nobody knows says why
    return line("nothing_observed", int(not some), words)
