"""What depends on the order of the scores: AUC and bands of calibration."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unbag.metrics._estimate import Estimated, Judge
from unbag.metrics._sums import BagSums, ScoreCounts


class Ranks(NamedTuple):
    """Of each score, lowest first: share of the instances, rank F (ties count half), and E[y with
    this score]."""

    score: np.ndarray
    share: np.ndarray
    rank: np.ndarray
    joint: np.ndarray
    entry: np.ndarray  # number of the score of each entry of `ScoreCounts`


def _middle(share: np.ndarray) -> np.ndarray:
    """Cumulative shares, of which a score has half of its own."""
    return np.cumsum(share) - share / 2


def _rank(scores: ScoreCounts) -> Ranks:
    score, entry = np.unique(scores.score, return_inverse=True)
    count = np.bincount(entry, weights=scores.instances)
    share = count / count.sum()
    joint = np.bincount(entry, weights=scores.reference) / count.sum()
    return Ranks(score, share, _middle(share), joint, entry)


def auc(sums: BagSums, judge: Judge) -> tuple[Estimated, float]:
    """AUC = (E[y F] - p^2 / 2) / (p (1 - p)), F the rank of the score among all instances, and the
    variance of one row.

    E[y F] comes from the bags like any loss, with f1 = 0 and f2 = F. The error of the ranks
    themselves counts too: an instance with score s moves E[y F] by E[y; score > s].
    """
    counts, ranks, n = sums.scores, _rank(sums.scores), judge.k.sum()
    F = ranks.rank[ranks.entry]
    above = ranks.joint.sum() - _middle(ranks.joint)
    T, S, moved = (
        np.bincount(counts.bag, weights=values, minlength=len(judge.k))
        for values in (
            counts.reference * F,
            counts.instances * F,
            counts.instances * above[ranks.entry],
        )
    )
    joint, p = judge.expectation(T, S[:, None], sums.drift[:, -1]), judge.mean_label(sums)
    parts = joint.parts() + judge.by_size * (moved - judge.k * moved.sum() / n) / n
    scale = p.value * (1 - p.value)
    value = (joint.value - p.value**2 / 2) / scale
    parts = (parts - p.value * p.parts()) / scale - value * (1 - 2 * p.value) / scale * p.parts()
    return Estimated(value, *parts), _variance_of_one(ranks, value)


def _variance_of_one(ranks: Ranks, value: float) -> float:
    """Variance of a labelled row's share in the AUC (DeLong), labels drawn from the reference."""
    p = np.clip(ranks.joint.sum(), 1e-12, 1 - 1e-12)
    below = _middle(ranks.share - ranks.joint) / (1 - p)
    above = 1 - _middle(ranks.joint) / p
    positive, negative = (below - value) / p, (above - value) / (1 - p)
    return float(np.sum(ranks.joint * positive**2 + (ranks.share - ranks.joint) * negative**2))


class Cut(NamedTuple):
    """A band of scores: its limits, its share of the instances, its mean prediction and how far off
    this is."""

    low: float
    high: float
    share: float
    prediction: float
    gap: Estimated


def bands(sums: BagSums, judge: Judge, count: int) -> list[Cut]:
    """E[y - h] in each of `count` bands of the score that hold about equally many instances.

    gap = E[(y - h) in band] / P(band); a perfectly calibrated model has 0 in every band.
    """
    if len(sums.scores.score) == 0:
        return []
    ranks = _rank(sums.scores)
    band = np.minimum((ranks.rank * count).astype(int), count - 1)
    return [
        _band(judge, sums.scores, ranks, np.flatnonzero(band == each)) for each in np.unique(band)
    ]


def _band(judge: Judge, counts: ScoreCounts, ranks: Ranks, members: np.ndarray) -> Cut:
    inside = (ranks.entry >= members[0]) & (ranks.entry <= members[-1])
    bag = counts.bag[inside]
    n, predicted, reference = (
        np.bincount(bag, weights=values[inside], minlength=len(judge.k)) for values in counts[2:]
    )
    missed = judge.expectation(reference - predicted, n[:, None])
    share = n.sum() / judge.k.sum()
    gap = missed.value / share
    parts = (missed.parts() - gap * judge.by_size * (n - judge.k * share) / judge.k.sum()) / share
    low, high = ranks.score[members[[0, -1]]].tolist()
    prediction = float(predicted.sum() / n.sum())
    return Cut(low, high, float(share), prediction, Estimated(gap, *parts))
