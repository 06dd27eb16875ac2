"""`unbag predict`: one prediction for each row of a table of any size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import typer

from unbag._rules import broken
from unbag.cli._console import counted, tell
from unbag.cli._evaluate import open_model
from unbag.cli._options import Events, Force, Model, Output
from unbag.cli._outputs import check_output, write_tables


def predict(
    model: Model,
    events: Events,
    out: Output = None,
    id: Annotated[
        str | None, typer.Option(help="column to write beside each prediction; else the row number")
    ] = None,
    force: Force = False,
) -> None:
    """Predict each event: its probability, its expected count, or the probability of each class.
    Files of any size pass in batches, with the features that the model was trained with.

    Example: unbag predict model.unbag new-events.parquet --id event --out scores.parquet
    """
    check_output(out, force=force)
    tables = predictions(open_model(model), events, id)
    if out is not None:
        tables = counted(tables)
    rows = write_tables(out, tables)
    tell(f"{rows:,} predictions: {out or 'stdout'}")


def predictions(model: Any, events: Any, id: str | None) -> Iterator[pa.Table]:
    """A table of predictions for each batch of rows, with the ids or row numbers first."""
    names = _names(model)
    if id in names:
        raise broken(
            "An id must have another name than the predictions",
            f"{id!r} came beside {', '.join(names)}",
            "Rename that column, or leave {id} out for row numbers.",
        )
    row = 0
    for X, kept in model.plan_.batches(events, keep=[name for name in [id] if name]):
        first = {"row": np.arange(row, row + len(X))}
        if id is not None:
            first = {id: kept[id]}
        row += len(X)
        yield pa.table(first | dict(zip(names, _predicted(model, X).T, strict=True)))


def _names(model: Any) -> list[str]:
    """What the columns of the predictions are called."""
    if model.kind_ == "histogram":
        return [f"probability_{name}" for name in model.classes_]
    return [{"total": "count", "binary": "probability"}[model.kind_]]


def _predicted(model: Any, X: np.ndarray) -> np.ndarray:
    """One column for each name."""
    if model.kind_ == "total":
        return model.predict(X)[:, None]
    probability = model.predict_proba(X)
    if model.kind_ == "binary":
        return probability[:, 1:]
    return probability
