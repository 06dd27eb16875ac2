"""Estimates in, an `Evaluation` out: what is told about a model, with intervals."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from unbag._rules import broken
from unbag.metrics._intervals import Estimate
from unbag.plots import Series, draw_calibration, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Band(NamedTuple):
    """Instances whose scores lie in [low, high] (or those of one stratum): predicted and observed
    mean label."""

    low: float
    high: float
    share: float
    prediction: float
    observed: Estimate
    stratum: Any = None


@dataclass(frozen=True)
class Evaluation:
    """What bags (or labels) say about a model.

    `evaluation["log_loss"]` is an `Estimate`: value, error, low, high, and `worth`, the number of
    labelled rows that would give an interval of the same width. calibration : bands of the score.
    strata : one band for each stratum (calibration and strata are empty for histograms).
    notes : what could not be said or cannot be trusted, and why.
    """

    estimates: dict[str, Estimate]
    calibration: list[Band] = field(repr=False)
    strata: list[Band] = field(repr=False)
    source: Literal["bags", "labels"]
    bags: int
    instances: int
    level: float
    notes: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> Estimate:
        if name not in self.estimates:
            raise ValueError(
                f"A metric must be one of {', '.join(self.estimates)}: {name!r} came. {' '.join(self.notes)}".rstrip()
            )
        return self.estimates[name]

    def __str__(self) -> str:
        n = (
            f"{self.instances:,} labelled rows"
            if self.source == "labels"
            else f"{self.bags:,} bags, {self.instances:,} rows"
        )
        lines = [f"from {n}; intervals of {self.level:.0%}"]
        for name, estimate in self.estimates.items():
            worth = (
                ""
                if estimate.worth is None or self.source == "labels"
                else f"  worth {estimate.worth:,.0f} labelled rows"
            )
            lines.append(
                f"  {name:<23} {estimate.value:8.4f}  [{estimate.low:.4f}, "
                f"{estimate.high:.4f}]{worth}"
            )
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])

    def draw(self, axes: Axes) -> None:
        """Draw the calibration on an Axes: observed against predicted, with intervals."""
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
        figure = new_figure(4.6, 4.4)
        axes = figure.subplots()
        self.draw(axes)
        count = len(self.calibration)
        axes.set_title(f"Calibration in {count} bands, intervals of {self.level:.0%}", fontsize=10)
        if path is not None:
            figure.savefig(path, dpi=150)
        return figure
