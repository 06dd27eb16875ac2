"""Measured quantities in, sample sizes, regrets and bag sizes out: the paper's theorems as
functions.

`rates` answers how many bags and which regret, `curvature` finds the constants of the fast rate,
`measuring` takes the quantities from data, `noisy` says which bag size and how wide an interval
under noise.
"""

from unbag.planning._curvature import Sandwich, sandwich
from unbag.planning._moments import (
    HistogramSpread,
    Moments,
    Spread,
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
    "Moments",
    "Noise",
    "Problem",
    "Sandwich",
    "Spread",
    "bags_needed",
    "best_bag_size",
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
