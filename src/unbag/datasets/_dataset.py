"""What a loader gives, as a whole or in chunks, what it sets aside, and how columns are encoded:
numbers scaled, categories one-hot.

What an encoding needs to know it takes from the training part alone.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from unbag.bags import Kind


class Dataset(NamedTuple):
    """Features and labels of the training and the test part, and what is known about them.

    Parameters
    ----------
    X, y, X_test, y_test : array
        Rows of features (or images) and their labels.
    features : tuple of str
        Names of the columns of `X`; empty for images.
    name : str
        The data set and its task, as in "mnist/even_odd".
    kind : {"binary", "histogram", "total"}
        What a bag of these labels reports; `y` is a class number for a histogram, a count for a
        total.
    classes : int
        How many classes there are; 2 for binary labels, 0 for counts.
    offset, offset_test : array, optional
        Log exposure of each row, added to the score of a count; None when every row counts once.
    truth, truth_test : array, optional
        P(y = 1 | x), or E[y | x] of a count, where the data were made and it is known.
    campaign, campaign_test : array, optional
        The campaign each row belongs to, where there are campaigns.
    citation, licence : str
        Whom to cite, and what may be done with the data.
    official : bool
        Whether these are all rows of the published files, with the published split.
    note : str
        What differs from the published data when they are not, or "".
    """

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    features: tuple[str, ...]
    name: str = ""
    kind: Kind = "binary"
    classes: int = 2
    offset: np.ndarray | None = None
    offset_test: np.ndarray | None = None
    truth: np.ndarray | None = None
    truth_test: np.ndarray | None = None
    campaign: np.ndarray | None = None
    campaign_test: np.ndarray | None = None
    citation: str = ""
    licence: str = ""
    official: bool = True
    note: str = ""


Columns = tuple[np.ndarray, np.ndarray, list[str]]
"""The columns of the training part, those of the test part, and their names."""


def scaled(column: str, train: np.ndarray, test: np.ndarray) -> Columns:
    """(x - low) / (high - low) with the range of the training part; test values may fall outside.

    >>> scaled("age", np.array([20, 30]), np.array([35]))[1].tolist()
    [[1.5]]
    """
    low, high = float(train.min()), float(train.max())
    train, test = (
        ((x.astype(np.float64) - low) / ((high - low) or 1)).astype(np.float32)[:, None]
        for x in (train, test)
    )
    return train, test, [column]


def one_hot(column: str, train: np.ndarray, test: np.ndarray) -> Columns:
    """A column of 0 and 1 for each value of the training part; a new value of the test part gets
    zeros.

    >>> one_hot("sex", np.array(["f", "m"]), np.array(["m", "x"]))[1].tolist()
    [[0.0, 1.0], [0.0, 0.0]]
    """
    values = np.unique(train)
    train, test = ((x[:, None] == values).astype(np.float32) for x in (train, test))
    return train, test, [f"{column}={value}" for value in values]


def encode_columns(
    table: Mapping[str, np.ndarray], test: np.ndarray, categories: Collection[str]
) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    """The columns of a table side by side, categories one-hot and numbers scaled.

    Parameters
    ----------
    table : mapping of str to array
        The columns in their order.
    test : array of bool
        Which rows are for testing.
    categories : collection of str
        The columns that are one-hot.

    Returns
    -------
    tuple
        X, X_test and the names of the columns.
    """
    parts = []
    for name, column in table.items():
        encode = one_hot if name in categories else scaled
        parts.append(encode(name, column[~test], column[test]))
    train, tests, names = zip(*parts, strict=True)
    return np.hstack(train), np.hstack(tests), tuple(name for group in names for name in group)


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
