"""Events in, one line for each bag out: its size, stratum and last event, counted over batches of
rows."""

# pyright: reportAttributeAccessIssue=false
# (the functions of pyarrow.compute are made when it is imported)

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unbag.tables._columns import Asked
from unbag.tables._duckdb import plain_duckdb
from unbag.tables._sources import Table, empty
from unbag.tables._summary import count, some
from unbag.tables._values import as_ids, as_moments, as_text

FOLD = (
    2**20
    # lines of batches between two sums, so that what is held grows with the bags and not with the
    # rows
)
SUMS = [("size", "sum"), ("stratum", "min"), ("other", "max"), ("last", "max")]


class Counted(NamedTuple):
    """Of each bag its name (sorted), size, stratum and last moment; events without a bag, and what
    must be refused."""

    name: pa.Array
    size: np.ndarray
    stratum: pa.Array
    last: np.ndarray
    lost: int
    refused: tuple[str, ...]


def count_events(events: Table, asked: Asked, *, text: bool) -> Counted:
    """Count the events of each bag, and find what is wrong with them."""
    parts: list[pa.Table] = []
    rows, fresh, no_bag, no_stratum = 0, 0, [], []
    # the ids are read here too, so that a damaged file is found before DuckDB reads it
    for batch in events.batches(events.need([asked.on, asked.stratum, asked.time, asked.id])):
        part = _columns(batch, asked, text)
        no_bag.append(rows + np.flatnonzero(_gaps(part["bag"])))
        no_stratum.append(rows + np.flatnonzero(_gaps(part["stratum"])))
        rows += batch.num_rows
        parts.append(_sum(part))
        fresh += parts[-1].num_rows
        if fresh > max(
            FOLD, parts[0].num_rows
        ):  # as many new lines as old ones, so that the sums stay linear in all
            parts, fresh = [_sum(pa.concat_tables(parts))], 0
    if rows == 0:
        raise ValueError(empty(events.thing))
    whole = _sum(pa.concat_tables(parts)).filter(pc.field("bag").is_valid()).sort_by("bag")
    refused = (
        *_missing(
            "A bag id",
            np.concatenate(no_bag),
            "Give such events their bag, or drop them on purpose.",
        ),
        *_missing("A stratum", np.concatenate(no_stratum), "Give it a stratum of its own."),
        *(_two_strata(whole) if asked.stratum is not None else ()),
        *(_doubled(events, asked, text) if asked.id is not None else ()),
    )
    name, stratum = (whole[key].combine_chunks() for key in ("bag", "stratum"))
    return Counted(
        name,
        whole["size"].to_numpy(),
        stratum,
        whole["last"].to_numpy(),
        len(np.concatenate(no_bag)),
        refused,
    )


def _columns(batch: pa.Table, asked: Asked, text: bool) -> pa.Table:
    n = batch.num_rows
    stratum = pa.array([""] * n) if asked.stratum is None else as_text(batch[asked.stratum])
    last = (
        np.full(n, -np.inf)
        if asked.time is None
        else as_moments(batch[asked.time], name=asked.time)
    )
    last = np.where(
        np.isnan(last), np.inf, last
    )  # an event without a time is not known to lie before a cut
    bag = as_ids(batch[asked.on], text=text)
    return pa.table(
        {
            "bag": bag,
            "size": np.ones(n, np.int64),
            "stratum": stratum,
            "other": stratum,
            "last": last,
        }
    )


def _sum(part: pa.Table) -> pa.Table:
    """One line for each bag."""
    summed = part.group_by("bag").aggregate(SUMS)
    return summed.select(["bag", *(f"{name}_{how}" for name, how in SUMS)]).rename_columns(
        part.column_names
    )


def _gaps(column: Any) -> np.ndarray:
    return column.is_null().to_numpy()


def _missing(what: str, where: np.ndarray, remedy: str) -> tuple[str, ...]:
    if len(where) == 0:
        return ()
    return (
        (
            f"{what} must not be missing: row {where[0]} of the events has none "
            f"({count(len(where), 'row')}). {remedy}"
        ),
    )


def _two_strata(whole: pa.Table) -> tuple[str, ...]:
    split = whole.filter(pc.not_equal(whole["stratum"], whole["other"]))
    if split.num_rows == 0:
        return ()
    first = split.slice(0, 1).to_pylist()[0]
    return (
        f"A bag must lie within one stratum: bag {first['bag']} has {first['stratum']} and "
        f"{first['other']} ({count(split.num_rows, 'bag')}). Cut it into one bag for each, or "
        "leave the stratum out.",
    )


def _doubled(events: Table, asked: Asked, text: bool) -> tuple[str, ...]:
    """Ids that come twice, in one bag or in several, found by DuckDB, which goes to disk when
    memory is short."""
    import duckdb

    schema = pa.schema({"id": pa.string(), "bag": pa.string()})
    as_batch = lambda b: pa.RecordBatch.from_arrays(
        [as_text(b[asked.id]), as_text(b[asked.on])], schema=schema
    )
    batches = events.batches(events.need([asked.id, asked.on]))
    reader = pa.RecordBatchReader.from_batches(schema, map(as_batch, batches))
    with (
        TemporaryDirectory() as folder,
        plain_duckdb(held="the ids that are checked", remedy="Free some of it, leave id= out"),
        duckdb.connect(config={"temp_directory": str(Path(folder))}) as connection,
    ):
        connection.register("events", reader)
        connection.execute(
            "create temp table doubled as select id, count(*) as n, min(bag) as a, max(bag) as b "
            "from events group by id having count(*) > 1 or id is null"
        )
        ask = lambda where: connection.execute(
            f"select * from doubled where {where} order by id"
        ).fetchmany(4)
        total = lambda where: connection.execute(
            f"select count(*) from doubled where {where}"
        ).fetchall()[0][0]
        none, overlap, twice = (
            (ask(where), total(where))
            for where in ("id is null", "id is not null and a <> b", "id is not null and a = b")
        )
    return (*_no_ids(none[0]), *_overlaps(*overlap), *_twice(*twice))


def _no_ids(found: list[Any]) -> tuple[str, ...]:
    if not found:
        return ()
    return (
        f"An event id must not be missing: {count(found[0][1], 'event')} came without. Fill it in.",
    )


def _overlaps(found: list[Any], total: int) -> tuple[str, ...]:
    if not found:
        return ()
    return (
        f"Bags must not overlap: event {found[0][0]} is in bags {found[0][2]} and {found[0][3]} "
        f"({count(total, 'event')}). An event counts in one report only; choose which, as the "
        "reports do.",
    )


def _twice(found: list[Any], total: int) -> tuple[str, ...]:
    if not found:
        return ()
    return (
        f"An event must come once: {some([row[0] for row in found], total)} came again in the "
        f"same bag ({count(total, 'event')}). Drop the copies.",
    )
