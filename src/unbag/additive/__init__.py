"""The additive model by evidence: terms of columns, moments of counts, evidence, posterior.

A number is a line and steps, a category a coefficient for each level; each column has a variance
of its own, chosen by the evidence of the bags' counts.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unbag.additive._identification import Identified as Identified
    from unbag.additive._identification import RankedTable as RankedTable
    from unbag.additive._identification import identifiable as identifiable
    from unbag.additive._identification import rank_tables as rank_tables
    from unbag.additive._model import Additive as Additive
    from unbag.additive._model import AdditiveModel as AdditiveModel
    from unbag.additive._model import Effect as Effect
    from unbag.additive._sums import BagPart as BagPart
    from unbag.additive._sums import LocalParts as LocalParts
    from unbag.additive._sums import RayParts as RayParts
    from unbag.additive._sums import SparkParts as SparkParts
    from unbag.additive._sums import SumsFit as SumsFit
    from unbag.additive._sums import fit_parts as fit_parts
    from unbag.additive._sums import narrow_part as narrow_part
    from unbag.additive._sums import stored_part as stored_part
    from unbag.additive._terms import MOST_BUCKETS as MOST_BUCKETS
    from unbag.additive._terms import MOST_LEVELS as MOST_LEVELS
    from unbag.additive._terms import DataWarning as DataWarning
    from unbag.additive._terms import Terms as Terms
    from unbag.additive._terms import spread_and_tail as spread_and_tail
    from unbag.additive._terms import terms_of as terms_of
else:
    from unbag._lazy import attach

    __getattr__, __dir__, __all__ = attach(__name__)
