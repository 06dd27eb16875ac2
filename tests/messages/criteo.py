"""Bad input of criteo, and the whole message that it gets."""

import gzip
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from unbag.datasets import read_clicks, read_criteo

FOLDER = Path(tempfile.mkdtemp())


def bad_file(name, lines):
    (FOLDER / name).write_text("".join(line + "\n" for line in lines))
    return FOLDER / name


def bad_parquet():
    pq.write_table(pa.table({"label": [1], "I1": [2]}), FOLDER / "other.parquet")
    return FOLDER / "other.parquet"


def cut_gzip():
    (FOLDER / "cut.gz").write_bytes(gzip.compress(b"0" + b"\t" * 39 + b"\n")[:-12])
    return FOLDER / "cut.gz"


MESSAGES = [
    (
        lambda: read_criteo("x", rows=0),
        "A chunk must have at least one row: 0 given. The paper takes 65536.",
    ),
    (
        lambda: next(read_clicks(rows=0)),
        "A chunk and a day must have at least one event: 0 and 1048576 given. Ask for more.",
    ),
    (
        lambda: list(read_criteo(bad_file("new.txt", ["0" + "\t" * 40] * 120))),
        "The schema of new.txt must stay the same: 100 records in a row do not fit it, the last "
        "at new.txt, byte 4158 (a record must have 40 fields, 41 given). Read the rest as "
        "another stream, or repair the export.",
    ),
    (
        lambda: list(read_criteo(bad_parquet())),
        "The schema of other.parquet must be label, I1 to I13, C1 to C26: label, I1, ... given. "
        "Choose and name the columns so.",
    ),
    (
        lambda: list(read_criteo(bad_file("no.parquet", ["no"]))),
        f"The file {FOLDER}/no.parquet must be a whole Parquet file: Parquet file size is 3 "
        "bytes, smaller than the minimum file footer (8 bytes). Get it again.",
    ),
    (
        lambda: list(read_criteo(cut_gzip())),
        f"The file {FOLDER}/cut.gz must be whole: it breaks off or cannot be read (Compressed "
        "file ended before the end-of-stream marker was reached). What was read before is "
        "already out; get the file again and resume.",
    ),
]
