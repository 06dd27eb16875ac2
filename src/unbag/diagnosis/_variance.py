"""One-way analysis of variance across bags: do they differ more than chance allows?

Random bags are a random order of the rows (within each stratum), so chance is the set of all
orders. Its first three moments give every feature a p-value at once, also for rare features, where
the F distribution fails; where that leaves a doubt, random orders are drawn and decide, which keeps
the false-alarm rate whatever the features look like.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil
from typing import Any, NamedTuple

import numpy as np

from unbag._rules import broken
from unbag.bags import Bags

FLOOR = 1e-12  # of a variance within bags, so that one can divide by it


@dataclass(frozen=True, eq=False)
class BagLayout:
    """Which instance is in which bag, and which bag in which stratum (all in one when there are
    none)."""

    bag: np.ndarray
    size: np.ndarray
    stratum: np.ndarray
    strata: int

    @staticmethod
    def of(bag: np.ndarray, size: np.ndarray, stratum: np.ndarray | None) -> BagLayout:
        """Strata renumbered, so that none is empty."""
        if stratum is None:
            stratum = np.zeros(len(size), int)
        used, s = np.unique(stratum, return_inverse=True)
        return BagLayout(bag, size, s, len(used))

    @cached_property
    def instances(self) -> np.ndarray:
        """Instances of each stratum."""
        return np.bincount(self.stratum, weights=self.size, minlength=self.strata)

    @cached_property
    def bags(self) -> np.ndarray:
        """Bags of each stratum."""
        return np.bincount(self.stratum, minlength=self.strata)

    @property
    def between(self) -> int:
        """Degrees of freedom between bags."""
        return len(self.size) - self.strata

    @property
    def within(self) -> int:
        """Degrees of freedom within bags."""
        return len(self.bag) - len(self.size)

    @property
    def k0(self) -> float:
        """The size that counts: (N - sum_j k_j^2 / n_stratum(j)) / (degrees of freedom between
        bags)."""
        square = (self.size**2 / self.instances[self.stratum]).sum()
        return float((len(self.bag) - square) / self.between)

    def sums_by_bag(self, values: Any) -> np.ndarray:
        """Sums over the rows of each bag."""
        return _dense(self.group() @ values)

    def shuffled(self, rng: np.random.Generator) -> np.ndarray:
        """The rows, bag by bag, after a random exchange of rows between the bags of each
        stratum."""
        order = np.empty_like(self.order)
        for places in self._places:
            order[places] = rng.permutation(self.order[places])
        return order

    @cached_property
    def order(self) -> np.ndarray:
        """The rows, bag by bag."""
        return np.argsort(self.bag, kind="stable")

    @cached_property
    def _places(self) -> list[np.ndarray]:
        """Where the rows of each stratum stand in the order."""
        stratum = np.repeat(self.stratum, self.size)
        return np.split(
            np.argsort(stratum, kind="stable"), np.cumsum(self.instances.astype(int))[:-1]
        )

    def group(self, order: np.ndarray | None = None) -> Any:
        """The matrix that adds up the rows of each bag, in this order of the rows or as they
        are."""
        from scipy import sparse

        if order is None:
            order = self.order
        rows, start = len(self.bag), np.append(0, np.cumsum(self.size))
        return sparse.csr_array((np.ones(rows), order, start), (len(self.size), rows))


def _indicator(group: np.ndarray, count: int) -> Any:
    """The matrix that adds up the rows of each group."""
    from scipy import sparse

    rows = len(group)
    matrix = sparse.csc_array((np.ones(rows), group, np.arange(rows + 1)), shape=(count, rows))
    return matrix.tocsr()


class Variance(NamedTuple):
    """The analysis of variance of some columns.

    Parameters
    ----------
    F : array (columns,)
        Variance between bags against that within; about 1 for random bags.
    between, within : array (columns,)
        Variances between and within bags.
    p : array (columns,)
        Chance of so much when bags are random, before any correction.
    """

    F: np.ndarray
    between: np.ndarray
    within: np.ndarray
    p: np.ndarray


class Chance(NamedTuple):
    """Mean, standard deviation and skewness of what the pairs of a bag say when bags are random."""

    mean: np.ndarray
    deviation: np.ndarray
    skewness: np.ndarray

    def p_value(self, observed: np.ndarray) -> np.ndarray:
        """Chance of this or more, by the Gamma distribution (Pearson's type III) with the same
        three moments."""
        from scipy.special import gammaincc, ndtr

        z = (observed - self.mean) / self.deviation
        g = np.maximum(self.skewness, 1e-3)
        gamma = gammaincc(4 / g**2, np.maximum((z + 2 / g) * 2 / g, 0))
        return np.where(self.skewness < 1e-3, ndtr(-z), gamma)


@dataclass(frozen=True, eq=False)
class ScaledColumns:
    """Columns with mean square 1 within strata, their squares, sums by stratum, what they were
    divided by, and which of all columns they are.

    Dense columns are centred within strata; sparse ones stay sparse.
    """

    values: Any
    squares: Any
    sums: np.ndarray
    spread: np.ndarray
    varies: np.ndarray

    @staticmethod
    def of(values: Any, layout: BagLayout) -> ScaledColumns:
        """Scale the columns, and leave out those that are constant in every stratum."""
        group, n = _indicator(layout.stratum[layout.bag], layout.strata), layout.instances[:, None]
        size = np.sqrt(np.asarray(_squares(values).mean(axis=0)).ravel())
        sums = _dense(group @ values)
        if not hasattr(values, "tocsr"):
            values = values - (sums / n)[layout.stratum[layout.bag]]
            sums = group @ values
        total = np.asarray(_squares(values).sum(axis=0)).ravel() - (sums**2 / n).sum(axis=0)
        spread = np.sqrt(np.maximum(total, 0) / len(layout.bag))
        varies = spread > 1e-7 * np.maximum(size, 1e-300)
        values = values[:, varies] / spread[varies]
        sums, spread = sums[:, varies] / spread[varies], spread[varies]
        return ScaledColumns(values, _squares(values), sums, spread, varies)


def _times(a: Any, b: Any) -> Any:
    """Products cell by cell, of sparse matrices or arrays."""
    if hasattr(a, "tocsr"):
        return a.multiply(b).tocsr()
    return a * b


def _squares(values: Any) -> Any:
    return _times(values, values)


def _dense(values: Any) -> np.ndarray:
    if hasattr(values, "toarray"):
        return values.toarray()
    return values


def squares_between(sums: np.ndarray, columns: ScaledColumns, layout: BagLayout) -> np.ndarray:
    """SSB = sum_j k_j (mean_j - mean of the stratum)^2 of each column, from the sums of the
    bags."""
    strata = (columns.sums**2 / layout.instances[:, None]).sum(axis=0)
    return (sums**2 / layout.size[:, None]).sum(axis=0) - strata


def pairs(columns: ScaledColumns, layout: BagLayout, order: np.ndarray | None = None) -> np.ndarray:
    """What the pairs of a bag say: SSB without the squares of single rows, which tell nothing about
    bags.

    sum_j (1 / k_j) sum_{i != i' in j} z_i z_i',   z centred within strata
    """
    if order is None:
        order = layout.order
    sums = _dense(layout.group(order) @ columns.values)
    mean = columns.sums / layout.instances[:, None]
    share = np.empty(len(order))
    share[order] = np.repeat(1 / layout.size, layout.size)
    means = _dense(_indicator(layout.stratum, layout.strata) @ (sums / layout.size[:, None]))
    single = share @ columns.squares - 2 * (means * mean).sum(axis=0)
    single = single + (mean**2 * layout.bags[:, None]).sum(axis=0)
    return squares_between(sums, columns, layout) - single


def chance(columns: ScaledColumns, layout: BagLayout) -> Chance:
    """The first three moments of `pairs` over all orders of the rows within strata.

    With s2 and m3 the central moments in a stratum of B bags and n rows, the sum over strata of

        mean     s2 (B / n - 1)
        variance (1 - 1/B) sum_j 2 s2^2 (k_j - 1) / k_j
        third    (1 - 1/B) sum_j [8 s2^3 (k_j - 1)(k_j - 2) / k_j^2 + 4 m3^2 (k_j - 1) / k_j^2]

    The mean is exact, the others up to 1/n.
    """
    s2, m3 = _central_moments(columns, layout)
    k, s = layout.size.astype(float), layout.stratum
    pairs_of_one, triples, pairs_of_two = (
        np.bincount(s, weights=of_bag, minlength=layout.strata)[:, None]
        for of_bag in ((k - 1) / k, (k - 1) * (k - 2) / k**2, (k - 1) / k**2)
    )
    B, n = layout.bags[:, None], layout.instances[:, None]
    free = 1 - 1 / B
    mean = (s2 * (B / n - 1)).sum(axis=0)
    variance = (2 * s2**2 * free * pairs_of_one).sum(axis=0)
    third = free * (8 * s2**3 * triples + 4 * m3**2 * pairs_of_two)
    # a column that varies in lone bags only has no deviation
    deviation = np.maximum(np.sqrt(variance), 1e-3)
    return Chance(mean, deviation, third.sum(axis=0) / deviation**3)


def _central_moments(columns: ScaledColumns, layout: BagLayout) -> tuple[np.ndarray, np.ndarray]:
    """Variance and third central moment of each column in each stratum."""
    n, group = layout.instances[:, None], _indicator(layout.stratum[layout.bag], layout.strata)
    cubes = _times(columns.values, columns.squares)
    a1, a2, a3 = columns.sums / n, _dense(group @ columns.squares) / n, _dense(group @ cubes) / n
    s2 = np.maximum(a2 - a1**2, 0) * n / np.maximum(n - 1, 1)
    return s2, a3 - 3 * a1 * a2 + 2 * a1**3


def analyse(columns: ScaledColumns, layout: BagLayout, expected: Chance) -> Variance:
    """One-way analysis of variance of each column across bags, nested in strata."""
    ssb = squares_between(layout.sums_by_bag(columns.values), columns, layout)
    # the columns are scaled so that the total is the number of rows
    ssw = np.maximum(len(layout.bag) - ssb, 0)
    msb, msw = ssb / layout.between, ssw / layout.within
    F, between = msb / np.maximum(msw, FLOOR), np.maximum(msb - msw, 0) / layout.k0
    return Variance(F, between, msw, expected.p_value(pairs(columns, layout)))


def between_bags(values: np.ndarray, bags: Bags) -> Variance | None:
    """The analysis of variance of some columns across bags; None where nothing can differ.

    Parameters
    ----------
    values : array (instances, columns)
        Numbers of each instance.
    bags : Bags
        Who is in which bag.
    """
    layout = BagLayout.of(bags.bag, bags.size, bags.stratum)
    if layout.between < 1 or layout.within < 1:
        return None
    columns = ScaledColumns.of(values, layout)
    if not columns.varies.any():
        return None
    return analyse(columns, layout, chance(columns, layout))


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
    centre = (columns.sums[:, worst] / layout.instances)[layout.stratum]
    mean = layout.sums_by_bag(columns.values[:, [worst]])[:, 0] / layout.size
    scale = np.sqrt(layout.size / max(variance.within[worst], FLOOR))
    return Significance(variance, p, (mean - centre) * scale)


def worst_first(variance: Variance, p: np.ndarray) -> np.ndarray:
    """The columns by corrected p-value, then by F."""
    return np.lexsort((-variance.F, p))


def _confirm(
    columns: ScaledColumns, layout: BagLayout, level: float, rng: np.random.Generator
) -> np.ndarray:
    """Corrected p-values by exchange, from as many whole bags as are quick to exchange."""
    cells = getattr(columns.values, "nnz", None) or columns.values.size
    kept = np.ones(columns.values.shape[1], bool)
    if cells > EXCHANGED:
        count = max(ceil(EXCHANGED / cells * len(layout.size)), 50)
        chosen = np.zeros(len(layout.size), bool)
        chosen[rng.permutation(len(chosen))[:count]] = True
        rows = chosen[layout.bag]
        bag = np.unique(layout.bag[rows], return_inverse=True)[1]
        layout = BagLayout.of(bag, layout.size[chosen], layout.stratum[chosen])
        columns = ScaledColumns.of(columns.values[rows], layout)
        kept = columns.varies
    p = np.ones(len(kept))
    if layout.between > 0 and kept.any():
        expected = chance(columns, layout)
        own = analyse(columns, layout, expected).p
        count = ceil(2 / level) - 1
        p[kept] = by_exchange(columns, layout, expected, own, exchanges=count, rng=rng)
    return p


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
