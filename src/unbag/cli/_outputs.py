"""Arrow tables written to one Parquet or CSV file: whole or not at all."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unbag._io import check_place, whole
from unbag._rules import broken

if TYPE_CHECKING:
    import pyarrow as pa

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
    from pyarrow import parquet

    if path is None:
        return _write(sys.stdout.buffer, tables, _csv)
    writer = {".parquet": parquet.ParquetWriter}.get(path.suffix.lower(), _csv)
    with whole(path) as temporary:
        return _write(str(temporary), tables, writer)


def _csv(place: Any, schema: pa.Schema) -> Any:
    from pyarrow import csv

    return csv.CSVWriter(place, schema, write_options=csv.WriteOptions(quoting_style="needed"))


def _write(place: Any, tables: Iterable[pa.Table], writer: Any) -> int:
    """The schema is that of the first table, so that nothing is opened before the first is
    there."""
    from unbag.tables import no_rows

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
