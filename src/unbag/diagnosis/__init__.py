"""Bags in, a verdict out: are they random, what bias would result, does the prior drift? No label
is used.

`reading` turns features into numbers, `variance` compares them across bags, `testing` corrects for
many features, `bias` says what follows, `deciding` what to do, `drifting` looks at time, `drawing`
makes pictures.
"""

from unbag.diagnosis._bias import Bias, Dispersion
from unbag.diagnosis._diagnosis import BagsNotRandom, Diagnosis, Feature
from unbag.diagnosis._drift import Drift, drift
from unbag.diagnosis._verdict import diagnose, refuse_single_bags

__all__ = [
    "BagsNotRandom",
    "Bias",
    "Diagnosis",
    "Dispersion",
    "Drift",
    "Feature",
    "diagnose",
    "drift",
    "refuse_single_bags",
]
