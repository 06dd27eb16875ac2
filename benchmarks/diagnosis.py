"""How often are bags called not random: random ones (false alarms), and ones that follow campaigns
(power)?

    python benchmarks/diagnosis.py [--repetitions 40] [--out benchmarks/results/diagnosis.csv]

Each bag comes from one of 20 campaigns whose features have means of standard deviation `effect` in
units of the features' own; the label depends on the first feature. Half of the features are normal,
half are 1 in one row of fifty. `by_reports` is how often the reports alone would have told (p at
most half of the level, as in the diagnosis), and `bias` the mean absolute error of the unbiased log
loss of the true score. Level 0.01. Random bags (effect 0) are repeated 25 times as often.
"""

import argparse
import csv
import itertools
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from unbag import Bags, diagnose, losses, weights

LEVEL, CAMPAIGNS = 0.01, 20
FIELDS = (
    "k",
    "bags",
    "features",
    "effect",
    "repetitions",
    "not_random",
    "standard_error",
    "by_reports",
    "bias",
    "loss",
)


def world(k, bags, features, effect, rng):
    """Bags that follow campaigns, their labels, and the true scores."""
    campaign = np.repeat(rng.integers(0, CAMPAIGNS, size=bags), k)
    n, common = k * bags, (features + 1) // 2
    X = rng.normal(size=(n, common)) + effect * rng.normal(size=(CAMPAIGNS, common))[campaign]
    rare = rng.random((n, features - common)) < 0.02 * np.exp(
        effect * rng.normal(size=(CAMPAIGNS, 1))[campaign]
    )
    score = 1.5 * X[:, 0] - 1.5
    y = (score + rng.logistic(size=n) > 0).astype(float)
    return (
        Bags(np.arange(n) // k, y.reshape(bags, k).mean(axis=1), X=np.hstack([X, rare])),
        y,
        score,
    )


def measure(k, bags, features, effect, repetitions):
    found = []
    for seed in range(repetitions):
        rng = np.random.default_rng([k, bags, features, int(1000 * effect), seed])
        made, y, score = world(k, bags, features, effect, rng)
        diagnosis = diagnose(made, seed=seed)
        report, prior = made.components()
        estimate = (
            weights.upm(made.size, report, prior)[made.bag] * losses.log.components(score)
        ).sum()
        truth = losses.log.value(score, y).mean()
        by_reports = diagnosis.labels is not None and diagnosis.labels.p <= LEVEL / 2
        found.append((not diagnosis.random, by_reports, abs(estimate - truth), truth))
    alarm, by_reports, bias, loss = np.mean(np.array(found, float), axis=0)
    error = np.sqrt(alarm * (1 - alarm) / repetitions)
    return (k, bags, features, effect, repetitions, alarm, error, by_reports, bias, loss)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=40)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    grid = itertools.product((16, 128), (32, 128), (4, 40), (0.0, 0.05, 0.1, 0.2))
    jobs = [(*cell, options.repetitions * (25 if cell[3] == 0 else 1)) for cell in grid]
    rows = [measure(*job) for job in track(jobs, console=Console(stderr=True), transient=True)]
    table = Table(*FIELDS)
    for row in rows:
        table.add_row(*(f"{value:.4g}" for value in row))
    Console(width=140).print(table)
    if options.out:
        with options.out.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(FIELDS)
            writer.writerows([f"{value:.5g}" for value in row] for row in rows)


if __name__ == "__main__":
    main()
