"""unbag: learning from label proportions. The public names, in the order of the way of the data."""

from importlib import import_module as _import_module
from typing import Any

from unbag import bags, losses, matching, medians, planning, tournaments, weights
from unbag.bags import Bags, as_components, from_rows, random_bags
from unbag.losses import Loss
from unbag.matching import proportion_matching
from unbag.medians import median_of_means
from unbag.tournaments import Tournament, tournament

__version__ = "0.1.0"

# what needs JAX is imported when it is asked for
_LATER = {"models": "unbag.models", "likelihood": "unbag.likelihood", "training": "unbag.training"}
_LATER_NAMES = {"train": "unbag.training", "sweep": "unbag.training", "Run": "unbag.training"}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return _import_module(_LATER[name])
    if name in _LATER_NAMES:
        return getattr(_import_module(_LATER_NAMES[name]), name)
    raise AttributeError(f"module 'unbag' has no attribute {name!r}")


__all__ = [
    "Bags",
    "Loss",
    "Tournament",
    "as_components",
    "bags",
    "from_rows",
    "losses",
    "matching",
    "median_of_means",
    "medians",
    "planning",
    "proportion_matching",
    "random_bags",
    "tournament",
    "tournaments",
    "weights",
]
