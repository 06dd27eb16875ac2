"""Add a method and a data set of your own, and run them beside ours in the paper's experiment.

    python examples/adding_a_method.py

The method is squared proportion matching, the data are points within a ring. Runs are kept in the
folder `adding-example`: start the script again and nothing is trained twice.
"""

import sys

import jax.numpy as jnp
import numpy as np

from unbag._arrays import mean_by
from unbag.datasets import Dataset
from unbag.lab import Plan, RunStore, add_method, add_task, best_on_test, read_runs, run_plan

SHORT = "--short" in sys.argv


def squared(score, batch, loss):
    """Mean over bags of (proportion - mean probability)^2; rows and bags of weight 0 are
    padding."""
    mean = mean_by(batch.bag, batch.real / (1 + jnp.exp(-score)), jnp.maximum(batch.size, 1))
    return jnp.sum(batch.weight * (batch.report[:, 1] - mean) ** 2)


def load_ring():
    """Is a point within the ring?"""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12_000, 2)).astype(np.float32)
    y = (np.abs(np.hypot(*X.T) - 1) < 0.4).astype(np.float32)
    return Dataset(X[:10_000], y[:10_000], X[10_000:], y[10_000:], ("x", "y"))


def main() -> None:
    add_method("squared", squared, title="squared PM")
    add_task("ring", load_ring, title="Ring")
    few = {"methods": ("squared",), "sizes": (50,), "rates": (0.1,), "repetitions": 1, "epochs": 3}
    more = {
        "methods": ("squared", "anchored"),
        "sizes": (10, 50),
        "rates": (0.01, 0.1),
        "repetitions": 3,
        "epochs": 40,
    }
    store = RunStore("adding-example")
    run_plan(Plan("ring", **(few if SHORT else more)), store)
    for runs in read_runs(store):
        print(f"{runs.way.title}, bags of {runs.size}: {best_on_test(runs)}")


if __name__ == "__main__":
    main()
