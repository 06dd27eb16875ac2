"""The tournament written as the paper states it: one pass over the bags for every pair of models.

As fast as one pair can be written with NumPy. It shares with `unbag.tournament` the random split
and groups (a `Layout`), and nothing else.
"""

import numpy as np


def group_means(values, group, groups):
    sizes = np.bincount(group, minlength=groups)
    if values.ndim == 1:
        return np.bincount(group, values, minlength=groups) / sizes
    return np.stack(
        [np.bincount(group, column, minlength=groups) / sizes for column in values.T], axis=1
    )


def pair(f1, f2, bags, layout):
    """Q(h1, h2) from the loss components of both models on all instances."""
    difference = f1 - f2
    used = layout.mean_group >= 0
    E = np.median(group_means(difference[used], layout.mean_group[used], layout.groups), axis=0)
    p = layout.prior
    sums = np.stack(
        [np.bincount(bags.bag, difference[:, r], minlength=len(bags)) for r in range(len(p))],
        axis=1,
    )
    report = bags.components().report
    said = np.sum((report - p) * (sums - bags.size[:, None] * E) + p * E, axis=1)
    estimator = layout.bag_group >= 0
    group = layout.bag_group[estimator]
    return float(np.median(group_means(said[estimator], group, layout.groups)))


def all_pairs(components, bags, layout):
    """Q of every pair: |H|^2 / 2 passes over the data."""
    models = len(components)
    Q = np.zeros((models, models))
    for i in range(models):
        for j in range(i + 1, models):
            Q[i, j] = pair(components[i], components[j], bags, layout)
            Q[j, i] = -Q[i, j]
    return Q
