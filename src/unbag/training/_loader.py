"""Bags and a seed in, the batches of an epoch as arrays of one shape out, so that a compiled step
can run over them.

Batches of bags of any sizes are padded. A padding bag has size 0 and weight 0 and holds at least
one padding row, so that means by bag are finite, and lies in a stratum of the batch, so that means
by stratum are; a padding row points to row 0 of the features and is masked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import lcm
from typing import NamedTuple

import numpy as np

from unbag._rules import broken
from unbag.bags import Bags, batch_plan
from unbag.weights import noise_weights


class Batches(NamedTuple):
    """One batch of each of several runs, which share the first axis; inside the step, of one run.

    row, bag, real : of each row; size, weight, stratum, report : of each bag. prior : in component
        form.
    further, further_stratum : rows of other bags, which help to estimate the means, and their
        strata. noise : of each
    bag, the variance of the noise on its count; empty where none is declared.
    """

    row: np.ndarray
    bag: np.ndarray
    real: np.ndarray
    size: np.ndarray
    weight: np.ndarray
    stratum: np.ndarray
    report: np.ndarray
    prior: np.ndarray
    further: np.ndarray
    further_stratum: np.ndarray
    noise: np.ndarray


class Shape(NamedTuple):
    """What batches are padded to."""

    rows: int
    bags: int


class Loader:
    """The batches of one set of bags, epoch after epoch.

    by_noise : whether noisier bags weigh less; not where the objective knows the noise itself.
    """

    def __init__(
        self,
        bags: Bags,
        *,
        batch: int,
        seed: int,
        pool: int = 0,
        importance: np.ndarray | None = None,
        by_noise: bool = True,
    ) -> None:
        self.bags, self.batch, self.seed, self.pool = bags, batch, seed, pool
        self.importance, self.by_noise = importance, by_noise
        self.report, self.prior = (array.astype(np.float32) for array in bags.components())

    def plan(self, epoch: int) -> list[np.ndarray]:
        """Bag numbers of each batch."""
        bags = self.bags
        return batch_plan(bags.size, self.batch, stratum=bags.stratum, seed=self.seed, epoch=epoch)

    def shapes(self, plan: list[np.ndarray]) -> set[tuple[int, int]]:
        """Rows and bags of each batch."""
        return {(int(self.bags.size[numbers].sum()), len(numbers)) for numbers in plan}

    def arrays(self, plan: list[np.ndarray], number: int, shape: Shape) -> Batches:
        """One batch, padded."""
        numbers = plan[number]
        rows, size = self.bags.rows_of(numbers), self.bags.size[numbers]
        missing, short = shape.bags - len(numbers), shape.rows - len(rows)
        padding = np.arange(short) % max(missing, 1) + len(numbers)
        fill = lambda values: np.concatenate(
            [values, np.zeros((missing, *values.shape[1:]), values.dtype)]
        )
        stratum = self._stratum(numbers)
        further, further_stratum = self._further(plan, number)
        weight = bag_weights(self.bags, numbers, stratum, self.importance, by_noise=self.by_noise)
        noise = np.zeros(0) if self.bags.noise is None else fill(self.bags.noise[numbers])
        return Batches(
            row=np.concatenate([rows, np.zeros(short, int)]).astype(np.int32),
            bag=np.concatenate([np.repeat(np.arange(len(numbers)), size), padding]).astype(
                np.int32
            ),
            real=np.arange(shape.rows) < len(rows),
            size=fill(size.astype(np.float32)),
            weight=fill(weight.astype(np.float32)),
            stratum=np.append(stratum, np.repeat(stratum[:1], missing)).astype(np.int32),
            report=fill(self.report[numbers]),
            prior=self.prior,
            further=further.astype(np.int32),
            further_stratum=further_stratum.astype(np.int32),
            noise=noise.astype(np.float32),
        )

    def _stratum(self, numbers: np.ndarray) -> np.ndarray:
        return (
            np.zeros(len(numbers), int) if self.bags.stratum is None else self.bags.stratum[numbers]
        )

    def _further(self, plan: list[np.ndarray], number: int) -> tuple[np.ndarray, np.ndarray]:
        """Rows of the bags that come after a batch in the epoch, and round to its beginning: never
        its own."""
        if self.pool == 0:
            return np.zeros(0, int), np.zeros(0, int)
        others = np.concatenate([*plan[number + 1 :], *plan[:number], np.zeros(0, int)])
        rows = self.bags.rows_of(others)
        if len(rows) < self.pool:
            raise broken(
                "A pool must fit into the bags outside a batch",
                f"{self.pool} came and there are {len(rows)} such rows",
                "Make the pool or the batch smaller.",
            )
        return rows[: self.pool], np.repeat(self._stratum(others), self.bags.size[others])[
            : self.pool
        ]


def epoch_batches(
    loaders: Sequence[Loader], epoch: int, shape: Shape | None, *, multiple: int = 1
) -> tuple[Iterator, Shape]:
    """The batches of all runs side by side: (arrays, whether each run still has a batch), and their
    shape.

    The shape only ever grows, in coarse steps, so that a step is compiled once or twice and not for
    every batch.
    multiple : of which the rows are one, so that as many devices have equally many.
    """
    plans = [loader.plan(epoch) for loader in loaders]
    shapes = set().union(
        *(loader.shapes(plan) for loader, plan in zip(loaders, plans, strict=True))
    )
    shape = _grown(shapes, shape, multiple)

    def batches() -> Iterator[tuple[Batches, np.ndarray]]:
        for number in range(max(map(len, plans))):
            active = np.array([number < len(plan) for plan in plans])
            each = [
                loader.arrays(plan, min(number, len(plan) - 1), shape)
                for loader, plan in zip(loaders, plans, strict=True)
            ]
            yield Batches(*(np.stack(column) for column in zip(*each, strict=True))), active

    return batches(), shape


def _grown(shapes: set[tuple[int, int]], before: Shape | None, multiple: int) -> Shape:
    first = Shape(*next(iter(shapes)))
    before = None if before is not None and before.rows % multiple else before
    if len(shapes) == 1 and before in (None, first) and first.rows % multiple == 0:
        return first
    if before is not None and all(
        r + before.bags - b <= before.rows and b < before.bags for r, b in shapes
    ):
        return before
    coarse = lambda value, step: -(-value // step) * step
    bags = coarse(1 + max(b for _, b in shapes), 8)
    rows = coarse(max(r + bags - b for r, b in shapes), lcm(128, multiple))
    return Shape(max(rows, before.rows if before else 0), max(bags, before.bags if before else 0))


def bag_weights(
    bags: Bags,
    numbers: np.ndarray,
    stratum: np.ndarray,
    importance: np.ndarray | None = None,
    *,
    by_noise: bool = True,
) -> np.ndarray:
    """Weights that add up to 1 in each stratum of a batch: equal, or the best ones when reports are
    noisy."""
    noise = bags.noise[numbers] if bags.noise is not None and by_noise else np.zeros(len(numbers))
    weight = noise_weights(
        bags.size[numbers], noise, variance=label_variance(bags), stratum=stratum
    )
    if importance is None:
        return weight
    weight = weight * importance[numbers]
    return weight / np.maximum(np.bincount(stratum, weights=weight)[stratum], 1e-30)


def declared_by_all(many: Sequence[Bags]) -> list[Bags]:
    """Where some bags declare their noise, the others declare none of it as 0, so that batches have
    one shape."""
    if all(bags.noise is None for bags in many):
        return list(many)
    return [
        bags if bags.noise is not None else replace(bags, noise=np.zeros(len(bags)))
        for bags in many
    ]


def label_variance(bags: Bags) -> float:
    """Var y: p (1 - p) for binary labels and on average over classes; for counts that of a Poisson
    variable."""
    p = np.asarray(bags.prior, float)
    return float(max(np.mean(p if bags.kind == "total" else p * (1 - p)), 1e-6))
