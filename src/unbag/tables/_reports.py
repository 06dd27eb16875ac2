"""Reports in, at most one for each bag out: restated, late, doubled and unknown ones are told or
refused."""

# pyright: reportAttributeAccessIssue=false
# (the functions of pyarrow.compute are made when it is imported)

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unbag._rules import broken
from unbag.tables._columns import Asked
from unbag.tables._sources import Table, empty
from unbag.tables._summary import count, some
from unbag.tables._values import as_ids, as_moment, as_moments, as_numbers, as_text, is_number


class Reports(NamedTuple):
    """One line for each report, in the order they came: bag, value(s), reported size, variance,
    status, as-of time."""

    bag: pa.Array
    value: np.ndarray
    size: np.ndarray
    noise: np.ndarray
    status: np.ndarray
    as_of: np.ndarray

    def take(self, where: np.ndarray) -> Reports:
        """These reports."""
        return Reports(self.bag.take(pa.array(where)), *(column[where] for column in self[1:]))


class Kept(NamedTuple):
    """The reports that remain, and sentences on the others."""

    reports: Reports
    left_out: tuple[str, ...]
    refused: tuple[str, ...]


def read_reports(table: Table, asked: Asked, *, text: bool) -> Reports:
    """The reports as numbers: NaN where a value is missing, status observed where none is said."""
    variance = asked.noise if isinstance(asked.noise, str) else None
    columns = table.need([asked.on, *asked.values, asked.size, variance, asked.status, asked.as_of])
    found = table.read(columns)
    if found.num_rows == 0:
        raise ValueError(empty(table.thing))
    number = lambda name: as_numbers(found[name], name=name, thing="reports")
    nothing = np.full(found.num_rows, np.nan)
    status = (
        pa.array(["observed"] * found.num_rows)
        if asked.status is None
        else as_text(found[asked.status])
    )
    return Reports(
        bag=as_ids(found[asked.on], text=text),
        value=np.column_stack([number(name) for name in asked.values]),
        size=nothing if asked.size is None else number(asked.size),
        noise=number(variance)
        if variance is not None
        else np.full(found.num_rows, asked.noise or 0.0),
        status=np.array(status.fill_null("observed").to_pylist()),
        as_of=nothing
        if asked.as_of is None
        else as_moments(found[asked.as_of], name=asked.as_of, thing="reports"),
    )


def check_cut(events: Table, reports: Table, asked: Asked) -> float:
    """The cut as a number, NaN when there is none, which no time reaches; it must be of the kind of
    the times."""
    if asked.cut is None:
        return np.nan
    cut, a_number = (
        as_moment(asked.cut, thing="cut"),
        isinstance(asked.cut, int | float | np.number),
    )
    if not np.isfinite(cut):
        raise broken("A cut must be a moment", f"{asked.cut} came", "Leave it out for none.")
    for table, name in ((events, asked.time), (reports, asked.as_of)):
        if name is not None and a_number != is_number(table.schema.field(name).type):
            raise broken(
                "A cut must be of the kind of the times",
                (
                    f"{asked.cut!r} came and {name!r} of the {table.thing} has type "
                    f"{table.schema.field(name).type}"
                ),
                "Give a date for dates, and a number for numbers.",
            )
    return cut


def keep_one_each(reports: Reports, *, cut: float, dated: bool) -> Kept:
    """For each bag the report that was the latest before the cut."""
    none = reports.bag.is_null().to_numpy(zero_copy_only=False)
    refused = _without_bag(none)
    unknown = np.isnan(reports.as_of) & dated & ~none
    refused += _undated(reports, unknown)
    late = reports.as_of >= cut
    left_out = _late(reports.take(np.flatnonzero(late & ~none)))
    known = reports.take(np.flatnonzero(~late & ~none))
    if not dated:
        return Kept(_first_each(known), left_out, refused + _doubled(known, dated=False))
    latest = known.take(_latest(known))
    older = len(known.bag) - len(latest.bag)
    told = (
        (f"{count(older, 'report')} came again later; the latest of each bag is used.",)
        if older
        else ()
    )
    return Kept(_first_each(latest), (*left_out, *told), refused + _doubled(latest, dated=True))


def _latest(reports: Reports) -> np.ndarray:
    """Where the reports with the latest as-of time of their bag are."""
    number = reports.bag.dictionary_encode().indices.to_numpy(zero_copy_only=False)
    last = np.full(number.max(initial=-1) + 1, -np.inf)
    np.maximum.at(last, number, np.nan_to_num(reports.as_of, nan=-np.inf))
    return np.flatnonzero(np.nan_to_num(reports.as_of, nan=-np.inf) == last[number])


def _first_each(reports: Reports) -> Reports:
    coded = reports.bag.dictionary_encode().indices.to_numpy(zero_copy_only=False)
    return reports.take(np.sort(np.unique(coded, return_index=True)[1]))


def _doubled(reports: Reports, *, dated: bool) -> tuple[str, ...]:
    counts = reports.bag.value_counts()
    again = counts.filter(pc.greater(counts.field("counts"), 1)).field("values").to_pylist()
    if not again:
        return ()
    remedy = (
        "Two came as of the same time: drop one."
        if dated
        else "Name with as_of= the column that tells which is latest."
    )
    return (
        (
            f"A bag must have one report: {some(again)} came again ({count(len(again), 'bag')}). "
            f"{remedy}"
        ),
    )


def _without_bag(none: np.ndarray) -> tuple[str, ...]:
    if not none.any():
        return ()
    return (
        f"A report must name its bag: row {np.argmax(none)} of the reports has none "
        f"({count(int(none.sum()), 'row')}). Drop such rows, which are often totals of the page.",
    )


def _undated(reports: Reports, unknown: np.ndarray) -> tuple[str, ...]:
    if not unknown.any():
        return ()
    first = reports.bag[int(np.argmax(unknown))].as_py()
    return (
        f"An as-of time must not be missing: the report of bag {first} has none "
        f"({count(int(unknown.sum()), 'report')}). Fill it in.",
    )


def _late(reports: Reports) -> tuple[str, ...]:
    if len(reports.bag) == 0:
        return ()
    names = reports.bag.unique().to_pylist()
    return (
        (
            f"{count(len(reports.bag), 'report')} came after the cut and {_was(len(reports.bag))}: "
            f"{some(names)}."
        ),
    )


def _was(n: int) -> str:
    return "was left out" if n == 1 else "were left out"


def unknown_bags(reports: Reports, names: Any) -> tuple[str, ...]:
    """A sentence on the reports of bags that have no events."""
    absent = reports.bag.filter(pc.invert(pc.is_in(reports.bag, value_set=names))).to_pylist()
    if not absent:
        return ()
    return (
        (
            f"{count(len(absent), 'report')} of bags without events {_was(len(absent))}: "
            f"{some(absent)}."
        ),
    )
