"""Bag numbers and reports in, a checked `Bags` out, with its sizes, prior, component form and
parts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from unbag._arrays import sum_by
from unbag.bags._rules import Kind, check_bags, check_observed
from unbag.bags._split import batch_plan, split_plan


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
    report : of each bag its proportion (binary), mean count (total) or class histogram (one row per
        bag).
    kind : which of these the reports are.
    X : features, one row per instance, or None.
    noise : variance of the noise that was added to each bag's *count* (to each class count), or
        None for exact reports. With noise a report below 0 or above 1 is normal.
    stratum : stratum number of each bag; bags are then random only within their stratum.
    stratum_names : what the user calls each stratum number, so that bags of several tables can be
        told apart.
    known_prior : the label marginal if it is known from elsewhere: a number, class marginals, or
        with strata one of these per stratum. Otherwise the size-weighted mean report.
    cap : for totals, the largest count one instance can have.
    names : what the user calls each bag.
    rows : where each instance stood in the table that the bags were made from.
    dropped : how many rows of that table are in no bag.
    status : of each bag's report: "observed", "suppressed_by_size", "suppressed_by_value",
        "pending" or "interval" (hidden behind a range such as "<5"); None when all are observed. A
        report that is not observed is not used and may be NaN; it becomes NaN here, so that nothing
        can learn from it by mistake.
    accept_bias : whether reports that were hidden for their value may be left out all the same.
        They are refused otherwise, because whether they are hidden depends on the labels, and what
        remains is then biased.
    offset : of each instance, added to its score: log exposure, or the score of a model that is
        already there.

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
    status: np.ndarray | None = None
    accept_bias: bool = False
    stratum_names: np.ndarray | None = None
    offset: np.ndarray | None = None

    def __post_init__(self) -> None:
        for name in ("bag", "stratum", "rows"):
            _set_array(self, name, np.int64)
        for name in ("report", "noise", "known_prior", "offset"):
            _set_array(self, name, np.float64)
        _set_array(self, "status", np.str_)
        check_bags(self)
        if not self.observed.all():
            object.__setattr__(
                self, "report", np.where(self._by_report(self.observed), self.report, np.nan)
            )

    def __len__(self) -> int:
        return len(self.report)

    def __repr__(self) -> str:
        low, high = self.size.min(), self.size.max()
        sizes = f"{low}" if low == high else f"{low} to {high}"
        prior = np.array2string(self._prior, precision=4, threshold=8, separator=", ")
        told = [
            f"{len(self)} bags of {sizes}",
            f"{len(self.bag)} instances",
            f"{self.kind}, prior {prior}",
        ]
        told += [f"{self.strata} strata"] if self.stratum is not None else []
        told += [f"{self.dropped} leftover rows dropped"] if self.dropped else []
        told += (
            [f"{(~self.observed).sum()} reports not observed"] if not self.observed.all() else []
        )
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
        return (
            len(self.known_prior) if self.known_prior is not None else int(self.stratum.max()) + 1
        )

    @cached_property
    def observed(self) -> np.ndarray:
        """Whether the report of each bag is observed."""
        return np.ones(len(self), bool) if self.status is None else self.status == "observed"

    @property
    def prior(self) -> np.ndarray:
        """The label marginal, in the form of a report; with strata, one per stratum.

        The mean of the observed reports, weighted by size, unless it is known.
        """
        if self.known_prior is None:
            check_observed(self)
        return self._prior

    @cached_property
    def _prior(self) -> np.ndarray:
        """The prior, NaN where no report is observed."""
        if self.known_prior is not None:
            return self.known_prior
        stratum = np.zeros(len(self), int) if self.stratum is None else self.stratum
        size = np.where(self.observed, self.size, 0).astype(float)
        seen = np.where(self._by_report(self.observed), self.report, 0.0)
        instances = self._by_report(sum_by(stratum, size, self.strata))
        total = sum_by(stratum, seen * self._by_report(size), self.strata)
        prior = np.divide(total, instances, out=np.full_like(total, np.nan), where=instances > 0)
        return prior if self.stratum is not None else prior[0]

    def _by_report(self, values: np.ndarray) -> np.ndarray:
        """Numbers of bags or strata in the shape that goes with reports: with a class axis for
        histograms."""
        return values.reshape((-1,) + (1,) * (self.report.ndim - 1))

    def reported(self) -> Bags:
        """The bags whose report is observed, which are those to learn from; the prior stays.

        >>> bags = Bags(np.array([0, 1, 2]), np.array([0, 1, np.nan]), status=["observed", "observed", "pending"])
        >>> bags.reported()
        Bags(2 bags of 1; 2 instances; binary, prior 0.5)
        """
        return self._reported

    @cached_property
    def _reported(self) -> Bags:
        """Kept, so that whoever asks twice gets the same object."""
        if self.observed.all():
            return self
        check_observed(self)
        return self.take(np.flatnonzero(self.observed))

    def components(self) -> Components:
        """Reports and prior with a leading 1 for binary and total: what the weights take."""
        return Components(
            as_components(self.report, self.kind), as_components(self.prior, self.kind)
        )

    def take(self, numbers: Any) -> Bags:
        """These bags in this order, their instances grouped by bag. A known prior stays; others are
        made anew."""
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
            status=None if self.status is None else self.status[numbers],
            rows=where if self.rows is None else self.rows[where],
            offset=None if self.offset is None else self.offset[where],
        )

    def split(self, fraction: float, *, seed: int) -> tuple[Bags, Bags]:
        """Two parts by bag, never by row: about `fraction` of the bags (of each stratum), and the
        others.

        >>> from unbag import random_bags
        >>> train, held_out = random_bags(None, np.tile([0, 1], 50), size=5, seed=0).split(0.8, seed=0)
        >>> len(train), len(held_out)
        (16, 4)
        """
        first, second = split_plan(
            len(self), fraction, stratum=self.stratum, observed=self.observed, seed=seed
        )
        return self.take(first), self.take(second)

    def batches(self, instances: int = 4096, *, seed: int, epoch: int = 0) -> Iterator[Bags]:
        """One epoch: every observed bag once, in an order that depends on seed and epoch, in
        batches of whole bags.

        A batch holds about `instances` instances and at least two bags (of each stratum in it), and
        keeps the prior of all bags: a prior of the batch alone would turn EasyLLP and GeneralUPM
        into one biased method.
        """
        whole = replace(self.reported(), known_prior=self.prior)
        for numbers in batch_plan(
            whole.size, instances, stratum=whole.stratum, seed=seed, epoch=epoch
        ):
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
