"""The paper's theorems by simulation: one function per claim, each returning what it saw.

python benchmarks/theorems.py [--out benchmarks/results/theorems.csv]
"""

import argparse
import csv
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from unbag import Bags, losses, tournament, weights

sigmoid = lambda z: 1 / (1 + np.exp(-z))


def draw(rng, bags, k, slope=1.0, shift=-1.0):
    """Bags of a logistic world with one Gaussian feature."""
    x = rng.normal(size=bags * k)
    y = rng.uniform(size=bags * k) < sigmoid(slope * x + shift)
    return Bags(np.repeat(np.arange(bags), k), y.reshape(bags, k).mean(axis=1), X=x)


def true_loss(loss, score):
    """Population loss of a model `score(x)` in that world, by quadrature."""
    x = np.linspace(-9, 9, 20001)
    density = np.exp(-(x**2) / 2)
    f = loss.components(score(x))
    eta = sigmoid(x - 1)
    return float(np.average(f[:, 0] + eta * f[:, 1], weights=density))


def slope(rows, x, y):
    """Exponent of the growth of y in x."""
    return float(
        np.polyfit(np.log([row[x] for row in rows]), np.log([row[y] for row in rows]), 1)[0]
    )


def linear(a, b):
    return lambda x: a * x + b


def pool_keeps_the_best(runs, bags=6000, k=4, beta=0.25, delta=0.1):
    """How often the best model stays, and how often all with more regret than beta go."""
    models = [
        linear(1, -1),
        linear(0.8, -1),
        linear(0, -1),
        linear(-1, -1),
        linear(-1, 1),
        linear(3, 2),
    ]
    regret = np.array([true_loss(losses.square, m) for m in models])
    regret -= regret.min()
    rng = np.random.default_rng(0)
    kept = dropped = 0
    for run in range(runs):
        result = tournament(
            models, draw(rng, bags, k), beta=beta, delta=delta, loss=losses.square, seed=run
        )
        kept += 0 in result.pool
        dropped += all(regret[h] <= beta for h in result.pool)
    return {
        "runs": runs, "bags": bags, "k": k, "beta": beta, "delta": delta,
        "kept": kept / runs, "dropped": dropped / runs,
        "to_drop": int((regret > beta).sum()), "largest_regret": float(regret.max()),
    }  # fmt: skip


def q_concentrates(runs, k=8, delta=0.1):
    """Root mean square of Q - truth, and how often it is within C, at growing numbers of bags."""
    models = [linear(1, -1), linear(0.3, -1)]
    truth = true_loss(losses.log, models[0]) - true_loss(losses.log, models[1])
    rng = np.random.default_rng(1)
    rows = []
    for bags in (300, 1200, 4800):
        errors, inside = np.zeros(runs), 0
        for run in range(runs):
            result = tournament(models, draw(rng, bags, k), beta=0.1, delta=delta, seed=run)
            errors[run] = result.Q[0, 1] - truth
            inside += abs(errors[run]) <= result.C[0, 1]
        rows.append({
            "bags": bags, "k": k, "runs": runs, "truth": truth, "mean_error": errors.mean(),
            "rmse": float(np.sqrt(np.mean(errors**2))), "inside": inside / runs, "delta": delta,
        })  # fmt: skip
    return rows


def regret_by_bags(runs, k=8):
    """Realizable: the true model is one of 41. Mean regret of the choice at growing numbers of
    bags, k fixed."""
    slopes = np.linspace(-1, 3, 41)
    models = [linear(a, -1) for a in slopes]
    regret = np.array([true_loss(losses.square, m) for m in models])
    regret -= regret.min()
    rng = np.random.default_rng(2)
    rows = []
    for bags in (150, 600, 2400):
        found = []
        for run in range(runs):
            world = draw(rng, bags, k)
            result = tournament(models, world, beta=1.0, groups=9, loss=losses.square, seed=run)
            found.append(regret[result.chosen])
        rows.append({"bags": bags, "k": k, "runs": runs, "regret": float(np.mean(found))})
    return rows


def classes(runs, k=8):
    """Variance of one bag's loss with known prior and means, as the classes grow: bounded histogram
    loss, and totals.

    Histogram: c times the Brier loss (bounded by 2) of random class probabilities. Total: the
    square loss of a predicted count spread over 0..c-1, divided by c - 1 so that f2 keeps its range
    and only that of the labels grows. Labels are uniform.
    """
    rng = np.random.default_rng(3)
    rows = []
    for c in (2, 4, 8, 16, 32):
        y = rng.integers(0, c, size=(runs, k))
        f = c * losses.brier.components(rng.normal(size=(runs, k, c)) * 2)
        histogram = bag_losses(np.eye(c)[y].mean(axis=1), np.full(c, 1 / c), f)
        h = rng.uniform(0, c - 1, size=(runs, k))
        f = losses.square.components(h, kind="total") / (c - 1)
        total = bag_losses(
            np.stack([np.ones(runs), y.mean(axis=1)], axis=1), np.array([1, (c - 1) / 2]), f
        )
        rows.append(
            {"classes": c, "k": k, "runs": runs, "histogram": histogram.var(), "total": total.var()}
        )
    return rows


def bag_losses(report, prior, f):
    """The ideal estimator of each bag, the paper's equation (2) and Lemma C.1's for histograms.

    f is (bags, instances, components), its mean taken as known.
    """
    mean = f.mean(axis=(0, 1))
    return np.sum((report - prior) * (f - mean).sum(axis=1), axis=1) + prior @ mean


def heavy_tails(runs, bags=900, k=4):
    """Two models; the better one scores a rare kind of instance with enormous logits, half of them
    wrongly.

    Its population loss is lower, but the empirical mean is moved by the few bags that hold such
    instances.
    """
    rng = np.random.default_rng(4)
    rare, size_of_score = 0.0005, 400.0
    wrong = {"mean": 0, "tournament": 0}
    for run in range(runs):
        world = draw(rng, bags, k)
        n = len(world.bag)
        wild = np.where(
            rng.uniform(size=n) < rare, rng.choice([-1, 1], size=n) * size_of_score, 0.0
        )
        better, worse = 1.0 * world.X - 1 + wild, -0.2 * world.X - 1
        result = tournament([better, worse], world, beta=0.05, groups=15, seed=run)
        wrong["tournament"] += result.Q[0, 1] > 0
        report, prior = world.components()
        by_bag = [
            weights.upm_by_bag(
                losses.log.components(s), world.bag, world.size, report, prior
            ).mean()
            for s in (better, worse)
        ]
        wrong["mean"] += by_bag[0] > by_bag[1]
    base = true_loss(losses.log, linear(1, -1))
    tail = rare * (size_of_score / 2)  # half of the wild scores are on the wrong side of a label
    return {
        "runs": runs, "bags": bags, "k": k, "better": base + tail,
        "worse": true_loss(losses.log, linear(-0.2, -1)),
        "mean_wrong": wrong["mean"] / runs, "tournament_wrong": wrong["tournament"] / runs,
    }  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    jobs = {
        "the pool keeps the best and drops regret above beta": lambda: [
            pool_keeps_the_best(runs=200)
        ],
        "Q concentrates around the true difference": lambda: q_concentrates(runs=1000),
        "realizable: regret falls like 1/m": lambda: regret_by_bags(runs=1000),
        "variance of a bag as classes grow": lambda: classes(runs=20000),
        "heavy tails": lambda: [heavy_tails(runs=1000)],
    }
    done = {
        name: job()
        for name, job in track(jobs.items(), console=Console(stderr=True), transient=True)
    }
    console = Console()
    for name, rows in done.items():
        table = Table(*rows[0], title=name)
        for row in rows:
            table.add_row(*(f"{value:.4g}" for value in row.values()))
        console.print(table)
    console.print(
        "rmse of Q falls like "
        f"bags^{slope(done['Q concentrates around the true difference'], 'bags', 'rmse'):.2f}"
    )
    console.print(
        "regret falls like "
        f"bags^{slope(done['realizable: regret falls like 1/m'], 'bags', 'regret'):.2f}"
    )
    if options.out:
        with options.out.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["claim", "row", "quantity", "value"])
            for name, rows in done.items():
                for number, row in enumerate(rows):
                    writer.writerows(
                        (name, number, key, f"{value:.6g}") for key, value in row.items()
                    )


if __name__ == "__main__":
    main()
