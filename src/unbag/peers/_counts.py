"""What the count of a bag says of each of its labels, exactly."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

MOST_ODDS = 30.0
"""Log odds are kept within these bounds: a label that the count decides."""
ENTRIES = 2e7
"""So many numbers are in memory at once."""


def count_evidence(odds: np.ndarray, bag: np.ndarray, count: np.ndarray) -> np.ndarray:
    """The log odds that a bag's count adds to those of each instance.

        log P(S - y_i = c - 1) - log P(S - y_i = c),    S the sum of independent labels

    so that P(y_i = 1 | S = c) has the log odds odds_i + evidence_i. The laws of the sums without
    one instance come from those of the instances before and after it.

    Parameters
    ----------
    odds : numpy.ndarray
        Log odds of each instance, without the count.
    bag : numpy.ndarray
        Bag number of each instance.
    count : numpy.ndarray
        Positives of each bag.

    >>> bag, count = np.array([0, 0, 0]), np.array([1])
    >>> expit(np.zeros(3) + count_evidence(np.zeros(3), bag, count)).round(3)
    array([0.333, 0.333, 0.333])
    """
    order = np.argsort(bag, kind="stable")
    size = np.bincount(bag, minlength=len(count))
    place = np.arange(len(bag)) - (np.cumsum(size) - size)[bag[order]]
    evidence = np.zeros(len(bag))
    for group in _alike(size):
        rows = np.isin(bag[order], group)
        number = np.searchsorted(group, bag[order][rows])
        h = np.zeros((len(group), int(size[group].max())))  # padding is never positive
        h[number, place[rows]] = expit(odds[order][rows])
        evidence[order[rows]] = _evidence(h, count[group])[number, place[rows]]
    return evidence


def _alike(size: np.ndarray) -> list[np.ndarray]:
    """Bags of similar size together, so many that they fit into memory."""
    by_size, groups, start = np.argsort(size, kind="stable"), [], 0
    while start < len(size):
        stop = start + 1
        while stop < len(size) and (stop + 1 - start) * (size[by_size[stop]] + 1) ** 2 <= ENTRIES:
            stop += 1
        groups.append(np.sort(by_size[start:stop]))
        start = stop
    return groups


def _evidence(h: np.ndarray, count: np.ndarray) -> np.ndarray:
    bags, k = h.shape
    before, after = (np.zeros((k + 1, bags, k + 1)) for _ in range(2))
    before[0, :, 0] = after[k, :, 0] = 1
    for i in range(k):
        before[i + 1] = _added(before[i], h[:, i])
        after[k - 1 - i] = _added(after[k - i], h[:, k - 1 - i])
    steps, evidence = np.arange(k + 1), np.zeros((bags, k))
    wanted = count.astype(int)[:, None] - steps  # what is left for the instances after
    for i in range(k):
        law = before[i][:, :, None]
        ahead = np.stack([_at(after[i + 1], wanted - 1), _at(after[i + 1], wanted)], axis=2)
        one, zero = np.maximum((law * ahead).sum(axis=1), 1e-300).T
        evidence[:, i] = np.log(one) - np.log(zero)
    return np.clip(evidence, -MOST_ODDS, MOST_ODDS)


def _added(law: np.ndarray, h: np.ndarray) -> np.ndarray:
    """The law of a sum with one more label."""
    new = law * (1 - h)[:, None]
    new[:, 1:] += law[:, :-1] * h[:, None]
    return new


def _at(law: np.ndarray, where: np.ndarray) -> np.ndarray:
    """Entries of a law, 0 outside its range."""
    inside = (where >= 0) & (where < law.shape[1])
    return np.where(inside, np.take_along_axis(law, np.where(inside, where, 0), axis=1), 0.0)
