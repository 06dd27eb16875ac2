"""What `unbag.choose` takes from held-out bags alone: a rate of each method, and a method.

Runs keep the scores that they give their held-out bags beside the store (`.scores`, not part of the
results), so that methods that were trained at different times are compared on the same bags.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from unbag._rules import broken
from unbag.bags import Bags, random_bags
from unbag.lab._methods import SMOOTHING, Way, curve_of, smoothing_of
from unbag.lab._plan import Experiment, Plan, RunSettings
from unbag.lab._store import RunStore, typed
from unbag.lab._tasks import TASKS, data_of
from unbag.selection import Candidate, choose

ALL = "all"  # with labels smoothed as usual


class Chosen(NamedTuple):
    """What one repetition's held-out bags chose, and the test loss and AUC of it.

    `among` is the curve whose rates were the candidates, or "all"; `candidates` how many runs there
    were to choose from.
    """

    experiment: Experiment
    size: int
    holdout: float
    repetition: int
    among: str
    candidates: int
    method: str
    loss: str
    rate: float
    epoch: int
    test_loss: float
    test_auc: float


class _Known(NamedTuple):
    """A finished run: its settings, its chosen epoch and the test history there, its scores of the
    held-out bags."""

    settings: RunSettings
    epoch: int
    test_loss: float
    test_auc: float
    scores: np.ndarray


def drawn(
    task: str, size: int, repetition: int, *, rows: int, holdout: float
) -> tuple[Bags, Bags | None]:
    """The bags of a repetition: those to learn from, and those held out."""
    known, y = TASKS[task], data_of(task).y
    about: dict[str, Any] = {"kind": known.kind}
    if known.kind == "histogram":
        about["classes"] = known.outputs
    bags = random_bags(None, y[: rows or len(y)], size=size, seed=repetition, **about)
    if not holdout:
        return bags, None
    return bags.split(1 - holdout, seed=repetition)


def keep_choices(plan: Plan, store: RunStore) -> None:
    """Choose in a plan with a holdout, and keep what was chosen beside the choices of other
    plans."""
    new = choose_all(plan, store)
    if not new:
        return
    with store.locked(f"choices-{plan.task}"):
        old = [choice for choice in read(store) if choice.experiment.task == plan.task]
        # Of choices of the same thing the one from the most candidates stays, else the newer one.
        widest = sorted([*old, *new], key=lambda choice: choice.candidates)
        kept = {choice[:5]: choice for choice in widest}  # by what it is the choice of
        rows = [{**kept[key].experiment._asdict(), **kept[key]._asdict()} for key in sorted(kept)]
        for row in rows:
            del row["experiment"]  # its fields stand in its place
        store.write_table(plan.task, "choices", rows)


def read(store: RunStore) -> list[Chosen]:
    """Everything that was chosen, for every task."""
    rows = store.table("choices")
    names = [*Experiment._fields, *Chosen._fields[1:]]
    if rows and list(rows[0]) != names:
        raise broken(
            f"A table of choices must have the columns {', '.join(names)}",
            f"one in {store.folder} has {', '.join(rows[0])}",
            "Delete choices.csv there, and run its plan again.",
        )
    return [Chosen(Experiment(**typed(Experiment, row)), **typed(Chosen, row)) for row in rows]


def choose_all(plan: Plan, store: RunStore) -> list[Chosen]:
    """What held-out bags choose in each size and repetition of a plan with a holdout; only where
    its runs are there."""
    finished, choices = _finished(plan, store), []
    every = ALL
    if plan.smoothing != SMOOTHING:
        every = f"{ALL} smoothed by {plan.smoothing:g}"
    for size, repetition in product(plan.sizes, range(plan.repetitions)):
        among: dict[str, list[_Known]] = {}
        for way in plan.ways:
            runs = finished.get((str(way), size, repetition))
            if runs and way.method != "labels":
                among[str(curve_of(way, smoothing_of(way, plan.smoothing)))] = runs
        if len(among) > 1:
            among[every] = [run for runs in among.values() for run in runs]
        if among:
            held = drawn(plan.task, size, repetition, rows=plan.rows, holdout=plan.holdout)[1]
            assert held is not None
            held = replace(held, X=np.zeros((len(held.bag), 1)))  # nobody looks at it
            choices += [_chosen(name, runs, held) for name, runs in among.items()]
    return choices


def _finished(plan: Plan, store: RunStore) -> dict[tuple[str, int, int], list[_Known]]:
    """Runs of the plan whose scores are there, by way, size and repetition."""
    planned = {run for group in plan.groups() for run in group.runs()}
    finished: dict[tuple[str, int, int], list[_Known]] = {}
    for row in store.runs(task=plan.task, holdout=plan.holdout).to_pylist():
        settings = RunSettings(*(row[name] for name in RunSettings._fields))
        scores = store.scores(settings)
        if settings not in planned or scores is None or not np.isfinite(row["choice"]).any():
            continue
        epoch = int(np.nanargmin(row["choice"]))
        aucs = row["test_auc"] or [np.nan] * (epoch + 1)
        known = _Known(settings, epoch + 1, row["test_loss"][epoch], aucs[epoch], scores)
        key = (str(Way(settings.method, settings.loss)), settings.size, settings.repetition)
        finished.setdefault(key, []).append(known)
    return finished


def _chosen(among: str, runs: Sequence[_Known], held: Bags) -> Chosen:
    named = {run.settings.identity(): run for run in runs}
    candidates = [
        Candidate(name, (run.settings.method, run.settings.loss), run.scores)
        for name, run in named.items()
    ]
    s, epoch, test_loss, test_auc, _ = named[choose(candidates, held, scale="score").name]
    where = (s.experiment, s.size, s.holdout, s.repetition)
    return Chosen(*where, among, len(runs), s.method, s.loss, s.rate, epoch, test_loss, test_auc)
