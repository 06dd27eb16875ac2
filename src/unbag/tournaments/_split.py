"""Which bags estimate what: the three-way split for equal bags, the two-way split for any sizes.

Three ways: a third of the bags for the means of the components, a third for the prior, a third for
the estimator. Two ways: the smaller half of the bags makes the estimator, the other half estimates
the means and the prior.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from unbag._arrays import sum_by
from unbag._rules import broken, refuse
from unbag.bags import Bags, as_components
from unbag.medians import median_of_means, random_groups

Split = Literal["auto", "three", "two"]


class Parts(NamedTuple):
    """Bag numbers of each part; with two parts the means and the prior come from the same bags."""

    means: np.ndarray
    prior: np.ndarray
    estimator: np.ndarray

    @property
    def two(self) -> bool:
        """Whether the means and the prior share their bags, which the theorems treat apart."""
        return np.array_equal(self.means, self.prior)


class GroupPlan(NamedTuple):
    """What one pass over the predictions needs to know of each instance.

    Parameters
    ----------
    mean_group, bag_group : array of int
        Group of the instance among the means, and of its bag in the estimator; -1 for none.
    centred : array of float
        Report minus prior of the instance's bag, in component form.
    prior : array of float
        In component form.
    groups : int
        How many.
    mean_sizes, bag_sizes : array of int
        Instances and bags in each group.
    centred_size : array of float
        Of each group, the mean over its bags of (report - prior) * size.
    """

    mean_group: np.ndarray
    bag_group: np.ndarray
    centred: np.ndarray
    prior: np.ndarray
    groups: int
    mean_sizes: np.ndarray
    bag_sizes: np.ndarray
    centred_size: np.ndarray


def split_bags(bags: Bags, split: Split, rng: np.random.Generator) -> Parts:
    """A random split of the observed bags into parts; bags that are left over go to the means."""
    order = rng.permutation(np.flatnonzero(bags.observed))
    smallest, largest = bags.size[order].min(), bags.size[order].max()
    if split == "three" and smallest != largest:
        raise broken(
            "The three-way split must have bags of one size",
            f"sizes {smallest} to {largest} given",
            "Use {split:two}.",
        )
    if split == "three" or (split == "auto" and smallest == largest):
        m = len(order) // 3
        return Parts(order[2 * m :], order[:m], order[m : 2 * m])
    order = order[np.argsort(bags.size[order], kind="stable")]
    m = len(order) // 2
    return Parts(order[m:], order[m:], order[:m])


def estimate_prior(bags: Bags, parts: Parts, groups: int, rng: np.random.Generator) -> np.ndarray:
    """The size-weighted mean report, in component form.

    For each class of a histogram, and where reports are wild, it is a median of means, which needs
    no more than a variance.
    """
    report, size = bags.report[parts.prior], bags.size[parts.prior]
    if bags.kind == "histogram" or is_wild(bags):
        return as_components(median_of_means(report, groups=groups, seed=rng), bags.kind)
    return as_components(np.average(report, weights=size), bags.kind)


def is_wild(bags: Bags) -> bool:
    """Whether a report can be far from its mean: it carries noise, or its counts have no cap."""
    noisy = bags.noise is not None and bool(bags.noise[bags.observed].any())
    return noisy or (bags.kind == "total" and bags.cap is None)


def plan_groups(bags: Bags, groups: int, *, split: Split, seed: int) -> tuple[GroupPlan, Parts]:
    """Everything that the pass over the predictions needs, drawn once.

    Parameters
    ----------
    bags : Bags
        Held-out bags.
    groups : int
        Of each median of means.
    split : {"auto", "three", "two"}
        Into how many parts.
    seed : int
        Of the split and the groups.
    """
    if bags.stratum is not None:
        raise broken(
            "Bags of a tournament must be random throughout",
            "bags with strata given",
            "Hold one tournament for each stratum, or compare models by evaluate.",
        )
    rng = np.random.default_rng(seed)
    parts = split_bags(bags, split, rng)
    counts = np.array([len(parts.estimator), len(parts.prior)])
    refuse(
        f"Each part of the split must hold at least as many bags as there are groups, {groups}",
        counts < groups,
        thing="part",
        given=counts,
        remedy="Give more bags, a larger delta, or fewer groups with {groups}, at the price of "
        "confidence.",
    )
    prior = estimate_prior(bags, parts, groups, rng)
    centred = as_components(bags.report, bags.kind) - prior
    group = random_groups(len(parts.estimator), groups, seed=rng)
    group_of_bag = np.full(len(bags), -1)
    group_of_bag[parts.estimator] = group
    in_means = np.isin(bags.bag, parts.means)
    mean_group = np.full(len(bags.bag), -1)
    mean_group[in_means] = random_groups(int(in_means.sum()), groups, seed=rng)
    bag_sizes = np.bincount(group, minlength=groups)
    centred_size = sum_by(group, (centred * bags.size[:, None])[parts.estimator], groups)
    plan = GroupPlan(
        mean_group=mean_group,
        bag_group=group_of_bag[bags.bag],
        centred=centred[bags.bag],
        prior=prior,
        groups=groups,
        mean_sizes=np.bincount(mean_group[in_means], minlength=groups),
        bag_sizes=bag_sizes,
        centred_size=centred_size / bag_sizes[:, None],
    )
    return plan, parts
