"""unbag: learning from label proportions. The public names, in the order of the way of the data.

Names are imported when they are asked for, so that `import unbag` and the command line start at
once; type checkers and editors know them all the same.
"""

from typing import TYPE_CHECKING

from unbag._version import __version__ as __version__

if TYPE_CHECKING:  # `X as X` says to type checkers that the name is public
    from unbag import additive as additive
    from unbag import bags as bags
    from unbag import boosting as boosting
    from unbag import datasets as datasets
    from unbag import diagnosis as diagnosis
    from unbag import estimators as estimators
    from unbag import lab as lab
    from unbag import learners as learners
    from unbag import likelihood as likelihood
    from unbag import losses as losses
    from unbag import matching as matching
    from unbag import medians as medians
    from unbag import methods as methods
    from unbag import metrics as metrics
    from unbag import models as models
    from unbag import noise as noise
    from unbag import objectives as objectives
    from unbag import peers as peers
    from unbag import planning as planning
    from unbag import plots as plots
    from unbag import pytorch as pytorch
    from unbag import recalibration as recalibration
    from unbag import report as report
    from unbag import selection as selection
    from unbag import sql as sql
    from unbag import stream as stream
    from unbag import tables as tables
    from unbag import tournaments as tournaments
    from unbag import training as training
    from unbag import weights as weights
    from unbag._rules import Refusal as Refusal
    from unbag._rules import Refused as Refused
    from unbag.bags import Bags as Bags
    from unbag.bags import Reports as Reports
    from unbag.bags import as_components as as_components
    from unbag.bags import design_bags as design_bags
    from unbag.bags import from_rows as from_rows
    from unbag.bags import make_bags as make_bags
    from unbag.bags import random_bags as random_bags
    from unbag.diagnosis import BagsNotRandom as BagsNotRandom
    from unbag.diagnosis import Diagnosis as Diagnosis
    from unbag.diagnosis import diagnose as diagnose
    from unbag.diagnosis import drift as drift
    from unbag.estimators import BagClassifier as BagClassifier
    from unbag.estimators import BagKFold as BagKFold
    from unbag.estimators import BagRegressor as BagRegressor
    from unbag.estimators import BagScorer as BagScorer
    from unbag.estimators import bag_targets as bag_targets
    from unbag.estimators import cross_validate as cross_validate
    from unbag.estimators import load as load
    from unbag.estimators import to_onnx as to_onnx
    from unbag.learners import Fitted as Fitted
    from unbag.learners import fit as fit
    from unbag.learners import with_labels as with_labels
    from unbag.likelihood import count_likelihood as count_likelihood
    from unbag.losses import Loss as Loss
    from unbag.matching import proportion_matching as proportion_matching
    from unbag.medians import median_of_means as median_of_means
    from unbag.methods import METHODS as METHODS
    from unbag.metrics import Evaluation as Evaluation
    from unbag.metrics import Evaluator as Evaluator
    from unbag.metrics import compare as compare
    from unbag.metrics import evaluate as evaluate
    from unbag.metrics import evaluate_labels as evaluate_labels
    from unbag.recalibration import Recalibration as Recalibration
    from unbag.recalibration import recalibrate as recalibrate
    from unbag.selection import Choice as Choice
    from unbag.selection import choose as choose
    from unbag.stream import StreamLearner as StreamLearner
    from unbag.tables import FeaturePlan as FeaturePlan
    from unbag.tables import check_tables as check_tables
    from unbag.tables import join as join
    from unbag.tables import join_marginals as join_marginals
    from unbag.tables import plan_features as plan_features
    from unbag.tournaments import Tournament as Tournament
    from unbag.tournaments import tournament as tournament
    from unbag.training import Run as Run
    from unbag.training import TrainingConfig as TrainingConfig
    from unbag.training import sweep as sweep
    from unbag.training import train as train
else:
    from unbag._lazy import attach

    __getattr__, __dir__, __all__ = attach(__name__)
