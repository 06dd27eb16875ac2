"""What bags say of a model in, a verdict in words out: better than the prior or not, how surely,
and what to do next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any, Literal

import numpy as np
from scipy import special

from unbag.bags import Bags
from unbag.learners._combine import offset_of, slope_of, trivial_level
from unbag.metrics import Estimate, Evaluation, evaluate_counts

MOST = 5  # so many columns are named
OFFSET_ALONE = "the old score (or exposure) alone, at the right level"
# intervals of an AUC and of a slope that say nothing; that of an AUC may lie outside [0, 1]
WIDE, STEEP = 0.5, 10.0
MANY_TIMES = 100  # beyond so many times the bags, more bags are no advice

Answer = Literal["better", "unsure", "worse", "unknown"]
Step = Literal["predict", "recalibrate", "more", "other"]


@dataclass(frozen=True)
class Verdict:
    """Sentences on a model, from bags that it did not learn from.

    Parameters
    ----------
    answer : {"better", "unsure", "worse", "unknown"}
        Than always predicting the prior.
    sentences : tuple of str
        The first alone tells whether the model is of use.
    step : {"predict", "recalibrate", "more", "other"}
        What to do next: use the model, repair its level and slope, get more bags, or look for
        other columns.
    """

    answer: Answer
    sentences: tuple[str, ...]
    step: Step

    @property
    def headline(self) -> str:
        """One sentence, to be pasted into a mail."""
        return self.sentences[0]

    def __iter__(self) -> Iterator[str]:
        return iter(self.sentences)

    def __str__(self) -> str:
        first = self.headline
        if self.answer != "better":
            first = f"warning: {first}"
        return "\n".join([first, *self.sentences[1:]])


TOO_FEW = Verdict(
    "unknown",
    (
        "There are too few bags to say whether this model is better than always predicting the "
        "prior: do not rely on it.",
        "Next: ask for reports of more bags.",
    ),
    "more",
)


def verdict_of(
    evaluation: Evaluation | None,
    gain: Estimate | None,
    *,
    slope: Estimate | None = None,
    worth: float | None = None,
    baseline: str = "the prior",
    strengths: Mapping[str, float] | None = None,
) -> Verdict:
    """Whether a model is of use, in sentences.

    Parameters
    ----------
    evaluation : Evaluation or None
        From bags that it did not learn from.
    gain : Estimate or None
        By how many nats a bag's report is likelier than by the baseline.
    slope : Estimate, optional
        By how much the scores should be stretched; 1 is right.
    worth : float, optional
        What the bags are worth in labelled rows; see `labelled_rows`.
    baseline : str
        What the gain is over.
    strengths : mapping, optional
        Of each column the standard deviation of its effect on the score.
    """
    if evaluation is None or gain is None:
        return TOO_FEW
    answer: Answer = "unsure"
    if gain.low > 0:
        answer = "better"
    elif gain.high < 0:
        answer = "worse"
    mean, step = evaluation.estimates.get("mean_report"), _step(evaluation, gain, slope)
    if baseline == "the prior":
        baseline = "always predicting the prior"
        if mean is not None:
            baseline += f", {mean.value:.4f}"
    parts = (
        _headline(answer, baseline, gain, evaluation.source),
        _evidence(evaluation, gain),
        _level(evaluation, slope),
        _worth(evaluation, worth),
        _columns(strengths or {}),
        _next(step, evaluation, gain),
    )
    return Verdict(answer, tuple(part for part in parts if part), step)


def judge(
    score: np.ndarray,
    bags: Bags,
    evaluation: Evaluation,
    *,
    strengths: Mapping[str, float] | None = None,
) -> Verdict:
    """The verdict on any model, from its scores of bags that it did not learn from.

    Parameters
    ----------
    score : numpy.ndarray
        Of each row, with its offset.
    bags : Bags
        With observed reports.
    evaluation : Evaluation
        What these bags say of the model.
    strengths : mapping, optional
        Of each column the standard deviation of its effect on the score.
    """
    offset, baseline = offset_of(bags), "the prior"
    if bags.offset is not None:
        baseline = OFFSET_ALONE
    trivial = np.broadcast_to(trivial_level(bags) + offset, score.shape)
    gain = evaluate_counts(score, bags, trivial=trivial)["gain_over_prior"]
    slope, worth = slope_of(score - offset, bags), labelled_rows(score, bags)
    known = {"slope": slope, "worth": worth, "baseline": baseline}
    return verdict_of(evaluation, gain, strengths=strengths, **known)


def labelled_rows(score: np.ndarray, bags: Bags) -> float | None:
    """How many labelled rows say as much of the slope of a score as the reports do.

    With v the variance of a label, u its sum over a bag, J the sum of v times the centred score
    and V = u + noise, the reports know C - B^2 / A of the slope when the level is learned as well,
    A = sum u^2 / V, B = sum u J / V, C = sum J^2 / V; one row knows the mean of v times the squared
    score. An exact report of a random bag is worth about one row, whatever its size. Strata have a
    level each: what they differ by is known much better, and would hide what is not.

    Parameters
    ----------
    score : numpy.ndarray
        Of each row.
    bags : Bags
        With observed reports.

    Returns
    -------
    float or None
        None for histograms, and where all scores are the same.

    >>> rng = np.random.default_rng(0)
    >>> bags = Bags(np.repeat(np.arange(500), 20), np.full(500, 0.5))
    >>> 400 < labelled_rows(rng.normal(size=10_000), bags) < 600
    True
    """
    if bags.kind == "histogram":
        return None
    h = special.expit(score) if bags.kind == "binary" else np.exp(score)
    v = h * (1 - h) if bags.kind == "binary" else h
    stratum = np.unique(bags.stratum_or_zero, return_inverse=True)[1]
    of_row = stratum[bags.bag]
    away = score - (np.bincount(of_row, v * score) / np.bincount(of_row, v))[of_row]
    one = float(np.mean(v * away**2))
    if not one > 0:
        return None
    u, J = (np.bincount(bags.bag, weights=w, minlength=len(bags)) for w in (v, v * away))
    V = u + bags.noise_or_zero
    A, B, C = (np.bincount(stratum, x / V) for x in (u**2, u * J, J**2))
    return float(np.sum(C - B**2 / A)) / one


def column_strengths(scores: Any, table: Any, *, rows: int = 1000, seed: int = 0) -> dict:
    """How much each column moves the score of any model: the strongest first.

    A column is shuffled, and half the mean squared change of the score is the variance of its
    effect; for an additive model this is exact.

    Parameters
    ----------
    scores : callable
        From a table to the score of each row.
    table : pyarrow.Table
        Rows as the model was given them.
    rows : int
        How many of them to look at.
    seed : int
        Of the shuffles.
    """
    rng = np.random.default_rng(seed)
    some = table.take(np.sort(rng.permutation(table.num_rows)[:rows]))
    before, strength = np.asarray(scores(some), float), {}
    for i, name in enumerate(some.column_names):
        shuffled = some.set_column(i, name, some[name].take(rng.permutation(some.num_rows)))
        change = np.asarray(scores(shuffled), float) - before
        strength[name] = float(np.sqrt(np.mean(change**2) / 2))
    return dict(sorted(strength.items(), key=lambda item: -item[1]))


def _step(evaluation: Evaluation, gain: Estimate, slope: Estimate | None) -> Step:
    if gain.low <= 0 < gain.value and _times(gain) <= MANY_TIMES:
        return "more"
    if gain.low <= 0:
        return "other"
    gap = evaluation.estimates.get("prediction_minus_report")
    off = [(gap, 0.0), (slope, 1.0)]
    if any(one is not None and not one.low <= right <= one.high for one, right in off):
        return "recalibrate"
    return "predict"


def _headline(answer: Answer, baseline: str, gain: Estimate, things: str) -> str:
    if answer == "better":
        odds = "less than once in a million times"
        chance = float(special.ndtr(-gain.value / max(gain.error, 1e-300)))
        if chance >= 1e-6:  # to one digit: the tail of a normal distribution is rough
            odds = f"about once in {float(f'{1 / chance:.1g}'):,.0f} times"
        return f"The model is better than {baseline} (by chance it would look so {odds})."
    if answer == "worse":
        return f"The model is worse than {baseline}: do not use it."
    return (
        f"These {things} cannot tell whether the model is better than {baseline}: do not rely on "
        "it yet."
    )


def _evidence(evaluation: Evaluation, gain: Estimate) -> str:
    known, parts, thing = evaluation.estimates, [], evaluation.source.removesuffix("s")
    if "log_loss" in known:
        parts.append(f"log loss {_range(known['log_loss'])}")
        trivial = evaluation.trivial_loss
        if trivial is not None:
            inside = known["log_loss"].low <= trivial <= known["log_loss"].high
            parts[0] += f", of the prior {trivial:.4f}{', which the interval contains' * inside}"
    auc = known.get("auc")
    if auc is not None and auc.high - auc.low > WIDE:
        parts.append(f"AUC not known: these {evaluation.source} leave it anywhere")
    elif auc is not None:
        parts.append(f"AUC {_range(auc)} (0.5 is chance)")
    parts.append(f"reports that it did not see are likelier by {_range(gain)} nats a {thing}")
    return f"Evidence: {'; '.join(parts)}."


def _level(evaluation: Evaluation, slope: Estimate | None) -> str:
    parts = []
    gap = evaluation.estimates.get("prediction_minus_report")
    if gap is not None:
        off = ", which is not chance" * (not gap.low <= 0 <= gap.high)
        mean = evaluation["mean_prediction"].value
        parts.append(f"mean prediction {mean:.4f}, {_range(gap, '+')} beside the reports{off}")
    if slope is not None and slope.high - slope.low > STEEP:
        parts.append(f"slope not known: these {evaluation.source} leave it anywhere")
    elif slope is not None and np.isfinite(slope.error):
        parts.append(f"slope {_range(slope)} (1 is right; below 1 the model is too sure)")
    return f"Level and slope: {'; '.join(parts)}." * bool(parts)


def _worth(evaluation: Evaluation, worth: float | None) -> str:
    if worth is None:
        return ""
    return (
        f"Worth: for learning effects, these {evaluation.bags:,} {evaluation.source} say about as "
        f"much as {worth:,.0f} labelled rows."
    )


def _columns(strengths: Mapping[str, float]) -> str:
    strongest = sorted(strengths.items(), key=lambda item: -item[1])[:MOST]
    listed = ", ".join(f"{name} {strength:.2f}" for name, strength in strongest if strength > 0)
    if not listed:
        return ""
    return f"Columns that matter most (standard deviation of their effect on the score): {listed}."


def _next(step: Step, evaluation: Evaluation, gain: Estimate) -> str:
    if step == "predict":
        return "Next: predict new events."
    if step == "recalibrate":
        return "Next: correct level and slope with the further reports, then predict."
    if step == "more":
        return (
            f"Next: ask for more {evaluation.source}, smaller ones, or less noise; about "
            f"{_times(gain)} times as many ({_times(gain) * evaluation.bags:,}) would settle it, "
            "if the estimate is right."
        )
    return (
        "Next: look for columns that have to do with the label, or ask for many more reports, "
        "smaller bags, or less noise."
    )


def _times(gain: Estimate) -> int:
    """By how much more bags the interval of the gain would clear 0."""
    return max(2, ceil(((gain.high - gain.low) / 2 / max(gain.value, 1e-12)) ** 2))


def _range(estimate: Estimate, sign: str = "") -> str:
    value, low, high = (f"{x:{sign}.4f}" for x in (estimate.value, estimate.low, estimate.high))
    return f"{value} [{low}, {high}]"
