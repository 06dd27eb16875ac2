"""Events and tables of totals that overlap: who is counted in which cell, and what it reported.

A table such as "sales by campaign and day" counts every event in one of its cells; a second table
counts the same events again. `join_marginals` matches the keys of each table with the columns of
the events and returns `Marginals`: the reports of all cells, and the matrix of who is counted
where.
"""

# pyright: reportAttributeAccessIssue=false
# (the functions of pyarrow.compute are made when it is imported)

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse

from unbag._rules import Refusal, Refused, broken, nearest, refuse
from unbag.bags import HIDDEN_BY_VALUE, Kind, Reports
from unbag.tables._columns import Columns, check_cap
from unbag.tables._infer import Overrides, plan_features
from unbag.tables._match import ReportTable, read_reports
from unbag.tables._plan import FeaturePlan
from unbag.tables._rules import count
from unbag.tables._sources import Table, open_table
from unbag.tables._values import as_text, is_number, plain

# sums of two tables that differ by more than so many standard deviations contradict each other
SIGMAS = 5.0


@dataclass(frozen=True, eq=False, repr=False)
class Marginals(Reports):
    """Cells of tables that count the same events, each with its report.

    What is known of each cell is what `Reports` has of bags (its number of events, its share,
    status); and further:

    Parameters
    ----------
    noise : numpy.ndarray
        The variance of the noise on each total, 0 where it is exact.
    names : numpy.ndarray
        What the cells are called: "by_campaign_day: campaign=3, day=2026-01-04".
    S : scipy.sparse.csr_array
        Who is counted where: cells in rows, events in columns, ones where an event is counted.
    X : pyarrow.Table
        The columns of the events.
    of_table : numpy.ndarray
        Of each cell the number of its table.
    tables : tuple of str
        The names of the tables.
    below : float, optional
        A cell that is hidden for its value has a reported total below this.
    notes : tuple of str
        What was left out, and why.
    plan : FeaturePlan, optional
        How the columns of the events are read.
    """

    noise: Any = None
    names: Any = None
    S: Any = None
    X: Any = None
    of_table: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    tables: tuple[str, ...] = ()
    below: float | None = None
    notes: tuple[str, ...] = ()
    plan: FeaturePlan | None = None

    def __repr__(self) -> str:
        cells = np.bincount(self.of_table, minlength=len(self.tables))
        parts = [f"{name}: {n:,} cells" for name, n in zip(self.tables, cells, strict=True)]
        hidden = int((~self.observed).sum())
        if hidden:
            parts.append(f"{hidden:,} not observed")
        return f"Marginals({'; '.join(parts)}; {self.S.shape[1]:,} events; {self.kind})"

    @property
    def reports(self) -> Reports:
        """The cells as reports, which they are."""
        return self

    def reported(self) -> Marginals:
        """All cells, of which one at least is observed: hidden ones tell something too."""
        self.check_observed()
        return self

    @property
    def hidden(self) -> np.ndarray:
        """Whether a cell is known to lie below the threshold, and no more."""
        if self.below is None or self.status is None:
            return np.zeros(len(self), bool)
        return np.isin(self.status, HIDDEN_BY_VALUE)

    @property
    def total(self) -> np.ndarray:
        """The reported total of each cell, NaN where it is not observed."""
        return self.report * self.size

    def take(self, numbers: Any) -> Marginals:
        """These cells in this order; all events stay."""
        cells = np.asarray(numbers)
        return replace(self, **self.taken(cells), S=self.S[cells], of_table=self.of_table[cells])


class _Cells(NamedTuple):
    """One table as it was read: the names of its cells with events and their reports.

    `cell` is the cell of each event, -1 for none.
    """

    name: str
    keys: tuple[str, ...]
    names: list[str]
    reports: ReportTable
    cell: np.ndarray
    notes: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether every event is in a cell that is observed."""
        return bool((self.cell >= 0).all() and (self.reports.status == "observed").all())

    @property
    def total(self) -> np.ndarray:
        """What the cells reported."""
        return self.reports.value[:, 0]


def join_marginals(
    events: Any,
    tables: Sequence[Any] | Mapping[str, Any],
    *,
    total: str,
    noise: str | float | Sequence[float] | None = None,
    size: str | None = None,
    status: str | None = None,
    kind: Kind = "binary",
    below: float | None = None,
    features: Sequence[str] | None = None,
    id: str | None = None,
    plan: FeaturePlan | Overrides = None,
    cap: float | None = None,
    accept_bias: bool = False,
) -> Marginals:
    """Match tables of totals with the events that they count.

    Every column of a table that has no other part is a key, and must be a column of the events;
    values are compared as text, numbers or dates, however each side writes them. Left out with a
    note: cells without events. Refused: keys that the events lack, cells that come twice, sizes
    that disagree, and tables whose sums contradict each other beyond their noise.

    `unbag.fit` and `BagClassifier().fit_bags` learn from the result.

    Parameters
    ----------
    events : frame, Arrow table, DuckDB relation or path
        One row for each event.
    tables : sequence or mapping of str to frame, Arrow table, DuckDB relation or path
        The tables, with names where it is a mapping; a file is called by its name.
    total : str
        The column with the total of each cell, the same in every table.
    noise : str, float or sequence of these, optional
        Column with the variance of the noise on each total, one variance for all tables, or one
        of these for each table. Exact by default.
    size : str, optional
        Column with the number of events of each cell, which is then checked.
    status : str, optional
        Column with the status of each cell (see `Reports`); empty is observed.
    kind : {"binary", "total"}
        Total where an event may count more than once.
    below : float, optional
        Cells with status "suppressed_by_value" or "interval", and without `status` those with an
        empty total, had a reported total below this. They are then used for what they tell, and
        nothing is biased.
    features : sequence of str, optional
        Columns of the events to learn from; by default all.
    id : str, optional
        Column with the event's id, which is no feature.
    plan : FeaturePlan, mapping, str or Path, optional
        A plan of the features, or what overrides the one made from the events; see `join`.
    cap, accept_bias : float, bool
        See `Reports`.

    Returns
    -------
    Marginals
        The cells with their reports, and who is counted where.

    Examples
    --------
    >>> events = pa.table({"shop": ["a", "a", "b", "b"], "day": [1, 2, 1, 2]})
    >>> by_shop = pa.table({"shop": ["a", "b"], "sales": [1, 2]})
    >>> by_day = pa.table({"day": ["1", "2"], "sales": [2, 1]})
    >>> cells = join_marginals(events, {"by_shop": by_shop, "by_day": by_day}, total="sales")
    >>> cells
    Marginals(by_shop: 2 cells; by_day: 2 cells; 4 events; binary)
    >>> cells.names[3].item(), cells.S.toarray()[3].tolist()
    ('by_day: day=2', [0.0, 1.0, 0.0, 1.0])
    """
    if kind not in ("binary", "total"):
        raise broken(
            "Marginal tables must hold totals of labels or of counts",
            f"kind {kind!r} given",
            "Say {kind:binary} or {kind:total}; give one table for each class.",
        )
    check_cap(cap, kind)
    source = open_table(events)
    if not isinstance(plan, FeaturePlan):
        left_out = source.need([id])
        plan = plan_features(events, features=features, leave_out=left_out, override=plan)
    rows = source.read(source.schema.names)
    named = _named(tables)
    said = {"total": total, "size": size, "status": status}
    read = [
        _read_cells(name, table, rows, said | {"noise": variance}, hides=below is not None)
        for (name, table), variance in zip(named, _variances(noise, len(named)), strict=True)
    ]
    names = [cells.name for cells in read]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise broken(
            "A table must have a name of its own",
            f"{twice[0]!r} appears twice",
            "Give the tables as a mapping of names, and each set of keys once.",
        )
    contradictions = [_contradiction(one, two, rows) for one, two in combinations(read, 2)]
    refused = [one for one in contradictions if one is not None]
    if refused:
        raise Refused(*refused)
    known = {"kind": kind, "cap": cap, "accept_bias": accept_bias or below is not None}
    cells = _together(read, plan.columns_of(rows), known | {"below": below, "plan": plan})
    return cells.reported()


def plan_marginals(
    events: Any,
    tables: Sequence[str | Sequence[str]] | Mapping[str, str | Sequence[str]],
    *,
    noise: float | Sequence[float] = 0.0,
    features: Sequence[str] | None = None,
) -> Marginals:
    """Tables that do not exist yet: the cells that these keys would make, all of them pending.

    Parameters
    ----------
    events : frame, Arrow table, DuckDB relation or path
        One row for each event.
    tables : sequence or mapping of str to keys
        The keys of each table: a column, or several.
    noise : float or sequence of float
        The variance of the noise on each total, for all tables or for each.
    features : sequence of str, optional
        Columns of the events to learn from; by default all.

    Examples
    --------
    >>> events = pa.table({"shop": ["a", "a", "b"], "day": [1, 2, 1]})
    >>> plan_marginals(events, ["shop", ("shop", "day")])
    Marginals(by_shop: 2 cells; by_shop_day: 3 cells; 5 not observed; 3 events; binary)
    """
    source = open_table(events)
    rows = source.read(source.schema.names)
    named = tables
    if not isinstance(tables, Mapping):
        named = {"by_" + "_".join(_keys(table)): table for table in tables}
    variances = _variances(noise, len(named))
    read = []
    for (name, keys), variance in zip(named.items(), variances, strict=True):
        keys = source.need(_keys(keys))
        distinct = rows.select(keys).group_by(keys).aggregate([])
        distinct = distinct.append_column("", pa.nulls(distinct.num_rows, pa.float64()))
        said = {"total": "", "noise": variance}
        cells = _read_cells(name, open_table(distinct, thing=name), rows, said)
        pending = cells.reports._replace(status=np.full(len(cells.names), "pending"))
        read.append(cells._replace(reports=pending))
    if features is not None:
        rows = rows.select(source.need(features))
    return _together(read, rows, {})


def _keys(keys: str | Sequence[str]) -> list[str]:
    if isinstance(keys, str):
        return [keys]
    return list(keys)


def _named(tables: Sequence[Any] | Mapping[str, Any]) -> list[tuple[str, Table]]:
    """Each table with its name, "" where it has none yet."""
    if len(tables) == 0:
        raise broken("Marginals must have at least one table", "none given", "Give a list of them.")
    if isinstance(tables, Mapping):
        pairs = list(tables.items())
    else:  # a file is called by its name
        paths = [Path(table if isinstance(table, str | Path) else "") for table in tables]
        pairs = zip((path.name.split(".")[0] for path in paths), tables, strict=True)
    return [(name, open_table(table, thing=name or "marginal table")) for name, table in pairs]


def _variances(noise: Any, tables: int) -> list[str | float]:
    """Of each table the column of its noise, or its variance."""
    if noise is None:
        return [0.0] * tables
    if isinstance(noise, str) or np.ndim(noise) == 0:
        return [noise] * tables
    if len(noise) != tables:
        raise broken(
            "A noise variance must be given for all tables, or for each",
            f"{len(noise)} given for {tables} tables",
            "Give one number in {noise} for each table, or a single one.",
        )
    return list(noise)


def _read_cells(
    name: str, table: Table, events: pa.Table, said: dict[str, Any], *, hides: bool = False
) -> _Cells:
    """One table, matched with the events; `said` is of its columns, and `hides` says that an empty
    total is a hidden one."""
    others = [column for column in said.values() if isinstance(column, str)]
    keys = tuple(key for key in table.schema.names if key not in table.need(others))
    name = name or "by_" + "_".join(keys)
    _check_keys(name, keys, events)
    reports = read_reports(replace(table, thing=name), Columns(keys, **said), text=True)
    rows = table.read(keys)
    line, cell = match_keys(events, rows, keys)
    labels = _labels(name, keys, rows)
    _, first, lines = np.unique(line, return_index=True, return_counts=True)
    order = np.argsort(first)  # the table's own
    refuse(
        "A cell must appear once in its table",
        lines[order] > 1,
        thing="cell",
        given=[f"{n} lines" for n in lines[order]],
        remedy="Add the lines up, or keep the key that tells them apart.",
        names=[labels[i] for i in first[order]],
    )
    size = np.bincount(cell[cell >= 0], minlength=len(labels))
    refuse(
        "A reported size must be the number of events of the cell",
        np.isfinite(reports.size) & (reports.size != size),
        thing="cell",
        given=[f"{a:g} reported and {b} events" for a, b in zip(reports.size, size, strict=True)],
        remedy="Find the missing or doubled events, or leave {size} out.",
        names=labels,
    )
    there = np.flatnonzero(size)
    if len(there) == 0:
        raise broken(
            "A marginal table must count some of the events",
            f"no event is in a cell of {name}. Its first cell is "
            f"{labels[0].removeprefix(name + ': ')}, and the first event would be in "
            f"{_labels('', keys, events.slice(0, 1))[0].removeprefix(': ')}",
            "Write the keys in the same way in the table and in the events.",
        )
    value = reports.value[:, 0]
    if hides and said["status"] is None:
        status = np.where(np.isnan(value), "suppressed_by_value", "observed")
        reports = reports._replace(status=status)
    number = np.full(len(labels), -1)
    number[there] = np.arange(len(there))
    cell = np.where(cell >= 0, number[cell], -1)
    notes = tuple(_left_out(name, labels, value, size, cell))
    return _Cells(name, keys, [labels[i] for i in there], reports.take(there), cell, notes)


def _check_keys(name: str, keys: tuple[str, ...], events: pa.Table) -> None:
    if not keys:
        raise broken(
            "A marginal table must have keys",
            f"{name} has none",
            "Add the columns by which it counts; a grand total alone is known from other tables.",
        )
    for key in keys:
        if key not in events.schema.names:
            raise broken(
                "A key of a marginal table must be a column of the events",
                f"{key!r} of {name} is none. {nearest(key, events.schema.names)}"
                f"Their columns are {', '.join(events.schema.names)}",
                "Rename it, add it to the events, or drop it from the table.",
            )


def match_keys(
    events: pa.Table, cells: pa.Table, keys: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """A number for the keys of each cell, equal for equal keys, and the cell of each event or -1.

    Parameters
    ----------
    events, cells : pyarrow.Table
        With the keys among their columns.
    keys : sequence of str
        To compare; a missing value is a value of its own.
    """
    code = np.zeros(events.num_rows, np.int64)
    line = np.zeros(cells.num_rows, np.int64)
    known = np.ones(events.num_rows, bool)
    for key in keys:
        ours, theirs = _comparable(events[key], cells[key])
        values = pc.unique(theirs)
        index = pc.index_in(ours, value_set=values)
        known &= np.asarray(index.is_valid())
        code = code * len(values) + np.asarray(index.fill_null(0))
        line = line * len(values) + np.asarray(pc.index_in(theirs, value_set=values))
        # codes are made dense after each key, so that many keys cannot overflow
        both = np.unique(np.concatenate([code, line]), return_inverse=True)[1]
        code, line = both[: len(code)], both[len(code) :]
    cell = np.full(max(code.max(initial=0), line.max(initial=0)) + 1, -1)
    # the other way round, so that of equal lines, which are refused later, the first one counts
    cell[line[::-1]] = np.arange(len(line))[::-1]
    return line, np.where(known, cell[code], -1)


def _comparable(one: Any, two: Any) -> tuple[pa.Array, pa.Array]:
    """Two columns as numbers where both are, else as text; NaN is missing."""
    one, two = plain(one), plain(two)
    if is_number(one.type) and is_number(two.type):
        one, two = (pc.cast(column, pa.float64(), safe=False) for column in (one, two))
        return pc.if_else(pc.is_nan(one), None, one), pc.if_else(pc.is_nan(two), None, two)
    return as_text(one), as_text(two)


def _labels(name: str, keys: tuple[str, ...], rows: pa.Table) -> list[str]:
    """What each cell is called."""
    columns = [as_text(rows[key]).fill_null("missing").to_pylist() for key in keys]
    return [
        f"{name}: " + ", ".join(f"{k}={v}" for k, v in zip(keys, values, strict=True))
        for values in zip(*columns, strict=True)
    ]


def _left_out(
    name: str, labels: list[str], value: np.ndarray, size: np.ndarray, cell: np.ndarray
) -> Iterator[str]:
    """Notes on cells without events, and on events without a cell."""
    empty = np.flatnonzero(size == 0)
    if len(empty):
        yield (
            f"Left out: {count(len(empty), 'cell')} of {name} without events, with a total of "
            f"{np.nansum(value[empty]):g}: {labels[empty[0]]}."
        )
    outside = int((cell < 0).sum())
    if outside:
        yield f"In no cell of {name}: {count(outside, 'event')}."


def _contradiction(one: _Cells, two: _Cells, events: pa.Table) -> Refusal | None:
    """Complete tables whose sums, for each value of the keys they share, differ too much."""
    if not (one.complete and two.complete):
        return None
    shared = [key for key in one.keys if key in two.keys]
    group, names = np.zeros(events.num_rows, np.int64), np.array(["all events"])
    if shared:
        distinct = events.select(shared).group_by(shared).aggregate([])
        _, group = match_keys(events, distinct, shared)
        names = np.array(_labels("", tuple(shared), distinct), dtype=object)
    (sum1, noise1), (sum2, noise2) = (_sums(cells, group, len(names)) for cells in (one, two))
    scale = 1e-9 * (np.abs(sum1) + np.abs(sum2)) + 1e-9
    bad = np.abs(sum1 - sum2) > SIGMAS * np.sqrt(noise1 + noise2) + scale
    if not bad.any():
        return None
    i = int(np.argmax(np.abs(sum1 - sum2) / (np.sqrt(noise1 + noise2) + scale)))
    return Refusal(
        "Tables that count the same events must have the same sums up to their noise",
        f"{one.name} has {sum1[i]:g} and {two.name} has {sum2[i]:g} for "
        f"{names[i].removeprefix(': ')}, with a standard deviation of "
        f"{np.sqrt(noise1[i] + noise2[i]):.3g}",
        "Export them for the same events and days, or declare the noise with {noise}.",
        int(bad.sum()),
        "sum",
    )


def _sums(cells: _Cells, group: np.ndarray, groups: int) -> tuple[np.ndarray, np.ndarray]:
    """Totals and noise of a complete table, added up over groups that its keys can tell."""
    # any event of a cell tells its group, as the keys of the group are among those of the cell
    of_cell = np.zeros(len(cells.names), np.int64)
    of_cell[cells.cell] = group
    total = np.bincount(of_cell, cells.total, minlength=groups)
    return total, np.bincount(of_cell, cells.reports.noise, minlength=groups)


def _together(read: list[_Cells], X: pa.Table, known: dict[str, Any]) -> Marginals:
    """All tables as one set of cells; `known` is what else `Marginals` takes."""
    members = []  # of each table: cells in rows, events in columns
    for cells in read:
        event = np.flatnonzero(cells.cell >= 0)
        entries = (np.ones(len(event)), (cells.cell[event], event))
        members.append(sparse.csr_array(entries, shape=(len(cells.names), len(cells.cell))))
    S = sparse.csr_array(sparse.vstack(members, format="csr"))
    size = np.diff(S.indptr)
    status = np.concatenate([cells.reports.status for cells in read])
    return Marginals(
        size,
        np.concatenate([cells.total for cells in read]) / size,
        noise=np.concatenate([cells.reports.noise for cells in read]),
        names=np.concatenate([cells.names for cells in read]),
        status=status,
        S=S,
        X=X,
        of_table=np.repeat(np.arange(len(read)), [len(cells.names) for cells in read]),
        tables=tuple(cells.name for cells in read),
        notes=tuple(_notes(read, status)),
        **known,
    )


def _notes(read: list[_Cells], status: np.ndarray) -> Iterator[str]:
    """What was left out of each table, what is not observed, and whom nobody counts."""
    for cells in read:
        yield from cells.notes
    kinds, times = np.unique(status[status != "observed"], return_counts=True)
    for kind, n in zip(kinds.tolist(), times.tolist(), strict=True):
        yield f"Not observed ({kind}): {count(n, 'cell')}."
    nowhere = int(np.all([cells.cell < 0 for cells in read], axis=0).sum())
    if nowhere and len(read) > 1:
        who = count(nowhere, "event")
        yield f"In no cell of any table, so that nothing is learned from them: {who}."
