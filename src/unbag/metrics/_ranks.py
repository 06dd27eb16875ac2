"""What depends on the order of the scores: AUC and bands of calibration.

More than `EXACT` scores are not sorted, but put into bins between quantiles of some of them. Scores
of one bin then count as equal, so a pair of a positive and a negative instance whose scores differ
counts 1/2 in place of 0 or 1. With s_b the share of the instances in bin b, p+_b and p-_b those of
the positive and of the negative ones, and p the mean label,

    |AUC in bins - AUC| <= 1/2 sum_b p+_b p-_b <= 1/2 max_b s_b / max(p, 1 - p)

where bins of a single score do not count: `rank_error`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unbag.metrics._estimate import Estimated, Judge
from unbag.metrics._sums import EXACT, BagSums, ScoreCounts

BINS, SAMPLE = 4096, 2**17


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


def _binned(score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The least score of each bin, and the bin of each score, in time that grows with their number
    only. A score that fills a bin by itself has its own."""
    some = score[:: max(len(score) // SAMPLE, 1)]
    edge, times = np.unique(
        np.quantile(some, np.arange(1, BINS) / BINS, method="inverted_cdf"), return_counts=True
    )
    alone = np.nextafter(edge[times > 1], np.inf)
    entry = np.searchsorted(np.union1d(edge, alone), score, side="right")
    filled = np.bincount(entry) > 0
    entry = (np.cumsum(filled) - 1)[entry]
    least = np.full(int(filled.sum()), np.inf)
    np.minimum.at(least, entry, score)
    return least, entry


def rank_error(scores: ScoreCounts, p: float) -> float:
    """How far bins can move the AUC at most; 0 where all scores were sorted.

    Parameters
    ----------
    scores : ScoreCounts
        Of all instances.
    p : float
        The mean label.
    """
    if len(scores.score) <= EXACT:
        return 0.0
    ranks = _rank(scores)
    most = ranks.score.copy()
    np.maximum.at(most, ranks.entry, scores.score)
    return float(np.max(ranks.share, initial=0, where=most > ranks.score)) / max(p, 1 - p) / 2


def _rank(scores: ScoreCounts) -> Ranks:
    if len(scores.score) > EXACT:
        score, entry = _binned(scores.score)
    else:
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
    joint = judge.expectation(T + sums.rank, S[:, None], sums.drift[:, -1])
    p = judge.mean_label(sums)
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
