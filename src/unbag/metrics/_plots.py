"""An evaluation in, the calibration picture out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from unbag._rules import broken

if TYPE_CHECKING:
    from unbag.metrics._evaluation import Evaluation


def draw_calibration(evaluation: Evaluation, path: Any = None) -> Any:
    """Observed against predicted in bands of the score, with intervals; a calibrated model lies on
    the diagonal."""
    from matplotlib.figure import Figure

    if not evaluation.calibration:
        raise broken(
            "A calibration picture must have bands of a score",
            "class histograms have none",
            "Plot one class against the others, as binary reports.",
        )
    figure = Figure(figsize=(4.6, 4.4), layout="constrained")
    axes = figure.subplots()
    told = [band for band in evaluation.calibration if np.isfinite(band.observed.value)]
    x = np.array([band.prediction for band in told])
    value, low, high = (
        np.array([getattr(band.observed, part) for band in told])
        for part in ("value", "low", "high")
    )
    reach = max(x.max(), min(value.max(), 1.0)) * 1.08
    axes.plot([0, reach], [0, reach], color="0.7", lw=1, zorder=1)
    axes.errorbar(
        x,
        value,
        [value - low, high - value],
        fmt="o",
        ms=4,
        lw=1.3,
        capsize=2,
        color="#1f5fa8",
        zorder=2,
    )
    axes.set_xlabel("predicted")
    axes.set_ylabel(f"observed, from {evaluation.source}")
    axes.set_xlim(0, reach)
    axes.set_ylim(min(0, 1.1 * low.min()), max(reach, 1.05 * min(high.max(), 1.5)))
    axes.set_title(
        f"Calibration in {len(told)} bands, intervals of {evaluation.level:.0%}", fontsize=10
    )
    axes.spines[["top", "right"]].set_visible(False)
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure
