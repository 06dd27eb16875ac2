"""What an objective may ask of the model, and the mean over the bags that count."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp


class Ask(NamedTuple):
    """What an objective may ask beyond the scores of the batch.

    Parameters
    ----------
    scores : callable
        From rows of features to scores, with the parameters of the moment.
    X : array
        Features of the rows of the batch.
    key : array
        For whatever is drawn; another one in each step.
    """

    scores: Callable[[Any], Any]
    X: Any
    key: Any


def mean_over_bags(by_bag: Any, weight: Any) -> Any:
    """The mean over bags by their weights; bags of weight 0 may have any value.

    Parameters
    ----------
    by_bag : array
        A value for each bag.
    weight : array
        Of each bag.

    >>> float(mean_over_bags(jnp.array([1.0, 3.0, jnp.nan]), jnp.array([0.5, 0.5, 0.0])))
    2.0
    """
    total = jnp.maximum(jnp.sum(weight), 1e-30)  # a batch in which no bag counts says nothing
    return jnp.sum(jnp.where(weight > 0, by_bag, 0.0) * weight) / total
