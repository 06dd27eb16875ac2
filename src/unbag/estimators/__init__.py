"""Estimators for users of scikit-learn.

`fit(X, y, bag=None)`: with `bag`, every row carries what its bag reported, the same throughout the
bag. Without it, y are ordinary labels and each row is a bag of its own. `fit_bags(bags)` takes bags
as they are. `BagScorer` judges from bags in a grid search; `load` reads what `save` wrote.
"""

from pathlib import Path
from typing import Any

from unbag._model_file import load_arrays
from unbag._rules import broken
from unbag.estimators._base import BagEstimator
from unbag.estimators._classifier import BagClassifier
from unbag.estimators._regressor import BagRegressor
from unbag.estimators._scorer import BagScorer, estimate_loss

__all__ = ["BagClassifier", "BagRegressor", "BagScorer", "estimate_loss", "load"]


def load(path: str | Path) -> BagEstimator:
    """An estimator that `save` wrote, with the same predictions."""
    arrays, settings = load_arrays(path)
    kinds: dict[str, Any] = {"BagClassifier": BagClassifier, "BagRegressor": BagRegressor}
    if settings["estimator"] not in kinds:
        raise broken(
            f"A model file must hold one of {', '.join(kinds)}",
            f"{settings['estimator']} came",
            "Use the unbag that saved it.",
        )
    return kinds[settings["estimator"]].restore(arrays, settings)
