"""Learners: bags in, a fitted model out, all behind one protocol.

`fit` cross-fits, combines and judges the learners of the table `LEARNERS`.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unbag.additive import Additive as Additive
    from unbag.additive import AdditiveModel as AdditiveModel
    from unbag.additive import BagPart as BagPart
    from unbag.additive import DataWarning as DataWarning
    from unbag.additive import Effect as Effect
    from unbag.additive import Identified as Identified
    from unbag.additive import LocalParts as LocalParts
    from unbag.additive import RankedTable as RankedTable
    from unbag.additive import RayParts as RayParts
    from unbag.additive import SparkParts as SparkParts
    from unbag.additive import Terms as Terms
    from unbag.additive import fit_parts as fit_parts
    from unbag.additive import identifiable as identifiable
    from unbag.additive import narrow_part as narrow_part
    from unbag.additive import rank_tables as rank_tables
    from unbag.additive import terms_of as terms_of
    from unbag.learners._combine import Combination as Combination
    from unbag.learners._combine import combine as combine
    from unbag.learners._files import FittedFiles as FittedFiles
    from unbag.learners._files import fit_files as fit_files
    from unbag.learners._fit import fit as fit
    from unbag.learners._fitted import Fitted as Fitted
    from unbag.learners._fitted import evaluate_further as evaluate_further
    from unbag.learners._fitted import within_constants as within_constants
    from unbag.learners._folds import FoldFit as FoldFit
    from unbag.learners._folds import fit_folds as fit_folds
    from unbag.learners._folds import folds_of as folds_of
    from unbag.learners._labels import with_labels as with_labels
    from unbag.learners._network import NetworkLearner as NetworkLearner
    from unbag.learners._network_model import NetworkColumns as NetworkColumns
    from unbag.learners._network_model import NetworkForm as NetworkForm
    from unbag.learners._network_model import NetworkModel as NetworkModel
    from unbag.learners._protocol import Learner as Learner
    from unbag.learners._protocol import Model as Model
    from unbag.learners._protocol import Progress as Progress
    from unbag.learners._table import LEARNERS as LEARNERS
    from unbag.learners._table import make_learner as make_learner
    from unbag.learners._trees import Trees as Trees
    from unbag.learners._trees import TreesModel as TreesModel
    from unbag.learners._verdict import Verdict as Verdict
    from unbag.learners._verdict import column_strengths as column_strengths
    from unbag.learners._verdict import judge as judge
    from unbag.learners._verdict import labelled_rows as labelled_rows
    from unbag.learners._verdict import verdict_of as verdict_of
else:
    from unbag._lazy import attach

    __getattr__, __dir__, __all__ = attach(__name__)
