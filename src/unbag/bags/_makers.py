"""Labelled rows into bags as others make them: by clusters, by a column, by label, or by both."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from unbag._rules import broken, one_of
from unbag.bags._bags import Bags
from unbag.bags._build import from_rows, random_bags

CLUSTERS = 5  # of the intermediate and the hard variant, as in the paper


class Rows(NamedTuple):
    """What a maker knows.

    Parameters
    ----------
    X, y : numpy.ndarray
        Rows as a matrix, and their labels of 0 and 1.
    bags : int
        How many are wanted.
    concentration : float
        How near the proportions of bags are to the common one; 10 or more is near.
    column : int
        By which `feature` sorts.
    rng : numpy.random.Generator
        Draws.
    """

    X: np.ndarray
    y: np.ndarray
    bags: int
    concentration: float
    column: int
    rng: np.random.Generator


def make_bags(
    X: Any, y: Any, how: str, *, size: int, seed: int, concentration: float = 2.0, column: int = 0
) -> Bags:
    """Put labelled rows into bags of about `size` in one of the ways of the literature.

    | how | who is in which bag | depends on |
    |---|---|---|
    | random | equal bags of shuffled rows | nothing |
    | naive | a bag is drawn for each row | nothing |
    | kmeans | a cluster of k-means is a bag | x |
    | feature | neighbours by one column are a bag | x |
    | dirichlet | each bag draws its proportion, then rows of each class | y |
    | simple | a bag is drawn for each row by its label | y |
    | intermediate | a bag is drawn for each row by its cluster | x |
    | hard | a bag is drawn for each row by its cluster and its label | x and y |

    naive, simple, intermediate and hard are the variants of Franco, Comarela and Crovella (2023),
    "Evaluating LLP methods". Their proportions of bags are given; ours are drawn from the Dirichlet
    law with `concentration` around the common proportion, as those of `dirichlet` are, which has
    equal bags. For the intermediate variant the paper fits P(bag | cluster) to the proportions; we
    draw it, and the proportions follow. Signed weights are valid for the first two only;
    `unbag.diagnose` says so of the others.

    Parameters
    ----------
    X : array
        Features, one row per instance.
    y : array
        Labels of 0 and 1.
    how : str
        A row of the table.
    size : int
        Of a bag: exactly for random and feature, on average for the others.
    seed : int
        Of whatever is drawn.
    concentration : float
        Of the Dirichlet law; large ones make bags alike.
    column : int
        For `feature`.

    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(60, 2)), np.arange(60) % 3 == 0
    >>> make_bags(X, y, "simple", size=10, seed=0)
    Bags(6 bags of 4 to 17; 60 instances; binary, prior 0.3333)
    """
    one_of("A way to make bags", how, ("random", *MAKERS))
    if how == "random":
        return random_bags(X, y, size=size, seed=seed)
    matrix, label = _matrix(X, len(y)), np.asarray(y).astype(int)
    if len(y) < 2 * size or not 0 < label.mean() < 1 or not concentration > 0:
        raise broken(
            "Bags must have rows for two, labels of both sorts and a positive concentration",
            f"bags of {size} given for {len(y)} rows with a mean label of {label.mean():g}, and a "
            f"concentration of {concentration:g}",
            "Make the bags smaller.",
        )
    rows = Rows(
        matrix, label, len(y) // size, concentration, column, np.random.default_rng([seed, 7])
    )
    return from_rows(MAKERS[how](rows), y=np.asarray(y, float), X=X)


def naive(rows: Rows) -> np.ndarray:
    """Each row draws a bag."""
    return rows.rng.integers(rows.bags, size=len(rows.y))


def kmeans(rows: Rows) -> np.ndarray:
    """Clusters of rows whose columns have variance 1."""
    from sklearn.cluster import MiniBatchKMeans

    made = MiniBatchKMeans(rows.bags, random_state=int(rows.rng.integers(2**31)))
    scale = rows.X.std(axis=0)
    return made.fit_predict((rows.X - rows.X.mean(axis=0)) / np.where(scale > 0, scale, 1.0))


def feature(rows: Rows) -> np.ndarray:
    """Blocks of rows in the order of a column; equal values in random order."""
    order = np.lexsort((rows.rng.uniform(size=len(rows.y)), rows.X[:, rows.column]))
    bag = np.empty(len(order), int)
    bag[order] = np.minimum(np.arange(len(order)) * rows.bags // len(order), rows.bags - 1)
    return bag


def dirichlet(rows: Rows) -> np.ndarray:
    """Equal bags with drawn proportions, filled with rows of each class."""
    target, bag = _proportions(rows), np.empty(len(rows.y), int)
    capacity = np.full(rows.bags, len(rows.y) // rows.bags)
    capacity[: len(rows.y) % rows.bags] += 1
    ones = _whole(target * capacity, int(rows.y.sum()), capacity)
    for label, count in ((1, ones), (0, capacity - ones)):
        own = rows.rng.permutation(np.flatnonzero(rows.y == label))
        bag[own] = np.repeat(np.arange(rows.bags), count)
    return bag


def simple(rows: Rows) -> np.ndarray:
    """Each row draws a bag by its label."""
    target = _proportions(rows)
    chance = np.stack([1 - target, target])
    return _drawn(chance[rows.y], rows.rng)


def intermediate(rows: Rows) -> np.ndarray:
    """Each row draws a bag by its cluster."""
    flat = rows.concentration * np.ones(rows.bags) / CLUSTERS
    chance = rows.rng.dirichlet(np.maximum(flat, 1e-2), size=CLUSTERS)
    return _drawn(chance[_clusters(rows)], rows.rng)


def hard(rows: Rows) -> np.ndarray:
    """Each row draws a bag by its cluster and label.

    A table of (label, cluster, bag) that starts at random is fitted to the shares of (label,
    cluster) and of (label, bag) in turn.
    """
    cluster, target = _clusters(rows), _proportions(rows)
    of_cluster = np.zeros((2, CLUSTERS))
    np.add.at(of_cluster, (rows.y, cluster), 1 / len(rows.y))
    of_bag = np.stack([1 - target, target]) / rows.bags
    of_bag *= (of_cluster.sum(axis=1) / of_bag.sum(axis=1))[:, None]  # the same share of labels
    table = rows.rng.uniform(size=(2, CLUSTERS, rows.bags))
    for _ in range(100):
        table *= (of_cluster / table.sum(axis=2))[:, :, None]
        table *= (of_bag / table.sum(axis=1))[:, None, :]
    return _drawn(table[rows.y, cluster], rows.rng)


MAKERS: Mapping[str, Callable[[Rows], np.ndarray]] = {
    maker.__name__: maker
    for maker in (naive, kmeans, feature, dirichlet, simple, intermediate, hard)
}
"""From rows to the bag of each."""


def _matrix(X: Any, rows: int) -> np.ndarray:
    """Rows as numbers; of a table, categories by their place in the alphabet."""
    if not hasattr(X, "column_names"):
        return np.asarray(X, float).reshape(rows, -1)
    columns = [np.asarray(X[name]) for name in X.column_names]
    codes = [c if c.dtype.kind in "fiub" else np.unique(c, return_inverse=True)[1] for c in columns]
    return np.stack(codes, axis=1).astype(float)


def _clusters(rows: Rows) -> np.ndarray:
    return kmeans(rows._replace(bags=CLUSTERS))


def _proportions(rows: Rows) -> np.ndarray:
    """Of each bag, from the Dirichlet law of two classes around the common one."""
    p = rows.y.mean()
    drawn = rows.rng.beta(rows.concentration * p, rows.concentration * (1 - p), size=rows.bags)
    return np.clip(drawn, 1e-3, 1 - 1e-3)


def _drawn(chance: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A bag for each row by its chances, which need not add up to 1."""
    edges = np.cumsum(chance, axis=1)
    draw = rng.uniform(size=(len(chance), 1)) * edges[:, -1:]
    return np.minimum((edges < draw).sum(axis=1), chance.shape[1] - 1)


def _whole(wanted: np.ndarray, total: int, most: np.ndarray) -> np.ndarray:
    """Whole numbers near these that add up to a total, none above its most."""
    count = np.minimum(np.round(wanted * total / max(wanted.sum(), 1e-12)).astype(int), most)
    while (missing := total - count.sum()) != 0:
        step = int(np.sign(missing))
        room = np.flatnonzero(count < most) if step > 0 else np.flatnonzero(count > 0)
        count[room[: abs(missing)]] += step
    return count
