"""How often do 95% intervals from bags contain the truth? By number of bags, on synthetic data and
on Adult.

    python benchmarks/coverage.py [--repetitions 2000] [--out benchmarks/results/coverage.csv]

In each repetition fresh rows are drawn into fresh bags, the model is fixed, and the truth is the
model's loss in the population the rows come from: that of four million rows with their true
probabilities (synthetic), or of all 48,842 rows, from which rows are drawn with replacement (Adult,
labels hidden from the evaluation). 1,024 bags get a quarter of the repetitions. `band` is observed
minus predicted in the top tenth of the scores.
"""

import argparse
import csv
from collections import defaultdict
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

import unbag
from unbag import Bags
from unbag._arrays import mean_by
from unbag.metrics import evaluate, evaluate_labels

COUNTS = (16, 64, 256, 1024)
METRICS = ("log_loss", "brier", "auc", "prediction_minus_report", "band")


class Population:
    """Rows to draw from: a score and the probability of the label (or the label) for each."""

    def __init__(self, name, draw, truth, size, noise=0.0):
        self.name, self.draw, self.size, self.noise = name, draw, size, noise
        found = evaluate_labels(*truth)
        self.truth = {m: found[m].value for m in METRICS[:-1]}
        score, y = truth
        self.top = np.quantile(score, 0.9)
        probability = 1 / (1 + np.exp(-score[score > self.top]))
        self.truth["band"] = y[score > self.top].mean() - probability.mean()

    def bags(self, count, rng):
        """Fresh rows in fresh bags."""
        sizes = self.size(count, rng)
        score, probability = self.draw(int(sizes.sum()), rng)
        y = rng.uniform(size=len(score)) < probability
        bag = np.repeat(np.arange(count), sizes)
        report = mean_by(bag, y.astype(float), sizes)
        if self.noise:
            report = report + rng.laplace(scale=np.sqrt(self.noise / 2), size=count) / sizes
        return score, Bags(bag, report, noise=np.full(count, self.noise) if self.noise else None)


def gaussian(seed=0):
    rng = np.random.default_rng(seed)

    def draw(n, rng):
        x = rng.normal(size=n) - 1.5
        return 1.3 * x + 0.4, 1 / (1 + np.exp(-x))  # a model that is not calibrated

    return draw, draw(4_000_000, rng)


def heavy_tailed(seed=0):
    rng = np.random.default_rng(seed)

    def draw(n, rng):
        x = rng.standard_t(3, size=n)
        return x, 1 / (1 + np.exp(-np.clip(x, -4, 4)))

    return draw, draw(4_000_000, rng)


def adult():
    from sklearn.linear_model import LogisticRegression

    data = unbag.datasets.load_adult()
    model = LogisticRegression(C=1.0, max_iter=300).fit(data.X[:5000], data.y[:5000])
    score = np.concatenate([model.decision_function(data.X), model.decision_function(data.X_test)])
    y = np.concatenate([data.y, data.y_test])

    def draw(n, rng):
        row = rng.integers(len(y), size=n)
        return score[row], y[row]

    return draw, (score, y)


def populations():
    fixed = lambda k: lambda count, rng: np.full(count, k)
    uneven = lambda count, rng: rng.integers(8, 121, size=count)
    return [
        Population("Gaussian, bags of 64", *gaussian(), fixed(64)),
        Population("Gaussian, bags of 512", *gaussian(), fixed(512)),
        Population("Gaussian, bags of 8 to 120", *gaussian(), uneven),
        Population("Gaussian, bags of 64, Laplace noise", *gaussian(), fixed(64), noise=8.0),
        Population("heavy-tailed scores, bags of 64", *heavy_tailed(), fixed(64)),
        Population("Adult, bags of 64", *adult(), fixed(64)),
        Population("Adult, bags of 256", *adult(), fixed(256)),
    ]


def covered(population, count, repetitions, seed):
    """For each metric: share of intervals that hold the truth, mean width, and mean error in
    standard errors."""
    hits, seen = defaultdict(int), defaultdict(list)
    for repetition in range(repetitions):
        rng = np.random.default_rng([seed, repetition])
        score, bags = population.bags(count, rng)
        found = evaluate(score, bags)
        top = found.calibration[-1]
        told = {m: found.estimates.get(m) for m in METRICS[:-1]}
        gap = top.observed.value - top.prediction
        reach = top.observed.high - top.observed.value
        told["band"] = unbag.metrics.Estimate(gap, top.observed.error, gap - reach, gap + reach)
        for name, estimate in told.items():
            if estimate is None:
                continue
            truth = population.truth[name]
            hits[name] += estimate.low <= truth <= estimate.high
            seen[name].append((estimate.value - truth, estimate.high - estimate.low))
    for name in METRICS:
        error, width = np.array(seen[name]).T
        yield name, hits[name] / len(error), error.mean(), error.std(), width.mean(), len(error)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=2000)
    parser.add_argument("--counts", type=int, nargs="+", default=COUNTS)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows = []
    jobs = [(population, count) for population in populations() for count in options.counts]
    for population, count in track(jobs, console=Console(stderr=True), transient=True):
        repetitions = options.repetitions if count <= 256 else options.repetitions // 4
        for name, share, bias, spread, width, n in covered(population, count, repetitions, 1):
            rows.append(
                (
                    population.name,
                    count,
                    name,
                    f"{share:.3f}",
                    f"{bias:.5f}",
                    f"{spread:.5f}",
                    f"{width:.4f}",
                    n,
                )
            )
        if options.out:
            with options.out.open("w", newline="") as file:
                writer = csv.writer(file)
                writer.writerow(
                    [
                        "data",
                        "bags",
                        "metric",
                        "coverage",
                        "mean_error",
                        "sd",
                        "mean_width",
                        "repetitions",
                    ]
                )
                writer.writerows(rows)
    table = Table("data", "bags", *METRICS, title="coverage of 95% intervals")
    for data, count in dict.fromkeys((row[0], row[1]) for row in rows):
        table.add_row(data, str(count), *(row[3] for row in rows if row[:2] == (data, count)))
    Console(width=150).print(table)


if __name__ == "__main__":
    main()
