"""Which bags estimate what, and the group means of each model: one pass over the predictions.

Three ways for equal bags: a third of the bags for the means of the components, a third for the
prior, a third for the estimator. Two ways for any sizes: the smaller half of the bags makes the
estimator, the other half estimates the means and the prior. The mean of a difference is the
difference of the means, so group means of each model are all that any pair needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from unbag._arrays import sum_by
from unbag._rules import broken, refuse
from unbag.bags import Bags, as_components, take_rows
from unbag.losses import Loss
from unbag.medians import median_of_means, random_groups


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
    """What one pass over the predictions needs to know of instances and bags.

    Parameters
    ----------
    mean_group : array of int
        Group of each instance among the means; -1 for none.
    bag_group : array of int
        Group of each bag in the estimator; -1 for none.
    centred : array of float
        Report minus prior of each bag, in component form.
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


def split_bags(bags: Bags, rng: np.random.Generator) -> Parts:
    """A random split of the observed bags into three parts where they are of one size, else into
    two; bags that are left over go to the means."""
    order = rng.permutation(np.flatnonzero(bags.observed))
    if bags.size[order].min() == bags.size[order].max():
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
    noisy = bool(bags.noise_or_zero[bags.observed].any())
    return noisy or (bags.kind == "total" and bags.cap is None)


def plan_groups(bags: Bags, groups: int, *, seed: int) -> tuple[GroupPlan, Parts]:
    """Everything that the pass over the predictions needs, drawn once.

    Parameters
    ----------
    bags : Bags
        Held-out bags.
    groups : int
        Of each median of means.
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
    parts = split_bags(bags, rng)
    counts = np.array([len(parts.estimator), len(parts.prior)])
    refuse(
        f"Each part of the split must hold at least as many bags as there are groups, {groups}",
        counts < groups,
        thing="part",
        given=counts,
        remedy="Give more bags, or allow a larger chance of failure: it takes fewer groups.",
    )
    prior = estimate_prior(bags, parts, groups, rng)
    centred = as_components(bags.report, bags.kind) - prior
    group = random_groups(len(parts.estimator), groups, seed=rng)
    group_of_bag = np.full(len(bags), -1)
    group_of_bag[parts.estimator] = group
    serves = np.zeros(len(bags), bool)
    serves[parts.means] = True
    in_means = serves[bags.bag]
    mean_group = np.full(len(bags.bag), -1)
    mean_group[in_means] = random_groups(int(in_means.sum()), groups, seed=rng)
    bag_sizes = np.bincount(group, minlength=groups)
    centred_size = sum_by(group, (centred * bags.size[:, None])[parts.estimator], groups)
    plan = GroupPlan(
        mean_group=mean_group,
        bag_group=group_of_bag,
        centred=centred,
        prior=prior,
        groups=groups,
        mean_sizes=np.bincount(mean_group[in_means], minlength=groups),
        bag_sizes=bag_sizes,
        centred_size=centred_size / bag_sizes[:, None],
    )
    return plan, parts


# scores of all instances, a path of an .npy file with them, or a function from rows of X to scores
Model = Any
StepsDone = Callable[[int, int], None]


class GroupMeans(NamedTuple):
    """Means over groups, of each model.

    Parameters
    ----------
    means : array of float, of shape (models, components, groups)
        Of the loss components over instances.
    bags : array of float, of shape (models, groups)
        Over bags, of what a bag says: sum over its instances of (report - prior) . components.
    """

    means: np.ndarray
    bags: np.ndarray


def read_models(models: Any, bags: Bags) -> tuple[tuple[Any, ...], list[Model]]:
    """Names and models; files are opened and mapped, not read."""
    if isinstance(models, Mapping):
        names, values = tuple(models), list(models.values())
    else:
        values = list(models)
        names = tuple(range(len(values)))
    if len(values) < 2:
        raise broken(
            "A tournament must have at least two models",
            f"{len(values)} given",
            "There is nothing to choose.",
        )
    for number, model in enumerate(values):
        if isinstance(model, str | Path):
            values[number] = np.load(model, mmap_mode="r")
    for name, model in zip(names, values, strict=True):
        if not callable(model) and len(model) != len(bags.bag):
            raise broken(
                "A model must have one prediction for each instance",
                f"model {name} has {len(model)} for {len(bags.bag)} instances",
                "Predict for bags.X, in its order.",
            )
        if callable(model) and bags.X is None:
            raise broken(
                "Bags must have features X for a model that is a function",
                f"model {name} is one and X is None",
                "Give X to the bags, or predictions.",
            )
    return names, values


def sum_models(
    names: Sequence[Any],
    models: Sequence[Model],
    bags: Bags,
    loss: Loss,
    plan: GroupPlan,
    *,
    chunk: int,
    read: Callable[[np.ndarray], np.ndarray] = np.asarray,
    progress: StepsDone | None = None,
) -> GroupMeans:
    """Group means of every model. Memory: one chunk of one model at a time.

    Parameters
    ----------
    names : sequence
        What the user calls each model.
    models : sequence
        Scores, or functions from rows of X to scores.
    bags : Bags
        Held-out bags.
    loss : Loss
        What decides.
    plan : GroupPlan
        Who estimates what.
    chunk : int
        How many instances are held at once.
    read : callable
        From what a model gives to scores that the loss takes.
    progress : callable, optional
        Called as progress(done, all).
    """
    form, n, r = loss.form(bags.kind), len(bags.bag), plan.groups
    components = plan.centred.shape[1]
    means, of_bags = np.zeros((len(models), components, r)), np.zeros((len(models), r))
    X, some_call = None, any(map(callable, models))
    for start in range(0, n, chunk):
        stop = min(start + chunk, n)
        part = _Chunk.of(plan, bags.bag, start, stop)
        if some_call:
            X = take_rows(bags.X, start + part.used)
        for number, model in enumerate(models):
            if callable(model):
                score = _checked(model(X), names[number], len(part.used))
            else:
                score = _checked(model[start:stop], names[number], stop - start)[part.used]
            f = form.components(form.predict(read(score)))
            means[number] += sum_by(part.mean_group, f[part.in_means], r).T
            said = np.einsum("nc,nc->n", f[part.in_bags], part.centred)
            of_bags[number] += sum_by(part.bag_group, said, r)
            if progress is not None:
                progress(start * len(models) + (stop - start) * (number + 1), n * len(models))
    return GroupMeans(means / plan.mean_sizes, of_bags / plan.bag_sizes)


class _Chunk(NamedTuple):
    """The instances of a chunk that serve the means or the estimator."""

    used: np.ndarray
    in_means: np.ndarray
    mean_group: np.ndarray
    in_bags: np.ndarray
    bag_group: np.ndarray
    centred: np.ndarray

    @staticmethod
    def of(plan: GroupPlan, bag: np.ndarray, start: int, stop: int) -> _Chunk:
        mean_group, bag_group = plan.mean_group[start:stop], plan.bag_group[bag[start:stop]]
        used = np.flatnonzero((mean_group >= 0) | (bag_group >= 0))
        mean_group, bag_group = mean_group[used], bag_group[used]
        in_means, in_bags = np.flatnonzero(mean_group >= 0), np.flatnonzero(bag_group >= 0)
        centred = plan.centred[bag[start:stop][used[in_bags]]]
        return _Chunk(used, in_means, mean_group[in_means], in_bags, bag_group[in_bags], centred)


def _checked(score: Any, name: Any, rows: int) -> np.ndarray:
    score = np.asarray(score, float)
    if len(score) != rows:
        raise broken(
            "A model must have one prediction for each instance",
            f"model {name} gave {len(score)} for {rows} rows",
            "Return one score (or one row of class scores) per row.",
        )
    if not np.isfinite(score).all():
        raise broken(
            "Predictions must be finite",
            f"model {name} has {np.count_nonzero(~np.isfinite(score))} that are not",
            "Leave it out, or find out why.",
        )
    return score
