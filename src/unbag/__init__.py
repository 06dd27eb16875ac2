"""unbag: learning from label proportions. The public names, in the order of the way of the data."""

from importlib import import_module as _import_module
from typing import Any

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

__version__ = "0.1.0"

# what needs JAX, scikit-learn or PyTorch is imported when it is asked for
_MODULES = (
    "tables",
    "sql",
    "models",
    "likelihood",
    "training",
    "learners",
    "estimators",
    "pytorch",
    "boosting",
    "datasets",
    "stream",
    "lab",
)
_NAMES = {
    "join": "tables",
    "check_tables": "tables",
    "plan_features": "tables",
    "FeaturePlan": "tables",
    "count_likelihood": "likelihood",
    "train": "training",
    "sweep": "training",
    "Run": "training",
    "TrainingConfig": "training",
    "fit": "learners",
    "Fitted": "learners",
    "BagClassifier": "estimators",
    "BagRegressor": "estimators",
    "BagScorer": "estimators",
    "load": "estimators",
    "StreamLearner": "stream",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return _import_module(f"unbag.{name}")
    if name in _NAMES:
        return getattr(_import_module(f"unbag.{_NAMES[name]}"), name)
    raise AttributeError(f"module 'unbag' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES, *_NAMES})


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
