"""Made data with known truth: P(y = 1 | x) or E[y | x] of every row, so the best loss is known.

All scores are linear, z = x . w + intercept, with w_i proportional to 1/i and |w| = `strength`.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit, softmax

from unbag._rules import broken
from unbag.datasets._dataset import Dataset


def make_gaussian(
    rows: int = 20_000,
    test_rows: int = 10_000,
    *,
    seed: int,
    features: int = 10,
    strength: float = 2.0,
    intercept: float = -1.0,
) -> Dataset:
    """Gaussian logistic data: x ~ N(0, I), P(y = 1 | x) = sigmoid(x . w + intercept).

    Parameters
    ----------
    rows, test_rows : int
        How many rows to train and to test on.
    seed : int
        Of everything that is drawn.
    features : int
        Number of columns.
    strength : float
        |w|; the score has this standard deviation, and 0 means that x says nothing.
    intercept : float
        The score at x = 0.

    Returns
    -------
    Dataset
        With `truth` and `truth_test`, the probabilities from which the labels were drawn.

    >>> data = make_gaussian(1000, 500, seed=0)
    >>> data.X.shape, data.y_test.shape, bool(((data.truth > 0) & (data.truth < 1)).all())
    ((1000, 10), (500,), True)
    """
    _sizes(rows, test_rows, features)
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows + test_rows, features))
    return _logistic("gaussian", rng, X, rows, _direction(features, strength), intercept)


def make_heavy_tailed(
    rows: int = 20_000,
    test_rows: int = 10_000,
    *,
    seed: int,
    features: int = 10,
    strength: float = 2.0,
    intercept: float = -1.0,
    freedom: float = 2.5,
) -> Dataset:
    """Logistic data with heavy tails: each x_i is Student's t with `freedom` degrees of freedom.

    P(y = 1 | x) = sigmoid(x . w + intercept), as for `make_gaussian`. Moments of order `freedom`
    and above do not exist: at 2.5 the log loss of a linear model has a variance and no fourth
    moment, so means over bags are far from normal.

    Parameters
    ----------
    rows, test_rows, seed, features, strength, intercept : int and float
        As in `make_gaussian`.
    freedom : float
        Degrees of freedom.

    Returns
    -------
    Dataset
        With `truth` and `truth_test`, the probabilities from which the labels were drawn.

    >>> data = make_heavy_tailed(1000, 500, seed=0)
    >>> bool(np.abs(data.X).max() > 10)
    True
    """
    _sizes(rows, test_rows, features)
    if not freedom > 0:
        raise broken(
            "Degrees of freedom must be positive", f"{freedom} given", "Use 2.5 for heavy tails."
        )
    rng = np.random.default_rng(seed)
    X = rng.standard_t(freedom, size=(rows + test_rows, features))
    return _logistic("heavy_tailed", rng, X, rows, _direction(features, strength), intercept)


def make_campaigns(
    rows: int = 20_000,
    test_rows: int = 10_000,
    *,
    seed: int,
    campaigns: int = 20,
    features: int = 10,
    strength: float = 2.0,
    intercept: float = -1.0,
    feature_effect: float = 0.5,
    label_effect: float = 0.5,
    known: bool = False,
) -> Dataset:
    """Campaigns whose features and labels differ, so that bags cut along them are not random.

        x = m_c + noise,   P(y = 1 | x, c) = sigmoid(x . w + intercept + u_c),
        m_c ~ N(0, feature_effect^2 I),   u_c ~ N(0, label_effect^2),   shares ~ Dirichlet(2)

    The rows come in random order; `campaign` says which is whose. Training and test rows share the
    campaigns.

    Parameters
    ----------
    rows, test_rows, seed, features, strength, intercept : int and float
        As in `make_gaussian`.
    campaigns : int
        How many there are.
    feature_effect : float
        How far apart the campaigns' features are; 0 means not at all.
    label_effect : float
        How far apart their labels are for equal features; 0 means not at all.
    known : bool
        Whether the campaign is a feature (one-hot, after the others).

    Returns
    -------
    Dataset
        With `campaign` and `truth`, the probability given the features: P(y = 1 | x, c) when the
        campaign is known, otherwise P(y = 1 | x) = sum_c P(c | x) P(y = 1 | x, c), which no model
        that sees x alone can beat.

    >>> data = make_campaigns(1000, 500, seed=0, campaigns=5)
    >>> data.X.shape, np.unique(data.campaign).tolist()
    ((1000, 10), [0, 1, 2, 3, 4])
    >>> make_campaigns(9, 9, seed=0, campaigns=5, known=True).X.shape
    (9, 15)
    """
    _sizes(rows, test_rows, features)
    if campaigns < 1:
        rule = "Data must have at least one campaign"
        raise broken(rule, f"{campaigns} given", "Use 1 for data without structure.")
    rng = np.random.default_rng(seed)
    share = rng.dirichlet(np.full(campaigns, 2.0))
    centre = feature_effect * rng.normal(size=(campaigns, features))
    lift = label_effect * rng.normal(size=campaigns)
    w = _direction(features, strength)

    n = rows + test_rows
    c = rng.choice(campaigns, size=n, p=share)
    X = (centre[c] + rng.normal(size=(n, features))).astype(np.float32)
    given = expit((X @ w)[:, None] + intercept + lift)  # P(y = 1 | x, c) for every c
    own = given[np.arange(n), c]
    y = (rng.uniform(size=n) < own).astype(np.float32)
    # Up to what all campaigns share.
    log_density = X @ centre.T - (centre**2).sum(axis=1) / 2 + np.log(share)
    truth = (softmax(log_density, axis=1) * given).sum(axis=1)
    data = _split("synthetic/campaigns", rows, X, y, truth)
    if known:
        both = np.hstack([X, np.eye(campaigns, dtype=np.float32)[c]])
        names = (*data.features, *(f"campaign={i}" for i in range(campaigns)))
        data = _split(data.name, rows, both, y, own)._replace(features=names)
    return data._replace(campaign=c[:rows], campaign_test=c[rows:])


def make_counts(
    rows: int = 20_000,
    test_rows: int = 10_000,
    *,
    seed: int,
    features: int = 10,
    strength: float = 0.7,
    intercept: float = -1.0,
    least_exposure: float = 1.0,
    dispersion: float = 0.0,
) -> Dataset:
    """Count data: y ~ Poisson(r G), r = exposure exp(x . w + intercept), x ~ N(0, I).

    Parameters
    ----------
    rows, test_rows, seed, features, strength, intercept : int and float
        As in `make_gaussian`.
    least_exposure : float
        Exposures are uniform between this and 1; `offset` is their log. 1 means no exposures, no
        offset.
    dispersion : float
        G is a Gamma variable of mean 1 and this variance, so Var[y | x] = r + dispersion r^2; 0
        means G = 1.

    Returns
    -------
    Dataset
        Of kind "total", whose `truth` is r, the expected count of the row with its exposure.

    >>> data = make_counts(1000, 500, seed=0, least_exposure=0.1)
    >>> data.kind, data.offset.shape, bool((data.offset <= 0).all())
    ('total', (1000,), True)
    """
    _sizes(rows, test_rows, features)
    if not 0 < least_exposure <= 1:
        rule = "A least exposure must lie above 0 and be at most 1"
        raise broken(rule, f"{least_exposure} given", "Use 1 for none.")
    if dispersion < 0:
        raise broken(
            "A dispersion must not be negative", f"{dispersion} given", "Use 0 for Poisson counts."
        )
    rng, n = np.random.default_rng(seed), rows + test_rows
    X = rng.normal(size=(n, features)).astype(np.float32)
    offset = np.log(rng.uniform(least_exposure, 1, size=n))
    rate = np.exp(X @ _direction(features, strength) + intercept + offset)
    mixing = np.ones(n)
    if dispersion:
        mixing = rng.gamma(1 / dispersion, dispersion, size=n)
    y = rng.poisson(rate * mixing).astype(np.float32)
    data = _split("synthetic/counts", rows, X, y, rate)._replace(kind="total", classes=0)
    if least_exposure == 1:
        return data
    offset = offset.astype(np.float32)
    return data._replace(offset=offset[:rows], offset_test=offset[rows:])


def _logistic(
    name: str, rng: np.random.Generator, X: np.ndarray, rows: int, w: np.ndarray, intercept: float
) -> Dataset:
    X = X.astype(np.float32)
    truth = expit(X @ w + intercept)
    y = (rng.uniform(size=len(X)) < truth).astype(np.float32)
    return _split(f"synthetic/{name}", rows, X, y, truth)


def _split(name: str, rows: int, X: np.ndarray, y: np.ndarray, truth: np.ndarray) -> Dataset:
    names = tuple(f"x{i}" for i in range(X.shape[1]))
    train, test = slice(rows), slice(rows, None)
    return Dataset(
        X[train], y[train], X[test], y[test], names, name, truth=truth[train],
        truth_test=truth[test], citation="made by unbag.datasets", licence="no restriction",
    )  # fmt: skip


def _direction(features: int, strength: float) -> np.ndarray:
    w = 1 / np.arange(1, features + 1)
    return strength * w / np.linalg.norm(w)


def _sizes(rows: int, test_rows: int, features: int) -> None:
    if min(rows, test_rows, features) < 1:
        rule = "Made data must have at least one row, test row and feature"
        raise broken(rule, f"{rows}, {test_rows} and {features} given", "Ask for more.")
