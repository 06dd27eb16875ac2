"""A diagnosis or a drift in, a matplotlib figure out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from unbag.diagnosis._diagnosis import Diagnosis
    from unbag.diagnosis._drift import Drift

WIDE = 50  # F beyond this goes on a logarithmic scale, or the rest could not be seen
BARS = 12


def draw_diagnosis(diagnosis: Diagnosis) -> Any:
    """F of the worst features, and the bag means of the worst one beside what chance would make of
    them."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    figure.suptitle(_wrapped(diagnosis.verdict), fontsize=9)
    if not diagnosis.features:
        return figure
    left, right = figure.subplots(1, 2)
    shown = diagnosis.features[:BARS][::-1]
    left.barh([f.name[:24] for f in shown], [f.F for f in shown], color="tab:blue")
    left.axvline(1, color="black", linestyle="--", label="random bags")
    if max(f.F for f in shown) > WIDE:
        left.set_xscale("log")
    left.set_xlabel("F: variance between bags / within bags")
    left.legend(fontsize=8)
    _draw_means(right, diagnosis.means, diagnosis.features[0].name)
    return figure


def _draw_means(axes: Any, means: np.ndarray, name: str) -> None:
    edge = max(4.0, float(np.abs(means).max()))
    axes.hist(
        means, bins=np.linspace(-edge, edge, 41), density=True, color="tab:blue", label="these bags"
    )
    z = np.linspace(-edge, edge, 400)
    axes.plot(z, np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi), "k--", label="random bags")
    axes.set_xlabel(f"mean of {name[:24]} in a bag, in standard deviations of chance")
    axes.set_ylabel("density over bags")
    axes.legend(fontsize=8)


def _wrapped(text: str, width: int = 120) -> str:
    import textwrap

    return "\n".join(textwrap.wrap(text, width))


def draw_drift(drift: Drift) -> Any:
    """The prior in each window with its interval, and the prior of all windows."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4), layout="constrained")
    axes = figure.subplots()
    where = np.arange(len(drift.prior))
    for r in range(drift.prior.shape[1] if drift.prior.ndim == 2 else 1):
        prior, low, high, overall = (
            np.asarray(v)[..., r] if drift.prior.ndim == 2 else np.asarray(v)
            for v in (drift.prior, drift.low, drift.high, drift.overall)
        )
        label = f"class {r}" if drift.prior.ndim == 2 else "prior, 95% interval"
        axes.errorbar(
            where,
            prior,
            yerr=[prior - low, high - prior],
            fmt="o",
            capsize=3,
            color=f"C{r}",
            label=label,
        )
        axes.axhline(float(overall), color=f"C{r}", linestyle="--")
    axes.set_xticks(
        where, [str(start) for start in drift.start], rotation=45, ha="right", fontsize=8
    )
    axes.set_xlabel("window, by its first moment")
    axes.set_title(_wrapped(drift.verdict, 100), fontsize=9)
    axes.legend(fontsize=8)
    return figure
