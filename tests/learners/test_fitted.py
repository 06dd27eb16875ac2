import subprocess
import sys
import warnings
from functools import cache

import numpy as np
import pyarrow as pa
import pytest

from cases.learners import labels
from cases.packages import needs
from unbag import Bags, from_rows, random_bags
from unbag.learners import Additive, DataWarning, Fitted, Trees, fit

needs("lightgbm")
QUICK = (Additive(), Trees(rounds=40, patience=20))


def table(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    x, shop = rng.normal(size=n), rng.integers(5, size=n)
    score = -1 + x + np.linspace(-1, 1, 5)[shop]
    return pa.table({"x": x, "shop": np.array(list("abcde"))[shop]}), score, rng


def bags_of(kind="binary", size=10, seed=0, **options):
    X, score, rng = table(seed=seed)
    y = labels(kind, score, rng)
    return random_bags(X, y, size=size, seed=seed, kind=kind, **options), score


@cache
def learned(kind="binary"):
    """Bags, the score of each row, and what was learned."""
    bags, score = bags_of(kind)
    return bags, score, fit(bags, learner=QUICK)


@pytest.mark.parametrize("kind", ["binary", "total", "histogram"])
def test_the_default_learns_and_judges_every_kind_of_report(kind):
    bags, score, fitted = learned(kind)
    assert set(fitted.weights) == {"additive", "trees"}
    assert fitted.evaluation.bags == len(bags)
    h = fitted.predict(bags.X)
    if kind == "histogram":
        np.testing.assert_allclose(h.sum(axis=1), 1)
        h = 1 - h[:, 0]
    assert np.corrcoef(np.log(h), score[bags.rows])[0, 1] > 0.9
    assert any("slightly pessimistic" in note for note in fitted.notes)


def test_the_evaluation_tells_the_loss():
    _, _, fitted = learned()
    X, fresh, _ = table(n=20000, seed=9)
    z, p = fitted.scores(X), 1 / (1 + np.exp(-fresh))
    true = np.mean(np.logaddexp(0, z) - p * z)
    told = fitted.evaluation["log_loss"]
    assert told.low - 0.02 < true < told.high


def test_a_model_comes_back_from_its_arrays_without_pickle():
    bags, _, fitted = learned()
    arrays, settings = fitted.arrays()
    assert all(array.dtype != object for array in arrays.values())
    back = Fitted.restore(arrays, settings)
    np.testing.assert_array_equal(back.predict(bags.X), fitted.predict(bags.X))
    assert back.weights == fitted.weights


def test_labels_that_no_column_explains_give_the_prior():
    """The mean loss on fresh rows is .0007 above that of the prior, sigma .001 a trial."""
    excess, fresh = [], table(n=20000, seed=99)[0]
    for seed in range(3):
        X, _, rng = table(seed=seed)
        bags = random_bags(X, rng.uniform(size=3000) < 0.2, size=10, seed=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            z = fit(bags, learner=QUICK, seed=seed).scores(fresh)
        prior = -0.2 * np.log(0.2) - 0.8 * np.log(0.8)
        excess.append(np.mean(np.logaddexp(0, z) - 0.2 * z) - prior)
    assert np.mean(excess) < 0.0007 + 4 * 0.0012 / np.sqrt(3)


def test_bags_that_are_not_random_are_learned_without_trees_and_judged_by_their_likelihood():
    X, score, rng = table()
    y = rng.uniform(size=len(score)) < 1 / (1 + np.exp(-score))
    by_x = np.argsort(np.argsort(X["x"].to_numpy())) // 10
    fitted = fit(from_rows(by_x, y=y, X=X), learner=QUICK)
    assert set(fitted.weights) == {"additive"}
    assert "gain_over_prior" in fitted.evaluation.estimates
    assert "the bags are not random" in fitted.evaluation.notes[0]
    assert any("Trees left out" in note for note in fitted.notes)
    assert fitted.evaluation["gain_over_prior"].low > 0


def test_bags_within_a_category_are_compared_within_it():
    X, score, rng = table()
    y = rng.uniform(size=len(score)) < 1 / (1 + np.exp(-score))
    shop = X["shop"].to_numpy(zero_copy_only=False)
    drawn = random_bags(X, y, size=10, seed=0, stratum=shop)
    fitted = fit(Bags(drawn.bag, drawn.report, X=drawn.X), learner=QUICK)
    assert "No bag mixes shop: bags are compared with those of the same shop only." in fitted.notes
    assert "log_loss" in fitted.evaluation.estimates
    assert len(fitted.evaluation.strata) == 5
    assert set(fitted.weights) == {"additive", "trees"}
    assert np.corrcoef(fitted.models["trees"].scores(X), score)[0, 1] > 0.9
    further = fitted.evaluate(Bags(drawn.bag, drawn.report, X=drawn.X))
    assert len(further.strata) == 5
    assert "No bag mixes shop" in further.notes[0]


def test_strata_of_one_report_are_judged_by_their_likelihood():
    bags, _ = bags_of(size=100)
    alone = Bags(bags.bag, bags.report, X=bags.X, stratum=np.arange(len(bags)))
    fitted = fit(alone, learner=Additive())
    assert "log_likelihood" in fitted.evaluation.estimates


def test_an_untouched_share_tests_the_final_model():
    bags, _ = bags_of()
    fitted = fit(bags, learner=QUICK, test=0.2)
    assert fitted.test.bags == 60
    assert fitted.evaluation.bags == 240


def test_few_bags_are_not_judged():
    bags, _ = bags_of(size=1000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        fitted = fit(bags, learner=QUICK)
    assert fitted.evaluation is None
    assert "too few to judge" in fitted.notes[0]
    assert np.isfinite(fitted.predict(bags.X)).all()


def test_a_time_limit_leaves_out_what_has_not_begun():
    bags, _ = bags_of()
    fitted = fit(bags, learner=QUICK, time_limit=0.0)
    assert set(fitted.weights) == {"additive"}
    assert any("time limit" in note for note in fitted.notes)


def test_an_offset_belongs_to_the_rows_and_not_to_the_model():
    X, score, rng = table()
    exposure = rng.normal(size=len(score))
    y = rng.poisson(np.exp(score + exposure - 1))
    bags = random_bags(X, y, size=10, seed=0, kind="total", offset=exposure)
    fitted = fit(bags, learner=QUICK)
    np.testing.assert_allclose(fitted.scores(bags.X).mean(), (score - 1).mean(), atol=0.3)
    assert fitted.predict(bags.X, offset=exposure[bags.rows]).mean() == pytest.approx(
        float(bags.prior), rel=0.1
    )


def test_the_same_seed_gives_the_same_model():
    bags, _, fitted = learned()
    again, other = (fit(bags, learner=QUICK, seed=seed).scores(bags.X) for seed in (0, 1))
    np.testing.assert_array_equal(fitted.scores(bags.X), again)
    assert np.abs(again - other).max() > 1e-6


def test_without_lightgbm_learning_goes_on_and_says_so():
    code = (
        "import sys, numpy as np; sys.modules['lightgbm'] = None\n"
        "from unbag import random_bags; from unbag.learners import fit\n"
        "rng = np.random.default_rng(0); X = rng.normal(size=(800, 2))\n"
        "bags = random_bags(X, X[:, 0] + rng.logistic(size=800) > 0, size=8, seed=0)\n"
        "fitted = fit(bags); print(list(fitted.weights), fitted.notes[0])\n"
    )
    command = [sys.executable, "-W", "ignore", "-c", code]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed.startswith("['additive'] Learned without trees: LightGBM cannot be loaded")


def test_a_learner_that_is_not_known_is_refused():
    bags, _ = bags_of()
    with pytest.raises(ValueError, match="A learner must be one of additive, trees"):
        fit(bags, learner="forest")
