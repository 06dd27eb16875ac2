"""An `Evaluation`: every metric of a model with its interval, and how sums per bag make one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import isfinite, log
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from unbag._lazy import as_html
from unbag._rules import broken, one_of
from unbag.bags import Kind, label_variance
from unbag.losses import Loss
from unbag.metrics._estimate import Estimate, Estimated, Judge, interval
from unbag.metrics._notes import Note
from unbag.metrics._ranks import auc, bands, rank_error
from unbag.metrics._sums import BagSums

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

OF_COUNTS = ("poisson", "square")
BELOW_ZERO = (
    "{} below 0 is no mistake: a term of the counts alone, which no model changes, is left out. "
    "Compare it with that of another model; lower is better."
)
CALLED = {"log": "log_loss", "cross_entropy": "log_loss", "square": "brier"}


class Band(NamedTuple):
    """Instances whose scores lie in a band, or those of one stratum.

    Parameters
    ----------
    low, high : float
        Limits of the score.
    share : float
        Share of all instances.
    prediction : float
        Mean prediction.
    observed : Estimate
        Mean label, estimated from bags.
    stratum : object
        The stratum, if it is one.
    """

    low: float
    high: float
    share: float
    prediction: float
    observed: Estimate
    stratum: Any = None


@dataclass(frozen=True)
class Evaluation:
    """What bags (or labels) say about a model; `evaluation["log_loss"]` is an `Estimate`.

    Parameters
    ----------
    estimates : dict of str to Estimate
        Each metric with its interval, and what the bags are worth in labelled rows.
    calibration : list of Band
        Bands of the score; empty for histograms.
    strata : list of Band
        One for each stratum; empty without strata and for histograms.
    source : {"bags", "cells", "labels"}
        What it was estimated from; cells are those of marginal tables.
    bags, instances : int
        How many bags or cells have a report, and their rows.
    level : float
        Of the intervals.
    notes : tuple of Note
        What could not be estimated or cannot be trusted, and why.
    """

    estimates: dict[str, Estimate]
    calibration: list[Band] = field(repr=False)
    strata: list[Band] = field(repr=False)
    source: Literal["bags", "cells", "labels"]
    bags: int
    instances: int
    level: float
    notes: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> Estimate:
        one_of("A metric", name, self.estimates, " ".join(self.notes))
        return self.estimates[name]

    def __contains__(self, name: object) -> bool:
        return name in self.estimates

    def __iter__(self) -> Iterator[str]:
        return iter(self.estimates)

    _repr_html_ = as_html

    @property
    def trivial_loss(self) -> float | None:
        """The log loss of predicting the mean report p for every event, -p log p - (1 - p)
        log(1 - p); None where one number does not tell it."""
        mean = self.estimates.get("mean_report")
        if mean is None or not 0 < mean.value < 1:
            return None
        return -mean.value * log(mean.value) - (1 - mean.value) * log(1 - mean.value)

    def __str__(self) -> str:
        source = f"{self.bags:,} {self.source}, {self.instances:,} rows"
        if self.source == "cells":
            source = f"{self.bags:,} held-out cells"
        if self.source == "labels":
            source = f"{self.instances:,} labelled rows"
        lines = [f"from {source}; intervals of {self.level:.0%}"]
        for name, estimate in self.estimates.items():
            value, _, low, high, worth = estimate
            line = f"  {name:<23} {value:8.4f}  [{low:.4f}, {high:.4f}]"
            if worth is not None and self.source == "bags":
                line += f"  worth {worth:,.0f} labelled rows"
            lines.append(line)
        below = [name for name in OF_COUNTS if name in self.estimates and self[name].value < 0]
        notes = [*self.notes, *[BELOW_ZERO.format(" and ".join(below))] * bool(below)]
        return "\n".join([*lines, *(f"  note: {note}" for note in notes)])

    def draw(self, axes: Axes) -> None:
        """Draw the calibration on an Axes: observed against predicted, with intervals."""
        from unbag.plots import Series, draw_calibration

        if not self.calibration:
            raise broken(
                "A calibration picture must have bands of a score",
                "class histograms have none",
                "Plot one class against the others, as binary reports.",
            )
        known = [band for band in self.calibration if isfinite(band.observed.value)]
        value, _, low, high, _ = zip(*(band.observed for band in known), strict=True)
        bands = Series("", [band.prediction for band in known], value, low, high)
        draw_calibration(axes, bands, source=self.source)

    def plot(self, path: str | Path | None = None) -> Figure:
        """The calibration as a figure, which is saved when a path is given."""
        from unbag.plots import new_figure

        figure = new_figure(4.6, 4.4)
        axes = figure.subplots()
        self.draw(axes)
        count = len(self.calibration)
        axes.set_title(f"Calibration in {count} bands, intervals of {self.level:.0%}", fontsize=10)
        if path is not None:
            figure.savefig(path, dpi=150)
        return figure


def metric_names(losses: Sequence[Loss], kind: Kind) -> list[str]:
    """What losses are called in an evaluation; a name that comes again is numbered, so that none
    hides another."""
    names = [loss.name for loss in losses]
    if kind != "total":
        names = [CALLED.get(name, name) for name in names]
    before = [names[:i].count(name) for i, name in enumerate(names)]
    return [
        f"{name} {count + 1}".removesuffix(" 1") for name, count in zip(names, before, strict=True)
    ]


def summarise(
    sums: BagSums,
    losses: Sequence[Loss],
    kind: Kind,
    *,
    level: float,
    bands_wanted: int,
    source: Literal["bags", "labels"],
) -> Evaluation:
    """Every metric with its interval.

    Parameters
    ----------
    sums : BagSums
        Sums per bag.
    losses : sequence of Loss
        Those that the sums are of.
    kind : {"binary", "total", "histogram"}
        The kind of report.
    level : float
        Of the intervals.
    bands_wanted : int
        Number of bands of calibration.
    source : {"bags", "labels"}
        What the sums come from.
    """
    judge, n = Judge(sums), sums.size.sum()
    metrics: dict[str, tuple[Estimated, float | None]] = {}
    for i, name in enumerate(metric_names(losses, kind)):
        T, S, Q = sums.T[:, i], sums.S[:, i], sums.Q[:, i]
        one = max(float(Q.sum() / n - (T.sum() / n) ** 2), 0.0)  # both under the reference
        metrics[name] = judge.expectation(T, S, sums.drift[:, i]), one
    notes = []
    if source == "bags":
        notes += _two_reports(judge)
    if kind == "binary":
        reasons = why_no_auc(sums, judge)
        notes += reasons
        if not reasons:
            metrics["auc"] = auc(sums, judge)
            error = rank_error(sums.scores, judge.mean_label(sums).value)
            text = (
                "Scores are many and were put into bins: the AUC is off by at most "
                f"{error:.1e} for it."
            )
            notes += [Note(text, "bins")] * bool(error)
    strata = []
    if kind != "histogram":
        metrics |= _averages(sums, judge, kind)
        strata = _by_stratum(sums, judge, level)
    return Evaluation(
        estimates={
            name: interval(value, judge, level=level, variance_of_one=one)
            for name, (value, one) in metrics.items()
        },
        calibration=[
            Band(*cut[:4], _observed(cut.prediction, cut.gap, judge, level))
            for cut in bands(sums, judge, bands_wanted)
        ],
        strata=strata,
        source=source,
        bags=int(judge.observed.sum()),
        instances=int(judge.k[judge.observed].sum()),
        level=level,
        notes=tuple(notes),
    )


def _two_reports(judge: Judge) -> list[Note]:
    """Two reports lie equally far from their mean, on both sides: what they say of f2 is twice the
    same."""
    pairs = int((judge.count == 2).sum())
    if not pairs:
        return []
    which = f"{pairs} of {judge.strata} strata have two reports"
    if judge.strata == 1:
        which = "There are two reports only"
    text = (
        f"{which}: intervals are too narrow, as two say the same of the losses. Give three or "
        "more, better ten."
    )
    return [Note(text, "two_reports")]


def why_no_auc(sums: BagSums, judge: Judge) -> list[Note]:
    """Why there is no AUC, if so."""
    p = round(judge.mean_label(sums).value, 9) + 0.0
    if len(sums.scores.score) == 0:
        return [Note("AUC and calibration were not asked for.", "no_auc")]
    if np.ptp(sums.scores.score) == 0:
        reason = "all scores are the same"
    elif not -1e-9 <= p <= 1 + 1e-9:
        reason = f"the mean report is estimated at {p:g}, outside 0 to 1. Give more bags"
    elif not 0 < p < 1:
        reason = f"the mean report is {p:g}, so one of the two labels is missing"
    else:
        return []
    return [Note(f"The AUC is not defined: {reason}.", "no_auc")]


def _averages(sums: BagSums, judge: Judge, kind: Kind) -> dict[str, tuple[Estimated, float | None]]:
    """Mean prediction, mean report and their difference."""
    predicted, size = sums.prediction[:, 0], judge.k[:, None]
    report = judge.mean_label(sums)
    missed = judge.expectation(sums.reference[:, 0] - predicted, size)
    one = max(label_variance(report.value, kind), 0.0)
    return {
        "mean_prediction": (judge.expectation(predicted, np.zeros_like(size)), None),
        "mean_report": (report, one),
        "prediction_minus_report": (Estimated(-missed.value, *-missed.parts()), None),
    }


def _observed(prediction: float, gap: Estimated, judge: Judge, level: float) -> Estimate:
    return interval(gap._replace(value=prediction + gap.value), judge, level=level)


def _by_stratum(sums: BagSums, judge: Judge, level: float) -> list[Band]:
    """Mean prediction and mean report of each stratum."""
    if judge.strata == 1:
        return []
    rows = []
    heard = judge.by_report * judge.reported * judge.centred[:, 0]
    n, predicted, reference = (
        judge.by_stratum(values)
        for values in (judge.k, sums.prediction[:, 0], sums.reference[:, 0])
    )
    residual = judge.by_stratum(judge.reported * judge.e[:, 0])
    for stratum, name in enumerate(judge.names.tolist()):
        prediction = float(predicted[stratum] / n[stratum])
        missed = residual[stratum] + (reference[stratum] - predicted[stratum]) / n[stratum]
        psi = np.where(judge.s == stratum, heard, 0.0)
        observed = _observed(prediction, Estimated(float(missed), psi, psi), judge, level)
        share = float(n[stratum] / judge.k.sum())
        rows.append(Band(-np.inf, np.inf, share, prediction, observed, name))
    return rows
