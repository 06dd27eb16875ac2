"""The tournament: Q for every pair of models, the pool that is left, and a choice."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from math import exp, inf, isfinite
from typing import Any, Literal

import numpy as np

from unbag import losses
from unbag._rules import broken, check_probabilities, one_of, refuse_probabilities
from unbag.bags import Bags, Kind
from unbag.losses import Loss
from unbag.medians import group_count
from unbag.planning import (
    HistogramSpread,
    ModelSpread,
    Problem,
    bags_needed,
    bounded_spread,
    events,
    regret_supported,
)
from unbag.tournaments._groups import (
    GroupMeans,
    GroupPlan,
    Parts,
    StepsDone,
    is_wild,
    plan_groups,
    read_models,
    sum_models,
)

BLOCK = 4_000_000  # numbers held at once while pairs are played


@dataclass(frozen=True)
class Tournament:
    """Who is left, who eliminated whom, and how far to trust it.

    Parameters
    ----------
    names : tuple
        What the user calls each model.
    Q : array of float
        Q[i, j] estimates loss(i) - loss(j); antisymmetric to the last bit.
    C : array of float
        How far each Q is from the truth with probability `confidence`, by variances measured on
        these bags: an estimate, because a variance that rare large losses make is not seen in them.
    pool : tuple
        The models that no other beats by more than beta / 2.
    chosen : object
        The member of the pool whose worst Q is best (any member is allowed by the theorem), or
        None.
    beaten_by : dict
        For each eliminated model, those that eliminated it.
    beta : float
        The regret that was allowed.
    confidence : float
        1 - delta, or what is left of it when `groups` was given.
    groups : int
        Of each median of means.
    prior : array of float
        In component form.
    bags : int
        How many played.
    bags_needed : float
        What planning asks for at this beta and delta, with the spread measured here; infinite
        beyond 1e15.
    regret_supported : float
        The smallest beta that planning supports with these bags.
    regret_estimate : float
        The regret of the chosen model by Q and C: max_j (Q + C) over its row. With one group no
        variance can be measured: C and what follows from it are then infinite.
    regret_bound : float
        The same with variances that cannot be larger, from `spread`, `clip` or a bounded loss: a
        guarantee with that confidence. Infinite where nothing bounds them.
    problem : Problem
        The tournament as planning sees it.
    """

    names: tuple[Any, ...]
    Q: np.ndarray = field(repr=False)
    C: np.ndarray = field(repr=False)
    pool: tuple[Any, ...]
    chosen: Any
    beaten_by: dict[Any, tuple[Any, ...]] = field(repr=False)
    beta: float
    confidence: float
    groups: int
    prior: np.ndarray = field(repr=False)
    bags: int
    bags_needed: float
    regret_supported: float
    regret_estimate: float
    regret_bound: float
    problem: Problem = field(repr=False)

    def __str__(self) -> str:
        if not self.pool:
            return self._nobody()
        left = f"{len(self.pool)} of {len(self.names)} models are left at beta = {self.beta:.3g}"
        left += f"; chosen: {self.chosen}."
        if self.groups == 1:
            return f"{left} Nothing is promised of its loss: one group has no variance to measure."
        text = (
            f"{left} Its loss is within about {self.regret_estimate:.3g} of the best model's, by "
            "the variances measured on these bags: an estimate. "
        )
        if isfinite(self.regret_bound):
            text += f"With confidence {self.confidence:.1%} it is within {self.regret_bound:.3g}."
        else:
            text += "Nothing is guaranteed, because nothing bounds its variance."
        if self.beta < self.regret_supported:
            text += (
                f" Planning supports only beta = {self.regret_supported:.3g} with {self.bags} "
                f"bags; beta = {self.beta:.3g} would need {self._needed()}."
            )
        return text

    def _nobody(self) -> str:
        text = (
            f"No model is left of {len(self.names)}: every one is beaten by another, so "
            f"{self.bags} bags are too few for beta = {self.beta:.3g}."
        )
        if self.groups > 1:
            text += (
                f" Planning asks for {self._needed()} bags, or for a beta of "
                f"{self.regret_supported:.3g} with these."
            )
        return text

    def _needed(self) -> str:
        if isfinite(self.bags_needed):
            return f"{self.bags_needed:,.0f}"
        return "more than can be counted"


def tournament(
    models: Any,
    bags: Bags,
    *,
    beta: float,
    delta: float = 0.05,
    loss: Loss = losses.log,
    scale: Literal["score", "probability"] | None = None,
    clip: float | None = None,
    spread: ModelSpread | None = None,
    groups: int | None = None,
    seed: int = 0,
    chunk: int = 65536,
    progress: StepsDone | None = None,
) -> Tournament:
    """Choose among models from bags alone: the paper's tournament.

    Every pair plays: Q(h1, h2) is a median of means, over bags, of an unbiased estimate of loss(h1)
    - loss(h2). A model that loses by more than beta / 2 is eliminated. With probability 1 - delta
    the best model stays and all that stay have a regret below beta, if there are bags enough
    (`bags_needed`). The bags must not have been used in training. How many are enough depends on
    second moments, which bags only estimate; `spread`, `clip` or a bounded loss make them known,
    and `regret_bound` a guarantee (docs/tournament.md).

    Parameters
    ----------
    models : sequence or mapping
        Of scores of all instances (in the order of `bags`), paths of .npy files with them, or
        functions from rows of X to scores. Scores are what `loss` takes.
    bags : Bags
        Held-out bags of any kind and sizes; only those whose report is observed play. Where reports
        carry noise, or are totals without cap=, the error of the prior is bounded by the measured
        variance of the reports: a count that is larger and rarer than any seen here is then not
        guarded against, and cap= is the remedy.
    beta : float
        The regret to allow.
    delta : float
        The chance of failure, for the whole tournament; each median of means takes its share over
        all pairs and components, because the paper's number of groups has no union bound.
    loss : Loss
        Any loss of `unbag.losses` that fits the kind of report.
    scale : {"score", "probability"}, optional
        What the models give: scores that the loss takes, or the probabilities or counts that they
        predict (probabilities are kept 1e-6 away from 0 and 1).
    clip : float, optional
        Scores are clipped to [-clip, clip]; the clipped models compete.
    spread : ModelSpread, optional
        Upper bounds on the spread of any two models, where you know them.
    groups : int, optional
        Number of groups of each median of means, instead of the one that delta asks for.
    seed : int
        Of the split and the groups.
    chunk : int
        How many instances are held at once.
    progress : callable, optional
        Called as progress(done, all) while the pass runs.

    >>> import unbag
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=20000)
    >>> bags = unbag.random_bags(x, rng.uniform(size=20000) < 1 / (1 + np.exp(-x)), size=4, seed=0)
    >>> models = {"right": bags.X, "flat": 0 * bags.X, "wrong": -bags.X}
    >>> result = tournament(models, bags, beta=0.2, loss=unbag.losses.square)
    >>> result.pool, result.chosen, result.beaten_by
    (('right', 'flat'), 'right', {'wrong': ('right', 'flat')})
    """
    if not beta > 0:
        raise broken(
            "beta must be positive", f"{beta} given", "It is the regret that you can accept."
        )
    loss.form(bags.kind)
    read, bounds = _reading(loss, bags.kind, scale, clip), _bounds(bags, loss, clip, spread)
    bags.reports.check_observed()
    names, values = read_models(models, bags)
    group_count(delta)  # refuses what is no chance, before it is shared out
    # every median of means may fail: their number shares delta out (a union bound)
    count = events(len(values), components=bags.components().report.shape[1])
    if groups is None:
        groups = group_count(delta / count)
    plan, parts = plan_groups(bags, groups, seed=seed)
    sums = sum_models(names, values, bags, loss, plan, chunk=chunk, read=read, progress=progress)
    Q, spreads = play(sums, plan, histogram=bags.kind == "histogram")
    problem = _problem(bags, parts, plan, delta, spreads, best=int(np.argmin(Q.max(axis=1))))
    # a median of r group means fails when half of them do, with probability exp(-r / 8) at most
    share, observed = exp(-groups / 8), int(bags.observed.sum())
    C = np.where(np.eye(len(values), dtype=bool), 0.0, inf)
    needed, supported, m = inf, inf, len(parts.estimator)
    if groups > 1:  # one group has no variance to measure
        C, supported = (
            problem.deviations(spreads, m, share=share),
            regret_supported(observed, problem),
        )
        with suppress(ValueError):  # planning refuses to count that far: no reason to end here
            needed = bags_needed(beta, problem)
    return Tournament(
        names=names,
        Q=Q,
        C=C,
        beta=beta,
        confidence=max(0.0, 1 - count * share),
        groups=groups,
        prior=plan.prior,
        bags=observed,
        bags_needed=needed,
        regret_supported=supported,
        problem=problem,
        **_decision(names, Q, C, problem.deviations(bounds, m, share=share), beta),
    )


ENOUGH = 100  # rows that tell probabilities from scores


def _reading(
    loss: Loss, kind: Kind, scale: str | None, clip: float | None
) -> Callable[[np.ndarray], np.ndarray]:
    """From what a model gives to scores that the loss takes."""
    one_of("A scale", scale or "score", ("score", "probability"), "Leave it out for scores.")
    if clip is not None and not clip > 0:
        raise broken("A clip must be positive", f"{clip} given", "Use 10, say, for log odds.")

    def read(given: np.ndarray) -> np.ndarray:
        # some of the rows at a time: a few scores may lie between 0 and 1 by chance
        if scale is None and kind == "binary" and len(given) >= ENOUGH:
            refuse_probabilities(given)
        if scale == "probability":
            if kind != "total":
                check_probabilities(given)
            if kind == "binary" and given.ndim == 2 and given.shape[1] <= 2:
                given = given[:, -1]  # of the two columns of `predict_proba`
            given = loss.trivial_score(given, kind=kind)
        if clip is None:
            return given
        return np.clip(given, -clip, clip)

    return read


UNBOUNDED = ModelSpread(inf, inf, inf, inf)


def _bounds(bags: Bags, loss: Loss, clip: float | None, spread: ModelSpread | None) -> ModelSpread:
    """What no pair of models exceeds: known for exact reports and bounded losses.

    The paper hides the constants of histograms, and noise or counts without a cap have a variance
    that is measured as well.
    """
    exact = bags.kind != "histogram" and not is_wild(bags)
    if spread is not None and not exact:
        raise broken(
            "A known spread must come with exact binary reports or totals with a cap",
            "there are histograms, noise or counts without a cap",
            "Leave {spread} out, or give the bags a cap.",
        )
    if spread is not None and not all(bound is None or bound >= 0 for bound in spread):
        raise broken(
            "A known spread must hold upper bounds of variances and squares",
            f"{', '.join(f'{name} {bound}' for name, bound in spread._asdict().items())} given",
            "Measure them on rows without labels, or take them from bounded_spread.",
        )
    if spread is not None or not exact:
        return spread or UNBOUNDED
    reach = clip or inf
    return bounded_spread(loss, (-reach, reach), kind=bags.kind)


def play(
    sums: GroupMeans, plan: GroupPlan, *, histogram: bool
) -> tuple[np.ndarray, ModelSpread | HistogramSpread]:
    """Q of every pair, and the measured spread of every pair, block by block of pairs.

    Per pair: E_r = median over groups of the mean difference of component r, then
    Q = sum_r p_r E_r + median over groups of [difference of what the bags say - sum_r E_r
    centred_size_r].

    Parameters
    ----------
    sums : GroupMeans
        Of each model.
    plan : GroupPlan
        Who estimates what.
    histogram : bool
        Whether the reports are full histograms.
    """
    models, components, r = sums.means.shape
    Q = np.zeros((models, models))
    tables = np.zeros((4 - histogram, models, models))
    block = max(1, BLOCK // (models * components * r))
    for i in range(0, models, block):
        rows, columns = slice(i, min(i + block, models)), slice(i, models)
        means = sums.means[rows, None] - sums.means[None, columns]
        E = np.median(means, axis=-1)
        said = sums.bags[rows, None] - sums.bags[None, columns] - E @ plan.centred_size.T
        Q[rows, columns] = E @ plan.prior + np.median(said, axis=-1)
        variance, bag = _variance(means, plan.mean_sizes), _variance(said, plan.bag_sizes)
        if histogram:
            # E max_r <= sum_r E, and not max_r E, which is smaller than both
            measured = (variance + E**2).sum(axis=-1), variance.sum(axis=-1), bag
        else:
            measured = variance[..., 0], variance[..., 1], E[..., 1] ** 2, bag
        tables[:, rows, columns] = measured
    # what lies above the diagonal was played; the other half is its mirror image
    upper = np.triu(np.ones((models, models), bool), 1)
    Q, tables = np.where(upper, Q, 0.0), np.where(upper, tables, 0.0)
    tables = tables + tables.transpose(0, 2, 1)
    if histogram:
        return Q - Q.T, HistogramSpread(*tables)
    return Q - Q.T, ModelSpread(*tables)


def _variance(group_means: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """The variance of one value, from the spread of group means; NaN where one group has none."""
    if group_means.shape[-1] == 1:
        return np.full(group_means.shape[:-1], np.nan)
    return group_means.var(axis=-1, ddof=1) * sizes.mean()  # a mean of n values varies by 1 / n


def _problem(
    bags: Bags,
    parts: Parts,
    plan: GroupPlan,
    delta: float,
    spreads: ModelSpread | HistogramSpread,
    best: int,
) -> Problem:
    """The planning problem with the spread of the models around the one that looks best."""
    cap = float({"total": bags.cap}.get(bags.kind) or 1.0)
    further: dict[str, Any] = {"cap": cap, "prior": float(plan.prior[1]) / cap}
    if bags.kind == "histogram":
        further = {"classes": bags.report.shape[1]}
    if parts.two:
        further["means_size"] = float(bags.size[parts.means].mean())
    if is_wild(bags):
        further["report"] = float(bags.report[bags.observed].var(axis=0, ddof=1).sum())
    return Problem(
        models=len(spreads[0]),
        size=float(bags.size[parts.estimator].mean()),
        spread=type(spreads)(*(float(table[best].max()) for table in spreads)),
        delta=delta,
        **further,
    )


def _decision(
    names: tuple[Any, ...], Q: np.ndarray, C: np.ndarray, known: Any, beta: float
) -> dict[str, Any]:
    """Who is left, who beat the others, and the member of the pool whose worst Q is best."""
    beats = beta / 2 < Q
    beaten = beats.any(axis=1)
    left = np.flatnonzero(~beaten)
    decision = {
        "pool": tuple(names[i] for i in left),
        "beaten_by": {
            names[i]: tuple(names[j] for j in np.flatnonzero(beats[i]))
            for i in np.flatnonzero(beaten)
        },
    }
    if len(left) == 0:
        return decision | {"chosen": None, "regret_estimate": inf, "regret_bound": inf}
    best = left[np.argmin(Q.max(axis=1)[left])]
    estimate, others = float((Q[best] + C[best]).max()), np.delete(Q[best], best)
    bound = max(0.0, float(others.max() + known))
    return decision | {"chosen": names[best], "regret_estimate": estimate, "regret_bound": bound}
