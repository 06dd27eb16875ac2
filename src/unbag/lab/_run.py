"""The runs of a plan that a store lacks are made and stored; learning rates x repetitions train
together."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, closing, nullcontext
from typing import Any, NamedTuple

import numpy as np

import unbag
from unbag._progress import terminal_bar, whom_to_inform
from unbag.lab import _choice
from unbag.lab._catalogue import METHODS, TASKS, build, data_of, trivial_loss, trivial_score
from unbag.lab._convolution import in_torch
from unbag.lab._plan import TOGETHER, Group, Plan
from unbag.lab._store import HISTORY, RunStore
from unbag.training import sweep

# Images whose activations are in memory at once, so that they stay in the cache, where JAX
# convolves: see benchmarks/cnn.py. PyTorch has its own blocks.
MICROBATCH = {"cnn": 16}

# An epoch of a CNN takes so long that its run ends when its test loss is past the best: when it has
# been RISE times the best for RISEN epochs, or has not improved for FLAT epochs and half as many as
# the best took. A loss that is not yet LEFT times the trivial one may only be slow to start: it has
# SLOW epochs in place of FLAT.
RISE, RISEN, FLAT, LEFT, SLOW = 1.25, 3, 4, 0.98, 12

AfterEpoch = Callable[[Group, int], None]
"""Called after each epoch of a group with the group and the number of runs in it."""


class Job(NamedTuple):
    """What a group lacks, as few rectangles of rates x repetitions, and the claim on it."""

    group: Group
    parts: list[Group]
    claim: ExitStack


Row = dict[str, Any]
Engine = Callable[[Iterator[Job], AfterEpoch], Generator[tuple[Job, list[Row]]]]
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
        _choice.measure_deviations(plan.task, data_of(plan.task), store)
    bar = terminal_bar(plan.task) if progress else nullcontext(whom_to_inform())
    made = done = total = 0  # runs that this process made; epochs of runs, of all processes

    def recount() -> list[Group]:
        """The groups that lack runs; other processes may make some."""
        nonlocal total
        finished = store.finished()
        lacking = [(group, group.lacking(finished)) for group in plan.groups()]
        total = done + plan.epochs * sum(part.size for _, parts in lacking for part in parts)
        return [group for group, parts in lacking if parts]

    def after_epoch(group: Group, runs: int) -> None:
        nonlocal done
        done += runs
        if shown is not None:
            shown(done, total, f"{plan.task}: {group.title}")

    with store.in_use(), bar as shown:
        while missing := recount():
            before = made
            with ExitStack() as claims:
                jobs = _claimed(missing, store, claims)
                running = claims.enter_context(closing((engine or in_process)(jobs, after_epoch)))
                for job, rows in running:
                    store.add(rows)
                    job.claim.close()
                    made += len(rows)
                    recount()
            if made == before:
                time.sleep(patience)
        if plan.holdout:
            _choice.keep_choices(plan, store)
    store.compact()
    return made


def _claimed(missing: Sequence[Group], store: RunStore, claims: ExitStack) -> Iterator[Job]:
    """What no other process works on, claimed when it is asked for; all claims end with
    `claims`."""
    for group in missing:
        claim, parts = claims.enter_context(ExitStack()), []
        if claim.enter_context(store.claim(group.identity())):
            parts = group.lacking(store.finished())
        if parts:
            yield Job(group, parts, claim)
        else:
            claim.close()


def in_process(jobs: Iterator[Job], progress: AfterEpoch) -> Generator[tuple[Job, list[Row]]]:
    """The engine that needs nothing: one job after the other, here."""
    for job in jobs:
        yield job, [row for part in job.parts for row in train_group(part, progress)]


def is_past_best(losses: Sequence[np.ndarray], trivial: Any) -> bool:
    """Whether the losses of all runs, by epoch, have risen far above their best, or stay there."""
    history = np.array(losses)
    least, epochs = history.min(axis=0), history.argmin(axis=0) + 1
    risen = len(losses) > RISEN and np.all(history[-RISEN:] > RISE * least, axis=0)
    patience = np.where(least < LEFT * trivial, FLAT, SLOW)
    flat = len(losses) - epochs >= np.maximum(patience, epochs / 2)
    return bool(np.all(risen | flat))


def train_group(group: Group, progress: AfterEpoch | None = None) -> list[Row]:
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
        return build(common.model, data, outputs=task.outputs, key=seed, start=starts[seed])

    losses: list[np.ndarray] = []
    trivial = [trivial_loss(data, learn.prior, task.kind) for learn, _ in parts]

    def after_epoch(_: int, observed: dict[str, Any]) -> bool:
        if progress:
            progress(group, group.size)
        losses.append(observed["test_loss"])
        return common.model in TOGETHER and is_past_best(losses, np.c_[trivial])

    start = time.perf_counter()
    runs = sweep(
        network,
        [learn for learn, _ in parts],
        METHODS[common.method],
        common.loss,
        learning_rates=group.rates,
        seeds=seeds,
        epochs=common.epochs,
        batch=common.instances,
        smoothing=common.smoothing,
        held_out=[held for _, held in parts if held is not None] or None,
        test=(data.X_test, data.y_test),
        X=data.X[:rows],
        microbatch=None if in_torch() else MICROBATCH.get(common.model),
        progress=after_epoch,
    )
    facts = {"seconds": (time.perf_counter() - start) / group.size, "version": unbag.__version__}
    made: list[Row] = []
    for seed, (learn, held), by_rate, level in zip(seeds, parts, runs, trivial, strict=True):
        facts |= {"bags": len(learn), "trivial": level}
        for rate, run in zip(group.rates, by_rate, strict=True):
            row = {**common._replace(rate=rate, repetition=seed)._asdict(), **facts}
            row["diverged"] = run.diverged
            names = [name for name in HISTORY if name in run.history]
            row |= {name: run.history[name].astype(np.float32) for name in names}
            if held is not None:  # for the choice among runs
                row["scores"] = np.asarray(run.model(data.X[held.rows]))
            made.append(row)
    return made
