"""A fitted additive model in, the pairs of columns whose effects are not a sum out, and the whole
numbers that are codes.

Could the cells of a pair of columns have effects of their own, with prior variance t each, then the
counts, linear about the fit and with flat effects of the two columns, would be more probable by

    log |I + t G| / -2 + t u' (I + t G)^-1 u / 2,    G = J' P J,    u = J' P r

with J the Jacobian of the cells and r the residuals, both of unit variance, and P the projection
off the effects of the columns themselves. It is averaged over t. Of all pairs one is expected to
matter before the counts are looked at, so a pair is taken whose evidence is above the logarithm of
their number: searching among more of them asks for more. G and u of bags add up, so bags may lie
in parts.

In the same way the values of a whole number may have effects of their own, beside those of its line
and its steps: then it is no quantity but a code, as the numbers of shops and postal areas are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from unbag.additive._counts import Diagonal
from unbag.additive._pairs import LEVELS, cells_of, cut, free_name, places_of
from unbag.additive._slots import Slot, as_places
from unbag.additive._terms import Term, Terms

if TYPE_CHECKING:
    from unbag.additive._counts import CountMoments, Counts, Whitener
    from unbag.additive._slots import Slots

FEW = 7  # levels of a category that have a part of their own while pairs are looked for
WORK = 5e7  # rows times pairs that are looked at, a second; of more columns the strongest are taken
# rows that take as long as what a pair takes beside its rows, the evidence of its cells
EACH = 25_000
USUAL = 20  # of fewer pairs than this one in so many is expected to matter
# so many values of a whole number, the most frequent ones, tell whether it is a code; of several
# classes fewer, as each value has an effect on each class, but no fewer than a pair has cells
VALUES = 256
# prior variances of a cell's effect that are as probable as each other
VARIANCES = np.logspace(-3, 0.5, 15)


class FurtherTerm(NamedTuple):
    """A term that the counts may ask for.

    Parameters
    ----------
    few : Term
        With few cells, to look whether they do.
    more : Term
        The same with more levels of categories, to learn its effects.
    known : numpy.ndarray
        What the columns themselves tell of the cells of `few`, (cells, effects).
    among : float
        How many there are, of which one is expected to matter.
    """

    few: Term
    more: Term
    known: np.ndarray
    among: float


def candidates(
    terms: Terms, strength: np.ndarray, rows: int, *, classes: int = 1, pairs: bool = True
) -> list[FurtherTerm]:
    """The terms to look at; of many columns the strongest, so that it takes no longer.

    Parameters
    ----------
    terms : Terms
        Of the fitted model.
    strength : numpy.ndarray
        Of each term.
    rows : int
        How many there are, times how many derivatives each has.
    classes : int
        How many scores a row has.
    pairs : bool
        Whether pairs of columns are looked at, beside whole numbers.
    """
    order, taken = np.argsort(-strength, kind="stable"), {term.name for term in terms.terms}
    most = max(VALUES // classes, FEW * FEW) if classes > 1 else VALUES
    made = _whole_numbers(terms, order, rows, taken, most)
    return made + _column_pairs(terms, order, rows, taken) if pairs else made


def _whole_numbers(
    terms: Terms, order: np.ndarray, rows: int, taken: set[str], most: int
) -> list[FurtherTerm]:
    chosen = [n for n in order if terms.terms[n].values][: 1 + int(WORK / (rows + EACH))]
    # one is as likely a code as a quantity; of very many most are no codes
    among, made = max(1.0, len(chosen) / USUAL), []
    for number in sorted(chosen):
        term, where, _ = terms.places[number]
        share, values = terms.share[where][1 : len(term.edges) + 2], np.array(term.values)
        bins = np.searchsorted(term.edges, values)
        # how often a value occurs, as if all values of a bin did as often; those that fill a bin
        # have their own
        often = np.argsort(-(share / np.bincount(bins))[bins], kind="stable")[:most]
        cell = np.full(len(values), -1)
        cell[often] = np.arange(len(often))
        known = np.column_stack([np.eye(len(share))[bins], term.on_line(values)])[often]
        name = free_name(f"{term.name} values", taken)
        few, more = (
            Term(name, int(cells.max()) + 1, pair=(term.name,), cuts=(tuple(cells.tolist()),))
            for cells in (cell, np.arange(len(values)))
        )
        made.append(FurtherTerm(few, more, known, among=among))
    return made


def _column_pairs(terms: Terms, order: np.ndarray, rows: int, taken: set[str]) -> list[FurtherTerm]:
    columns: list[int] = []
    for number in order:
        term, where, _ = terms.places[number]
        if len(columns) * (len(columns) + 1) / 2 * (rows + EACH) > WORK:
            break
        several = term.levels or term.edges or np.isfinite(term.low)
        if several and not term.group and cut(term, terms.share[where]).max() > 0:
            columns.append(int(number))
    few, more = (_cuts(terms, sorted(columns), levels) for levels in (FEW, LEVELS))
    both, made = list(combinations(few, 2)), []
    for pair in both:
        name = free_name(" x ".join(pair), taken)
        own = _pair(name, pair, few)
        known = _margins(*(max(cuts) + 1 for cuts in own.cuts))
        among = max(len(both), USUAL)
        made.append(FurtherTerm(own, _pair(name, pair, more), known, among))
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
    pairs: Sequence[FurtherTerm],
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
    pairs : sequence of FurtherTerm
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
    columns = {(name, len(pair.few.pair) == 1) for pair in pairs for name in pair.few.pair}
    places = {(name, alone): places_of(*of[name], Z, values=alone) for name, alone in columns}
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
            alone = len(pair.few.pair) == 1
            cell = cells_of(pair.few, [places[name, alone][some.rows] for name in pair.few.pair])
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
    pairs: Sequence[FurtherTerm], parts: Iterable[Sequence[CellProducts]], most: int
) -> tuple[Term, ...]:
    """The terms that the counts ask for: values first, then pairs, the strongest first.

    Parameters
    ----------
    pairs : sequence of FurtherTerm
        That were looked at.
    parts : iterable of sequences of CellProducts
        Of each part of the bags the products of each pair.
    most : int
        How many pairs to take; of values all are.
    """
    sums, taken = [CellProducts(np.zeros(()), np.zeros(())) for _ in pairs], []
    for part in parts:  # one at a time: the products of many pairs are large
        sums = [one.plus(*other) for one, other in zip(sums, part, strict=True)]
    for pair, (gram, gradient) in zip(pairs, sums, strict=True):
        classes = len(gradient) // len(pair.known)
        gain = _gain(gram, gradient, np.kron(np.eye(classes), pair.known))
        if gain > np.log(pair.among):
            taken.append((gain, pair.more))
    taken.sort(key=lambda one: -one[0])
    both = [term for _, term in taken if len(term.pair) == 2]
    return (*(term for _, term in taken if len(term.pair) == 1), *both[:most])


@cache
def _margins(a: int, b: int) -> np.ndarray:
    """The a times b cells in rows, the parts of either column in columns."""
    both = [np.kron(np.eye(a), np.ones((b, 1))), np.kron(np.ones((a, 1)), np.eye(b))]
    return np.hstack(both)


def _gain(G: np.ndarray, u: np.ndarray, margins: np.ndarray) -> float:
    """The log evidence that the cells have effects of their own."""
    # off the effects of both columns: what remains of G and u when the margins have flat priors;
    # margins overlap (both add up to all rows), hence the pseudo-inverse
    A = G @ margins
    known = A @ np.linalg.pinv(margins.T @ A, rcond=1e-9, hermitian=True)
    G, u = G - known @ A.T, u - known @ (margins.T @ u)
    # along the axes of G all prior variances are looked at with one decomposition
    size, axes = np.linalg.eigh((G + G.T) / 2)
    size, along = np.maximum(size, 0.0), (axes.T @ u) ** 2
    more = 1 + VARIANCES[:, None] * size
    gain = (VARIANCES[:, None] * along / more - np.log(more)).sum(axis=1) / 2
    return float(np.logaddexp.reduce(gain) - np.log(len(gain)))
