"""The additive model by evidence: terms of columns, moments of counts, evidence, posterior.

A number is a line and steps, a category a coefficient for each level; each column has a variance
of its own, chosen by the evidence of the bags' counts.
"""

from unbag.additive._identification import Identified, RankedTable, identifiable, rank_tables
from unbag.additive._model import Additive, AdditiveModel, Effect
from unbag.additive._sums import (
    BagPart,
    LocalParts,
    RayParts,
    SparkParts,
    SumsFit,
    fit_parts,
    narrow_part,
    stored_part,
)
from unbag.additive._terms import MOST_BUCKETS, MOST_LEVELS, DataWarning, Terms, terms_of

__all__ = [
    "MOST_BUCKETS",
    "MOST_LEVELS",
    "Additive",
    "AdditiveModel",
    "BagPart",
    "DataWarning",
    "Effect",
    "Identified",
    "LocalParts",
    "RankedTable",
    "RayParts",
    "SparkParts",
    "SumsFit",
    "Terms",
    "fit_parts",
    "identifiable",
    "narrow_part",
    "rank_tables",
    "stored_part",
    "terms_of",
]
