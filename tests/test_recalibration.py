"""Recalibration from bags: the minimum of the estimated loss, intervals that cover, drift
repaired."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize

from cases.recalibration import binary, sigmoid
from unbag import evaluate, evaluate_labels, from_rows, losses, random_bags, recalibrate, weights
from unbag.bags import as_components
from unbag.metrics import predict
from unbag.recalibration import _hotelling


def counts(n=4000, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    return x, rng.poisson(np.exp(0.5 * x - 0.5)).astype(float)


def classes(n=4000, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, 3))
    return 2 * z, np.argmax(z + np.array([0.5, 0, 0]) + rng.gumbel(size=z.shape), axis=1).astype(
        float
    )


WORLDS = {
    "binary": (binary, losses.log),
    "total": (counts, losses.poisson),
    "histogram": (classes, losses.cross_entropy),
}


@pytest.mark.parametrize("fit", ["both", "intercept"])
@pytest.mark.parametrize("kind", WORLDS)
def test_it_is_the_minimum_of_the_loss_that_the_anchored_weights_estimate(kind, fit):
    make, loss = WORLDS[kind]
    score, y = make()
    bags = random_bags(None, y, size=4, seed=0, kind=kind)
    g = predict(score, loss, kind)
    W = weights.anchored(
        bags.bag,
        bags.size,
        *bags.components(),
        g if kind == "histogram" else as_components(g[:, 0], kind),
    )
    free = 2 if kind == "histogram" else 1

    def estimated(theta):
        slope, shift = (theta[0], theta[1:]) if fit == "both" else (1.0, theta)
        shift = np.append(shift, 0.0) if kind == "histogram" else shift[0]
        return np.sum(W * loss.components(slope * score + shift, kind=kind))

    start = np.array([1.0] * (fit == "both") + [0.0] * free)
    naive = minimize(
        estimated,
        start,
        method="Nelder-Mead",
        options={"xatol": 1e-9, "fatol": 1e-13, "maxiter": 4000},
    ).x
    found = recalibrate(score, bags, fit=fit)
    values = [found.slope.value] * (fit == "both") + [one.value for one in found.intercept]
    assert values == pytest.approx(naive, abs=1e-5)


def test_labels_as_bags_of_one_give_the_logistic_regression_of_the_score():
    from sklearn.linear_model import LogisticRegression

    score, y = binary(20_000)
    found = recalibrate(score, random_bags(None, y, size=1, seed=0))
    model = LogisticRegression(C=1e9).fit(score[:, None], y)
    assert found.slope.value == pytest.approx(model.coef_[0, 0], abs=2e-3)
    assert found.intercept[0].value == pytest.approx(model.intercept_[0], abs=2e-3)


def test_the_standard_errors_are_those_of_the_jackknife():
    score, y = binary(1600)
    bags = random_bags(score, y, size=8, seed=0)
    same = lambda X: X
    left_out = [recalibrate(same, bags.take(np.delete(np.arange(200), j))) for j in range(200)]
    found = recalibrate(same, bags)
    for part in (lambda r: r.slope, lambda r: r.intercept[0]):
        values = np.array([part(one).value for one in left_out])
        error = np.sqrt(199 / 200 * np.sum((values - values.mean()) ** 2))
        assert part(found).error == pytest.approx(error, rel=0.06)


def test_an_intercept_has_the_degrees_of_freedom_of_the_mean_report():
    """Both contribute by size; the noise gives other shares to what contributes by weight."""
    rng = np.random.default_rng(0)
    bag = np.repeat(np.arange(6), [100, 20, 20, 20, 20, 20])
    x = rng.normal(size=200)
    y = rng.uniform(size=200) < 1 / (1 + np.exp(-x))
    bags = replace(from_rows(bag, y=y), noise=np.array([900.0, 0, 0, 0, 0, 0]))
    reach = lambda one: (one.high - one.low) / one.error
    found = recalibrate(x, bags, fit="intercept").intercept[0]
    assert reach(found) == pytest.approx(reach(evaluate(x, bags)["prediction_minus_report"]))


def test_a_level_that_is_far_off_is_found_in_steps():
    """A whole step of Newton's would be to exp(999)."""
    score = np.random.default_rng(0).normal(0, 0.1, size=400)
    y = np.random.default_rng(1).poisson(1000 * np.exp(score))
    bags = random_bags(score, y, size=4, seed=0, kind="total")
    found = recalibrate(lambda X: X, bags, fit="intercept").intercept[0].value
    assert found == pytest.approx(np.log(y.mean() / np.exp(score).mean()), abs=1e-3)


def test_the_p_value_is_that_of_hotellings_test_and_of_students_for_one_parameter():
    rng = np.random.default_rng(0)
    values = rng.normal(0.4, 1.0, size=(12, 2))
    mean, covariance = values.mean(axis=0), np.cov(values.T)
    squared = 12 * mean @ np.linalg.solve(covariance, mean)
    expected = stats.f.sf(squared * (12 - 2) / (2 * (12 - 1)), 2, 12 - 2)
    assert _hotelling(mean, (values - mean).T / 12, 12) == pytest.approx(expected, rel=1e-9)
    score, y = binary(200)
    found = recalibrate(score, random_bags(None, y, size=10, seed=0), fit="intercept")
    t = abs(found.intercept[0].value / found.intercept[0].error)
    assert found.p_value == pytest.approx(2 * stats.t.sf(t, 19), rel=1e-9)


@pytest.mark.slow
def test_intervals_cover_and_no_alarm_is_raised_for_calibrated_scores():
    """400 repetitions: the standard error of a coverage of 95% is 1.1 points, of an alarm rate of
    5% likewise."""
    hits, alarms = np.zeros(2), 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=2000)
        bags = random_bags(None, rng.uniform(size=2000) < sigmoid(x - 1), size=10, seed=seed)
        found = recalibrate(x - 1, bags)
        hits += [
            found.slope.low < 1 < found.slope.high,
            found.intercept[0].low < 0 < found.intercept[0].high,
        ]
        alarms += found.p_value < 0.05
    assert np.all(np.abs(hits / 400 - 0.95) < 0.033), hits
    assert abs(alarms / 400 - 0.05) < 0.033, alarms


@pytest.mark.parametrize("factor, shift", [(1e-3, 0.0), (1.0, 1000.0), (1e-3, 5.0)])
def test_the_scale_of_the_scores_does_not_matter(factor, shift):
    rng = np.random.default_rng(0)
    x = rng.normal(size=4000)
    bags = random_bags(None, rng.uniform(size=4000) < 1 / (1 + np.exp(-x)), size=1, seed=0)
    plain, moved = recalibrate(x, bags), recalibrate(factor * x + shift, bags)
    assert moved.slope.value * factor == pytest.approx(
        plain.slope.value, rel=0.05
    )  # the references differ
    assert moved.slope.error * factor == pytest.approx(plain.slope.error, rel=0.3)
    np.testing.assert_allclose(moved.apply(factor * x + shift), plain.apply(x), atol=0.15)


def test_a_drifted_model_is_repaired_by_its_intercept():
    rng = np.random.default_rng(0)
    x = rng.normal(size=20_000)
    y = (rng.uniform(size=20_000) < sigmoid(x - 2)).astype(float)
    recent, later = random_bags(x, y, size=50, seed=0).split(0.5, seed=0)
    before = lambda X: X
    repair = recalibrate(before, recent, fit="intercept", trained_on=later)
    assert repair.p_value < 1e-6
    assert repair.intercept[0].low < -2 < repair.intercept[0].high
    after = repair.wrap(before)
    truth = (
        evaluate_labels(before, y, X=x)["log_loss"].value
        - evaluate_labels(after, y, X=x)["log_loss"].value
    )
    assert truth > 0.3
    assert (
        evaluate(after, later)["prediction_minus_report"].low
        < 0
        < evaluate(after, later)["prediction_minus_report"].high
    )
    assert after.predict_proba(x[:5]).sum(axis=1) == pytest.approx(np.ones(5))


class Remembering:
    """A model that knows the bags it learned from."""

    def __init__(self, bags):
        self.bags_ = bags

    def decision_function(self, X):
        return X[:, 0]


def test_a_repaired_model_knows_what_it_and_its_repair_learned_from():
    score, y = binary(900)
    bags = from_rows(np.arange(900) // 9, y=y, X=score[:, None])
    learn, rest = bags.split(0.5, seed=0)
    recent, later = rest.split(0.5, seed=0)
    model = Remembering(learn)
    after = recalibrate(model, recent).wrap(model)
    for seen in (learn, recent, bags):
        with pytest.raises(
            ValueError, match="must not overlap the bags that the model learned from"
        ):
            evaluate(after, seen)
    assert evaluate(after, later).bags == len(later)
    forgetful = recalibrate(lambda X: X[:, 0], random_bags(score[:, None], y, size=9, seed=0)).wrap(
        lambda X: X[:, 0]
    )
    assert evaluate(forgetful, later).bags == len(later)


def test_repaired_log_rates_are_counts_for_the_square_loss():
    score, y = counts(400)
    bags = random_bags(score, y, size=4, seed=0, kind="total")
    repaired = recalibrate(lambda X: X, bags).wrap(lambda X: X)
    by_square = evaluate(repaired, bags, losses=["square"])
    assert by_square["mean_prediction"].value == pytest.approx(
        evaluate(repaired, bags)["mean_prediction"].value
    )


def test_a_function_that_gives_probabilities_stays_one_when_it_is_repaired():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(4000, 1))
    bags = random_bags(x, rng.uniform(size=4000) < 1 / (1 + np.exp(-x[:, 0])), size=10, seed=0)
    logits, shares = lambda X: 2 * X[:, 0], lambda X: 1 / (1 + np.exp(-2 * X[:, 0]))
    one = recalibrate(logits, bags).wrap(logits).scores(x)
    other = recalibrate(shares, bags, scale="probability").wrap(shares).scores(x)
    np.testing.assert_allclose(one, other, atol=1e-6)
