"""What marginal tables can tell of each column, and which table to ask for next; no labels needed.

With every event at the expected rate p, and effects of a given spread before any table is known,
the posterior covariance of the coefficients does not depend on what the tables will say:

    C = (J' V^-1 J + diag(lambda))^-1,    V = p (1 - p) S S' + diag(noise),   J = p (1 - p) S X
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg, sparse

from unbag._rules import broken
from unbag.additive._cells import check_size
from unbag.additive._counts import Counts, Spread
from unbag.additive._jacobian import Split
from unbag.additive._posterior import FLAT
from unbag.additive._terms import Design, Terms, terms_of
from unbag.tables import Marginals, plan_marginals

# the standard deviation of a column's effect over the events, in logits, before any table
SPREAD = 0.5
CONSTANT = 1e-9  # a term whose entries vary by less has one value only


class Identified(NamedTuple):
    """What tables can tell of the effect of one column.

    Parameters
    ----------
    column : str
        Its name, or that of its part.
    share : float
        Of the variance of its effect that the tables take away: 1 when they determine it, 0 when
        they tell nothing.
    width : float
        Expected width of the 95% interval of its effect, in logits, on average over the events.
    """

    column: str
    share: float
    width: float


class RankedTable(NamedTuple):
    """A table that could be asked for.

    Parameters
    ----------
    name : str
        Of the table.
    noise : float
        The variance of the noise on its totals.
    cells : int
        How many numbers it has.
    variance : float
        Expected variance of a score, averaged over the events, when it is there.
    reduction : float
        The share of the variance that it takes away from that without it.
    """

    name: str
    noise: float
    cells: int
    variance: float
    reduction: float


def identifiable(
    events: Any,
    tables: Any = None,
    *,
    noise: float | Sequence[float] = 0.0,
    rate: float | None = None,
    spread: float = SPREAD,
    features: Sequence[str] | None = None,
) -> list[Identified]:
    """Which columns' effects these tables can tell, and how well; the widest share first.

    Parameters
    ----------
    events : frame, Arrow table, DuckDB relation, path or Marginals
        The events; or the joined tables, whose noise and rate are then known.
    tables : sequence or mapping of str to keys, optional
        The keys of each table.
    noise : float or sequence of float
        The variance of the noise on each total, for all tables or for each.
    rate : float, optional
        The expected share of label 1; that of joined tables is known.
    spread : float
        The standard deviation of a column's effect, in logits, before any table is known.
    features : sequence of str, optional
        Columns of the events to learn from; by default all.

    Examples
    --------
    >>> import pyarrow as pa
    >>> code = np.random.default_rng(0).integers(0, 4, size=(5000, 2))
    >>> events = pa.table({"shop": code[:, 0].astype(str), "day": code[:, 1].astype(str)})
    >>> for one in identifiable(events, ["shop"], noise=2, rate=0.1):
    ...     print(one.column, round(one.share, 1))
    shop 1.0
    day 0.0
    """
    cells = events
    if not isinstance(events, Marginals):
        cells = plan_marginals(events, tables, noise=noise, features=features)
    terms, design = terms_of(cells.X)
    precision, products = _prior(terms, design, spread)
    C = _posterior(design, cells, precision, _rate(cells, rate))
    return sorted(_identified(terms, C, precision, products), key=attrgetter("share"), reverse=True)


def rank_tables(
    events: Any,
    candidates: Sequence[str | Sequence[str]] | Mapping[str, str | Sequence[str]],
    *,
    rate: float,
    noise: float | Sequence[float] = 0.0,
    given: Sequence[str | Sequence[str]] = (),
    given_noise: float | Sequence[float] = 0.0,
    spread: float = SPREAD,
    features: Sequence[str] | None = None,
) -> list[RankedTable]:
    """Rank tables that could be asked for by how much they would narrow the predictions.

    Parameters
    ----------
    events : frame, Arrow table, DuckDB relation or path
        One row for each event.
    candidates : sequence or mapping of str to keys
        The keys of each table: a column, or several.
    rate : float
        The expected share of label 1.
    noise : float or sequence of float
        The variance of the noise on each total, for all candidates or for each.
    given : sequence of keys
        Tables that are there already.
    given_noise : float or sequence of float
        Their noise.
    spread : float
        The standard deviation of a column's effect, in logits, before any table is known.
    features : sequence of str, optional
        Columns of the events to learn from; by default all.

    Returns
    -------
    list of RankedTable
        The most useful first.

    Examples
    --------
    >>> import pyarrow as pa
    >>> code = np.random.default_rng(0).integers(0, 4, size=(5000, 2))
    >>> events = pa.table({"shop": code[:, 0].astype(str), "day": code[:, 1].astype(str)})
    >>> best, *_ = rank_tables(events, ["shop", ("shop", "day")], noise=2, rate=0.1)
    >>> best.name, best.cells
    ('by_shop_day', 16)
    """
    planned = plan_marginals(events, candidates, noise=noise, features=features)
    known = None
    if len(given):
        known = plan_marginals(events, given, noise=given_noise, features=features)
    terms, design = terms_of(planned.X)
    precision, _ = _prior(terms, design, spread)
    mean = design.T.T @ (_products(design) @ design.T)
    without = _variance(design, known, precision, rate, mean)
    ranked = []
    for number, name in enumerate(planned.tables):
        part = planned.take(np.flatnonzero(planned.of_table == number))
        value = _variance(design, _joined(known, part), precision, rate, mean)
        own = float(part.noise[0])
        ranked.append(RankedTable(name, own, len(part), value, 1 - value / without))
    return sorted(ranked, key=attrgetter("variance"))


def _rate(cells: Marginals, rate: float | None) -> float:
    if rate is None and cells.observed.any():
        rate = float(cells.prior)
    if rate is None:
        raise broken(
            "Tables that are not there yet must have an expected rate",
            "none given",
            "Give the share of label 1 that you expect with {rate}.",
        )
    if not 0 < rate < 1:
        raise broken("A rate must lie between 0 and 1", f"{rate:g} given", "Give it with {rate}.")
    return rate


def _joined(known: Marginals | None, part: Marginals) -> Any:
    """Membership and noise of both."""
    if known is None:
        return part
    S = sparse.csr_array(sparse.vstack([known.S, part.S], format="csr"))
    return _Planned(S, np.concatenate([known.noise, part.noise]))


class _Planned(NamedTuple):
    """Who would be counted where, and with which noise."""

    S: Any
    noise: np.ndarray

    def __len__(self) -> int:
        return self.S.shape[0]


def _products(design: Design) -> np.ndarray:
    """The mean products of the columns of Z."""
    Z = design.Z.csr()
    return np.asarray((Z.T @ Z / Z.shape[0]).todense())


def _prior(
    terms: Terms, design: Design, spread: float
) -> tuple[np.ndarray, dict[str, tuple[slice, np.ndarray]]]:
    """Precisions with which every term has this spread over the events; the terms' covariances."""
    T, share = terms.basis, terms.share
    second = _products(design) - np.outer(share, share)
    precision, products = np.full(T.shape[1], FLAT), {}
    for term, rows, columns in terms.places:
        own = T[rows, columns].toarray()
        product = own.T @ second[rows, rows] @ own
        products[term.name] = columns, product
        start = 0
        for _, _, count in term.parts:
            inside = slice(start, start + count)
            total = max(float(np.trace(product[inside, inside])), CONSTANT)
            precision[columns][inside] = len(term.parts) * total / spread**2
            start += count
    return precision, products


def _posterior(design: Design, cells: Any, precision: np.ndarray, rate: float) -> np.ndarray:
    """The expected covariance of the coefficients."""
    check_size(cells, design)
    n = cells.S.shape[1]
    nothing = np.zeros(len(cells))
    counts = Counts(cells.S, nothing, cells.noise, np.zeros(n))
    h = np.full(n, rate)
    split = Split(design, counts)
    J = split.jacobian(counts, h, counts.whitener(h, Spread()))
    H = J.products().joined()
    H[np.diag_indices_from(H)] += precision[split.order]
    C = np.empty_like(H)
    inverse = linalg.cho_solve(linalg.cho_factor(H, lower=True), np.eye(len(H)))
    C[np.ix_(split.order, split.order)] = inverse
    return C


def _variance(
    design: Design, cells: Any, precision: np.ndarray, rate: float, mean: np.ndarray
) -> float:
    """The expected variance of a score, averaged over the events; the level is taken as known."""
    C = np.diag(1 / precision)
    if cells is not None:
        C = _posterior(design, cells, precision, rate)
    # one total alone fixes the level, so it does not tell tables apart
    return float((C[1:, 1:] * np.asarray(mean)[1:, 1:]).sum())


def _identified(
    terms: Terms,
    C: np.ndarray,
    precision: np.ndarray,
    products: dict[str, tuple[slice, np.ndarray]],
) -> list[Identified]:
    effects = []
    for term in terms.terms:
        columns, product = products[term.name]
        if np.trace(product) < CONSTANT:
            continue  # it has one value only, so there is no effect to tell
        before = float((np.diag(product) / precision[columns]).sum())
        after = max(float((C[columns, columns] * product).sum()), 0.0)
        effects.append(Identified(term.name, 1 - after / before, 2 * 1.96 * np.sqrt(after)))
    return effects
