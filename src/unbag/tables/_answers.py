"""Columns that hold what is to be learned: the labels themselves, or the report of the bag."""

# pyright: reportAttributeAccessIssue=false
# (the functions of pyarrow.compute are made when it is imported)

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse

from unbag.bags import Bags
from unbag.tables._sources import is_matrix, open_table
from unbag.tables._values import as_codes, as_numbers, is_number, is_text, plain

FEWEST, MOST = 10, 1000  # bags to compare
ROWS = 20_000  # that they have together, unless so many are needed for the fewest
LEVELS = 8  # text with more values is no label
ROUNDED = 1e-3  # of the size of a bag: shares may be rounded
SIGMAS = 3.0
STEEP = 0.5  # no column but the label has so steep a line, beyond doubt, and the right sum

ANSWER = "in every bag it adds up to what was reported, so it is what is to be learned"


def answers(X: Any, bags: Bags) -> tuple[str, ...]:
    """The columns whose values add up to the reports, bag by bag, as labels do; and those that hold
    the report of the bag in each row.

    With noise on the reports a column of zeros and ones is one of them if its sum is theirs up to
    the noise, and their line over its sums has a slope of 1 up to the noise, known well enough.

    Parameters
    ----------
    X : frame, Arrow table, NumPy array or sparse matrix
        One row for each instance.
    bags : Bags
        Who is in which bag, and the reports.

    >>> rng = np.random.default_rng(0)
    >>> X = np.stack([rng.normal(size=400), rng.random(400) < 0.3], axis=1)
    >>> from unbag.bags import random_bags
    >>> bags = random_bags(X, X[:, 1], size=8, seed=0)
    >>> answers(bags.X, bags)
    ('1',)
    """
    kept = np.flatnonzero(bags.observed)
    if len(kept) < FEWEST:
        return ()
    most = min(MOST, len(kept), max(FEWEST, int(ROWS / bags.size[kept].mean())))
    kept = kept[np.linspace(0, len(kept) - 1, most).astype(int)]
    report = bags.report.reshape(len(bags), -1)[kept]
    if not np.ptp(report, axis=0).any():
        return ()
    number = np.full(len(bags), -1)
    number[kept] = np.arange(len(kept))
    rows = np.flatnonzero(number[bags.bag] >= 0)
    size, noise = bags.size[kept, None].astype(float), bags.noise_or_zero[kept]
    total, bag = report * size, number[bags.bag[rows]]
    count = sparse.csr_array((np.ones(len(rows)), (bag, np.arange(len(rows)))))
    # the sums over all bags, which tell most columns of a matrix from an answer
    wanted = np.concatenate([total.sum(0), (size - total).sum(0), (size * total).sum(0)])
    near = ROUNDED * size.sum() + SIGMAS * np.sqrt(noise.sum())
    return tuple(
        name
        for name, values in _candidates(X, rows, wanted, near)
        if _is_answer(count @ values, total, size, noise, bool(np.isin(values, (0, 1)).all()))
    )


def _candidates(
    X: Any, rows: np.ndarray, wanted: np.ndarray, near: float
) -> Iterator[tuple[str, np.ndarray]]:
    """Numbers, truth values, and an indicator of each value of text that has few; of a matrix only
    the columns whose sum is near one that is wanted."""
    if is_matrix(X):
        some: Any = X[rows].reshape(len(rows), -1)
        sums = np.asarray(some.sum(axis=0, dtype=float)).ravel()
        for j in np.flatnonzero(np.any(np.abs(sums[:, None] - wanted) <= near, axis=1)):
            column = some[:, [j]]
            yield str(j), (column.toarray() if sparse.issparse(column) else column).astype(float)
        return
    table = open_table(X)
    for name in table.columns:
        kind = table.schema.field(name).type
        column = table.read([name])[name].take(pa.array(rows))
        if is_number(kind) or pa.types.is_boolean(kind):
            yield name, np.nan_to_num(as_numbers(column, name=name))[:, None]
        elif is_text(kind) and pc.count_distinct(plain(column.slice(0, 1000))).as_py() <= LEVELS:
            texts, code = as_codes(column)
            if len(texts) - 1 <= LEVELS:
                yield name, (code[:, None] == np.arange(len(texts) - 1)).astype(float)


def _is_answer(
    sums: np.ndarray, total: np.ndarray, size: np.ndarray, noise: np.ndarray, flags: bool
) -> bool:
    """Whether sums, (bags, values), are the totals, (bags, classes), or what is left of them; or
    whether means are."""
    sums, total = sums[:, :, None], total[:, None, :]
    size, near = size[:, :, None], np.minimum(ROUNDED * size[:, :, None], 0.25)
    apart = np.stack([sums - total, size - sums - total])
    means = np.abs(sums / size - total) <= near / size
    if (np.abs(apart) <= near).all(axis=1).any() or means.all(axis=0).any():
        return True
    if not flags or not (noise > 0).all():
        return False
    return any(
        _follows(reported, given.ravel(), size.ravel(), noise)
        for given in np.concatenate([sums, size - sums], axis=1).swapaxes(0, 1)
        for reported in total[:, 0].T
    )


def _follows(total: np.ndarray, sums: np.ndarray, size: np.ndarray, noise: np.ndarray) -> bool:
    """Whether noisy totals are these sums but for their noise."""
    x, y = (given - size * given.sum() / size.sum() for given in (sums, total))
    known = np.sum(x * x / noise)
    if not known > 0 or abs(np.sum(total - sums)) > SIGMAS * np.sqrt(noise.sum()):
        return False
    slope = np.sum(x * y / noise) / known
    # that of the noise, and no less than the residuals show
    error = max(np.sqrt(np.sum((x * (y - slope * x) / noise) ** 2)) / known, 1 / np.sqrt(known))
    return bool(abs(slope - 1) <= SIGMAS * error and slope - SIGMAS * error > STEEP)
