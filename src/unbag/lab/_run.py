"""The runs of a plan that a store lacks are made and stored; learning rates x repetitions train
together."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, closing, nullcontext
from typing import Any, NamedTuple

import numpy as np

import unbag
from unbag._progress import Progress as Shown
from unbag._progress import terminal_bar, whom_to_inform
from unbag.lab import _choice, _variance
from unbag.lab._convolution import in_torch
from unbag.lab._methods import METHODS
from unbag.lab._plan import Group, Plan, RunSettings
from unbag.lab._store import HISTORY, RunStore
from unbag.lab._tasks import TASKS, build, data_of, trivial_loss, trivial_score
from unbag.training import Run, sweep

MICROBATCH = {"cnn": 16}
"""Images whose activations are in memory at once, so that they stay in the cache, where JAX
convolves: see benchmarks/cnn.py. PyTorch has its own blocks."""

Progress = Callable[[Group, int], None]
"""Called after each epoch of a group with the group and the number of runs in it."""


class Job(NamedTuple):
    """What a group lacks, as few rectangles of rates x repetitions, and the claim on it."""

    group: Group
    parts: list[Group]
    claim: ExitStack


Engine = Callable[[Iterator[Job], Progress], Generator[tuple[Job, list[dict[str, Any]]]]]
"""What makes runs: takes jobs as it has room for them, and gives each back with its rows when it is
finished."""


def run_plan(
    plan: Plan,
    store: RunStore,
    *,
    progress: bool = False,
    patience: float = 2.0,
    engine: Engine | None = None,
) -> int:
    """Make the runs of a plan that the store lacks.

    Several processes may do so at once: each works on groups that no other has claimed. It returns
    when the whole plan is done, so it may wait for another process.

    Parameters
    ----------
    plan : Plan
        Which runs.
    store : RunStore
        Where they go.
    progress : bool
        Show a progress bar on stderr.
    patience : float
        Seconds until it looks again whether another process is done.
    engine : callable, optional
        What trains, as `RayEngine`; by default this process does.

    Returns
    -------
    int
        How many runs this process made.
    """
    plan.check_data()
    store.check_data(plan.task, len(data_of(plan.task).y))
    if TASKS[plan.task].kind == "binary":
        _variance.measure(plan.task, data_of(plan.task), store)
    bar = terminal_bar(plan.task) if progress else nullcontext(whom_to_inform())
    with store.in_use(), bar as shown:
        tally = _Tally(plan, store, shown)
        made = _run(plan, store, engine or in_process, patience, tally)
        if plan.holdout:
            _choice.keep_choices(plan, store)
    store.compact()
    return made


class _Tally:
    """How much of a plan is done, by epochs of runs; other processes may do some of it."""

    def __init__(self, plan: Plan, store: RunStore, shown: Shown | None) -> None:
        self.plan, self.store, self.shown, self.done = plan, store, shown, 0
        self.recount()

    def after_epoch(self, group: Group, runs: int) -> None:
        """So many runs of a group have done an epoch."""
        self.done += runs
        if self.shown is not None:
            self.shown(self.done, self.total, f"{self.plan.task}: {group.title}")

    def recount(self) -> None:
        """Take from the store what is still missing."""
        missing = sum(len(left) for _, left in _missing(self.plan, self.store))
        self.total = self.done + missing * self.plan.epochs


def _run(plan: Plan, store: RunStore, engine: Engine, patience: float, tally: _Tally) -> int:
    made = 0
    while missing := _missing(plan, store):
        before = made
        with (
            ExitStack() as claims,
            closing(engine(_claimed(missing, store, claims), tally.after_epoch)) as finished,
        ):
            for job, rows in finished:
                store.add(rows)
                job.claim.close()
                made += len(rows)
                tally.recount()
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
        left = []
        if claim.enter_context(store.claim(group.identity())):
            left = _left(group, store.finished())
        if left:
            yield Job(group, _rectangles(group, left), claim)
        else:
            claim.close()


def in_process(
    jobs: Iterator[Job], progress: Progress
) -> Generator[tuple[Job, list[dict[str, Any]]]]:
    """The engine that needs nothing: one job after the other, here."""
    for job in jobs:
        yield job, [row for part in job.parts for row in train_group(part, progress)]


def _missing(plan: Plan, store: RunStore) -> list[tuple[Group, list[RunSettings]]]:
    finished = store.finished()
    return [(group, left) for group in plan.groups() if (left := _left(group, finished))]


def _left(group: Group, finished: set[RunSettings]) -> list[RunSettings]:
    return [run for run in group.runs() if run not in finished]


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


def train_group(group: Group, progress: Progress | None = None) -> list[dict[str, Any]]:
    """Train a group of runs; one row of the store for each."""
    common, task, data = group.common, TASKS[group.common.task], data_of(group.common.task)
    rows, seeds = common.rows or len(data.y), group.repetitions
    options: dict[str, Any] = {"rows": rows, "holdout": common.holdout}
    parts = [_choice.drawn(task.name, common.size, seed, **options) for seed in seeds]
    starts: dict[int, Any] = dict.fromkeys(seeds)  # none: the usual initialisation
    if common.start == "trivial":
        for seed, (learn, _) in zip(seeds, parts, strict=True):
            starts[seed] = trivial_score(data, learn.prior, task.kind)

    def network(seed: int) -> Any:
        start = starts[seed]
        return build(common.model, data, outputs=task.outputs, key=seed, start=start)

    def after_epoch(*_: Any) -> None:
        if progress:
            progress(group, len(group.rates) * len(seeds))

    start = time.perf_counter()
    runs = sweep(
        network,
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
        microbatch=None if in_torch() else MICROBATCH.get(common.model),
        progress=after_epoch,
    )
    seconds = (time.perf_counter() - start) / len(group.rates) / len(seeds)
    return _rows(group, runs, parts, seconds)


def _rows(
    group: Group, runs: list[list[Run]], parts: Sequence[tuple[Any, Any]], seconds: float
) -> list[dict[str, Any]]:
    """One row of the store for each run. parts : the bags to learn from and those held out, of each
    repetition. seconds : that a run took."""
    common, task, data, made = (
        group.common,
        TASKS[group.common.task],
        data_of(group.common.task),
        [],
    )
    for seed, (learn, held), by_rate in zip(group.repetitions, parts, runs, strict=True):
        facts = {"bags": len(learn), "seconds": seconds, "version": unbag.__version__}
        facts["trivial"] = trivial_loss(data, learn.prior, task.kind)
        for rate, run in zip(group.rates, by_rate, strict=True):
            row = _row(common._replace(rate=rate, repetition=seed), run, facts)
            if held is not None:  # for the choice among runs
                row["scores"] = np.asarray(run.model(data.X[held.rows]))
            made.append(row)
    return made


def _row(settings: RunSettings, run: Run, facts: dict[str, Any]) -> dict[str, Any]:
    names = [name for name in HISTORY if name in run.history]
    history = {name: run.history[name].astype(np.float32) for name in names}
    return {**settings._asdict(), **facts, "diverged": run.diverged, **history}
