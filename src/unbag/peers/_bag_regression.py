"""Regression of proportions on mean rows: a bag is its mean, and one row is a bag too."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy.spatial.distance import pdist

from unbag.peers._linear import BagData, LinearModel, LinearPeer, PeerColumns, cosines

PENALTIES = np.logspace(-6, 2, 17)
SAMPLE = 1000
"""So many rows tell the typical distance."""


@dataclass(frozen=True)
class BagMeans(LinearPeer):
    """Ridge regression of the proportions on the mean rows of bags: what one writes in an hour.

        min  sum_j k_j (a_j - b - w . mean_j x)^2 + penalty |w|^2

    The penalty has the least error of bags left out, which ridge regression knows without fitting
    again. A row is then a bag of one; its value is kept in [0.01, 0.99].
    """

    name: ClassVar[str] = "bag_means"
    title: ClassVar[str] = "ridge on bag means"

    def fit_data(self, columns: PeerColumns, data: BagData, seed: int) -> LinearModel:
        """A linear probability; see `LinearPeer.fit_data`."""
        waves = self._waves(data.X, seed)
        means = data._replace(X=cosines(data.X, waves)).means
        w = ridge(means, data.report, data.size)
        return replace(LinearModel(columns, w[:-1], w[-1], probability=True), waves=waves)

    def _waves(self, X: np.ndarray, seed: int) -> Any:
        return None


@dataclass(frozen=True)
class DistributionRegression(BagMeans):
    """Kernel regression on bags as distributions: ridge regression on their mean embeddings, after
    Szabo, Sriperumbudur, Poczos and Gretton (2016).

    The embedding of a bag is the mean of random cosines, whose products are those of a Gaussian
    kernel (Rahimi and Recht 2007); its width is the median distance of rows.

    Parameters
    ----------
    features : int
        Number of cosines.
    """

    features: int = 300

    name: ClassVar[str] = "distribution_regression"
    title: ClassVar[str] = "distribution regression"

    def _waves(self, X: np.ndarray, seed: int) -> Any:
        rng = np.random.default_rng(seed)
        sample = X[rng.permutation(len(X))[:SAMPLE]]
        width = float(np.median(pdist(sample))) if len(sample) > 1 else 1.0
        frequencies = rng.normal(size=(X.shape[1], self.features)) / max(width, 1e-12)
        return np.vstack([frequencies, rng.uniform(0, 2 * np.pi, size=self.features)])


def ridge(X: np.ndarray, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Coefficients and intercept of ridge regression at the penalty of least leave-one-out error.

    Parameters
    ----------
    X, y, weight : numpy.ndarray
        Rows, what to predict, and how much each row counts.
    """
    share = weight / weight.sum()
    centre, level = share @ X, float(share @ y)
    root = np.sqrt(share)[:, None]
    U, s, V = np.linalg.svd(root * (X - centre), full_matrices=False)
    target = root[:, 0] * (y - level)
    projected, best = U.T @ target, (np.inf, np.zeros(X.shape[1]))
    for penalty in PENALTIES * max(s[0] ** 2, 1e-12):
        shrunk = s**2 / (s**2 + penalty)
        leverage = (U**2) @ shrunk + share  # the intercept has its own
        error = (target - U @ (shrunk * projected)) / np.maximum(1 - leverage, 1e-6)
        coefficients = V.T @ (shrunk / np.maximum(s, 1e-12) * projected)
        best = min(best, (float(error @ error), coefficients), key=lambda pair: pair[0])
    return np.append(best[1], level - centre @ best[1])
