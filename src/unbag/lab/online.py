"""A plan in, the paper's online experiment out: predict each chunk, then learn from its bags, one pass; Parquet files.

One file holds one run, written whole or not at all; what is there is not made again, and several processes may share a
folder. The learning rate is chosen by the average log loss of the predictions, as in the paper, which takes labels:
over all chunks and repetitions when `tuning` is 0, else over the first `tuning` chunks of repetition 0. No smoothing.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import lru_cache
from hashlib import sha256
from itertools import islice, product
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import unbag
from unbag import models
from unbag.datasets import Chunk, read_clicks, read_criteo
from unbag.datasets.criteo import BUCKETS, CHUNK, DIMENSIONS
from unbag.lab.methods import Way
from unbag.lab.store import _lock
from unbag.outputs import whole
from unbag.stream import StreamLearner

HISTORY = ("label_log_loss", "label_auc", "log_loss", "auc", "prior", "true_log_loss")
GRID = tuple(float(f"{rate:.6g}") for rate in np.logspace(-7, -1, 16))
SOURCES = ("criteo", "clicks")
PLAN = "plan.json"


def _small_network(seed: int) -> models.Embeddings:
    """Embeddings of 4 and 16 hidden units, for trying things out; drawn by NumPy, which has nothing to compile."""
    rng = np.random.default_rng(seed)
    draw = lambda *shape: jnp.asarray(rng.normal(size=shape) / shape[-1] ** 0.5, jnp.float32)
    tables = tuple(draw(buckets, 4) for buckets in BUCKETS)
    hidden = models.Dense(draw(16, 4 * len(BUCKETS)).T, jnp.zeros(16))
    return models.Embeddings(tables, models.Network((hidden, models.Dense(draw(1, 16).T, jnp.zeros(1)))))


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

    source : "criteo" (the file in the data folder) or "clicks" (made-up). model : "paper" or "small".
    priors : "chunk" as in the paper, "first" for a prior that stays that of the first chunk (GeneralUPM and EasyLLP).
    chunks : 0 for all. rows : of a chunk. tuning : chunks that choose the rate, 0 for all runs at all rates.
    """

    source: str = "criteo"
    model: str = "paper"
    methods: tuple[str, ...] = ("matching", "easy", "upm", "anchored:log", "anchored:square", "likelihood", "labels")
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
        for thing, came, known in (("source", self.source, SOURCES), ("model", self.model, tuple(NETWORKS))):
            if came not in known:
                raise ValueError(f"An online plan's {thing} must be one of {', '.join(known)}: {came!r} came. Choose.")
        for name, low in (("repetitions", 1), ("chunks", 0), ("rows", 1), ("batch", 1), ("tuning", 0)):
            if getattr(self, name) < low:
                raise ValueError(
                    f"An online plan's {name} must be at least {low}: {getattr(self, name)} came. Change it."
                )
        if min(self.sizes, default=0) < 1 or min(self.rates, default=0) <= 0:
            raise ValueError(
                f"Bag sizes and learning rates must be positive, and there must be some: {self.sizes} and {self.rates} "
                "came. Change them."
            )
        if max(self.sizes) * 2 > self.rows:
            raise ValueError(
                f"A bag size must leave at least 2 bags in a chunk: bags of {max(self.sizes)} came for chunks of "
                f"{self.rows}. Make the bags smaller."
            )

    def cells(self) -> Iterator[Cell]:
        """Labels, then the largest bags: that is where methods differ."""
        ways = [Way.named(text) for text in self.methods]
        yield from (Cell(way, 1, "chunk") for way in ways if way.method == "labels")
        for size, way in product(sorted(self.sizes, reverse=True), [way for way in ways if way.method != "labels"]):
            yield Cell(way, size, "chunk")
            if "first" in self.priors and way.method in ("upm", "easy") and size == max(self.sizes):
                yield Cell(way, size, "first")

    def run(self, cell: Cell, rate: float, repetition: int, chunks: int) -> OnlineRun:
        """One run of a cell."""
        way, size, prior = cell
        return OnlineRun(
            self.source, self.model, *way, size, float(f"{rate:.6g}"), repetition, chunks, self.rows, self.batch, prior
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
        raise ValueError(f"A preset must be one of {', '.join(PRESETS)}: {name!r} came. Choose one of these.")
    return OnlinePlan(**{**PRESETS[name], **changes})


class OnlineStore:
    """A folder of finished runs, one Parquet file each."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)

    def path(self, run: OnlineRun) -> Path:
        """Where a run lies."""
        return self.folder / f"{run.source}-{run.method}-{run.loss}-k{run.size:04d}-{run.identity()}.parquet"

    def add(self, run: OnlineRun, history: dict[str, list[float]]) -> None:
        """Write a finished run."""
        row = {"run": run.identity(), **run._asdict(), "version": unbag.__version__, **history}
        path = self.path(run)
        draft = path.with_suffix(f".{os.getpid()}.draft")
        try:
            pq.write_table(pa.Table.from_pylist([row]), draft)
            with draft.open("rb") as file:
                os.fsync(file.fileno())
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)

    def keep_plan(self, plan: OnlinePlan) -> None:
        """Write which plan these runs belong to, so that a report needs no more than the folder."""
        with whole(self.folder / PLAN) as draft:
            draft.write_text(json.dumps(asdict(plan), indent=1) + "\n")

    def plan(self) -> OnlinePlan | None:
        """The plan that was run last, or None."""
        path = self.folder / PLAN
        if not path.exists():
            return None
        try:
            told = json.loads(path.read_text())
        except json.JSONDecodeError as error:
            raise ValueError(f"A plan of online runs must be JSON: {path} is not ({error}). Delete it.") from error
        fields: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in told.items()}
        unknown = sorted(fields.keys() - OnlinePlan.__dataclass_fields__.keys())
        if unknown:
            raise ValueError(
                f"A plan of online runs must have the fields {', '.join(OnlinePlan.__dataclass_fields__)}: "
                f"{', '.join(unknown)} came in {path}. Use the unbag that wrote it, or another folder."
            )
        return OnlinePlan(**fields)

    def read(self, run: OnlineRun) -> dict[str, Any] | None:
        """A finished run, or None."""
        path = self.path(run)
        try:
            return pq.read_table(path).to_pylist()[0] if path.exists() else None
        except pa.ArrowInvalid:
            warnings.warn(f"{path} cannot be read: its run counts as not done, and is made again.", stacklevel=2)
            return None

    @contextmanager
    def claim(self, plan: OnlinePlan, cell: Cell) -> Iterator[bool]:
        """Whether this process may work on a cell; others may not, until the block or the process ends."""
        name = sha256(repr((plan, cell)).encode()).hexdigest()[:16]
        (self.folder / ".claims").mkdir(exist_ok=True)
        with (self.folder / ".claims" / f"{name}.claim").open("w") as file:
            yield _lock(file)


def online_stores(folder: Path) -> list[tuple[OnlinePlan, OnlineStore]]:
    """The stores in a folder that say which plan they belong to, with the plan."""
    stores = [OnlineStore(path.parent) for path in sorted(folder.glob(f"*/{PLAN}"))]
    return [(plan, store) for store in stores if (plan := store.plan())]


def run_online(plan: OnlinePlan, store: OnlineStore, *, told: Any = None) -> int:
    """Make the runs of a plan that the store lacks; returns how many. Cells that another process works on are its."""
    made = 0
    for cell in plan.cells():
        with store.claim(plan, cell) as mine:
            made += sum(_make(run, store, told) for run in _runs(plan, cell, store, told)) if mine else 0
    return made


def _runs(plan: OnlinePlan, cell: Cell, store: OnlineStore, told: Any) -> Iterator[OnlineRun]:
    if not plan.tuning:
        yield from (plan.run(cell, rate, s, plan.chunks) for rate in plan.rates for s in range(plan.repetitions))
        return
    yield from (plan.run(cell, rate, 0, plan.tuning) for rate in plan.rates)
    rate = best_rate(plan, cell, store)
    yield from (plan.run(cell, rate, s, plan.chunks) for s in range(plan.repetitions) if rate is not None)


def best_rate(plan: OnlinePlan, cell: Cell, store: OnlineStore) -> float | None:
    """The rate with the lowest average log loss of its predictions; None when a run is missing."""
    chunks, seeds = (plan.tuning, 1) if plan.tuning else (plan.chunks, plan.repetitions)
    runs = [[store.read(plan.run(cell, rate, s, chunks)) for s in range(seeds)] for rate in plan.rates]
    if any(run is None for of_rate in runs for run in of_rate):
        return None
    loss = [np.mean([np.mean(run["label_log_loss"]) for run in of_rate if run]) for of_rate in runs]
    return plan.rates[int(np.nanargmin(loss))]


def finals(plan: OnlinePlan, cell: Cell, store: OnlineStore) -> list[dict[str, Any]]:
    """The runs of all repetitions at the best rate, as far as they are there."""
    rate = best_rate(plan, cell, store)
    runs = [store.read(plan.run(cell, rate, s, plan.chunks)) for s in range(plan.repetitions)] if rate else []
    return [run for run in runs if run is not None]


def _make(run: OnlineRun, store: OnlineStore, told: Any) -> int:
    if store.read(run) is not None:
        return 0
    network = NETWORKS[run.model](run.repetition)
    fields = {name: getattr(run, name) for name in ("method", "loss", "rate", "size", "batch", "prior")}
    learner = StreamLearner(network, seed=run.repetition, **fields)
    history: dict[str, list[float]] = {name: [] for name in HISTORY}
    for chunk in islice(_chunks(run.source, run.rows), run.chunks or None):
        if len(chunk.y if chunk.y is not None else ()) < run.rows:
            break  # the rest of a file
        row = learner.learn(chunk)
        for name in HISTORY:
            history[name].append(float(row.get(name, np.nan)))
        if told:
            told(run, row)
    store.add(run, history)
    return 1


def _chunks(source: str, rows: int) -> Iterator[Chunk]:
    """Chunks, the first few kept: every run sees the same ones."""
    position = 0
    while (chunk := _chunk(source, rows, position)) is not None:
        yield chunk
        position = chunk.position


@lru_cache(maxsize=32)
def _chunk(source: str, rows: int, position: int) -> Chunk | None:
    read = read_clicks(rows=rows, start=position) if source == "clicks" else read_criteo(rows=rows, start=position)
    return next(read, None)
