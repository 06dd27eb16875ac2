"""Every method on Adult at growing bag sizes, as the paper reports: lowest over rate and epoch of
the mean test loss.

    python benchmarks/methods.py [--out benchmarks/results/methods.csv] [--sizes 16 256]

The paper's network (32 hidden units) started at the trivial predictor, no label smoothing, all bags
for training, 4 seeds, 6 learning rates, 150 epochs. DESIGN section 4 has what a prototype found.
Rows of other sizes in the file stay.
"""

import argparse
import csv
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track

import unbag
from unbag import models
from unbag.datasets import load_adult
from unbag.training import sweep

RATES, SEEDS, EPOCHS = (3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1), (0, 1, 2, 3), 150
METHODS = [("anchored", "square"), ("anchored", "log")]
METHODS += [(method, "log") for method in ("upm", "easy", "matching", "likelihood")]


def best(runs):
    """Lowest over rate and epoch of the mean over seeds, and its standard error."""
    loss = np.array([[run.history["test_loss"] for run in row] for row in runs])
    mean = np.nan_to_num(loss.mean(axis=0), nan=np.inf)
    rate, epoch = np.unravel_index(np.argmin(mean), mean.shape)
    chosen = loss[:, rate, epoch]
    error = chosen.std(ddof=1) / len(chosen) ** 0.5
    return mean[rate, epoch], error, runs[0][rate].learning_rate, int(epoch) + 1


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument(
        "--sizes", type=int, nargs="+", default=(1, 64, 512, 16, 256), help="1 means labels"
    )
    options = parser.parse_args()
    adult, console = load_adult(), Console()
    start = unbag.losses.log.trivial_score(adult.y.mean())
    jobs = [
        (k, *method)
        for k in options.sizes
        for method in (METHODS if k > 1 else [("labels", "log")])
    ]
    rows = []
    if options.out and options.out.exists():
        with options.out.open() as file:
            rows = [row for row in list(csv.reader(file))[1:] if int(row[0]) not in options.sizes]
    for k, method, loss in track(jobs, console=Console(stderr=True), transient=True):
        bags = [unbag.random_bags(adult.X, adult.y, size=k, seed=seed) for seed in SEEDS]
        runs = sweep(
            lambda seed: models.adult_network(key=seed, start=start),
            bags, method, loss, learning_rates=RATES, seeds=SEEDS,
            epochs=EPOCHS if method != "labels" else 60, test=(adult.X_test, adult.y_test),
        )  # fmt: skip
        value, error, rate, epoch = best(runs)
        rows.append((k, method, loss, f"{value:.4f}", f"{error:.4f}", f"{rate:g}", epoch))
        console.print(*rows[-1])
        if options.out:
            with options.out.open("w", newline="") as file:
                writer = csv.writer(file)
                writer.writerow(
                    ["k", "method", "loss", "test_log_loss", "standard_error", "rate", "epoch"]
                )
                writer.writerows(rows)


if __name__ == "__main__":
    np.seterr(all="ignore")
    main()
