"""The shipped Adult data in, a table of test log losses out: the paper's network, learned from bags in every way.

No label of a training row is looked at, except in the line `labels`, which is the ceiling. A fifth of the bags is held
out and chooses learning rate and epoch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast, get_args

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from unbag import losses, models
from unbag.bags import random_bags
from unbag.datasets import Dataset, load_adult
from unbag.training import Method, Run, sweep

RATES = (1e-3, 3e-3, 1e-2, 3e-2)


def run(*, sizes: Sequence[int] = (64, 512), seeds: Sequence[int] = (0, 1, 2), epochs: int = 30) -> Table:
    """The table: test log loss of each method and bag size, mean and standard error over the seeds."""
    adult = load_adult()
    jobs = [(m, k) for m in get_args(Method) for k in (sizes if m != "labels" else (1,))]
    bar = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    found = {}
    with Progress(*bar, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("learning from bags", total=len(jobs) * epochs)
        for method, size in jobs:
            progress.update(task, description=f"{method}, bags of {size}")
            told = lambda epoch, seen: progress.advance(task)
            found[method, size] = train_all(adult, method, size, seeds=seeds, epochs=epochs, progress=told)
    return _table(adult, found, sizes, len(seeds), epochs)


def train_all(
    adult: Dataset, method: str, size: int, *, seeds: Sequence[int], epochs: int, progress: Any = False
) -> list[list[Run]]:
    """Runs by seed and learning rate, with a fifth of the bags held out."""
    parts = [random_bags(adult.X, adult.y, size=size, seed=seed).split(0.8, seed=seed) for seed in seeds]
    start = losses.log.trivial_score(parts[0][0].prior)
    return sweep(
        lambda seed: models.adult_network(key=seed, start=start),
        [learn for learn, _ in parts],
        cast(Method, method),
        learning_rates=RATES,
        seeds=seeds,
        epochs=epochs,
        held_out=[held_out for _, held_out in parts],
        test=(adult.X_test, adult.y_test),
        progress=progress,
    )


def best_on_test(runs: Sequence[Sequence[Run]]) -> np.ndarray:
    """As the paper reports: the rate and the epoch with the lowest mean test loss over seeds; one value per seed."""
    loss = np.array([[run.history["test_loss"] for run in rates] for rates in runs])
    mean = np.nan_to_num(loss.mean(axis=0), nan=np.inf)
    return loss[:, *np.unravel_index(np.argmin(mean), mean.shape)]


def chosen_from_bags(runs: Sequence[Sequence[Run]]) -> np.ndarray:
    """What a user can get: for each seed, the test loss of the rate and the epoch that its held-out bags choose."""
    best = [min(rates, key=lambda run: float(np.nanmin(run.history["choice"]))) for rates in runs]
    return np.array([run.history["test_loss"][run.epoch - 1] for run in best])


def _table(adult: Dataset, found: dict, sizes: Sequence[int], seeds: int, epochs: int) -> Table:
    columns = [f"{k}: {how}" for k in sizes for how in ("best on test", "chosen from bags")]
    table = Table("bags of", *columns, title="Adult, 32 hidden units: test log loss")
    for method in get_args(Method):
        runs = [found[method, k if method != "labels" else 1] for k in sizes]
        table.add_row(method, *(_cell(how(r)) for r in runs for how in (best_on_test, chosen_from_bags)))
    score = np.full(len(adult.y_test), losses.log.trivial_score(adult.y.mean()))
    table.add_row("(trivial)", *[f"{losses.log.value(score, adult.y_test).mean():.4f}"] * len(columns))
    table.caption = (
        f"mean ± standard error of {seeds} seeds, {epochs} epochs, {len(RATES)} learning rates, started at the trivial "
        "predictor. Best on test: rate and epoch as in the paper. Chosen from bags: what you can get without a label. "
        "labels: bags of one, the ceiling"
    )
    return table


def _cell(values: np.ndarray) -> str:
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"{np.mean(values):.4f} ± {error:.4f}"
