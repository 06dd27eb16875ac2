"""Sums per bag in, an `Evaluation` out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from unbag.bags import Kind, label_variance
from unbag.losses import Loss
from unbag.metrics._estimate import Estimated, Judge
from unbag.metrics._evaluation import Band, Evaluation
from unbag.metrics._intervals import Estimate, interval
from unbag.metrics._ranks import auc, bands, prior
from unbag.metrics._sums import Sums

CALLED = {"log": "log_loss", "cross_entropy": "log_loss", "square": "brier"}


def names_of(losses: Sequence[Loss], kind: Kind) -> list[str]:
    """What losses are called in an evaluation; a name that comes again is numbered, so that none
    hides another."""
    names = [loss.name if kind == "total" else CALLED.get(loss.name, loss.name) for loss in losses]
    before = [names[:i].count(name) for i, name in enumerate(names)]
    return [
        f"{name} {count + 1}" if count else name for name, count in zip(names, before, strict=True)
    ]


def summarise(
    sums: Sums,
    judge: Judge,
    losses: Sequence[Loss],
    kind: Kind,
    level: float,
    count: int,
    source: Any,
) -> Evaluation:
    """Every metric with its interval."""
    n = judge.k.sum()
    found: dict[str, Estimate] = {}
    for i, name in enumerate(names_of(losses, kind)):
        value = judge.expectation(sums.T[:, i], sums.S[:, i], sums.drift[:, i])
        one = max(
            float(sums.Q[:, i].sum() / n - (sums.T[:, i].sum() / n) ** 2), 0.0
        )  # both under the reference
        found[name] = interval(value, judge, level=level, variance_of_one=one)
    notes = _pairs_of_reports(judge) if source == "bags" else []
    if kind == "binary":
        why = why_no_auc(sums, judge)
        notes += [why] if why else []
        if not why:
            value, one = auc(sums, judge)
            found["auc"] = interval(value, judge, level=level, variance_of_one=one)
    if kind != "histogram":
        found |= _averages(sums, judge, level, kind)
    cuts = bands(sums, judge, count) if len(sums.scores.score) else []
    return Evaluation(
        estimates=found,
        calibration=[
            Band(c.low, c.high, c.share, c.prediction, _observed(c.prediction, c.gap, judge, level))
            for c in cuts
        ],
        strata=_by_stratum(sums, judge, level) if judge.strata > 1 and kind != "histogram" else [],
        source=source,
        bags=int(judge.observed.sum()),
        instances=int(judge.k[judge.observed].sum()),
        level=level,
        notes=tuple(notes),
    )


def _pairs_of_reports(judge: Judge) -> list[str]:
    """Two reports lie equally far from their mean, on both sides: what they say of f2 is twice the
    same."""
    pairs = int((np.bincount(judge.s, weights=judge.observed) == 2).sum())
    if not pairs:
        return []
    which = (
        "There are two reports only"
        if judge.strata == 1
        else f"{pairs} of {judge.strata} strata have two reports"
    )
    return [
        f"{which}: intervals are too narrow, as two say the same of the losses. Give three or more, better ten."
    ]


def why_no_auc(sums: Sums, judge: Judge) -> str | None:
    """Why there is no AUC, if so."""
    if len(sums.scores.score) == 0:
        return "AUC and calibration were not asked for."
    if len(np.unique(sums.scores.score)) < 2:
        return "The AUC is not defined: all scores are the same."
    p = round(prior(sums, judge).value, 9) + 0.0
    if not -1e-9 <= p <= 1 + 1e-9:
        return f"The AUC is not defined: the mean report is estimated at {p:g}, outside 0 to 1. Give more bags."
    if not 0 < p < 1:
        return f"The AUC is not defined: the mean report is {p:g}, so one of the two labels is missing."
    return None


def _averages(sums: Sums, judge: Judge, level: float, kind: Kind) -> dict[str, Estimate]:
    """Mean prediction, mean report and their difference."""
    zero = np.zeros((len(judge.k), 1))
    prediction = judge.expectation(sums.prediction[:, 0], zero)
    report = judge.expectation(sums.reference[:, 0], np.ones_like(zero) * judge.k[:, None])
    missed = judge.expectation(
        sums.reference[:, 0] - sums.prediction[:, 0], np.ones_like(zero) * judge.k[:, None]
    )
    gap = Estimated(-missed.value, *-missed.parts())
    p = report.value
    told = {"mean_prediction": prediction, "mean_report": report, "prediction_minus_report": gap}
    one = {"mean_report": max(label_variance(p, kind), 0.0)}
    return {
        name: interval(v, judge, level=level, variance_of_one=one.get(name))
        for name, v in told.items()
    }


def _observed(prediction: float, gap: Estimated, judge: Judge, level: float) -> Estimate:
    return interval(gap._replace(value=prediction + gap.value), judge, level=level)


def _by_stratum(sums: Sums, judge: Judge, level: float) -> list[Band]:
    """Mean prediction and mean report of each stratum."""
    told = []
    for stratum, name in enumerate(judge.names.tolist()):
        inside = judge.s == stratum
        n = judge.k[inside].sum()
        prediction = float(sums.prediction[inside, 0].sum() / n)
        centred = np.where(judge.observed, judge.e[:, 0] - judge.residual[:, 0], 0.0)
        missed = float(
            judge.residual[inside][0, 0] + (sums.reference - sums.prediction)[inside, 0].sum() / n
        )
        psi = np.where(inside, judge.by_report * judge.seen * centred, 0.0)
        gap = Estimated(missed, psi, psi)
        share = float(n / judge.k.sum())
        told.append(
            Band(-np.inf, np.inf, share, prediction, _observed(prediction, gap, judge, level), name)
        )
    return told
