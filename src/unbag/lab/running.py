"""A plan and a store in, the missing runs made and stored: learning rates x repetitions train together."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

import unbag
from unbag.bags import Bags
from unbag.datasets import Dataset
from unbag.lab import choosing, variance
from unbag.lab.methods import Way, objective_of
from unbag.lab.plans import Group, Plan, Settings
from unbag.lab.store import HISTORY, Store
from unbag.lab.tasks import TASKS, build, data_of, trivial_score
from unbag.training import Run, default_loss, sweep

Told = Callable[[Group, int], None]
"""Called after each epoch of a group, as told(group, number of runs in it)."""


def run_plan(plan: Plan, store: Store, *, progress: bool = False, patience: float = 2.0) -> int:
    """Make the runs of a plan that the store lacks; returns how many this process made.

    Several processes may do so at once: each works on groups that no other has claimed. It returns when the whole plan
    is done, so it may wait for another process (looking again every `patience` seconds).
    """
    plan.check_data()
    if TASKS[plan.task].kind == "binary":
        variance.measure(plan.task, data_of(plan.task), store)
    made = (
        _run(plan, store, lambda group, runs: None, lambda: None, patience)
        if not progress
        else _show(plan, store, patience)
    )
    if plan.holdout:
        choosing.keep_choices(plan, store)
    return made


def _show(plan: Plan, store: Store, patience: float) -> int:
    """The same with a progress bar."""
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:3.0f}%"))
    times = (TimeElapsedColumn(), TextColumn("done,"), TimeRemainingColumn(), TextColumn("left"))
    with Progress(*columns, *times, console=Console(stderr=True), speed_estimate_period=1800) as bar:
        work = bar.add_task(plan.task, total=sum(len(left) for _, left in _missing(plan, store)) * plan.epochs)

        def told(group: Group, runs: int) -> None:
            c = group.common
            bar.update(work, advance=runs, description=f"{c.task} {Way(c.method, c.loss)} bags of {c.size}")

        def recount() -> None:
            missing = sum(len(left) for _, left in _missing(plan, store)) * plan.epochs
            bar.update(work, total=bar.tasks[0].completed + missing)

        return _run(plan, store, told, recount, patience)


def _run(plan: Plan, store: Store, told: Told, recount: Callable[[], None], patience: float) -> int:
    made = 0
    while missing := _missing(plan, store):
        before = made
        for group, _ in missing:
            with store.claim(group) as mine:
                left = _left(group, store.finished()) if mine else []
                if left:
                    made += _make(group, left, store, told)
            recount()
        if made == before:
            time.sleep(patience)
    return made


def _missing(plan: Plan, store: Store) -> list[tuple[Group, list[Settings]]]:
    finished = store.finished()
    return [(group, left) for group in plan.groups() if (left := _left(group, finished))]


def _left(group: Group, finished: set[str]) -> list[Settings]:
    return [run for run in group.runs() if run.identity() not in finished]


def _make(group: Group, left: Sequence[Settings], store: Store, told: Told) -> int:
    """Train and store what a group lacks, as few rectangles of rates x repetitions."""
    rows = [row for part in _rectangles(group, left) for row in train_group(part, told)]
    store.add(group, rows)
    return len(rows)


def _rectangles(group: Group, left: Sequence[Settings]) -> list[Group]:
    """Repetitions that lack the same rates go together."""
    lacking: dict[tuple[float, ...], list[int]] = {}
    for repetition in group.repetitions:
        rates = tuple(run.rate for run in left if run.repetition == repetition)
        if rates:
            lacking.setdefault(rates, []).append(repetition)
    return [Group(group.common, rates, tuple(repetitions)) for rates, repetitions in lacking.items()]


def train_group(group: Group, told: Told = lambda group, runs: None) -> list[dict[str, Any]]:
    """Train a group of runs; one row of the store for each."""
    common, task, data = group.common, TASKS[group.common.task], data_of(group.common.task)
    rows = common.rows or len(data.y)
    parts = [
        choosing.drawn(task.name, common.size, seed, rows=rows, holdout=common.holdout) for seed in group.repetitions
    ]
    trivial = trivial_score(data, parts[0][0].prior, task.kind)
    start = time.perf_counter()
    runs = sweep(
        lambda seed: build(
            common.model, data, outputs=task.outputs, key=seed, start=trivial if common.start == "trivial" else None
        ),
        [learn for learn, _ in parts],
        objective_of(Way(common.method, common.loss)),
        common.loss,
        learning_rates=group.rates,
        seeds=group.repetitions,
        epochs=common.epochs,
        batch=common.batch,
        smoothing=common.smoothing,
        held_out=[held for _, held in parts if held is not None] or None,
        test=(data.X_test, data.y_test),
        X=data.X[:rows],
        progress=lambda epoch, seen: told(group, len(group.rates) * len(group.repetitions)),
    )
    seconds = (time.perf_counter() - start) / len(group.rates) / len(group.repetitions)
    alike = np.broadcast_to(trivial, (len(data.y_test), *np.shape(trivial)))
    alike = alike if data.offset_test is None else alike + data.offset_test
    usual = default_loss("any", task.kind)
    facts = {
        "trivial": float(np.mean(usual.value(alike, data.y_test, kind=task.kind))),
        "seconds": seconds,
        "version": unbag.__version__,
    }
    return [
        _row(
            common._replace(rate=rate, repetition=seed), run, {**facts, "bags": len(learn), **_scores(run, data, held)}
        )
        for seed, (learn, held), by_rate in zip(group.repetitions, parts, runs, strict=True)
        for rate, run in zip(group.rates, by_rate, strict=True)
    ]


def _scores(run: Run, data: Dataset, held: Bags | None) -> dict[str, Any]:
    """What a run says of its held-out bags, for the choice among runs."""
    return {} if held is None else {"scores": np.asarray(run.model(data.X[held.rows]))}


def _row(settings: Settings, run: Run, facts: dict[str, Any]) -> dict[str, Any]:
    history = {name: run.history[name].astype(np.float32) for name in HISTORY if name in run.history}
    return {"run": settings.identity(), **settings._asdict(), **facts, "diverged": run.diverged, **history}
