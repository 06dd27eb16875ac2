"""What the user says of the columns: one checked object for `join`, SQL and the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypedDict, get_args

import numpy as np
import pyarrow as pa

from unbag._rules import broken, nearest, one_of
from unbag.bags import Kind, Status
from unbag.tables._rules import TWO_KINDS
from unbag.tables._sources import Table
from unbag.tables._values import as_moment, is_date, is_number, is_text

Sizes = Literal["refuse", "leave_out"]


class ColumnNames(TypedDict, total=False):
    """The fields of `Columns` beside `on`, as keywords of `join`, `check_tables` and `sql`.

    Parameters
    ----------
    total, counts, proportion, kind, size, noise, status, status_map, as_of : optional
        What is said of the reports; see `Columns`.
    stratum, time, id, score, exposure : str, optional
        Columns of the events.
    cut, wrong_sizes, cap, accept_bias : optional
        What is done with them; see `Columns`.
    """

    total: str | None
    counts: Sequence[str] | None
    proportion: str | None
    kind: Kind | None
    size: str | None
    noise: str | float | None
    status: str | None
    status_map: Mapping[str, str] | None
    as_of: str | None
    stratum: str | None
    time: str | None
    id: str | None
    score: str | None
    exposure: str | None
    cut: Any
    wrong_sizes: Sizes
    cap: float | None
    accept_bias: bool


@dataclass(frozen=True)
class Columns:
    """Which column is what, and what is to be done about the reports.

    Parameters
    ----------
    on : str or sequence of str
        Column with the bag's id, in both tables; or several, as campaign and day, whose values
        together name a bag. Several stay features.
    total, counts, proportion : str, sequence of str, str
        Column of the reports with each bag's total, columns with its class counts, or column with
        its proportion (mean count): one of these. Totals are divided by the number of events.
    kind : {"binary", "total", "histogram"}, optional
        Binary by default; total where an event may count more than once. Class counts are a
        histogram.
    size : str, optional
        Column of the reports with the number of events, which is then checked.
    noise : str or float, optional
        Column of the reports with the variance of the noise on the count, or one number for all.
    status : str, optional
        Column of the reports with their status (see `Bags`); empty is observed.
    status_map : mapping, optional
        What your own words in that column mean: {"too few": "suppressed_by_size"}.
    as_of : str, optional
        Column of the reports with the time when each was made; the latest of a bag is used.
    stratum, time, id : str, optional
        Columns of the events. All but the id are features as well.
    score : str, optional
        Column of the events with the score of a model that is already there: a logit, or the
        logarithm of a rate. Bags then teach what is to be added to it.
    exposure : str, optional
        For totals, column of the events with how long or how much of each was watched: half the
        exposure, half the expected count. It is no feature.
    cut : number, str or date, optional
        Use only what was known before this moment: reports made at or after it are left out, and so
        are bags with events at or after it. A date means its first moment, so nothing of that day
        is used.
    wrong_sizes : {"refuse", "leave_out"}
        What to do with bags whose reported size is not their number of events.
    cap : float, optional
        For totals, the largest count of one event.
    accept_bias : bool
        Whether reports that were hidden for their value may be left out; see `Bags`.

    >>> Columns("bag", total="sales").values
    ('sales',)
    >>> Columns(["campaign", "day"], total="sales").of_reports
    ['campaign', 'day', 'sales']
    """

    on: str | Sequence[str]
    total: str | None = None
    counts: Sequence[str] | None = None
    proportion: str | None = None
    kind: Kind | None = None
    size: str | None = None
    noise: str | float | None = None
    status: str | None = None
    status_map: Mapping[str, str] | None = None
    as_of: str | None = None
    stratum: str | None = None
    time: str | None = None
    id: str | None = None
    score: str | None = None
    exposure: str | None = None
    cut: Any = None
    wrong_sizes: Sizes = "refuse"
    cap: float | None = None
    accept_bias: bool = False

    def __post_init__(self) -> None:
        if not self.keys:
            raise broken(
                "Bags must be named by one column or more", "none given", "Name it with {on}."
            )
        given = [name for name in VALUES if getattr(self, name) is not None]
        if len(given) != 1:
            remedy = "Name the column of totals with {total}, or those of classes with {counts}."
            if given:
                remedy = f"Keep one of {' and '.join(f'{{{name}}}' for name in given)}."
            raise broken(
                "Reports must have a total, counts or a proportion, and one of these only",
                f"{' and '.join(given) or 'none'} given",
                remedy,
            )
        if self.counts is not None and (isinstance(self.counts, str) or len(self.counts) < 2):
            remedy = "Use {total} for one."
            if "," in "".join(self.counts):
                remedy = "Where these are several columns, name each by itself."
            raise broken(
                "Class counts must be two columns or more", f"{self.counts!r} given", remedy
            )
        self._check_numbers()
        if self.cut is not None and self.as_of is None and self.time is None:
            raise broken(
                "A cut must have times to compare with",
                "neither those of reports nor those of events given",
                "Name a column with {as_of} or {time}.",
            )
        one_of("What is done with wrong sizes", self.wrong_sizes, get_args(Sizes))
        self._check_status_map()
        self._check_offset()
        if self.kind is not None and (self.counts is None) == (self.kind == "histogram"):
            raise broken(
                "A kind must fit the columns",
                f"{self.kind} given with {given[0]}",
                "Class counts are a histogram, totals and proportions are binary or total; "
                "leave it out.",
            )

    def _check_numbers(self) -> None:
        if isinstance(self.noise, int | float) and not 0 <= self.noise < np.inf:
            raise broken(
                "A noise variance must be finite and not negative",
                f"{self.noise} given",
                "Give with {noise} the variance of the noise on a count, or a column with it.",
            )
        if self.cap is not None and not 0 < self.cap < np.inf:
            raise broken(
                "A cap must be finite and positive",
                f"{self.cap} given",
                "Give with {cap} the largest count of one event, or leave it out.",
            )

    def _check_offset(self) -> None:
        if self.exposure is None:
            return
        if self.reports_are != "total":
            raise broken(
                "An exposure must come with totals of counts",
                f"the kind is {self.reports_are}",
                "Say {kind:total}, or leave {exposure} out.",
            )
        if self.score is not None:
            raise broken(
                "An event must have an old score or an exposure",
                "both given",
                "Add the logarithm of the exposure to the score, and leave {exposure} out.",
            )

    def _check_status_map(self) -> None:
        if self.status_map is None:
            return
        if self.status is None:
            raise broken(
                "A meaning of statuses must come with their column",
                "none was named",
                "Name the column with {status}.",
            )
        for word, meaning in self.status_map.items():
            if meaning not in get_args(Status):
                raise broken(
                    f"A status must mean one of {', '.join(get_args(Status))}",
                    f"{word!r} means {meaning!r}",
                    f"{nearest(meaning, get_args(Status))}{TWO_KINDS}",
                )

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns whose values name a bag."""
        if isinstance(self.on, str):
            return (self.on,)
        return tuple(dict.fromkeys(self.on))

    @property
    def offset(self) -> str | None:
        """The column of the events from which something is added to their scores."""
        return self.score or self.exposure

    @property
    def reports_are(self) -> Kind:
        """The kind of the reports."""
        if self.kind is not None:
            return self.kind
        if self.counts is not None:
            return "histogram"
        return "binary"

    @property
    def values(self) -> tuple[str, ...]:
        """The columns with what the bags reported."""
        if self.counts is not None:
            return tuple(self.counts)
        return (self.total or self.proportion or "",)

    @property
    def variance(self) -> str | None:
        """The column with the variance of the noise, where it is not one number."""
        if isinstance(self.noise, str):
            return self.noise
        return None

    @property
    def of_events(self) -> list[str]:
        """The columns of the events."""
        return _given(*self.keys, self.stratum, self.time, self.id, self.offset)

    @property
    def no_features(self) -> list[str]:
        """The columns of the events that no model learns from: the names of bag and event. Where
        two columns name a bag, each of them is shared by many bags and can be learned from."""
        if len(self.keys) > 1:
            return _given(self.id, self.exposure)
        return _given(*self.keys, self.id, self.exposure)

    @property
    def of_reports(self) -> list[str]:
        """The columns of the reports."""
        return _given(*self.keys, *self.values, self.size, self.variance, self.status, self.as_of)

    @property
    def as_text(self) -> list[str]:
        """Columns with ids, which are read as text from CSV files, so that 007 stays 007."""
        return _given(*self.keys, self.stratum, self.id, self.status)

    @property
    def of_features(self) -> list[str]:
        """Columns with ids that models learn from as well."""
        return [n for n in _given(*self.keys, self.stratum) if n not in self.no_features]


VALUES = ("total", "counts", "proportion")


def _given(*names: str | None) -> list[str]:
    return list(dict.fromkeys(name for name in names if name is not None))


def as_columns(on: str | Sequence[str] | Columns, said: Mapping[str, Any]) -> Columns:
    """The columns from what `join` and others take: the bag's column, or all of them, and more.

    Parameters
    ----------
    on : str, sequence of str or Columns
        The column (or columns) with the bag's id, or columns that are changed by what is said.
    said : mapping
        Further fields of `Columns`.
    """
    known = [field.name for field in fields(Columns)]
    for name in said:
        if name not in known:
            raise TypeError(f"{name!r} is no argument here. {nearest(name, known)}".rstrip())
    columns = replace(on, **said) if isinstance(on, Columns) else Columns(on, **said)
    check_cap(columns.cap, columns.reports_are)
    return columns


def check_cap(cap: float | None, kind: Kind) -> None:
    """Refuse a cap where no event counts more than once. Not before the kind is known: that of an
    evaluation is the model's.

    Parameters
    ----------
    cap : float or None
        The largest count of an event.
    kind : {"binary", "total", "histogram"}
        Of the reports.
    """
    if cap is not None and kind != "total":
        raise broken(
            "A cap must come with totals of counts",
            f"the kind is {kind}",
            "Say {kind:total}, or leave {cap} out.",
        )


def ids_are_text(events: Table, reports: Table, columns: Columns) -> bool:
    """Whether the bag ids are compared as text, else as whole numbers; two types are refused.

    Parameters
    ----------
    events, reports : Table
        The two tables.
    columns : Columns
        What is said of their columns.
    """
    each = [_key_is_text(events, reports, key) for key in columns.keys]
    return len(each) > 1 or each[0]


def _key_is_text(events: Table, reports: Table, on: str) -> bool:
    kinds = {table.thing: _id_kind(table, on) for table in (events, reports)}
    if len(set(kinds.values())) > 1 and events.typed and reports.typed:
        raise broken(
            "A bag id must be of one type",
            f"{on!r} is {kinds['events']} in the events and {kinds['reports']} in the reports",
            "Turn both into text or both into whole numbers.",
        )
    too_large = any(pa.types.is_uint64(table.schema.field(on).type) for table in (events, reports))
    return too_large or "text" in kinds.values()


def _id_kind(table: Table, on: str) -> str:
    kind = value = table.schema.field(on).type
    if pa.types.is_dictionary(kind):
        value = kind.value_type
    if pa.types.is_integer(value):
        return "whole numbers"
    if not (is_text(value) or is_date(value) or pa.types.is_null(value)):
        raise broken(
            "A bag id must be text, a whole number or a date",
            f"{on!r} of the {table.thing} has type {kind}",
            "Write it as text, in the same way in both tables.",
        )
    return "text"


def cut_of(events: Table, reports: Table, columns: Columns) -> float:
    """The cut as a number, of the kind of the times; NaN, which no time reaches, for none.

    Parameters
    ----------
    events, reports : Table
        The two tables.
    columns : Columns
        What is said of their columns.
    """
    if columns.cut is None:
        return np.nan
    cut, a_number = as_moment(columns.cut), isinstance(columns.cut, int | float | np.number)
    if not np.isfinite(cut):
        raise broken("A cut must be a moment", f"{columns.cut} given", "Leave it out for none.")
    for table, name in ((events, columns.time), (reports, columns.as_of)):
        if name is not None and a_number != is_number(table.schema.field(name).type):
            raise broken(
                "A cut must be of the kind of the times",
                f"{columns.cut!r} given and {name!r} of the {table.thing} has type "
                f"{table.schema.field(name).type}",
                "Give a date for dates, and a number for numbers.",
            )
    return cut
