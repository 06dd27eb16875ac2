import numpy as np
import pytest

from unbag.datasets import make_campaigns, make_counts, make_gaussian, make_heavy_tailed

MAKERS = [make_gaussian, make_heavy_tailed, make_campaigns, make_counts]


@pytest.mark.parametrize("make", MAKERS)
def test_made_data_have_the_promised_shapes_and_depend_on_the_seed_alone(make):
    data, again, other = make(300, 200, seed=1), make(300, 200, seed=1), make(300, 200, seed=2)
    assert data.X.shape == (300, 10)
    assert data.X_test.shape == (200, 10)
    assert data.y.shape == data.truth.shape == (300,)
    assert data.y_test.shape == data.truth_test.shape == (200,)
    assert len(data.features) == 10
    assert data.X.dtype == data.y.dtype == np.float32
    np.testing.assert_array_equal(data.X_test, again.X_test)
    np.testing.assert_array_equal(data.y_test, again.y_test)
    assert not np.array_equal(data.X_test, other.X_test)


@pytest.mark.parametrize("make", MAKERS)
def test_labels_have_the_mean_that_the_truth_says_in_every_band(make):
    """Ten bands of the truth; in each the mean of y - truth is within 4 standard errors of 0."""
    data = make(100_000, 1, seed=3)
    bands = np.array_split(np.argsort(data.truth), 10)
    for band in bands:
        gap = data.y[band] - data.truth[band]
        assert abs(gap.mean()) < 4 * gap.std() / len(band) ** 0.5


def test_the_score_is_linear_in_the_features():
    data = make_gaussian(500, 1, seed=0, features=3, strength=2.0, intercept=-1.0)
    w = 2 * np.array([1, 1 / 2, 1 / 3]) / np.sqrt(1 + 1 / 4 + 1 / 9)
    np.testing.assert_allclose(
        np.log(data.truth / (1 - data.truth)), data.X @ w - 1, rtol=1e-6, atol=1e-6
    )


def test_heavy_tails_are_heavy():
    student, gauss = make_heavy_tailed(seed=0), make_gaussian(seed=0)
    assert np.abs(student.X).max() > 8 * np.abs(gauss.X).max()


def test_the_truth_given_the_features_alone_averages_over_the_campaigns():
    """Against Bayes' rule with the normal density written out."""
    from scipy.stats import multivariate_normal

    data = make_campaigns(200, 1, seed=4, campaigns=3, features=2)
    rng = np.random.default_rng(4)  # the draws of the world, in their order
    share, centre, lift = (
        rng.dirichlet(np.full(3, 2.0)),
        0.5 * rng.normal(size=(3, 2)),
        0.5 * rng.normal(size=3),
    )
    w = 2 * np.array([1, 0.5]) / np.sqrt(1.25)
    density = np.stack(
        [s * multivariate_normal(m).pdf(data.X) for s, m in zip(share, centre, strict=True)], axis=1
    )
    given = 1 / (1 + np.exp(-((data.X @ w)[:, None] - 1 + lift)))
    np.testing.assert_allclose(
        data.truth, (density * given).sum(axis=1) / density.sum(axis=1), rtol=1e-5
    )
    known = make_campaigns(200, 1, seed=4, campaigns=3, features=2, known=True)
    np.testing.assert_allclose(known.truth, given[np.arange(200), data.campaign], rtol=1e-5)
    np.testing.assert_array_equal(known.X[:, 2:], np.eye(3)[data.campaign])
    np.testing.assert_array_equal(known.y, data.y)


def test_campaigns_differ_only_as_far_as_asked():
    apart = make_campaigns(50_000, 1, seed=0, campaigns=5)
    alike = make_campaigns(50_000, 1, seed=0, campaigns=5, feature_effect=0, label_effect=0)
    means = lambda data: np.array([data.y[data.campaign == c].mean() for c in range(5)])
    assert np.ptp(means(apart)) > 0.1
    assert np.ptp(means(alike)) < 0.03
    np.testing.assert_allclose(
        alike.truth,
        make_campaigns(
            50_000, 1, seed=0, campaigns=5, feature_effect=0, label_effect=0, known=True
        ).truth,
    )


def test_exposure_is_an_offset_and_dispersion_widens_the_counts():
    data = make_counts(
        100_000, 10, seed=0, strength=0.0, intercept=1.0, least_exposure=0.2, dispersion=0.5
    )
    np.testing.assert_allclose(data.truth, np.exp(1 + data.offset), rtol=1e-5)
    assert data.offset_test.shape == (10,)
    excess = (data.y - data.truth) ** 2 - data.truth - 0.5 * data.truth**2
    assert abs(excess.mean()) < 4 * excess.std() / len(excess) ** 0.5
    assert make_counts(10, 10, seed=0).offset is None
