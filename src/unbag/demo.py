"""The shipped Adult data in, tables out: the paper's network learned from bags in every way, chosen and judged by bags.

No label of a training row is looked at, except in the line `labels`, which is the ceiling. A fifth of the bags is held
out, chooses learning rate, epoch and method, and says how good the choice is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast, get_args

import numpy as np
from rich.console import Console, Group
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from unbag import losses, models
from unbag.bags import Bags, random_bags
from unbag.datasets import Dataset, load_adult
from unbag.metrics import evaluate, evaluate_labels
from unbag.selection import choose
from unbag.training import Method, Run, sweep

RATES = (1e-3, 3e-3, 1e-2, 3e-2)


def run(*, sizes: Sequence[int] = (64, 512), seeds: Sequence[int] = (0, 1, 2), epochs: int = 30) -> Group:
    """What the demo prints: test log losses, then what bags alone choose and say, with the labels revealed beside."""
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
    return Group(
        _table(adult, found, sizes, seeds, epochs), *(_without_labels(adult, found, k, seeds[0]) for k in sizes)
    )


def parts_of(adult: Dataset, size: int, seed: int) -> tuple[Bags, Bags]:
    """Bags to learn from, and a fifth that is held out."""
    return random_bags(adult.X, adult.y, size=size, seed=seed).split(0.8, seed=seed)


def train_all(
    adult: Dataset, method: str, size: int, *, seeds: Sequence[int], epochs: int, progress: Any = False
) -> list[list[Run]]:
    """Runs by seed and learning rate, with a fifth of the bags held out."""
    parts = [parts_of(adult, size, seed) for seed in seeds]
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


def chosen_from_bags(adult: Dataset, runs: Sequence[Sequence[Run]], size: int, seeds: Sequence[int]) -> np.ndarray:
    """What a user can get: for each seed, the test loss of the rate and the epoch that its held-out bags choose."""
    best = [choose(rates, parts_of(adult, size, seed)[1]).model for rates, seed in zip(runs, seeds, strict=True)]
    return np.array([run.history["test_loss"][run.epoch - 1] for run in best])


def _table(adult: Dataset, found: dict, sizes: Sequence[int], seeds: Sequence[int], epochs: int) -> Table:
    columns = [f"{k}: {how}" for k in sizes for how in ("best on test", "chosen from bags")]
    table = Table("bags of", *columns, title="Adult, 32 hidden units: test log loss")
    for method in get_args(Method):
        cells = []
        for k in (k if method != "labels" else 1 for k in sizes):
            runs = found[method, k]
            cells += [_cell(best_on_test(runs)), _cell(chosen_from_bags(adult, runs, k, seeds))]
        table.add_row(method, *cells)
    score = np.full(len(adult.y_test), losses.log.trivial_score(adult.y.mean()))
    table.add_row("(trivial)", *[f"{losses.log.value(score, adult.y_test).mean():.4f}"] * len(columns))
    table.caption = (
        f"mean ± standard error of {len(seeds)} seeds, {epochs} epochs, {len(RATES)} learning rates, started at the "
        "trivial predictor. Best on test: rate and epoch as in the paper. Chosen from bags: what you can get without a "
        "label. labels: bags of one, the ceiling"
    )
    return table


def _without_labels(adult: Dataset, found: dict, size: int, seed: int) -> Table:
    """What the held-out bags of one seed choose and say, and what the test labels, revealed at the end, say of it."""
    held_out = parts_of(adult, size, seed)[1]
    runs = [found[method, size][0] for method in get_args(Method) if method != "labels"]
    choice = choose(runs, held_out)
    said = evaluate(choice.model, held_out)
    truth = evaluate_labels(choice.model, adult.y_test, X=adult.X_test)
    title = f"Bags of {size}, no label used: {len(held_out)} held-out bags choose {choice.name}"
    table = Table("", "estimate", "95% interval", "test labels say", "worth in labelled rows", title=title)
    for name in ("log_loss", "brier", "auc", "prediction_minus_report"):
        one = said[name]
        worth = "" if one.worth is None else f"{one.worth:,.0f} of {said.instances:,}"
        interval = f"{one.low:.3f} to {one.high:.3f}"
        table.add_row(name, f"{one.value:.3f}", interval, f"{truth[name].value:.3f}", worth)
    table.caption = choice.reason
    return table


def _cell(values: np.ndarray) -> str:
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"{np.mean(values):.4f} ± {error:.4f}"
