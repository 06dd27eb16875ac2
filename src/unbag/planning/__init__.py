"""The paper's theorems as functions: sample sizes, regrets and bag sizes."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unbag.planning._moments import HistogramSpread as HistogramSpread
    from unbag.planning._moments import ModelSpread as ModelSpread
    from unbag.planning._moments import Noise as Noise
    from unbag.planning._moments import Sandwich as Sandwich
    from unbag.planning._moments import bag_variance as bag_variance
    from unbag.planning._moments import best_bag_size as best_bag_size
    from unbag.planning._moments import bounded_spread as bounded_spread
    from unbag.planning._moments import estimate_variance as estimate_variance
    from unbag.planning._moments import histogram_variance as histogram_variance
    from unbag.planning._moments import interval_width as interval_width
    from unbag.planning._moments import sandwich as sandwich
    from unbag.planning._rates import Problem as Problem
    from unbag.planning._rates import bags_needed as bags_needed
    from unbag.planning._rates import events as events
    from unbag.planning._rates import regret_supported as regret_supported
else:
    from unbag._lazy import attach

    __getattr__, __dir__, __all__ = attach(__name__)
