import numpy as np
import pytest

from cases.learners import labels
from unbag import random_bags
from unbag.learners import Additive, Stacked, StackedModel, Trees


def crossed(kind, n=4000, size=4):
    """Signs whose product matters, beside a line."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    score = 1.5 * np.sign(X[:, 0] * X[:, 1]) + X[:, 2]
    y = labels(kind, score, rng)
    return random_bags(X, y, size=size, seed=0, kind=kind), score


@pytest.fixture(scope="module")
def binary():
    bags, score = crossed("binary")
    return bags, score, Stacked(base=Additive(pairs=0)).fit(bags)


def test_trees_add_the_interaction_that_a_sum_of_columns_lacks(binary):
    bags, score, model = binary
    centred = score[bags.rows] - score.mean()
    of_base = np.corrcoef(model.base.scores(bags.X), centred)[0, 1]
    assert of_base < 0.7
    assert np.corrcoef(model.scores(bags.X), centred)[0, 1] > of_base + 0.1


def test_without_rounds_the_score_is_the_additive_one_at_the_level_of_the_reports(binary):
    bags, _, _ = binary
    model = Stacked(trees=Trees(rounds=0)).fit(bags)
    additive = Additive().fit(bags).scores(bags.X)
    assert np.ptp(model.scores(bags.X) - additive) < 1e-12
    predicted = 1 / (1 + np.exp(-model.scores(bags.X)))
    assert predicted.mean() == pytest.approx(bags.prior, abs=5e-3)


def test_a_stacked_model_comes_back_from_its_arrays(binary):
    bags, _, model = binary
    again = StackedModel.restore(*model.arrays())
    np.testing.assert_array_equal(again.scores(bags.X[:50]), model.scores(bags.X[:50]))


@pytest.mark.parametrize("kind", ["total", "histogram"])
def test_counts_and_classes_can_be_stacked(kind):
    bags, _ = crossed(kind, n=1200)
    model = Stacked(trees=Trees(rounds=5)).fit(bags)
    assert model.kind == kind
    assert np.isfinite(model.scores(bags.X)).all()
