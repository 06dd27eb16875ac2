"""The paper's online experiment: predict each chunk, then learn from its bags, in one pass.

A plan says which runs to make, from a preset or keywords. What is in the store is not made again,
and several processes may share it. The learning rate is chosen by the average log loss of the
predictions, as in the paper, which takes labels: over all chunks and repetitions when `tuning` is
0, else over the first `tuning` chunks of repetition 0. No smoothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import lru_cache
from hashlib import sha256
from itertools import islice, product
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import pyarrow as pa

import unbag
from unbag import models
from unbag._io import whole
from unbag._rules import broken, one_of
from unbag.datasets import BUCKETS, CHUNK, DIMENSIONS, Chunk, read_clicks, read_criteo
from unbag.lab._methods import WAYS, Way
from unbag.lab._plan import as_tuple, check_counts, identity_of, shipped
from unbag.lab._store import RunFolder, schema_of
from unbag.stream import StreamLearner

GRID = tuple(float(f"{rate:.6g}") for rate in np.logspace(-7, -1, 16))
SOURCES = ("criteo", "clicks")
LEAST: dict[str, int] = {"repetitions": 1, "chunks": 0, "rows": 1, "batch": 1, "tuning": 0}


def _small_network(seed: int) -> models.Mixed:
    """Embeddings of 4 and 16 hidden units, for trying things out; drawn by NumPy, which has nothing
    to compile."""
    rng = np.random.default_rng(seed)
    shapes = [*((buckets, 4) for buckets in BUCKETS), (16, 4 * len(BUCKETS)), (1, 16)]
    drawn = [rng.normal(size=shape) / shape[-1] ** 0.5 for shape in shapes]
    *tables, first, last = (jnp.asarray(array, jnp.float32) for array in drawn)
    layers = (models.Dense(first.T, jnp.zeros(16)), models.Dense(last.T, jnp.zeros(1)))
    return models.Mixed(tuple(tables), models.Network(layers))


NETWORKS: dict[str, Callable[[int], models.Mixed]] = {
    "paper": lambda seed: models.embedding_network(BUCKETS, DIMENSIONS, key=seed),
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


PLAN, DATA = "plan.json", "data.json"
HISTORY = ("label_log_loss", "label_auc", "log_loss", "auc", "prior_of_chunk", "true_log_loss")


class OnlineStore(RunFolder):
    """A folder of finished online runs.

    Parameters
    ----------
    folder : str or Path
        It is made where it does not exist.
    """

    settings = OnlineRun
    schema = schema_of(
        OnlineRun, {"version": pa.string(), **dict.fromkeys(HISTORY, pa.list_(pa.float64()))}
    )

    def __init__(self, folder: str | Path) -> None:
        super().__init__(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._rows: dict[OnlineRun, dict[str, Any]] = {}

    def read(self, run: OnlineRun) -> dict[str, Any] | None:
        """A finished run, or None."""
        if run not in self.finished():
            return None
        if run not in self._rows:
            for row in self.runs().to_pylist():
                self._rows[OnlineRun(*(row[name] for name in OnlineRun._fields))] = row
        return self._rows[run]

    def keep_plan(self, plan: OnlinePlan) -> None:
        """Write which plan these runs belong to, so that a report needs no more than the folder."""
        with whole(self.folder / PLAN) as draft:
            draft.write_text(json.dumps(asdict(plan), indent=1) + "\n")

    def plan(self) -> OnlinePlan | None:
        """The plan that was run last, or None."""
        path, known = self.folder / PLAN, OnlinePlan.__dataclass_fields__
        fields = _read(path)
        if not fields:
            return None
        unknown = sorted(fields.keys() - known.keys())
        if unknown:
            raise broken(
                f"A plan of online runs must have the fields {', '.join(known)}",
                f"{', '.join(unknown)} given in {path}",
                "Use the unbag that wrote it, or another folder.",
            )
        fields["priors"] = tuple(fields["priors"])
        return OnlinePlan(**fields)

    def check_data(self, source: str, digest: str) -> None:
        """Refuse data other than those of the runs that are there.

        Parameters
        ----------
        source : str
            Names the data; a run's identity does not say which file it read.
        digest : str
            Anything that differs where the data differ.
        """
        path = self.folder / DATA
        known = _read(path)
        if known.get(source, digest) != digest:
            raise broken(
                "A store's online runs must come from the same data",
                f"the first chunk of {source} that there is now is not the one that "
                f"{self.folder} has runs of",
                "Use another folder.",
            )
        if source not in known:
            with whole(path) as draft:
                draft.write_text(json.dumps(known | {source: digest}, indent=1) + "\n")


def _read(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        return json.loads(path.read_text())
    except json.JSONDecodeError as error:
        raise broken(
            "What a store of online runs keeps must be JSON",
            f"{path} is not ({error})",
            "Delete it.",
        ) from error


def online_stores(folder: Path) -> list[tuple[OnlinePlan, OnlineStore]]:
    """The stores in a folder that say which plan they belong to, with the plan."""
    stores = [OnlineStore(path.parent) for path in sorted(folder.glob(f"*/{PLAN}"))]
    return [(plan, store) for store in stores if (plan := store.plan())]


def best_rate(plan: OnlinePlan, cell: Cell, store: OnlineStore) -> float | None:
    """The rate with the lowest average log loss of its predictions; None when a run is missing, or
    all diverged."""
    chunks, seeds = plan.chunks, plan.repetitions
    if plan.tuning:
        chunks, seeds = plan.tuning, 1
    losses = []
    for rate in plan.rates:
        runs = [store.read(plan.run(cell, rate, s, chunks)) for s in range(seeds)]
        if None in runs:
            return None
        losses.append(np.mean([np.mean(run["label_log_loss"]) for run in runs if run]))
    if not np.isfinite(losses).any():
        return None
    return plan.rates[int(np.nanargmin(losses))]


def finals(plan: OnlinePlan, cell: Cell, store: OnlineStore) -> list[dict[str, Any]]:
    """The runs of all repetitions at the best rate, as far as they are there."""
    rate = best_rate(plan, cell, store)
    if rate is None:
        return []
    runs = [store.read(plan.run(cell, rate, s, plan.chunks)) for s in range(plan.repetitions)]
    return [run for run in runs if run is not None]


Progress = Callable[[OnlineRun, dict[str, Any]], None]
"""Called after each chunk of a run with what was measured of it."""


def run_online(plan: OnlinePlan, store: OnlineStore, *, progress: Progress | None = None) -> int:
    """Make the runs of a plan that the store lacks; cells that another process works on are its.

    Parameters
    ----------
    plan : OnlinePlan
        Which runs.
    store : OnlineStore
        Where they go.
    progress : callable, optional
        Called after each chunk of a run.

    Returns
    -------
    int
        How many runs this process made.
    """
    source = f"{plan.source} in chunks of {plan.rows}"
    store.check_data(source, _digest(_chunk(plan.source, plan.rows, 0)))
    store.keep_plan(plan)
    made = 0
    with store.in_use():
        for cell in plan.cells():
            with store.claim(identity_of((plan, cell))) as mine:
                if mine:
                    made += sum(_make(run, store, progress) for run in _runs(plan, cell, store))
    store.compact()
    return made


def _runs(plan: OnlinePlan, cell: Cell, store: OnlineStore) -> Iterator[OnlineRun]:
    """With tuning, the rate of the last runs is known when the first are in the store."""
    rates, repetitions = plan.rates, range(plan.repetitions)
    if plan.tuning:
        yield from (plan.run(cell, rate, 0, plan.tuning) for rate in rates)
        best = best_rate(plan, cell, store)
        rates = tuple(rate for rate in (best,) if rate is not None)
    yield from (plan.run(cell, r, s, plan.chunks) for r, s in product(rates, repetitions))


def _make(run: OnlineRun, store: OnlineStore, progress: Progress | None) -> int:
    if store.read(run) is not None:
        return 0
    fields = ("method", "loss", "rate", "size", "batch", "prior")
    options: dict[str, Any] = {name: getattr(run, name) for name in fields}
    learner = StreamLearner(NETWORKS[run.model](run.repetition), seed=run.repetition, **options)
    history: dict[str, list[float]] = {name: [] for name in HISTORY}
    for chunk in islice(_chunks(run.source, run.rows), run.chunks or None):
        if chunk.y is None or len(chunk.y) < run.rows:
            break  # the rest of a file
        row = learner.learn(chunk)
        measured = {**row, "prior_of_chunk": row.get("prior", np.nan)}  # a run's prior is a rule
        for name in HISTORY:
            history[name].append(float(measured.get(name, np.nan)))
        if progress:
            progress(run, row)
    if not history["label_log_loss"]:
        raise broken(
            f"A stream must have at least one chunk of {run.rows} events",
            f"{run.source} has fewer",
            "Make chunks smaller.",
        )
    store.add([{**run._asdict(), "version": unbag.__version__, **history}])
    return 1


def _chunks(source: str, rows: int) -> Iterator[Chunk]:
    """Chunks, the first few kept: every run gets the same ones."""
    position = 0
    while (chunk := _chunk(source, rows, position)) is not None:
        yield chunk
        position = chunk.position


@lru_cache(maxsize=32)
def _chunk(source: str, rows: int, position: int) -> Chunk | None:
    read = {"clicks": read_clicks, "criteo": read_criteo}[source]
    return next(read(rows=rows, start=position), None)


def _digest(chunk: Chunk | None) -> str:
    """A name for the events of a chunk."""
    parts = () if chunk is None else (chunk.X, chunk.y)
    return sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts)).hexdigest()[:16]
