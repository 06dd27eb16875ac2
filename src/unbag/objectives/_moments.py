"""Moment matching (LLP-MM): the labels of a few instances of a bag, drawn without replacement."""

from __future__ import annotations

from math import comb, perm
from typing import Any

import jax
import jax.numpy as jnp

from unbag._arrays import sum_by
from unbag.objectives._ask import Ask, mean_over_bags

ORDER = 3
"""Of the highest moments that are matched, as in the public code."""
SMOOTHING = 1e-4
"""Share of the uniform law in both laws, so that no logarithm is infinite; as in the public
code."""


def moments(score: Any, batch: Any, ask: Ask | None = None) -> Any:
    """The cross entropy of count profiles of the orders 1 to ORDER, each with the same weight.

    Draw r of the k instances of a bag without replacement, and count their positives s. The report
    says P(s) = C(c, s) C(k - c, r - s) / C(k, r) with c = k a; the model says the mean over subsets
    of the law of the sum of their labels. The objective is the mean over r of the cross entropy of
    the two. Order 1 is proportion matching, order k the likelihood of the count. A bag has only the
    orders up to its size.

    Parameters
    ----------
    score, batch, ask : array, Batches, Ask
        As in `debiased_square`.
    """
    predicted = count_profiles(score, batch, ORDER)
    count = jnp.round(batch.size * batch.report[:, 1])
    by_bag = jnp.zeros(len(batch.size))
    for r, law in enumerate(predicted, 1):
        reported = jnp.stack(
            [_falling(count, s) * _falling(batch.size - count, r - s) * comb(r, s)
             for s in range(r + 1)], axis=1,
        ) / jnp.maximum(_falling(batch.size, r), 1)[:, None]  # fmt: skip
        entropy = -jnp.sum(_smoothed(reported) * jnp.log(_smoothed(law)), axis=1)
        by_bag += jnp.where(batch.size >= r, entropy, 0.0)
    orders = jnp.clip(batch.size, 1, ORDER)
    return mean_over_bags(by_bag / orders, batch.weight)


def count_profiles(score: Any, batch: Any, order: int) -> list[Any]:
    """Of each order r the law of the positives among r instances drawn from a bag, as (bags, r+1).

    The generating polynomials e_r(t) = sum over subsets of prod (h_i t + 1 - h_i) follow from the
    power sums P_m(t) = sum_i (h_i t + 1 - h_i)^m by Newton's identities,
    r e_r = sum_m (-1)^(m - 1) e_{r - m} P_m, so nothing walks through the instances.

    Parameters
    ----------
    score, batch : array, Batches
        As in `moments`.
    order : int
        The highest.
    """
    h = jax.nn.sigmoid(score)
    size = batch.size
    power = [
        sum_by(batch.bag, _powers(h, m) * batch.real[:, None], len(size))
        for m in range(1, order + 1)
    ]
    # Divided by k(k-1)...(k-r+1)/r! at once, so that numbers stay near 1.
    laws = [jnp.ones((len(size), 1))]
    for r in range(1, order + 1):
        total = 0.0
        for m in range(1, r + 1):
            scale = _falling(size, r - m) / jnp.maximum(_falling(size, r), 1)
            product = jax.vmap(jnp.convolve)(laws[r - m], power[m - 1])
            total += (-1) ** (m - 1) * perm(r - 1, m - 1) * scale[:, None] * product
        laws.append(jnp.clip(total, 0, 1))
    return laws[1:]


def _powers(h: Any, m: int) -> Any:
    """Coefficients of (h t + 1 - h)^m in t, of each row."""
    return jnp.stack([comb(m, a) * h**a * (1 - h) ** (m - a) for a in range(m + 1)], axis=1)


def _falling(n: Any, r: int) -> Any:
    """n (n - 1) ... (n - r + 1), 0 where a factor is negative."""
    value = jnp.ones_like(n)
    for i in range(r):
        value = value * jnp.maximum(n - i, 0)
    return value


def _smoothed(law: Any) -> Any:
    return (1 - SMOOTHING) * law + SMOOTHING / law.shape[1]
