"""Are bags random, what bias would result, does the prior drift? No label is used.

`diagnose` and `drift` are the doors; `between_bags` is the analysis of variance behind them.
"""

from unbag.diagnosis._bias import Bias, Dispersion
from unbag.diagnosis._diagnosis import BagsNotRandom, Diagnosis, Feature
from unbag.diagnosis._drift import Drift, drift
from unbag.diagnosis._variance import Variance, between_bags
from unbag.diagnosis._verdict import diagnose, refuse_single_bags

__all__ = [
    "BagsNotRandom",
    "Bias",
    "Diagnosis",
    "Dispersion",
    "Drift",
    "Feature",
    "Variance",
    "between_bags",
    "diagnose",
    "drift",
    "refuse_single_bags",
]
