"""unbag: learning from label proportions. The public names, in the order of the way of the data.

Names that need JAX, scikit-learn, PyTorch or matplotlib are imported when they are asked for; type
checkers and editors know them all the same.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING, Any

from unbag import (
    bags,
    diagnosis,
    losses,
    matching,
    medians,
    methods,
    metrics,
    noise,
    planning,
    recalibration,
    selection,
    tournaments,
    weights,
)
from unbag._rules import Refusal, Refused
from unbag._version import __version__ as __version__
from unbag.bags import Bags, Reports, as_components, design_bags, from_rows, random_bags
from unbag.diagnosis import BagsNotRandom, Diagnosis, diagnose, drift
from unbag.losses import Loss
from unbag.matching import proportion_matching
from unbag.medians import median_of_means
from unbag.methods import METHODS
from unbag.metrics import Evaluation, Evaluator, compare, evaluate, evaluate_labels
from unbag.recalibration import Recalibration, recalibrate
from unbag.selection import Choice, choose
from unbag.tournaments import Tournament, tournament

if TYPE_CHECKING:  # `X as X` says to type checkers that the name is public
    from unbag import boosting as boosting
    from unbag import datasets as datasets
    from unbag import estimators as estimators
    from unbag import lab as lab
    from unbag import learners as learners
    from unbag import likelihood as likelihood
    from unbag import models as models
    from unbag import plots as plots
    from unbag import pytorch as pytorch
    from unbag import report as report
    from unbag import sql as sql
    from unbag import stream as stream
    from unbag import tables as tables
    from unbag import training as training
    from unbag.estimators import BagClassifier as BagClassifier
    from unbag.estimators import BagRegressor as BagRegressor
    from unbag.estimators import BagScorer as BagScorer
    from unbag.estimators import load as load
    from unbag.learners import Fitted as Fitted
    from unbag.learners import fit as fit
    from unbag.likelihood import count_likelihood as count_likelihood
    from unbag.stream import StreamLearner as StreamLearner
    from unbag.tables import FeaturePlan as FeaturePlan
    from unbag.tables import check_tables as check_tables
    from unbag.tables import join as join
    from unbag.tables import plan_features as plan_features
    from unbag.training import Run as Run
    from unbag.training import TrainingConfig as TrainingConfig
    from unbag.training import sweep as sweep
    from unbag.training import train as train

_MODULES = (
    "boosting",
    "datasets",
    "estimators",
    "lab",
    "learners",
    "likelihood",
    "models",
    "plots",
    "pytorch",
    "report",
    "sql",
    "stream",
    "tables",
    "training",
)
_MODULE_OF = {
    "BagClassifier": "estimators",
    "BagRegressor": "estimators",
    "BagScorer": "estimators",
    "load": "estimators",
    "Fitted": "learners",
    "fit": "learners",
    "count_likelihood": "likelihood",
    "StreamLearner": "stream",
    "FeaturePlan": "tables",
    "check_tables": "tables",
    "join": "tables",
    "plan_features": "tables",
    "Run": "training",
    "TrainingConfig": "training",
    "sweep": "training",
    "train": "training",
}


if not TYPE_CHECKING:  # it would make every misspelt name a valid one

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            return _import_module(f"unbag.{name}")
        if name in _MODULE_OF:
            return getattr(_import_module(f"unbag.{_MODULE_OF[name]}"), name)
        raise AttributeError(f"module 'unbag' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES, *_MODULE_OF})


__all__ = [
    "METHODS",
    "Bags",
    "BagsNotRandom",
    "Choice",
    "Diagnosis",
    "Evaluation",
    "Evaluator",
    "Loss",
    "Recalibration",
    "Refusal",
    "Refused",
    "Reports",
    "Tournament",
    "as_components",
    "bags",
    "choose",
    "compare",
    "design_bags",
    "diagnose",
    "diagnosis",
    "drift",
    "evaluate",
    "evaluate_labels",
    "from_rows",
    "losses",
    "matching",
    "median_of_means",
    "medians",
    "methods",
    "metrics",
    "noise",
    "planning",
    "proportion_matching",
    "random_bags",
    "recalibrate",
    "recalibration",
    "selection",
    "tournament",
    "tournaments",
    "weights",
]
