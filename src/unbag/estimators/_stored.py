"""Models in files: `load` reads one and lets it predict two rows before anybody else asks it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import pyarrow as pa

from unbag._model_file import Misfit, load_arrays, unlike_saved
from unbag._rules import broken
from unbag.bags import Kind
from unbag.losses import named_loss
from unbag.tables import Column, FeaturePlan

if TYPE_CHECKING:
    from unbag.estimators._base import BagEstimator

MIDDAY = 1_600_000_000 * 1_000_000  # some moment, in microseconds


def load(path: str | Path) -> BagEstimator:
    """An estimator that `save` wrote, with the same predictions.

    The file is checked as a whole before: its digest, the shapes of its arrays, and by a prediction
    of two rows.
    """
    from unbag.estimators._classifier import BagClassifier
    from unbag.estimators._regressor import BagRegressor

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


def try_out(model: Any) -> None:
    """Raise an error unless the parts of a model fit together.

    Parameters
    ----------
    model : BagEstimator
        Just read from a file.
    """
    if model.kind_ not in get_args(Kind):
        raise Misfit(f"kind {model.kind_!r} is not known")
    named_loss(model.loss_)
    marks, old = model.learned_, model.old_score_
    if marks is not None and (marks.shape[1:] != (3,) or marks.dtype.kind not in "iu"):
        raise Misfit("the marks of its bags are no numbers")
    if old is not None and not (
        isinstance(old.column, str) and {type(flag) for flag in old[1:]} == {bool}
    ):
        raise Misfit("its old score has no name")
    if model.plan_ is not None:
        _predict(model, model.plan_)


def _predict(model: Any, plan: FeaturePlan) -> None:
    """Two rows, one without values; the predictions must be finite, and as many as the classes."""
    rows = pa.table({column.name: _two_values(column) for column in plan.used})
    X = plan.columns_of(rows) if model.takes_tables else plan.features(rows)
    predicted = model._link(model.scores_at(X, None))
    expected = (2,) if model.kind_ == "total" else (2, len(model.classes_))
    if predicted.shape != expected or not np.isfinite(predicted).all():
        raise Misfit("its predictions are no numbers")


def _two_values(column: Column) -> pa.Array:
    """No value, and one that the plan knows."""
    if column.kind == "date":
        return pa.array([None, MIDDAY], pa.timestamp("us"))
    if column.kind == "numeric":
        return pa.array([None, column.mean])
    return pa.array([None, (*column.values, "true")[0]])
