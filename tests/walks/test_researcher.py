"""A researcher has labels, hides them in bags, and asks whether what bags say is true."""

from itertools import product

import numpy as np
import pytest

import unbag
from unbag import losses, weights

SIZE, BAGS = 16, 400


@pytest.fixture(scope="module")
def world():
    """Rows with labels, the same rows in random bags, and the score of a fixed model."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(SIZE * BAGS, 2))
    y = rng.random(len(X)) < 1 / (1 + np.exp(1 - X @ [1.5, -1.0]))
    bags = unbag.random_bags(X, y, size=SIZE, seed=0)
    return X, y, bags, X @ [1.0, -1.0] - 0.8


def test_the_weights_are_the_formula_of_the_paper_and_unbiased(world):
    """Every outcome of two bags of two, with the prior known."""
    p, f = np.array([0.2, 0.9]), np.array([1.0, -2.0])
    size, bag, prior = np.array([2, 2]), np.array([0, 0, 1, 1]), np.array([1.0, 0.55])
    mean = 0.0
    for order in product(range(2), repeat=4):  # rows drawn independently from two kinds
        for y in product((0, 1), repeat=4):
            kinds, label = np.array(order), np.array(y)
            chance = np.prod(np.where(label, p[kinds], 1 - p[kinds])) / 2**4
            share = np.bincount(bag, weights=label) / 2
            w = weights.upm(size, np.stack([np.ones(2), share], axis=1), prior)
            mean += chance * (w[bag, 1] @ f[kinds])
    assert mean == pytest.approx(np.mean(p * f))


def test_losses_from_bags_are_those_of_labels_within_their_intervals(world):
    _, y, bags, score = world
    judged = unbag.evaluate(score[bags.rows], bags, scale="score")
    labels = unbag.evaluate_labels(score, y, scale="score")
    for metric in ("log_loss", "brier", "auc"):
        bag, label = judged[metric], labels[metric]
        assert abs(bag.value - label.value) < 4 * np.hypot(bag.error, label.error)
    assert judged["log_loss"].worth < len(y)


def test_a_loss_of_the_researchers_own_is_a_weighted_sum(world):
    _, y, bags, score = world
    components = losses.log.components(score[bags.rows])
    w = weights.upm(bags.size, *bags.components())
    value = float((w[bags.bag] * components).sum())
    assert value == pytest.approx(np.mean(losses.log.value(score, y)), abs=0.15)


def test_the_default_learns_from_bags_nearly_what_labels_teach(world):
    _, _, bags, _ = world
    model = unbag.fit(bags, learner="additive", folds=3)
    rng = np.random.default_rng(1)
    new = rng.normal(size=(4000, 2))
    truth = new @ [1.5, -1.0] - 1
    assert np.corrcoef(model.scores(new), truth)[0, 1] > 0.97
    assert model.verdict.answer == "better"
    assert model.worth == pytest.approx(BAGS, rel=0.5)  # a bag is worth about one labelled row


def test_bags_choose_the_better_of_two_models_and_a_tournament_agrees(world):
    _, _, bags, score = world
    models = {"good": score[bags.rows], "bad": -score[bags.rows]}
    assert unbag.choose(models, bags).name == "good"
    won = unbag.tournament(models, bags, beta=0.1, delta=0.1)
    assert won.chosen == "good"


def test_bags_that_are_not_random_are_found_without_labels(world):
    X, y, bags, _ = world
    assert unbag.diagnose(bags).random
    sorted_bags = unbag.from_rows(np.argsort(np.argsort(X[:, 0])) // SIZE, y=y, X=X)
    assert not unbag.diagnose(sorted_bags).random
