"""A plan in, the paper's online experiment out: predict each chunk, then learn from its bags, one
pass.

What is in the store is not made again, and several processes may share it. The learning rate is
chosen by the average log loss of the predictions, as in the paper, which takes labels: over all
chunks and repetitions when `tuning` is 0, else over the first `tuning` chunks of repetition 0. No
smoothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from hashlib import sha256
from itertools import islice
from typing import Any

import numpy as np

from unbag._rules import broken
from unbag.datasets import Chunk, read_clicks, read_criteo
from unbag.lab._online_plan import NETWORKS, Cell, OnlinePlan, OnlineRun
from unbag.lab._online_store import OnlineStore
from unbag.stream import StreamLearner

HISTORY = ("label_log_loss", "label_auc", "log_loss", "auc", "prior", "true_log_loss")


def run_online(plan: OnlinePlan, store: OnlineStore, *, told: Any = None) -> int:
    """Make the runs of a plan that the store lacks; returns how many. Cells that another process
    works on are its."""
    store.check_data(
        f"{plan.source} in chunks of {plan.rows}", _told(_chunk(plan.source, plan.rows, 0))
    )
    store.keep_plan(plan)
    made = 0
    with store.in_use():
        for cell in plan.cells():
            with store.claim(sha256(repr((plan, cell)).encode()).hexdigest()[:16]) as mine:
                if mine:
                    made += sum(_make(run, store, told) for run in _runs(plan, cell, store))
    store.compact()
    return made


def _runs(plan: OnlinePlan, cell: Cell, store: OnlineStore) -> Iterator[OnlineRun]:
    if not plan.tuning:
        yield from (
            plan.run(cell, rate, s, plan.chunks)
            for rate in plan.rates
            for s in range(plan.repetitions)
        )
        return
    yield from (plan.run(cell, rate, 0, plan.tuning) for rate in plan.rates)
    rate = best_rate(plan, cell, store)
    yield from (
        plan.run(cell, rate, s, plan.chunks) for s in range(plan.repetitions) if rate is not None
    )


def best_rate(plan: OnlinePlan, cell: Cell, store: OnlineStore) -> float | None:
    """The rate with the lowest average log loss of its predictions; None when a run is missing, or
    all diverged."""
    chunks, seeds = (plan.tuning, 1) if plan.tuning else (plan.chunks, plan.repetitions)
    runs = [
        [store.read(plan.run(cell, rate, s, chunks)) for s in range(seeds)] for rate in plan.rates
    ]
    if any(run is None for of_rate in runs for run in of_rate):
        return None
    loss = [np.mean([np.mean(run["label_log_loss"]) for run in of_rate if run]) for of_rate in runs]
    return plan.rates[int(np.nanargmin(loss))] if np.isfinite(loss).any() else None


def finals(plan: OnlinePlan, cell: Cell, store: OnlineStore) -> list[dict[str, Any]]:
    """The runs of all repetitions at the best rate, as far as they are there."""
    rate = best_rate(plan, cell, store)
    runs = (
        [store.read(plan.run(cell, rate, s, plan.chunks)) for s in range(plan.repetitions)]
        if rate
        else []
    )
    return [run for run in runs if run is not None]


def _make(run: OnlineRun, store: OnlineStore, told: Any) -> int:
    if store.read(run) is not None:
        return 0
    network = NETWORKS[run.model](run.repetition)
    fields = {
        name: getattr(run, name) for name in ("method", "loss", "rate", "size", "batch", "prior")
    }
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
    if not history["label_log_loss"]:
        raise broken(
            f"A stream must have at least one chunk of {run.rows} events",
            f"{run.source} has fewer",
            "Make chunks smaller.",
        )
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
    read = (
        read_clicks(rows=rows, start=position)
        if source == "clicks"
        else read_criteo(rows=rows, start=position)
    )
    return next(read, None)


def _told(chunk: Chunk | None) -> str:
    """A name for the events of a chunk."""
    seen = (chunk.X, chunk.y) if chunk is not None else ()
    return sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in seen)).hexdigest()[:16]
