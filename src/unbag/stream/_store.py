"""Events with their scores in, Arrow files out, and back; a file of which little still waits is
written anew.

A file that a checkpoint refers to is never changed: what is written anew gets another name, and the
old file is only noted as freed, until the next checkpoint no longer refers to it. All others go at
once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

Name = int | str


@dataclass
class File:
    """A file of events: its rows, how many of them still wait, how often it was written anew, and
    the bags in it."""

    rows: int
    left: int
    version: int = 0
    bags: dict[Name, int] = field(default_factory=dict)  # those that wait, with their numbers


class Store:
    """The files in which events wait, oldest first; `waiting` is how many events that are."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.last, self.waiting = folder, 0, 0
        self.files: dict[int, File] = {}
        self.fresh: dict[Path, None] = {}  # files that were made since the last checkpoint
        self.freed: list[Path] = []  # files that only the last checkpoint refers to
        self.shape: tuple[int, ...] = ()  # of one event's features

    def path(self, number: int) -> Path:
        """A file of events, as it was last written."""
        version = self.files[number].version
        return self.folder / f"events-{number:08d}{f'-{version}' if version else ''}.arrow"

    def write(self, X: np.ndarray, score: np.ndarray, number: np.ndarray) -> None:
        """Make a file of events, which is then the last one. number : of each event's bag."""
        flat, self.shape = X.reshape(len(X), -1), X.shape[1:]
        table = pa.table(
            {
                "X": pa.FixedSizeListArray.from_arrays(pa.array(flat.ravel()), flat.shape[1]),
                "score": score.astype(np.float32),
                "bag": number.astype(np.int64),
            }
        )
        self.files[self.last + 1] = File(len(X), len(X))
        try:
            self._put(self.last + 1, table)
        except OSError:
            del self.files[self.last + 1]
            raise
        self.last += 1
        self.waiting += len(X)

    def _put(self, number: int, table: pa.Table) -> None:
        path = self.path(number)
        try:
            with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
                writer.write_table(table)
        except OSError:
            path.unlink(missing_ok=True)
            raise
        self.fresh[path] = None

    def _table(self, number: int) -> pa.Table:
        with pa.memory_map(str(self.path(number))) as source:
            return pa.ipc.open_file(source).read_all()

    def read(self, numbers: list[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Features, score and bag number of the events in some files."""
        tables = [self._table(number) for number in numbers]
        X = [
            table["X"].combine_chunks().flatten().to_numpy().reshape(len(table), -1)
            for table in tables
        ]
        score, bag = (
            np.concatenate([table[name].to_numpy() for table in tables])
            for name in ("score", "bag")
        )
        return np.concatenate(X).reshape(-1, *self.shape), score, bag

    def release(self, number: int, name: Name, count: int) -> None:
        """The events of a bag in a file wait no more."""
        self.files[number].left -= count
        self.files[number].bags.pop(name)
        self.waiting -= count

    def shrink(self, number: int) -> None:
        """Let a file go of which nothing waits any more; write it anew, in the same order, when
        less than half does."""
        file, old = self.files[number], self.path(number)
        if 2 * file.left >= file.rows:
            return
        if file.left == 0:
            del self.files[number]
        elif not self._rewrite(number, file):
            return
        if old in self.fresh:
            del self.fresh[old]
            old.unlink()
        else:
            self.freed.append(old)

    def _rewrite(self, number: int, file: File) -> bool:
        table = self._table(number)
        waits = np.isin(table["bag"].to_numpy(), list(file.bags.values()))
        file.version += 1
        try:
            self._put(number, table.filter(pa.array(waits)))
        except OSError:  # no room: the old file serves as well
            file.version -= 1
            return False
        file.rows = file.left
        return True

    def checkpointed(self) -> None:
        """There is a new checkpoint: remove what only the one before referred to."""
        for path in self.freed:
            path.unlink(missing_ok=True)
        self.fresh, self.freed = {}, []

    def manifest(self) -> dict[str, Any]:
        """Everything but the files and their bags, for a checkpoint."""
        rows = [
            [number, [file.rows, file.left, file.version]] for number, file in self.files.items()
        ]
        return {"rows": rows, "shape": list(self.shape)}

    def restore(self, manifest: dict[str, Any], last: int) -> None:
        """Go back to a manifest; files that came after it are removed."""
        self.files = {number: File(*rows) for number, rows in manifest["rows"]}
        self.shape, self.last = tuple(manifest["shape"]), last
        self.waiting = sum(file.left for file in self.files.values())
        known = {self.path(number) for number in self.files}
        for path in self.folder.glob("events-*.arrow"):
            if path not in known:
                path.unlink()
