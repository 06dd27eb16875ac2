"""Bags in, an additive model out: logit h = b0 + a term for each column, by evidence."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg, sparse, special

from unbag._progress import Progress
from unbag.additive._counts import MEAN_LABEL, Counts, Spread, counts_of
from unbag.additive._evidence import Fit, State
from unbag.additive._interactions import asked_for, candidates, cell_products
from unbag.additive._posterior import Bordered, Primal
from unbag.additive._rows import RowsFit, few_threads, fit_evidence
from unbag.additive._slots import Slots
from unbag.additive._terms import DataWarning, Design, Term, Terms, strengths, terms_of
from unbag.bags import Bags, Kind
from unbag.tables import FeaturePlan, Marginals

EXACT, DRAWS = 1000, 256
"""So many coefficients have an exact covariance; that of more is made of so many draws."""
STEEP = 10.0  # a term whose effect is larger than this (in logits) is held by its prior alone
ROWS = 8192
NUMBERS = ("kind", "dispersion", "log_evidence", "misfit")  # settings of a model that are no arrays


class Effect(NamedTuple):
    """What one term adds to the score, less its mean over the rows of training.

    Parameters
    ----------
    name : str
        Of the column, or of its part.
    strength : float
        The standard deviation of the effect over the rows of training.
    at : tuple
        Values of a number (None for missing), or names of levels.
    effect, error : numpy.ndarray
        At these values, with its posterior standard deviation; (values, classes) for histograms.
    days : bool
        Whether the values are days since 1970, as those of the trend of a date are.
    """

    name: str
    strength: float
    at: tuple[Any, ...]
    effect: np.ndarray
    error: np.ndarray
    days: bool = False

    def times(self, weight: float) -> Effect:
        """The effect on a score in which the model has this weight."""
        strength, effect, error = (
            weight * part for part in (self.strength, self.effect, self.error)
        )
        return self._replace(strength=strength, effect=effect, error=error)


@dataclass(frozen=True, eq=False)
class AdditiveModel:
    """A fitted additive model.

    Parameters
    ----------
    kind : {"binary", "total", "histogram"}
        Of the labels.
    terms : Terms
        How rows become a design.
    b : numpy.ndarray
        Coefficients, (coefficients, classes), the intercept first.
    factor : numpy.ndarray
        Their posterior covariance is factor factor', (coefficients, classes, directions).
    precision : numpy.ndarray
        Prior precision of each group of `terms.groups`.
    strength : numpy.ndarray
        Standard deviation of each term over the rows of training.
    dispersion : float
        Of counts; 1 for a Poisson law.
    log_evidence : float
        Of the bags, up to a constant.
    misfit : float
        Lack of fit: the standard deviation of a shift of the score that all instances of a bag or
        cell share.
    """

    kind: Kind
    terms: Terms
    b: np.ndarray
    factor: np.ndarray
    precision: np.ndarray
    strength: np.ndarray
    dispersion: float = 1.0
    log_evidence: float = np.nan
    misfit: float = 0.0

    def scores(self, X: Any) -> np.ndarray:
        """Logits, log rates or class scores; an offset of the rows is to be added."""
        score = self.terms.matrix(X) @ (self.terms.basis @ self.b)
        return score if self.kind == "histogram" else score[:, 0]

    def errors(self, X: Any) -> np.ndarray:
        """Posterior standard deviation of each score."""
        parts = [np.sqrt((part**2).sum(axis=-1)) for part in self._deviations(X)]
        error = np.concatenate(parts)
        return error if self.kind == "histogram" else error[:, 0]

    def interval(
        self, X: Any, *, coverage: float = 0.95, offset: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper end of the posterior interval of each probability or rate.

        Parameters
        ----------
        X : frame, Arrow table or matrix
            The rows.
        coverage : float
            Of the interval, between 0 and 1.
        offset : numpy.ndarray, optional
            Added to the scores.
        """
        z = float(special.ndtri((1 + coverage) / 2))
        score = self.scores(X)
        if self.kind == "histogram":
            return self._class_interval(X, score, z)
        centre = score if offset is None else score + offset
        inverse, error = MEAN_LABEL[self.kind], self.errors(X)
        return inverse(centre - z * error), inverse(centre + z * error)

    def _class_interval(self, X: Any, score: np.ndarray, z: float) -> tuple[np.ndarray, np.ndarray]:
        """By the derivative of the class probabilities: dp_c = p_c (ds_c - sum_k p_k ds_k)."""
        p, start, errors = special.softmax(score, axis=1), 0, []
        for part in self._deviations(X):
            here = p[start : start + len(part)]
            change = here[:, :, None] * (part - np.einsum("nk,nkr->nr", here, part)[:, None])
            errors.append(np.sqrt((change**2).sum(axis=-1)))
            start += len(part)
        error = np.concatenate(errors)
        return np.clip(p - z * error, 0, 1), np.clip(p + z * error, 0, 1)

    def _deviations(self, X: Any) -> Iterator[np.ndarray]:
        """Scores along each direction of the posterior, (rows, classes, directions), some rows at a
        time."""
        Z, (_, classes, directions) = self.terms.matrix(X), self.factor.shape
        flat = self.terms.basis @ self.factor.reshape(len(self.factor), -1).astype(float)
        for start in range(0, max(Z.shape[0], 1), ROWS):
            part = Z.take(slice(start, start + ROWS)) @ flat
            yield part.reshape(-1, classes, directions)

    def effects(self) -> list[Effect]:
        """What each column does to the score, the strongest first: the data of its picture."""
        T, effects = self.terms.basis, []
        for (term, rows, columns), strength in zip(self.terms.places, self.strength, strict=True):
            at, entries = _grid(term, self.terms, self.terms.share[rows])
            basis = (entries - self.terms.share[rows]) @ T[rows, columns].toarray()
            effect = basis @ self.b[columns]
            # no matrix product: threads that wait for each other take longer than this sum
            along = np.einsum("vk,kcr->vcr", basis, self.factor[columns])
            error = np.sqrt((along**2).sum(axis=-1))
            if self.kind != "histogram":
                effect, error = effect[:, 0], error[:, 0]
            days = term.name in self.terms.trends
            effects.append(Effect(term.name, float(strength), at, effect, error, days))
        return sorted(effects, key=attrgetter("strength"), reverse=True)

    def arrays(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """The model as arrays and JSON settings."""
        arrays = {
            "b": self.b,
            "factor": self.factor,
            "precision": self.precision,
            "strength": self.strength,
            "share": self.terms.share,
        }
        settings = {
            "kind": self.kind,
            "dispersion": self.dispersion,
            "log_evidence": self.log_evidence,
            "misfit": self.misfit,
            **self.terms.settings(),
        }
        return arrays, settings

    @classmethod
    def restore(cls, arrays: dict[str, np.ndarray], settings: dict[str, Any]) -> AdditiveModel:
        """The model that `arrays` described; see `Model.restore`."""
        own = {name: np.asarray(array) for name, array in arrays.items()}
        terms = Terms.restore(settings, own.pop("share"))
        chosen = {name: settings[name] for name in NUMBERS}
        return cls(terms=terms, **own, **chosen)


@dataclass(frozen=True)
class Additive:
    """The additive learner: one coefficient for each level, a line and steps for each number.

    The prior variance of each column, and the dispersion of counts, are those that the evidence
    chooses, so no bag is held out; the bags need not be random, only the model must hold across
    them.

    Parameters
    ----------
    steps : int
        How many steps a number has at most; 0 for lines only.
    pairs : int
        How many pairs of columns whose effects are not a sum may be taken into the model, each with
        a coefficient for each cell of both; 0 for a sum of columns. They are looked for in bags,
        not in cells of marginal tables, and so are whole numbers that are codes.
    plan : FeaturePlan, optional
        How to read the columns of a table; by default planned from them.
    space : {"auto", "coefficients", "counts", "gradients"}
        Where to solve: among the coefficients, among the counts, or by conjugate gradients.

    Examples
    --------
    >>> import unbag
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 1))
    >>> y = rng.random(2000) < special.expit(2 * X[:, 0])
    >>> model = Additive(steps=0).fit(unbag.random_bags(X, y, size=10, seed=0))
    >>> bool(abs(model.scores(np.ones((1, 1)))[0] - 2) < 0.5)
    True
    """

    steps: int = 20
    pairs: int = 8
    plan: FeaturePlan | None = None
    space: str = "auto"

    name = "additive"
    needs_random_bags = False

    def fit(
        self, bags: Bags | Marginals, *, seed: int = 0, progress: Progress | None = None
    ) -> AdditiveModel:
        """Fit to the bags, or cells of marginal tables, whose reports are observed.

        Parameters
        ----------
        bags : Bags or Marginals
            Instances in bags, or events that several tables count.
        seed : int
            Of everything that is drawn.
        progress : Progress, optional
            Progress after each step.
        """
        how: dict[str, Any] = {"space": self.space, "seed": seed, "progress": progress}
        if isinstance(bags, Marginals):
            from unbag.additive._cells import check_size, fit_cells  # late, as bags do not need it

            terms, design = terms_of(bags.X, steps=self.steps, plan=self.plan)
            check_size(bags, design)
            design, taken = _without_idle(terms, design)
            problem, fit = fit_cells(design, bags, **how)
        else:
            bags = bags.reported()  # refuses bags of which none is observed
            if (np.diff(bags.bag) < 0).any():
                bags = bags.take(np.arange(len(bags)))  # rows bag by bag
            X = bags.X if bags.X is not None else np.zeros((len(bags.bag), 0))
            made, counts = terms_of(X, steps=self.steps, plan=self.plan), counts_of(bags)
            terms, taken, problem, fit = _fitted(made, bags, counts, how)
            further = self._further(made, taken, problem, fit)
            if further:
                terms = made[0].further(further)
                Z = terms.completed(made[1].Z)
                terms = replace(terms, share=Z.mean())
                made = terms, Design(Z, terms.basis, terms.group)
                terms, taken, problem, fit = _fitted(made, bags, counts, how)
        return _model(problem, fit, terms, taken, seed=seed)

    def _further(
        self, made: tuple[Terms, Design], taken: np.ndarray, problem: RowsFit, fit: Fit
    ) -> tuple[Term, ...]:
        """The pairs of columns, and values of whole numbers, that the counts ask for, where the sum
        of columns was fitted."""
        (terms, (Z, _, _)), counts = made, problem.counts
        strength = strengths(terms.moments(Z, _whole(fit.state.b, taken)), Z.shape[0])
        derivatives = counts.classes * max(counts.classes - 1, 1)
        rows = Z.shape[0] * derivatives
        looked = self.pairs > 0
        pairs = candidates(terms, strength, rows, classes=counts.classes, pairs=looked)
        place = fit.state.linear.place
        with few_threads(problem.size):
            sums = cell_products(pairs, terms, Z, counts, place.moments, place.whitener)
            return asked_for(pairs, [sums], self.pairs)


def _fitted(
    made: tuple[Terms, Design], bags: Bags, counts: Counts, how: dict[str, Any]
) -> tuple[Terms, np.ndarray, RowsFit, Fit]:
    """The fit of terms to the bags, and which of their coefficients had a part in it."""
    terms, design = made
    design, taken = _without_idle(terms, design)
    return terms, taken, *fit_evidence(_with_strata(design, bags), counts, **how)


def _whole(b: np.ndarray, taken: np.ndarray) -> np.ndarray:
    """All coefficients of the terms, from those that had a part in the fit."""
    whole = np.zeros((len(taken), b.shape[1]))
    whole[taken] = b[: np.count_nonzero(taken)]
    return whole


def _without_idle(terms: Terms, design: Design) -> tuple[Design, np.ndarray]:
    """A large design without the levels that no row has, as most buckets of a hash are, and which
    of its coefficients are left: the others stay at zero, where their prior has them."""
    taken = np.ones(len(design.group), bool)
    if len(taken) > EXACT:
        for term, rows, columns in terms.places:
            if term.levels and not term.raw:
                levels = slice(columns.start, columns.start + term.levels)  # behind them are waves
                taken[levels] = terms.share[rows] > 0
                taken[columns.start] = True  # no term is left without a coefficient
        chosen = np.flatnonzero(taken)
        design = design._replace(T=design.T[:, chosen], group=design.group[chosen])
    return design, taken


def _with_strata(design: Design, bags: Bags) -> Design:
    """The design with the strata as levels, unless there is one only or a column tells them."""
    if bags.stratum is None or len(np.unique(bags.stratum)) < 2:
        return design
    stratum, strata = bags.stratum[bags.bag], bags.strata
    entries: list[tuple[Any, np.ndarray]] = [
        (slice(None), slot.place) for slot in design.Z.slots if slot.place is not None
    ]
    raw = design.Z.raw
    if raw is not None:
        entries.append((np.repeat(np.arange(raw.shape[0]), np.diff(raw.indptr)), raw.indices))
    known = np.zeros(len(stratum), bool)
    for rows, place in entries:
        # the pairs (level, stratum) that occur, then their levels: one that comes once is of one
        pairs = np.unique(place.astype(np.int64) * strata + stratum[rows]) // strata
        level, times = np.unique(pairs[pairs >= 0], return_counts=True)
        known[rows] |= np.isin(place, level[times == 1])  # only rows of one stratum have this level
    if known.all():
        return design
    levels = int(stratum.max()) + 1
    Z = design.Z.with_levels(stratum, levels)
    T = sparse.csr_array(sparse.block_diag([design.T, sparse.eye_array(levels)], format="csr"))
    number = design.group.max(initial=-1) + 1
    return Design(Z, T, np.append(design.group, np.full(levels, number)))


def _model(
    problem: RowsFit, fit: Fit, terms: Terms, taken: np.ndarray, *, seed: int
) -> AdditiveModel:
    """The fitted model, and warnings of what limits it."""
    with few_threads(problem.size):
        factor = _factor(problem, fit.state, seed)
        model = _made(problem, fit.state, terms, taken, factor, seed)
        known = float(fit.state.posterior.gamma.sum()) - problem.counts.classes
    _warn(model, problem, fit.state, known)
    return model


def _made(
    problem: RowsFit, state: State, terms: Terms, taken: np.ndarray, root: np.ndarray, seed: int
) -> AdditiveModel:
    """The model; strata that no column tells go into its intercept with their mean, and levels
    that had no part in the fit are as their prior has them."""
    size, place = np.count_nonzero(taken), state.linear.place
    share = problem.design.Z.mean()[len(terms.share) :]
    b, factor = _whole(state.b, taken), root[:size].astype(np.float32)
    b[0] += share @ state.b[size:]
    factor[0] += np.tensordot(share, root[size:], axes=1)
    if size < len(taken):
        # draws of the prior for levels that no row had: a new row that has one is then uncertain
        rng, known = np.random.default_rng([seed, 2]), factor
        factor = rng.standard_normal((len(taken), *known.shape[1:]), dtype=np.float32)
        sd = 1 / np.sqrt(known.shape[2] * np.append(state.precision, 1)[terms.group])
        factor *= sd.astype(np.float32)[:, None, None]
        factor[taken] = known
    return AdditiveModel(
        problem.counts.kind,
        terms,
        b,
        factor,
        state.precision[: len(terms.groups)],
        strengths(terms.moments(problem.design.Z, b), problem.design.Z.shape[0]),
        place.spread.dispersion,
        state.evidence,
        float(np.sqrt(place.spread.misfit)),
    )


def _factor(problem: RowsFit, state: State, seed: int) -> np.ndarray:
    """A root of the posterior covariance: exact, or of draws d = H^-1 (J' e + lambda^1/2 z)."""
    rng, size, posterior = np.random.default_rng([seed, 1]), len(problem.group), state.posterior
    if size <= EXACT:
        root = exact_factor(posterior, size)
    elif isinstance(posterior, Primal | Bordered):
        root = posterior.draws(rng, DRAWS) / np.sqrt(DRAWS)
    else:
        J, precision = state.linear.space.J, problem.precisions(state.precision)
        noise = rng.normal(size=(J.shape[0], DRAWS))
        prior = np.sqrt(precision)[:, None] * rng.normal(size=(size, DRAWS))
        root = posterior.solve(J.tdot(noise) + prior) / np.sqrt(DRAWS)
    return problem.unpack(root)


def exact_factor(posterior: Any, size: int) -> np.ndarray:
    """A root of the posterior covariance of so many coefficients."""
    if isinstance(posterior, Primal):
        return posterior.root
    A = posterior.solve(np.eye(size))
    A = (A + A.T) / 2
    A[np.diag_indices_from(A)] *= 1 + 1e-10  # rounding cannot make it singular
    return linalg.cholesky(A, lower=True)


def _grid(term: Term, terms: Terms, share: np.ndarray) -> tuple[tuple[Any, ...], np.ndarray]:
    """Where to show a term, and the rows of Z there; levels that no row of training had are left
    out."""
    if term.levels:
        there = np.flatnonzero(share)
        labels = terms.labels(term)
        return tuple(labels[i] for i in there), np.eye(term.levels)[there]
    if term.edges:
        ends = np.array([term.low, *term.edges, term.high])
        value = (ends[1:] + ends[:-1]) / 2
    else:
        value = np.array([term.low, term.high])
    value = np.append(value, np.nan) if term.missing else value
    rows = Slots((len(value), term.width), tuple(term.slots(value, 0))).csr().toarray()
    at = tuple(float(v) if np.isfinite(v) else None for v in value)
    return at, rows


def _warn(model: AdditiveModel, problem: RowsFit, state: State, known: float) -> None:
    """Say what limits the fit, each with its own words."""
    counts = problem.counts
    checks = (
        _few_bags(model, counts),
        _steep(model),
        _scattered(state, counts, known),
        _nothing(model, known),
        ""
        if state.converged
        else "The fit did not converge: its coefficients still moved in the end.",
    )
    for words in checks:
        if words:
            warnings.warn(words, DataWarning, stacklevel=4)


def _few_bags(model: AdditiveModel, counts: Counts) -> str:
    columns = sum(not term.pair for term in model.terms.terms)
    bags = counts.S.shape[0]
    if columns <= bags:
        return ""
    return (
        f"There are more columns ({columns}) than bags ({bags}): most effects stay near 0, where "
        "their prior holds them. Ask for more and smaller bags, or give fewer columns."
    )


def _steep(model: AdditiveModel) -> str:
    if model.kind == "total":
        return ""
    level, steep = model.terms.basis @ model.b, []
    for term, rows, _ in model.terms.places:
        part = level[rows][model.terms.share[rows] != 0]
        if part.max(initial=-np.inf) - part.min(initial=np.inf) > STEEP:  # there may be none
            steep.append(term.name)
    if not steep:
        return ""
    return (
        "A column that separates the labels has no finite effect, only its prior holds it: "
        f"{', '.join(steep)}. Check that it does not contain the label."
    )


def _scattered(state: Any, counts: Counts, known: float) -> str:
    if counts.kind == "total":
        return ""  # the dispersion of counts is estimated
    moments = state.linear.place.moments
    residual = counts.whitener(moments.h, Spread())(counts.observed - moments.mean)
    free = max(len(residual) - known, 1.0)
    ratio = float(residual @ residual) / free
    if ratio < 1.5 or ratio < 1 + 6 * np.sqrt(2 / free):
        return ""
    return (
        f"The reports scatter {ratio:.1f} times as much as labels and declared noise explain: they "
        "contradict each other, their noise is larger than declared, or a column that matters is "
        "missing."
    )


def _nothing(model: AdditiveModel, known: float) -> str:
    if known >= 0.5 or not model.terms.terms:
        return ""
    return (
        "The reports tell nothing of the columns, so the prediction is the mean: the noise is too "
        "large, or the bags are too few and too large."
    )
