"""Files of the Criteo display advertising challenge in, chunks of bucket numbers and clicks out, as a stream.

A record is a label, 13 whole numbers and 26 categories of 8 hexadecimal digits, tab-separated; an empty field is
missing. Files may be plain, gzip (.gz) or Parquet (columns label, I1 to I13, C1 to C26).

The paper leaves open how 40 boundaries make "40 buckets", and where missing values go. Ours: 40 boundaries, evenly
spaced in the logarithm from 1 to 10^7, cut the numbers into 41 buckets, and missing numbers have one more. A missing
category is hashed like a value of its own.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from unbag.datasets.chunks import Chunk
from unbag.datasets.finding import Source, data_folder, missing
from unbag.datasets.quarantine import Quarantine

INTEGERS, CATEGORIES = 13, 26
NAMES = ("label", *(f"I{i}" for i in range(1, INTEGERS + 1)), *(f"C{i}" for i in range(1, CATEGORIES + 1)))
BOUNDARIES = np.geomspace(1, 1e7, 40)
WHOLE = np.ceil(BOUNDARIES.round(6)).astype(np.int64)  # the same cuts for whole numbers
TABLE = (  # buckets, embedding size: the paper's table, features 14 to 39
    (700, 30), (500, 30), (10000, 70), (10000, 70), (200, 22), (20, 10), (10000, 70), (400, 30), (10, 10),
    (10000, 70), (5000, 50), (10000, 70), (5000, 50), (50, 10), (5000, 53), (10000, 70), (10, 10), (5000, 50),
    (5000, 50), (10, 10), (10000, 70), (10, 10), (10, 10), (10000, 70), (10, 20), (10000, 70),
)  # fmt: skip
BUCKETS = (*[len(BOUNDARIES) + 2] * INTEGERS, *(buckets for buckets, _ in TABLE))
DIMENSIONS = (*[10] * INTEGERS, *(dimension for _, dimension in TABLE))
MISSING = np.iinfo(np.int64).min
SOURCE = Source("criteo", "train.txt", "https://www.kaggle.com/c/criteo-display-ad-challenge", by_us=False)
CITATION = "Criteo Display Advertising Challenge, Kaggle 2014"
CHUNK = 2**16
IN_A_ROW = 100  # bad records, one after the other, are a new schema
BLOCK = 1 << 22

_HEX = np.zeros(256, bool)
_HEX[list(b"0123456789abcdefABCDEF")] = True
_ALL = np.uint64(0x0101010101010101)  # eight times true
_RECORD = re.compile(rb"[01](?:\t(?:-?\d{1,18})?){13}(?:\t(?:[0-9a-fA-F]{8})?){26}\r?")


class Records(NamedTuple):
    """Raw events: clicks, whole numbers and categories as 32-bit numbers; `MISSING` where a field is empty."""

    label: np.ndarray
    integers: np.ndarray
    categories: np.ndarray


def encode(records: Records) -> np.ndarray:
    """Bucket numbers of every feature, ready for `unbag.models.embedding_network(BUCKETS, DIMENSIONS, key=...)`.

    >>> encode(Records(np.zeros(1), np.full((1, 13), MISSING), np.full((1, 26), MISSING)))[0, :4].tolist()
    [0, 0, 0, 0]
    """
    X = np.empty((len(records.label), len(BUCKETS)), np.int32)
    bucket = 1 + np.searchsorted(WHOLE, records.integers, side="right")
    X[:, :INTEGERS] = np.where(records.integers == MISSING, 0, bucket)
    feature = np.arange(INTEGERS, INTEGERS + CATEGORIES, dtype=np.uint64)
    hashed = mix(records.categories.astype(np.uint64) + (feature << np.uint64(33)))
    X[:, INTEGERS:] = hashed % np.array(BUCKETS[INTEGERS:], np.uint64)
    return X


def mix(x: np.ndarray) -> np.ndarray:
    """Splitmix64's finaliser: a hash of 64-bit numbers, the same everywhere."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def read_criteo(
    path: str | Path | None = None,
    *,
    rows: int = CHUNK,
    start: int = 0,
    quarantine: Quarantine | None = None,
    folder: str | Path | None = None,
) -> Iterator[Chunk]:
    """Stream chunks of `rows` events in the order of the file; the last one may be shorter, or empty after bad records.

    A bad record (a truncated line, a field that is no number or no category) goes to the quarantine, the stream goes
    on, and chunks are filled up with the records after it. A hundred bad records in a row, or other columns in a
    Parquet file, are a new schema, which stops the stream. Bad records are set aside together with their chunk: those
    after the last chunk that was given out are found again by whoever goes on after it.

    Parameters
    ----------
    path : a file; by default `criteo/train.txt`, else any `criteo/train*`, in the data folder.
    rows : of a chunk; the paper takes 2^16.
    start : the `position` of the chunk to go on after.
    quarantine : where bad records go. folder : the data folder, see `unbag.datasets.data_folder`.
    """
    path = Path(path) if path is not None else find_criteo(folder)
    if rows < 1:
        raise ValueError(f"A chunk must have at least one row: {rows} came. The paper takes 65536.")
    aside = quarantine if quarantine is not None else Quarantine()
    if path.suffix == ".parquet":
        return _read_parquet(path, rows, start, aside)
    return _read_text(path, rows, start, aside)


def find_criteo(folder: str | Path | None = None) -> Path:
    """The file of the challenge in the data folder, or an excerpt of it."""
    place = data_folder(folder) / SOURCE.folder
    found = [place / SOURCE.name, *sorted(place.glob("train*"))]
    for path in found:
        if path.exists():
            return path
    raise FileNotFoundError(missing(SOURCE, place / SOURCE.name))


class _Run:
    """The bad records of a chunk, and how many came in a row: many of them are a new schema."""

    def __init__(self, path: Path, aside: Quarantine) -> None:
        self.path, self.aside, self.length = path, aside, 0
        self.found: list[tuple[str, str, str, str]] = []
        self.unit = "row" if path.suffix == ".parquet" else "byte"

    def good(self) -> None:
        self.length = 0

    def bad(self, kind: str, reason: str, where: str, record: str) -> None:
        self.found.append((kind, reason, where, record))
        self.length += 1
        if self.length >= IN_A_ROW:
            raise ValueError(
                f"The schema of {self.path.name} must stay the same: {IN_A_ROW} records in a row do not fit it, the "
                f"last at {where} ({reason}). Read the rest as another stream, or repair the export."
            )

    def set_aside(self) -> None:
        """Give the bad records to the quarantine: a stream that is resumed will not read them again."""
        for kind, reason, where, record in self.found:
            self.aside.add(kind, reason, where=where, record=record)
        self.found = []


def _open(path: Path, start: int) -> IO[bytes]:
    file: Any = gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")  # noqa: SIM115
    file.seek(start)
    return file


def _read_text(path: Path, rows: int, start: int, aside: Quarantine) -> Iterator[Chunk]:
    run = _Run(path, aside)
    with _open(path, start) as file:
        lines = _Lines(file, path)
        while True:
            parts, got = [], 0
            while got < rows and (block := lines.take(rows - got)):
                records = _parse_lines(block, start, run)
                start, got = start + len(block), got + len(records.label)
                parts.append(records)
            if not parts:
                return
            run.set_aside()
            yield _chunk(parts, start)


class _Lines:
    """A file as blocks of whole lines."""

    def __init__(self, file: IO[bytes], path: Path) -> None:
        self.file, self.path, self.rest, self.done = file, path, b"", False

    def take(self, count: int) -> bytes:
        """The next lines, at most `count`; empty at the end."""
        ends = self._ends()
        while len(ends) < count and not self.done:
            more = self._read()
            self.done, self.rest = not more, self.rest + more
            ends = self._ends()
        cut = int(ends[count - 1]) + 1 if len(ends) >= count else len(self.rest)
        block, self.rest = self.rest[:cut], self.rest[cut:]
        return block

    def _ends(self) -> np.ndarray:
        return np.flatnonzero(np.frombuffer(self.rest, np.uint8) == 10)

    def _read(self) -> bytes:
        try:
            return self.file.read(BLOCK)
        except (EOFError, OSError) as error:
            raise ValueError(
                f"The file {self.path} must be whole: it breaks off or cannot be read ({error}). What came before was "
                "given out; get the file again and resume."
            ) from error


def _parse_lines(block: bytes, start: int, run: _Run) -> Records:
    """The records of whole lines; the bad ones are sifted out only where there are any."""
    try:
        records = _records(_parse(block))
        run.good()
        return records
    except (pa.ArrowInvalid, _BadFieldError):
        good = _sift(block, start, run)
        return _records(_parse(good)) if good else Records(np.zeros(0), *(np.zeros((0, n), int) for n in (13, 26)))


_CONVERT = csv.ConvertOptions(
    column_types=dict(zip(NAMES, [pa.int8(), *[pa.int64()] * INTEGERS, *[pa.binary(8)] * CATEGORIES], strict=True)),
    null_values=[""],
    strings_can_be_null=True,
)
_FORM = csv.ParseOptions(delimiter="\t", quote_char=False, ignore_empty_lines=False)


def _parse(block: bytes) -> pa.Table:
    options = csv.ReadOptions(column_names=list(NAMES), block_size=BLOCK)
    return csv.read_csv(pa.BufferReader(block), options, _FORM, _CONVERT)


class _BadFieldError(Exception):
    """A field that the columns' types let through."""


def _records(table: pa.Table) -> Records:
    label = table["label"].fill_null(-1).to_numpy()
    integers = [table[name].fill_null(int(MISSING)).to_numpy() for name in NAMES[1 : INTEGERS + 1]]
    categories = [_hexadecimal(table[name]) for name in NAMES[INTEGERS + 1 :]]
    if not ((label == 0) | (label == 1)).all():
        raise _BadFieldError
    return Records(label.astype(np.float32), np.stack(integers, axis=1), np.stack(categories, axis=1))


def _hexadecimal(column: pa.ChunkedArray) -> np.ndarray:
    """Eight hexadecimal digits as a number, eight digits at a time in one 64-bit word."""
    parts = []
    for array in column.chunks:
        text = np.frombuffer(array.buffers()[1], np.uint8, 8 * len(array), 8 * array.offset)
        there = array.is_valid().to_numpy(zero_copy_only=False)
        if not (_HEX[text].view(np.uint64)[there] == _ALL).all():
            raise _BadFieldError
        x = text.view(">u8").astype(np.uint64)
        x = (x & np.uint64(0x0F0F0F0F0F0F0F0F)) + np.uint64(9) * ((x >> np.uint64(6)) & _ALL)
        for shift, keep in ((4, 0x00FF00FF00FF00FF), (8, 0x0000FFFF0000FFFF), (16, 0x00000000FFFFFFFF)):
            x = (x | (x >> np.uint64(shift))) & np.uint64(keep)
        parts.append(np.where(there, x.astype(np.int64), MISSING))
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def _sift(block: bytes, start: int, run: _Run) -> bytes:
    """The good lines; the others go to the quarantine with the byte or row at which they begin."""
    good = []
    for line in block.splitlines(keepends=True):
        text = line.rstrip(b"\n")
        if _RECORD.fullmatch(text):
            good.append(line)
            run.good()
        else:
            run.bad(*_fault(text), f"{run.path.name}, {run.unit} {start}", text.decode("utf-8", "replace"))
        start += len(line) if run.unit == "byte" else 1
    return b"".join(good)


def _fault(line: bytes) -> tuple[str, str]:
    """What is wrong with a line, in one word and in many."""
    fields = line.rstrip(b"\r").split(b"\t")
    if len(fields) != len(NAMES):
        return "fields", f"a record must have {len(NAMES)} fields, {len(fields)} came"
    for name, field in zip(NAMES, fields, strict=True):
        text = field.decode("utf-8", "replace")
        if name == "label" and field not in (b"0", b"1"):
            return "label", f"a label must be 0 or 1, {text!r} came"
        if name[0] == "I" and not re.fullmatch(rb"(-?\d{1,18})?", field):
            return "number", f"a count must be a whole number or empty, {text!r} came in {name}"
        if name[0] == "C" and not re.fullmatch(rb"([0-9a-fA-F]{8})?", field):
            return "category", f"a category must be 8 hexadecimal digits or empty, {text!r} came in {name}"
    return "record", "a record must be one line of tab-separated fields"


def _read_parquet(path: Path, rows: int, start: int, aside: Quarantine) -> Iterator[Chunk]:
    """Rows of a Parquet file, written as text and read like a text file: one way to be bad, one to be hashed."""
    run, parts, got = _Run(path, aside), [], 0
    for table, first in _pieces(path, start):
        while len(table):
            piece = table.slice(0, rows - got)
            table, first = table.slice(len(piece)), first + len(piece)
            records = _parse_rows(piece, first - len(piece), run)
            got += len(records.label)
            parts.append(records)
            if got == rows:
                run.set_aside()
                yield _chunk(parts, first)
                parts, got = [], 0
        start = first
    if parts:
        run.set_aside()
        yield _chunk(parts, start)


def _pieces(path: Path, start: int) -> Iterator[tuple[pa.Table, int]]:
    """Row groups from row `start` on, each with the number of its first row."""
    try:
        file = pq.ParquetFile(path)
    except (OSError, pa.ArrowInvalid) as error:
        raise ValueError(f"The file {path} must be a whole Parquet file: {error}. Get it again.") from error
    with file:
        if tuple(file.schema_arrow.names) != NAMES:
            raise ValueError(
                f"The schema of {path.name} must be label, I1 to I13, C1 to C26: "
                f"{', '.join(file.schema_arrow.names[:4])}, ... came. Choose and name the columns so."
            )
        first = 0
        for group in range(file.num_row_groups):
            count = file.metadata.row_group(group).num_rows
            skip = min(max(start - first, 0), count)
            if skip < count:
                yield file.read_row_group(group).slice(skip), first + skip
            first += count


def _parse_rows(table: pa.Table, first: int, run: _Run) -> Records:
    plain = pa.table([column.cast(pa.string()) for column in table.columns], NAMES)
    try:
        sink = pa.BufferOutputStream()
        form = csv.WriteOptions(include_header=False, delimiter="\t", quoting_style="none")
        csv.write_csv(plain, sink, form)
        block = sink.getvalue().to_pybytes()
    except pa.ArrowInvalid:  # a tab, quote or line end inside a field, which is bad in any case
        rows = zip(*(column.to_pylist() for column in plain.columns), strict=True)
        block = "".join("\t".join(re.sub(r"\s", " ", field or "") for field in row) + "\n" for row in rows).encode()
    return _parse_lines(block, first, run)


def _chunk(parts: list[Records], position: int) -> Chunk:
    records = Records(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    return Chunk(encode(records), y=records.label, position=position)
