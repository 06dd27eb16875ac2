"""What each bag contributes to the error of a value in, a standard error and an interval out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unbag._rules import broken
from unbag.metrics._estimate import Estimated, Judge


class Estimate(NamedTuple):
    """A value with its standard error and interval.

    worth : how many labelled rows would give an interval of the same width; None where that has no
        meaning, and
    where the reference leaves no doubt about any label.
    """

    value: float
    error: float
    low: float
    high: float
    worth: float | None = None

    def __str__(self) -> str:
        return f"{self.value:.4f} [{self.low:.4f}, {self.high:.4f}]"


def check_level(level: float) -> None:
    """Refuse a level that no interval can have."""
    if not 0 < level < 1:
        raise broken(
            "A level must lie between 0 and 1", f"{level} came", "Use 0.95 for intervals of 95%."
        )


def interval(
    found: Estimated, judge: Judge, *, level: float = 0.95, variance_of_one: float | None = None
) -> Estimate:
    """Student's t interval from the spread between bags.

    The variance is that of a sum of independent shares, sum_s B_s / (B_s - 1) sum psi^2, and the
    degrees of freedom are Satterthwaite's over bags and strata: with one stratum of even bags, the
    number of bags - 1.

    Parameters
    ----------
    variance_of_one : variance of the metric's value for one labelled row, to tell what the bags are
        worth.
    """
    from scipy.special import stdtrit

    check_level(level)
    strata = judge.strata
    count = np.bincount(judge.s, weights=judge.observed, minlength=strata)
    count = np.where(count > 1, count, 2.0)
    by_stratum = np.bincount(judge.s, weights=found.psi**2, minlength=strata) * count / (count - 1)
    variance = float(by_stratum.sum())
    error = float(np.sqrt(variance))
    freedom = (
        variance**2 / np.sum(by_stratum**2 / _freedom(found, judge))
        if variance > 0
        else float(count.sum())
    )
    reach = float(stdtrit(freedom, (1 + level) / 2)) * error
    worth = (
        variance_of_one / variance if variance_of_one and error > 1e-12 else None
    )  # below, it is rounding
    return Estimate(found.value, error, found.value - reach, found.value + reach, worth)


def _freedom(found: Estimated, judge: Judge) -> np.ndarray:
    """Satterthwaite's degrees of freedom of each stratum, 2 mean^2 / variance of the sum of psi^2
    of normal bags.

    With q_j the share of a bag in the variance and g = q / (1 - q): 1 / (sum q^2 + (sum q g)^2 -
    sum (q g)^2). Even shares give the number of bags - 1; one bag with nearly all of the variance
    gives about 1.
    """
    add = lambda values: np.bincount(judge.s, weights=values, minlength=judge.strata)
    by_size = add(np.broadcast_to(found.sized, found.psi.shape) ** 2)
    by_weight = add((found.psi - found.sized) ** 2)
    mix = (by_size / np.maximum(by_size + by_weight, 1e-300))[judge.s]
    q = mix * judge.seen + (1 - mix) * judge.w
    g = q / np.maximum(1 - q, 1e-9)
    return 1 / (add(q**2) + add(q * g) ** 2 - add((q * g) ** 2))
