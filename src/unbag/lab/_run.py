"""A plan and a store in, the missing runs made and stored: learning rates x repetitions train
together."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, closing
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

import unbag
from unbag.bags import Bags, Kind
from unbag.datasets import Dataset
from unbag.lab import _choice, _variance
from unbag.lab._methods import METHODS
from unbag.lab._plan import Group, Plan, RunSettings
from unbag.lab._store import HISTORY, RunStore
from unbag.lab._tasks import TASKS, build, data_of, trivial_score
from unbag.methods import usual_loss
from unbag.training import Run, sweep

MICROBATCH = {"cnn": 16}
"""Images whose activations are in memory at once, so that they stay in the cache: see benchmarks/cnn.py."""

Told = Callable[[Group, int], None]
"""Called after each epoch of a group, as told(group, number of runs in it)."""


def _nobody(*progress: Any) -> None:
    """What is called after each epoch when nobody wants to know."""


class Job(NamedTuple):
    """What a group lacks, as few rectangles of rates x repetitions, and the claim on it."""

    group: Group
    parts: list[Group]
    claim: ExitStack


Engine = Callable[[Iterator[Job], Told], Generator[tuple[Job, list[dict[str, Any]]]]]
"""What makes runs: takes jobs as it has room for them, gives each back with its rows when it is finished."""


def run_plan(
    plan: Plan,
    store: RunStore,
    *,
    progress: bool = False,
    patience: float = 2.0,
    engine: Engine | None = None,
) -> int:
    """Make the runs of a plan that the store lacks; returns how many this process made.

    Several processes may do so at once: each works on groups that no other has claimed. It returns
    when the whole plan is done, so it may wait for another process (looking again every `patience`
    seconds). The engine trains here unless it is another one, as `unbag.lab.RayEngine`.
    """
    engine = engine or in_process
    plan.check_data()
    store.check_data(plan.task, len(data_of(plan.task).y))
    if TASKS[plan.task].kind == "binary":
        _variance.measure(plan.task, data_of(plan.task), store)
    make = {True: _show, False: _run}[progress]
    with store.in_use():
        made = make(plan, store, engine, patience)
        if plan.holdout:
            _choice.keep_choices(plan, store)
    store.compact()
    return made


def _show(plan: Plan, store: RunStore, engine: Engine, patience: float) -> int:
    """The same with a progress bar."""
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:3.0f}%"))
    times = (TimeElapsedColumn(), TextColumn("done,"), TimeRemainingColumn(), TextColumn("left"))
    with Progress(
        *columns, *times, console=Console(stderr=True), speed_estimate_period=1800
    ) as bar:
        work = bar.add_task(
            plan.task, total=sum(len(left) for _, left in _missing(plan, store)) * plan.epochs
        )

        def told(group: Group, runs: int) -> None:
            bar.update(work, advance=runs, description=group.title)

        def recount() -> None:
            missing = sum(len(left) for _, left in _missing(plan, store)) * plan.epochs
            bar.update(work, total=bar.tasks[0].completed + missing)

        return _run(plan, store, engine, patience, told, recount)


def _run(
    plan: Plan,
    store: RunStore,
    engine: Engine,
    patience: float,
    told: Told = _nobody,
    recount: Callable[[], None] = _nobody,
) -> int:
    made = 0
    while missing := _missing(plan, store):
        before = made
        with (
            ExitStack() as claims,
            closing(engine(_claimed(missing, store, claims), told)) as finished,
        ):
            for job, rows in finished:
                store.add(job.group, rows)
                job.claim.close()
                made += len(rows)
                recount()
        if made == before:
            time.sleep(patience)
    return made


def _claimed(
    missing: Sequence[tuple[Group, Any]], store: RunStore, claims: ExitStack
) -> Iterator[Job]:
    """What no other process works on, claimed when it is asked for; all claims end with
    `claims`."""
    for group, _ in missing:
        claim = claims.enter_context(ExitStack())
        mine = claim.enter_context(store.claim(group.identity()))
        left = _left(group, store.finished()) if mine else []
        if left:
            yield Job(group, _rectangles(group, left), claim)
        else:
            claim.close()


def in_process(jobs: Iterator[Job], told: Told) -> Generator[tuple[Job, list[dict[str, Any]]]]:
    """The engine that needs nothing: one job after the other, here."""
    for job in jobs:
        yield job, [row for part in job.parts for row in train_group(part, told)]


def _missing(plan: Plan, store: RunStore) -> list[tuple[Group, list[RunSettings]]]:
    finished = store.finished()
    return [(group, left) for group in plan.groups() if (left := _left(group, finished))]


def _left(group: Group, finished: set[str]) -> list[RunSettings]:
    return [run for run in group.runs() if run.identity() not in finished]


def _rectangles(group: Group, left: Sequence[RunSettings]) -> list[Group]:
    """Repetitions that lack the same rates go together."""
    lacking: dict[tuple[float, ...], list[int]] = {}
    for repetition in group.repetitions:
        rates = tuple(run.rate for run in left if run.repetition == repetition)
        if rates:
            lacking.setdefault(rates, []).append(repetition)
    return [
        Group(group.common, rates, tuple(repetitions)) for rates, repetitions in lacking.items()
    ]


def train_group(group: Group, told: Told = _nobody) -> list[dict[str, Any]]:
    """Train a group of runs; one row of the store for each."""
    common, task, data = group.common, TASKS[group.common.task], data_of(group.common.task)
    rows, seeds = common.rows or len(data.y), group.repetitions
    parts = [
        _choice.drawn(task.name, common.size, seed, rows=rows, holdout=common.holdout)
        for seed in seeds
    ]
    trivial = {
        s: trivial_score(data, learn.prior, task.kind)
        for s, (learn, _) in zip(seeds, parts, strict=True)
    }
    start = time.perf_counter()
    runs = sweep(
        lambda seed: build(
            common.model,
            data,
            outputs=task.outputs,
            key=seed,
            start=trivial[seed] if common.start == "trivial" else None,
        ),
        [learn for learn, _ in parts],
        METHODS[common.method],
        common.loss,
        learning_rates=group.rates,
        seeds=seeds,
        epochs=common.epochs,
        batch=common.batch,
        smoothing=common.smoothing,
        held_out=[held for _, held in parts if held is not None] or None,
        test=(data.X_test, data.y_test),
        X=data.X[:rows],
        microbatch=MICROBATCH.get(common.model),
        progress=lambda epoch, seen: told(group, len(group.rates) * len(group.repetitions)),
    )
    seconds = (time.perf_counter() - start) / len(group.rates) / len(seeds)
    made = []
    for seed, (learn, held), by_rate in zip(seeds, parts, runs, strict=True):
        facts = {
            "trivial": _trivial_loss(trivial[seed], data, task.kind),
            "bags": len(learn),
            "seconds": seconds,
        }
        for rate, run in zip(group.rates, by_rate, strict=True):
            settings = common._replace(rate=rate, repetition=seed)
            made.append(
                _row(
                    settings, run, facts | {"version": unbag.__version__} | _scores(run, data, held)
                )
            )
    return made


def _trivial_loss(score: Any, data: Dataset, kind: Kind) -> float:
    """The test loss of a model without features."""
    alike = np.broadcast_to(score, (len(data.y_test), *np.shape(score)))
    alike = alike if data.offset_test is None else alike + data.offset_test
    return float(np.mean(usual_loss("any", kind).value(alike, data.y_test, kind=kind)))


def _scores(run: Run, data: Dataset, held: Bags | None) -> dict[str, Any]:
    """What a run says of its held-out bags, for the choice among runs."""
    return {} if held is None else {"scores": np.asarray(run.model(data.X[held.rows]))}


def _row(settings: RunSettings, run: Run, facts: dict[str, Any]) -> dict[str, Any]:
    history = {
        name: run.history[name].astype(np.float32) for name in HISTORY if name in run.history
    }
    return {
        "run": settings.identity(),
        **settings._asdict(),
        **facts,
        "diverged": run.diverged,
        **history,
    }
