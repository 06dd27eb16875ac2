"""Arrow tables in, one Parquet or CSV file out: whole or not at all."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import csv
from pyarrow import parquet as pq

from unbag._io import check_place, whole
from unbag._rules import broken
from unbag.tables._sources import empty

ENDINGS = (".parquet", ".csv")


def check_output(path: Path | None, *, force: bool, table: bool = True) -> None:
    """Refuse a place that cannot be written, before the work begins; None is stdout."""
    if path is None:
        return
    if table and path.suffix.lower() not in ENDINGS:
        raise broken(
            f"An output must be named {' or '.join(ENDINGS)}",
            f"{path.name} came",
            "Choose such a name.",
        )
    check_place(path, force=force)


def check_page(path: Path | None, *, force: bool) -> None:
    """The same for a report page; None for none."""
    if path is not None and path.suffix.lower() not in (".html", ".htm"):
        raise broken("A page must be named .html", f"{path.name} came", "Choose such a name.")
    check_output(path, force=force, table=False)


def write_tables(path: Path | None, tables: Iterable[pa.Table]) -> int:
    """Write tables of one schema one after another, and tell how many rows; CSV to stdout when
    there is no path."""
    if path is None:
        return _write(sys.stdout.buffer, tables, _csv)
    with whole(path) as temporary:
        return _write(
            str(temporary), tables, pq.ParquetWriter if path.suffix.lower() == ".parquet" else _csv
        )


def _csv(place: Any, schema: pa.Schema) -> csv.CSVWriter:
    return csv.CSVWriter(place, schema, write_options=csv.WriteOptions(quoting_style="needed"))


def _write(place: Any, tables: Iterable[pa.Table], writer: Any) -> int:
    """The schema is that of the first table, so that nothing is opened before the first is
    there."""
    rest = (table for table in tables if table.num_rows)
    first = next(rest, None)
    if first is None:
        raise ValueError(empty("events"))
    with writer(place, first.schema) as file:
        file.write_table(first)
        rows = first.num_rows
        for table in rest:
            file.write_table(table)
            rows += table.num_rows
    return rows
