"""Group means of each model: one pass over the predictions, in chunks of instances.

The mean of a difference is the difference of the means, so group means of each model are all that
any pair needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from unbag._arrays import sum_by
from unbag._rules import broken
from unbag.bags import Bags, take_rows
from unbag.losses import Loss
from unbag.tournaments._split import GroupPlan

# scores of all instances, a path of an .npy file with them, or a function from rows of X to scores
Model = Any
Progress = Callable[[int, int], None]


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
    progress: Progress | None = None,
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
        part = _Chunk.of(plan, start, stop)
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
    def of(plan: GroupPlan, start: int, stop: int) -> _Chunk:
        mean_group, bag_group = plan.mean_group[start:stop], plan.bag_group[start:stop]
        used = np.flatnonzero((mean_group >= 0) | (bag_group >= 0))
        mean_group, bag_group = mean_group[used], bag_group[used]
        in_means, in_bags = np.flatnonzero(mean_group >= 0), np.flatnonzero(bag_group >= 0)
        centred = plan.centred[start:stop][used][in_bags]
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
