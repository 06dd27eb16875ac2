"""Small cases that the tests of lab, and the table of its messages, share."""

import itertools
import sys
import tempfile
from pathlib import Path

import numpy as np

from unbag.datasets import Dataset
from unbag.lab import add_task


def toy():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 3)).astype(np.float32)
    y = (rng.uniform(size=1200) < 1 / (1 + np.exp(-2 * X[:, 0]))).astype(np.float32)
    return Dataset(X[:1000], y[:1000], X[1000:], y[1000:], ("a", "b", "c"))


add_task("toy", toy, model="linear", title="Toy")
TOY = {
    "task": "toy",
    "methods": ("upm", "anchored:square"),
    "sizes": (5, 20),
    "rates": (0.01, 0.1),
    "repetitions": 3,
    "epochs": 3,
}


def invent(group, told=None, seed=0):
    """Rows of a group that was never trained."""
    rng, rows = np.random.default_rng([seed, int(group.identity(), 16)]), []
    for run in group.runs():
        loss = rng.uniform(0.3, 0.6, run.epochs).astype(np.float32)
        held = (
            {"choice": loss + rng.normal(size=run.epochs) * 0.1, "held_out": loss}
            if run.holdout
            else {}
        )
        facts = {
            "bags": 1000 // run.size,
            "trivial": 0.5,
            "seconds": 1.0,
            "version": "test",
            "diverged": None,
        }
        if run.holdout:
            held["scores"] = rng.normal(size=1000 - round(1000 * (1 - run.holdout)))
        rows.append({**run._asdict(), **facts, "test_loss": loss, "test_auc": 1 - loss, **held})
    return rows


def invent_then_wait(most):
    """Invents so many groups, and then waits to be killed."""
    begun = itertools.count(1)

    def train(group, told=None):
        if next(begun) > most:
            sys.stdin.readline()
        return invent(group)

    return train


def made_up(plan, store):
    """Fill a store with invented histories, as if the plan had been run."""
    for group in plan.groups():
        store.add(invent(group))


HERE = Path(tempfile.mkdtemp())


def written(name, content):
    (HERE / name).parent.mkdir(parents=True, exist_ok=True)
    (HERE / name).write_text(content)
    return HERE / name
