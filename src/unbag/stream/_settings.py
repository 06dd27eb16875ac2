"""What decides how a stream is learned, checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from unbag._rules import broken
from unbag.methods import Method, check_method
from unbag.stream._buffer import Restated


@dataclass(frozen=True)
class Settings:
    """What decides how a stream is learned; a stream is resumed with the settings it was begun
    with.

    method, loss : as in `unbag.train`; the loss "" is the method's usual one. rate : of Adam.
    size : of the bags that labelled events are shuffled into. chunk : events learned together when
        reports come late.
    batch : events in a step. prior : "chunk" estimates it for each chunk, "first" keeps that of the
        first chunk, a number is the prior itself. seed : of bags and their order. window : chunks
        in the moving means and the drift.
    restated, waiting, patience, remembered : what is done with reports and events, see
        `unbag.stream._buffer`.
    source : what the events come from, in your words; a stream is not resumed from another one.
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
        check_method(self.method)
        for name in ("size", "chunk", "batch", "window", "waiting", "patience", "remembered"):
            if not isinstance(getattr(self, name), int) or getattr(self, name) < 1:
                raise broken(
                    f"A stream's {name} must be a whole number of at least 1",
                    f"{getattr(self, name)!r} came",
                    "Change it.",
                )
        if not self.rate > 0:
            raise broken("A learning rate must be positive", f"{self.rate} came", "Try 0.001.")
        if self.prior not in ("chunk", "first") and not (
            isinstance(self.prior, float) and 0 < self.prior < 1
        ):
            raise broken(
                "A stream's prior must be 'chunk', 'first' or a number between 0 and 1",
                f"{self.prior!r} came",
                "Use 'chunk' when the rate moves.",
            )
        if self.restated not in ("replace", "refuse"):
            raise broken(
                "Restated reports must be dealt with by 'replace' or 'refuse'",
                f"{self.restated!r} came",
                "Choose one.",
            )
