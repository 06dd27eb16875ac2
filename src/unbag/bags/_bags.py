"""Reports with their instances: `Bags`, its parts and its batches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from unbag._lazy import as_html
from unbag._rules import broken, refuse, rows, two_bags
from unbag.bags._reports import Components, Kind, Reports, check_form, set_arrays

KNOWN = tuple(known.name for known in fields(Reports) if known.name != "size")


@dataclass(frozen=True, eq=False, repr=False)
class Bags:
    """Instances in bags, and what each bag reported.

    Parameters
    ----------
    bag : array of int
        Bag number of each instance, 0 to the number of bags - 1, in the order of the rows.
    report : array of float
        Of each bag its proportion (binary), mean count (total) or class histogram (one row per
        bag).
    kind : {"binary", "total", "histogram"}
        Which of these the reports are.
    X : array, sparse matrix or table, optional
        Features, one row per instance.
    noise, stratum, known_prior, cap, names, status, accept_bias, stratum_names : optional
        What else is known of each bag: see `Reports`, which checks it.
    rows : array of int, optional
        Where each instance stood in the table that the bags were made from.
    dropped : int
        How many rows of that table are in no bag.
    offset : array of float, optional
        Added to the score of each instance: log exposure, or the score of a model that is already
        there.

    Attributes
    ----------
    reports : Reports
        What is known of each bag, without the instances.

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

    reports: Reports = field(init=False)
    _of_instances: ClassVar[tuple[str, ...]] = ("X", "offset", "rows")

    def __post_init__(self) -> None:
        set_arrays(self, np.int64, "bag", "rows")
        set_arrays(self, np.float64, "report", "offset")
        check_form(self.report, self.kind)
        self._check_instances()
        size = np.bincount(self.bag, minlength=len(self.report))
        reports = Reports(size=size, **{name: getattr(self, name) for name in KNOWN})
        object.__setattr__(self, "reports", reports)
        for name in KNOWN:
            object.__setattr__(self, name, getattr(reports, name))

    def _check_instances(self) -> None:
        last = len(self.report) - 1
        refuse(
            f"A bag number must lie between 0 and {last}, the last report",
            (self.bag < 0) | (self.bag > last),
            thing="row",
            given=self.bag,
            remedy="Number the bags in the order of the reports, or use from_rows for ids of any "
            "kind.",
        )
        X = vars(self).get("X")  # not self.X, which joined bags make on demand
        if X is not None:
            rows(_length(X), len(self.bag), thing="X", of="instance")
        if self.offset is not None:
            rows(len(self.offset), len(self.bag), thing="offset", of="instance")
            remedy = "Give the log exposure, or the score of a model, of every instance."
            bad = ~np.isfinite(self.offset)
            refuse(
                "An offset must be finite", bad, thing="instance", given=self.offset, remedy=remedy
            )

    def __len__(self) -> int:
        return len(self.report)

    def __repr__(self) -> str:
        sizes, *others = self.reports.summary()
        if self.dropped:
            others.append(f"{self.dropped} leftover rows dropped")
        return f"Bags({'; '.join([sizes, f'{len(self.bag)} instances', *others])})"

    _repr_html_ = as_html

    @property
    def size(self) -> np.ndarray:
        """Number of instances of each bag."""
        return self.reports.size

    @property
    def strata(self) -> int:
        """Number of strata; 1 when there are none."""
        return self.reports.strata

    @property
    def stratum_or_zero(self) -> np.ndarray:
        """The stratum of each bag; 0 for all where there are none."""
        return self.reports.stratum_or_zero

    @property
    def noise_or_zero(self) -> np.ndarray:
        """The variance of the noise on each bag's count; 0 for all where none is declared."""
        return self.reports.noise_or_zero

    @property
    def observed(self) -> np.ndarray:
        """Whether the report of each bag is observed."""
        return self.reports.observed

    @property
    def prior(self) -> np.ndarray:
        """The label marginal, in the form of a report; with strata, one per stratum.

        The mean of the observed reports, weighted by size, unless it is known.
        """
        return self.reports.prior

    @property
    def overall_prior(self) -> np.ndarray:
        """One prior for all strata, by their shares of the instances."""
        return self.reports.overall_prior

    def components(self) -> Components:
        """Reports and prior with a leading 1 for binary and total: what the weights take."""
        return self.reports.components()

    def reported(self) -> Bags:
        """The bags whose report is observed, which are those to learn from; the prior stays.

        >>> status = ["observed", "observed", "pending"]
        >>> Bags(np.array([0, 1, 2]), np.array([0, 1, np.nan]), status=status).reported()
        Bags(2 bags of 1; 2 instances; binary, prior 0.5)
        """
        if self.observed.all():
            return self  # and not kept: bags that refer to themselves stay in memory for a while
        return self._reported

    @cached_property
    def _reported(self) -> Bags:
        """Kept, so that whoever asks twice gets the same object."""
        self.reports.check_observed()
        return self.take(np.flatnonzero(self.observed))

    def rows_for(self, model: Any) -> Any:
        """The rows in the form that a model takes: the features."""
        return self.X

    @property
    def width(self) -> int:
        """How many numbers the features of an instance are."""
        return int(np.prod(getattr(self.X, "shape", ())[1:]))

    def bare(self) -> Bags:
        """The same bags without features."""
        return replace(self, X=None)

    def without_strata(self) -> Bags:
        """The same bags for a method that compares each bag with its own prediction, to which
        strata are of no use; a prior that is known of each stratum goes with them."""
        if self.stratum is None:
            return self
        return replace(self, stratum=None, stratum_names=None, known_prior=None)

    def take(self, numbers: Any) -> Bags:
        """These bags in this order, their instances grouped by bag.

        A known prior stays; others are made anew.
        """
        numbers = np.asarray(numbers)
        where = self.rows_of(numbers)
        taken = self.reports.taken(numbers)
        size = taken.pop("size")
        parts = {name: vars(self).get(name) for name in self._of_instances}
        parts = {name: value for name, value in parts.items() if value is not None}
        # the features of joined bags may be their table itself, which is large: it is taken once
        rows = {id(value): take_rows(value, where) for value in parts.values()}
        taken |= {name: rows[id(value)] for name, value in parts.items()}
        bag = np.repeat(np.arange(len(numbers)), size)
        return replace(self, **{"X": None, "rows": where, "bag": bag, **taken})

    def split(self, fraction: float, *, seed: int) -> tuple[Bags, Bags]:
        """Two parts by bag, never by row: about `fraction` of the bags (of each stratum).

        Parameters
        ----------
        fraction : float
            Share of the bags in the first part, between 0 and 1.
        seed : int
            Which of the possible splits.

        >>> from unbag import random_bags
        >>> bags = random_bags(None, np.tile([0, 1], 50), size=5, seed=0)
        >>> train, held_out = bags.split(0.8, seed=0)
        >>> len(train), len(held_out)
        (16, 4)
        """
        known = {"stratum": self.stratum, "observed": self.observed, "names": self.stratum_names}
        first, second = split_plan(len(self), fraction, seed=seed, **known)
        return self.take(first), self.take(second)

    def batches(self, instances: int = 4096, *, seed: int, epoch: int = 0) -> Iterator[Bags]:
        """One epoch: every observed bag once, in an order that depends on seed and epoch, in
        batches of whole bags.

        A batch holds about `instances` instances and at least two bags (of each stratum in it), and
        keeps the prior of all bags: a prior of the batch alone would turn EasyLLP and GeneralUPM
        into one biased method.

        Parameters
        ----------
        instances : int
            About how many instances a batch holds.
        seed, epoch : int
            Of the order.
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
    """Rows of an array, a sparse matrix or a data frame.

    Parameters
    ----------
    X : array, sparse matrix or table
        Features.
    where : array of int
        Which rows, in this order.
    """
    if hasattr(X, "iloc"):
        return X.iloc[where]
    if type(X).__module__.startswith("pyarrow"):
        return X.take(where)
    return X[where]


def _length(X: Any) -> int:
    if hasattr(X, "shape"):
        return X.shape[0]
    return len(X)


def checked_scores(score: Any, bags: Bags) -> np.ndarray:
    """Scores as floats, one row per instance, all finite; others are refused.

    Parameters
    ----------
    score : array
        Logits, class scores or log rates.
    bags : Bags
        Whose instances they are of.
    """
    count, kind = len(bags.bag), bags.kind
    score = one_column(np.asarray(score, float), kind)
    rows(len(score), count, thing="scores", of="instance")
    dimensions = 1 + (kind == "histogram")
    if score.ndim != dimensions:
        raise broken(
            f"Scores for {kind} reports must have {dimensions} dimension(s)",
            f"an array of shape {score.shape} given",
            "Give one logit or log rate per instance, or one score per class for histograms.",
        )
    if dimensions == 2 and score.shape[1] != bags.report.shape[1]:
        raise broken(
            "Class scores must have one column for each class of the reports",
            f"{score.shape[1]} given for {bags.report.shape[1]} classes",
            "Give the same classes to both.",
        )
    remedy = (
        "Give logits, of which a probability of 0 or 1 has none; a model that predicts NaN has "
        "diverged: train it with a lower learning rate."
    )
    bad = ~np.isfinite(score.reshape(count, -1)).all(axis=1)
    refuse("A score must be finite", bad, thing="instance", given=score, remedy=remedy)
    return score


def one_column(score: np.ndarray, kind: Kind) -> np.ndarray:
    """A table of one column as one score per instance.

    Parameters
    ----------
    score : array
        Scores.
    kind : {"binary", "total", "histogram"}
        The kind of report; class scores stay as they are.
    """
    if kind != "histogram" and score.ndim == 2 and score.shape[1] == 1:
        return score[:, 0]
    return score


def split_plan(
    count: int,
    fraction: float,
    *,
    stratum: np.ndarray | None,
    observed: np.ndarray | None = None,
    seed: int,
    names: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Bag numbers of two parts, each with at least two observed bags of each stratum.

    Bags whose report is not observed are shared out by the same fraction.

    Parameters
    ----------
    count : int
        Number of bags.
    fraction : float
        Share of the bags in the first part.
    stratum : array of int, optional
        Of each bag.
    observed : array of bool, optional
        Whether the report of each bag is; by default all are.
    seed : int
        Which of the possible splits.
    names : array, optional
        What the user calls each stratum.

    >>> split_plan(4, 0.5, stratum=None, seed=0)
    (array([0, 2]), array([1, 3]))
    """
    if not 0 < fraction < 1:
        raise broken(
            "A fraction must lie between 0 and 1",
            f"{fraction} given",
            "Use 0.8 to hold out a fifth.",
        )
    if observed is None:
        observed = np.ones(count, bool)
    with_report, others = np.flatnonzero(observed), np.flatnonzero(~observed)
    own = None if stratum is None else stratum[observed]
    groups = [with_report[group] for group in _groups(len(with_report), own)]
    _check_groups(groups, stratified=stratum is not None, names=names)
    rng = np.random.default_rng(seed)
    sizes = [int(np.clip(round(fraction * len(g)), 2, len(g) - 2)) for g in groups]
    first = [rng.permutation(g)[:size] for g, size in zip(groups, sizes, strict=True)]
    others = np.random.default_rng([seed, 1]).permutation(others)
    first.append(others[: round(fraction * len(others))])
    in_first = np.zeros(count, bool)
    in_first[np.concatenate(first)] = True
    return np.flatnonzero(in_first), np.flatnonzero(~in_first)


def _check_groups(groups: list[np.ndarray], *, stratified: bool, names: np.ndarray | None) -> None:
    rule, thing = "Bags to split must be at least four, two for each part", "set of bags"
    if stratified:
        rule = "A stratum to split must hold at least four bags, two for each part"
        thing = "stratum"
    sizes = np.array([len(group) for group in groups])
    remedy = "Make smaller bags, or merge small strata."
    few = (sizes > 0) & (sizes < 4)
    refuse(rule, few, thing=thing, given=sizes, remedy=remedy, names=names)


def batch_plan(
    size: np.ndarray,
    instances: int,
    *,
    stratum: np.ndarray | None = None,
    seed: int,
    epoch: int = 0,
) -> list[np.ndarray]:
    """Bag numbers of each batch of one epoch.

    Every bag comes once, in an order drawn from (seed, epoch). A batch ends where the running
    number of instances is nearest to a multiple of `instances`; a batch of a single bag joins the
    one before.

    Parameters
    ----------
    size : array of int
        Of each bag.
    instances : int
        About how many instances a batch holds.
    stratum : array of int, optional
        Of each bag; a batch then holds at least two bags of each stratum in it.
    seed, epoch : int
        Of the order.

    >>> batch_plan(np.full(5, 2), 4, seed=0)
    [array([2, 4]), array([3, 0, 1])]
    """
    if instances < 1:
        raise broken(
            "A batch must hold at least one instance", f"{instances} given", "The paper uses 4096."
        )
    groups = _groups(len(size), stratum)
    two_bags(np.array([len(group) for group in groups if len(group)]), of="An epoch")
    rng = np.random.default_rng([seed, epoch])
    if stratum is None:
        order, unit = rng.permutation(len(size)), np.arange(len(size))
    else:
        order, unit = _paired_order(groups, rng)
    return _cut(order, unit, size, instances)


def _groups(count: int, stratum: np.ndarray | None) -> list[np.ndarray]:
    """The numbers of each stratum; all of them where there is none."""
    if stratum is None:
        return [np.arange(count)]
    return np.split(np.argsort(stratum, kind="stable"), np.cumsum(np.bincount(stratum))[:-1])


def _paired_order(
    groups: list[np.ndarray], rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Bags in a random order of pairs of one stratum (an odd one out makes three), and each one's
    pair."""
    pairs = [
        pair
        for group in groups
        if len(group)
        for pair in np.array_split(rng.permutation(group), range(2, len(group) - 1, 2))
    ]
    shuffled = [pairs[i] for i in rng.permutation(len(pairs))]
    pair_of_bag = np.repeat(np.arange(len(pairs)), [len(pair) for pair in shuffled])
    return np.concatenate(shuffled), pair_of_bag


def _cut(order: np.ndarray, unit: np.ndarray, size: np.ndarray, instances: int) -> list[np.ndarray]:
    """Cut the order where a unit ends, near multiples of `instances`, two bags or more in each
    piece."""
    ends = np.flatnonzero(np.append(np.diff(unit) > 0, True)) + 1
    passed = np.cumsum(size[order])[ends - 1]
    middle = passed - np.diff(passed, prepend=0) / 2
    last_of_batch = np.append(np.diff(np.floor(middle / instances)) > 0, True)
    cuts = [0]
    for end in ends[last_of_batch]:
        if end - cuts[-1] >= 2:
            cuts.append(int(end))
    return np.split(order, cuts[1:-1])  # what follows the last cut belongs to the last batch
