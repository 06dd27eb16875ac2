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

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unbag.noise._mechanisms import DiscreteGaussian as DiscreteGaussian
    from unbag.noise._mechanisms import Gaussian as Gaussian
    from unbag.noise._mechanisms import Geometric as Geometric
    from unbag.noise._mechanisms import Laplace as Laplace
    from unbag.noise._mechanisms import Mechanism as Mechanism
    from unbag.noise._mechanisms import discrete_gaussian as discrete_gaussian
    from unbag.noise._mechanisms import gaussian as gaussian
    from unbag.noise._mechanisms import geometric as geometric
    from unbag.noise._mechanisms import laplace as laplace
    from unbag.noise._sources import capped as capped
    from unbag.noise._sources import hidden_below as hidden_below
    from unbag.noise._sources import noisy as noisy
    from unbag.noise._sources import thresholded as thresholded
else:
    from unbag._lazy import attach

    __getattr__, __dir__, __all__ = attach(__name__)
