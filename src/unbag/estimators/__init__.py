"""Estimators for users of scikit-learn.

`fit(X, y, bag=None)`: with `bag`, every row carries what its bag reported, the same throughout the
bag. Without it, y are ordinary labels and each row is a bag of its own. `fit_bags(bags)` takes bags
as they are. `bag_targets` puts report and bag into one y, which grid searches and pipelines hand
on, and `BagKFold` splits by bag; `cross_validate` judges any of these by all bags. `BagScorer`
judges from bags in a grid search; `load` reads what `save` wrote.
"""

from pathlib import Path
from typing import Any

from unbag._model_file import load_arrays, unlike_saved
from unbag._rules import broken
from unbag.estimators._base import BagEstimator
from unbag.estimators._classifier import BagClassifier
from unbag.estimators._folds import BagKFold, CrossValidation, cross_validate
from unbag.estimators._onnx import to_onnx
from unbag.estimators._regressor import BagRegressor
from unbag.estimators._scorer import BagScorer, estimate_loss
from unbag.estimators._targets import bag_targets
from unbag.estimators._trial import try_out

__all__ = [
    "BagClassifier",
    "BagKFold",
    "BagRegressor",
    "BagScorer",
    "CrossValidation",
    "bag_targets",
    "cross_validate",
    "estimate_loss",
    "load",
    "to_onnx",
]


def load(path: str | Path) -> BagEstimator:
    """An estimator that `save` wrote, with the same predictions.

    The file is checked as a whole before: its digest, the shapes of its arrays, and by a prediction
    of two rows.
    """
    arrays, settings = load_arrays(path)
    kinds: dict[str, Any] = {"BagClassifier": BagClassifier, "BagRegressor": BagRegressor}
    named = settings.get("estimator")
    if not isinstance(named, str) or named not in kinds:
        raise broken(
            f"A model file must hold one of {', '.join(kinds)}",
            f"{named} given",
            "Use the unbag that saved it.",
        )
    try:
        model = kinds[named].restore(arrays, settings)
        try_out(model)
    except ImportError:
        raise  # of a library that the model needs
    except Exception as error:  # of whatever kind: the content fits no model
        raise unlike_saved(path, str(error).split("\n")[0] or type(error).__name__) from error
    return model
