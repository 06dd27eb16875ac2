"""What decides how a stream is learned, checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from unbag._rules import broken, one_of
from unbag.methods import METHODS, Method
from unbag.stream._buffer import Restated

COUNTS = ("size", "chunk", "batch", "window", "waiting", "patience", "remembered")


@dataclass(frozen=True)
class StreamSettings:
    """What decides how a stream is learned; a stream is resumed with the settings it was begun
    with.

    Parameters
    ----------
    method : str
        As in `unbag.train`.
    loss : str
        As in `unbag.train`; "" is the method's usual one.
    rate : float
        Of Adam.
    size : int
        Of the bags that labelled events are shuffled into.
    chunk : int
        Events learned together when reports come late.
    batch : int
        Events in a step.
    prior : {"chunk", "first"} or float
        "chunk" estimates it for each chunk, "first" keeps that of the first chunk, a number is the
        prior itself.
    seed : int
        Of bags and their order.
    window : int
        Chunks in the moving means and the drift.
    restated : {"replace", "refuse"}
        What is done with a report that changes before its bag was learned.
    waiting : int
        The most events, and the most reports without events, that wait.
    patience : int
        Events that arrive until a report without events is given up.
    remembered : int
        Bags that are remembered after they were learned or given up.
    source : str
        What the events come from, in your words; a stream is not resumed from another one.
    """

    method: Method = "anchored"
    loss: str = ""
    rate: float = 1e-3
    size: int = 512
    chunk: int = 2**16
    batch: int = 4096
    prior: Literal["chunk", "first"] | float = "chunk"
    seed: int = 0
    window: int = 8
    restated: Restated = "replace"
    waiting: int = 2**20
    patience: int = 2**20
    remembered: int = 2**16
    source: str = ""

    def __post_init__(self) -> None:
        one_of("A method", self.method, METHODS)
        for name in COUNTS:
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                rule = f"A stream's {name} must be a whole number of at least 1"
                raise broken(rule, f"{value!r} given", "Change it.")
        if not self.rate > 0:
            raise broken("A learning rate must be positive", f"{self.rate} given", "Try 0.001.")
        if self.prior not in ("chunk", "first") and not (
            isinstance(self.prior, float) and 0 < self.prior < 1
        ):
            raise broken(
                "A stream's prior must be 'chunk', 'first' or a number between 0 and 1",
                f"{self.prior!r} given",
                "Use 'chunk' when the rate moves.",
            )
        if self.restated not in ("replace", "refuse"):
            raise broken(
                "Restated reports must be dealt with by 'replace' or 'refuse'",
                f"{self.restated!r} given",
                "Choose one.",
            )
