"""What is known of a task beside its runs: what held-out bags choose, and how bags vary.

`unbag.choose` takes a rate of each method, and a method, from held-out bags alone. Runs keep the
scores that they give their held-out bags beside the store (`.scores`, not part of the results), so
that methods that were trained at different times are compared on the same bags.

How much the estimate from one bag varies, by bag size, is the theory's claim, measured. With the
prior p and the means of f1, f2 known, a bag of k with proportion a says of the loss of a fixed
model

    GeneralUPM  E f1 + p E f2 + k (a - p) (mean f2 - E f2)
    EasyLLP     mean f1 + (k (a - p) + p) mean f2

The model is a logistic regression fitted to labels of the test part, so the bags' labels never
touched it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple, cast

import numpy as np

from unbag._rules import broken
from unbag.bags import Bags, random_bags
from unbag.datasets import Dataset
from unbag.lab._catalogue import SMOOTHING, TASKS, Way, curve_of, data_of, smoothing_of
from unbag.lab._plan import Experiment, Plan, RunSettings
from unbag.lab._store import RunStore, typed
from unbag.losses import log
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
        old = [choice for choice in read_choices(store) if choice.experiment.task == plan.task]
        # Of choices of the same thing the one from the most candidates stays, else the newer one.
        widest = sorted([*old, *new], key=lambda choice: choice.candidates)
        kept = {choice[:5]: choice for choice in widest}  # by what it is the choice of
        rows = [{**kept[key].experiment._asdict(), **kept[key]._asdict()} for key in sorted(kept)]
        for row in rows:
            del row["experiment"]  # its fields stand in its place
        store.write_table(plan.task, "choices", rows)


def read_choices(store: RunStore) -> list[Chosen]:
    """Everything that was chosen, for every task."""
    rows = store.table("choices")
    names = [*Experiment._fields, *Chosen._fields[1:]]
    if rows and list(rows[0]) != names:
        rule = f"A table of choices must have the columns {', '.join(names)}"
        remedy = "Delete choices.csv there, and run its plan again."
        raise broken(rule, f"one in {store.folder} has {', '.join(rows[0])}", remedy)
    return [Chosen(Experiment(**typed(Experiment, row)), **typed(Chosen, row)) for row in rows]


def choose_all(plan: Plan, store: RunStore) -> list[Chosen]:
    """What held-out bags choose in each size and repetition of a plan with a holdout; only where
    its runs are there."""
    planned = {run for group in plan.groups() for run in group.runs()}
    finished: dict[tuple[str, int, int], list[tuple[Candidate, dict[str, Any]]]] = {}
    for row in store.runs(task=plan.task, holdout=plan.holdout).to_pylist():
        run = RunSettings(*(row[name] for name in RunSettings._fields))
        scores = store.scores(run)
        if run in planned and scores is not None and np.isfinite(row["choice"]).any():
            key = (str(Way(run.method, run.loss)), run.size, run.repetition)
            candidate = Candidate(run.identity(), (run.method, run.loss), scores)
            finished.setdefault(key, []).append((candidate, row))
    every, choices = ALL, []
    if plan.smoothing != SMOOTHING:
        every = f"{ALL} smoothed by {plan.smoothing:g}"
    for size, repetition in product(plan.sizes, range(plan.repetitions)):
        among = {
            str(curve_of(way, smoothing_of(way, plan.smoothing))): runs
            for way in plan.ways
            if (runs := finished.get((str(way), size, repetition))) and way.method != "labels"
        }
        if len(among) > 1:
            among[every] = [run for runs in among.values() for run in runs]
        if among:
            about = {"rows": plan.rows, "holdout": plan.holdout}
            held = cast(Bags, drawn(plan.task, size, repetition, **about)[1])
            held = replace(held, X=np.zeros((len(held.bag), 1)))  # nobody looks at it
            choices += [_chosen(plan, name, runs, held) for name, runs in among.items()]
    return choices


def _chosen(
    plan: Plan, among: str, runs: Sequence[tuple[Candidate, dict[str, Any]]], held: Bags
) -> Chosen:
    """What held-out bags choose among some runs, which are candidates with their rows."""
    chosen = choose([candidate for candidate, _ in runs], held, scale="score").name
    row = next(row for candidate, row in runs if candidate.name == chosen)
    epoch = int(np.nanargmin(row["choice"]))
    where = (plan.experiment, row["size"], row["holdout"], row["repetition"], among, len(runs))
    auc = (row["test_auc"] or [np.nan] * (epoch + 1))[epoch]
    what = (row["method"], row["loss"], row["rate"], epoch + 1, row["test_loss"][epoch], auc)
    return Chosen(*where, *what)


ROWS, BAGS = 5_000, 4_000


class BagDeviation(NamedTuple):
    """Standard deviation between bags of one size, of what they say of the log loss; `bags` were
    drawn."""

    task: str
    size: int
    bags: int
    upm: float
    easy: float


def measure_deviations(task: str, data: Dataset, store: RunStore) -> None:
    """Measure a task once, at the paper's bag sizes, and keep it in the store."""
    if not any(spread.task == task for spread in read_deviations(store)):
        spreads = bag_spread(task, data, [2**i for i in range(12) if 2 ** (i + 1) <= len(data.y)])
        short = [s._replace(upm=f"{s.upm:.5f}", easy=f"{s.easy:.5f}") for s in spreads]
        store.write_table(task, "variance", [s._asdict() for s in short])


def read_deviations(store: RunStore) -> list[BagDeviation]:
    """What was measured, for every task."""
    return [BagDeviation(**typed(BagDeviation, row)) for row in store.table("variance")]


def bag_spread(task: str, data: Dataset, sizes: Sequence[int]) -> list[BagDeviation]:
    """How much bags of each size differ in what they say of a fixed model's loss.

    Bags come from as many shuffles of the rows as make enough of them.
    """
    X, X_test = (part.reshape(len(part), -1) for part in (data.X, data.X_test))
    from sklearn.linear_model import LogisticRegression  # late: half of what the lab imports

    model = LogisticRegression(C=0.1, max_iter=200, tol=1e-3)
    model.fit(X_test[:ROWS], data.y_test[:ROWS])
    f = log.components(model.decision_function(X).astype(float))
    rng, spreads = np.random.default_rng(0), []
    y, p, (E1, E2) = data.y, data.y.mean(), f.mean(axis=0)
    for size in sorted(sizes):
        said, in_one = [], len(y) // size
        for _ in range(-(-BAGS // in_one)):
            rows = rng.permutation(len(y))[: in_one * size].reshape(in_one, size)
            a, (f1, f2) = y[rows].mean(axis=1), f[rows].mean(axis=1).T
            upm = E1 + p * E2 + size * (a - p) * (f2 - E2)
            said.append((upm, f1 + (size * (a - p) + p) * f2))
        values = np.concatenate(said, axis=1)
        upm, easy = values.std(axis=1, ddof=1).tolist()
        spreads.append(BagDeviation(task, size, values.shape[1], upm, easy))
    return spreads
