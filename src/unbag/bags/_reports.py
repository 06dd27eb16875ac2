"""What is known of each bag, without its instances: `Reports`, and the rules that reports keep."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from unbag._arrays import namespace, sum_by
from unbag._rules import broken, one_of, refuse, rows

Kind = Literal["binary", "total", "histogram"]
Status = Literal["observed", "suppressed_by_size", "suppressed_by_value", "pending", "interval"]

HIDDEN_BY_VALUE = ("suppressed_by_value", "interval")
PER_BAG = ("size", "report", "noise", "stratum", "names", "status")
EXACT_REPORT = {"binary": "A proportion", "total": "A mean count", "histogram": "A class share"}


class Rule(NamedTuple):
    """What must hold, and what to do where it does not."""

    text: str
    remedy: str


# In the order in which they are checked. Other readers of reports (SQL, likelihood, PyTorch) keep
# some of them in the same words.
REPORT_RULES: Mapping[str, Rule] = {
    "size": Rule("A bag must hold at least one instance", "Drop its report, or add its rows."),
    "status": Rule(
        f"A status must be one of {', '.join(get_args(Status))}",
        "A report that arrived is observed; leave status out when all arrived.",
    ),
    "hidden": Rule(
        "A report must not be hidden for its value, because leaving it out biases the result: "
        "whether it is hidden depends on the labels",
        "Ask for noisy counts or larger bags, so that none is hidden, or accept the bias with "
        "{accept_bias:True}.",
    ),
    "finite": Rule(
        "A report must be finite",
        "Say with {status} which bags are suppressed or pending, or fix the export; never write "
        "0 for them.",
    ),
    "noise": Rule(
        "A noise variance must be finite and not negative",
        "Give the variance of the noise on the bag's count, 0 for an exact report.",
    ),
    "range": Rule(
        "without noise must lie in",
        "Divide totals by the bag size; if noise was added on purpose, declare its variance with "
        "{noise}.",
    ),
    "sum": Rule(
        "A histogram without noise must sum to 1",
        "Divide class counts by the bag size; if noise was added, declare its variance with "
        "{noise}.",
    ),
    "stratum": Rule(
        "A stratum number must not be negative",
        "Number the strata from 0, or use from_rows for strata of any kind.",
    ),
}


class Components(NamedTuple):
    """Reports and prior in the form that `unbag.weights` takes.

    Parameters
    ----------
    report : array of float, of shape (bags, components)
        Of each bag.
    prior : array of float, of shape (components,) or (strata, components)
        The label marginal.
    """

    report: np.ndarray
    prior: np.ndarray


def as_components(value: Any, kind: Kind = "binary") -> Any:
    """Numbers in component form: (1, value) for binary and total; histograms stay as they are.

    Parameters
    ----------
    value : array
        Proportions, mean counts or class shares, of NumPy, JAX or PyTorch.
    kind : {"binary", "total", "histogram"}
        Which of these they are.

    >>> as_components([0.25, 0.5])
    array([[1.  , 0.25],
           [1.  , 0.5 ]])
    """
    if isinstance(value, np.ndarray | np.generic) or not hasattr(value, "dtype"):
        value = np.asarray(value, float)
    if kind == "histogram":
        return value
    xp = namespace(value)
    return xp.stack([xp.ones_like(value), value], axis=-1)


@dataclass(frozen=True, eq=False, repr=False)
class Reports:
    """What is known of each bag: its size, what it reported, and how far that can be trusted.

    Parameters
    ----------
    size : array of int
        Number of instances of each bag.
    report : array of float
        Of each bag its proportion (binary), mean count (total) or class histogram (one row per
        bag).
    kind : {"binary", "total", "histogram"}
        Which of these the reports are.
    noise : array of float, optional
        Variance of the noise that was added to each bag's *count* (to each class count); by
        default reports are exact. With noise a report below 0 or above 1 is normal.
    stratum : array of int, optional
        Stratum number of each bag; bags are then random only within their stratum.
    stratum_names : array, optional
        What the user calls each stratum number.
    known_prior : float or array, optional
        The label marginal if it is known from elsewhere: a number, class marginals, or with strata
        one of these per stratum. Otherwise the size-weighted mean report.
    cap : float, optional
        For totals, the largest count one instance can have.
    names : array, optional
        What the user calls each bag; messages use these names.
    status : array of str, optional
        Of each bag's report: "observed", "suppressed_by_size", "suppressed_by_value", "pending" or
        "interval" (hidden behind a range such as "<5"); by default all are observed. A report that
        is not observed is not used and may be NaN; it becomes NaN here, so that nothing can learn
        from it by mistake.
    accept_bias : bool
        Whether reports that were hidden for their value may be left out all the same. They are
        refused otherwise, because whether they are hidden depends on the labels, and what remains
        is then biased.

    >>> reports = Reports([2, 1], [0.5, 1.0], names=["mon", "tue"])
    >>> reports
    Reports(2 bags of 1 to 2; binary, prior 0.6667)
    >>> Reports([2, 1], [0.5, 1.5], names=["mon", "tue"])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    unbag.Refused: A proportion without noise must lie in [0, 1]: bag tue has 1.5 (1 such bag). ...
    """

    size: np.ndarray
    report: np.ndarray
    kind: Kind = "binary"
    noise: np.ndarray | None = None
    stratum: np.ndarray | None = None
    stratum_names: np.ndarray | None = None
    known_prior: Any = None
    cap: float | None = None
    names: np.ndarray | None = None
    status: np.ndarray | None = None
    accept_bias: bool = False

    def __post_init__(self) -> None:
        set_arrays(self, np.int64, "size", "stratum")
        set_arrays(self, np.float64, "report", "noise", "known_prior")
        set_arrays(self, np.str_, "status")
        self._check()
        if not self.observed.all():
            known = np.where(self._by_report(self.observed), self.report, np.nan)
            object.__setattr__(self, "report", known)

    def __len__(self) -> int:
        return len(self.report)

    def __repr__(self) -> str:
        return f"Reports({'; '.join(self.summary())})"

    def summary(self) -> list[str]:
        """Sizes, kind and prior, and what else is to be said, for people to read."""
        low, high = self.size.min(), self.size.max()
        sizes = f"{len(self)} bags of {low} to {high}"
        if low == high:
            sizes = f"{len(self)} bags of {low}"
        prior = np.array2string(self.prior_or_nan, precision=4, threshold=8, separator=", ")
        parts = [sizes, f"{self.kind}, prior {prior}"]
        if self.stratum is not None:
            parts.append(f"{self.strata} strata")
        if not self.observed.all():
            parts.append(f"{(~self.observed).sum()} reports not observed")
        return parts

    @property
    def strata(self) -> int:
        """Number of strata; 1 when there are none."""
        if self.stratum is None:
            return 1
        if self.known_prior is not None:
            return len(self.known_prior)
        return int(self.stratum.max()) + 1

    @cached_property
    def observed(self) -> np.ndarray:
        """Whether the report of each bag is observed."""
        if self.status is None:
            return np.ones(len(self), bool)
        return self.status == "observed"

    @property
    def prior(self) -> np.ndarray:
        """The label marginal, in the form of a report; with strata, one per stratum.

        The mean of the observed reports, weighted by size, unless it is known.
        """
        if self.known_prior is None:
            self.check_observed()
        return self.prior_or_nan

    @cached_property
    def prior_or_nan(self) -> np.ndarray:
        """The prior, NaN where no report is observed."""
        if self.known_prior is not None:
            return self.known_prior
        size = np.where(self.observed, self.size, 0).astype(float)
        report = np.where(self._by_report(self.observed), self.report, 0.0)
        instances = self._by_report(sum_by(self.stratum_or_zero, size, self.strata))
        total = sum_by(self.stratum_or_zero, report * self._by_report(size), self.strata)
        prior = np.divide(total, instances, out=np.full_like(total, np.nan), where=instances > 0)
        if self.stratum is None:
            return prior[0]
        return prior

    @property
    def overall_prior(self) -> np.ndarray:
        """One prior for all strata, by their shares of the instances."""
        if self.stratum is None:
            return self.prior
        return np.average(self.prior[self.stratum], axis=0, weights=self.size)

    @property
    def stratum_or_zero(self) -> np.ndarray:
        """The stratum of each bag; 0 for all where there are none."""
        if self.stratum is None:
            return np.zeros(len(self), np.int64)
        return self.stratum

    @property
    def noise_or_zero(self) -> np.ndarray:
        """The variance of the noise on each bag's count; 0 for all where none is declared."""
        if self.noise is None:
            return np.zeros(len(self))
        return self.noise

    def _by_report(self, values: np.ndarray) -> np.ndarray:
        """Numbers of bags or strata with the class axis that histograms have."""
        return values.reshape((-1,) + (1,) * (self.report.ndim - 1))

    def components(self) -> Components:
        """Reports and prior with a leading 1 for binary and total: what the weights take."""
        report, prior = (as_components(v, self.kind) for v in (self.report, self.prior))
        return Components(report, prior)

    def taken(self, numbers: np.ndarray) -> dict[str, np.ndarray]:
        """What is known of these bags one by one, as arguments by name."""
        known = {name: getattr(self, name) for name in PER_BAG}
        return {name: value[numbers] for name, value in known.items() if value is not None}

    def take(self, numbers: Any) -> Reports:
        """These bags in this order. A known prior stays; others are made anew."""
        return replace(self, **self.taken(np.asarray(numbers)))

    def check_observed(self) -> None:
        """Refuse bags, or strata, without an observed report and without a known prior."""
        if not self.observed.any():
            raise broken(
                "Bags must have at least one observed report",
                f"all {len(self)} are suppressed, hidden or pending",
                "Wait for reports, or make the bags larger.",
            )
        if self.stratum is None or self.known_prior is not None:
            return
        total, count = (
            np.bincount(s, minlength=self.strata)
            for s in (self.stratum, self.stratum[self.observed])
        )
        refuse(
            "A stratum must have at least one observed report, or a known prior",
            (total > 0) & (count == 0),
            thing="stratum",
            given=[f"none of {n}" for n in total],
            remedy="Leave its bags out, merge it with another, or give {prior}.",
            names=self.stratum_names,
        )

    def _check(self) -> None:
        """Refuse what breaks a rule; the first broken rule speaks."""
        check_form(self.report, self.kind)
        for name in PER_BAG:
            value = getattr(self, name)
            if value is not None:
                rows(len(value), len(self), thing=name, of="bag")
        for rule, bad, given in self._by_rule():
            text, remedy = REPORT_RULES[rule]
            if rule == "range":
                high = largest_report(self.kind, self.cap)
                text = f"{EXACT_REPORT[self.kind]} {text} [0, {high:g}]"
            refuse(text, bad, thing="bag", given=given, remedy=remedy, names=self.names)
        self._check_stratum_names()
        self._check_prior()

    def _by_rule(self) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
        """Each rule, which bags break it, and what each bag has."""
        yield "size", self.size < 1, self.size
        if self.status is not None:
            yield "status", ~np.isin(self.status, get_args(Status)), self.status
            hidden = np.isin(self.status, HIDDEN_BY_VALUE) & (not self.accept_bias)
            yield "hidden", hidden, self.status
        value, exact = self.report.reshape(len(self), -1), self.observed
        yield "finite", ~np.isfinite(value).all(axis=1) & self.observed, self.report
        if self.noise is not None:
            yield "noise", ~_is_variance(self.noise) & self.observed, self.noise
            exact = self.observed & (self.noise == 0)
        high = largest_report(self.kind, self.cap)
        outside = ((value < -1e-9) | (value > high + 1e-9)).any(axis=1)
        yield "range", outside & exact, self.report
        if self.kind == "histogram":
            total = value.sum(axis=1)
            yield "sum", (np.abs(total - 1) > 1e-6) & exact, total
        if self.stratum is not None:
            yield "stratum", self.stratum < 0, self.stratum

    def _check_stratum_names(self) -> None:
        if self.stratum is None or self.stratum_names is None:
            return
        last = int(self.stratum.max())
        if len(self.stratum_names) <= last:
            raise broken(
                "Every stratum must have a name",
                f"{len(self.stratum_names)} given, and the last stratum is number {last}",
                "Give one for each number from 0, or leave {stratum_names} out.",
            )

    def _check_prior(self) -> None:
        if self.known_prior is None:
            return
        expected = self.report.shape[1:]
        if self.stratum is not None:
            expected = (max(self.strata, int(self.stratum.max()) + 1), *expected)
        if self.known_prior.shape != expected or not np.isfinite(self.known_prior).all():
            shown = np.array2string(self.known_prior, precision=4, threshold=6, separator=", ")
            raise broken(
                "A prior must be finite and look like one report (one per stratum), of shape "
                f"{expected}",
                f"{shown} of shape {self.known_prior.shape} given",
                "Leave it out to take the size-weighted mean report.",
            )
        # the mean of noisy reports, which batches hand on as known, may lie anywhere
        if self.noise is None:
            check_prior(self.known_prior, self.kind, self.cap)


def check_prior(prior: Any, kind: Kind, cap: float | None = None) -> None:
    """Refuse a label marginal that no labels have.

    Parameters
    ----------
    prior : float or array
        What is known of it.
    kind : {"binary", "total", "histogram"}
        What the reports are.
    cap : float, optional
        The largest count of one instance.
    """
    prior, high = np.asarray(prior, float), largest_report(kind, cap)
    if not ((prior >= -1e-9) & (prior <= high + 1e-9)).all():
        raise broken(
            f"A prior must lie between 0 and {high:g}, as the mean of labels does",
            f"{np.array2string(prior, precision=6, threshold=6, separator=', ')} given",
            "Leave it out to take the size-weighted mean report.",
        )


def label_variance(prior: Any, kind: Kind) -> Any:
    """Var y of one instance, of each class: p (1 - p), and p for counts, which are taken for
    Poisson variables.

    Parameters
    ----------
    prior : array, or a column of a relation
        The label marginal p.
    kind : {"binary", "total", "histogram"}
        What the reports are.

    >>> label_variance(0.25, "binary"), label_variance(0.25, "total")
    (0.1875, 0.25)
    """
    if kind == "total":
        return prior
    return prior * (1 - prior)


def mean_label_variance(prior: Any, kind: Kind) -> float:
    """Var y on average over strata and classes, above 0, as the weights of noisy bags need it.

    Parameters
    ----------
    prior : float or array
        The label marginal.
    kind : {"binary", "total", "histogram"}
        What the reports are.
    """
    return max(float(np.mean(label_variance(np.asarray(prior, float), kind))), 1e-6)


def largest_report(kind: Kind, cap: float | None = None) -> float:
    """The largest report that labels can give: 1, or the cap of a count.

    Parameters
    ----------
    kind : {"binary", "total", "histogram"}
        What the reports are.
    cap : float, optional
        The largest count one instance can have.
    """
    if kind != "total":
        return 1.0
    if cap is None:
        return np.inf
    return cap


def check_form(report: np.ndarray, kind: Kind) -> None:
    """Refuse an unknown kind, and reports that do not have its form."""
    meaning = "Proportions are binary, mean counts are total, class shares are histogram."
    one_of("A kind of report", kind, get_args(Kind), meaning)
    dimensions = 1 + (kind == "histogram")
    if report.ndim != dimensions or len(report) == 0:
        raise broken(
            f"Reports of kind {kind} must have {dimensions} dimension(s), one entry per bag",
            f"an array of shape {report.shape} given",
            "Use {kind:histogram} for class shares, else one number per bag.",
        )


def check_noise(noise: Any, *, used: Any = True, names: Any = None) -> None:
    """Refuse variances that are negative or not finite.

    Parameters
    ----------
    noise : array of float
        Variance of the noise on each bag's count.
    used : array of bool
        Which bags count; by default all.
    names : array, optional
        What the user calls each bag.
    """
    noise, (text, remedy) = np.asarray(noise), REPORT_RULES["noise"]
    refuse(text, ~_is_variance(noise) & used, thing="bag", given=noise, remedy=remedy, names=names)


def _is_variance(noise: np.ndarray) -> np.ndarray:
    return np.isfinite(noise) & (noise >= 0)


def set_arrays(owner: Any, dtype: type, *names: str) -> None:
    """Turn these fields of a frozen dataclass into arrays, where they are given."""
    for name in names:
        value = getattr(owner, name)
        if value is not None:
            object.__setattr__(owner, name, np.asarray(value, dtype))
