"""What a stream is made of: chunks of events, and the records that were set aside."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

LONGEST = 2000  # characters kept of a record that is set aside


class Chunk(NamedTuple):
    """Events that arrive together.

    Parameters
    ----------
    X : array or table
        Features, one row per event.
    y : array, optional
        Labels, to make bags of and for the truth.
    bag : array, optional
        The id of each event's bag, where the bags are given; otherwise bags are drawn at random.
    time : array, optional
        When each event happened.
    truth : array, optional
        P(y = 1 | x), where the data were made and it is known.
    position : int
        Where the source goes on after this chunk, to resume from.
    """

    X: Any
    y: np.ndarray | None = None
    bag: np.ndarray | None = None
    time: np.ndarray | None = None
    truth: np.ndarray | None = None
    position: int = 0


Chunks = Callable[[int], Iterator[Chunk]]
"""From a position (0 is the beginning) to the chunks after it, the same ones at every call."""


class Quarantine:
    """Records that were set aside, with their reasons, and how many there are of each kind.

    Whoever takes the lines writes them down, so that a crash can be undone.

    Examples
    --------
    >>> quarantine = Quarantine()
    >>> quarantine.add("number", "the count in column 3 is 'x'", where="a.txt:17", record="0\\tx")
    >>> dict(quarantine.counts), len(quarantine.take_lines())
    ({'number': 1}, 1)
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._lines: list[str] = []

    def add(
        self, kind: str, reason: str, *, where: Any = None, record: Any = None, count: int = 1
    ) -> None:
        """Set a record aside.

        Parameters
        ----------
        kind : str
            The kind of fault.
        reason : str
            The fault in words.
        where : Any, optional
            Where the record stood.
        record : Any, optional
            The record itself.
        count : int
            How many records the line stands for.
        """
        self.counts[kind] += count
        if not isinstance(record, int | float | None):
            record = str(record)[:LONGEST]
        line = {"kind": kind, "reason": reason, "where": where, "record": record}
        self._lines.append(json.dumps(line) + "\n")

    def take_lines(self) -> list[str]:
        """The lines since the last call, which the caller now owns."""
        lines, self._lines = self._lines, []
        return lines
