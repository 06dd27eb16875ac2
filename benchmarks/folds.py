"""Do intervals from folds cover, although folds share bags? A simulation.

    python benchmarks/folds.py [--out benchmarks/results/folds.csv] [--trials 600]
                               [--learners additive] [--bags 16 64 256]

The additive learner, or a linear model by least squares on the means of bags with one of three
penalties, is cross-fitted in five folds, and `evaluate_folds` judges it. The true losses come from
fresh rows with known probabilities. Columns: how often the interval of 95% covers the mean loss of
the fold models, how often the loss of the model of all bags lies below its upper end, the bias of
the estimate, its standard deviation, the root mean square of the standard errors that were told,
and the same error without what folds share.
"""

import argparse
import csv
import warnings
from pathlib import Path

import numpy as np
from rich.console import Console
from scipy.special import expit, logit

from unbag import Bags
from unbag.learners import Additive, folds_of
from unbag.metrics import _folds, evaluate_folds

TRUE, START, SIZE, FOLDS = np.array([1.0, 0.7, 0.5, 0.0, 0.0, 0.0]), -1.2, 32, 5
HEADER = (
    "bags",
    "learner",
    "trials",
    "covered",
    "final_below",
    "bias",
    "sd",
    "error",
    "error_plain",
)


def ridge(bags, penalty):
    """Weights and intercept of a linear score."""
    k = bags.size
    mean = np.stack([np.bincount(bags.bag, x) / k for x in bags.X.T], axis=1)
    p = np.clip(np.average(bags.report, weights=k), 0.02, 0.98)
    centre = np.average(mean, axis=0, weights=k)
    away = (mean - centre) * k[:, None]
    H = p * (1 - p) * away.T @ (mean - centre) + penalty * np.eye(len(TRUE))
    w = np.linalg.solve(H, away.T @ (bags.report - p))
    return w, logit(p) - centre @ w


def additive(bags):
    """Weights and intercept of the additive model with lines."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scores = (
            Additive(steps=0).fit(bags).scores(np.vstack([np.zeros(len(TRUE)), np.eye(len(TRUE))]))
        )
    return scores[1:] - scores[0], scores[0]


LEARNERS = {
    "ridge 3": lambda bags: ridge(bags, 3.0),
    "ridge 10": lambda bags: ridge(bags, 10.0),
    "ridge 100": lambda bags: ridge(bags, 100.0),
    "additive": additive,
}


def trial(count, learn, rng, fresh):
    """Interval, plain error, mean true loss of the fold models, true loss of the final one."""
    X = rng.normal(size=(count * SIZE, len(TRUE)))
    y = rng.uniform(size=len(X)) < expit(START + X @ TRUE)
    bags = Bags(np.repeat(np.arange(count), SIZE), y.reshape(count, SIZE).mean(axis=1), X=X)
    fold = folds_of(bags, FOLDS, seed=int(rng.integers(2**31)))
    models = [learn(bags.take(np.flatnonzero(fold != f))) for f in range(FOLDS)]
    scores = [X @ w + b for w, b in models]
    found = evaluate_folds(scores, bags, fold)["log_loss"]
    shared, _folds._drift = _folds._drift, lambda S, judge, fold: np.zeros(S.shape[1:3])
    plain = evaluate_folds(scores, bags, fold)["log_loss"].error
    _folds._drift = shared
    true = np.average([loss(fresh, *m) for m in models], weights=np.bincount(fold))
    return found, plain, true, loss(fresh, *learn(bags))


def loss(fresh, w, b):
    z = fresh @ w + b
    return np.mean(np.logaddexp(0, z) - expit(START + fresh @ TRUE) * z)


def measure(count, learner, trials):
    rng = np.random.default_rng([count, list(LEARNERS).index(learner)])
    fresh = rng.normal(size=(20_000, len(TRUE)))
    runs = [trial(count, LEARNERS[learner], rng, fresh) for _ in range(trials)]
    covered = np.mean([e.low <= true <= e.high for e, _, true, _ in runs])
    below = np.mean([final <= e.high for e, _, _, final in runs])
    off = np.array([e.value - true for e, _, true, _ in runs])
    told = np.sqrt(np.mean([[e.error**2, plain**2] for e, plain, _, _ in runs], axis=0))
    numbers = (covered, below, off.mean(), off.std(), *told)
    return [count, learner, trials, *(f"{v:.4f}" for v in numbers)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--trials", type=int, default=600)
    parser.add_argument("--learners", nargs="+", default=tuple(LEARNERS), choices=tuple(LEARNERS))
    parser.add_argument("--bags", type=int, nargs="+", default=(16, 64, 256))
    options = parser.parse_args()
    rows, console = [HEADER], Console()
    for learner in options.learners:
        for count in options.bags:
            rows.append(measure(count, learner, options.trials))
            console.print(*rows[-1])
            if options.out:
                with options.out.open("w", newline="") as file:
                    csv.writer(file).writerows(rows)


if __name__ == "__main__":
    main()
