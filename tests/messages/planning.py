"""Bad input of planning, and the whole message that it gets."""

from cases.planning import SPREAD
from unbag import losses, planning
from unbag.losses import from_callable
from unbag.planning import HistogramSpread, Problem, Sandwich, sandwich

OF_CLASSES = Problem(10, 8, HistogramSpread(1, 1), classes=3)

MESSAGES = [
    (
        lambda: planning.bag_variance(-1.0),
        "f2, the mean of a square, must not be negative: -1 given. Give E[f2(h(x))^2] of a model.",
    ),
    (
        lambda: planning.bags_needed(0, Problem(10, 8, SPREAD)),
        "beta must be positive: 0 given. It is the regret that you can accept.",
    ),
    (
        lambda: planning.bags_needed(1e-9, Problem(10, 8, SPREAD)),
        (
            "Planning must end below 1e+15: no number of bags that large is enough. Allow a larger "
            "beta."
        ),
    ),
    (
        lambda: planning.bags_needed(0.1, OF_CLASSES, curvature=Sandwich(1, 1, 1, 1)),
        "The fast rate must have binary or total reports: full histograms given, for which the "
        "paper proves none. Leave curvature out.",
    ),
    (
        lambda: planning.bags_needed(0.1, Problem(12, 8, SPREAD), curvature=sandwich(losses.log)),
        "The fast rate must have a loss that is curved: c1 = 0 and c2 = 0 given. Bound the "
        "scores, as in sandwich(loss, (-5, 5)), or leave curvature out.",
    ),
    (
        lambda: sandwich(losses.log, (2, -2)),
        "A range of scores must go from low to high: (2, -2) given. Use (-5, 5), say.",
    ),
    (
        lambda: planning.bounded_spread(losses.log, (2, -2)),
        "A range of scores must go from low to high: (2, -2) given. Use (-5, 5), say.",
    ),
    (
        lambda: sandwich(losses.cross_entropy, (-2, 2), kind="histogram"),
        "A kind of report with known constants must be one of binary, total: 'histogram' given. "
        "The paper has none for full histograms.",
    ),
    (
        lambda: planning.bounded_spread(losses.brier, kind="histogram"),
        "A kind of report with known constants must be one of binary, total: 'histogram' given. "
        "The paper has none for full histograms.",
    ),
    (
        lambda: sandwich(from_callable(lambda z, y: abs(y - z)), (-2, 2)),
        "The sandwich must have a proper loss, best where it predicts the mean label: your loss "
        "is not. Use log or square, or poisson for totals.",
    ),
    (
        lambda: planning.histogram_variance(3),
        "Either bound or sigma must be given: both or neither given. Bounded losses have a bound.",
    ),
]  # fmt: skip
