"""The paper's online experiment: predict each chunk, then learn from its bags, in one pass.

What is in the store is not made again, and several processes may share it. The learning rate is
chosen by the average log loss of the predictions, as in the paper, which takes labels: over all
chunks and repetitions when `tuning` is 0, else over the first `tuning` chunks of repetition 0. No
smoothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from hashlib import sha256
from itertools import islice, product
from typing import Any

import numpy as np

import unbag
from unbag._rules import broken
from unbag.datasets import Chunk, read_clicks, read_criteo
from unbag.lab._online_plan import NETWORKS, Cell, OnlinePlan, OnlineRun
from unbag.lab._online_store import HISTORY, OnlineStore, best_rate
from unbag.lab._plan import identity_of
from unbag.stream import StreamLearner

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
