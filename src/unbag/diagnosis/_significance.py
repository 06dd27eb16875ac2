"""Columns of numbers and bags in, corrected p-values out."""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

import numpy as np

from unbag.diagnosis._variance import (
    FLOOR,
    Columns,
    Layout,
    Variance,
    analyse,
    by_exchange,
    chance,
    holm,
)

EXCHANGED = 1e6  # at most so many numbers are exchanged between bags, several hundred times
BEYOND_DOUBT = 1e-3


class Found(NamedTuple):
    """Analysis of variance, corrected p-values, and the bag means of the worst column in units of
    chance."""

    variance: Variance
    p: np.ndarray
    means: np.ndarray


def find(columns: Columns, layout: Layout, *, level: float, seed: int) -> Found:
    """Analysis of variance with Holm's correction; what it finds must be confirmed by exchanging
    rows between bags.

    Only what is beyond all doubt, a thousand times below the level, needs no confirmation.
    """
    variance = analyse(columns, layout, chance(columns, layout))
    p = holm(variance.p)
    if BEYOND_DOUBT * level < p.min() <= level:
        p = np.maximum(p, _confirm(columns, layout, level, np.random.default_rng(seed)))
    return Found(
        variance, p, _standard_means(columns, layout, variance, int(worst_first(variance, p)[0]))
    )


def worst_first(variance: Variance, p: np.ndarray) -> np.ndarray:
    """The columns by corrected p-value, then by F."""
    return np.lexsort((-variance.F, p))


def _standard_means(columns: Columns, layout: Layout, variance: Variance, worst: int) -> np.ndarray:
    sums = layout.sums_by_bag(columns.values[:, [worst]])[:, 0]
    centre = (columns.sums[:, worst] / layout.instances)[layout.stratum]
    return (sums / layout.size - centre) * np.sqrt(layout.size / max(variance.within[worst], FLOOR))


def _confirm(
    columns: Columns, layout: Layout, level: float, rng: np.random.Generator
) -> np.ndarray:
    """Corrected p-values by exchange, from as many whole bags as are quick to exchange."""
    cells = columns.values.nnz if hasattr(columns.values, "nnz") else columns.values.size
    kept = np.ones(columns.values.shape[1], bool)
    if cells > EXCHANGED:
        count = max(ceil(EXCHANGED / cells * len(layout.size)), 50)
        columns, layout = _some_bags(columns, layout, rng.permutation(len(layout.size))[:count])
        kept = columns.varies
    p = np.ones(len(kept))
    if layout.between > 0 and kept.any():
        expected = chance(columns, layout)
        own = analyse(columns, layout, expected).p
        p[kept] = by_exchange(
            columns, layout, expected, own, exchanges=ceil(2 / level) - 1, rng=rng
        )
    return p


def _some_bags(columns: Columns, layout: Layout, numbers: np.ndarray) -> tuple[Columns, Layout]:
    chosen = np.isin(np.arange(len(layout.size)), numbers)
    where = chosen[layout.bag]
    bag = np.unique(layout.bag[where], return_inverse=True)[1]
    part = Layout.of(bag, layout.size[chosen], layout.stratum[chosen])
    return Columns.of(columns.values[where], part), part
