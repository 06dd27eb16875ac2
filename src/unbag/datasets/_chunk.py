"""What a stream is made of: chunks of events, each with the position from which the stream goes on
after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np


class Chunk(NamedTuple):
    """Events that arrive together.

    X : features, one row per event. y : their labels, to make bags of and for the truth, or None.
    bag : the id of each event's bag, where the bags are given; otherwise bags are drawn at random.
    time : of each event, or None. truth : P(y = 1 | x), where the data were made and it is known.
    position : where the source goes on after this chunk, to resume from.
    """

    X: Any
    y: np.ndarray | None = None
    bag: np.ndarray | None = None
    time: np.ndarray | None = None
    truth: np.ndarray | None = None
    position: int = 0


Chunks = Callable[[int], Iterator[Chunk]]
"""From a position (0 is the beginning) to the chunks after it; the same chunks each time it is asked."""
