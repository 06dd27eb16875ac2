"""Small cases that the tests of tournaments, and the table of its messages, share."""

import numpy as np

from unbag import random_bags

sigmoid = lambda z: 1 / (1 + np.exp(-z))


def binary_problem(n=3000, size=4, models=5, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    y = rng.uniform(size=n) < sigmoid(x - 1)
    bags = random_bags(x, y, size=size, seed=seed)
    slopes = np.linspace(-1, 2, models)
    return bags, [slope * bags.X - 1 for slope in slopes]


def problem_of(kind, *, ragged=False, models=5, n=2400, seed=0):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 9, size=n // 5).tolist() if ragged else 4
    if kind == "histogram":
        y, score = rng.integers(0, 3, size=n), rng.normal(size=(models, n, 3))
    elif kind == "total":
        y, score = rng.poisson(1.5, size=n), rng.normal(size=(models, n)) * 0.5
    else:
        y, score = rng.integers(0, 2, size=n), rng.normal(size=(models, n))
    bags = random_bags(None, y, size=sizes, seed=seed, kind=kind)
    return bags, [row[bags.rows] for row in score]
