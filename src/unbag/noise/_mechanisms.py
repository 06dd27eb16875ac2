"""Noise of mean zero from a privacy budget: its variance, and samples of it."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, expm1, inf, isfinite, sqrt
from typing import Any, Protocol

import numpy as np
from scipy.special import log_ndtr

from unbag._rules import broken

WIDE = 10.0  # from here on the variance of a discrete Gaussian is sigma^2 to the last digit


class Mechanism(Protocol):
    """Noise of mean zero that is added to a count."""

    @property
    def variance(self) -> float:
        """Of one draw."""
        ...

    def sample(self, shape: Any, *, seed: int | np.random.Generator) -> np.ndarray:
        """Independent draws.

        Parameters
        ----------
        shape : int or tuple of int
            Of the result.
        seed : int or Generator
            Which draws.
        """
        ...


@dataclass(frozen=True)
class _Scaled:
    """What has a positive scale."""

    scale: float

    def __post_init__(self) -> None:
        _positive("scale", self.scale)


@dataclass(frozen=True)
class _Bell:
    """What has a positive standard deviation, exactly or nearly."""

    sigma: float

    def __post_init__(self) -> None:
        _positive("sigma", self.sigma)


class Laplace(_Scaled):
    """Density exp(-|x| / b) / (2 b), variance 2 b^2, with the scale b.

    >>> Laplace(2.0).variance
    8.0
    """

    @property
    def variance(self) -> float:
        """Of one draw."""
        return 2 * self.scale**2

    def sample(self, shape: Any, *, seed: int | np.random.Generator) -> np.ndarray:
        """Independent draws.

        Parameters
        ----------
        shape : int or tuple of int
            Of the result.
        seed : int or Generator
            Which draws.
        """
        return np.random.default_rng(seed).laplace(scale=self.scale, size=shape)


class Gaussian(_Bell):
    """The normal distribution with standard deviation `sigma`.

    >>> Gaussian(3.0).variance
    9.0
    """

    @property
    def variance(self) -> float:
        """Of one draw."""
        return self.sigma**2

    def sample(self, shape: Any, *, seed: int | np.random.Generator) -> np.ndarray:
        """Independent draws.

        Parameters
        ----------
        shape : int or tuple of int
            Of the result.
        seed : int or Generator
            Which draws.
        """
        return np.random.default_rng(seed).normal(scale=self.sigma, size=shape)


class Geometric(_Scaled):
    """Two-sided geometric noise, the discrete form of Laplace.

    P(n) is proportional to q^|n| with q = exp(-1 / scale); the variance is 2 q / (1 - q)^2. A
    sample is the difference of two geometric draws, which has this law exactly.

    >>> round(Geometric(1.0).variance, 4)
    1.8413
    """

    @property
    def variance(self) -> float:
        """Of one draw."""
        return 2 * exp(-1 / self.scale) / expm1(-1 / self.scale) ** 2

    def sample(self, shape: Any, *, seed: int | np.random.Generator) -> np.ndarray:
        """Independent draws, whole numbers.

        Parameters
        ----------
        shape : int or tuple of int
            Of the result.
        seed : int or Generator
            Which draws.
        """
        rng, success = np.random.default_rng(seed), -expm1(-1 / self.scale)
        return rng.geometric(success, size=shape) - rng.geometric(success, size=shape)


class DiscreteGaussian(_Bell):
    """The discrete form of Gaussian: whole numbers, P(n) proportional to exp(-n^2 / (2 sigma^2)).

    The variance is the sum over the support; it is a little below sigma^2 for small sigma. Samples
    are made by rejection from two-sided geometric draws of scale t = floor(sigma) + 1, each kept
    with the chance exp(-(|n| - sigma^2 / t)^2 / (2 sigma^2)) (Canonne, Kamath and Steinke 2020,
    algorithm 3, in floating point).

    >>> round(DiscreteGaussian(0.5).variance, 4), DiscreteGaussian(20.0).variance
    (0.215, 400.0)
    """

    @property
    def variance(self) -> float:
        """Of one draw."""
        if self.sigma >= WIDE:
            return self.sigma**2
        n = np.arange(-int(40 * WIDE), int(40 * WIDE) + 1)
        chance = np.exp(-(n**2) / (2 * self.sigma**2))
        return float(chance @ n**2 / chance.sum())

    def sample(self, shape: Any, *, seed: int | np.random.Generator) -> np.ndarray:
        """Independent draws, whole numbers.

        Parameters
        ----------
        shape : int or tuple of int
            Of the result.
        seed : int or Generator
            Which draws.
        """
        rng, t, s2 = np.random.default_rng(seed), np.floor(self.sigma) + 1, self.sigma**2
        drawn, proposal = np.zeros(int(np.prod(shape)), np.int64), Geometric(float(t))
        missing = np.arange(len(drawn))
        while len(missing):
            n = proposal.sample(len(missing), seed=rng)
            log_chance = -((np.abs(n) - s2 / t) ** 2) / (2 * s2)
            kept = np.log1p(-rng.uniform(size=len(n))) <= log_chance
            drawn[missing[kept]] = n[kept]
            missing = missing[~kept]
        return drawn.reshape(shape)


def laplace(*, epsilon: float, cap: float = 1.0) -> Laplace:
    """Laplace noise for a privacy budget: scale cap / epsilon.

    Parameters
    ----------
    epsilon : float
        The budget of pure differential privacy that these counts may spend.
    cap : float
        The most that one person can add to all counts together: the contribution cap.

    >>> laplace(epsilon=0.5)
    Laplace(scale=2.0)
    """
    return Laplace(_positive("cap", cap) / _positive("epsilon", epsilon))


def geometric(*, epsilon: float, cap: int = 1) -> Geometric:
    """Two-sided geometric noise for a privacy budget: `laplace` for counts that stay whole numbers.

    Parameters
    ----------
    epsilon : float
        The budget of pure differential privacy that these counts may spend.
    cap : int
        The most that one person can add to all counts together.

    >>> geometric(epsilon=0.5)
    Geometric(scale=2.0)
    """
    return Geometric(_whole(cap) / _positive("epsilon", epsilon))


def gaussian(*, epsilon: float, delta: float, cap: float = 1.0) -> Gaussian:
    """Gaussian noise for a privacy budget, by the analytic formula, tight for every epsilon.

    The smallest sigma with Phi(c / 2s - epsilon s / c) - e^epsilon Phi(-c / 2s - epsilon s / c) <=
    delta, s = sigma and c = cap (Balle and Wang 2018, theorem 8). The classical c sqrt(2 log(1.25 /
    delta)) / epsilon holds for epsilon below 1 only, and asks for more noise.

    Parameters
    ----------
    epsilon, delta : float
        The budget of approximate differential privacy that these counts may spend.
    cap : float
        The most that one person can change the counts, as a Euclidean norm over all of them.

    >>> round(gaussian(epsilon=1, delta=1e-5).sigma, 3)
    3.731
    """
    _positive("epsilon", epsilon)
    _chance(delta)

    def excess(log_s: float) -> float:
        """By how much the delta of a standard deviation s, for a cap of 1, is too large."""
        s = exp(log_s)
        below, above = 0.5 / s - epsilon * s, -0.5 / s - epsilon * s
        return exp(log_ndtr(below)) - exp(epsilon + log_ndtr(above)) - delta

    from scipy.optimize import brentq  # takes a while to import

    log_s: Any = brentq(excess, -20, 40, xtol=1e-13)
    return Gaussian(_positive("cap", cap) * exp(log_s))


def discrete_gaussian(*, rho: float, cap: int = 1) -> DiscreteGaussian:
    """Discrete Gaussian noise for a zero-concentrated budget: sigma = cap / sqrt(2 rho).

    Parameters
    ----------
    rho : float
        The budget of zero-concentrated differential privacy.
    cap : int
        The most that one person can change the counts, as a Euclidean norm over all of them.

    >>> discrete_gaussian(rho=0.5)
    DiscreteGaussian(sigma=1.0)
    """
    return DiscreteGaussian(_whole(cap) / sqrt(2 * _positive("rho", rho)))


def _positive(name: str, value: float) -> float:
    if not 0 < value < inf:
        raise broken(
            f"Noise must have a positive, finite {name}",
            f"{value} given",
            "Leave noise out for exact reports.",
        )
    return value


def _chance(delta: float) -> float:
    if not (isfinite(delta) and 0 < delta < 1):
        raise broken(
            "A delta must lie between 0 and 1",
            f"{delta} given",
            "Take less than one over the number of people, or laplace, which needs none.",
        )
    return delta


def _whole(cap: float) -> float:
    if _positive("cap", cap) % 1:
        raise broken(
            "A cap of whole counts must be a whole number",
            f"{cap} given",
            "Use laplace or gaussian for others.",
        )
    return cap
