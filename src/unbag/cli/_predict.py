"""`unbag predict`: one prediction for each row of a table of any size."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unbag._rules import broken, refuse
from unbag.cli._console import activity, tell
from unbag.cli._evaluate import open_model
from unbag.cli._options import check_output

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from unbag.tables import ColumnWatch


def predict(
    model: Path, events: Path, out: Path | None = None, id: str | None = None, force: bool = False
) -> None:
    """Predict each event: its probability, its expected count, or the probability of each class.
    Files of any size pass in batches, with the features that the model was trained with.

    Example: unbag predict model.unbag new-events.parquet --id event --out scores.parquet

    Parameters
    ----------
    id
        column to write beside each prediction; else the row number
    """
    check_output(out, force=force)
    from unbag.tables import ColumnWatch, write_tables

    opened = open_model(model)
    watch = ColumnWatch(opened.plan_)
    tables = predictions(opened, events, id, watch)
    with activity("predicting"):
        rows = write_tables(out, tables, force=force)
    for warning in watch.warnings():
        tell(f"warning: {warning}")
    tell(f"{rows:,} predictions: {out or 'stdout'}")


def predictions(
    model: Any, events: Any, id: str | None, watch: ColumnWatch | None = None
) -> Iterator[pa.Table]:
    """A table of predictions for each batch of rows, with the ids or row numbers first; the watch
    sees the columns on their way."""
    import numpy as np
    import pyarrow as pa

    names = _names(model)
    if id in names:
        raise broken(
            "An id must have another name than the predictions",
            f"{id!r} is the name of one of {', '.join(names)}",
            "Rename that column, or leave {id} out for row numbers.",
        )
    keep = [name for name in (id, getattr(model.old_score_, "column", None)) if name]
    row = 0
    for batch in model.plan_.tables(events, keep=keep):
        first = {"row": np.arange(row, row + len(batch))}
        if id is not None:
            first = {id: batch[id]}
        if watch is not None:
            watch.add(batch)
        predicted = _predicted(model, batch)
        bad = ~np.isfinite(predicted).all(axis=1)
        refuse(
            "A prediction must be a number",
            bad,
            thing="row",
            given=predicted,
            names=np.arange(row, row + len(batch)),
            remedy="Look at the values of that row, or train the model again.",
        )
        row += len(batch)
        yield pa.table(first | dict(zip(names, predicted.T, strict=True)))


def _names(model: Any) -> list[str]:
    """What the columns of the predictions are called."""
    if model.kind_ == "histogram":
        return [f"probability_{name}" for name in model.classes_]
    return [{"total": "count", "binary": "probability"}[model.kind_]]


def _predicted(model: Any, batch: pa.Table) -> np.ndarray:
    """One column for each name."""
    if model.kind_ == "total":
        return model.predict(batch)[:, None]
    probability = model.predict_proba(batch)
    if model.kind_ == "binary":
        return probability[:, 1:]
    return probability
