"""A `Diagnosis`: are the bags random, what bias would result, what to do, and how that prints."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from unbag._lazy import as_html
from unbag._rules import LONE, VALID, Spelling, broken, python_spelling, spelled
from unbag.bags import Bags, checked_scores, reports_too_even
from unbag.diagnosis._bias import (
    Bias,
    Dispersion,
    bounded,
    direct,
    f2_of,
    label_dispersion,
    upper_between,
)
from unbag.diagnosis._features import Features, read_features
from unbag.diagnosis._variance import (
    BagLayout,
    ScaledColumns,
    Significance,
    check_alarm_level,
    find_differences,
    worst_first,
)
from unbag.losses import Loss, proper_loss

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = 2000  # at most so many features are looked at
FEWEST = 50  # bags, when they are drawn
UNSEEN = (
    "Whether the bags are random cannot be seen: no feature varies or was given, and the reports "
    "were not tested."
)
ALL_THE_SAME = f"Where that cannot be, use the additive model, {VALID}."
ADVICE = {
    "random": "None is needed.",
    "plain": "Name what the bags follow (campaign, day, site) with {stratum}, if each has several "
    "bags; or draw new bags at random within it, as {design} does, and ask for their reports. "
    f"{ALL_THE_SAME}",
    "strata": "Name something finer with {stratum}, or draw new bags at random within the strata, "
    f"as {{design}} does. {ALL_THE_SAME}",
    "reports": "No feature differs between bags, so look at the reports first: declare noise that "
    "was added with {noise}, and do not write 0 for counts that are hidden or late. If the reports "
    "are right, bags differ in something that no column tells: name it with {stratum}. "
    f"{ALL_THE_SAME}",
    "untested": "Give features X to the bags, or the scores of a model: they are what tells.",
}
SHOWN = 8


class BagsNotRandom(UserWarning):
    """The bags are not random, and what is learned or estimated from them may be badly biased."""


class Feature(NamedTuple):
    """How one feature differs between bags.

    Parameters
    ----------
    name : str
        Of the feature.
    F : float
        Variance between bags against that within; about 1 for random bags.
    p : float
        Chance of this or more when bags are random, corrected for the number of features.
    intraclass : float
        Intraclass correlation, the share of the feature's variance that lies between bags.
    """

    name: str
    F: float
    p: float
    intraclass: float

    @property
    def constant(self) -> bool:
        """Whether the feature is the same within every bag, up to rounding; F is then no number
        that says anything."""
        return self.F > 1e9

    @property
    def spread(self) -> str:
        """How much more it varies between bags than within, in words."""
        if self.constant:
            return (
                "the same in all rows of a bag: leave it out if it numbers the bags, or was made "
                "from their reports"
            )
        return f"F = {self.F:.3g}"


@dataclass(frozen=True, eq=False, repr=False)
class Diagnosis:
    """Are the bags random, and what follows.

    Parameters
    ----------
    verdict : str
        The answer in one sentence.
    random : bool
        Whether the bags look random, or so nearly that the bias to expect is negligible; false
        where nothing tells.
    advice : str
        What to do, with options in braces; `remedy` is the same in words of Python.
    features : tuple of Feature
        Of every feature (and of f2 when scores were given) how it differs between bags, the worst
        first.
    expected_bias : Bias or None
        Of the unbiased estimates from these bags; None when there can be no such estimate.
    labels : Dispersion or None
        Over-dispersion of the reports, a second opinion; None when there can be none.
    lone : int
        How many strata have fewer than two reports.
    notes : tuple of str
        What was left out or assumed.
    means : array (bags,)
        Of each bag the worst feature's mean in units of what chance allows, for the picture.
    """

    verdict: str
    random: bool
    advice: str
    features: tuple[Feature, ...] = ()
    expected_bias: Bias | None = None
    labels: Dispersion | None = None
    lone: int = 0
    notes: tuple[str, ...] = ()
    means: np.ndarray = field(default_factory=lambda: np.empty(0))

    _repr_html_ = as_html

    def __repr__(self) -> str:
        return f"Diagnosis({self.verdict})"

    @property
    def remedy(self) -> str:
        """What to do, in words of Python."""
        return spelled(self.advice)

    def __str__(self) -> str:
        return self.render()

    def render(self, spelling: Spelling = python_spelling) -> str:
        """All of it, in the words of Python or of the command line."""
        lines = [self.verdict]
        if self.advice != ADVICE["random"]:
            lines.append(f"Remedy: {spelled(self.advice, spelling)}")
        lines += _bias_lines(self.expected_bias) + _label_lines(self.labels)
        if self.features:
            head = f"{'feature':<30} {'F':>9} {'corrected p':>12} {'intraclass correlation':>23}"
            lines.append(head)
        for f in self.features[:SHOWN]:
            p = f"{f.p:.2g}"
            if f.p < 1e-15:
                p = "< 1e-15"
            F = "no spread" if f.constant else f"{f.F:.3f}"
            lines.append(f"{f.name[:30]:<30} {F:>9} {p:>12} {f.intraclass:>23.5f}")
        if len(self.features) > SHOWN:
            lines.append(f"... and {len(self.features) - SHOWN} more")
        return "\n".join(lines + [f"Note: {note}." for note in self.notes])

    def plot(self) -> Figure:
        """The F statistics, and the bag means of the worst feature against chance, as a figure."""
        from unbag.plots import draw_bag_means, draw_features, new_figure

        figure = new_figure(10, 4.2)
        figure.suptitle(fill(self.verdict, 120), fontsize=9)
        if self.features:
            left, right = figure.subplots(1, 2)
            draw_features(left, [f.name for f in self.features], [f.F for f in self.features])
            draw_bag_means(right, self.means, self.features[0].name)
        return figure

    def picture(self, path: str | Path) -> None:
        """Write the figure to a file."""
        self.plot().savefig(path)


def _bias_lines(bias: Bias | None) -> list[str]:
    if bias is None:
        return []
    lines = [
        f"Bias to expect of {bias.unit}: about {bias.bound:.3g}; up to {bias.limit:.3g} cannot be "
        "excluded."
    ]
    if bias.direct is not None:
        lines.append(
            f"Estimated directly, if the model is right: {bias.direct:+.3g} (standard error "
            f"{bias.error:.2g}); anchored at these scores: {bias.anchored:+.3g} "
            f"({bias.anchored_error:.2g})."
        )
    return lines


def _label_lines(labels: Dispersion | None) -> list[str]:
    if labels is None or not np.isfinite(labels.ratio):
        return []
    remarks = ["not tested"]
    if labels.p is not None:
        remarks = [f"p = {labels.p:.2g}"]
    if labels.assumed:
        remarks.append(f"assumed: {labels.assumed}")
    ratio = f"The reports vary {labels.ratio:.3g} times as much as in random bags"
    return [f"{ratio} ({'; '.join(remarks)})."]


def diagnose(
    bags: Bags,
    scores: Any = None,
    *,
    loss: Loss | None = None,
    level: float = 0.01,
    tolerance: float = 0.02,
    most: float = 1e7,
    seed: int = 0,
) -> Diagnosis:
    """Are these bags random? No label is used.

    One-way analysis of variance across bags (within strata) of every feature, and of f2 of the loss
    when scores are given; the reports' own spread as a second opinion; and the bias that the
    unbiased estimates would have:

        bias = (k - 1) Cov between bags of (E[y | bag], E[f2 | bag])

    Bags are called not random when they differ beyond chance *and* the bias may exceed `tolerance`;
    with millions of rows the smallest difference is beyond chance. The features share half of the
    level
    (Holm's correction, confirmed by exchanging rows between bags unless beyond all doubt), the
    reports have the other half, so that random bags are called not random with a chance of at most
    `level`.

    Parameters
    ----------
    bags : Bags
        The bags, with features.
    scores : array, optional
        One per instance (one per class and instance for histograms): logits, or log rates for
        counts.
    loss : Loss, optional
        Whose f2 is meant; by default log, poisson or cross_entropy, by the kind of report.
    level : float
        Chance of calling random bags not random.
    tolerance : float
        The bias to tolerate, as a share of sd(y) sd(f2), the largest covariance that is possible.
    most : float
        About how many numbers (rows x features) to look at, in whole bags drawn at random if there
        are more.
    seed : int
        Which rows are exchanged, and which bags drawn.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(800, 2))
    >>> y = X[:, 0] + rng.logistic(size=800) > 0
    >>> from unbag import from_rows, random_bags
    >>> diagnose(random_bags(X, y, size=8, seed=1)).random
    True
    >>> diagnose(from_rows(np.argsort(np.argsort(X[:, 0])) // 8, y=y, X=X)).random
    False
    """
    check_alarm_level(level)
    if not tolerance >= 0:
        raise broken(
            "A tolerance must not be negative",
            f"{tolerance} given",
            "Use 0 to take any bias seriously.",
        )
    if scores is not None:
        scores = checked_scores(scores, bags)
    # of each stratum that has bags, whether it has fewer than two reports
    used, number = np.unique(bags.stratum_or_zero, return_inverse=True)
    lone = np.bincount(number, weights=bags.observed, minlength=len(used)) < 2
    if lone.all():
        what = f"Each of {len(lone)} strata has one report"
        if bags.stratum is None:
            what = "There is one report"
        verdict = f"{what} only: whether bags are random cannot be seen, and an unbiased evaluation"
        return Diagnosis(f"{verdict} is impossible.", False, LONE, lone=len(lone))
    if bags.size.max() == 1:
        verdict = "Each bag is one instance: its report is a label, and nothing can be biased."
        return Diagnosis(verdict, True, ADVICE["random"])
    if reports_too_even(bags) and not bags.accept_bias:
        return Diagnosis(EVEN, False, NOT_REPORTS, labels=label_dispersion(bags))
    drawn, scores = _draw(bags, scores, most, seed)
    layout = BagLayout.of(drawn.bag, drawn.size, drawn.stratum)
    table, labels = _limited(read_features(drawn.X), drawn, seed), label_dispersion(bags)
    f = g = np.empty((len(drawn.bag), 0))
    if scores is not None:
        f, g = f2_of(scores, bags.kind, loss or proper_loss(bags.kind))
        table = _with_f2(table, f)
    if drawn is not bags:
        some = f"{len(drawn)} of {len(bags)} bags were looked at"
        table = table._replace(notes=(*table.notes, some))
    if labels.p is not None:
        level = level / 2  # the other half is that of the reports
    columns = None
    if table.names:
        columns = ScaledColumns.of(table.values, layout)
    if columns is None or not columns.varies.any() or layout.between < 1 or layout.within < 1:
        return _by_reports_alone(labels, level, int(lone.sum()), table.notes)
    differences = find_differences(columns, layout, level=level, seed=seed)
    case = _Case(bags, layout, columns, differences, labels, table, f.shape[1], level)
    bias = _bias(case)
    if scores is not None:
        bias = bias._replace(**direct(drawn, f, g))
    return _decide(case, bias, int(lone.sum()), tolerance)


EVEN = (
    "The bags are not random by their reports, which vary less than one in a million sets of "
    "random bags."
)
NOT_REPORTS = (
    "Look whether the reports are proportions that were divided by the size once more, rounded, "
    "smoothed or filled in; where bags were balanced on purpose, say so with {accept_bias:True}."
)


class _Case(NamedTuple):
    """All that is known before the verdict; the first `f2` columns are those of the loss."""

    bags: Bags
    layout: BagLayout
    columns: ScaledColumns
    differences: Significance
    labels: Dispersion
    table: Features
    f2: int
    level: float

    @property
    def names(self) -> list[str]:
        return [self.table.names[i] for i in np.flatnonzero(self.columns.varies)]


def _draw(
    bags: Bags, scores: np.ndarray | None, most: float, seed: int
) -> tuple[Bags, np.ndarray | None]:
    """All bags, or as many at random as `most` numbers allow."""
    share = most / max(len(bags.bag) * min(bags.width, COLUMNS), 1)
    if share >= 1 or len(bags) <= FEWEST:
        return bags, scores
    count = max(ceil(share * len(bags)), FEWEST)
    numbers = np.sort(np.random.default_rng(seed).choice(len(bags), count, replace=False))
    if scores is not None:
        scores = scores[bags.rows_of(numbers)]
    return bags.take(numbers), scores


def _limited(table: Features, bags: Bags, seed: int) -> Features:
    """Features called as the plan calls them where one made them; of very many those that are most
    often not zero."""
    planned = getattr(getattr(bags, "plan", None), "names", ())
    if len(planned) == len(table.names):
        table = table._replace(names=tuple(planned))
    if len(table.names) <= COLUMNS:
        return table
    count = np.asarray((table.values != 0).sum(axis=0)).ravel()
    order = np.lexsort((np.random.default_rng(seed).random(len(count)), -count))
    kept = np.sort(order[:COLUMNS])
    note = f"of {len(count)} features the {COLUMNS} that are most often not zero were looked at"
    names = tuple(table.names[i] for i in kept)
    return Features(table.values[:, kept], names, (*table.notes, note))


def _with_f2(table: Features, f: np.ndarray) -> Features:
    """The components that multiply the labels, as columns before the features."""
    names = tuple(f"loss of class {r}" for r in range(f.shape[1]))
    if len(names) == 1:
        names = ("f2",)
    if not table.names:
        return Features(f, names)
    if hasattr(table.values, "tocsr"):
        from scipy import sparse

        return Features(sparse.hstack([f, table.values]).tocsr(), names + table.names, table.notes)
    return Features(np.hstack([f, table.values]), names + table.names, table.notes)


def _bias(case: _Case) -> Bias:
    """The bias of the loss when f2 is known, else of the covariance of the label with the worst
    feature."""
    size, variance = float(case.bags.size.mean()), case.differences.variance
    upper = upper_between(variance, case.layout)
    if case.f2:
        kept = case.columns.varies[: case.f2]
        n = int(kept.sum())
        spread, labels = case.columns.spread[:n], case.labels.of(kept)
        return bounded(size, spread, variance.between[:n], upper[:n], labels, unit="the loss")
    differs = case.differences.p <= case.level
    worst = int(np.argmax(np.where(differs | ~differs.any(), upper, -1.0)))
    unit = f"the covariance of the label with {case.names[worst]} (at standard deviation 1)"
    between, labels = variance.between[[worst]], case.labels.largest()
    return bounded(size, np.ones(1), between, upper[[worst]], labels, unit=unit)


def _decide(case: _Case, bias: Bias, lone: int, tolerance: float) -> Diagnosis:
    variance, p, means = case.differences
    intraclass = variance.between / (variance.between + variance.within)
    columns = [case.names, variance.F.tolist(), p.tolist(), intraclass.tolist()]
    features = [Feature(*row) for row in zip(*columns, strict=True)]
    features = tuple(features[i] for i in worst_first(variance, p))
    differ = int((p <= case.level).sum())
    spread = case.labels.p is not None and case.labels.p <= case.level
    random = not ((differ or spread) and bias.share > tolerance)
    advice = "random"
    if not random and not differ:
        advice = "reports"
    elif not random:
        advice = ("strata", "plain")[case.bags.stratum is None]
    return Diagnosis(
        verdict=_verdict(case, features, differ, bias, random=random),
        random=random,
        advice=ADVICE[advice],
        features=features,
        expected_bias=bias,
        labels=case.labels,
        lone=lone,
        notes=case.table.notes + _note_lone(lone),
        means=means,
    )


def _verdict(
    case: _Case, features: tuple[Feature, ...], differ: int, bias: Bias, *, random: bool
) -> str:
    """The answer in one sentence."""
    worst, count, tested = features[0], len(features), case.labels.p is not None
    spread = case.labels.p is not None and case.labels.p <= case.level
    beyond = []
    if differ:
        which = "the only feature differs"
        if count > 1:
            which = f"{differ} of {count} features differ"
        beyond.append(
            f"{which} between bags beyond chance, most of all {worst.name} ({worst.spread})"
        )
    if spread and (not random or not differ):
        beyond.append("the reports vary more than chance allows")
    off = f"the unbiased estimate of {bias.unit} may be off by up to {bias.limit:.2g}"
    if not random:
        size = f"at {case.bags.size.mean():.4g} instances a bag"
        return f"The bags are not random: {', and '.join(beyond)}; {size} {off}."
    if beyond:
        return f"The bags differ slightly: {beyond[0]}, but {off} only."
    reports = ("; the reports were not tested", ", nor do the reports")[tested]
    return (
        f"The bags look random: none of {count} features differs between bags beyond "
        f"chance{reports}."
    )


def _by_reports_alone(
    labels: Dispersion, level: float, lone: int, notes: tuple[str, ...]
) -> Diagnosis:
    """No feature varies or none was given: the second opinion is the only one."""
    verdict, random, advice = UNSEEN, False, "untested"
    if labels.p is not None:
        random, advice = labels.p > level, ("plain", "random")[labels.p > level]
        verdict = (
            "The bags are not random by their reports alone, which vary more than chance allows.",
            "The bags look random by their reports alone, which vary no more than chance allows.",
        )[random]
    notes = notes + _note_lone(lone)
    return Diagnosis(verdict, random, ADVICE[advice], labels=labels, lone=lone, notes=notes)


def _note_lone(lone: int) -> tuple[str, ...]:
    if not lone:
        return ()
    which = f"{lone} strata have"
    if lone == 1:
        which = "one stratum has"
    return (f"{which} fewer than two reports, and an unbiased evaluation of such is impossible",)
