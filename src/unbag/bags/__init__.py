"""Rows and reports in, `Bags` out: who is in which bag, what each bag reported, and the prior.

`holding` is what bags are, `checking` what they must be, `making` how they come about, `designing`
who shall be in which, `batching` how an epoch visits them.
"""

from unbag.bags._bags import Bags, Components, Kind, as_components
from unbag.bags._build import from_rows, random_bags
from unbag.bags._design import design_bags, stable_hash
from unbag.bags._rules import Status

__all__ = [
    "Bags",
    "Components",
    "Kind",
    "Status",
    "as_components",
    "design_bags",
    "from_rows",
    "random_bags",
    "stable_hash",
]
