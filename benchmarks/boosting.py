"""Boosted trees against a linear model, both from the same bags of Adult: test log losses.

    python benchmarks/boosting.py [--sizes 64] [--seeds 3] [--out benchmarks/results/boosting.csv]

Every row learns from the same four fifths of a seed's bags, and the other fifth chooses the round,
or the epoch and the learning rate, by the same estimate. ("Then from all bags": that number of
rounds once more, on all.) No label of a training row is looked at. The rows "chosen by test labels"
are no rivals but a bound: no choice brings the linear model further. One thread.
"""

import argparse
import csv
from pathlib import Path
from time import perf_counter

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from unbag import losses, random_bags
from unbag.boosting import BagObjective, fit_lightgbm, fit_xgboost
from unbag.datasets import load_adult

RATES, EPOCHS = (1e-3, 3e-3, 1e-2, 3e-2), 40
UNTAMED = {
    "share": 1.0,
    "max_depth": -1,
    "learning_rate": 0.1,
    "min_data_in_leaf": 20,
    "lambda_l2": 0,
    "feature_fraction": 1,
}


def log_loss(score, y):
    return float(losses.log.value(score, y).mean())


def boosted(fit, *, then_all_bags=False, **options):
    def test_loss(adult, bags, seed):
        learn, held_out = (bags, None) if then_all_bags else bags.split(0.8, seed=seed)
        model = fit(learn, held_out=held_out, seed=seed, **options)
        return log_loss(model.scores(adult.X_test), adult.y_test), f"round {model.rounds}"

    return test_loss


def linear_models(bags, method, loss, rate, seed):
    """Slope and intercept after each epoch of Adam, started at the prior: the gradient is that of
    the trees."""
    theta = np.append(np.zeros(bags.X.shape[1]), BagObjective(bags).start)
    mean, square, step = np.zeros_like(theta), np.zeros_like(theta), 0
    for epoch in range(EPOCHS):
        for batch in bags.batches(4096, seed=seed, epoch=epoch):
            of_score, _ = BagObjective(batch, method=method, loss=loss)(
                batch.X @ theta[:-1] + theta[-1]
            )
            gradient = np.append(batch.X.T @ of_score, of_score.sum()) / len(of_score)
            step += 1
            mean, square = 0.9 * mean + 0.1 * gradient, 0.999 * square + 0.001 * gradient**2
            theta = theta - rate * mean / (1 - 0.9**step) / (
                np.sqrt(square / (1 - 0.999**step)) + 1e-8
            )
        yield theta


def linear(method, loss, *, rates=RATES, by_test_labels=False, judged_by=None):
    def test_loss(adult, bags, seed):
        learn, held_out = bags.split(0.8, seed=seed)
        judge, tried = BagObjective(held_out, **(judged_by or {})), []
        for rate in rates:
            for epoch, theta in enumerate(linear_models(learn, method, loss, rate, seed), 1):
                tests = log_loss(adult.X_test @ theta[:-1] + theta[-1], adult.y_test)
                judged = (
                    tests if by_test_labels else judge.value(held_out.X @ theta[:-1] + theta[-1])
                )
                tried.append((judged, tests, f"epoch {epoch} at rate {rate:g}"))
        return min(tried)[1:]

    return test_loss


light = lambda method, loss, **options: boosted(
    fit_lightgbm, method=method, loss=loss, num_threads=1, **options
)
ROWS = {
    "linear, upm, log": linear("upm", "log"),
    "linear, upm, log, rate 0.01, judged by upm, log": linear(
        "upm", "log", rates=(1e-2,), judged_by={"method": "upm", "loss": "log"}
    ),
    "linear, anchored, square": linear("anchored", "square"),
    "linear, upm, log, chosen by test labels": linear("upm", "log", by_test_labels=True),
    "linear, anchored, square, chosen by test labels": linear(
        "anchored", "square", by_test_labels=True
    ),
    "LightGBM, upm, log": light("upm", "log"),
    "LightGBM, upm, square": light("upm", "square"),
    "LightGBM, anchored, log": light("anchored", "log"),
    "XGBoost, anchored, square": boosted(fit_xgboost, nthread=1),
    "LightGBM, anchored, square": light("anchored", "square"),
    "the same, then from all bags (the default)": light("anchored", "square", then_all_bags=True),
    "the same, depth 2": light("anchored", "square", max_depth=2),
    "the same, depth 3": light("anchored", "square", max_depth=3),
    "the same, leaves of 20 rows": light("anchored", "square", min_data_in_leaf=20),
    "the same, without L2": light("anchored", "square", lambda_l2=0),
    "the same, all columns": light("anchored", "square", feature_fraction=1.0),
    "the same, all bags in each round": light("anchored", "square", share=1.0),
    "LightGBM, anchored, square, untamed": light("anchored", "square", **UNTAMED),
    "LightGBM, upm, log, untamed": light("upm", "log", **UNTAMED),
}


def measure(adult, name, size, seed):
    bags = random_bags(adult.X, adult.y, size=size, seed=seed)
    begin = perf_counter()
    loss, chosen = ROWS[name](adult, bags, seed)
    return [name, size, seed, f"{loss:.6f}", chosen, f"{perf_counter() - begin:.1f}"]


def cell(values):
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"{np.mean(values):.4f} ± {error:.4f}"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[64])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    adult = load_adult()
    jobs = [
        (name, size, seed)
        for name in ROWS
        for size in options.sizes
        for seed in range(options.seeds)
    ]
    bar = Console(stderr=True)
    found = [
        measure(adult, *job)
        for job in track(jobs, "learning from bags", console=bar, transient=True)
    ]

    table = Table(
        "learner, method, loss",
        *(f"bags of {k}" for k in options.sizes),
        title="Adult: test log loss",
    )
    for name in ROWS:
        table.add_row(
            name, *(cell([float(r[3]) for r in found if r[:2] == [name, k]]) for k in options.sizes)
        )
    start = losses.log.trivial_score(adult.y.mean())
    table.add_row(
        "(trivial)",
        *[f"{log_loss(np.full(len(adult.y_test), start), adult.y_test):.4f}"] * len(options.sizes),
    )
    table.caption = f"mean ± standard error of {options.seeds} seeds"
    Console(width=None if Console().is_terminal else 120).print(table)
    if options.out:
        with options.out.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["learner", "bag_size", "seed", "test_log_loss", "chosen", "seconds"])
            writer.writerows(found)


if __name__ == "__main__":
    main()
