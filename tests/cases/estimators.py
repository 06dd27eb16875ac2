"""Small cases that the tests of estimators, and the table of its messages, share."""

import json

import numpy as np

from unbag.estimators import BagClassifier


def people(n=1600, k=8, seed=0, shift=-1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    labels = (X[:, 0] * 2 + shift + rng.logistic(size=n) > 0).astype(int)
    bag = rng.permutation(n) // k
    y = np.bincount(bag, weights=labels)[bag] / k
    return X, y, bag, labels


X, Y, BAG, LABELS = people(n=80)

ONE = BagClassifier(hidden=(), epochs=1)


def settings(**changes):
    found = {
        "versions": {"format": 2, "unbag": "0.1.0"},
        "settings": {"estimator": "BagClassifier"},
    }
    found["versions"] |= {k: v for k, v in changes.items() if k in ("format", "unbag")}
    found["settings"] |= {k: v for k, v in changes.items() if k == "estimator"}
    return json.dumps(found)
