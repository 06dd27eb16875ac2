"""Criteo's Display Advertising Challenge as a stream: chunks of events from text or Parquet."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from unbag._rules import broken
from unbag.datasets._chunk import Chunk, Quarantine
from unbag.datasets._criteo_records import (
    BLOCK,
    NAMES,
    Faults,
    Records,
    encode,
    parse_lines,
    parse_rows,
)
from unbag.datasets._files import Source, damaged, data_folder, missing

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
    are filled up with the records after it. A hundred bad records in a row, or other columns in a
    Parquet file, are a new schema, which stops the stream. Bad records are set aside together with
    their chunk: those after the last chunk that was given out are met again by whoever goes on
    after it.

    Parameters
    ----------
    path : str or Path, optional
        A file: text, gzip (.gz) or Parquet (columns label, I1 to I13, C1 to C26). By default
        `criteo/train.txt`, else any `criteo/train*`, in the data folder.
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
    path = Path(path or find_criteo(folder))
    if rows < 1:
        raise broken(
            "A chunk must have at least one row", f"{rows} given", "The paper takes 65536."
        )
    faults = Faults(path, quarantine or Quarantine())
    if path.suffix == ".parquet":
        return _read_parquet(path, rows, start, faults)
    return _read_text(path, rows, start, faults)


def find_criteo(folder: str | Path | None = None) -> Path:
    """The file of the challenge in the data folder, or an excerpt of it."""
    place = data_folder(folder) / SOURCE.folder
    for path in (place / SOURCE.name, *sorted(place.glob("train*"))):
        if path.exists():
            return path
    raise FileNotFoundError(missing(SOURCE, place / SOURCE.name))


def _open(path: Path, start: int) -> IO[bytes]:
    opened = {True: gzip.open, False: open}[path.suffix == ".gz"]
    file: Any = opened(path, "rb")
    file.seek(start)
    return file


def _read_text(path: Path, rows: int, start: int, faults: Faults) -> Iterator[Chunk]:
    with _open(path, start) as file:
        lines = _Lines(file, path)
        while True:
            parts, got = [], 0
            while got < rows and (block := lines.take(rows - got)):
                records = parse_lines(block, start, faults)
                start, got = start + len(block), got + len(records.label)
                parts.append(records)
            if not parts:
                return
            faults.set_aside()
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
        cut = len(self.rest)
        if len(ends) >= count:
            cut = int(ends[count - 1]) + 1
        block, self.rest = self.rest[:cut], self.rest[cut:]
        return block

    def _ends(self) -> np.ndarray:
        return np.flatnonzero(np.frombuffer(self.rest, np.uint8) == 10)

    def _read(self) -> bytes:
        try:
            return self.file.read(BLOCK)
        except (EOFError, OSError) as error:
            given = f"it breaks off or cannot be read ({error})"
            remedy = "What was read before is already out; get the file again and resume."
            raise damaged(self.path, "be whole", given, remedy) from error


def _read_parquet(path: Path, rows: int, start: int, faults: Faults) -> Iterator[Chunk]:
    parts, got = [], 0
    for table, first in _pieces(path, start):
        while len(table):
            piece = table.slice(0, rows - got)
            table, first = table.slice(len(piece)), first + len(piece)
            records = parse_rows(piece, first - len(piece), faults)
            got += len(records.label)
            parts.append(records)
            if got == rows:
                faults.set_aside()
                yield _chunk(parts, first)
                parts, got = [], 0
        start = first
    if parts:
        faults.set_aside()
        yield _chunk(parts, start)


def _pieces(path: Path, start: int) -> Iterator[tuple[pa.Table, int]]:
    """Row groups from row `start` on, each with the number of its first row."""
    try:
        file = pq.ParquetFile(path)
    except (OSError, pa.ArrowInvalid) as error:
        raise damaged(path, "be a whole Parquet file", error, "Get it again.") from error
    with file:
        if tuple(file.schema_arrow.names) != NAMES:
            raise broken(
                f"The schema of {path.name} must be label, I1 to I13, C1 to C26",
                f"{', '.join(file.schema_arrow.names[:4])}, ... given",
                "Choose and name the columns so.",
            )
        first = 0
        for group in range(file.num_row_groups):
            count = file.metadata.row_group(group).num_rows
            skip = min(max(start - first, 0), count)
            if skip < count:
                yield file.read_row_group(group).slice(skip), first + skip
            first += count


def _chunk(parts: list[Records], position: int) -> Chunk:
    records = Records(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    return Chunk(encode(records), y=records.label, position=position)
