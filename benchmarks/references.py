"""Which reference for the anchored method? The current prediction, or each instance's prediction at
its last visit.

    python benchmarks/references.py [--out benchmarks/results/references.csv]

Adult, the paper's network started at the trivial predictor, bags of 64 and 512, square and log
loss; the lowest over rate and epoch of the mean test log loss over seeds, as the paper reports.
"""

import argparse
import csv
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

import unbag
from unbag import models
from unbag.datasets import load_adult
from unbag.training import sweep

RATES, SEEDS, EPOCHS = (1e-3, 3e-3, 1e-2, 3e-2), (0, 1, 2, 3), 60


def best(runs):
    """Lowest over rate and epoch of the mean over seeds, and its standard error."""
    loss = np.array([[run.history["test_loss"] for run in row] for row in runs])
    mean = np.nan_to_num(loss.mean(axis=0), nan=np.inf)
    rate, epoch = np.unravel_index(np.argmin(mean), mean.shape)
    found = loss[:, rate, epoch]
    return (
        mean[rate, epoch],
        found.std(ddof=1) / len(found) ** 0.5,
        runs[0][rate].learning_rate,
        int(epoch) + 1,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    adult = load_adult()
    jobs = [
        (k, loss, ref)
        for k in (64, 512)
        for loss in ("square", "log")
        for ref in ("current", "last")
    ]
    rows = []
    for k, loss, reference in track(jobs, console=Console(stderr=True), transient=True):
        bags = [unbag.random_bags(adult.X, adult.y, size=k, seed=seed) for seed in SEEDS]
        start = unbag.losses.log.trivial_score(adult.y.mean())
        runs = sweep(
            lambda seed, start=start: models.adult_network(key=seed, start=start),
            bags, "anchored", loss, learning_rates=RATES, seeds=SEEDS, epochs=EPOCHS,
            reference=reference,
            test=(adult.X_test, adult.y_test),
        )  # fmt: skip
        rows.append((k, loss, reference, *best(runs)))
    table = Table("k", "loss", "reference", "test log loss", "standard error", "rate", "epoch")
    for row in rows:
        table.add_row(
            *(f"{value:.4g}" if isinstance(value, float) else str(value) for value in row)
        )
    Console().print(table)
    if options.out:
        with options.out.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(
                ["k", "loss", "reference", "test_log_loss", "standard_error", "rate", "epoch"]
            )
            writer.writerows((*row[:3], f"{row[3]:.5f}", f"{row[4]:.5f}", *row[5:]) for row in rows)


if __name__ == "__main__":
    main()
