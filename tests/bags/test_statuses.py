"""Reports that are suppressed, hidden or pending: who is left out, and who is refused."""

import numpy as np
import pytest

import unbag
from cases.packages import needs
from cases.statuses import BAG, NAN, SOME, STATUSES
from unbag import Bags, from_rows, random_bags
from unbag.training._loader import Loader


def test_without_a_status_all_are_observed_and_nothing_changes():
    bags = Bags(BAG, [0.5, 0.5, 1.0])
    assert bags.observed.tolist() == [True] * 3
    assert bags.reported() is bags


def test_the_prior_is_the_mean_of_the_observed_reports():
    assert SOME.prior == pytest.approx((2 * 0.5 + 3 * 1.0) / 5)
    assert (
        repr(SOME)
        == "Bags(3 bags of 1 to 3; 6 instances; binary, prior 0.8; 1 reports not observed)"
    )
    histogram = Bags(BAG, [[0.5, 0.5], [NAN, NAN], [1, 0]], "histogram", status=STATUSES)
    np.testing.assert_allclose(histogram.prior, [0.8, 0.2])
    strata = Bags(
        np.arange(4),
        [1, 0, 0.5, 1],
        stratum=[0, 0, 1, 1],
        status=["observed", "pending"] + ["observed"] * 2,
    )
    np.testing.assert_allclose(strata.prior, [1, 0.75])


def test_bags_without_any_report_can_be_held_and_shown():
    bags = Bags(BAG, [NAN] * 3, status=["pending"] * 3)
    assert "prior nan" in repr(bags)
    assert Bags(BAG, [NAN] * 3, status=["pending"] * 3, known_prior=0.3).prior == 0.3


def test_a_report_that_is_not_observed_cannot_be_used_by_mistake():
    given = np.array([0.5, 7.0, 1.0])
    bags = Bags(BAG, given, status=STATUSES)
    np.testing.assert_array_equal(bags.report, [0.5, NAN, 1.0])
    assert given[1] == 7.0


def test_reported_bags_keep_their_instances_and_the_known_prior():
    bags = Bags(
        BAG, [0.5, NAN, 1.0], X=np.arange(6.0), status=STATUSES, known_prior=0.3, noise=[1, NAN, 2]
    )
    kept = bags.reported()
    assert (kept.prior, kept.report.tolist(), kept.noise.tolist()) == (0.3, [0.5, 1.0], [1, 2])
    assert (kept.X.tolist(), kept.rows.tolist()) == ([0, 1, 3, 4, 5], [0, 1, 3, 4, 5])
    assert kept.status.tolist() == ["observed"] * 2
    assert bags.reported() is kept


def test_hidden_values_can_be_left_out_when_the_bias_is_accepted():
    bags = Bags(BAG, [0.5, NAN, 1.0], status=["observed", "interval", "observed"], accept_bias=True)
    assert bags.take([2, 1]).observed.tolist() == [True, False]
    assert len(bags.reported()) == 2


def test_rows_may_come_with_a_status_and_need_no_report_then():
    ids = ["b", "a", "b", "c"]
    for status in ({"b": "pending"}, ["pending", "observed", "pending", "observed"]):
        bags = from_rows(ids, {"a": 1.0, "c": 0.0}, status=status, noise={"a": 1, "c": 1})
        assert bags.observed.tolist() == [True, False, True]
        assert bags.prior == 0.5
    histogram = from_rows(
        ids, {"a": [1, 0], "c": [0, 1]}, kind="histogram", status={"b": "suppressed_by_size"}
    )
    np.testing.assert_array_equal(histogram.report, [[1, 0], [NAN, NAN], [0, 1]])
    labelled = from_rows(ids, y=[1, 1, 0, 0], status={"b": "pending"})
    np.testing.assert_array_equal(labelled.report, [1, NAN, 0])
    hidden = from_rows(ids, y=[1, 1, 0, 0], status={"b": "interval"}, accept_bias=True)
    assert hidden.status.tolist() == ["observed", "interval", "observed"]


def partly(count=40, size=5, seed=0):
    """Bags of which every fourth is pending, with features and the truth for the first column."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count * size, 2)).astype(np.float32)
    whole = random_bags(X, (X[:, 0] > 0).astype(int), size=size, seed=seed)
    status = np.where(np.arange(count) % 4 == 0, "pending", "observed")
    return whole, Bags(whole.bag, whole.report, X=whole.X, status=status)


def test_a_split_shares_out_observed_and_pending_bags_alike():
    whole, bags = partly()
    first, second = bags.split(0.8, seed=1)
    assert (first.observed.sum(), second.observed.sum()) == (24, 6)
    assert ((~first.observed).sum(), (~second.observed).sum()) == (8, 2)
    assert sorted([*first.rows, *second.rows]) == list(range(200))
    again = Bags(whole.bag, whole.report, status=["observed"] * 40).split(0.8, seed=1)[0]
    np.testing.assert_array_equal(again.rows, whole.split(0.8, seed=1)[0].rows)


def test_batches_visit_observed_bags_only():
    _, bags = partly()
    batches = list(bags.batches(20, seed=0))
    assert sum(len(batch) for batch in batches) == 30
    assert all(np.isfinite(batch.report).all() and batch.prior == bags.prior for batch in batches)


def test_training_with_pending_bags_is_training_without_them():
    _, bags = partly()
    train, held_out = bags.split(0.5, seed=0)
    importance = np.linspace(1, 2, len(train))
    model = unbag.models.linear(2, key=0)

    def weight(train, held_out, importance):
        run = unbag.train(
            model, train, epochs=2, batch=20, held_out=held_out, importance=importance
        )
        return np.asarray(run.model.layers[-1].weight), run.history["held_out"]

    whole, seen = weight(train, held_out, importance)
    without, seen_without = weight(train.reported(), held_out, importance[train.observed])
    np.testing.assert_array_equal(whole, without)
    np.testing.assert_array_equal(seen, seen_without)
    assert np.isfinite(seen).all()
    fewer = weight(train, held_out.reported(), importance)[1]
    assert np.all(fewer != seen)  # held-out events whose report is pending serve for the means


def test_the_noise_that_bags_declare_reaches_the_weights_of_training():
    noise = np.array([0.0, 4.0, 9.0])
    bags = Bags(np.repeat(np.arange(3), 4), [0.5, 0.25, 0.25], noise=noise)
    loader = Loader(bags, batch=12, seed=0)
    (numbers,) = loader.plan(1)
    batch = loader.arrays([numbers], 0, unbag.training._loader.Shape(12, 3))
    p = 1 / 3
    expected = 1 / (p * (1 - p) + noise / 4)
    np.testing.assert_allclose(batch.weight, (expected / expected.sum())[numbers], rtol=1e-6)


def test_a_tournament_with_pending_bags_counts_and_judges_the_others():
    whole, bags = partly(count=80)
    scores = {"right": 3 * whole.X[:, 0], "flat": 0 * whole.X[:, 0]}
    result = unbag.tournament(scores, bags, beta=0.5, groups=3, loss=unbag.losses.square)
    assert result.bags == 60
    assert np.isfinite(result.Q).all()
    assert result.Q[0, 1] < 0
    wild = {name: np.where(bags.observed[bags.bag], score, 1e3) for name, score in scores.items()}
    np.testing.assert_array_equal(
        unbag.tournament(wild, bags, beta=0.5, groups=3, loss=unbag.losses.square).Q, result.Q
    )


def test_boosting_learns_from_observed_bags_only():
    needs("lightgbm")
    _, bags = partly()
    train, held_out = bags.split(0.5, seed=0)
    model = unbag.boosting.fit_lightgbm(train, held_out=held_out, rounds=3)
    same = unbag.boosting.fit_lightgbm(train.reported(), held_out=held_out.reported(), rounds=3)
    np.testing.assert_array_equal(model.history, same.history)


def test_the_pytorch_loader_visits_observed_bags_only():
    needs("torch")
    _, bags = partly()
    reports = np.concatenate(
        [batch[2].numpy() for batch in unbag.pytorch.bag_loader(bags, batch=20)]
    )
    np.testing.assert_allclose(np.sort(reports), np.sort(bags.report[bags.observed]), rtol=1e-6)
