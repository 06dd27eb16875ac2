"""What more bags or less noise would bring, by the formulas of `unbag.planning`."""

from __future__ import annotations

from math import isfinite

import numpy as np

from unbag.metrics import Estimate
from unbag.planning import Noise, best_bag_size, interval_width
from unbag.report._numbers import short
from unbag.report._page import Grid, Section, Text
from unbag.report._story import Story

OF_OUTLOOK = (
    "How narrow the interval of the loss would be with other reports on the same sort of events, "
    "by the variance of an estimate from bags: it grows with the size of the bags and with the "
    "noise of their counts, and falls with the number of events."
)


def noise_of(story: Story) -> Noise | None:
    """What the error of an estimate depends on, at the model's own predictions; None where it is
    not known."""
    facts, values = story.facts, story.predictions
    if facts is None or facts.prior is None or values is None or not 0 < facts.prior < 1:
        return None
    h = np.clip(np.asarray(values, float), 1e-6, 1 - 1e-6)
    score = np.log(h / (1 - h))
    if not score.var() > 1e-9:
        return None
    p = facts.prior
    return Noise(p * (1 - p), facts.noise, float(-score.mean()), float(score.var()))


def outlook(story: Story) -> Section | None:
    """The half-width of the interval as it is, and with more bags, less noise or other sizes."""
    noise, evaluation = noise_of(story), story.evaluation
    if noise is None or evaluation is None:
        return None
    one = evaluation.estimates.get("log_loss")
    if one is None or not isfinite(one.high - one.low):
        return None
    n, size = evaluation.instances, evaluation.instances / evaluation.bags
    ways = [("as it is", n, size, noise), ("4 times as many bags", 4 * n, size, noise)]
    if noise.report:
        quarter = noise._replace(report=noise.report / 4)
        ways.append(("half the standard deviation of the noise", n, size, quarter))
        ways.append(("no noise", n, size, noise._replace(report=0.0)))
    ways.append((f"as many events in bags of {size / 2:,.0f}", n, size / 2, noise))
    best = best_bag_size(noise)
    if noise.report and isfinite(best):
        ways.append((f"as many events in bags of {best:,.0f}, the best size", n, best, noise))
    now = interval_width(n, size, noise)
    rows = [
        [name, _reach(one, interval_width(events, k, other) / now), f"{events / k:,.0f}"]
        for name, events, k, other in ways
    ]
    grid = Grid(
        "Interval of the log loss, by the reports", ["reports", "95% interval", "bags"], rows
    )
    return Section("outlook", "What would more bags or less noise bring?", [Text(OF_OUTLOOK), grid])


def _reach(one: Estimate, ratio: float) -> str:
    return f"± {short(ratio * (one.high - one.low) / 2)}"
