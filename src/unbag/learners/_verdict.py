"""A fitted model in, a verdict in words out: better than the prior or not, and how surely."""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING, Any

from scipy import stats

from unbag.metrics import Estimate, Evaluation

if TYPE_CHECKING:
    from unbag.learners._fitted import Fitted

MOST = 5
"""So many columns are named."""


def verdict_of(fitted: Fitted) -> tuple[str, ...]:
    """Sentences on a fitted model: the baseline, whether it is better, level and slope, columns.

    Parameters
    ----------
    fitted : Fitted
        With its evaluation.
    """
    if fitted.evaluation is None or fitted.gain is None:
        return ("There were too few bags to say whether this model is better than the prior.",)
    parts = (
        _baseline(fitted.evaluation),
        _better(fitted.gain, fitted.baseline, fitted.evaluation.source.removesuffix("s")),
        _level(fitted.evaluation, fitted.slope),
        _columns(fitted),
    )
    return tuple(part for part in parts if part)


def _baseline(evaluation: Evaluation) -> str:
    """The loss of the prior beside that of the model, where one number tells both."""
    known = evaluation.estimates
    if "log_loss" not in known or "mean_report" not in known:
        return ""
    p = known["mean_report"].value
    if not 0 < p < 1:
        return ""
    prior = -p * log(p) - (1 - p) * log(1 - p)
    return (
        f"Log loss {_range(known['log_loss'])}; always predicting the mean report, {p:.4f}, has "
        f"{prior:.4f}."
    )


def _better(gain: Estimate, other: str, thing: str) -> str:
    words = f"{gain.value:+.3f} nats a {thing}, from {gain.low:+.3f} to {gain.high:+.3f}"
    if gain.low > 0:
        chance = float(stats.norm.sf(gain.value / gain.error))
        return (
            f"The model is better than {other}: it makes reports of {thing}s that it did not see "
            f"likelier ({words}; by chance this would happen {_odds(chance)})."
        )
    if gain.high < 0:
        return f"The model is worse than {other}: it makes unseen reports less likely ({words})."
    return (
        f"These {thing}s cannot tell whether the model is better than {other}: reports that it "
        f"did not see are about as likely ({words}). Ask for more {thing}s, smaller ones, or less "
        "noise."
    )


def _odds(chance: float) -> str:
    if chance < 1e-6:
        return "less than once in a million times"
    return f"about once in {1 / chance:,.0f} times"


def _level(evaluation: Evaluation, slope: Estimate | None) -> str:
    parts = []
    gap = evaluation.estimates.get("prediction_minus_report")
    if gap is not None:
        mean = evaluation["mean_prediction"].value
        parts.append(f"mean prediction {mean:.4f}, {gap.value:+.4f} beside the reports")
    if slope is not None:
        parts.append(f"slope {_range(slope)} (1 is right; below 1 the model is too sure)")
    if not parts:
        return ""
    return f"Level and slope: {'; '.join(parts)}."


def _columns(fitted: Fitted) -> str:
    """The columns that move the score of the additive model the most."""
    model: Any = fitted.models.get("additive")
    if model is None or not fitted.weights["additive"]:
        return ""
    effects = [effect for effect in model.effects() if effect.strength > 0][:MOST]
    if not effects:
        return ""
    listed = ", ".join(f"{effect.name} {effect.strength:.2f}" for effect in effects)
    return f"Columns that matter most (standard deviation of their effect on the score): {listed}."


def _range(estimate: Estimate) -> str:
    return f"{estimate.value:.4f} [{estimate.low:.4f}, {estimate.high:.4f}]"
