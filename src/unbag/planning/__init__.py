"""The paper's theorems as functions: sample sizes, regrets and bag sizes."""

from unbag.planning._curvature import Sandwich, sandwich
from unbag.planning._moments import (
    HistogramSpread,
    ModelSpread,
    Moments,
    bag_variance,
    bounded_spread,
    histogram_variance,
    log_loss_moments,
    measure_spread,
)
from unbag.planning._noise import Noise, best_bag_size, estimate_variance, interval_width
from unbag.planning._rates import (
    Problem,
    bags_needed,
    deviation,
    events,
    histogram_deviation,
    regret_supported,
)

__all__ = [
    "HistogramSpread",
    "ModelSpread",
    "Moments",
    "Noise",
    "Problem",
    "Sandwich",
    "bag_variance",
    "bags_needed",
    "best_bag_size",
    "bounded_spread",
    "deviation",
    "estimate_variance",
    "events",
    "histogram_deviation",
    "histogram_variance",
    "interval_width",
    "log_loss_moments",
    "measure_spread",
    "regret_supported",
    "sandwich",
]
