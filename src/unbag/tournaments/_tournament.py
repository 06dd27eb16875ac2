"""Group means of each model in, Q for every pair, the pool and a choice out."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import exp, inf, isfinite
from typing import Any

import numpy as np

from unbag import losses
from unbag._rules import broken
from unbag.bags import Bags
from unbag.losses import Loss
from unbag.medians import group_count
from unbag.planning import (
    HistogramSpread,
    Problem,
    Spread,
    bags_needed,
    deviation,
    events,
    histogram_deviation,
    regret_supported,
)
from unbag.tournaments._split import Layout, Parts, Split, is_wild, lay_out
from unbag.tournaments._sums import Progress, Sums, read_models, sum_models

BLOCK = 4_000_000  # numbers held at once while pairs are played


@dataclass(frozen=True)
class Tournament:
    """Who is left, who eliminated whom, and how far to trust it.

    Q : Q[i, j] estimates loss(i) - loss(j); antisymmetric to the last bit.
    C : how far each Q can be from the truth with probability `confidence`, from variances measured
        on these bags.
    pool : the models that no other beats by more than beta / 2.
    chosen : the member of the pool whose worst Q is best (any member is allowed by the theorem), or
        None.
    beaten_by : for each eliminated model, those that eliminated it.
    confidence : 1 - delta, or what is left of it when `groups` was given.
    regret_bound : the regret of the chosen model is below this with that confidence: max_j (Q + C)
        over its row.
    bags_needed : what planning asks for at this beta and delta, with the spread measured here;
        infinite beyond 1e15.
    regret_supported : the smallest beta that planning supports with these bags.
    With one group no variance can be measured: C, both bounds and the bags are then infinite.
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
    regret_bound: float
    problem: Problem = field(repr=False)

    def __str__(self) -> str:
        needed = (
            f"{self.bags_needed:,.0f}" if isfinite(self.bags_needed) else "more than can be counted"
        )
        if not self.pool:
            asked = f" Planning asks for {needed} bags, or for a beta of {self.regret_supported:.3g} with these."
            return (
                f"No model is left of {len(self.names)}: every one is beaten by another, so "
                f"{self.bags} bags are too few for beta = "
                f"{self.beta:.3g}.{asked if self.groups > 1 else ''}"
            )
        left = f"{len(self.pool)} of {len(self.names)} models are left at beta = {self.beta:.3g}; chosen: {self.chosen}."
        if self.groups == 1:
            return f"{left} Nothing is promised of its loss: one group has no variance to measure."
        enough = (
            ""
            if self.beta >= self.regret_supported
            else (
                f" Planning supports only beta = {self.regret_supported:.3g} with {self.bags} "
                f"bags; beta = {self.beta:.3g} would need {needed}."
            )
        )
        return (
            f"{left} With confidence {self.confidence:.1%} its loss is within "
            f"{self.regret_bound:.3g} of the best model's.{enough}"
        )


def tournament(
    models: Any,
    bags: Bags,
    *,
    beta: float,
    delta: float = 0.05,
    loss: Loss = losses.log,
    split: Split = "auto",
    groups: int | None = None,
    seed: int = 0,
    chunk: int = 65536,
    progress: Progress | None = None,
) -> Tournament:
    """Choose among models from bags alone, with a guarantee: the paper's median-of-means
    tournament.

    Every pair plays: Q(h1, h2) is a median of means, over bags, of an unbiased estimate of loss(h1)
    - loss(h2). A model that loses by more than beta / 2 is eliminated. With probability 1 - delta
    the best model stays and all that stay have a regret below beta, if there are bags enough
    (`bags_needed`). The bags must not have been used in training.

    Parameters
    ----------
    models : a sequence, or a mapping from names, of: scores of all instances (in the order of
        `bags`), the path of an .npy file with them, or a function from rows of X to scores. Scores
        are what `loss` takes.
    bags : held-out bags of any kind and sizes; only those whose report is observed play. Where
        reports carry noise, or are totals without cap=, the error of the prior is bounded by the
        measured variance of the reports: a count that is larger and rarer than any seen here is
        then not guarded against, and cap= is the remedy.
    beta : the regret to allow. delta : the chance of failure, for the whole tournament; each median
        of means takes its share over all pairs and components, because the paper's number of groups
        has no union bound.
    loss : any loss of `unbag.losses` that fits the kind of report.
    split : "three" (equal bags), "two" (any sizes), or "auto".
    groups : number of groups of each median of means, instead of the one that delta asks for.
    seed : of the split and the groups.
    chunk : how many instances are held at once. progress : called as progress(done, all) while the
        pass runs.

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
            "beta must be positive", f"{beta} came", "It is the regret that you can accept."
        )
    loss.form(bags.kind)
    bags.reports.check_observed()
    names, values = read_models(models, bags)
    components = bags.report.shape[1] if bags.kind == "histogram" else 2
    count = events(len(values), components=components)
    r = group_count(_checked(delta) / count) if groups is None else groups
    layout, parts = lay_out(bags, r, split=split, seed=seed)
    sums = sum_models(names, values, bags, loss, layout, chunk=chunk, progress=progress)
    Q, spreads = play(sums, layout, histogram=bags.kind == "histogram")
    problem = _problem(
        bags, parts, layout, delta, len(values), spreads, best=int(np.argmin(Q.max(axis=1)))
    )
    share = exp(-r / 8)
    apart = np.where(np.eye(len(values), dtype=bool), 0.0, inf)
    C = _deviations(spreads, problem, len(parts.estimator), share) if r > 1 else apart
    confidence = max(0.0, 1 - count * share)
    return _decide(names, Q, C, beta, confidence, layout, int(bags.observed.sum()), problem)


def _checked(delta: float) -> float:
    group_count(delta)
    return delta


def play(
    sums: Sums, layout: Layout, *, histogram: bool
) -> tuple[np.ndarray, Spread | HistogramSpread]:
    """Q of every pair, and the measured spread of every pair, block by block of pairs.

    Per pair: E_r = median over groups of the mean difference of component r, then
    Q = sum_r p_r E_r + median over groups of [difference of what the bags say - sum_r E_r
    centred_size_r].
    """
    models, components, r = sums.means.shape
    Q = np.zeros((models, models))
    tables = [np.zeros((models, models)) for _ in range(4)]
    block = max(1, BLOCK // (models * components * r))
    for i in range(0, models, block):
        rows, columns = slice(i, min(i + block, models)), slice(i, models)
        means = sums.means[rows, None] - sums.means[None, columns]
        E = np.median(means, axis=-1)
        said = sums.bags[rows, None] - sums.bags[None, columns] - E @ layout.centred_size.T
        Q[rows, columns] = E @ layout.prior + np.median(said, axis=-1)
        variance = (
            means.var(axis=-1, ddof=1) * layout.mean_sizes.mean()
            if r > 1
            else np.full_like(E, np.nan)
        )
        bag = (
            said.var(axis=-1, ddof=1) * layout.bag_sizes.mean()
            if r > 1
            else np.full(said.shape[:2], np.nan)
        )
        found = (
            ((variance + E**2).max(axis=-1), variance.sum(axis=-1), bag)
            if histogram
            else (variance[..., 0], variance[..., 1], E[..., 1] ** 2, bag)
        )
        for table, value in zip(tables, found, strict=False):
            table[rows, columns] = value
    upper = np.triu(np.ones((models, models), bool), 1)
    Q = np.where(upper, Q, 0.0)
    tables = [np.where(upper, table, 0.0) for table in tables]
    tables = [table + table.T for table in tables]
    return Q - Q.T, HistogramSpread(*tables[:3]) if histogram else Spread(*tables)


def _problem(
    bags: Bags,
    parts: Parts,
    layout: Layout,
    delta: float,
    models: int,
    spreads: Spread | HistogramSpread,
    best: int,
) -> Problem:
    """The planning problem with the spread of the models around the one that looks best."""
    two = len(parts.prior) == len(parts.means) and parts.prior is parts.means
    cap = float(bags.cap or 1.0) if bags.kind == "total" else 1.0
    report = bags.report[bags.observed]
    return Problem(
        models=models,
        size=float(bags.size[parts.estimator].mean()),
        spread=type(spreads)(*(float(table[best].max()) for table in spreads)),  # type: ignore[arg-type]
        delta=delta,
        means_size=float(bags.size[parts.means].mean()) if two else None,
        prior=1.0 if bags.kind == "histogram" else float(layout.prior[1]) / cap,
        cap=cap,
        classes=bags.report.shape[1] if bags.kind == "histogram" else None,
        report=float(report.var(axis=0, ddof=1).sum()) if is_wild(bags) else None,
    )


def _deviations(
    spreads: Spread | HistogramSpread, problem: Problem, m: int, share: float
) -> np.ndarray:
    if isinstance(spreads, HistogramSpread):
        k = problem.means_size or problem.size
        c = problem.classes or 2
        return histogram_deviation(
            spreads, m, size=k, share=share, classes=c, report=problem.report
        )
    sizes, labels = {"size": problem.size, "means_size": problem.means_size}, {"cap": problem.cap}
    return deviation(
        spreads, m, **sizes, share=share, prior=problem.prior, report=problem.report, **labels
    )


def _decide(
    names: tuple[Any, ...],
    Q: np.ndarray,
    C: np.ndarray,
    beta: float,
    confidence: float,
    layout: Layout,
    bags: int,
    problem: Problem,
) -> Tournament:
    beats = beta / 2 < Q
    left = np.flatnonzero(~beats.any(axis=1))
    worst = Q.max(axis=1)
    chosen = int(left[np.argmin(worst[left])]) if len(left) else None
    return Tournament(
        names=names,
        Q=Q,
        C=C,
        pool=tuple(names[i] for i in left),
        chosen=None if chosen is None else names[chosen],
        beaten_by={
            names[i]: tuple(names[j] for j in np.flatnonzero(beats[i]))
            for i in np.flatnonzero(beats.any(axis=1))
        },
        beta=beta,
        confidence=confidence,
        groups=layout.groups,
        prior=layout.prior,
        bags=bags,
        bags_needed=_bags_needed(beta, problem) if layout.groups > 1 else inf,
        regret_supported=regret_supported(bags, problem) if layout.groups > 1 else inf,
        regret_bound=inf if chosen is None else float((Q[chosen] + C[chosen]).max()),
        problem=problem,
    )


def _bags_needed(beta: float, problem: Problem) -> float:
    try:
        return bags_needed(beta, problem)
    except (
        ValueError
    ):  # planning refuses to count that far, which is no reason to withhold a result
        return inf
