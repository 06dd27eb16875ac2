"""Learners: bags in, a fitted model out, all behind one protocol.

`fit` cross-fits, combines and judges the learners of the table `LEARNERS`.
"""

from typing import TYPE_CHECKING, Any

from unbag.additive import (
    Additive,
    AdditiveModel,
    BagPart,
    DataWarning,
    Effect,
    Identified,
    LocalParts,
    RankedTable,
    RayParts,
    SparkParts,
    Terms,
    fit_parts,
    identifiable,
    narrow_part,
    rank_tables,
    terms_of,
)
from unbag.learners._combine import Combination, combine
from unbag.learners._files import FittedFiles, fit_files
from unbag.learners._fit import fit
from unbag.learners._fitted import Fitted
from unbag.learners._folds import FoldFit, FoldLearner, fit_folds, folds_of
from unbag.learners._held_cells import evaluate_cells
from unbag.learners._labels import BagsWithLabels, with_labels
from unbag.learners._protocol import Learner, Model, Progress
from unbag.learners._stacked import Stacked, StackedModel
from unbag.learners._table import LEARNERS, Entry, make_learner
from unbag.learners._trees import Trees, TreesModel
from unbag.learners._verdict import Verdict, column_strengths, judge, labelled_rows, verdict_of

if TYPE_CHECKING:
    from unbag.learners._network import NetworkLearner, NetworkModel
else:

    def __getattr__(name: str) -> Any:
        """Networks are imported when they are asked for: the other learners need no JAX."""
        if name not in ("NetworkLearner", "NetworkModel"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from unbag.learners import _network

        return getattr(_network, name)


__all__ = [
    "LEARNERS",
    "Additive",
    "AdditiveModel",
    "BagPart",
    "BagsWithLabels",
    "Combination",
    "DataWarning",
    "Effect",
    "Entry",
    "Fitted",
    "FittedFiles",
    "FoldFit",
    "FoldLearner",
    "Identified",
    "Learner",
    "LocalParts",
    "Model",
    "NetworkLearner",
    "NetworkModel",
    "Progress",
    "RankedTable",
    "RayParts",
    "SparkParts",
    "Stacked",
    "StackedModel",
    "Terms",
    "Trees",
    "TreesModel",
    "Verdict",
    "column_strengths",
    "combine",
    "evaluate_cells",
    "fit",
    "fit_files",
    "fit_folds",
    "fit_parts",
    "folds_of",
    "identifiable",
    "judge",
    "labelled_rows",
    "make_learner",
    "narrow_part",
    "rank_tables",
    "terms_of",
    "verdict_of",
    "with_labels",
]
