"""Bad records in, a file of them with their reasons out, and how many there were of each kind."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

LONGEST = 2000  # characters kept of a record


class Quarantine:
    """Records that were set aside. They go to the file when `lines` are taken, so that a crash can
    be undone.

    >>> quarantine = Quarantine()
    >>> quarantine.add("number", "the count in column 3 is 'x'", where="train.txt:17", record="0\\tx")
    >>> dict(quarantine.counts), len(quarantine.take_lines())
    ({'number': 1}, 1)
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = None if path is None else Path(path)
        self.counts: Counter[str] = Counter()
        self._lines: list[str] = []

    def add(
        self, kind: str, reason: str, *, where: Any = None, record: Any = None, count: int = 1
    ) -> None:
        """Set a record aside: its kind of fault, the reason in words, where it stood and what it
        was.

        count : how many records the line stands for.
        """
        self.counts[kind] += count
        kept = record if isinstance(record, int | float | None) else str(record)[:LONGEST]
        self._lines.append(
            json.dumps({"kind": kind, "reason": reason, "where": where, "record": kept}) + "\n"
        )

    def take_lines(self) -> list[str]:
        """The lines that are not in the file yet, which the caller now owns."""
        lines, self._lines = self._lines, []
        return lines

    def give_back(self, lines: list[str]) -> None:
        """Lines that could not be written after all."""
        self._lines = lines + self._lines

    def write(self) -> None:
        """Append what is new to the file."""
        if self.path is not None and self._lines:
            with self.path.open("a") as file:
                file.writelines(self.take_lines())
