"""The square loss made unbiased at the level of bags: Li and others, Busa-Fekete and others.

With r_j = a_j - mean_j h, the residual of bag j, p the prior and k_j the size, k_j r_j^2 alone has
the expectation E (y - h)^2 + (k_j - 1) (p - E h)^2. The two estimators remove the excess in two
ways. E h is the mean over the other bags of the batch (and stratum); with the true E h both are
exactly unbiased, with the estimate up to about Var h / B.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from unbag._arrays import mean_by, sum_by
from unbag.objectives._ask import Ask, mean_over_bags

DELTA = 0.05
"""Of the bound by which `clipped_square` clips."""


class Residuals(NamedTuple):
    """What the square loss needs of each bag.

    Parameters
    ----------
    size : array
        Number of instances k.
    own : array
        a - mean h.
    common : array
        p - E h.
    """

    size: Any
    own: Any
    common: Any


def debiased_square(score: Any, batch: Any, ask: Ask | None = None) -> Any:
    """The debiased square loss of Li, Chen, Javanmard and Mirrokni (2024), also called DSQ.

        mean_j  k_j (a_j - mean_j h)^2 - (k_j - 1) (p - E h)^2

    Unbiased; its variance keeps the term 2 (k_j - 1) (p - E h) r_j of a wrong level. The value can
    be negative.

    Parameters
    ----------
    score : array
        Logit of each row.
    batch : Batches
        Of the training.
    ask : Ask, optional
        Not used.
    """
    return mean_over_bags(debiased(residuals(score, batch)), _weight(batch))


def centred_square(score: Any, batch: Any, ask: Ask | None = None) -> Any:
    """The centred square loss of Busa-Fekete and others (2025), not clipped: their equation (2).

        mean_j  k_j (a_j - p - (mean_j h - E h))^2 + (p - E h)^2

    Unbiased, and its variance does not grow with the bag: the level is taken out before squaring.

    Parameters
    ----------
    score, batch, ask : array, Batches, Ask
        As in `debiased_square`.
    """
    return mean_over_bags(centred(residuals(score, batch)), _weight(batch))


def clipped_square(score: Any, batch: Any, ask: Ask | None = None) -> Any:
    """The same with the centred residual clipped to where it lies with high probability.

        mean_j  k_j clip(a_j - p - (mean_j h - E h), +-c_j)^2 + (p - E h)^2

    The constant is left open by the descriptions that we could read. We take Hoeffding's bound for
    the mean of k values in [-1, 1] to hold for all B bags of the batch at once with probability
    1 - DELTA: c_j = sqrt(2 log(2 B / DELTA) / k_j). So it acts on outliers only.

    Parameters
    ----------
    score, batch, ask : array, Batches, Ask
        As in `debiased_square`.
    """
    bags = jnp.maximum(jnp.sum(batch.weight > 0), 1)
    r = residuals(score, batch)
    bound = jnp.sqrt(2 * jnp.log(2 * bags / DELTA) / r.size)
    return mean_over_bags(centred(r, bound=bound), _weight(batch))


def residuals(score: Any, batch: Any) -> Residuals:
    """The residuals of each bag, with E h from the other bags of its stratum.

    Parameters
    ----------
    score, batch
        As in `debiased_square`.
    """
    h = jax.nn.sigmoid(score) * batch.real
    prior, stratum = jnp.atleast_2d(batch.prior)[:, 1], batch.stratum
    if len(prior) == 1:
        stratum = jnp.zeros_like(stratum)
    size = jnp.maximum(batch.size, 1)
    mean, total = mean_by(batch.bag, h, size), sum_by(batch.bag, h, len(size))
    # E h without the bag's own rows, of which it must be independent: the losses are unbiased only
    # if (p - E h) and (a - mean h) are uncorrelated
    others = sum_by(stratum, total, len(prior))[stratum] - total
    count = sum_by(stratum, batch.size, len(prior))[stratum] - batch.size
    expected = others / jnp.maximum(count, 1)
    return Residuals(size, batch.report[:, 1] - mean, prior[stratum] - expected)


def debiased(r: Residuals) -> Any:
    """What each bag says by Li and others."""
    return r.size * r.own**2 - (r.size - 1) * r.common**2


def centred(r: Residuals, *, bound: Any = jnp.inf) -> Any:
    """What each bag says by Busa-Fekete and others."""
    return r.size * jnp.clip(r.own - r.common, -bound, bound) ** 2 + r.common**2


def _weight(batch: Any) -> Any:
    """Bags weigh as they do in their stratum, and strata by their instances."""
    if batch.prior.ndim == 1:
        return batch.weight
    return batch.weight * sum_by(batch.stratum, batch.size, len(batch.prior))[batch.stratum]
