"""unbag: learning from label proportions. The public names, in the order of the way of the data."""

from unbag import bags, losses, matching, weights
from unbag.bags import Bags, as_components, from_rows, random_bags
from unbag.losses import Loss
from unbag.matching import proportion_matching

__version__ = "0.1.0"

__all__ = [
    "Bags",
    "Loss",
    "as_components",
    "bags",
    "from_rows",
    "losses",
    "matching",
    "proportion_matching",
    "random_bags",
    "weights",
]
