"""Arrow tables in, one Parquet or CSV file out: whole or not at all."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import csv
from pyarrow import parquet as pq

from unbag.tables.reading import empty

ENDINGS = (".parquet", ".csv")


def check_output(path: Path | None, *, force: bool, table: bool = True) -> None:
    """Refuse a place that cannot be written, before the work begins; None is stdout."""
    if path is None:
        return
    if table and path.suffix.lower() not in ENDINGS:
        raise ValueError(f"An output must be named {' or '.join(ENDINGS)}: {path.name} came. Choose such a name.")
    if not path.absolute().parent.is_dir():
        raise ValueError(f"An output must go to a folder that exists: {path.parent} does not. Make it first.")
    if path.exists() and not (force and path.is_file()):
        remedy = "Use --force to overwrite it." if path.is_file() else "Choose another name."
        raise ValueError(f"An output must not exist yet: {path} does. {remedy}")


def write_tables(path: Path | None, tables: Iterable[pa.Table]) -> int:
    """Write tables of one schema one after another, and tell how many rows; CSV to stdout when there is no path."""
    if path is None:
        return _write(sys.stdout.buffer, tables, _csv)
    with _renamed(path) as temporary:
        return _write(temporary, tables, pq.ParquetWriter if path.suffix.lower() == ".parquet" else _csv)


def _csv(place: Any, schema: pa.Schema) -> csv.CSVWriter:
    return csv.CSVWriter(place, schema, write_options=csv.WriteOptions(quoting_style="needed"))


def _write(place: Any, tables: Iterable[pa.Table], writer: Any) -> int:
    """The schema is that of the first table, so that nothing is opened before the first is there."""
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


@contextmanager
def _renamed(path: Path) -> Iterator[str]:
    """A temporary name beside the path, which takes its place in the end or is removed."""
    handle, temporary = tempfile.mkstemp(dir=path.absolute().parent, prefix=f".{path.name}.")
    os.close(handle)
    try:
        yield temporary
        os.chmod(temporary, 0o666 & ~_mask())
        os.replace(temporary, path)
    finally:
        Path(temporary).unlink(missing_ok=True)


def _mask() -> int:
    """The user's umask, which can only be read by setting it: a temporary file is private, an output need not be."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
