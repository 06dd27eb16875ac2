"""The batches of an epoch as arrays of one shape, so that a compiled step can run over them.

Batches of bags of any sizes are padded. A padding bag has size 0 and weight 0 and holds at least
one padding row, so that means by bag are finite, and lies in a stratum of the batch, so that means
by stratum are; a padding row points to row 0 of the features and is masked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, lcm
from typing import Any, NamedTuple

import numpy as np

from unbag._rules import broken
from unbag.bags import Bags, batch_plan, mean_label_variance
from unbag.weights import noise_weights


class Batches(NamedTuple):
    """One batch of each of several runs, which share the first axis; inside the step, of one run.

    Parameters
    ----------
    row, bag, real : array
        Of each row: its row in the features, its bag in the batch, whether it is no padding.
    size, weight, stratum, report : array
        Of each bag.
    prior : array
        In component form.
    noise : array
        Of each bag, the variance of the noise on its count; empty where none is declared.
    """

    row: np.ndarray
    bag: np.ndarray
    real: np.ndarray
    size: np.ndarray
    weight: np.ndarray
    stratum: np.ndarray
    report: np.ndarray
    prior: np.ndarray
    noise: np.ndarray


class Shape(NamedTuple):
    """What batches are padded to."""

    rows: int
    bags: int


class Loader:
    """The batches of one set of bags, epoch after epoch.

    Parameters
    ----------
    bags : Bags
        To learn from.
    batch : int
        About how many instances a batch holds.
    seed : int
        Of the order of the bags.
    by_noise : bool
        Whether noisier bags weigh less; not where the objective knows the noise itself.
    """

    def __init__(self, bags: Bags, *, batch: int, seed: int, by_noise: bool = True) -> None:
        self.bags, self.batch, self.seed = bags, batch, seed
        self.by_noise = by_noise
        self.importance: np.ndarray | None = None  # of each bag, a factor on its weight
        self.report, self.prior = (array.astype(np.float32) for array in bags.components())
        self.stratum = bags.stratum_or_zero

    def plan(self, epoch: int) -> list[np.ndarray]:
        """Bag numbers of each batch."""
        bags = self.bags
        return batch_plan(bags.size, self.batch, stratum=bags.stratum, seed=self.seed, epoch=epoch)

    def arrays(self, plan: list[np.ndarray], number: int, shape: Shape) -> Batches:
        """One batch, padded."""
        numbers, bags = plan[number], self.bags
        rows, size, own = bags.rows_of(numbers), bags.size[numbers], self.stratum[numbers]
        short, missing = shape.rows - len(rows), shape.bags - len(numbers)
        padding = np.arange(short) % max(missing, 1) + len(numbers)
        bag = np.concatenate([np.repeat(np.arange(len(numbers)), size), padding])
        noise = np.zeros(0) if bags.noise is None else _filled(bags.noise[numbers], missing)
        return Batches(
            row=np.concatenate([rows, np.zeros(short, int)]).astype(np.int32),
            bag=bag.astype(np.int32),
            real=np.arange(shape.rows) < len(rows),
            size=_filled(size.astype(np.float32), missing),
            weight=_filled(self._weights(numbers).astype(np.float32), missing),
            stratum=np.append(own, np.repeat(own[:1], missing)).astype(np.int32),
            report=_filled(self.report[numbers], missing),
            prior=self.prior,
            noise=noise.astype(np.float32),
        )

    def _weights(self, numbers: np.ndarray) -> np.ndarray:
        """Weights that add up to 1 in each stratum of a batch: equal, or the best ones when reports
        are noisy."""
        bags, stratum, noise = self.bags, self.stratum[numbers], np.zeros(len(numbers))
        if bags.noise is not None and self.by_noise:
            noise = bags.noise[numbers]
        variance = mean_label_variance(bags.prior, bags.kind)
        weight = noise_weights(bags.size[numbers], noise, variance=variance, stratum=stratum)
        if self.importance is None:
            return weight
        weight = weight * self.importance[numbers]
        return weight / np.maximum(np.bincount(stratum, weights=weight)[stratum], 1e-30)


def _filled(values: np.ndarray, missing: int) -> np.ndarray:
    return np.concatenate([values, np.zeros((missing, *values.shape[1:]), values.dtype)])


def epoch_batches(
    loaders: Sequence[Loader], epoch: int, shape: Shape | None, *, multiple: int = 1
) -> tuple[Iterator[tuple[Batches, np.ndarray]], Shape]:
    """The batches of all runs side by side.

    The shape only ever grows, in coarse steps, so that a step is compiled once or twice and not for
    every batch.

    Parameters
    ----------
    loaders : sequence of Loader
        Of each run.
    epoch : int
        With each loader's seed it decides the order.
    shape : Shape, optional
        Of the batches so far.
    multiple : int
        Of which the rows are one, so that as many devices have equally many.

    Returns
    -------
    batches : iterator of (Batches, array)
        With whether each run still has a batch.
    shape : Shape
        Of these batches.
    """
    plans = [loader.plan(epoch) for loader in loaders]
    pairs = list(zip(loaders, plans, strict=True))
    sizes = [(loader.bags.size[numbers], len(numbers)) for loader, p in pairs for numbers in p]
    padded = _grown({(int(size.sum()), count) for size, count in sizes}, shape, multiple)

    def batches() -> Iterator[tuple[Batches, np.ndarray]]:
        for number in range(max(map(len, plans))):
            active = np.array([number < len(plan) for plan in plans])
            each = [loader.arrays(p, min(number, len(p) - 1), padded) for loader, p in pairs]
            yield Batches(*(np.stack(column) for column in zip(*each, strict=True))), active

    return batches(), padded


def _grown(shapes: set[tuple[int, int]], before: Shape | None, multiple: int) -> Shape:
    first = Shape(*next(iter(shapes)))
    if before is None or before.rows % multiple:
        before = Shape(0, 0)
    if len(shapes) == 1 and before in ((0, 0), first) and first.rows % multiple == 0:
        return first
    if all(r + before.bags - b <= before.rows and b < before.bags for r, b in shapes):
        return before
    bags = 8 * ceil((1 + max(b for _, b in shapes)) / 8)
    step = lcm(128, multiple)
    rows = step * ceil(max(r + bags - b for r, b in shapes) / step)
    return Shape(max(rows, before.rows), max(bags, before.bags))


def shared_features(many: Sequence[Bags], X: Any) -> tuple[Any, list[Any]]:
    """One array of features for the bags of all runs, and bags whose rows point into it.

    Parameters
    ----------
    many : sequence of Bags
        Of each run.
    X : array, optional
        Features to which the bags refer by their `rows`; by default the bags' own.
    """
    if X is not None:
        return X, [_Pointing(bags, bags.rows) for bags in many]
    if any(bags.X is None for bags in many):
        rule = "Bags to train on must have features"
        raise broken(rule, "X is None", "Give X to the bags, or to the trainer.")
    if all(bags is many[0] for bags in many):
        return many[0].X, list(many)
    offsets = np.cumsum([0, *(len(bags.bag) for bags in many[:-1])])
    stacked = np.concatenate([np.asarray(bags.X) for bags in many])
    return stacked, [
        _Pointing(bags, offset + np.arange(len(bags.bag)))
        for bags, offset in zip(many, offsets, strict=True)
    ]


class _Pointing:
    """Bags whose instances are rows of another array."""

    def __init__(self, bags: Bags, rows: Any) -> None:
        self._bags, self._rows = bags, np.asarray(rows)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._bags, name)

    def rows_of(self, numbers: np.ndarray) -> np.ndarray:
        return self._rows[self._bags.rows_of(numbers)]
