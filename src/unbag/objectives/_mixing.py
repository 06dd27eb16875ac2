"""MixBag: further bags made of parts of two, whose proportion is known up to an interval."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from unbag._arrays import sum_by
from unbag.losses import log
from unbag.matching import proportion_matching
from unbag.objectives._ask import Ask, mean_over_bags

STANDARD_ERRORS = 2.576
"""Half the width of the interval: 99 per cent, as in the paper."""
SPREAD = 0.1
"""Standard deviation of the share that a mixed bag takes of its first bag, around 1/2."""
TINY = 1e-6


def mixbag(score: Any, batch: Any, ask: Ask) -> Any:
    """Proportion matching on bags and on mixtures of two, Asanomi and others (2023).

    A mixed bag takes n_i of the k_i instances of bag i and n_j of the next, n_i about half. Its
    proportion has mean m = (n_i a_i + n_j a_j) / (n_i + n_j) and a variance v, by drawing without
    replacement. Its loss is that of matching with m when the predicted mean is outside
    m +- 2.576 sqrt(v), and constant inside (the confidence interval loss). The objective is the
    mean of the two kinds of bags. The paper describes a binomial v; ours is the exact one.

    Parameters
    ----------
    score : array
        Logit of each row.
    batch : Batches
        Of the training.
    ask : Ask
        Whose key says what is drawn.
    """
    size = jnp.maximum(batch.size, 1)
    plain = proportion_matching(score, batch.bag, size, batch.report, loss=log, kind="binary")
    mean, target, variance, weight = mixtures(score, batch, ask.key)
    mean = jnp.clip(mean, TINY, 1 - TINY)
    loss = -target * jnp.log(mean) - (1 - target) * jnp.log(1 - mean)
    outside = jnp.abs(mean - target) > STANDARD_ERRORS * jnp.sqrt(variance)
    mixed = jnp.where(outside, loss, jax.lax.stop_gradient(loss))
    return (mean_over_bags(plain, batch.weight) + mean_over_bags(mixed, weight)) / 2


def mixtures(score: Any, batch: Any, key: Any) -> tuple[Any, Any, Any, Any]:
    """Mean prediction, mean and variance of the proportion, and weight of a mixed bag for each bag.

    Parameters
    ----------
    score, batch : array, Batches
        As in `mixbag`.
    key : array
        Says which instances are drawn.
    """
    of_share, of_rank = jax.random.split(key)
    k, a = batch.size, batch.report[:, 1]
    usable = batch.weight > 0
    order = jnp.argsort(~usable, stable=True)
    following = jnp.argsort(order) + 1
    following = order[jnp.where(following < jnp.sum(usable), following, 0)]
    drawn = 0.5 + SPREAD * jax.random.normal(of_share, k.shape)
    share = jnp.clip(drawn, 1 / jnp.maximum(k, 1), 1)
    first = jnp.round(share * k)
    second = jnp.maximum(jnp.round((1 - share) * k[following]), 1)
    rank = _ranks(jax.random.uniform(of_rank, batch.bag.shape), batch)
    h = jax.nn.sigmoid(score) * batch.real
    # A bag lends its first ranks to its own mixture and its last ranks to that of the bag before.
    lender = jnp.where(usable, following, len(k))
    lent = jnp.zeros_like(k).at[lender].set(second, mode="drop")
    to_own = sum_by(batch.bag, h * (rank < first[batch.bag]), len(k))
    to_other = sum_by(batch.bag, h * (rank >= (k - lent)[batch.bag]), len(k))
    count = jnp.maximum(first + second, 1)
    mean = (to_own + to_other[following]) / count
    target = (first * a + second * a[following]) / count
    variance = (_spread(first, k, a) + _spread(second, k[following], a[following])) / count**2
    return mean, target, variance, batch.weight * (following != jnp.arange(len(k)))


def _ranks(drawn: Any, batch: Any) -> Any:
    """The rank of each row in its bag by what was drawn for it, from 0; padding comes last."""
    order = jnp.lexsort((jnp.where(batch.real, drawn, 2.0), batch.bag))
    rows = sum_by(batch.bag, jnp.ones_like(drawn), len(batch.size))
    start = jnp.cumsum(rows) - rows
    rank = jnp.arange(len(order)) - start[batch.bag[order]]
    return jnp.zeros(len(order)).at[order].set(rank)


def _spread(n: Any, k: Any, a: Any) -> Any:
    """Variance of the positives among n drawn of k without replacement."""
    return n * a * (1 - a) * jnp.maximum(k - n, 0) / jnp.maximum(k - 1, 1)
