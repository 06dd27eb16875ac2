"""Lines or rows in, records out; the bad ones are found, and many in a row are a new schema.

A record is a label, 13 whole numbers and 26 categories of 8 hexadecimal digits, tab-separated; an
empty field is missing.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

from unbag._rules import broken
from unbag.datasets._criteo_records import CATEGORIES, INTEGERS, MISSING, NAMES, Records
from unbag.datasets._quarantine import Quarantine

IN_A_ROW = 100  # bad records, one after the other, are a new schema
BLOCK = 1 << 22
_HEX = np.zeros(256, bool)
_HEX[list(b"0123456789abcdefABCDEF")] = True
_ALL = np.uint64(0x0101010101010101)  # eight times true
_RECORD = re.compile(rb"[01](?:\t(?:-?\d{1,18})?){13}(?:\t(?:[0-9a-fA-F]{8})?){26}\r?")


class Faults:
    """The bad records of a chunk, and how many came in a row: many of them are a new schema."""

    def __init__(self, path: Path, aside: Quarantine) -> None:
        self.path, self.aside, self.length = path, aside, 0
        self.found: list[tuple[str, str, str, str]] = []
        self.unit = "row" if path.suffix == ".parquet" else "byte"

    def good(self) -> None:
        """A record fits, so the schema is the old one."""
        self.length = 0

    def bad(self, kind: str, reason: str, where: str, record: str) -> None:
        """A record does not fit."""
        self.found.append((kind, reason, where, record))
        self.length += 1
        if self.length >= IN_A_ROW:
            raise broken(
                f"The schema of {self.path.name} must stay the same",
                f"{IN_A_ROW} records in a row do not fit it, the last at {where} ({reason})",
                "Read the rest as another stream, or repair the export.",
            )

    def set_aside(self) -> None:
        """Give the bad records to the quarantine: a stream that is resumed will not read them
        again."""
        for kind, reason, where, record in self.found:
            self.aside.add(kind, reason, where=where, record=record)
        self.found = []


def parse_lines(block: bytes, start: int, faults: Faults) -> Records:
    """The records of whole lines; the bad ones are sifted out only where there are any."""
    try:
        records = _records(_parse(block))
        faults.good()
        return records
    except (pa.ArrowInvalid, _BadFieldError):
        good = _sift(block, start, faults)
        return (
            _records(_parse(good))
            if good
            else Records(np.zeros(0), *(np.zeros((0, n), int) for n in (13, 26)))
        )


_CONVERT = csv.ConvertOptions(
    column_types=dict(
        zip(NAMES, [pa.int8(), *[pa.int64()] * INTEGERS, *[pa.binary(8)] * CATEGORIES], strict=True)
    ),
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
    return Records(
        label.astype(np.float32), np.stack(integers, axis=1), np.stack(categories, axis=1)
    )


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
        for shift, keep in (
            (4, 0x00FF00FF00FF00FF),
            (8, 0x0000FFFF0000FFFF),
            (16, 0x00000000FFFFFFFF),
        ):
            x = (x | (x >> np.uint64(shift))) & np.uint64(keep)
        parts.append(np.where(there, x.astype(np.int64), MISSING))
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def _sift(block: bytes, start: int, faults: Faults) -> bytes:
    """The good lines; the others go to the quarantine with the byte or row at which they begin."""
    good = []
    for line in block.splitlines(keepends=True):
        text = line.rstrip(b"\n")
        if _RECORD.fullmatch(text):
            good.append(line)
            faults.good()
        else:
            faults.bad(
                *_fault(text),
                f"{faults.path.name}, {faults.unit} {start}",
                text.decode("utf-8", "replace"),
            )
        start += len(line) if faults.unit == "byte" else 1
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
            return (
                "category",
                f"a category must be 8 hexadecimal digits or empty, {text!r} came in {name}",
            )
    return "record", "a record must be one line of tab-separated fields"


def parse_rows(table: pa.Table, first: int, faults: Faults) -> Records:
    """The same of rows, which are written as text first: one way to be bad, one to be hashed."""
    plain = pa.table([column.cast(pa.string()) for column in table.columns], NAMES)
    try:
        sink = pa.BufferOutputStream()
        form = csv.WriteOptions(include_header=False, delimiter="\t", quoting_style="none")
        csv.write_csv(plain, sink, form)
        block = sink.getvalue().to_pybytes()
    except pa.ArrowInvalid:  # a tab, quote or line end inside a field, which is bad in any case
        rows = zip(*(column.to_pylist() for column in plain.columns), strict=True)
        block = "".join(
            "\t".join(re.sub(r"\s", " ", field or "") for field in row) + "\n" for row in rows
        ).encode()
    return parse_lines(block, first, faults)
