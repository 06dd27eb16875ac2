"""Does the interval of the verdict's slope cover the slope that the model has? A simulation.

    python benchmarks/slopes.py [--out benchmarks/results/slopes.csv] [--trials 200]
                                [--kinds binary total]

Small made tables, each another one: 16 to 200 bags of 8 to 64 rows, 3 to 9 columns, weak to strong
effects, rates of 7% to 50% (totals: 0.6 to 7 a row, scattering more than Poisson's). `unbag.fit`
with the additive learner says the slope with its interval of 95%; the true one is that of 10,000
fresh rows with known means. Columns: how often the interval covers the true slope of the final
model, how often it lies below and above it, and the median of the slope that is said and of the
true one. Fits whose prediction is the prior have no slope and do not count.
"""

import argparse
import csv
import warnings
from pathlib import Path

import numpy as np
from rich.console import Console
from scipy.special import expit, logit

import unbag
from unbag.learners import Additive

HEADER = ("kind", "trials", "covered", "below", "above", "median", "median_true")
FRESH = 10_000


def world(rng, kind):
    """Bags, fresh rows and their true means."""
    count, size = (int(np.exp(rng.uniform(*np.log(ends)))) for ends in ((16, 200), (8, 64)))
    columns, n = int(rng.integers(3, 10)), count * size
    w = rng.normal(size=columns) * (rng.random(columns) < 0.6)
    w[0] += 0.5
    w *= rng.choice([0.3, 0.6, 1.0, 1.6]) / np.linalg.norm(w)
    X, level = rng.normal(size=(n + FRESH, columns)), rng.choice([-2.5, -1.2, 0.0])
    if kind == "binary":
        mean = expit(level + X @ w)
        y = (rng.random(len(X)) < mean).astype(float)
    else:
        mean = np.exp(level + 2 + X @ w / 2)
        y = rng.poisson(mean * rng.gamma(1.0, 1.0, len(X))).astype(float)
    bags = unbag.random_bags(X[:n], y[:n], size=size, seed=0, kind=kind)
    return bags, X[n:], mean[n:]


def true_slope(score, mean, kind):
    """Of a regression of the true means on the score."""
    A = np.column_stack([np.ones(len(score)), score - score.mean()])
    b = np.array([logit(mean.mean()) if kind == "binary" else np.log(mean.mean()), 0.0])
    for _ in range(100):
        h = expit(A @ b) if kind == "binary" else np.exp(A @ b)
        curve = h * (1 - h) if kind == "binary" else h
        step = np.linalg.solve((A.T * curve) @ A, A.T @ (mean - h))
        b += step * min(1, 1 / max(np.abs(step).max(), 1e-12))
    return b[1]


def simulate(kind, trials):
    rng, said = np.random.default_rng([trials, len(kind)]), []
    for _ in range(trials):
        bags, rows, mean = world(rng, kind)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted = unbag.fit(bags, learner=Additive(pairs=0))
        score = fitted.scores(rows)
        if np.ptp(score) > 1e-6 and fitted.slope is not None:
            slope = fitted.slope
            said.append([slope.low, slope.high, slope.value, true_slope(score, mean, kind)])
    low, high, value, true = np.array(said).T
    within = (low <= true) & (true <= high)
    rates = (within.mean(), (high < true).mean(), (low > true).mean())
    return [kind, len(said), *rates, np.median(value), np.median(true)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--kinds", nargs="+", default=("binary", "total"))
    options = parser.parse_args()
    rows = []
    for kind in options.kinds:
        row = simulate(kind, options.trials)
        rows.append([f"{value:.4g}" if isinstance(value, float) else value for value in row])
        Console(width=120).print(*zip(HEADER, rows[-1], strict=True))
    if options.out:
        with options.out.open("w", newline="") as file:
            csv.writer(file).writerows([HEADER, *rows])


if __name__ == "__main__":
    main()
