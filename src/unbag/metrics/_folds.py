"""One `Evaluation` from all bags, each judged by the model of its fold.

Each bag is judged by the model of its fold, which never learned from it. But the means that a bag
is centred by must not come from other models: these did learn from the bag, and the covariance of
its report with their mean score would bias the estimate by about 1 / B. So each model is centred by
its own means over the rows of all bags, which need no report. With m_k and g_k the means of f2 and
of the reference under model k (in a stratum), and m and g their means over folds, the sums of a bag
j of fold k become

    S_j - k_j (m_k - m),   G_j - k_j (g_k - g)

and the estimate is that of the mean loss of the fold models, once two things are added. One takes
no label, - mean (g_k - g)(m_k - m). The other is mean (r_j - p)(m_k - m), with r_j the report of a
bag and p the mean report (of the stratum): what model k says of a stratum on average must be judged
by the reports of fold k alone. The others taught it, and with many strata it would look better than
it is.

The interval must know that folds share bags. Let i and j be bags of different folds, and a_ij what
the label noise of bag i, by way of the model that learned from it, puts into the product of bag j.
What j puts into the product of i is the same, a_ij = a_ji, because a bag teaches and judges by the
same product. So in the variance of the sum of all products each pair counts (a_ij + a_ji)^2 = 2
(a_ij^2 + a_ji^2), twice of what the spread between bags shows. What it shows of it is the variance
of a bag's product by what its model learned, and this the models tell: by the jackknife it is K - 1
times the variance of the product between the models of folds. (Those of the other folds: they all
learned from the bag itself, so that this does not add to the variance between them.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from unbag._arrays import sum_by
from unbag.bags import Bags
from unbag.metrics._estimate import Judge
from unbag.metrics._evaluation import Evaluation, summarise
from unbag.metrics._scores import chosen_losses
from unbag.metrics._sums import NO_SCORES, BagSums, ScoreCounts, ScoredBags, collect, count_scores


def evaluate_folds(scores: Any, bags: Bags, fold: np.ndarray) -> Evaluation:
    """The mean loss of the models of several folds, from all bags, each judged by its own fold's.

    Parameters
    ----------
    scores : array
        Of all rows by each fold's model, (folds, rows) or (folds, rows, classes).
    bags : Bags
        All of them.
    fold : numpy.ndarray
        Fold number of each bag; the model of this number never learned from it.

    Returns
    -------
    Evaluation
        Of the fold models: their mean, weighted by the rows of each fold.

    >>> from unbag import random_bags
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=20_000)
    >>> bags = random_bags(None, rng.uniform(size=20_000) < 1 / (1 + np.exp(-x)), size=100, seed=0)
    >>> print(evaluate_folds([x, x], bags, np.arange(200) % 2)["log_loss"])   # twice the same model
    0.6235 [0.5599, 0.6871]
    """
    chosen = chosen_losses(None, bags.kind)
    scored = [ScoredBags.of(score, bags, chosen[0]) for score in scores]
    pieces = [collect(one, chosen, ordered=False) for one in scored]
    ranked = [_sums_of_ranks(one.score, bags) for one in scored]
    sums = _recentred(scored, pieces, ranked, fold)
    products = [np.concatenate([p.S, r], axis=1) for p, r in zip(pieces, ranked, strict=True)]
    sums = sums._replace(drift=_drift(np.stack(products), Judge(sums), fold))
    return summarise(sums, chosen, bags.kind, level=0.95, bands_wanted=10, source="bags")


def _sums_of_ranks(score: np.ndarray, bags: Bags) -> np.ndarray:
    """Of each bag the sum of the ranks of its scores among all, as one more metric."""
    if bags.kind == "histogram":
        return np.zeros((len(bags), 1, score.shape[1]))
    _, number, count = np.unique(score, return_inverse=True, return_counts=True)
    rank = (np.cumsum(count) - count / 2) / len(score)
    return sum_by(bags.bag, rank[number], len(bags))[:, None, None]


def _drift(S: np.ndarray, judge: Judge, fold: np.ndarray) -> np.ndarray:
    """Variance of each bag's product by what its fold's model learned: (bags, metrics).

    S has the sums of f2 of each bag by each fold's model, (folds, bags, metrics, components).
    """
    folds, every = len(S), np.arange(S.shape[1])
    k, n = judge.k[:, None, None], judge.instances[:, None, None]
    means = np.stack([sum_by(judge.s, one, judge.strata)[judge.s] for one in S]) / n
    product = np.einsum("fbmc,bc->fbm", S - k * means, judge.centred)
    product = product / (1 - judge.reported)[:, None]
    others = np.ones(product.shape, bool)
    if folds > 2:  # of two models both are needed for a variance
        others[fold, every] = False
    return (folds - 1) * np.var(product, axis=0, ddof=1, where=others)


def _recentred(
    scored: Sequence[ScoredBags],
    pieces: Sequence[BagSums],
    ranked: Sequence[np.ndarray],
    fold: np.ndarray,
) -> BagSums:
    """Sums of each bag by its own fold's model, moved to the common means."""
    bags, first = scored[0].bags, pieces[0]
    every, stratum = np.arange(len(bags)), np.unique(first.stratum, return_inverse=True)[1]
    own: dict[str, np.ndarray] = {}
    gap: dict[str, np.ndarray] = {}
    share = _shares(bags.size, fold, stratum, len(scored))
    sums = {
        name: np.stack([getattr(piece, name) for piece in pieces])
        for name in ("prediction", "reference", "T", "S")
    }
    for name, values in (sums | {"rank": np.stack(ranked)}).items():
        wide = (1,) * (values.ndim - 2)
        n = np.bincount(stratum, weights=bags.size).reshape(-1, *wide)
        means = np.stack([sum_by(stratum, one, int(stratum.max()) + 1) / n for one in values])
        gap[name] = means - np.sum(share.reshape(*share.shape, *wide) * means, axis=0)
        moved = bags.size.reshape(-1, *wide) * gap[name][fold, stratum]
        own[name] = values[fold, every] - moved
    together = np.sum(gap["reference"][:, :, None, :] * gap["S"], axis=-1)
    constant = -np.sum(share[:, :, None] * together, axis=0)
    residual = _residuals(first, stratum)
    by_label = {
        name: np.einsum("bc,bmc->bm", residual, gap[name][fold, stratum]) for name in ("S", "rank")
    }
    own["T"] = own["T"] + bags.size[:, None] * constant[stratum] + by_label["S"]
    own["rank"] = by_label["rank"][:, 0]
    of_fold = {f: np.stack([getattr(piece, f) for piece in pieces]) for f in ("square", "Q")}
    rest = {name: values[fold, every] for name, values in of_fold.items()}
    ordered = _ordered(scored, fold, stratum, gap["reference"][fold, stratum])
    return first._replace(**own, **rest, scores=ordered)


def _residuals(sums: BagSums, stratum: np.ndarray) -> np.ndarray:
    """k_j (r_j - p) of each bag with a report, p the mean report of its stratum, times the share of
    the stratum's instances that have one; 0 of others."""
    strata = int(stratum.max()) + 1
    size = np.where(sums.observed, sums.size, 0.0)
    reported = np.bincount(stratum, size, strata)
    report = np.where(sums.observed[:, None], sums.report, 0.0)
    mean = sum_by(stratum, size[:, None] * report, strata) / np.maximum(reported, 1e-300)[:, None]
    whole = np.bincount(stratum, sums.size, strata) / np.maximum(reported, 1e-300)
    return (size * whole[stratum])[:, None] * (report - mean[stratum])


def _shares(size: np.ndarray, fold: np.ndarray, stratum: np.ndarray, folds: int) -> np.ndarray:
    """Share of each fold in the instances of each stratum, (folds, strata)."""
    strata = int(stratum.max()) + 1
    instances = np.bincount(fold * strata + stratum, weights=size, minlength=folds * strata)
    table = instances.reshape(folds, strata)
    return table / table.sum(axis=0)


def _ordered(
    scored: Sequence[ScoredBags], fold: np.ndarray, stratum: np.ndarray, gap: np.ndarray
) -> ScoreCounts:
    """Scores of each bag by its own fold's model, made comparable between folds: the value that has
    the same rank in the mean of the sorted scores of all folds, in its stratum.

    In its stratum, because the models of two folds differ in their level of each stratum, and each
    is low where the reports of its own fold are high, which it did not learn from.
    """
    bags = scored[0].bags
    if bags.kind == "histogram":
        return NO_SCORES
    value, h = np.empty(len(bags.bag)), np.empty(len(bags.bag))
    row_fold, row_stratum = fold[bags.bag], stratum[bags.bag]
    for number in np.unique(stratum):
        inside = np.flatnonzero(row_stratum == number)
        ranked = [np.sort(one.score[inside]) for one in scored]
        common = np.mean(ranked, axis=0)
        for one, own, k in zip(scored, ranked, range(len(scored)), strict=True):
            rows = inside[row_fold[inside] == k]
            value[rows] = common[np.searchsorted(own, one.score[rows])]
            h[rows] = one.prediction[rows, 0]
    reference = h - gap[bags.bag, 0]
    return count_scores(bags.bag, value, np.ones(len(h)), h, reference)
