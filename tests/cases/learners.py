"""Small cases that the tests of learners share."""

import numpy as np
from scipy.special import expit


def labels(kind, score, rng):
    """Labels, counts or classes of rows with these logits or log rates."""
    if kind == "total":
        return rng.poisson(np.exp(score))
    y = rng.uniform(size=len(score)) < expit(score)
    if kind == "histogram":
        return y * rng.integers(1, 3, size=len(score))
    return y
