"""Plans of the paper's online experiment, from a preset or keywords: which runs to make."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from unbag import models
from unbag._rules import broken, one_of
from unbag.datasets import BUCKETS, CHUNK, DIMENSIONS
from unbag.lab._methods import WAYS, Way
from unbag.lab._plan import as_tuple, check_counts, identity_of, shipped

GRID = tuple(float(f"{rate:.6g}") for rate in np.logspace(-7, -1, 16))
SOURCES = ("criteo", "clicks")
LEAST: dict[str, int] = {"repetitions": 1, "chunks": 0, "rows": 1, "batch": 1, "tuning": 0}


def _small_network(seed: int) -> models.Embeddings:
    """Embeddings of 4 and 16 hidden units, for trying things out; drawn by NumPy, which has nothing
    to compile."""
    rng = np.random.default_rng(seed)
    shapes = [*((buckets, 4) for buckets in BUCKETS), (16, 4 * len(BUCKETS)), (1, 16)]
    drawn = [rng.normal(size=shape) / shape[-1] ** 0.5 for shape in shapes]
    *tables, first, last = (jnp.asarray(array, jnp.float32) for array in drawn)
    layers = (models.Dense(first.T, jnp.zeros(16)), models.Dense(last.T, jnp.zeros(1)))
    return models.Embeddings(tuple(tables), models.Network(layers))


def _paper_network(seed: int) -> models.Embeddings:
    return models.embedding_network(BUCKETS, DIMENSIONS, key=seed)


NETWORKS: dict[str, Callable[[int], models.Embeddings]] = {
    "paper": _paper_network,
    "small": _small_network,
}
"""From a seed to a network; `paper` has the usual initialisation."""


class OnlineRun(NamedTuple):
    """Everything that decides how a run ends; its identity.

    Parameters
    ----------
    source, model, method, loss, prior : str
        As in `OnlinePlan`.
    size, repetition, rows, batch : int
        As in `OnlinePlan`.
    rate : float
        Learning rate of Adam.
    chunks : int
        How many; 0 for all there are.
    """

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
        return identity_of(tuple(self))


class Cell(NamedTuple):
    """Runs that share all but rate and repetition: one point of a figure."""

    way: Way
    size: int
    prior: str


@dataclass(frozen=True)
class OnlinePlan:
    """Which runs to make.

    Parameters
    ----------
    source : {"criteo", "clicks"}
        The file in the data folder, or made clicks.
    model : {"paper", "small"}
        The network.
    methods : tuple of str
        "method" or "method:loss".
    sizes : tuple of int
        Of the bags.
    rates : tuple of float
        Learning rates of Adam.
    repetitions : int
        How often each run is made, each time with another initialisation.
    chunks : int
        How many; 0 for all.
    rows : int
        Events in a chunk.
    batch : int
        Events in a step.
    priors : tuple of str
        "chunk" as in the paper, "first" for a prior that stays that of the first chunk (GeneralUPM
        and EasyLLP).
    tuning : int
        Chunks that choose the rate; 0 for all runs at all rates.
    """

    source: str = "criteo"
    model: str = "paper"
    methods: tuple[str, ...] = WAYS["binary"]
    sizes: tuple[int, ...] = tuple(2**i for i in range(12))
    rates: tuple[float, ...] = GRID
    repetitions: int = 5
    chunks: int = 0
    rows: int = CHUNK
    batch: int = 4096
    priors: tuple[str, ...] = ("chunk", "first")
    tuning: int = 0

    def __post_init__(self) -> None:
        for name, kind in (("methods", str), ("sizes", int), ("rates", float)):
            object.__setattr__(self, name, as_tuple(name, getattr(self, name), kind))
        object.__setattr__(self, "methods", tuple(str(Way.named(text)) for text in self.methods))
        for thing, known in (("source", SOURCES), ("model", NETWORKS)):
            one_of(f"An online plan's {thing}", getattr(self, thing), known)
        check_counts(self, LEAST)
        if max(self.sizes) * 2 > self.rows:
            raise broken(
                "A bag size must leave at least 2 bags in a chunk",
                f"bags of {max(self.sizes)} given for chunks of {self.rows}",
                "Make the bags smaller.",
            )

    def cells(self) -> Iterator[Cell]:
        """Labels, then the largest bags: that is where methods differ."""
        ways = [Way.named(text) for text in self.methods]
        yield from (Cell(way, 1, "chunk") for way in ways if way.method == "labels")
        others, largest = [way for way in ways if way.method != "labels"], max(self.sizes)
        for size, way in product(sorted(self.sizes, reverse=True), others):
            yield Cell(way, size, "chunk")
            if "first" in self.priors and way.method in ("upm", "easy") and size == largest:
                yield Cell(way, size, "first")

    def run(self, cell: Cell, rate: float, repetition: int, chunks: int) -> OnlineRun:
        """One run of a cell.

        Parameters
        ----------
        cell : Cell
            Method, bag size and prior.
        rate : float
            Learning rate of Adam.
        repetition, chunks : int
            Which repetition, and how many chunks.
        """
        (method, loss), size, prior = cell
        own = (method, loss, size, float(f"{rate:.6g}"), repetition, chunks)
        return OnlineRun(self.source, self.model, *own, self.rows, self.batch, prior)


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

    Parameters
    ----------
    name : {"paper", "laptop", "smoke"}
        Which plan.
    **changes : Any
        Fields of `OnlinePlan`.

    >>> online_preset("laptop").sizes
    (64, 512, 2048)
    """
    return OnlinePlan(**{**shipped(PRESETS, name), **changes})
