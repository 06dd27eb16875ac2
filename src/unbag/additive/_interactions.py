"""A fitted additive model in, the pairs of columns whose effects are not a sum out.

Could the cells of a pair of columns have effects of their own, with prior variance t each, then the
counts, linear about the fit and with flat effects of the two columns, would be more probable by

    log |I + t G| / -2 + t u' (I + t G)^-1 u / 2,    G = J' P J,    u = J' P r

with J the Jacobian of the cells and r the residuals, both of unit variance, and P the projection
off the effects of the columns themselves. It is averaged over t. Of all pairs one is expected to
matter before the counts are looked at, so a pair is taken whose evidence is above the logarithm of
their number: searching among more of them asks for more. G and u of bags add up, so bags may lie
in parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from unbag.additive._counts import Diagonal
from unbag.additive._pairs import LEVELS, cells_of, cut, places_of
from unbag.additive._slots import Slot, as_places
from unbag.additive._terms import Term, Terms

if TYPE_CHECKING:
    from unbag.additive._counts import CountMoments, Counts, Whitener
    from unbag.additive._slots import Slots

FEW = 7
"""Levels of a category that have a part of their own while pairs are looked for."""
WORK = 5e7
"""Rows times pairs that are looked at, a second; of more columns the strongest are taken."""
EACH = 25_000
"""Rows that take as long as what a pair takes beside its rows, the evidence of its cells."""
USUAL = 20
"""Of fewer pairs than this one in so many is expected to matter."""
VARIANCES = np.logspace(-3, 0.5, 15)
"""Prior variances of a cell's effect that are as probable as each other."""


class ColumnPair(NamedTuple):
    """A pair of columns that may have effects of its own.

    Parameters
    ----------
    few : Term
        With few cells, to look whether it has.
    more : Term
        The same with more levels of categories, to learn its effects.
    """

    few: Term
    more: Term


def candidates(terms: Terms, strength: np.ndarray, rows: int) -> list[ColumnPair]:
    """The pairs to look at; of many columns the strongest, so that it takes no longer.

    Parameters
    ----------
    terms : Terms
        Of the fitted model.
    strength : numpy.ndarray
        Of each term.
    rows : int
        How many there are, times how many derivatives each has.
    """
    columns: list[int] = []
    for number in np.argsort(-strength, kind="stable"):
        term, where, _ = terms.places[number]
        if len(columns) * (len(columns) + 1) / 2 * (rows + EACH) > WORK:
            break
        several = term.levels or term.edges or np.isfinite(term.low)
        if several and not term.group and cut(term, terms.share[where]).max() > 0:
            columns.append(int(number))
    made, taken = [], {term.name for term in terms.terms}
    few, more = (_cuts(terms, sorted(columns), levels) for levels in (FEW, LEVELS))
    for pair in combinations(few, 2):
        name = " x ".join(pair)
        while name in taken:  # a column may be called so, or another pair
            name += " together"
        taken.add(name)
        made.append(ColumnPair(_pair(name, pair, few), _pair(name, pair, more)))
    return made


def _cuts(terms: Terms, columns: Sequence[int], levels: int) -> dict[str, tuple[int, ...]]:
    """The part of each level or bin of these columns, by their names."""
    made = {}
    for number in columns:
        term, where, _ = terms.places[number]
        made[term.name] = tuple(cut(term, terms.share[where], levels=levels).tolist())
    return made


def _pair(name: str, pair: tuple[str, str], parts: dict[str, tuple[int, ...]]) -> Term:
    """The term of two columns that are cut into parts."""
    cuts = parts[pair[0]], parts[pair[1]]
    cells = (max(cuts[0]) + 1) * (max(cuts[1]) + 1)
    return Term(name, levels=cells, pair=pair, cuts=cuts)


class CellProducts(NamedTuple):
    """What bags say of the cells of a pair, before it is projected; bags add up.

    Parameters
    ----------
    gram : numpy.ndarray
        J' J.
    gradient : numpy.ndarray
        J' r.
    """

    gram: np.ndarray
    gradient: np.ndarray

    def plus(self, gram: np.ndarray, gradient: np.ndarray) -> CellProducts:
        """What these bags and further ones say."""
        return CellProducts(self.gram + gram, self.gradient + gradient)


def cell_products(
    pairs: Sequence[ColumnPair],
    terms: Terms,
    Z: Slots,
    counts: Counts,
    moments: CountMoments,
    whitener: Whitener,
    *,
    taken: np.ndarray | None = None,
) -> list[CellProducts]:
    """The products of each pair.

    Parameters
    ----------
    pairs : sequence of ColumnPair
        To look at.
    terms : Terms
        Of the columns.
    Z : Slots
        The rows, bag by bag.
    counts : Counts
        Of bags that share no row.
    moments, whitener : CountMoments, Whitener
        Of the counts, where the fit is.
    taken : numpy.ndarray, optional
        Whether each count, of classes one class after the other, is looked at; by default all are.
    """
    white = whitener(counts.observed - moments.mean)
    white = white if taken is None else white * taken
    of = {term.name: (term, rows.start) for term, rows, _ in terms.places}
    names = dict.fromkeys(name for pair in pairs for name in pair.few.pair)
    places = {name: places_of(*of[name], Z) for name in names}
    made = [CellProducts(np.zeros(()), np.zeros(())) for _ in pairs]
    for some in counts.together:  # the cells of all bags at once would take more than the rows
        if counts.simple:
            which, whiten = some.counts, _part(whitener, some.counts)
            slopes = [[counts.slope(moments.h[some.rows])]]
        else:  # classes are in one block
            which, whiten, slopes = slice(None), whitener, counts.slopes(moments.h)
        size = np.diff(counts.S.indptr)[some.counts]
        count = np.repeat(np.arange(len(size)), size)
        residual = white[which]
        for number, (pair, known) in enumerate(zip(pairs, made, strict=True)):
            cell = cells_of(pair.few, [places[name][some.rows] for name in pair.few.pair])
            slot = Slot(0, pair.few.levels, as_places(cell, pair.few.levels))
            blocks = [[slot.by_count(count, len(size), d) for d in row] for row in slopes]
            J = whiten(np.block(blocks))
            if taken is not None:
                J = J * taken[which, None]
            made[number] = known.plus(J.T @ J, J.T @ residual)
    return made


def _part(whitener: Any, counts: slice) -> Diagonal:
    """The whitener of some counts that share no row."""
    return Diagonal(whitener.root[counts], 0.0)


def asked_for(
    pairs: Sequence[ColumnPair], parts: Iterable[Sequence[CellProducts]], most: int
) -> tuple[Term, ...]:
    """The pairs that the counts ask for, the strongest first.

    Parameters
    ----------
    pairs : sequence of ColumnPair
        That were looked at.
    parts : iterable of sequences of CellProducts
        Of each part of the bags the products of each pair.
    most : int
        How many pairs to take.
    """
    sums, taken = [CellProducts(np.zeros(()), np.zeros(())) for _ in pairs], []
    for part in parts:  # one at a time: the products of many pairs are large
        sums = [one.plus(*other) for one, other in zip(sums, part, strict=True)]
    for pair, (gram, gradient) in zip(pairs, sums, strict=True):
        a, b = (max(cuts) + 1 for cuts in pair.few.cuts)
        gain = _gain(gram, gradient, _margins(a, b, len(gradient) // (a * b)))
        if gain > np.log(max(len(pairs), USUAL)):
            taken.append((gain, pair.more))
    taken.sort(key=lambda one: -one[0])
    return tuple(term for _, term in taken[:most])


@cache
def _margins(a: int, b: int, classes: int) -> np.ndarray:
    """The a times b cells in rows, the parts of either column, and of each class, in columns."""
    both = [np.kron(np.eye(a), np.ones((b, 1))), np.kron(np.ones((a, 1)), np.eye(b))]
    return np.kron(np.eye(classes), np.hstack(both))


def _gain(G: np.ndarray, u: np.ndarray, margins: np.ndarray) -> float:
    """The log evidence that the cells have effects of their own."""
    A = G @ margins
    known = A @ np.linalg.pinv(margins.T @ A, rcond=1e-9, hermitian=True)
    G, u = G - known @ A.T, u - known @ (margins.T @ u)
    size, axes = np.linalg.eigh((G + G.T) / 2)
    size, along = np.maximum(size, 0.0), (axes.T @ u) ** 2
    more = 1 + VARIANCES[:, None] * size
    gain = (VARIANCES[:, None] * along / more - np.log(more)).sum(axis=1) / 2
    return float(np.logaddexp.reduce(gain) - np.log(len(gain)))
