"""Bags (and scores) in, a verdict out: are the bags random, what bias would result, what to do
about it."""

from __future__ import annotations

from math import ceil
from typing import Any, NamedTuple

import numpy as np

from unbag._rules import LONE, VALID, broken, refuse, rows, spelled, two_reports
from unbag.bags import Bags, Kind
from unbag.diagnosis._bias import (
    Bias,
    Dispersion,
    bounded,
    direct,
    f2_of,
    label_dispersion,
    upper_between,
)
from unbag.diagnosis._diagnosis import Diagnosis, Feature
from unbag.diagnosis._features import Features, read_features
from unbag.diagnosis._significance import Found, find, worst_first
from unbag.diagnosis._variance import Columns, Layout
from unbag.losses import Loss, cross_entropy, log, poisson

COLUMNS = 2000  # at most so many features are looked at
FEWEST = 50  # bags, when they are drawn
DEFAULTS: dict[Kind, Loss] = {"binary": log, "total": poisson, "histogram": cross_entropy}
UNSEEN = "Whether the bags are random cannot be seen: no feature varies or was given, and the reports were not tested."
REMEDY = {
    "random": "None is needed.",
    "plain": "Name what the bags follow (campaign, day, site) as stratum= and cut each into random sub-bags, as "
    f"random_bags(..., stratum=...) does; where reports cannot be cut, use {spelled(VALID)}.",
    "strata": "Make the strata finer, or draw the bags at random within them, as random_bags(..., stratum=...) does; "
    f"where that cannot be, use {spelled(VALID)}.",
    "untested": "Give features X to the bags, or the scores of a model: they are what tells.",
}


def diagnose(
    bags: Bags,
    scores: Any = None,
    *,
    loss: Loss | None = None,
    level: float = 0.01,
    tolerance: float = 0.02,
    most: float = 5e7,
    seed: int = 0,
) -> Diagnosis:
    """Are these bags random? No label is used.

    One-way analysis of variance across bags (within strata) of every feature, and of f2 of the loss
    when scores are given; the reports' own spread as a second opinion; and the bias that the
    unbiased estimates would have:

        bias = (k - 1) Cov between bags of (E[y | bag], E[f2 | bag])

    Bags are called not random when they differ beyond chance *and* the bias may exceed `tolerance`;
    with millions of rows the smallest trifle is beyond chance. The features share half of the level
    (Holm's correction, confirmed by exchanging rows between bags unless beyond all doubt), the
    reports have the other half, so that random bags are called not random with a chance of at most
    `level`.

    Parameters
    ----------
    scores : one per instance (one per class and instance for histograms): logits, or log rates for
        counts.
    loss : whose f2 is meant; by default log, poisson or cross_entropy, by the kind of report.
    tolerance : the bias to shrug off, as a share of sd(y) sd(f2), the largest covariance that is
        possible.
    most : about how many numbers (rows x features) to look at, in whole bags drawn at random if
        there are more.
    seed : which rows are exchanged, and which bags drawn.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(800, 2))
    >>> y = X[:, 0] + rng.logistic(size=800) > 0
    >>> from unbag import from_rows, random_bags
    >>> diagnose(random_bags(X, y, size=8, seed=1)).random
    True
    >>> diagnose(from_rows(np.argsort(np.argsort(X[:, 0])) // 8, y=y, X=X)).random
    False
    """
    scores = _checked(bags, scores, level, tolerance)
    lone = _lone(bags)
    if lone.all():
        return _impossible(bags, len(lone))
    if bags.size.max() == 1:
        return Diagnosis(
            "Each bag is one instance: its report is a label, and nothing can be biased.",
            True,
            REMEDY["random"],
        )
    drawn, scores = _draw(bags, scores, most, seed)
    layout = Layout.of(drawn.bag, drawn.size, drawn.stratum)
    f, g = (None, None) if scores is None else f2_of(scores, bags.kind, loss or DEFAULTS[bags.kind])
    table, labels = _with_f2(_limited(read_features(drawn.X), seed), f), label_dispersion(bags)
    if drawn is not bags:
        table = table._replace(
            notes=(*table.notes, f"{len(drawn)} of {len(bags)} bags were looked at")
        )
    share = level if labels.p is None else level / 2
    columns = Columns.of(table.values, layout) if table.names else None
    if columns is None or not columns.varies.any() or layout.between < 1 or layout.within < 1:
        return _by_reports_alone(labels, share, int(lone.sum()), table.notes)
    found = find(columns, layout, level=share, seed=seed)
    case = _Case(bags, layout, columns, found, labels, table, 0 if f is None else f.shape[1], share)
    bias = _bias(case)
    if f is not None and g is not None:
        bias = bias._replace(**direct(drawn, f, g))
    return _decide(case, bias, int(lone.sum()), tolerance)


class _Case(NamedTuple):
    """All that was found, before the verdict; the first `f2` columns are those of the loss."""

    bags: Bags
    layout: Layout
    columns: Columns
    found: Found
    labels: Dispersion
    table: Features
    f2: int
    level: float

    @property
    def names(self) -> list[str]:
        return [
            name
            for name, varies in zip(self.table.names, self.columns.varies, strict=True)
            if varies
        ]


def _checked(bags: Bags, scores: Any, level: float, tolerance: float) -> np.ndarray | None:
    """The scores, one for each instance where one column came."""
    if not 0 < level < 1:
        raise broken(
            "A level must lie between 0 and 1",
            f"{level} came",
            "It is the chance of a false alarm, say 0.01.",
        )
    if not tolerance >= 0:
        raise broken(
            "A tolerance must not be negative",
            f"{tolerance} came",
            "Use 0 to take any bias seriously.",
        )
    if scores is None:
        return None
    scores = np.asarray(scores, float)
    rows(len(scores), len(bags.bag), thing="scores", of="instance")
    refuse(
        "A score must be finite",
        ~np.isfinite(scores.reshape(len(scores), -1)).all(axis=1),
        thing="row",
        given=scores,
        remedy="Give logits; a probability of 0 or 1 has none.",
    )
    return (
        scores[:, 0]
        if bags.kind != "histogram" and scores.ndim == 2 and scores.shape[1] == 1
        else scores
    )


def _lone(bags: Bags) -> np.ndarray:
    """Of each stratum that has bags, whether it has fewer than two reports."""
    stratum = (
        np.zeros(len(bags), int)
        if bags.stratum is None
        else np.unique(bags.stratum, return_inverse=True)[1]
    )
    return np.bincount(stratum, weights=bags.observed) < 2


def refuse_single_bags(bags: Bags) -> None:
    """Refuse an unbiased evaluation where a stratum (a campaign, say) has one report only.

    The covariance of labels and scores shows in the differences between bags; where there is but
    one, nothing differs.

    >>> lonely = Bags(np.array([0, 0, 1, 1]), np.array([0.5, 0.0]), stratum=np.array([0, 1]))
    >>> refuse_single_bags(lonely)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: An unbiased evaluation must have at least two reports in each stratum: stratum 0 has
    1 (2 such ...
    """
    two_reports(bags.stratum, bags.observed)


def _draw(
    bags: Bags, scores: np.ndarray | None, most: float, seed: int
) -> tuple[Bags, np.ndarray | None]:
    """All bags, or as many at random as `most` numbers allow."""
    width = int(np.prod(bags.X.shape[1:])) if hasattr(bags.X, "shape") else 1
    share = most / max(len(bags.bag) * min(width, COLUMNS), 1)
    if share >= 1 or len(bags) <= FEWEST:
        return bags, scores
    count = max(ceil(share * len(bags)), FEWEST)
    numbers = np.sort(np.random.default_rng(seed).choice(len(bags), count, replace=False))
    return bags.take(numbers), None if scores is None else scores[bags.rows_of(numbers)]


def _limited(table: Features, seed: int) -> Features:
    """The features that are most often not zero, if there are very many."""
    if len(table.names) <= COLUMNS:
        return table
    count = np.asarray((table.values != 0).sum(axis=0)).ravel()
    order = np.lexsort((np.random.default_rng(seed).random(len(count)), -count))
    kept = np.sort(order[:COLUMNS])
    word = f"of {len(count)} features the {COLUMNS} that are most often not zero were looked at"
    return Features(
        table.values[:, kept], tuple(table.names[i] for i in kept), (*table.notes, word)
    )


def _with_f2(table: Features, f: np.ndarray | None) -> Features:
    """The components that multiply the labels, as columns before the features."""
    if f is None:
        return table
    names = ("f2",) if f.shape[1] == 1 else tuple(f"loss of class {r}" for r in range(f.shape[1]))
    if not table.names:
        return Features(f, names)
    if hasattr(table.values, "tocsr"):
        from scipy import sparse

        return Features(sparse.hstack([f, table.values]).tocsr(), names + table.names, table.notes)
    return Features(np.hstack([f, table.values]), names + table.names, table.notes)


def _bias(case: _Case) -> Bias:
    """The bias of the loss when f2 is known, else of the covariance of the label with the worst
    feature."""
    size, variance = float(case.bags.size.mean()), case.found.variance
    upper = upper_between(variance, case.layout)
    if case.f2:
        kept = case.columns.varies[: case.f2]
        n = int(kept.sum())
        spread = case.columns.spread[:n]
        return bounded(
            size, spread, variance.between[:n], upper[:n], case.labels.of(kept), unit="the loss"
        )
    differs = case.found.p <= case.level
    worst = int(np.argmax(np.where(differs if differs.any() else True, upper, -1.0)))
    unit = f"the covariance of the label with {case.names[worst]} (at standard deviation 1)"
    return bounded(
        size,
        np.ones(1),
        variance.between[[worst]],
        upper[[worst]],
        case.labels.largest(),
        unit=unit,
    )


def _decide(case: _Case, bias: Bias, lone: int, tolerance: float) -> Diagnosis:
    variance, p, names = case.found.variance, case.found.p, case.names
    whole = variance.between + variance.within
    features = [
        Feature(name, float(F), float(q), float(between / total))
        for name, F, q, between, total in zip(
            names, variance.F, p, variance.between, whole, strict=True
        )
    ]
    features = tuple(features[i] for i in worst_first(variance, p))
    differ = int((p <= case.level).sum())
    spread = None if case.labels.p is None else bool(case.labels.p <= case.level)
    matters = bias.share > tolerance
    random = not ((differ or spread) and matters)
    remedy = (
        REMEDY["random"] if random else REMEDY["plain" if case.bags.stratum is None else "strata"]
    )
    verdict = _verdict(features, differ, spread, bias, float(case.bags.size.mean()), random=random)
    notes = case.table.notes + _note_lone(lone)
    return Diagnosis(
        verdict, random, remedy, features, bias, case.labels, lone, notes, case.found.means
    )


def _verdict(
    features: tuple[Feature, ...],
    differ: int,
    spread: bool | None,
    bias: Bias,
    size: float,
    *,
    random: bool,
) -> str:
    """The answer in one sentence; `spread` is None where the reports were not tested."""
    worst, count = features[0], len(features)
    told = f"the unbiased estimate of {bias.unit} may be off by up to {bias.limit:.2g}"
    if differ:
        which = f"{differ} of {count} features differ" if count > 1 else "the only feature differs"
        beyond = f"{which} between bags beyond chance, most of all {worst.name} (F = {worst.F:.3g})"
    else:
        beyond = "the reports vary more than chance allows"
    if not random:
        also = ", and the reports vary more than chance allows" if differ and spread else ""
        return f"The bags are not random: {beyond}{also}; at {size:.4g} instances a bag {told}."
    if differ or spread:
        return f"The bags differ by a trifle: {beyond}, but {told} only."
    reports = "; the reports were not tested" if spread is None else ", nor do the reports"
    return f"The bags look random: none of {count} features differs between bags beyond chance{reports}."


def _impossible(bags: Bags, lone: int) -> Diagnosis:
    what = (
        "There is one report" if bags.stratum is None else f"Each of {lone} strata has one report"
    )
    verdict = f"{what} only: whether bags are random cannot be seen, and an unbiased evaluation is impossible."
    return Diagnosis(verdict, False, spelled(LONE), lone=lone)


def _by_reports_alone(
    labels: Dispersion, level: float, lone: int, notes: tuple[str, ...]
) -> Diagnosis:
    """No feature varies or none was given: the second opinion is the only one."""
    notes = notes + _note_lone(lone)
    if labels.p is None:
        return Diagnosis(UNSEEN, False, REMEDY["untested"], labels=labels, lone=lone, notes=notes)
    random = labels.p > level
    told = "vary no more than chance allows" if random else "vary more than chance allows"
    verdict = (
        f"The bags {'look' if random else 'are not'} random by their reports alone, which {told}."
    )
    remedy = REMEDY["random" if random else "plain"]
    return Diagnosis(verdict, random, remedy, labels=labels, lone=lone, notes=notes)


def _note_lone(lone: int) -> tuple[str, ...]:
    if not lone:
        return ()
    which = "one stratum has" if lone == 1 else f"{lone} strata have"
    return (f"{which} fewer than two reports, and an unbiased evaluation of such is impossible",)
