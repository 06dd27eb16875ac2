"""Bags as a source would report them: with noise, suppressed, hidden or capped."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np

from unbag._rules import broken, refuse, rows
from unbag.bags import Bags, as_ids
from unbag.noise._mechanisms import Mechanism


def noisy(bags: Bags, mechanism: Mechanism, *, seed: int | np.random.Generator) -> Bags:
    """Bags whose counts carry noise, and say so: report + noise / size, and a declared variance.

    For histograms each class count gets its own noise. Reports below 0 and above 1 are left as they
    are: cutting them off would bias what is learned. Variances of noise that was there already add
    up.

    Parameters
    ----------
    bags : Bags
        Of any kind.
    mechanism : Mechanism
        Of this package, or anything with `variance` and `sample`.
    seed : int or Generator
        Which noise.

    >>> from unbag.noise import laplace
    >>> bags = noisy(Bags(np.array([0, 0, 1]), np.array([0.5, 1.0])), laplace(epsilon=1), seed=0)
    >>> bags.report.round(2), bags.noise
    (array([0.66, 0.38]), array([2., 2.]))
    """
    size = bags.size.reshape((-1,) + (1,) * (bags.report.ndim - 1))
    drawn = mechanism.sample(bags.report.shape, seed=seed)
    variance = bags.noise_or_zero + mechanism.variance
    return replace(bags, report=bags.report + drawn / size, noise=variance)


def thresholded(bags: Bags, *, minimum_size: int) -> Bags:
    """Bags of fewer instances than a minimum are suppressed; sizes say nothing of labels.

    Parameters
    ----------
    bags : Bags
        Of any kind.
    minimum_size : int
        Smallest bag that reports.

    >>> thresholded(Bags(np.array([0, 0, 1]), np.array([0.5, 1.0])), minimum_size=2).status.tolist()
    ['observed', 'suppressed_by_size']
    """
    if minimum_size > bags.size.max():
        raise broken(
            "A minimum size must leave some bags",
            f"{minimum_size} given and the largest bag holds {bags.size.max()}",
            "Make the bags larger.",
        )
    return replace(bags, status=_marked(bags, bags.size < minimum_size, "suppressed_by_size"))


def hidden_below(
    bags: Bags,
    count: float = 5,
    *,
    status: Literal["interval", "suppressed_by_value"] = "interval",
    accept_bias: bool = False,
) -> Bags:
    """Bags whose counts below `count` are hidden ("<5"): refused, unless the bias is accepted.

    A bag of size k is hidden when k * report < count, for histograms when any class count is. The
    bags that remain have more positives than the others, so that everything learned from them is
    biased.

    Parameters
    ----------
    bags : Bags
        Of any kind.
    count : float
        Smallest count that is shown.
    status : {"interval", "suppressed_by_value"}
        How the source hides the others.
    accept_bias : bool
        Whether to go on all the same.

    >>> bags = Bags(np.repeat([0, 1], 50), np.array([0.06, 0.2]))
    >>> hidden_below(bags, 5, accept_bias=True).prior, bags.prior
    (np.float64(0.2), np.float64(0.13))
    """
    counts = (bags.report.T * bags.size).T.reshape(len(bags), -1)
    hidden = np.any(counts < count - 1e-9, axis=1)
    return replace(
        bags, status=_marked(bags, hidden, status), accept_bias=accept_bias or bags.accept_bias
    )


def _marked(bags: Bags, where: Any, status: str) -> np.ndarray:
    """The statuses, with this one where a report was observed so far."""
    before = bags.status
    if before is None:
        before = np.full(len(bags), "observed")
    return np.where(where & bags.observed, status, before)


def capped(y: Any, *, cap: float, person: Any = None) -> np.ndarray:
    """Counts after a contribution cap, each instance's or each person's in the order of the rows.

    A budget needs a cap, and the noise follows from it; but what is cut off is a bias that no noise
    variance tells, of E[min(y, cap)] - E[y] for each instance. The model learns capped counts: say
    so, or raise the cap.

    Parameters
    ----------
    y : array of float
        Counts of the rows.
    cap : float
        The most that an instance, or a person, may add.
    person : array, optional
        Of each row; a person's rows count in full until the cap is reached, the next in part, the
        others as 0. A row whose person is missing (None or NaN) is taken for a person of its own,
        which no cap joins to others.

    >>> capped([3, 0, 1], cap=2)
    array([2., 0., 1.])
    >>> capped([1, 1, 3, 1], cap=2, person=["ann", "ann", "bob", "ann"])
    array([1., 1., 2., 0.])
    """
    y = np.asarray(y, float)
    remedy = "Cap counts before noise is added."
    bad = ~(np.isfinite(y) & (y >= 0))
    refuse(
        "A count to cap must be finite and not negative", bad, thing="row", given=y, remedy=remedy
    )
    if not cap > 0:
        raise broken(
            "A contribution cap must be positive", f"{cap} given", "Give the most that one may add."
        )
    if person is None:
        return np.minimum(y, cap)
    rows(len(person), len(y), thing="person", of="row")
    number = _person_numbers(person)
    order = np.argsort(number, kind="stable")
    through = np.cumsum(y[order])
    first = np.flatnonzero(np.diff(number[order], prepend=-1))
    before_person = np.repeat(through[first] - y[order][first], np.diff(np.append(first, len(y))))
    spent = through - before_person - y[order]
    kept = np.empty_like(y)
    kept[order] = np.clip(cap - spent, 0, y[order])
    return kept


def _person_numbers(person: Any) -> np.ndarray:
    """A number for each person, and one for each row without one."""
    ids = np.asarray(person, dtype=getattr(person, "dtype", object))
    missing = np.array([value is None or value != value for value in ids.tolist()], bool)
    number = len(ids) + np.arange(len(ids))
    number[~missing] = np.unique(as_ids(ids[~missing], "person"), return_inverse=True)[1]
    return number
