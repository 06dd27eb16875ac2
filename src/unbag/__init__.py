"""unbag: learning from label proportions. The public names, in the order of the way of the data."""

from unbag import bags, losses, matching, medians, planning, tournaments, weights
from unbag.bags import Bags, as_components, from_rows, random_bags
from unbag.losses import Loss
from unbag.matching import proportion_matching
from unbag.medians import median_of_means
from unbag.tournaments import Tournament, tournament

__version__ = "0.1.0"

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
