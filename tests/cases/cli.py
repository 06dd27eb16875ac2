"""Small cases that the tests of cli, and the table of its messages, share."""

from pathlib import Path

import numpy as np
import pandas as pd
from typer.testing import CliRunner

from unbag import _progress
from unbag.cli import app

_progress.SILENCE = float("inf")  # tests read stderr word by word, however slow the machine is

FOLDER = Path(__file__).parent


def run(*words, code=0):
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == code, result.output + repr(result.exception)
    return result


def world(folder, *, count=3000, size=10, random=True, seed=0, ending="parquet", name=""):
    """Events and reports as files; the labels stay here."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=count)
    x = x if random else np.sort(x)
    events = pd.DataFrame({
        "event": [f"e{i:05d}" for i in range(count)],
        "bag": np.arange(count) // size,
        "x": x,
        "device": rng.choice(["phone", "desk"], count),
    })  # fmt: skip
    y = rng.random(count) < 1 / (1 + np.exp(1 - 2 * x - (events.device == "desk")))
    reports = (
        events.assign(y=y)
        .groupby("bag", as_index=False)
        .agg(sales=("y", "sum"), events=("y", "size"))
    )
    paths = folder / f"{name}events.{ending}", folder / f"{name}reports.{ending}"
    for frame, path in zip((events, reports), paths, strict=True):
        frame.to_parquet(path) if ending == "parquet" else frame.to_csv(path, index=False)
    return *paths, y


SALES = ["--on", "bag", "--total", "sales"]

QUICK = ["--linear", "--epochs", 20]
