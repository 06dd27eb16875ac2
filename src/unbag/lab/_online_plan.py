"""A preset or keywords in, a checked `OnlinePlan` out: which runs of the paper's online experiment
to make."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from itertools import product
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from unbag import models
from unbag._rules import broken
from unbag.datasets import BUCKETS, CHUNK, DIMENSIONS
from unbag.lab._methods import Way

GRID = tuple(float(f"{rate:.6g}") for rate in np.logspace(-7, -1, 16))
SOURCES = ("criteo", "clicks")


def _small_network(seed: int) -> models.Embeddings:
    """Embeddings of 4 and 16 hidden units, for trying things out; drawn by NumPy, which has nothing
    to compile."""
    rng = np.random.default_rng(seed)
    draw = lambda *shape: jnp.asarray(rng.normal(size=shape) / shape[-1] ** 0.5, jnp.float32)
    tables = tuple(draw(buckets, 4) for buckets in BUCKETS)
    hidden = models.Dense(draw(16, 4 * len(BUCKETS)).T, jnp.zeros(16))
    return models.Embeddings(
        tables, models.Network((hidden, models.Dense(draw(1, 16).T, jnp.zeros(1))))
    )


NETWORKS: dict[str, Callable[[int], Any]] = {
    "paper": lambda seed: models.embedding_network(BUCKETS, DIMENSIONS, key=seed),
    "small": _small_network,
}
"""From a seed to a network; `paper` has the usual initialisation."""


class OnlineRun(NamedTuple):
    """Everything that decides how a run ends; its identity. chunks : 0 for all there are."""

    source: str
    model: str
    method: str
    loss: str
    size: int
    rate: float
    repetition: int
    chunks: int
    rows: int
    batch: int
    prior: str

    def identity(self) -> str:
        """A name for the run that depends on nothing but its settings."""
        return sha256(repr(tuple(self)).encode()).hexdigest()[:16]


class Cell(NamedTuple):
    """Runs that share all but rate and repetition: one point of a figure."""

    way: Way
    size: int
    prior: str


@dataclass(frozen=True)
class OnlinePlan:
    """Which runs to make.

    source : "criteo" (the file in the data folder) or "clicks" (made-up). model : "paper" or
        "small".
    priors : "chunk" as in the paper, "first" for a prior that stays that of the first chunk
        (GeneralUPM and EasyLLP).
    chunks : 0 for all. rows : of a chunk. tuning : chunks that choose the rate, 0 for all runs at
        all rates.
    """

    source: str = "criteo"
    model: str = "paper"
    methods: tuple[str, ...] = (
        "matching",
        "easy",
        "upm",
        "anchored:log",
        "anchored:square",
        "likelihood",
        "labels",
    )
    sizes: tuple[int, ...] = tuple(2**i for i in range(12))
    rates: tuple[float, ...] = GRID
    repetitions: int = 5
    chunks: int = 0
    rows: int = CHUNK
    batch: int = 4096
    priors: tuple[str, ...] = ("chunk", "first")
    tuning: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "methods", tuple(str(Way.named(text)) for text in self.methods))
        for thing, came, known in (
            ("source", self.source, SOURCES),
            ("model", self.model, tuple(NETWORKS)),
        ):
            if came not in known:
                raise broken(
                    f"An online plan's {thing} must be one of {', '.join(known)}",
                    f"{came!r} came",
                    "Choose.",
                )
        for name, low in (
            ("repetitions", 1),
            ("chunks", 0),
            ("rows", 1),
            ("batch", 1),
            ("tuning", 0),
        ):
            if getattr(self, name) < low:
                raise broken(
                    f"An online plan's {name} must be at least {low}",
                    f"{getattr(self, name)} came",
                    "Change it.",
                )
        if min(self.sizes, default=0) < 1 or min(self.rates, default=0) <= 0:
            raise broken(
                "Bag sizes and learning rates must be positive, and there must be some",
                f"{self.sizes} and {self.rates} came",
                "Change them.",
            )
        if max(self.sizes) * 2 > self.rows:
            raise broken(
                "A bag size must leave at least 2 bags in a chunk",
                f"bags of {max(self.sizes)} came for chunks of {self.rows}",
                "Make the bags smaller.",
            )

    def cells(self) -> Iterator[Cell]:
        """Labels, then the largest bags: that is where methods differ."""
        ways = [Way.named(text) for text in self.methods]
        yield from (Cell(way, 1, "chunk") for way in ways if way.method == "labels")
        for size, way in product(
            sorted(self.sizes, reverse=True), [way for way in ways if way.method != "labels"]
        ):
            yield Cell(way, size, "chunk")
            if "first" in self.priors and way.method in ("upm", "easy") and size == max(self.sizes):
                yield Cell(way, size, "first")

    def run(self, cell: Cell, rate: float, repetition: int, chunks: int) -> OnlineRun:
        """One run of a cell."""
        way, size, prior = cell
        return OnlineRun(
            self.source,
            self.model,
            *way,
            size,
            float(f"{rate:.6g}"),
            repetition,
            chunks,
            self.rows,
            self.batch,
            prior,
        )


PRESETS: dict[str, dict[str, Any]] = {
    "paper": {},
    "laptop": {
        "source": "clicks",
        "sizes": (64, 512, 2048),
        "rates": GRID[6:13],
        "repetitions": 3,
        "chunks": 30,
        "tuning": 8,
    },
    "smoke": {
        "source": "clicks",
        "model": "small",
        "methods": ("matching", "easy", "upm", "anchored:square", "labels"),
        "sizes": (16, 128),
        "rates": (1e-3, 1e-2),
        "repetitions": 2,
        "chunks": 3,
        "rows": 1024,
        "batch": 256,
        "tuning": 2,
    },
}


def online_preset(name: str, **changes: Any) -> OnlinePlan:
    """A shipped plan, with changes.

    >>> online_preset("laptop").sizes
    (64, 512, 2048)
    """
    if name not in PRESETS:
        raise broken(
            f"A preset must be one of {', '.join(PRESETS)}",
            f"{name!r} came",
            "Choose one of these.",
        )
    return OnlinePlan(**{**PRESETS[name], **changes})
