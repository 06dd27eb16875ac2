"""Corrected p-values: which of many columns differ between bags beyond chance."""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

import numpy as np

from unbag._rules import broken
from unbag.diagnosis._variance import (
    FLOOR,
    BagLayout,
    Chance,
    ScaledColumns,
    Variance,
    analyse,
    chance,
    pairs,
)

EXCHANGED = 1e6  # at most so many numbers are exchanged between bags, several hundred times
BEYOND_DOUBT = 1e-3


class Significance(NamedTuple):
    """Analysis of variance, corrected p-values, and the bag means of the worst column in units of
    chance."""

    variance: Variance
    p: np.ndarray
    means: np.ndarray


def find_differences(
    columns: ScaledColumns, layout: BagLayout, *, level: float, seed: int
) -> Significance:
    """Analysis of variance with Holm's correction, confirmed by exchanging rows between bags.

    Only what is beyond all doubt, a thousand times below the level, needs no confirmation.
    """
    variance = analyse(columns, layout, chance(columns, layout))
    p = holm(variance.p)
    if BEYOND_DOUBT * level < p.min() <= level:
        p = np.maximum(p, _confirm(columns, layout, level, np.random.default_rng(seed)))
    worst = int(worst_first(variance, p)[0])
    return Significance(variance, p, _standard_means(columns, layout, variance, worst))


def worst_first(variance: Variance, p: np.ndarray) -> np.ndarray:
    """The columns by corrected p-value, then by F."""
    return np.lexsort((-variance.F, p))


def _standard_means(
    columns: ScaledColumns, layout: BagLayout, variance: Variance, worst: int
) -> np.ndarray:
    sums = layout.sums_by_bag(columns.values[:, [worst]])[:, 0]
    centre = (columns.sums[:, worst] / layout.instances)[layout.stratum]
    return (sums / layout.size - centre) * np.sqrt(layout.size / max(variance.within[worst], FLOOR))


def _confirm(
    columns: ScaledColumns, layout: BagLayout, level: float, rng: np.random.Generator
) -> np.ndarray:
    """Corrected p-values by exchange, from as many whole bags as are quick to exchange."""
    cells = getattr(columns.values, "nnz", None) or columns.values.size
    kept = np.ones(columns.values.shape[1], bool)
    if cells > EXCHANGED:
        count = max(ceil(EXCHANGED / cells * len(layout.size)), 50)
        columns, layout = _some_bags(columns, layout, rng.permutation(len(layout.size))[:count])
        kept = columns.varies
    p = np.ones(len(kept))
    if layout.between > 0 and kept.any():
        expected = chance(columns, layout)
        own = analyse(columns, layout, expected).p
        count = ceil(2 / level) - 1
        p[kept] = by_exchange(columns, layout, expected, own, exchanges=count, rng=rng)
    return p


def _some_bags(
    columns: ScaledColumns, layout: BagLayout, numbers: np.ndarray
) -> tuple[ScaledColumns, BagLayout]:
    chosen = np.isin(np.arange(len(layout.size)), numbers)
    where = chosen[layout.bag]
    bag = np.unique(layout.bag[where], return_inverse=True)[1]
    part = BagLayout.of(bag, layout.size[chosen], layout.stratum[chosen])
    return ScaledColumns.of(columns.values[where], part), part


def holm(p: np.ndarray) -> np.ndarray:
    """Holm's correction: the chance of one false alarm or more among all features is at most the
    level.

    >>> holm(np.array([0.01, 0.04, 0.03]))
    array([0.03, 0.06, 0.06])
    """
    order = np.argsort(p)
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    corrected = np.empty(len(p))
    corrected[order] = np.minimum(stepped, 1)
    return corrected


def by_exchange(
    columns: ScaledColumns,
    layout: BagLayout,
    expected: Chance,
    p: np.ndarray,
    *,
    exchanges: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Corrected p-values by exchanging rows between bags: how often is any feature of random bags
    as extreme?

    p_f = (1 + exchanges whose smallest p is at most p_f) / (1 + exchanges). Exact, whatever the
    features: under randomness the bags as they are, are one exchange more. Ends early once ten
    exchanges beat the best feature.
    """
    smallest = []
    for _ in range(exchanges):
        smallest.append(expected.p_value(pairs(columns, layout, layout.shuffled(rng))).min())
        if np.sum(np.array(smallest) <= p.min()) == 10:
            break
    beaten = np.searchsorted(np.sort(smallest), p, side="right")
    return (1 + beaten) / (1 + len(smallest))


def check_alarm_level(level: float) -> None:
    """Refuse a level that is no chance of a false alarm."""
    if not 0 < level < 1:
        raise broken(
            "A level must lie between 0 and 1",
            f"{level} given",
            "It is the chance of a false alarm, say 0.01.",
        )
