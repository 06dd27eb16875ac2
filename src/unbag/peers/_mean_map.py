"""Mean map and Laplacian mean map: the sum of labels times rows, estimated from bag means."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import ClassVar

import numpy as np
from scipy.spatial.distance import cdist

from unbag._rules import broken
from unbag.peers._linear import BagData, LinearPeer, fit_logistic

PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
SMOOTHNESS = (0.01, 1.0)
MOST_BAGS = 4000


@dataclass(frozen=True)
class MeanMap(LinearPeer):
    """Mean map, Quadrianto, Smola, Caetano and Le (2009).

    The mean row of a bag is b_j = a_j m1 + (1 - a_j) m0 when bags differ in their proportions
    only. Least squares over bags, weighted by their sizes, give the class means m1 and m0, and
    p m1 - (1 - p) m0 the mean operator of logistic regression.

    Parameters
    ----------
    penalties : tuple of float
        Of the coefficients; one is chosen from bags.
    """

    penalties: tuple[float, ...] = PENALTIES

    name: ClassVar[str] = "mean_map"
    title: ClassVar[str] = "mean map"

    def settings(self) -> list[tuple[float, float]]:
        """Smoothness and penalty."""
        return [(0.0, penalty) for penalty in self.penalties]

    def coefficients(self, data: BagData, setting: tuple[float, float]) -> np.ndarray:
        """Coefficients, then the intercept; see `LinearPeer.coefficients`."""
        smoothness, penalty = setting
        return fit_logistic(data.X, self.operator(data, smoothness), data.prior, penalty)

    def operator(self, data: BagData, smoothness: float) -> np.ndarray:
        """Half the mean operator, the estimate of mean (y - 1/2) x.

        Parameters
        ----------
        data : BagData
            To learn from.
        smoothness : float
            Of the Laplacian mean map.
        """
        a, share = data.report, data.size / data.size.sum()
        A = np.sqrt(share)[:, None] * np.stack([a, 1 - a], axis=1)
        classes = np.linalg.lstsq(A, np.sqrt(share)[:, None] * data.means, rcond=None)[0]
        p = float(share @ a)
        return (p * classes[0] - (1 - p) * classes[1]) / 2


@dataclass(frozen=True)
class LaplacianMeanMap(MeanMap):
    """Laplacian mean map, Patrini, Nock, Rivera and Caetano (2014).

    Each bag has class means of its own, alike in bags whose mean rows are alike:

        min  sum_j share_j |b_j - a_j m1_j - (1 - a_j) m0_j|^2
             + smoothness / bags sum_{j < l} v_jl ( |m1_j - m1_l|^2 + |m0_j - m0_l|^2 )

    with v_jl = exp(-|b_j - b_l|^2 / s), s the median squared distance. Infinite smoothness is the
    mean map.

    Parameters
    ----------
    smoothnesses : tuple of float
        One is chosen from bags together with the penalty.
    """

    smoothnesses: tuple[float, ...] = SMOOTHNESS

    name: ClassVar[str] = "laplacian_mean_map"
    title: ClassVar[str] = "Laplacian mean map"

    def settings(self) -> list[tuple[float, float]]:
        """Smoothness and penalty."""
        return list(product(self.smoothnesses, self.penalties))

    def operator(self, data: BagData, smoothness: float) -> np.ndarray:
        """Half the mean operator, from class means of each bag.

        Parameters
        ----------
        data : BagData
            To learn from.
        smoothness : float
            How alike the class means of similar bags are.
        """
        a, B, m = data.report, data.means, len(data.size)
        if m > MOST_BAGS:
            raise broken(
                f"The Laplacian mean map must have at most {MOST_BAGS:,} bags",
                f"{m:,} given",
                "Use mean_map.",
            )
        share = data.size / data.size.sum()
        distance = cdist(B, B, "sqeuclidean")
        similar = np.exp(-distance / max(float(np.median(distance)), 1e-12))
        laplacian = np.diag(similar.sum(axis=1)) - similar
        A = np.concatenate([np.diag(a), np.diag(1 - a)], axis=1)
        H = A.T @ (share[:, None] * A)
        H += smoothness / m**2 * np.kron(np.eye(2), laplacian) + 1e-12 * np.eye(2 * m)
        classes = np.linalg.solve(H, A.T @ (share[:, None] * B))
        return (share @ (a[:, None] * classes[:m] - (1 - a)[:, None] * classes[m:])) / 2
