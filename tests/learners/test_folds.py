import itertools
from dataclasses import dataclass

import numpy as np
import pytest

from unbag import Bags, evaluate, from_rows, random_bags
from unbag.learners import fit_folds, folds_of
from unbag.learners._folds import scores_by_own_fold
from unbag.metrics import _folds, evaluate_folds
from worlds import repeated


def world(n=2000, size=20, seed=0, kind="binary", stratum=None):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    h = 1 / (1 + np.exp(1 - X[:, 0]))
    y = rng.uniform(size=n) < h
    if kind == "total":
        y = rng.poisson(h)
    if kind == "histogram":
        y = y + (rng.uniform(size=n) < 0.3)
    return random_bags(X, y, size=size, seed=seed, kind=kind, stratum=stratum)


@dataclass(frozen=True)
class Remembers:
    """A learner whose model is the rows it learned from."""

    name: str = "remembers"
    needs_random_bags: bool = False

    def fit(self, bags, *, seed=0, progress=None):
        return Memory({row.tobytes() for row in bags.X})


class Memory:
    kind = "binary"

    def __init__(self, rows):
        self.rows = rows

    def scores(self, X):
        return np.array([float(row.tobytes() in self.rows) for row in X])


@pytest.mark.parametrize("count", [4, 7, 16, 103])
def test_folds_are_even_and_have_at_least_two_bags(count):
    bags = Bags(np.arange(count), np.zeros(count))
    sizes = np.bincount(folds_of(bags, 5, seed=0))
    assert len(sizes) == min(5, count // 2)
    assert sizes.min() >= 2
    assert np.ptp(sizes) <= 1


def test_folds_are_even_within_each_stratum():
    stratum = np.repeat([0, 1, 2], [3, 11, 40])
    fold = folds_of(Bags(np.arange(54), np.zeros(54), stratum=stratum), 5, seed=3)
    for s in range(3):
        assert np.ptp(np.bincount(fold[stratum == s], minlength=5)) <= 1


def test_folds_depend_on_the_seed_alone():
    bags = world()
    assert (folds_of(bags, 5, seed=1) == folds_of(bags, 5, seed=1)).all()
    assert (folds_of(bags, 5, seed=1) != folds_of(bags, 5, seed=2)).any()


def test_no_bag_is_scored_by_a_model_that_learned_from_it():
    bags = world(n=200)
    fold = folds_of(bags, 3, seed=0)
    found = fit_folds(Remembers(), bags, fold)
    own = scores_by_own_fold(found.scores(bags.X), fold[bags.bag])
    assert (own == 0).all()
    assert (found.final.scores(bags.X) == 1).all()


def scores_of(bags, models, seed=1):
    rng = np.random.default_rng(seed)
    shape = (len(bags.bag), *bags.report.shape[1:])
    return [rng.normal(size=shape) for _ in range(models)]


@pytest.mark.parametrize("kind", ["binary", "total", "histogram"])
@pytest.mark.parametrize("strata", [False, True])
def test_one_model_for_all_folds_is_evaluated_as_ever(kind, strata):
    stratum = np.random.default_rng(5).integers(2, size=2000) if strata else None
    bags = world(kind=kind, stratum=stratum)
    score = scores_of(bags, 1)[0]
    fold = folds_of(bags, 5, seed=0)
    found, expected = evaluate_folds([score] * 5, bags, fold), evaluate(score, bags)
    assert set(found.estimates) == set(expected.estimates)
    for name, estimate in expected.estimates.items():
        np.testing.assert_allclose(found[name][:4], estimate[:4], rtol=1e-9, atol=1e-12)
    for ours, theirs in zip(found.calibration, expected.calibration, strict=True):
        np.testing.assert_allclose(ours.prediction, theirs.prediction)
        np.testing.assert_allclose(ours.observed[:4], theirs.observed[:4], atol=1e-12)


def test_what_models_learn_from_shared_bags_adds_its_variance(monkeypatch):
    bags = world()
    fold, scores, seen = folds_of(bags, 5, seed=0), scores_of(bags, 5), []
    real = _folds._drift

    def kept(S, judge, fold):
        seen.append((real(S, judge, fold), judge))
        return seen[-1][0]

    monkeypatch.setattr(_folds, "_drift", kept)
    wide = evaluate_folds(scores, bags, fold)["log_loss"].error
    monkeypatch.setattr(_folds, "_drift", lambda *given: 0 * real(*given))
    narrow = evaluate_folds(scores, bags, fold)["log_loss"].error
    (drift, judge), count = seen[0], len(bags)
    added = count / (count - 1) * np.sum(judge.w**2 * drift[:, 0])
    assert added > 0.1 * narrow**2
    assert wide**2 - narrow**2 == pytest.approx(added, rel=1e-9)


def logit_mean(p):
    return np.log(p / (1 - p))


def ridge(bags, penalty):
    """Weights and intercept of a linear score, by least squares on the means of bags."""
    k = bags.size
    mean = np.stack([np.bincount(bags.bag, x) / k for x in bags.X.T], axis=1)
    p = np.clip(np.average(bags.report, weights=k), 0.02, 0.98)
    away, v = mean - np.average(mean, axis=0, weights=k), p * (1 - p)
    H = (away * k[:, None] * v).T @ away + penalty * np.eye(away.shape[1])
    w = np.linalg.solve(H, (away * k[:, None]).T @ (bags.report - p))
    return w, logit_mean(p) - np.average(mean, axis=0, weights=k) @ w


TRUE, START = np.array([1.0, 0.7, 0.5, 0.0]), -1.2


def trial(count, penalty, rng, size=16, folds=5):
    """The interval from folds, the mean true loss of the fold models, and that of the final one."""
    X = rng.normal(size=(count * size, 4))
    y = rng.uniform(size=len(X)) < 1 / (1 + np.exp(-START - X @ TRUE))
    bags = Bags(np.repeat(np.arange(count), size), y.reshape(count, size).mean(axis=1), X=X)
    fold = folds_of(bags, folds, seed=int(rng.integers(2**31)))
    models = [ridge(bags.take(np.flatnonzero(fold != f)), penalty) for f in range(folds)]
    fresh = rng.normal(size=(4000, 4))
    p = 1 / (1 + np.exp(-START - fresh @ TRUE))

    def loss(w, b):
        z = fresh @ w + b
        return np.mean(np.logaddexp(0, z) - p * z)

    true = np.average([loss(*m) for m in models], weights=np.bincount(fold))
    found = evaluate_folds([X @ w + b for w, b in models], bags, fold)["log_loss"]
    return found, true, loss(*ridge(bags, penalty))


def test_the_interval_covers_the_mean_loss_of_fold_models_although_folds_share_bags():
    """Nominal 95%: with 300 trials the standard error of a share is 1.3%; 4 of them are allowed.

    Without the doubling of what models learn the share was 84 to 91% (benchmarks/folds.py).
    """
    rng = np.random.default_rng(0)
    trials = [trial(20, 8.0, rng) for _ in repeated(range(300))]
    covered = np.mean([found.low <= true <= found.high for found, true, _ in trials])
    below = np.mean([final <= found.high for found, _, final in trials])
    assert 0.90 < covered < 0.995
    assert below > 0.91


def test_the_evaluation_by_folds_is_unbiased():
    """Centred by other folds' models it would be too high by about 1 / B, here .05: ten sigma."""
    rng = np.random.default_rng(1)
    trials = [trial(20, 30.0, rng) for _ in repeated(range(150))]
    difference = np.array([found.value - true for found, true, _ in trials])
    error = difference.std() / np.sqrt(len(difference))
    assert error < 0.005
    assert abs(difference.mean()) < 4 * error


def test_the_auc_of_fold_models_is_not_hidden_by_their_levels_of_strata():
    """Models that know the mean of each stratum in the other folds, and nothing else: each is low
    where the reports of its own fold are high, which must not look as if it ranked wrongly."""
    rng = np.random.default_rng(0)
    strata, folds = 20, 5
    stratum = np.repeat(np.arange(strata), 25)
    y = rng.random((len(stratum), 40)) < (0.1 + 0.02 * stratum)[:, None]
    rows = np.repeat(stratum, 40)
    bags = from_rows(np.repeat(np.arange(len(stratum)), 40), y=y.ravel(), stratum=rows)
    fold = np.arange(len(stratum)) % folds
    sums = [np.bincount(stratum[fold != k], bags.report[fold != k]) for k in range(folds)]
    models = np.stack(sums) / np.bincount(stratum[fold != 0])
    own = evaluate_folds(np.log(models / (1 - models))[:, rows], bags, fold)["auc"]
    positives = [np.bincount(rows, y.ravel() == label) for label in (True, False)]
    order = np.argsort(models.mean(axis=0))
    above, below = (count[order] / count.sum() for count in positives)
    truth = np.sum(above * (np.cumsum(below) - below / 2))
    assert abs(own.value - truth) < 2 * own.error  # it was 3 standard errors below
    assert own.low > 0.5


def test_what_fold_models_learn_of_strata_is_judged_without_bias():
    """All labels of a small world, each with its probability: the mean of the estimates is the mean
    loss of the models, which know the mean label of each stratum in the other fold."""
    p = np.array([0.2, 0.2, 0.6, 0.6])  # of bags of two rows; folds 0 1 0 1
    fold, stratum, rows = np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1]), np.repeat(np.arange(4), 2)
    estimate = truth = 0.0
    for labels in repeated(itertools.product([0, 1], repeat=8)):
        y = np.array(labels).reshape(4, 2)
        chance = np.prod(np.where(y == 1, p[:, None], 1 - p[:, None]))
        other = (y.sum(axis=1)[[1, 0, 3, 2]] + 1) / 4  # what the model of a bag's fold learned
        score = np.log(other / (1 - other))
        by_model = np.stack([score[[0, 0, 2, 2]], score[[1, 1, 3, 3]]])[:, rows]
        bags = from_rows(rows, y=y.ravel(), stratum=stratum[rows])
        estimate += chance * evaluate_folds(by_model, bags, fold)["log_loss"].value
        truth += chance * np.mean(-p * np.log(other) - (1 - p) * np.log(1 - other))
    assert estimate == pytest.approx(truth, rel=1e-9)
