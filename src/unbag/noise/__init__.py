"""Bags in, bags as a privacy system would report them out; and the noise itself: its variance and
samples of it.

Noise of mean zero leaves `upm`, `easy` and `anchored` unbiased, at the price of variance, which
`Bags(noise=...)` declares. What hides or cuts a report because of its value does not: see
`docs/noise.md`.

    laplace, gaussian, geometric, discrete_gaussian : from a privacy budget to noise
    noisy, thresholded, hidden_below, capped : what the common sources do to bags and counts

This is for planning and simulation. A release of private data needs a sampler that is safe against
attacks on floating-point numbers and a secure source of randomness; use a library made for that.
"""

from unbag.noise._mechanisms import (
    DiscreteGaussian,
    Gaussian,
    Geometric,
    Laplace,
    Mechanism,
    discrete_gaussian,
    gaussian,
    geometric,
    laplace,
    rho_of,
)
from unbag.noise._sources import capped, hidden_below, noisy, thresholded

__all__ = [
    "DiscreteGaussian",
    "Gaussian",
    "Geometric",
    "Laplace",
    "Mechanism",
    "capped",
    "discrete_gaussian",
    "gaussian",
    "geometric",
    "hidden_below",
    "laplace",
    "noisy",
    "rho_of",
    "thresholded",
]
