"""The additive model from sums over parts of the bags, wherever the parts are.

The likelihood of whole bags adds up, and so do its derivatives. At coefficients b a part gives

    G = sum_j J_j J_j' / V_j,   g = sum_j J_j (y_j - M_j) / V_j,   the log likelihood

and of each bag the two numbers from which the spread is estimated. That is all that the evidence
needs (see `_evidence`), so rows never meet: parts may be read from files one after the other, or
lie on the workers of Ray or Spark. Every step is one pass over all parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from unbag._rules import broken
from unbag.additive._counts import Counts, Spread, counts_of, spread_of
from unbag.additive._evidence import FURTHEST, NEGLIGIBLE, SMALL, Hyperprior
from unbag.additive._model import AdditiveModel, exact_factor
from unbag.additive._posterior import FLAT, Primal
from unbag.additive._slots import Slots
from unbag.additive._terms import Terms
from unbag.bags import Bags, Kind

MOST = 5_000
"""Coefficients whose curvature is held, 200 MB."""
PASSES = 80
LONGEST = 2.0
"""The largest change of a coefficient in one step."""
CLOSE = 1e-2
"""Nats that a step at fixed precisions must promise to be made."""
START = 100.0


class BagPart(NamedTuple):
    """Some whole bags in narrow form.

    Parameters
    ----------
    bags : Bags
        With observed reports, without features; their rows come bag by bag.
    Z : Slots
        The rows of the design.
    fold : numpy.ndarray
        The fold of each bag.
    """

    bags: Bags
    Z: Slots
    fold: np.ndarray

    def by_bag(self, weight: np.ndarray) -> np.ndarray:
        """The sums of weighted rows of Z over each bag, (bags, columns of Z)."""
        bags, sums = len(self.bags), np.zeros((len(self.bags), self.Z.shape[1]))
        for slot in self.Z.slots:
            own = slot.by_count(self.bags.bag, bags, weight)
            sums[:, slot.start : slot.start + slot.width] += own
        return sums


class BagParts(Protocol):
    """Parts somewhere: a function of a part is brought to each of them."""

    def map(self, function: Callable[[BagPart], Any]) -> Iterable[Any]:
        """What the function gives of each part."""
        ...


class LocalParts(NamedTuple):
    """Parts in this process, in a list or read anew from files in each pass."""

    parts: Iterable[BagPart]

    def map(self, function: Callable[[BagPart], Any]) -> Iterable[Any]:
        """What the function gives of each part, one after the other."""
        return (function(part) for part in self.parts)


class RayParts(NamedTuple):
    """Parts in the object store of a Ray cluster; each pass is one task for each part."""

    references: Sequence[Any]

    @staticmethod
    def of(parts: Iterable[BagPart]) -> RayParts:
        """Bring parts to the cluster that `ray.init` connected with."""
        import ray

        return RayParts([ray.put(part) for part in parts])

    def map(self, function: Callable[[BagPart], Any]) -> Iterable[Any]:
        """What the function gives of each part, made where the part is."""
        import ray

        task = ray.remote(_called).options(num_cpus=1)
        shared = ray.put(function)
        return ray.get([task.remote(shared, part) for part in self.references])


class SparkParts(NamedTuple):
    """Parts in a cached RDD of Spark; each pass is one job."""

    rdd: Any

    @staticmethod
    def of(context: Any, parts: Iterable[BagPart], *, partitions: int | None = None) -> SparkParts:
        """Bring parts to the executors of a SparkContext.

        Parameters
        ----------
        context : SparkContext
            Of the cluster.
        parts : iterable of BagPart
            Whole bags each.
        partitions : int, optional
            Of the RDD; by default as many as Spark has cores.
        """
        return SparkParts(context.parallelize(list(parts), partitions).cache())

    def map(self, function: Callable[[BagPart], Any]) -> Iterable[Any]:
        """What the function gives of each part, made on the executors."""
        return self.rdd.map(function).collect()


def _called(function: Callable[[BagPart], Any], part: BagPart) -> Any:
    return function(part)


class Sums(NamedTuple):
    """What parts say of some coefficients; parts add up.

    Parameters
    ----------
    gram, gradient : numpy.ndarray
        G and g of the head of this file.
    value : float
        The log likelihood.
    own, residual, noise : numpy.ndarray
        Of each bag: the variance of its labels, its count less its mean, its declared noise.
    moments : numpy.ndarray
        Of each term, and of the score: its sum over the rows and the sum of its squares.
    rows : int
        How many there are.
    """

    gram: np.ndarray
    gradient: np.ndarray
    value: float
    own: np.ndarray
    residual: np.ndarray
    noise: np.ndarray
    moments: np.ndarray
    rows: int


class SumsAt(NamedTuple):
    """The sums of a part at some coefficients: a function that travels to where the parts are.

    Parameters
    ----------
    terms : Terms
        How rows become a design.
    b : numpy.ndarray
        (coefficients, classes).
    spread : Spread
        Of the counts.
    without : int
        The fold that is left out; -1 for none.
    """

    terms: Terms
    b: np.ndarray
    spread: Spread
    without: int = -1

    def __call__(self, part: BagPart) -> Sums:
        """The sums of one part."""
        counts, T = counts_of(part.bags), self.terms.basis()
        level = T @ self.b
        moments = counts.moments(part.Z @ level + counts.offset[:, None])
        whitener = counts.whitener(moments.h, self.spread)
        taken = part.fold != self.without
        every = np.tile(taken, max(counts.classes - 1, 1))  # contrasts of classes, bag by bag
        J = whitener(_jacobian(counts, part, moments.h, T))[every]
        white, residual = whitener(counts.observed - moments.mean), counts.observed - moments.mean
        own = np.zeros(len(taken))
        if counts.kind != "histogram":
            own = counts.S @ counts.slope(moments.h)
        value = counts.log_likelihoods(moments, whitener, self.spread)[taken].sum()
        rows, shape = len(part.bags.bag), _term_moments(self.terms, part, level)
        own, noise = own[taken], counts.noise[taken]
        return Sums(J.T @ J, J.T @ white[every], value, own, residual[every], noise, shape, rows)


def _jacobian(counts: Counts, part: BagPart, h: np.ndarray, T: Any) -> np.ndarray:
    """The derivative of the means by the coefficients, classes one after the other."""
    return np.block([[part.by_bag(weight) @ T for weight in row] for row in counts.slopes(h)])


def _term_moments(terms: Terms, part: BagPart, level: np.ndarray) -> np.ndarray:
    """Sums and sums of squares of each term over the rows, (2, terms, classes)."""
    sums, start = np.zeros((2, len(terms.terms), level.shape[1])), 1
    for number, term in enumerate(terms.terms):
        own = part.Z.within(start, start + term.width) @ level
        sums[:, number] = own.sum(axis=0), (own**2).sum(axis=0)
        start += term.width
    return sums


def added(some: Iterable[Sums]) -> Sums:
    """The sums of all parts; numbers of bags are put one after the other."""
    total, lists = None, ([], [], [])
    for one in some:
        for known, new in zip(lists, one[3:6], strict=True):
            known.append(new)
        if total is None:
            total = one
            continue
        numbers = {name: getattr(total, name) + getattr(one, name) for name in ADDED}
        total = total._replace(**numbers)
    if total is None:
        raise broken(
            "There must be at least one part with bags", "none given", "Give at least one."
        )
    own, residual, noise = (np.concatenate(known) for known in lists)
    return total._replace(own=own, residual=residual, noise=noise)


ADDED = ("gram", "gradient", "value", "moments", "rows")


class FitState(NamedTuple):
    """Where the fit is: coefficients, precisions, spread, the sums there and their evidence."""

    b: np.ndarray
    of_group: np.ndarray
    spread: Spread
    sums: Sums
    evidence: float


class SumsFit:
    """The evidence maximised by passes over parts.

    Parameters
    ----------
    parts : BagParts
        Where the bags are.
    terms : Terms
        How rows become a design.
    kind : {"binary", "total", "histogram"}
        Of the reports.
    classes : int
        How many scores an instance has.
    without : int
        The fold that is left out; -1 for none.
    """

    def __init__(
        self, parts: BagParts, terms: Terms, kind: Kind, *, classes: int = 1, without: int = -1
    ) -> None:
        self.parts, self.terms, self.without = parts, terms, without
        self.kind: Kind = kind
        self.classes, self.hyperprior = classes, Hyperprior()
        self.group = np.tile(terms.group, classes)  # in the order of b, class by class
        self.groups = len(terms.groups)
        self.passes = 0
        self.prior = np.zeros(classes)  # the score of the mean report, known when the fit starts
        self.alone = 1.0  # the dispersion around the mean, likewise
        if len(self.group) > MOST:
            raise broken(
                f"A model from sums must have at most {MOST:,} coefficients",
                f"{len(self.group):,} given",
                "Leave out columns with many levels with {features}, or group their levels.",
            )

    def fit(self, start: FitState | None = None) -> FitState:
        """The place of highest evidence, from the prior or from another place."""
        place = self._converge(start or self._start())
        for _ in range(PASSES):
            if self.passes >= PASSES or self.groups == 0:
                break
            after, change = self._better(place)
            if after is None:
                break
            gain, place = after.evidence - place.evidence, after
            if np.abs(change).max() < SMALL or gain < NEGLIGIBLE:
                break
        return self._converge(place, tolerance=1e-4)

    def moved(self, place: FitState) -> FitState:
        """The place of another fit, with the sums of this one."""
        return self._at(place.b, place.of_group, place.spread)

    def _at(self, b: np.ndarray, of_group: np.ndarray, spread: Spread) -> FitState:
        """One pass."""
        self.passes += 1
        sums = added(self.parts.map(SumsAt(self.terms, b, spread, self.without)))
        posterior = Primal(sums.gram, self._precision(of_group))
        flat, precision = b.T.ravel(), self._precision(of_group)
        prior = (np.log(precision).sum() - (precision * flat**2).sum()) / 2
        evidence = sums.value + prior + self.hyperprior.log_density(of_group)
        return FitState(b, of_group, spread, sums, float(evidence - posterior.logdet / 2))

    def _precision(self, of_group: np.ndarray) -> np.ndarray:
        return np.append(of_group, FLAT)[self.group]

    def _by_group(self, values: np.ndarray) -> np.ndarray:
        return np.bincount(self.group + 1, values, minlength=self.groups + 1)[1:]

    def _start(self) -> FitState:
        """All coefficients zero but the intercept, which is brought to the mean report."""
        b = np.zeros((len(self.terms.group), self.classes))
        place = self._at(b, np.full(self.groups, START), Spread())
        for _ in range(20):
            first = np.flatnonzero(self.group < 0)
            inside = place.sums.gram[np.ix_(first, first)] + FLAT * np.eye(len(first))
            step = np.zeros(len(self.group))
            step[first] = np.clip(np.linalg.solve(inside, place.sums.gradient[first]), -1, 1)
            place = self._at(place.b + self._unpack(step), place.of_group, place.spread)
            if np.abs(step).max() < 0.01:
                break
        self.prior = place.b[0]
        if self.kind != "total":
            return place
        # taken for Poisson counts, large totals would look so certain that columns run away
        sums = place.sums
        spread = spread_of(sums.own, sums.residual, sums.noise, self.kind, 1.0)
        self.alone = spread.dispersion
        return self._at(place.b, place.of_group, spread)

    def _unpack(self, x: np.ndarray) -> np.ndarray:
        return x.reshape(self.classes, -1).T

    def _converge(self, place: FitState, *, tolerance: float = CLOSE) -> FitState:
        """Newton steps at fixed precisions; a step that lowers the posterior is halved."""
        precision = self._precision(place.of_group)
        for _ in range(30):
            flat = place.b.T.ravel()
            gradient = place.sums.gradient - precision * flat
            step = Primal(place.sums.gram, precision).solve(gradient)
            if float(gradient @ step) < tolerance:
                break
            step *= min(1.0, LONGEST / max(float(np.abs(step).max()), 1e-300))
            after = self._stepped(place, step, precision)
            if after is None:
                break
            place = after
        return place

    def _stepped(self, place: FitState, step: np.ndarray, precision: np.ndarray) -> FitState | None:
        before = self._density(place, precision)
        for _ in range(6):
            after = self._at(place.b + self._unpack(step), place.of_group, place.spread)
            if self._density(after, precision) > before - 1e-9 * abs(before):
                return after
            step = step / 2
        return None

    def _density(self, place: FitState, precision: np.ndarray) -> float:
        return place.sums.value - float((precision * place.b.T.ravel() ** 2).sum()) / 2

    def _better(self, place: FitState) -> tuple[FitState | None, np.ndarray]:
        """After an update of the variances that raises the evidence; None when none does."""
        of_group, spread = self._target(place)
        change, wider = np.log(of_group / place.of_group), np.subtract(spread, place.spread)
        for share in 0.5 ** np.arange(3):
            new = Spread(*(np.array(place.spread) + share * wider))
            moved = self._at(place.b, place.of_group * np.exp(share * change), new)
            after = self._converge(moved)
            if after.evidence > place.evidence:
                return after, np.append(share * change, share * wider)
        return None, change

    def _target(self, place: FitState, *, updates: int = 4) -> tuple[np.ndarray, Spread]:
        """Precisions near the fixed point of the model linear about the place, and the spread."""
        sums, of_group, hyper, known = place.sums, place.of_group, self.hyperprior, 0.0
        pull = sums.gradient + sums.gram @ place.b.T.ravel()
        for _ in range(updates):
            posterior = Primal(sums.gram, self._precision(of_group))
            b, gamma = posterior.solve(pull), posterior.gamma
            known = float(gamma.sum())
            grown = np.maximum(self._by_group(gamma), 0.0)
            after = (grown + hyper.a) / (self._by_group(b**2) + hyper.rate(of_group))
            change = np.log(after / of_group)
            of_group = np.clip(after, place.of_group / FURTHEST, place.of_group * FURTHEST)
            if np.abs(change).max() < SMALL:
                break
        if self.kind == "histogram":
            return of_group, Spread()
        spread = spread_of(sums.own, sums.residual, sums.noise, self.kind, known, alone=self.alone)
        return of_group, spread

    def model(self, place: FitState) -> AdditiveModel:
        """The fitted model, with the posterior of its coefficients."""
        sums = place.sums
        mean, square = sums.moments / sums.rows
        strength = np.sqrt(np.maximum(square - mean**2, 0)).max(axis=1, initial=0)
        root = exact_factor(Primal(sums.gram, self._precision(place.of_group)), len(self.group))
        factor = root.reshape(self.classes, -1, root.shape[1]).swapaxes(0, 1)
        return AdditiveModel(
            self.kind,
            self.terms,
            place.b,
            factor.astype(np.float32),
            place.of_group,
            strength,
            place.spread.dispersion,
            place.evidence,
            float(np.sqrt(place.spread.misfit)),
        )


def fit_parts(parts: BagParts, terms: Terms, kind: Kind, *, classes: int = 1) -> AdditiveModel:
    """The additive model of bags that lie in parts, by passes over them.

    Parameters
    ----------
    parts : LocalParts, RayParts or SparkParts
        Where the bags are.
    terms : Terms
        How rows become a design; see `narrow_part`.
    kind : {"binary", "total", "histogram"}
        Of the reports.
    classes : int
        How many scores an instance has.
    """
    fit = SumsFit(parts, terms, kind, classes=classes)
    return fit.model(fit.fit())


def narrow_part(bags: Bags, terms: Terms, *, folds: int = 1, seed: Any = 0) -> BagPart:
    """Bags in narrow form: of each row the places and numbers of its entries in Z.

    Parameters
    ----------
    bags : Bags
        With a table as features.
    terms : Terms
        How the table is read; see `terms_of`.
    folds : int
        Into how many folds the bags go, at random.
    seed : int
        Of the folds.
    """
    bags = bags.take(np.flatnonzero(bags.observed))
    return stored_part(bags, terms.matrix(bags.X), folds=folds, seed=seed)


def stored_part(bags: Bags, Z: Slots, *, folds: int = 1, seed: Any = 0) -> BagPart:
    """The same, of rows whose design is made.

    Parameters
    ----------
    bags : Bags
        Whole bags.
    Z : Slots
        The design of their rows.
    folds : int
        Into how many the bags are drawn.
    seed : int or sequence
        Of the folds.
    """
    order = np.argsort(bags.bag, kind="stable")
    fold = np.random.default_rng(seed).integers(0, folds, len(bags))
    kept = ("report", "kind", "noise", "stratum", "stratum_names")
    known = {name: getattr(bags, name) for name in kept}
    offset = bags.offset
    if offset is not None:
        offset = offset[order]
    return BagPart(Bags(bags.bag[order], **known, offset=offset), Z.take(order), fold)
