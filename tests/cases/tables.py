"""Small cases that the tests of tables, and the table of its messages, share."""

import datetime
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq

from unbag.tables import join

FOLDER = Path(tempfile.mkdtemp())

DAY = datetime.date


def as_parquet(table, name="t"):
    path = FOLDER / f"{name}-{table.num_rows}-{len(table.column_names)}.parquet"
    pq.write_table(table, path, row_group_size=max(2, table.num_rows // 5))
    return path


def as_csv(table, name="t", ending="csv", text=None):
    path = FOLDER / f"{name}-{table.num_rows}-{len(table.column_names)}.{ending}"
    csv.write_csv(table, path)
    if text is not None:
        path.write_bytes(text)
    return path


TWO = pa.table({"bag": ["a", "b"], "x": [1.0, 2.0]})

SAID = pa.table({"bag": ["a", "b"], "n": [1, 0]})


def told(events=None, reports=None, **columns):
    columns = {"on": "bag", "total": "n"} | columns
    return join(TWO if events is None else events, SAID if reports is None else reports, **columns)


LATIN = "bag,city\na,Köln\nb,Bonn\n".encode("latin-1")
