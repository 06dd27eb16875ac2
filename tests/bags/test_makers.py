"""Bags as others make them: what a bag depends on, and the diagnosis beside it."""

import numpy as np
import pyarrow as pa
import pytest

import unbag
from unbag.bags import MAKERS, make_bags

RNG = np.random.default_rng(0)
CENTRES = np.repeat([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]], 900, axis=0)
X = RNG.normal(size=(2700, 2)) + CENTRES
Y = (RNG.uniform(size=len(X)) < 1 / (1 + np.exp(-(X[:, 0] - 2)))).astype(float)
WAYS = ("random", *MAKERS)


@pytest.fixture(scope="module")
def made():
    return {how: make_bags(X, Y, how, size=30, seed=1) for how in WAYS}


@pytest.mark.parametrize("how", WAYS)
def test_every_row_is_in_one_bag_and_reports_are_its_labels(how, made):
    bags = made[how]
    assert sorted(bags.rows) == list(range(len(X)))
    np.testing.assert_array_equal(bags.X, X[bags.rows])
    means = np.bincount(bags.bag, Y[bags.rows]) / bags.size
    np.testing.assert_allclose(bags.report, means)
    assert bags.size.mean() == pytest.approx(30, rel=0.15)  # bags that nobody drew are left out


@pytest.mark.parametrize("how", WAYS)
def test_the_seed_decides_the_bags(how, made):
    again = make_bags(X, Y, how, size=30, seed=1)
    np.testing.assert_array_equal(again.bag, made[how].bag)
    if how != "feature":  # whose values here are all different
        other = make_bags(X, Y, how, size=30, seed=2)
        assert len(other) != len(made[how]) or not np.array_equal(other.bag, made[how].bag)


@pytest.mark.parametrize("how", WAYS)
def test_the_diagnosis_knows_bags_that_depend_on_rows(how, made):
    diagnosis = unbag.diagnose(made[how])
    assert diagnosis.random == (how in ("random", "naive"))


@pytest.mark.parametrize("how", WAYS)
def test_proportions_vary_more_than_by_chance_where_bags_depend_on_labels(how, made):
    bags = made[how]
    chance = bags.prior * (1 - bags.prior) / bags.size
    ratio = np.mean((bags.report - bags.prior) ** 2 / chance)
    if how in ("random", "naive"):
        error = np.sqrt(2 / len(bags))
        assert ratio == pytest.approx(1.0, abs=4 * error)
    else:
        assert ratio > 2  # x and y are related, so bags by rows have other proportions too


def test_bags_by_label_alone_keep_the_rows_of_a_class_alike():
    bags = make_bags(X, Y, "simple", size=300, seed=3)
    ones = Y[bags.rows] == 1
    rows, bag = np.asarray(bags.X)[ones], bags.bag[ones]
    size = np.bincount(bag)
    means = np.stack([np.bincount(bag, column) / size for column in rows.T], axis=1)
    spread = np.mean(size[:, None] * (means - rows.mean(axis=0)) ** 2, axis=0) / rows.var(axis=0)
    assert (spread < 1 + 4 * np.sqrt(2 / len(size))).all()


def test_equal_bags_of_drawn_proportions_have_equal_sizes():
    bags = make_bags(X, Y, "dirichlet", size=30, seed=1)
    assert set(bags.size) == {30}


def test_a_large_concentration_makes_bags_alike():
    near, far = (
        make_bags(X, Y, "dirichlet", size=100, seed=1, concentration=c) for c in (1000.0, 1.0)
    )
    assert near.report.std() < 0.3 * far.report.std()


def test_bags_by_a_feature_are_blocks_of_its_values():
    bags = make_bags(X, Y, "feature", size=30, seed=0, column=1)
    low = np.full(len(bags), np.inf)
    high = -low
    np.minimum.at(low, bags.bag, X[bags.rows, 1])
    np.maximum.at(high, bags.bag, X[bags.rows, 1])
    order = np.argsort(low)
    assert (high[order][:-1] <= low[order][1:]).all()


def test_categories_of_a_table_are_sorted_by_name():
    colour = np.where(X[:, 0] > 2, "red", "blue")
    table = pa.table({"colour": colour, "length": X[:, 1]})
    bags = make_bags(table, Y, "feature", size=30, seed=0)
    mixed = [len(set(colour[bags.rows[bags.bag == j]])) > 1 for j in range(len(bags))]
    assert sum(mixed) == 1  # the bag at the border


def test_the_hard_variant_keeps_the_shares_of_labels_in_clusters():
    bags = make_bags(X, Y, "hard", size=300, seed=0)
    assert len(bags) == 9
    assert bags.report.std() > 0.1
