"""Bags by campaign and day and by publisher, where the truth is known."""

import numpy as np
import pyarrow as pa
import pytest
from scipy.special import expit

import unbag
from unbag.learners import Additive, fit
from unbag.learners._combine import slope_of
from unbag.learners._folds import look_random


def clicks(n=12_000, seed=0, publishers=150):
    """Clicks whose conversion depends on publisher, campaign and a number of each click."""
    rng = np.random.default_rng(seed)
    campaign, day = rng.integers(12, size=n), rng.integers(20, size=n)
    publisher = rng.choice(publishers, size=n, p=rng.dirichlet(np.full(publishers, 3.0)))
    x = rng.normal(0.8 * rng.normal(size=publishers)[publisher], 1)  # publishers differ in it
    effects = 0.7 * np.sin(5 * campaign) + 0.3 * rng.normal(size=publishers)[publisher]
    score = -1.5 + effects + x
    names = {
        "campaign": [f"c{i}" for i in campaign],
        "publisher": [f"p{i}" for i in publisher],
        "x": x,
    }
    bag = {"campaign x day": 20 * campaign + day, "publisher": publisher}
    return pa.table(names), score, rng.random(n) < expit(score), bag


@pytest.mark.filterwarnings("ignore::unbag.learners.DataWarning")
@pytest.mark.parametrize("by", ["campaign x day", "publisher"])
def test_bags_that_are_not_random_teach_and_are_judged_by_the_likelihood_of_reports(by):
    X, score, y, bag = clicks()
    model = fit(unbag.from_rows(bag[by], y=y, X=X), learner=Additive())
    loss = np.mean(np.logaddexp(0, model.scores(X)) - expit(score) * model.scores(X))
    p = expit(score).mean()
    trivial = -p * np.log(p) - (1 - p) * np.log(1 - p)
    best = np.mean(np.logaddexp(0, score) - expit(score) * score)
    assert (trivial - loss) / (trivial - best) > 0.3  # of the way to the truth
    if by == "publisher":
        assert model.judged_by_counts
        assert "log_loss" not in model.evaluation.estimates
    assert model.gain.low > 0


@pytest.mark.filterwarnings("ignore::unbag.learners.DataWarning")
def test_bags_that_cannot_tell_are_said_to():
    X, score, _, bag = clicks(n=3000)
    rng = np.random.default_rng(1)
    y = rng.random(len(score)) < 0.2  # nothing explains the labels
    model = fit(unbag.from_rows(bag["publisher"], y=y, X=X), learner=Additive())
    assert model.gain.low < 0
    assert any("cannot tell" in line or "worse than" in line for line in model.verdict)
    assert np.abs(expit(model.scores(X)) - 0.2).mean() < 0.05


def test_fold_models_that_differ_in_the_level_of_campaigns_do_not_make_bags_look_not_random():
    """The models of two folds put a campaign higher or lower; that is no difference of bags."""
    rng = np.random.default_rng(2)
    campaign, fold = np.repeat(np.arange(20), 25), np.arange(500) % 5
    rows = np.repeat(campaign, 40)
    x = rng.normal(size=len(rows))
    bag, y = np.repeat(np.arange(500), 40), rng.random(len(rows)) < expit(x)
    bags = unbag.from_rows(bag, y=y, stratum=rows)
    levels = rng.normal(0, 0.3, (5, 20))
    assert look_random(x + levels[:, rows], bags, fold)
    assert not look_random(x + levels[:, rows] + 0.5 * (bag % 2), bags, fold)


@pytest.mark.filterwarnings("ignore::unbag.learners.DataWarning")
def test_bags_drawn_by_label_do_not_make_the_model_too_sure():
    """A bag's proportion is drawn, then rows of each label: counts vary more than the model says.

    The slope ran away to 3 and the answer was the prior.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 3))
    truth = expit(1.5 * X[:, 0] - 1)
    y = rng.random(6000) < truth
    bags = unbag.make_bags(X, y, "simple", size=50, seed=0)
    model = fit(bags, learner="additive")
    p = y.mean()
    entropy = -p * np.log(p) - (1 - p) * np.log(1 - p)
    score = model.scores(X)
    loss = np.mean(np.logaddexp(0, score) - truth * score)
    best = -np.mean(truth * np.log(truth) + (1 - truth) * np.log1p(-truth))
    assert loss < entropy - 0.8 * (entropy - best)


@pytest.mark.parametrize("way", ["simple", "random"])
@pytest.mark.parametrize("factor", [1, 2])
def test_the_slope_of_the_true_score_is_1_in_bags_drawn_by_label_too(way, factor):
    """Newton's method for the means alone said 7.9, and 43 for the score times 2."""
    rng = np.random.default_rng(0)
    score = 1.5 * rng.normal(size=(6000, 1)) - 1
    bags = unbag.make_bags(score, rng.random(6000) < expit(score[:, 0]), way, size=50, seed=0)
    slope = slope_of(factor * bags.X[:, 0], bags)
    assert slope.low < 1 / factor < slope.high
    assert slope.value == pytest.approx(1 / factor, rel=0.1)
