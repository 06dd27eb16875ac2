"""Median of means: a mean that a few wild values cannot move.

Split the values at random into r groups, average each group, take the median of the averages. With
r = ceil(8 log(1/delta)) it lies within sigma sqrt(32 log(1/delta) / n) of the true mean with
probability 1 - delta, whatever the tails, as long as the variance is finite.
"""

from __future__ import annotations

from math import ceil, log
from typing import Any

import numpy as np

from unbag._arrays import index_like, like, mean_by, namespace, sum_by
from unbag._rules import broken


def group_count(delta: float) -> int:
    """r = ceil(8 log(1 / delta)): groups of a median of means of confidence 1 - delta.

    >>> group_count(0.05)
    24
    """
    if not 0 < delta < 1:
        raise broken(
            "delta must lie between 0 and 1", f"{delta} given", "Use 0.05 for 95% confidence."
        )
    return max(1, ceil(8 * log(1 / delta)))


def random_groups(count: int, groups: int, *, seed: Any) -> np.ndarray:
    """Group number of each value: a random partition into groups whose sizes differ by one at most.

    Parameters
    ----------
    count : int
        Number of values.
    groups : int
        Number of groups.
    seed : int or Generator
        Which random groups.

    >>> np.bincount(random_groups(10, 3, seed=0))
    array([4, 3, 3])
    """
    if not 1 <= groups <= count:
        raise broken(
            "There must be at least as many values as groups",
            f"{count} values given for {groups} groups",
            "Give more values (bags), or allow a larger chance of failure: it takes fewer groups.",
        )
    return np.random.default_rng(seed).permutation(np.arange(count) % groups)


def median_of_means(
    values: Any, *, delta: float | None = None, groups: int | None = None, seed: Any
) -> np.ndarray | float:
    """Median of means of the values, column by column.

    The middle pair is averaged when the number of groups is even, so that median_of_means(-v) is
    exactly -median_of_means(v) for the same seed.

    Parameters
    ----------
    values : array of float
        One row per value; further axes are columns, each with the same groups.
    delta : float, optional
        The chance of a miss that may remain; sets the number of groups to ceil(8 log(1 / delta)).
    groups : int, optional
        The number of groups, instead of delta.
    seed : int or Generator
        Which random groups.

    >>> median_of_means(np.append(np.ones(99), 1e9), delta=0.1, seed=0)
    1.0
    """
    values = np.asarray(values, float)
    if (delta is None) == (groups is None):
        raise broken(
            "Either delta or groups must be given", "both or neither given", "Use delta=0.05."
        )
    if not np.isfinite(values).all():
        raise broken(
            "Values must be finite",
            f"{np.count_nonzero(~np.isfinite(values))} are not",
            "Find out where they come from.",
        )
    if delta is not None:
        groups = group_count(delta)
    group = random_groups(len(values), groups or 0, seed=seed)
    result = np.median(mean_by(group, values, np.bincount(group)), axis=0)
    if values.ndim > 1:
        return result
    return float(result)


def median_objective(bag_losses: Any, group: Any, groups: int, *, weight: Any = None) -> Any:
    """The median of group means of per-bag losses, to be minimised.

    The paper's route to infinite model classes. The gradient is that of the middle group (or middle
    pair), so a bag with a wild loss moves the model only when its group is in the middle. Draw
    `group` anew for each batch with `random_groups`. Works for NumPy, JAX and PyTorch, also under
    `jit`.

    Parameters
    ----------
    bag_losses : array of float
        One per bag, e.g. from `unbag.weights.upm_by_bag` or `proportion_matching`.
    group : array of int
        Group number of each bag.
    groups : int
        How many groups; three or more guard against one wild bag.
    weight : array of float, optional
        Of each bag in the mean of its group, positive for one bag or more of each; by default
        equal.

    >>> float(median_objective(np.array([1.0, 2.0, 300.0]), np.array([0, 1, 2]), 3))
    2.0
    """
    xp, group = namespace(bag_losses), index_like(bag_losses, group)
    if weight is None:
        weight = xp.ones_like(bag_losses)
    w = like(bag_losses, weight)
    ordered = xp.sort(sum_by(group, w * bag_losses, groups) / sum_by(group, w, groups))
    return (ordered[(groups - 1) // 2] + ordered[groups // 2]) / 2
