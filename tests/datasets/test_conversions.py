"""The made clicks are what their description says."""

import numpy as np
import pytest

from unbag.datasets import make_conversions


def test_bags_lie_within_a_campaign_and_reports_are_noisy_counts():
    clicks = make_conversions(30_000, 500, seed=1, campaigns=5, publishers=50)
    campaign = clicks.events["campaign"].combine_chunks().indices.to_numpy()
    pairs = np.unique(np.stack([clicks.bag, campaign]), axis=1)
    size = np.bincount(clicks.bag)
    assert pairs.shape[1] == len(size) == len(clicks.report)
    assert size.max() <= 109
    assert ((size < 20) == (clicks.status == "suppressed_by_size")).all()
    there = clicks.status == "observed"
    assert (np.isfinite(clicks.report) == there).all()
    noise = (clicks.report * size - np.bincount(clicks.bag, weights=clicks.label))[there]
    sigma = np.sqrt(20 / there.sum())  # the fourth moment of Laplace noise of variance 2 is 24
    assert abs((noise**2).mean() - 2) < 4 * sigma
    assert abs(noise.mean()) < 4 * np.sqrt(2 / there.sum())


def test_labels_follow_the_truth_and_the_seed_decides_all():
    clicks = make_conversions(30_000, 500, seed=1, campaigns=5, publishers=50)
    sigma = np.sqrt((clicks.truth * (1 - clicks.truth)).sum()) / 30_000
    assert abs(clicks.label.mean() - clicks.truth.mean()) < 4 * sigma
    again = make_conversions(30_000, 500, seed=1, campaigns=5, publishers=50)
    assert again.events.equals(clicks.events)
    np.testing.assert_array_equal(again.label, clicks.label)
    assert clicks.bags().observed.sum() == (clicks.status == "observed").sum()


def test_too_few_clicks_for_the_campaigns_are_refused():
    with pytest.raises(ValueError, match="Clicks must fill bags of every campaign"):
        make_conversions(100, 10, seed=0)
