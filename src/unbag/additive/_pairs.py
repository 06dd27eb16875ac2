"""Two columns in, few cells of both together out: what a term of a pair counts.

Each column of the pair is cut into few parts: the bins of a number into quarters of the rows, the
levels of a category into the most frequent ones and the others. A cell of the pair is a part of the
one column and a part of the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from unbag.additive._slots import Slots, as_places

if TYPE_CHECKING:
    from unbag.additive._terms import Term

# so many parts has a number; so many levels of a category have a part of their own
PARTS, LEVELS = 4, 24


def places_of(term: Term, start: int, Z: Slots, *, values: bool = False) -> np.ndarray:
    """Which level or bin of a column each row has, -1 where it has none.

    Parameters
    ----------
    term : Term
        Of the column.
    start : int
        Its first column in Z.
    Z : Slots
        The rows.
    values : bool
        Which of the values of a whole number instead.
    """
    if values:
        return _codes_of(term, start, Z)
    if term.raw:  # a block of zeros and ones, of which a row may have none
        assert Z.raw is not None
        part = Z.raw[:, start : start + term.levels].tocsr()
        place = np.full(Z.shape[0], term.levels)
        row, there = np.repeat(np.arange(Z.shape[0]), np.diff(part.indptr)), part.data != 0
        place[row[there]] = part.indices[there]  # a zero may be stored, or stand for a missing one
        return as_places(place, term.levels + 1)
    own = [slot for slot in Z.slots if start <= slot.start < start + term.width]
    if not term.levels and not term.edges:  # a line tells two values apart
        value = own[0].value
        assert value is not None
        return (value > 0).astype(np.int8)
    place = own[-1].place
    assert place is not None
    return place


def _codes_of(term: Term, start: int, Z: Slots) -> np.ndarray:
    (line,) = (slot for slot in Z.slots if slot.start == start)
    assert line.value is not None
    # rounded as the rows were, so that those of training are found again to the last bit
    known = term.on_line(np.array(term.values))
    code = np.searchsorted(known, line.value)
    there = known.take(code, mode="clip") == line.value  # others stepped aside
    return as_places(np.where(there, code, -1), len(known))


def cut(term: Term, share: np.ndarray, *, levels: int = LEVELS) -> np.ndarray:
    """The part of each level or bin of a column.

    Parameters
    ----------
    term : Term
        Of the column.
    share : numpy.ndarray
        Of the rows, that each of its columns of Z has.
    levels : int
        How many levels of a category have a part of their own.

    >>> from unbag.additive._terms import Term
    >>> cut(Term("age", edges=(1.0, 2.0, 3.0, 4.0)), np.array([0.0, 0.5, 0.1, 0.2, 0.1, 0.1]))
    array([0, 1, 1, 2, 2])
    """
    if term.raw:
        share = np.append(share, max(1 - share.sum(), 0.0))
    if term.levels:
        often = np.argsort(-share, kind="stable")[: levels if len(share) > levels + 1 else None]
        part = np.full(len(share), len(often))
        part[often] = np.arange(len(often))
        return part
    if not term.edges:
        return np.arange(2)
    bins = share[1 : len(term.edges) + 2]
    middle = (np.cumsum(bins) - bins / 2) / max(bins.sum(), 1e-300)
    part = np.unique((middle * PARTS).astype(int), return_inverse=True)[1]
    return np.append(part, part.max() + 1) if term.missing else part


def cells_of(term: Term, places: Sequence[np.ndarray]) -> np.ndarray:
    """The cell of each row, -1 where it has none.

    Parameters
    ----------
    term : Term
        Of the pair.
    places : sequence of numpy.ndarray
        Of both columns, or of the one whose values are meant; see `places_of`.
    """
    first, *others = (
        np.append(parts, -1).astype(np.int16).take(place, mode="wrap")  # -1 is the last
        for parts, place in zip(term.cuts, places, strict=True)
    )
    if not others:
        return first
    second = others[0]
    cell = first * np.int16(max(term.cuts[1]) + 1) + second
    cell[(first < 0) | (second < 0)] = -1
    return cell


def free_name(name: str, taken: set[str]) -> str:
    """The name of a term that is no column, which is taken now: a column may be called so, or
    another one.

    >>> free_name("a x b", {"a", "b", "a x b"})
    'a x b together'
    """
    while name in taken:
        name += " together"
    taken.add(name)
    return name


def part_labels(
    term: Term, cuts: Sequence[int], levels: Sequence[str], *, days: bool = False
) -> list[str]:
    """What the parts of a column are called.

    Parameters
    ----------
    term : Term
        Of the column.
    cuts : sequence of int
        The part of each of its levels or bins.
    levels : sequence of str
        What its levels are called.
    days : bool
        Whether it is a number of days since 1970, as the trend of a date is.
    """
    part = np.asarray(cuts)
    if term.levels:
        names = [*levels, "none"]
        return [
            names[np.flatnonzero(part == p)[0]] if np.sum(part == p) == 1 else "others"
            for p in range(part.max() + 1)
        ]
    numbers = [term.low, *term.edges, term.high]
    # six digits would call all parts of large numbers that lie close alike
    digits = next(
        (d for d in (6, 9, 12) if len({f"{x:.{d}g}" for x in numbers}) == len(numbers)), 17
    )
    ends = [str(np.datetime64(round(x), "D")) if days else f"{x:.{digits}g}" for x in numbers]
    if not term.edges:
        # no column between these ends has so large a variance as one of two values
        widest = (term.mean - term.low) * (term.high - term.mean)
        mean = f"{term.mean:.6g}"
        return ends if np.isclose(term.sd**2, widest) else [f"up to {mean}", f"above {mean}"]
    bins = part[: len(term.edges) + 1]
    labels = []
    for p in range(bins.max() + 1):
        here = np.flatnonzero(bins == p)
        labels.append(f"{ends[here[0]]} to {ends[here[-1] + 1]}")
    return [*labels, "missing"] if term.missing else labels
