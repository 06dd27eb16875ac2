"""The bias of the unbiased estimates when bags are not random.

    bias = (k - 1) Cov between bags of (E[y | bag], E[f2 | bag])

Labels of single instances are unknown, so the covariance is bounded (Cauchy-Schwarz) by the two
variances between bags, which can be had without them: that of f2 by analysis of variance, that of
the labels by the over-dispersion of the reports. With scores it is also estimated directly, the
covariance within bags being taken from the model.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unbag._arrays import mean_by, sum_by
from unbag.bags import Bags, Kind, label_variance
from unbag.diagnosis._variance import FLOOR, BagLayout, Chance, Variance
from unbag.losses import Loss

TAIL = 0.025  # each of two variances gets an upper limit at 97.5%, so that both hold at 95%


class Dispersion(NamedTuple):
    """How the reports vary between bags.

    Parameters
    ----------
    ratio : float
        Their variance against what chance and noise allow; 1 for random bags.
    p : float or None
        Chance of this ratio or more; None where it cannot be known.
    between, upper : array (classes,)
        Variance of E[y | bag] between bags, and its upper limit.
    variance : array (classes,)
        Var y of one instance.
    assumed : str
        What was assumed to know it.
    """

    ratio: float
    p: float | None
    between: np.ndarray
    upper: np.ndarray
    variance: np.ndarray
    assumed: str

    def of(self, kept: np.ndarray) -> Dispersion:
        """That of some of the classes."""
        between, upper, variance = (part[kept] for part in self[2:5])
        return self._replace(between=between, upper=upper, variance=variance)

    def largest(self) -> Dispersion:
        """That of the class which differs most between bags."""
        return self.of(np.array([int(np.argmax(self.upper))]))


class Bias(NamedTuple):
    """The bias to expect of the unbiased estimate at these bag sizes.

    Parameters
    ----------
    bound, limit : float
        Cauchy-Schwarz with the estimated variances, and with their upper limits at 95%. The verdict
        rests on the limit.
    scale : float
        sd(y) sd(f2), the largest covariance that is possible.
    unit : str
        What the numbers measure.
    direct, error : float or None
        With scores, the estimate of (k - 1) Cov from the reports and its standard error. It takes
        the covariance within bags from the model, so it is right as far as the model is.
    anchored, anchored_error : float or None
        The same for the anchored estimate with these scores as reference g, where y - g takes the
        place of y.
    """

    bound: float
    limit: float
    scale: float
    unit: str
    direct: float | None = None
    error: float | None = None
    anchored: float | None = None
    anchored_error: float | None = None

    @property
    def share(self) -> float:
        """The limit as a share of the largest covariance that is possible."""
        if not self.scale > 0:
            return 0.0
        return self.limit / self.scale


def label_dispersion(bags: Bags) -> Dispersion:
    """Do the reports vary more than random bags allow?

    Binary: the variance of a report is p (1 - p) / k + noise / k^2 in random bags; classes alike,
    one by one. Totals do not tell the variance of single counts: Poisson is assumed to estimate,
    and nothing is tested.
    """
    from scipy.special import chdtri

    r = _observed_reports(bags)
    if r is None or r.layout.between < 1 or r.layout.k0 <= 1 + 1e-9:
        one = np.ones(bags.report[:1].size)
        assumed = "anything: no two reports of a stratum can be compared"
        return Dispersion(1.0, None, one, one, one, assumed)
    free = r.layout.between
    variance = (r.each * (r.layout.bags - 1)[:, None] / free).sum(axis=0)
    chance = variance + (r.noise * r.heard).sum(axis=0) / free
    msb = (r.k * r.off**2).sum(axis=0) / free
    low = float(chdtri(free, 1 - TAIL) / free)
    between, upper = (
        np.clip((spread - chance) / (r.layout.k0 - 1), 0, variance) for spread in (msb, msb / low)
    )
    ratio = 1.0
    if chance.sum() > 0:
        ratio = float(msb.sum() / chance.sum())
    if bags.kind == "total":
        return Dispersion(ratio, None, between, upper, variance, "Poisson counts")
    return Dispersion(ratio, _spread_p(r), between, upper, variance, "")


class _ObservedReports(NamedTuple):
    """Observed reports a, one row per bag and one column per class, with what chance allows."""

    layout: BagLayout
    k: np.ndarray
    a: np.ndarray
    p: np.ndarray  # of each stratum
    off: np.ndarray  # a - p
    each: np.ndarray  # Var y in each stratum
    noise: np.ndarray  # variance of the noise on the count, divided by k
    heard: np.ndarray  # 1 - k / n: a report is part of its own prior


def counts_of(bags: Bags) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Size, report and noise variance of the count of each observed bag, with columns by class."""
    size, report = bags.size[bags.observed], bags.report[bags.observed]
    noise = bags.noise_or_zero[bags.observed]
    return size[:, None].astype(float), report.reshape(len(size), -1), noise[:, None]


def _observed_reports(bags: Bags) -> _ObservedReports | None:
    k, a, noise = counts_of(bags)
    if len(k) == 0:
        return None
    size, stratum = bags.size[bags.observed], bags.stratum_or_zero[bags.observed]
    layout = BagLayout.of(np.repeat(np.arange(len(size)), size), size, stratum)
    p = sum_by(layout.stratum, a * k, layout.strata) / layout.instances[:, None]
    each, off = np.maximum(label_variance(p, bags.kind), 0), a - p[layout.stratum]
    heard = 1 - k / layout.instances[layout.stratum][:, None]
    return _ObservedReports(layout, k, a, p, off, each, noise / k, heard)


def _spread_p(r: _ObservedReports) -> float:
    """Chance of such a spread of the reports, the smallest over classes with Bonferroni's
    correction.

    The pairs of labels in a bag, as in `variance.pairs`: sum_j k (a - p)^2 minus the squares of
    single labels, which the reports tell, a (1 - p)^2 + (1 - a) p^2. Noise enters with the moments
    of a Laplace variable, the widest of the usual kinds.
    """
    s, k, v = r.layout.stratum, r.k, r.noise
    p, n, B = r.p[s], r.layout.instances[s][:, None], r.layout.bags[s][:, None]
    s2, m3 = r.each[s] * n / np.maximum(n - 1, 1), r.each[s] * (1 - 2 * p)
    pairs = k * r.off**2 - r.a * (1 - p) ** 2 - (1 - r.a) * p**2
    mean = s2 * (1 / n - 1 / B) + v * r.heard  # over the bags of a stratum: s2 (B / n - 1)
    variance = (1 - 1 / B) * (2 * s2**2 * (k - 1) / k + 4 * s2 * v + 5 * v**2)
    mixed = (s2 + v) ** 3 - s2**3 - v**3
    drawn = 8 * s2**3 * (k - 1) * (k - 2) / k**2 + 4 * m3**2 * (k - 1) / k**2
    third = (1 - 1 / B) * (drawn + 8 * mixed + 74 * v**3)
    deviation = np.maximum(np.sqrt(variance.sum(axis=0)), 1e-9)
    chance = Chance(mean.sum(axis=0), deviation, third.sum(axis=0) / deviation**3)
    p_of_class = chance.p_value(pairs.sum(axis=0))
    return float(min(1.0, p_of_class.min() * len(p_of_class)))


def f2_of(scores: np.ndarray, kind: Kind, loss: Loss) -> tuple[np.ndarray, np.ndarray]:
    """What multiplies the label in the loss, and the prediction of the label, per instance and
    class."""
    f = loss.components(scores, kind=kind)
    prediction = loss.form(kind).link.prediction(scores, kind)
    if kind == "histogram":
        return f, prediction
    return f[:, 1:], prediction[:, None]


def upper_between(variance: Variance, layout: BagLayout) -> np.ndarray:
    """Upper limit of the variance of each column between bags: MSW (F / F_low - 1) / k0."""
    from scipy.special import fdtri

    low = float(fdtri(layout.between, layout.within, TAIL))
    within = np.maximum(variance.within, FLOOR)  # a column that is constant in each bag has none
    return np.maximum(within * (variance.F / low - 1), 0) / layout.k0


def bounded(
    size: float,
    spread: np.ndarray,
    between: np.ndarray,
    upper: np.ndarray,
    labels: Dispersion,
    *,
    unit: str,
) -> Bias:
    """Cauchy-Schwarz: |bias| <= (k - 1) sum over classes of sd between bags of y times that of
    f2."""
    bound = (size - 1) * np.sum(np.sqrt(labels.between) * np.sqrt(between) * spread)
    limit = (size - 1) * np.sum(np.sqrt(labels.upper) * np.sqrt(upper) * spread)
    return Bias(float(bound), float(limit), float(np.sum(np.sqrt(labels.variance) * spread)), unit)


def direct(bags: Bags, f: np.ndarray, g: np.ndarray) -> dict[str, float]:
    """(k - 1) Cov from the reports, and what remains of it when the estimate is anchored; each with
    standard error.

    mean_j k_j (a_j - p)(mean_j f2 - E f2) is k Cov between bags + Cov within bags; the latter is
    that of g and f2 if the model is right. For y - g it is then 0.
    """
    r = _observed_reports(bags)
    if r is None or (r.layout.bags[r.layout.stratum] > 1).sum() < 2:
        return {}
    f_bag, g_bag = (mean_by(bags.bag, v, bags.size) for v in (f, g))
    inner = (f - f_bag[bags.bag]) * (g - g_bag[bags.bag])
    within = inner.sum() / max(len(bags.bag) - len(bags), 1)
    s, factor = r.layout.stratum, (bags.size.mean() - 1) / bags.size.mean()
    f_off, g_off = (
        v - (sum_by(s, v * r.k, r.layout.strata) / r.layout.instances[:, None])[s]
        for v in (f_bag[bags.observed], g_bag[bags.observed])
    )
    both = r.layout.bags[s] > 1
    grown = (r.layout.bags / np.maximum(r.layout.bags - 1, 1))[s]
    plain, rest = (
        factor * (grown * (r.k * off * f_off).sum(axis=1))[both] for off in (r.off, r.off - g_off)
    )
    error, anchored_error = (float(v.std(ddof=1) / np.sqrt(len(v))) for v in (plain, rest))
    return {
        "direct": float(plain.mean() - factor * within),
        "error": error,
        "anchored": float(rest.mean()),
        "anchored_error": anchored_error,
    }
