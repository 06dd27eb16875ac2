"""A model file and a table of any size in, one prediction for each row out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import typer

from unbag._rules import broken
from unbag.cli._console import counted, plain_errors, tell
from unbag.cli._evaluate import open_model
from unbag.cli._options import Events, Force, Model
from unbag.cli._outputs import check_output, write_tables


def predict(
    model: Model,
    events: Events,
    out: Annotated[
        Path | None, typer.Option(help=".parquet or .csv; by default CSV to stdout")
    ] = None,
    id: Annotated[
        str | None, typer.Option(help="column to write beside each prediction; else the row number")
    ] = None,
    force: Force = False,
) -> None:
    """Predict each event: its probability, its expected count, or the probability of each class.
    Files of any size pass in batches, with the features that the model was trained with.

    Example: unbag predict model.unbag new-events.parquet --id event --out scores.parquet
    """
    with plain_errors("predict"):
        check_output(out, force=force)
        tables = predictions(open_model(model), events, id)
        rows = write_tables(out, tables if out is None else counted(tables))
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
    for X, kept in model.plan_.batches(events, keep=[] if id is None else [id]):
        first = {"row": np.arange(row, row + len(X))} if id is None else {id: kept[id]}
        row += len(X)
        yield pa.table(first | dict(zip(names, _predicted(model, X).T, strict=True)))


def _names(model: Any) -> list[str]:
    """What the columns of the predictions are called."""
    if model.kind_ == "histogram":
        return [f"probability_{name}" for name in model.classes_]
    return ["count" if model.kind_ == "total" else "probability"]


def _predicted(model: Any, X: np.ndarray) -> np.ndarray:
    """One column for each name."""
    if model.kind_ == "total":
        return model.predict(X)[:, None]
    probability = model.predict_proba(X)
    return probability[:, 1:] if model.kind_ == "binary" else probability
