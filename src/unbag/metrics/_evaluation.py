"""Estimates in, an `Evaluation` out: what is told about a model, with intervals."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from unbag.metrics._intervals import Estimate


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

    def plot(self, path: Any = None) -> Any:
        """The calibration picture: observed against predicted, with intervals; saved when a path is
        given."""
        from unbag.metrics._plots import draw_calibration

        return draw_calibration(self, path)
