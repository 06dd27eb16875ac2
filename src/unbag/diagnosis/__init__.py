"""Are bags random, what bias would result, does the prior drift? No label is used.

`diagnose` and `drift` are the doors; `between_bags` is the analysis of variance behind them.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unbag.diagnosis._bias import Bias as Bias
    from unbag.diagnosis._bias import Dispersion as Dispersion
    from unbag.diagnosis._diagnosis import BagsNotRandom as BagsNotRandom
    from unbag.diagnosis._diagnosis import Diagnosis as Diagnosis
    from unbag.diagnosis._diagnosis import Feature as Feature
    from unbag.diagnosis._diagnosis import diagnose as diagnose
    from unbag.diagnosis._drift import Drift as Drift
    from unbag.diagnosis._drift import drift as drift
    from unbag.diagnosis._variance import between_bags as between_bags
else:
    from unbag._lazy import attach

    __getattr__, __dir__, __all__ = attach(__name__)
