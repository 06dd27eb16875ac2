"""Arrow tables written to one Parquet or CSV file: whole or not at all."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import csv, parquet

from unbag._io import whole
from unbag.tables._sources import no_rows


def write_tables(path: Path | None, tables: Iterable[pa.Table], *, force: bool = True) -> int:
    """Write tables of one schema one after another; CSV to stdout when there is no path.

    Parameters
    ----------
    path : Path or None
        CSV when its name ends so, else Parquet, whose pages get checksums.
    tables : iterable of pyarrow.Table
        At least one row in all.
    force : bool
        Whether a file that is there is replaced.

    Returns
    -------
    int
        How many rows were written.
    """
    if path is None:
        return _write(sys.stdout.buffer, tables, _csv)
    writer = partial(parquet.ParquetWriter, write_page_checksum=True)
    if path.suffix.lower() == ".csv":
        writer = _csv
    with whole(path, force=force) as temporary:
        return _write(str(temporary), tables, writer)


def _csv(place: Any, schema: pa.Schema) -> Any:
    return csv.CSVWriter(place, schema, write_options=csv.WriteOptions(quoting_style="needed"))


def _write(place: Any, tables: Iterable[pa.Table], writer: Any) -> int:
    """The schema is that of the first table, so that nothing is opened before the first is
    there."""
    rest = (table for table in tables if table.num_rows)
    first = next(rest, None)
    if first is None:
        raise no_rows("events")
    rows = first.num_rows
    with writer(place, first.schema) as file:
        file.write_table(first)
        for table in rest:
            file.write_table(table)
            rows += table.num_rows
    return rows
