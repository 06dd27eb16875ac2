"""Scores of each bag in, AUC and bands of calibration out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unbag.metrics._estimate import Estimated, Judge
from unbag.metrics._sums import Scores, Sums


class Ranks(NamedTuple):
    """Of each score, lowest first: share of the instances, rank F (ties count half), and E[y with
    this score]."""

    score: np.ndarray
    share: np.ndarray
    rank: np.ndarray
    joint: np.ndarray
    entry: np.ndarray  # number of the score of each entry of `Scores`


def rank(scores: Scores) -> Ranks:
    """The ranks of the scores, from how many instances have each."""
    score, entry = np.unique(scores.score, return_inverse=True)
    count = np.bincount(entry, weights=scores.instances)
    share = count / count.sum()
    joint = np.bincount(entry, weights=scores.reference) / count.sum()
    return Ranks(score, share, np.cumsum(share) - share / 2, joint, entry)


def auc(sums: Sums, judge: Judge) -> tuple[Estimated, float]:
    """AUC = (E[y F] - p^2 / 2) / (p (1 - p)), F the rank of the score among all instances, and the
    variance of one row.

    E[y F] comes from the bags like any loss, with f1 = 0 and f2 = F. The error of the ranks
    themselves counts too: an instance with score s moves E[y F] by E[y; score > s].
    """
    ranks, b = rank(sums.scores), sums.scores
    by_bag = lambda values: np.bincount(b.bag, weights=values, minlength=len(judge.k))
    F = ranks.rank[ranks.entry]
    joint = judge.expectation(
        by_bag(b.reference * F), by_bag(b.instances * F)[:, None], sums.drift[:, -1]
    )
    p = prior(sums, judge)
    above = np.cumsum(ranks.joint[::-1])[::-1] - ranks.joint / 2
    moved = by_bag(b.instances * above[ranks.entry])
    parts = (
        joint.parts()
        + judge.by_size * (moved - judge.k * moved.sum() / judge.k.sum()) / judge.k.sum()
    )
    scale = p.value * (1 - p.value)
    value = (joint.value - p.value**2 / 2) / scale
    parts = (parts - p.value * p.parts()) / scale - value * (1 - 2 * p.value) / scale * p.parts()
    return Estimated(value, *parts), _variance_of_one(ranks, value)


def prior(sums: Sums, judge: Judge) -> Estimated:
    """E[y]: the mean reference and the mean residual; without pending bags, the size-weighted mean
    report."""
    one = np.ones((len(judge.k), 1)) * judge.k[:, None]
    return judge.expectation(sums.reference[:, 0], one)


def _variance_of_one(ranks: Ranks, value: float) -> float:
    """Variance of a labelled row's share in the AUC (DeLong), labels drawn from the reference."""
    p = np.clip(ranks.joint.sum(), 1e-12, 1 - 1e-12)
    middle = lambda share: np.cumsum(share) - share / 2
    below = middle(ranks.share - ranks.joint) / (1 - p)
    above = 1 - middle(ranks.joint) / p
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


def bands(sums: Sums, judge: Judge, count: int) -> list[Cut]:
    """E[y - h] in each of `count` bands of the score that hold about equally many instances.

    gap = E[(y - h) in band] / P(band); a perfectly calibrated model has 0 in every band.
    """
    ranks, b = rank(sums.scores), sums.scores
    of_score = np.minimum((ranks.rank * count).astype(int), count - 1)
    return [
        _band(judge, b, ranks, np.flatnonzero(of_score == band)) for band in np.unique(of_score)
    ]


def _band(judge: Judge, b: Scores, ranks: Ranks, members: np.ndarray) -> Cut:
    inside = (ranks.entry >= members[0]) & (ranks.entry <= members[-1])
    by_bag = lambda values: np.bincount(
        b.bag[inside], weights=values[inside], minlength=len(judge.k)
    )
    n, predicted = by_bag(b.instances), by_bag(b.prediction)
    missed = judge.expectation(by_bag(b.reference) - predicted, n[:, None])
    share = n.sum() / judge.k.sum()
    gap = missed.value / share
    parts = (missed.parts() - gap * judge.by_size * (n - judge.k * share) / judge.k.sum()) / share
    low, high = ranks.score[members[[0, -1]]]
    return Cut(
        float(low),
        float(high),
        float(share),
        float(predicted.sum() / n.sum()),
        Estimated(gap, *parts),
    )
