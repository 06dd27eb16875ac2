"""Small cases that the tests of losses, and the table of its messages, share."""

import numpy as np

from unbag import losses
from unbag._arrays import softplus
from unbag.losses import Form, Loss, _poisson_components, from_callable, smoothed

sigmoid = lambda z: 1 / (1 + np.exp(-z))

softmax = lambda z: np.exp(z) / np.exp(z).sum()


def one_hot(y, c=3):
    return np.eye(c)[int(y)]


def smooth(y, eps=0.1):
    return (1 - eps) * y + eps / 2


def cross(z, t):
    return -np.sum(t * np.log(softmax(z)))


def log_capped(score):
    """The logarithm of a count of at most 5: a link of the user's own."""
    return float(np.log(5)) - softplus(-score)


def _capped_score(prior):
    return np.log(prior / (5 - prior))


CAPPED = Loss("capped", {"total": Form(log_capped, _poisson_components, constant=_capped_score)})

# (loss, kind): the loss of one instance written by hand, and its labels
TABLE = {
    ("log", "binary"): (
        losses.log,
        lambda z, y: -y * np.log(sigmoid(z)) - (1 - y) * np.log(1 - sigmoid(z)),
        (0, 1),
    ),
    ("square", "binary"): (losses.square, lambda z, y: (y - sigmoid(z)) ** 2, (0, 1)),
    ("square", "total"): (losses.square, lambda z, y: (y - z) ** 2 - y**2, (0, 1, 4)),
    ("poisson", "total"): (losses.poisson, lambda z, y: np.exp(z) - y * z, (0, 1, 4)),
    ("poisson", "binary"): (losses.poisson, lambda z, y: np.exp(z) - y * z, (0, 1)),
    ("capped", "total"): (
        CAPPED,
        lambda z, y: 5 * sigmoid(z) - y * np.log(5 * sigmoid(z)),
        (0, 1, 5),
    ),
    ("cross_entropy", "histogram"): (
        losses.cross_entropy,
        lambda z, y: cross(z, one_hot(y)),
        (0, 1, 2),
    ),
    ("brier", "histogram"): (
        losses.brier,
        lambda z, y: np.sum((one_hot(y) - softmax(z)) ** 2) / 3,
        (0, 1, 2),
    ),
    ("smoothed(log, 0.1)", "binary"): (
        smoothed(losses.log, 0.1),
        lambda z, y: -smooth(y) * np.log(sigmoid(z)) - (1 - smooth(y)) * np.log(1 - sigmoid(z)),
        (0, 1),
    ),
    ("smoothed(square, 0.1)", "binary"): (
        smoothed(losses.square, 0.1),
        lambda z, y: 0.95 * (y - sigmoid(z)) ** 2 + 0.05 * (1 - y - sigmoid(z)) ** 2,
        (0, 1),
    ),
    ("smoothed(cross_entropy, 0.3)", "histogram"): (
        smoothed(losses.cross_entropy, 0.3),
        lambda z, y: cross(z, 0.7 * one_hot(y) + 0.1),
        (0, 1, 2),
    ),
    ("absolute", "binary"): (
        from_callable(lambda h, y: abs(y - h)),
        lambda z, y: abs(y - z),
        (0, 1),
    ),
    ("cubic", "histogram"): (
        from_callable(lambda h, y: (h - y) ** 3, labels=(0, 1, 2)),
        lambda z, y: (z - y) ** 3,
        (0, 1, 2),
    ),
}

CASES = list(TABLE)


def scores(name, kind, count=4, seed=0):
    per_class = kind == "histogram" and "cubic" not in name
    return np.random.default_rng(seed).normal(size=(count, 3) if per_class else count)
