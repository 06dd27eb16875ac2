"""Small cases that the tests of selection, and the table of its messages, share."""

import numpy as np

from unbag.training import Run


def world(n, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    return x, (rng.uniform(size=n) < 1 / (1 + np.exp(-x))).astype(float)


def run(method, scale, *, loss="log", rate=0.01):
    return Run(lambda X: scale * X, method, loss, rate, 0, 1, {"train": np.zeros(1)})


X, Y = world(60)
