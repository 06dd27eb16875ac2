"""Objectives of other papers: from the scores of a padded batch to the value that training lowers.

Each is a function of (score, batch, ask) in JAX, for binary reports; `unbag.methods.METHODS` has
their names, so `unbag.train(model, bags, "llp_fc")`, `NetworkLearner(method="llp_fc")` and
`BagClassifier(method="llp_fc")` take them like our own. Rows where `batch.real` is false and bags
of weight 0 are padding or held out, and do not count. `ask` is what an objective may ask of the
model beyond its scores (`Ask`).
"""

from collections.abc import Callable, Mapping
from typing import Any

from unbag.objectives._ask import Ask
from unbag.objectives._consistency import llp_vat
from unbag.objectives._label_noise import llp_fc
from unbag.objectives._mixing import mixbag
from unbag.objectives._moments import count_profiles, moments
from unbag.objectives._square import centred_square, clipped_square, debiased_square

OBJECTIVES: Mapping[str, Callable[[Any, Any, Ask], Any]] = {
    objective.__name__: objective
    for objective in (
        debiased_square,
        centred_square,
        clipped_square,
        moments,
        llp_fc,
        llp_vat,
        mixbag,
    )
}
"""By the names of the table of methods."""

__all__ = [
    "OBJECTIVES",
    "Ask",
    "centred_square",
    "clipped_square",
    "count_profiles",
    "debiased_square",
    "llp_fc",
    "llp_vat",
    "mixbag",
    "moments",
]
