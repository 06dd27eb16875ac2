"""Sums per bag in, an expectation and what each bag contributes to its error out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unbag._arrays import sum_by
from unbag._rules import two_reports
from unbag.metrics._sums import Sums
from unbag.weights import noise_weights


class Estimated(NamedTuple):
    """A value, and the share `psi` of each bag in its error: error of the value ~ sum of psi, bags
    independent.

    sized : what of psi a bag contributes by its size; the rest it contributes by its weight.
    """

    value: float
    psi: np.ndarray
    sized: np.ndarray | float = 0.0

    def __sub__(self, other: Estimated) -> Estimated:  # pyright: ignore[reportIncompatibleMethodOverride]
        return Estimated(self.value - other.value, self.psi - other.psi, self.sized - other.sized)

    def parts(self) -> np.ndarray:
        """psi and what of it is sized, to reckon with both at once."""
        return np.stack([self.psi, np.broadcast_to(self.sized, self.psi.shape)])


class Judge:
    """What held-out bags know of a reference: residuals, means and weights, with one row per
    bag."""

    def __init__(self, sums: Sums) -> None:
        observed, (self.names, s) = sums.observed, np.unique(sums.stratum, return_inverse=True)
        self.strata = int(s.max()) + 1
        self.k, self.s, self.observed = sums.size, s, observed
        two_reports(s if self.strata > 1 else None, observed)
        self.instances = sum_by(s, self.k, self.strata)[s]
        self.share = self.instances / self.k.sum()
        self.e = np.where(observed[:, None], sums.report - sums.reference / self.k[:, None], 0.0)
        seen = np.where(observed, self.k, 0.0)
        self.seen = seen / sum_by(s, seen, self.strata)[s]
        self.residual = sum_by(s, self.seen[:, None] * self.e, self.strata)[s]
        self.w = np.zeros(len(self.k))
        n = self.k.sum()
        # Var y rather than Var(y - g): a model that is sure of itself would leave all weight to the
        # bags without noise
        variance = max(
            float(sums.square.sum() / n - np.mean((sums.reference.sum(axis=0) / n) ** 2)), 1e-9
        )
        self.w[observed] = noise_weights(
            self.k[observed], sums.noise[observed], variance=variance, stratum=s[observed]
        )
        self.by_weight, self.by_report, self.by_size = (
            self._freed(share) for share in (self.w, self.seen, self.k / self.instances)
        )

    def _freed(self, share: np.ndarray) -> np.ndarray:
        """What makes up for it that a bag is itself a share of the mean that it is centred by.

        A share h of a mean leaves 1 - h of a bag's variance; `interval` divides by 1 - 1 / B, which
        is right for even shares only.
        """
        count = np.bincount(self.s, weights=self.observed)[self.s]
        return np.sqrt((1 - 1 / count) / np.maximum(1 - share, 1e-9))

    def expectation(
        self, T: np.ndarray, S: np.ndarray, drift: np.ndarray | float = 0.0
    ) -> Estimated:
        """E[f1 + y f2] from the sums T of f1 + g f2 and S of f2 (bags, components).

            mean T  +  sum_j w_j [(e_j - e)(S_j - k_j m) / (1 - r_j) + e m_j]

        e_j is the mean residual of bag j, e that of all observed bags, r_j the share of bag j in e,
        m the mean of f2 over all bags and m_j that over the others. Where all bags are observed,
        (S_j - k_j m) / (1 - r_j) is S_j - k_j m_j; in general its product with e_j - e has the mean
        Cov(y - g, f2), for any of the bags observed.
        """
        k, s, strata = self.k[:, None], self.s, self.strata
        total, n = sum_by(s, S, strata)[s], self.instances[:, None]
        mean, m = total / n, (total - S) / np.where(n > k, n - k, 1.0)
        centred = np.where(self.observed[:, None], self.e - self.residual, 0.0)
        co = np.sum(centred * (S - k * mean), axis=1) / (1 - self.seen)
        own = self.share * self.w * (co + np.sum(self.residual * m, axis=1))
        mean_T = sum_by(s, T, strata)[s] / self.instances
        value = float(T.sum() / self.k.sum() + own.sum())
        about = sum_by(s, self.w * co, strata)[s]
        moved = T - self.k * mean_T + np.sum(self.residual * (S - k * mean), axis=1)
        sized = (
            self.by_report * self.seen * np.sum(centred * mean, axis=1)
            + self.by_size * moved / self.instances
        )
        psi = self.by_weight * self.w * (co - about) + sized
        psi = np.where(psi < 0, -1.0, 1.0) * np.sqrt(psi**2 + self.w**2 * drift)
        return Estimated(value, self.share * psi, self.share * sized)
