"""Boosted trees against the linear model and the paper's network, all from the same bags of Adult: test log losses.

    python benchmarks/boosting.py [--sizes 64] [--seeds 3] [--out benchmarks/results/boosting.csv]

Every row learns from the same four fifths of a seed's bags; the other fifth chooses the round, or epoch and learning
rate. No label of a training row is looked at. The rows "chosen by test labels" say how far any choice could bring the
linear model: they are no rival, but a bound. One thread.
"""

import argparse
import csv
from pathlib import Path
from time import perf_counter

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from unbag import losses, models, random_bags
from unbag.boosting import fit_lightgbm, fit_xgboost
from unbag.datasets import load_adult
from unbag.training import sweep

RATES = (1e-3, 3e-3, 1e-2, 3e-2)
UNTAMED = {
    "share": 1.0,
    "max_depth": -1,
    "learning_rate": 0.1,
    "min_data_in_leaf": 20,
    "lambda_l2": 0,
    "feature_fraction": 1,
}


def boosted(fit, **options):
    def test_loss(adult, learn, held_out, seed):
        model = fit(learn, held_out=held_out, seed=seed, **options)
        loss = losses.log.value(model.scores(adult.X_test), adult.y_test).mean()
        return loss, f"round {model.rounds}"

    return test_loss


def gradient_descent(make, method, loss, *, rates=RATES, by_test_labels=False):
    def test_loss(adult, learn, held_out, seed):
        start = losses.log.trivial_score(learn.prior)
        runs = sweep(
            lambda key: make(adult.X.shape[1], key=key, start=start),
            learn,
            method,
            loss,
            learning_rates=rates,
            seeds=(seed,),
            epochs=40,
            held_out=held_out,
            test=(adult.X_test, adult.y_test),
        )[0]
        judged = np.array([run.history["test_loss" if by_test_labels else "held_out"] for run in runs])
        rate, epoch = np.unravel_index(np.nanargmin(judged), judged.shape)
        return runs[rate].history["test_loss"][epoch], f"epoch {epoch + 1} at rate {rates[rate]:g}"

    return test_loss


light = lambda method, loss, **options: boosted(fit_lightgbm, method=method, loss=loss, num_threads=1, **options)
ROWS = {
    "linear, upm, log": gradient_descent(models.linear, "upm", "log"),
    "linear, upm, log, rate 0.01": gradient_descent(models.linear, "upm", "log", rates=(1e-2,)),
    "linear, upm, log, chosen by test labels": gradient_descent(models.linear, "upm", "log", by_test_labels=True),
    "linear, anchored, square": gradient_descent(models.linear, "anchored", "square"),
    "linear, anchored, square, chosen by test labels": gradient_descent(
        models.linear, "anchored", "square", by_test_labels=True
    ),
    "network, anchored, square": gradient_descent(models.adult_network, "anchored", "square"),
    "LightGBM, upm, log": light("upm", "log"),
    "LightGBM, upm, square": light("upm", "square"),
    "LightGBM, anchored, log": light("anchored", "log"),
    "LightGBM, anchored, square": light("anchored", "square"),
    "XGBoost, anchored, square": boosted(fit_xgboost, nthread=1),
    "LightGBM, upm, log, untamed": light("upm", "log", **UNTAMED),
    "LightGBM, anchored, square, untamed": light("anchored", "square", **UNTAMED),
}


def measure(adult, name, size, seed):
    learn, held_out = random_bags(adult.X, adult.y, size=size, seed=seed).split(0.8, seed=seed)
    begin = perf_counter()
    loss, chosen = ROWS[name](adult, learn, held_out, seed)
    return [name, size, seed, f"{loss:.6f}", chosen, f"{perf_counter() - begin:.1f}"]


def cell(values):
    return f"{np.mean(values):.4f} ± {np.std(values, ddof=1) / np.sqrt(len(values)):.4f}" if len(values) > 1 else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[64])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    adult = load_adult()
    jobs = [(name, size, seed) for name in ROWS for size in options.sizes for seed in range(options.seeds)]
    bar = Console(stderr=True)
    found = [measure(adult, *job) for job in track(jobs, "learning from bags", console=bar, transient=True)]

    table = Table("learner, method, loss", *(f"bags of {k}" for k in options.sizes), title="Adult: test log loss")
    for name in ROWS:
        table.add_row(name, *(cell([float(r[3]) for r in found if r[:2] == [name, k]]) for k in options.sizes))
    trivial = losses.log.value(
        np.full(len(adult.y_test), losses.log.trivial_score(adult.y.mean())), adult.y_test
    ).mean()
    table.add_row("(trivial)", *[f"{trivial:.4f}"] * len(options.sizes))
    table.caption = f"mean ± standard error of {options.seeds} seeds"
    Console().print(table)
    if options.out:
        with options.out.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["learner", "bag_size", "seed", "test_log_loss", "chosen", "seconds"])
            writer.writerows(found)


if __name__ == "__main__":
    main()
