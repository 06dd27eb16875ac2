"""Small cases that the tests of metrics, and the table of its messages, share."""

import numpy as np

from unbag import from_rows, random_bags


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def world(n=4000, seed=0, shift=-1.0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n) + shift
    return x, (rng.uniform(size=n) < sigmoid(x)).astype(float)


X, Y = world(60)

BAGS = random_bags(X, Y, size=6, seed=0)

NAMED = from_rows(np.arange(60) // 6, y=Y, X=X)

THREE = random_bags(None, np.arange(60) % 3, size=6, seed=0, kind="histogram")
