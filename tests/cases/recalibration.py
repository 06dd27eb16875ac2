"""Small cases that the tests of recalibration, and the table of its messages, share."""

import numpy as np


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def binary(n=4000, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    return 2 * x, (rng.uniform(size=n) < sigmoid(x - 1)).astype(float)
