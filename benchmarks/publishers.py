"""How long does a fit take where both the coefficients and the bags are many?

    python benchmarks/publishers.py [--learners additive default] [--out FILE]

120,000 made clicks on the pages of 3,000 publishers, in 6,000 random bags of 20: one thread, CPU
seconds, the log evidence of the additive model, and the loss of the predictions for further clicks
by their true probabilities, beside that of the mean rate and of the truth itself.
"""

import argparse
import csv
import time
import warnings
from pathlib import Path

import numpy as np
from rich.console import Console
from scipy.special import expit, xlogy
from threadpoolctl import threadpool_limits

import unbag
from unbag.datasets import make_conversions
from unbag.learners import Additive

HEADER = ("learner", "cpu_seconds", "log_evidence", "loss", "trivial", "truth")


def additive(bags):
    model = Additive().fit(bags)
    return model.log_evidence, lambda X: expit(model.scores(X))


def default(bags):
    model = unbag.fit(bags)
    return model.models["additive"].log_evidence, model.predict


LEARNERS = {"additive": additive, "default": default}


def loss(p, truth):
    return float(-(xlogy(truth, p) + xlogy(1 - truth, 1 - p)).mean())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--learners", nargs="+", default=tuple(LEARNERS), choices=tuple(LEARNERS))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    threadpool_limits(1)
    warnings.simplefilter("ignore")
    clicks = make_conversions(120_000, 50_000, seed=0, publishers=3_000)
    bags = unbag.random_bags(clicks.events, clicks.label, size=20, seed=0)
    truth, lines = clicks.test_truth, [HEADER]
    known = loss(np.full(len(truth), truth.mean()), truth), loss(truth, truth)
    for learner in options.learners:
        start = time.process_time()
        evidence, predict = LEARNERS[learner](bags)
        seconds = time.process_time() - start
        values = (loss(predict(clicks.test), truth), *known)
        lines.append([learner, f"{seconds:.1f}", f"{evidence:.2f}", *(f"{v:.5f}" for v in values)])
        Console().print(*lines[-1])
        if options.out:
            with options.out.open("w", newline="") as file:
                csv.writer(file).writerows(lines)


if __name__ == "__main__":
    main()
