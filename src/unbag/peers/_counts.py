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
    """Of each bag and instance; both laws are kept up to the count only, beyond which none is
    asked for."""
    bags, k = h.shape
    count = count.astype(int)
    # before[i, j, s]: chance that s of the first i labels are positive
    before = np.zeros((k + 1, bags, int(count.max()) + 1))
    # after[i, j, s]: chance that the labels from i on make s the count, so that the two laws meet
    # at the same s; s beyond the count is impossible
    after = np.zeros((k + 1, bags, before.shape[2] + 1))
    before[0, :, 0] = after[k, np.arange(bags), count] = 1
    for i in range(k):
        one, last = h[:, i, None], h[:, k - 1 - i, None]
        before[i + 1] = before[i] * (1 - one)
        before[i + 1, :, 1:] += before[i, :, :-1] * one
        after[k - 1 - i] = after[k - i] * (1 - last)
        after[k - 1 - i, :, :-1] += after[k - i, :, 1:] * last
    without = {
        label: np.einsum("ijs,ijs->ji", before[:k], after[1:, :, label : label + before.shape[2]])
        for label in (0, 1)
    }
    one, zero = (np.maximum(without[label], 1e-300) for label in (1, 0))
    return np.clip(np.log(one) - np.log(zero), -MOST_ODDS, MOST_ODDS)
