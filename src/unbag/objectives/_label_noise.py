"""LLP-FC: which bag of a pair a row is from is a noisy label of it."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from unbag._arrays import mean_by
from unbag.objectives._ask import Ask, mean_over_bags

TINY = 1e-6


def llp_fc(score: Any, batch: Any, ask: Ask | None = None) -> Any:
    """Learning with label noise by forward correction, LLP-FC-uniform of Zhang, Wang and Scott
    (2022), for two classes.

    Bags i and j form a pair. Draw one of the two with probability 1/2, then a row of it: the number
    of the bag is a noisy label, with P(i | y = 1) = a_i / (a_i + a_j) and
    P(i | y = 0) = (1 - a_i) / (2 - a_i - a_j). The objective is the log loss of that label,

        -log( P(i | y = 1) h(x) + P(i | y = 0) (1 - h(x)) ),

    averaged over the rows of a bag and then over bags. Valid when bags differ in their proportions
    only. The pairs are neighbours in the batch, so new ones in each epoch; of an odd number one bag
    is left out. A pair of equal proportions says nothing.

    Parameters
    ----------
    score, batch, ask : array, Batches, Ask
        As in `debiased_square`.
    """
    partner = partners(batch.weight > 0)
    a, own = batch.report[:, 1], jnp.arange(len(partner))
    both = a + a[partner]
    of_one, of_zero = a / jnp.maximum(both, TINY), (1 - a) / jnp.maximum(2 - both, TINY)
    h = jax.nn.sigmoid(score)
    noisy = of_one[batch.bag] * h + of_zero[batch.bag] * (1 - h)
    loss = -jnp.log(jnp.maximum(noisy, TINY)) * batch.real
    by_bag = mean_by(batch.bag, loss, jnp.maximum(batch.size, 1))
    return mean_over_bags(by_bag, batch.weight * (partner != own))


def partners(usable: Any) -> Any:
    """Of each bag the one it is paired with: the next usable one; itself where there is none left.

    Parameters
    ----------
    usable : array of bool
        Which bags can be paired.

    >>> partners(jnp.array([True, False, True, True])).tolist()
    [2, 1, 0, 3]
    """
    order = jnp.argsort(~usable, stable=True)  # usable bags first, in their order
    position = jnp.argsort(order)
    count = jnp.sum(usable)
    other = jnp.where(position % 2 == 0, position + 1, position - 1)
    other = jnp.where((position < count) & (other < count), other, position)
    return order[other]
