"""Criteo's Display Advertising Challenge as a stream: chunks of events from its text.

A record is a label, 13 whole numbers and 26 categories of 8 hexadecimal digits, tab-separated; an
empty field is missing. The paper leaves open how 40 boundaries make "40 buckets", and where missing
values go. Ours: 40 boundaries, evenly spaced in the logarithm from 1 to 10^7, cut the numbers into
41 buckets, and missing numbers have one more. A missing category is hashed like a value of its own.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import csv

from unbag._arrays import mix
from unbag._rules import broken
from unbag.datasets._dataset import Chunk, Quarantine
from unbag.datasets._files import Source, damaged, find

INTEGERS, CATEGORIES = 13, 26
_WHOLE = [f"I{i}" for i in range(1, INTEGERS + 1)]
_HASHED = [f"C{i}" for i in range(1, CATEGORIES + 1)]
NAMES = ("label", *_WHOLE, *_HASHED)
BOUNDARIES = np.geomspace(1, 1e7, 40)
CUTS = np.ceil(BOUNDARIES.round(6)).astype(np.int64)  # the same for whole numbers
TABLE = (  # buckets, embedding size: the paper's table, features 14 to 39
    (700, 30), (500, 30), (10000, 70), (10000, 70), (200, 22), (20, 10), (10000, 70), (400, 30),
    (10, 10), (10000, 70), (5000, 50), (10000, 70), (5000, 50), (50, 10), (5000, 53), (10000, 70),
    (10, 10), (5000, 50), (5000, 50), (10, 10), (10000, 70), (10, 10), (10, 10), (10000, 70),
    (10, 20), (10000, 70),
)  # fmt: skip
BUCKETS = (*[len(BOUNDARIES) + 2] * INTEGERS, *(buckets for buckets, _ in TABLE))
DIMENSIONS = (*[10] * INTEGERS, *(dimension for _, dimension in TABLE))
MISSING = np.iinfo(np.int64).min

IN_A_ROW = 100  # bad records, one after the other, are a new schema
BLOCK = 1 << 22
_HEX = np.zeros(256, bool)
_HEX[list(b"0123456789abcdefABCDEF")] = True
_ALL = np.uint64(0x0101010101010101)  # eight times true
_RECORD = re.compile(rb"[01](?:\t(?:-?\d{1,18})?){13}(?:\t(?:[0-9a-fA-F]{8})?){26}\r?")
_FIELDS = {  # by the first letter of a column: its form, and what is wrong when it has another
    "l": (re.compile(rb"[01]"), "label", "a label must be 0 or 1"),
    "I": (re.compile(rb"(-?\d{1,18})?"), "number", "a count must be a whole number or empty"),
    "C": (
        re.compile(rb"([0-9a-fA-F]{8})?"),
        "category",
        "a category must be 8 hexadecimal digits or empty",
    ),
}
_CONVERT = csv.ConvertOptions(
    column_types={"label": pa.int8()}
    | dict.fromkeys(_WHOLE, pa.int64())
    | dict.fromkeys(_HASHED, pa.binary(8)),
    null_values=[""],
    strings_can_be_null=True,
)
_FORM = csv.ParseOptions(delimiter="\t", quote_char=False, ignore_empty_lines=False)


class Records(NamedTuple):
    """Raw events: clicks, whole numbers, categories as 32-bit numbers; `MISSING` for empty ones."""

    label: np.ndarray
    integers: np.ndarray
    categories: np.ndarray


class _BadFieldError(Exception):
    """A field that the columns' types let through."""


class Faults:
    """The bad records of a chunk, and how many there were in a row: many of them are a new schema.

    Parameters
    ----------
    path : Path
        The file that is read.
    aside : Quarantine
        Where bad records go with their chunk.
    """

    def __init__(self, path: Path, aside: Quarantine) -> None:
        self.path, self.aside, self.length = path, aside, 0
        self.records: list[tuple[str, str, str, str]] = []

    def good(self) -> None:
        """A record fits, so the schema is the old one."""
        self.length = 0

    def bad(self, line: bytes, position: int) -> None:
        """A record does not fit."""
        kind, reason = _fault(line)
        where = f"{self.path.name}, byte {position}"
        self.records.append((kind, reason, where, line.decode("utf-8", "replace")))
        self.length += 1
        if self.length >= IN_A_ROW:
            raise broken(
                f"The schema of {self.path.name} must stay the same",
                f"{IN_A_ROW} records in a row do not fit it, the last at {where} ({reason})",
                "Read the rest as another stream, or repair the export.",
            )

    def set_aside(self) -> None:
        """Give the bad records to the quarantine: who resumes will not read them again."""
        for kind, reason, where, record in self.records:
            self.aside.add(kind, reason, where=where, record=record)
        self.records = []


def parse_lines(block: bytes, start: int, faults: Faults) -> Records:
    """The records of whole lines; the bad ones are sifted out only where there are any.

    Parameters
    ----------
    block : bytes
        The lines.
    start : int
        The byte at which they begin.
    faults : Faults
        Takes the bad ones.

    Returns
    -------
    Records
        The good ones.
    """
    try:
        records = _records(_parse(block))
        faults.good()
        return records
    except (pa.ArrowInvalid, _BadFieldError):
        good = _sift(block, start, faults)
        if good:
            return _records(_parse(good))
        return Records(np.zeros(0), np.zeros((0, INTEGERS), int), np.zeros((0, CATEGORIES), int))


def _parse(block: bytes) -> pa.Table:
    options = csv.ReadOptions(column_names=list(NAMES), block_size=BLOCK)
    return csv.read_csv(pa.BufferReader(block), options, _FORM, _CONVERT)


def _records(table: pa.Table) -> Records:
    label = table["label"].fill_null(-1).to_numpy()
    if not ((label == 0) | (label == 1)).all():
        raise _BadFieldError
    integers = [table[name].fill_null(int(MISSING)).to_numpy() for name in _WHOLE]
    categories = [_hexadecimal(table[name]) for name in _HASHED]
    return Records(
        label.astype(np.float32), np.stack(integers, axis=1), np.stack(categories, axis=1)
    )


def _hexadecimal(column: pa.ChunkedArray) -> np.ndarray:
    """Eight hexadecimal digits as a number, eight digits at a time in one 64-bit word."""
    parts = [np.zeros(0, np.int64)]
    for array in column.chunks:
        text = np.frombuffer(array.buffers()[1], np.uint8, 8 * len(array), 8 * array.offset)
        there = array.is_valid().to_numpy(zero_copy_only=False)
        if not (_HEX[text].view(np.uint64)[there] == _ALL).all():
            raise _BadFieldError
        x = text.view(">u8").astype(np.uint64)
        x = (x & np.uint64(0x0F0F0F0F0F0F0F0F)) + np.uint64(9) * ((x >> np.uint64(6)) & _ALL)
        for shift, keep in ((4, 0x00FF00FF00FF00FF), (8, 0x0000FFFF0000FFFF), (16, 0xFFFFFFFF)):
            x = (x | (x >> np.uint64(shift))) & np.uint64(keep)
        parts.append(np.where(there, x.astype(np.int64), MISSING))
    return np.concatenate(parts)


def _sift(block: bytes, start: int, faults: Faults) -> bytes:
    """The good lines; the others go to the quarantine with the byte at which they begin."""
    good = []
    for line in block.splitlines(keepends=True):
        text = line.rstrip(b"\n")
        if _RECORD.fullmatch(text):
            good.append(line)
            faults.good()
        else:
            faults.bad(text, start)
        start += len(line)
    return b"".join(good)


def _fault(line: bytes) -> tuple[str, str]:
    """What is wrong with a line, in one word and in many."""
    fields = line.rstrip(b"\r").split(b"\t")
    if len(fields) != len(NAMES):
        return "fields", f"a record must have {len(NAMES)} fields, {len(fields)} given"
    for name, field in zip(NAMES, fields, strict=True):
        form, kind, rule = _FIELDS[name[0]]
        if not form.fullmatch(field):
            given = f"{field.decode('utf-8', 'replace')!r} given"
            return kind, f"{rule}, {given}{f' in {name}' * (name != 'label')}"
    return "record", "a record must be one line of tab-separated fields"


def encode(records: Records) -> np.ndarray:
    """Bucket numbers of every feature, for `unbag.models.embedding_network(BUCKETS, DIMENSIONS)`.

    >>> missing = Records(np.zeros(1), np.full((1, 13), MISSING), np.full((1, 26), MISSING))
    >>> encode(missing)[0, :4].tolist()
    [0, 0, 0, 0]
    """
    X = np.empty((len(records.label), len(BUCKETS)), np.int32)
    bucket = 1 + np.searchsorted(CUTS, records.integers, side="right")
    X[:, :INTEGERS] = np.where(records.integers == MISSING, 0, bucket)
    feature = np.arange(INTEGERS, INTEGERS + CATEGORIES, dtype=np.uint64)
    hashed = mix(records.categories.astype(np.uint64) + (feature << np.uint64(33)))
    X[:, INTEGERS:] = hashed % np.array(BUCKETS[INTEGERS:], np.uint64)
    return X


SOURCE = Source(
    "criteo", "train.txt", "https://www.kaggle.com/c/criteo-display-ad-challenge", by_us=False
)
CITATION = "Criteo Display Advertising Challenge, Kaggle 2014"
CHUNK = 2**16


def read_criteo(
    path: str | Path | None = None,
    *,
    rows: int = CHUNK,
    start: int = 0,
    quarantine: Quarantine | None = None,
    folder: str | Path | None = None,
) -> Iterator[Chunk]:
    """Stream the events of the challenge, in the order of the file.

    The last chunk may be shorter, or empty after bad records. A bad record (a truncated line, a
    field that is no number or no category) goes to the quarantine, the stream goes on, and chunks
    are filled up with the records after it. A hundred bad records in a row are a new schema, which
    stops the stream. Bad records are set aside together with
    their chunk: those after the last chunk that was given out are met again by whoever goes on
    after it.

    Parameters
    ----------
    path : str or Path, optional
        A file of text, or of gzip (.gz). By default `criteo/train.txt`, else any `criteo/train*`,
        in the data folder.
    rows : int
        Events in a chunk; the paper takes 2^16.
    start : int
        The `position` of the chunk to go on after.
    quarantine : Quarantine, optional
        Where bad records go.
    folder : str or Path, optional
        The data folder; see `data_folder`.

    Returns
    -------
    Iterator[Chunk]
        Bucket numbers of the features, and the clicks.
    """
    path = Path(path or find(SOURCE, folder=folder, others="train*").path)
    if rows < 1:
        raise broken(
            "A chunk must have at least one row", f"{rows} given", "The paper takes 65536."
        )
    return _read(path, rows, start, Faults(path, quarantine or Quarantine()))


def _read(path: Path, rows: int, start: int, faults: Faults) -> Iterator[Chunk]:
    opener: Any = {".gz": gzip.open}.get(path.suffix, open)
    with opener(path, "rb") as file:
        file.seek(start)
        while True:
            parts, got = [], 0
            while got < rows and (block := _lines(file, rows - got, path)):
                records = parse_lines(block, start, faults)
                start, got = start + len(block), got + len(records.label)
                parts.append(records)
            if not parts:
                return
            faults.set_aside()
            yield _chunk(parts, start)


def _lines(file: IO[bytes], count: int, path: Path) -> bytes:
    """The next lines, at most so many; empty at the end."""
    try:
        return b"".join(islice(file, count))
    except (EOFError, OSError) as error:
        given = f"it breaks off or cannot be read ({error})"
        remedy = "What was read before is already out; get the file again and resume."
        raise damaged(path, "be whole", given, remedy) from error


def _chunk(parts: list[Records], position: int) -> Chunk:
    records = Records(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    return Chunk(encode(records), y=records.label, position=position)
