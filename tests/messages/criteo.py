"""Bad input of criteo, and the whole message that it gets."""

import gzip
import tempfile
from pathlib import Path

from unbag.datasets import read_clicks, read_criteo

FOLDER = Path(tempfile.mkdtemp())


def bad_file(name, lines):
    (FOLDER / name).write_text("".join(line + "\n" for line in lines))
    return FOLDER / name


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
        lambda: list(read_criteo(cut_gzip())),
        f"The file {FOLDER}/cut.gz must be whole: it breaks off or cannot be read (Compressed "
        "file ended before the end-of-stream marker was reached). What was read before is "
        "already out; get the file again and resume.",
    ),
]
