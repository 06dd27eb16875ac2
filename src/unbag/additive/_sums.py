"""The additive model from sums over parts of the bags, wherever the parts are.

The likelihood of whole bags adds up, and so do its derivatives. At coefficients b a part gives

    G = sum_j J_j J_j' / V_j,   g = sum_j J_j (y_j - M_j) / V_j,   the log likelihood

and of each bag the two numbers from which the spread is estimated. That is all that the evidence
needs (see `_evidence`), so rows never meet: parts may be read from files one after the other, or
lie on the workers of Ray or Spark. Every step is one pass over all parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from unbag._rules import broken
from unbag.additive._counts import Counts, Spread, counts_of, spread_of
from unbag.additive._evidence import EvidenceFit, Linear, State
from unbag.additive._interactions import (
    CellProducts,
    FurtherTerm,
    asked_for,
    candidates,
    cell_products,
)
from unbag.additive._model import Additive, AdditiveModel, exact_factor
from unbag.additive._posterior import FLAT, Space
from unbag.additive._rows import few_threads
from unbag.additive._slots import Slots
from unbag.additive._terms import Terms, strengths
from unbag.bags import Bags, Kind

MOST = 5_000  # coefficients whose curvature is held, 200 MB
LONGEST = 2.0  # the largest change of a coefficient in one step
# numbers of the Jacobian of a part that are made at a time, 64 MB: a code or category of thousands
# of values would take more than the memory that its rows were planned for
AT_ONCE = 2**23


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

    def pieces(self, bags: int) -> Iterator[BagPart]:
        """The same in pieces of at most so many bags."""
        every = len(self.bags)
        if every <= bags:
            yield self
            return
        for first in range(0, every, bags):
            some = np.arange(first, min(first + bags, every))
            rows = slice(*np.searchsorted(self.bags.bag, (first, some[-1] + 1)))
            yield BagPart(self.bags.take(some), self.Z.take(rows), self.fold[some])


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
        coefficients, classes = self.b.shape
        numbers = coefficients * classes * max(classes - 1, 1)  # of a bag, in the Jacobian
        return added(map(self._of_piece, part.pieces(max(1, AT_ONCE // numbers))))

    def _of_piece(self, part: BagPart) -> Sums:
        part = part._replace(Z=self.terms.completed(part.Z))
        counts, T = counts_of(part.bags), self.terms.basis
        level = T @ self.b
        moments = counts.moments(part.Z @ level + counts.offset[:, None])
        whitener = counts.whitener(moments.h, self.spread)
        taken = part.fold != self.without
        every = np.tile(taken, max(counts.classes - 1, 1))  # contrasts of classes, bag by bag
        J = whitener(_jacobian(counts, part, moments.h, T))[every]
        # the left-out fold is cut after whitening, which works bag by bag and needs all of them
        white, residual = whitener(counts.observed - moments.mean), counts.observed - moments.mean
        own = np.zeros(len(taken))
        if counts.kind != "histogram":
            own = counts.label_variance(moments.h)
        value = counts.log_likelihoods(moments, whitener, self.spread)[taken].sum()
        rows, shape = len(part.bags.bag), self.terms.moments(part.Z, self.b)
        own, noise = own[taken], counts.noise[taken]
        return Sums(J.T @ J, J.T @ white[every], value, own, residual[every], noise, shape, rows)


class PairsAt(NamedTuple):
    """What a part says of pairs of columns, where the sum of columns was fitted; see `SumsAt`."""

    at: SumsAt
    pairs: Sequence[FurtherTerm]

    def __call__(self, part: BagPart) -> list[CellProducts]:
        """The products of one part."""
        terms, b, spread, without = self.at
        counts = counts_of(part.bags)
        moments = counts.moments(part.Z @ (terms.basis @ b) + counts.offset[:, None])
        whitener = counts.whitener(moments.h, spread)
        taken = np.tile(part.fold != without, max(counts.classes - 1, 1))
        return cell_products(self.pairs, terms, part.Z, counts, moments, whitener, taken=taken)


class ShareOf(NamedTuple):
    """The sum of each column of Z over a part; see `SumsAt`."""

    terms: Terms

    def __call__(self, part: BagPart) -> np.ndarray:
        """The sums of one part."""
        return self.terms.completed(part.Z).tdot(np.ones(len(part.bags.bag)))


def _jacobian(counts: Counts, part: BagPart, h: np.ndarray, T: Any) -> np.ndarray:
    """The derivative of the means by the coefficients, classes one after the other."""
    return np.block([[part.by_bag(weight) @ T for weight in row] for row in counts.slopes(h)])


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


class PartsPlace(NamedTuple):
    """Coefficients, and what the parts say of them."""

    b: np.ndarray
    spread: Spread
    sums: Sums


class SumsFit(EvidenceFit):
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
        super().__init__(np.tile(terms.group, classes))  # in the order of b, class by class
        self.parts, self.terms, self.without = parts, terms, without
        self.kind: Kind = kind
        self.classes = classes
        self.prior = np.zeros(classes)  # the score of the mean report, known when the fit starts
        self.alone = 1.0  # the dispersion around the mean, likewise
        if len(self.group) > MOST:
            raise broken(
                f"A model from sums must have at most {MOST:,} coefficients",
                f"{len(self.group):,} given",
                "Leave out columns with many levels with {features}, or group their levels.",
            )

    def maximise(self, start: State | None = None) -> State:
        """The place of highest evidence, from the prior or from where another fit ended."""
        with few_threads(len(self.group)):
            if start is None:
                return self.fit(self.linearise(self._start())).state
            place = start.linear.place
            linear = self.linearise(self._place(place.b, place.spread))
            return self.fit(linear, start.precision).state

    def with_pairs(self, state: State, most: int = Additive.pairs) -> tuple[SumsFit, State]:
        """The fit with the pairs of columns that the counts ask for, if there are any.

        Parameters
        ----------
        state : State
            Of highest evidence without pairs.
        most : int
            How many to take.
        """
        _, spread, sums = state.linear.place
        derivatives = self.classes * max(self.classes - 1, 1)
        strength = strengths(sums.moments, sums.rows)
        rows, classes = sums.rows * derivatives, self.classes
        pairs = candidates(self.terms, strength, rows, classes=classes, pairs=most > 0)
        looked = PairsAt(SumsAt(self.terms, state.b, spread, self.without), pairs)
        room, taken = MOST - len(self.group), ()
        with few_threads(len(self.group)):
            asked = asked_for(pairs, self.parts.map(looked), most)
        for term in asked:
            if term.count * self.classes <= room:  # a smaller one may fit where another does not
                room, taken = room - term.count * self.classes, (*taken, term)
        if not taken:
            return self, state
        terms = self.terms.further(taken)
        share = sum(self.parts.map(ShareOf(terms))) / sums.rows
        terms = replace(terms, share=np.append(self.terms.share, share[len(self.terms.share) :]))
        wider = SumsFit(self.parts, terms, self.kind, classes=self.classes, without=self.without)
        return wider, wider.maximise()

    def _place(self, b: np.ndarray, spread: Spread) -> PartsPlace:
        """One pass."""
        at = SumsAt(self.terms, self.unpack(b), spread, self.without)
        return PartsPlace(b, spread, added(self.parts.map(at)))

    def _start(self) -> PartsPlace:
        """All coefficients zero but the intercept, which is brought to the mean report."""
        place = self._place(np.zeros(len(self.group)), Spread())
        first = np.flatnonzero(self.group < 0)
        for _ in range(20):
            inside = place.sums.gram[np.ix_(first, first)] + FLAT * np.eye(len(first))
            step = np.zeros(len(self.group))
            step[first] = np.clip(np.linalg.solve(inside, place.sums.gradient[first]), -1, 1)
            place = self._place(place.b + step, place.spread)
            if np.abs(step).max() < 0.01:
                break
        self.prior = place.b[first]
        if self.kind != "total":
            return place
        # taken for Poisson counts, large totals would look so certain that columns run away
        spread = self._shown(place.sums, 1.0)
        self.alone = spread.dispersion
        return self._place(place.b, spread)

    def unpack(self, x: np.ndarray) -> np.ndarray:
        """Coefficients as (coefficients, classes)."""
        return x.reshape(self.classes, -1).T

    def _widened(self, place: PartsPlace, spread: Spread) -> PartsPlace:
        """The place with another spread of the counts."""
        return place if spread == place.spread else self._place(place.b, spread)

    def linearise(self, place: PartsPlace) -> Linear:
        """The model that is linear about a place; its sums are all that it takes."""
        return Linear(place, place.sums.gradient, Space(None, gram=place.sums.gram))

    def gradient(self, place: PartsPlace) -> np.ndarray:
        """J' V^-1 (c - M)."""
        return place.sums.gradient

    def _moved(
        self, place: PartsPlace, step: np.ndarray, precision: np.ndarray
    ) -> PartsPlace | None:
        """As much of the step as raises the posterior."""
        step = step * min(1.0, LONGEST / max(float(np.abs(step).max()), 1e-300))
        before = self._density(place, precision)
        for _ in range(6):  # each try is a pass over all parts, so few
            after = self._place(place.b + step, place.spread)
            if self._density(after, precision) > before - 1e-9 * abs(before):
                return after
            step = step / 2
        return None

    def _density(self, place: PartsPlace, precision: np.ndarray) -> float:
        return place.sums.value - float((precision * place.b**2).sum()) / 2

    def value(self, place: PartsPlace) -> float:
        """The log likelihood, up to a constant."""
        return place.sums.value

    def _spread(self, linear: Linear, of_group: np.ndarray, known: float) -> Spread:
        """The spread that the residuals show."""
        if self.kind == "histogram":
            return Spread()
        return self._shown(linear.place.sums, known)

    def _shown(self, sums: Sums, known: float) -> Spread:
        own, residual, noise = sums.own, sums.residual, sums.noise
        return spread_of(own, residual, noise, self.kind, known, alone=self.alone)

    def model(self, state: State) -> AdditiveModel:
        """The fitted model, with the posterior of its coefficients."""
        _, spread, sums = state.linear.place
        root = exact_factor(state.posterior, len(self.group))
        factor = root.reshape(self.classes, -1, root.shape[1]).swapaxes(0, 1)
        return AdditiveModel(
            self.kind,
            self.terms,
            state.b,
            factor.astype(np.float32),
            state.precision,
            strengths(sums.moments, sums.rows),
            spread.dispersion,
            state.evidence,
            float(np.sqrt(spread.misfit)),
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
    fit, state = fit.with_pairs(fit.maximise())
    return fit.model(state)


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
