"""Small cases that the tests of training, and the table of its messages, share."""

import numpy as np

from unbag import Bags, models, random_bags


def world(kind="binary", n=480, seed=0, features=3, stratum=None, size=8):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, features)).astype(np.float32)
    z = X[:, 0] - 0.5
    if kind == "histogram":
        y = np.argmax(np.stack([z, X[:, 1], 0 * z], axis=1) + rng.gumbel(size=(n, 3)), axis=1)
    elif kind == "total":
        y = rng.poisson(np.exp(0.5 * z))
    else:
        y = (rng.uniform(size=n) < 1 / (1 + np.exp(-z))).astype(float)
    return random_bags(X, y, size=size, seed=seed, kind=kind, stratum=stratum), y


def model_for(kind, seed=0):
    return models.mlp(3, (5,), key=seed, outputs=3 if kind == "histogram" else 1)


def named(part):
    bags, _ = world(n=96)
    names = np.array([f"day {j}" for j in range(12)])
    return Bags(bags.bag, bags.report, X=bags.X, names=names).take(np.arange(12)[part])
