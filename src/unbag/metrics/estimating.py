"""Sums per bag in, an expectation and what each bag contributes to its error out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unbag.arrays import sum_by
from unbag.checks import two_reports
from unbag.metrics.collecting import Sums
from unbag.weights import noise_weights


class Estimated(NamedTuple):
    """A value, and the share `psi` of each bag in its error: error of the value ~ sum of psi, bags independent."""

    value: float
    psi: np.ndarray

    def __sub__(self, other: Estimated) -> Estimated:  # pyright: ignore[reportIncompatibleMethodOverride]
        return Estimated(self.value - other.value, self.psi - other.psi)


class Judge:
    """What held-out bags know of a reference: residuals, means and weights, with one row per bag."""

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
        # Var y rather than Var(y - g): a model that is sure of itself would leave all weight to the bags without noise
        variance = max(float(sums.square.sum() / n - np.mean((sums.reference.sum(axis=0) / n) ** 2)), 1e-9)
        self.w[observed] = noise_weights(self.k[observed], sums.noise[observed], variance=variance, stratum=s[observed])

    def expectation(self, T: np.ndarray, S: np.ndarray) -> Estimated:
        """E[f1 + y f2] from the sums T of f1 + g f2 and S of f2 (bags, components).

            mean T  +  sum_j w_j [(e_j - e)(S_j - k_j m_j) + e m_j]

        e_j is the mean residual of bag j, e that of all (observed) bags, m_j the mean of f2 over the other bags.
        """
        k, s, strata = self.k[:, None], self.s, self.strata
        total, n = sum_by(s, S, strata)[s], self.instances[:, None]
        mean, m = total / n, (total - S) / np.where(n > k, n - k, 1.0)
        centred = np.where(self.observed[:, None], self.e - self.residual, 0.0)
        co = np.sum(centred * (S - k * m), axis=1)
        own = self.share * self.w * (co + np.sum(self.residual * m, axis=1))
        mean_T = sum_by(s, T, strata)[s] / self.instances
        value = float(T.sum() / self.k.sum() + own.sum())
        about = sum_by(s, self.w * co, strata)[s]
        psi = self.w * (co - about)
        psi += self.seen * np.sum(centred * mean, axis=1)
        psi += np.sum(self.residual * (S - k * mean), axis=1) / self.instances
        psi += (T - self.k * mean_T) / self.instances
        return Estimated(value, self.share * psi)
