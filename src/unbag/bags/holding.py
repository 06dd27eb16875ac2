"""Bag numbers and reports in, a checked `Bags` out, with its sizes, prior, component form and parts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from unbag.arrays import sum_by
from unbag.bags.batching import batch_plan, split_plan
from unbag.checks import refuse, rows

Kind = Literal["binary", "total", "histogram"]


class Components(NamedTuple):
    """Reports and prior in the form that `unbag.weights` takes."""

    report: np.ndarray
    prior: np.ndarray


def as_components(value: Any, kind: Kind = "binary") -> np.ndarray:
    """Numbers in component form: (1, value) for binary and total; histograms stay as they are.

    >>> as_components([0.25, 0.5])
    array([[1.  , 0.25],
           [1.  , 0.5 ]])
    """
    value = np.asarray(value, float)
    return value if kind == "histogram" else np.stack([np.ones_like(value), value], axis=-1)


@dataclass(frozen=True, eq=False, repr=False)
class Bags:
    """Instances in bags, and what each bag reported.

    Parameters
    ----------
    bag : bag number of each instance, 0 to the number of bags - 1, in the order of the rows.
    report : of each bag its proportion (binary), mean count (total) or class histogram (one row per bag).
    kind : which of these the reports are.
    X : features, one row per instance, or None.
    noise : variance of the noise that was added to each bag's *count* (to each class count), or None for
        exact reports. With noise a report below 0 or above 1 is normal.
    stratum : stratum number of each bag; bags are then random only within their stratum.
    known_prior : the label marginal if it is known from elsewhere: a number, class marginals, or with strata
        one of these per stratum. Otherwise the size-weighted mean report.
    cap : for totals, the largest count one instance can have.
    names : what the user calls each bag.
    rows : where each instance stood in the table that the bags were made from.
    dropped : how many rows of that table are in no bag.

    >>> bags = Bags(np.array([0, 0, 1]), np.array([0.5, 1.0]))
    >>> bags
    Bags(2 bags of 1 to 2; 3 instances; binary, prior 0.6667)
    >>> bags.components().report
    array([[1. , 0.5],
           [1. , 1. ]])
    """

    bag: np.ndarray
    report: np.ndarray
    kind: Kind = "binary"
    X: Any = None
    noise: np.ndarray | None = None
    stratum: np.ndarray | None = None
    known_prior: Any = None
    cap: float | None = None
    names: np.ndarray | None = None
    rows: np.ndarray | None = None
    dropped: int = 0

    def __post_init__(self) -> None:
        for name in ("bag", "stratum", "rows"):
            _set_array(self, name, np.int64)
        for name in ("report", "noise", "known_prior"):
            _set_array(self, name, np.float64)
        _check(self)

    def __len__(self) -> int:
        return len(self.report)

    def __repr__(self) -> str:
        low, high = self.size.min(), self.size.max()
        sizes = f"{low}" if low == high else f"{low} to {high}"
        prior = np.array2string(self.prior, precision=4, threshold=8, separator=", ")
        told = [f"{len(self)} bags of {sizes}", f"{len(self.bag)} instances", f"{self.kind}, prior {prior}"]
        told += [f"{self.strata} strata"] if self.stratum is not None else []
        told += [f"{self.dropped} leftover rows dropped"] if self.dropped else []
        return f"Bags({'; '.join(told)})"

    @cached_property
    def size(self) -> np.ndarray:
        """Number of instances of each bag."""
        return np.bincount(self.bag, minlength=len(self))

    @property
    def strata(self) -> int:
        """Number of strata; 1 when there are none."""
        if self.stratum is None:
            return 1
        return len(self.known_prior) if self.known_prior is not None else int(self.stratum.max()) + 1

    @cached_property
    def prior(self) -> np.ndarray:
        """The label marginal, in the form of a report; with strata, one per stratum."""
        if self.known_prior is not None:
            return self.known_prior
        stratum = np.zeros(len(self), int) if self.stratum is None else self.stratum
        size = self.size.reshape((-1,) + (1,) * (self.report.ndim - 1))
        instances = sum_by(stratum, self.size.astype(float), self.strata)
        total = sum_by(stratum, self.report * size, self.strata)
        prior = total / instances.reshape((-1,) + (1,) * (self.report.ndim - 1))
        return prior if self.stratum is not None else prior[0]

    def components(self) -> Components:
        """Reports and prior with a leading 1 for binary and total: what the weights take."""
        return Components(as_components(self.report, self.kind), as_components(self.prior, self.kind))

    def take(self, numbers: Any) -> Bags:
        """These bags in this order, their instances grouped by bag. A known prior stays; others are made anew."""
        numbers = np.asarray(numbers)
        where = self.rows_of(numbers)
        return replace(
            self,
            bag=np.repeat(np.arange(len(numbers)), self.size[numbers]),
            report=self.report[numbers],
            X=None if self.X is None else take_rows(self.X, where),
            noise=None if self.noise is None else self.noise[numbers],
            stratum=None if self.stratum is None else self.stratum[numbers],
            names=None if self.names is None else self.names[numbers],
            rows=where if self.rows is None else self.rows[where],
        )

    def split(self, fraction: float, *, seed: int) -> tuple[Bags, Bags]:
        """Two parts by bag, never by row: about `fraction` of the bags (of each stratum), and the others.

        >>> from unbag import random_bags
        >>> train, held_out = random_bags(None, np.tile([0, 1], 50), size=5, seed=0).split(0.8, seed=0)
        >>> len(train), len(held_out)
        (16, 4)
        """
        first, second = split_plan(len(self), fraction, stratum=self.stratum, seed=seed)
        return self.take(first), self.take(second)

    def batches(self, instances: int = 4096, *, seed: int, epoch: int = 0) -> Iterator[Bags]:
        """One epoch: every bag once, in an order that depends on seed and epoch, in batches of whole bags.

        A batch holds about `instances` instances and at least two bags (of each stratum in it), and keeps the
        prior of all bags: a prior of the batch alone would turn EasyLLP and GeneralUPM into one biased method.
        """
        whole = replace(self, known_prior=self.prior)
        for numbers in batch_plan(self.size, instances, stratum=self.stratum, seed=seed, epoch=epoch):
            yield whole.take(numbers)

    @cached_property
    def _order(self) -> np.ndarray:
        """Rows grouped by bag."""
        return np.argsort(self.bag, kind="stable")

    @cached_property
    def _start(self) -> np.ndarray:
        return np.cumsum(self.size) - self.size

    def rows_of(self, numbers: np.ndarray) -> np.ndarray:
        """Instance numbers of these bags, bag by bag."""
        size = self.size[numbers]
        offset = np.repeat(self._start[numbers] - (np.cumsum(size) - size), size)
        return self._order[offset + np.arange(size.sum())]


def take_rows(X: Any, where: np.ndarray) -> Any:
    """Rows of an array, a sparse matrix or a data frame."""
    if hasattr(X, "iloc"):
        return X.iloc[where]
    return X.take(where) if type(X).__module__.startswith("pyarrow") else X[where]


def _set_array(bags: Bags, name: str, dtype: type) -> None:
    value = getattr(bags, name)
    if value is not None:
        object.__setattr__(bags, name, np.asarray(value, dtype))


def _check(bags: Bags) -> None:
    if bags.kind not in get_args(Kind):
        raise ValueError(
            f"A kind of report must be one of {', '.join(get_args(Kind))}: {bags.kind!r} came. "
            "Proportions are binary, mean counts are total, class shares are histogram."
        )
    _check_shapes(bags)
    refuse(
        "A bag must hold at least one instance",
        bags.size == 0,
        thing="bag",
        came=bags.size,
        remedy="Drop its report, or add its rows.",
    )
    _check_reports(bags)
    _check_prior(bags)


def _check_shapes(bags: Bags) -> None:
    dimensions = 2 if bags.kind == "histogram" else 1
    if bags.report.ndim != dimensions or len(bags.report) == 0:
        raise ValueError(
            f"Reports of kind {bags.kind} must have {dimensions} dimension(s), one entry per bag: an array of "
            f"shape {bags.report.shape} came. Use kind='histogram' for class shares, else one number per bag."
        )
    refuse(
        f"A bag number must lie between 0 and {len(bags) - 1}, the last report",
        (bags.bag < 0) | (bags.bag >= len(bags)),
        thing="row",
        came=bags.bag,
        remedy="Number the bags in the order of the reports, or use from_rows for ids of any kind.",
    )
    if bags.X is not None:
        rows(_length(bags.X), len(bags.bag), thing="X", of="instance")
    for name in ("noise", "stratum", "names"):
        value = getattr(bags, name)
        if value is not None:
            rows(len(value), len(bags), thing=name, of="bag")


def _length(X: Any) -> int:
    return X.shape[0] if hasattr(X, "shape") else len(X)


def _check_reports(bags: Bags) -> None:
    report = bags.report if bags.kind == "histogram" else bags.report[:, None]
    refuse(
        "A report must be finite",
        ~np.isfinite(report).all(axis=1),
        thing="bag",
        came=bags.report,
        remedy="Leave out bags that were suppressed for their size, or fix the export; never write 0 for them.",
    )
    noise = np.zeros(len(bags)) if bags.noise is None else bags.noise
    refuse(
        "A noise variance must be finite and not negative",
        ~(np.isfinite(noise) & (noise >= 0)),
        thing="bag",
        came=noise,
        remedy="Give the variance of the noise on the bag's count, 0 for an exact report.",
    )
    high = (np.inf if bags.cap is None else bags.cap) if bags.kind == "total" else 1.0
    outside = ((report < -1e-9) | (report > high + 1e-9)).any(axis=1) & (noise == 0)
    rule = {"binary": "A proportion", "total": "A mean count", "histogram": "A class share"}[bags.kind]
    refuse(
        f"{rule} without noise must lie in [0, {high:g}]",
        outside,
        thing="bag",
        came=bags.report,
        remedy="Divide totals by the bag size; if noise was added on purpose, declare its variance with noise=.",
    )
    if bags.kind == "histogram":
        refuse(
            "A histogram without noise must sum to 1",
            (np.abs(report.sum(axis=1) - 1) > 1e-6) & (noise == 0),
            thing="bag",
            came=report.sum(axis=1),
            remedy="Divide class counts by the bag size; if noise was added, declare its variance with noise=.",
        )


def _check_prior(bags: Bags) -> None:
    if bags.stratum is not None:
        refuse(
            "A stratum number must not be negative",
            bags.stratum < 0,
            thing="bag",
            came=bags.stratum,
            remedy="Number the strata from 0, or use from_rows for strata of any kind.",
        )
    if bags.known_prior is None:
        return
    strata = () if bags.stratum is None else (max(bags.strata, int(bags.stratum.max()) + 1),)
    expected = (*strata, *bags.report.shape[1:])
    if bags.known_prior.shape != expected or not np.isfinite(bags.known_prior).all():
        raise ValueError(
            f"A prior must be finite and look like one report (one per stratum), of shape {expected}: "
            f"{_brief(bags.known_prior)} of shape {bags.known_prior.shape} came. Leave it out to take the "
            "size-weighted mean report."
        )


def _brief(value: np.ndarray) -> str:
    return np.array2string(value, precision=4, threshold=6, separator=", ")
