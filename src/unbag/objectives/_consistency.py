"""LLP-VAT: matching, and predictions that do not change in the worst direction nearby."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from unbag._arrays import softplus
from unbag._rules import broken
from unbag.losses import log
from unbag.matching import proportion_matching
from unbag.objectives._ask import Ask, mean_over_bags

RADIUS = 0.1
"""How far away, in typical lengths of a row: about what the public code has for images."""
SHARE = 0.05
"""Of the consistency, beside the matching; as in the public code."""


def llp_vat(score: Any, batch: Any, ask: Ask) -> Any:
    """Consistency regularisation by virtual adversarial training, Tsai and Lin (2020).

        mean_j PM_j + SHARE mean_i KL( h(x_i) || h(x_i + r_i) ),
        r_i = RADIUS s grad z(x_i) / |grad z(x_i)|,    s^2 = mean_i |x_i|^2

    The paper looks for the direction r by a step of power iteration. For two classes the matrix in
    question is h (1 - h) grad z grad z', of rank one, so the gradient of the logit is that
    direction, and nothing is drawn. The paper's radius is a number for normalised images; ours is a
    share of the typical length of a row, because tables have columns of any number. It raises SHARE
    from 0 in the first epochs; ours is constant, because bags choose the moment to stop.

    Parameters
    ----------
    score : array
        Logit of each row.
    batch : Batches
        Of the training.
    ask : Ask
        The model and the features, in floating point.
    """
    if not jnp.issubdtype(ask.X.dtype, jnp.inexact):
        raise broken(
            "The method llp_vat must have features that can be moved a little",
            f"features of type {ask.X.dtype} given",
            "Give them in floating point, or use another method.",
        )
    size = jnp.maximum(batch.size, 1)
    matched = proportion_matching(score, batch.bag, size, batch.report, loss=log, kind="binary")
    moved = ask.scores(jax.lax.stop_gradient(ask.X + worst_direction(ask, batch.real)))
    fixed = jax.lax.stop_gradient(score)
    divergence = jax.nn.sigmoid(fixed) * (fixed - moved) + softplus(moved) - softplus(fixed)
    consistency = jnp.sum(divergence * batch.real) / jnp.sum(batch.real)
    return mean_over_bags(matched, batch.weight) + SHARE * consistency


def worst_direction(ask: Ask, real: Any) -> Any:
    """A step along the gradient of each row's logit, of RADIUS times the typical length of rows.

    Parameters
    ----------
    ask : Ask
        The model and the features.
    real : array of bool
        Which rows are no padding.
    """
    slope = jax.grad(lambda X: jnp.sum(ask.scores(X)))(ask.X)
    flat = slope.reshape(len(slope), -1)
    # The norm is not differentiable at 0, and nothing is differentiated here.
    length = jnp.sqrt(jnp.sum(flat**2, axis=1) + 1e-24)
    squared = jnp.sum(ask.X.reshape(len(real), -1) ** 2, axis=1)
    typical = jnp.sqrt(jnp.sum(squared * real) / jnp.sum(real))
    return RADIUS * typical * (flat / length[:, None]).reshape(slope.shape)
