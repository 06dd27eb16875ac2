"""The tournament in one pass against pair by pair: equality, ratio of times, growth, and a large
one.

    python benchmarks/tournament.py [--large] [--out benchmarks/results/tournament.csv]

Pair by pair gets the loss components of all models ready-made; the one pass starts from the scores.
`--large` adds 1,000 models on 1,000,000 instances (functions of X, evaluated chunk by chunk) and
its peak memory.
"""

import argparse
import csv
import resource
import time
from pathlib import Path

import numpy as np
from pair_by_pair import all_pairs, pair
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from unbag import losses, random_bags, tournament
from unbag.tournaments._groups import plan_groups

GROUPS, SIZE, FEATURES = 60, 8, 10


def problem(models, n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, FEATURES)).astype(np.float32)
    theta = rng.normal(size=FEATURES) / 2
    y = rng.uniform(size=n) < 1 / (1 + np.exp(-(X @ theta) + 1))
    bags = random_bags(X, y, size=SIZE, seed=seed)
    slopes = theta[:, None] + rng.normal(size=(FEATURES, models)) * 0.3
    return bags, slopes.astype(np.float32)


def seconds(function):
    start = time.perf_counter()
    value = function()
    return time.perf_counter() - start, value


def against_pair_by_pair(models, n):
    bags, slopes = problem(models, n)
    scores = np.ascontiguousarray((bags.X @ slopes - 1).T.astype(float))
    fast, result = seconds(lambda: tournament(scores, bags, beta=0.1, groups=GROUPS))
    layout, _ = plan_groups(bags, GROUPS, seed=0)
    components = np.stack([losses.log.components(score) for score in scores])
    pairs = models * (models - 1) // 2
    slow, Q = seconds(lambda: all_pairs(components, bags, layout))
    return [models, n, pairs, fast, slow, slow / fast, np.abs(Q - result.Q).max()]


def one_pass(models, n, progress=None):
    bags, slopes = problem(models, n)
    functions = [lambda X, h=h: X @ slopes[:, h] - 1 for h in range(models)]
    took, result = seconds(
        lambda: tournament(functions, bags, beta=0.1, groups=None, progress=progress)
    )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    # equality is checked on a few pairs where all of them are too many
    layout, _ = plan_groups(bags, result.groups, seed=0)
    some = [
        losses.log.components(np.asarray(functions[h](bags.X), float)) for h in (0, 1, models - 1)
    ]
    worst = max(
        abs(pair(some[0], some[1], bags, layout) - result.Q[0, 1]),
        abs(pair(some[0], some[2], bags, layout) - result.Q[0, models - 1]),
    )
    return [models, n, models * (models - 1) // 2, took, result.groups, worst, peak]


def exponent(rows, column):
    x, y = np.log([row[column] for row in rows]), np.log([row[3] for row in rows])
    return np.polyfit(x, y, 1)[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    console = Console()

    table = Table(
        "models",
        "instances",
        "pairs",
        "one pass, s",
        "pair by pair, s",
        "ratio",
        "largest difference",
    )
    table.title = f"one pass against pair by pair, {GROUPS} groups, bags of {SIZE}"
    compared = [against_pair_by_pair(models, 40_000) for models in (16, 64, 256)]
    for models, n, pairs, fast, slow, ratio, worst in compared:
        table.add_row(
            *map(str, (models, n, pairs)),
            f"{fast:.2f}",
            f"{slow:.1f}",
            f"{ratio:.0f}",
            f"{worst:.1e}",
        )
    console.print(table)

    grown = [one_pass(models, 100_000) for models in (32, 64, 128, 256)]
    longer = [one_pass(64, n) for n in (50_000, 100_000, 200_000, 400_000)]
    large = []
    if options.large:
        with Progress(console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task("1,000 models on 1,000,000 instances")
            told = lambda done, total: bar.update(task, completed=done, total=total)
            large = [one_pass(1000, 1_000_000, told)]
    table = Table(
        "models",
        "instances",
        "pairs",
        "seconds",
        "groups",
        "difference of 2 pairs",
        "peak memory, GiB",
    )
    table.title = "one pass, models as functions of X"
    for models, n, pairs, took, groups, worst, peak in [*grown, *longer, *large]:
        table.add_row(
            *map(str, (models, n, pairs)), f"{took:.2f}", str(groups), f"{worst:.1e}", f"{peak:.2f}"
        )
    console.print(table)
    console.print(
        f"time grows like models^{exponent(grown, 0):.2f} and instances^{exponent(longer, 1):.2f}"
    )
    if options.out:
        with options.out.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(
                [
                    "what",
                    "models",
                    "instances",
                    "pairs",
                    "seconds",
                    "pair_by_pair_s",
                    "ratio",
                    "difference",
                    "peak_gib",
                ]
            )
            for m, n, p, fast, slow, ratio, worst in compared:
                writer.writerow(
                    [
                        "compared",
                        m,
                        n,
                        p,
                        f"{fast:.3f}",
                        f"{slow:.2f}",
                        f"{ratio:.1f}",
                        f"{worst:.1e}",
                        "",
                    ]
                )
            for m, n, p, took, _, worst, peak in [*grown, *longer, *large]:
                writer.writerow(
                    ["one pass", m, n, p, f"{took:.3f}", "", "", f"{worst:.1e}", f"{peak:.2f}"]
                )


if __name__ == "__main__":
    main()
