"""By what should held-out bags choose rate and epoch? Estimates with and without their standard errors.

    python benchmarks/choosing.py [--out benchmarks/results/choosing.csv]

Adult, the paper's network started at the trivial predictor, a fifth of the bags held out, 6 seeds, 4 rates x 40 epochs.
Mean and worst test log loss of what each rule chooses.
"""

import argparse
import csv
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track

from unbag.datasets import load_adult
from unbag.demo import train_all
from unbag.training import engine
from unbag.training.objectives import default_loss
from unbag.training.watching import estimate_with_error

SEEDS, EPOCHS = tuple(range(6)), 40
RULES = {
    "estimate": lambda h: h["held_out"],
    "plus 1": lambda h: h["held_out"] + h["error"],
    "plus 2": lambda h: h["held_out"] + 2 * h["error"],
    "square plus 1": lambda h: h["square"] + h["square_error"],
    "best on test": lambda h: h["test_loss"],
}


def look(setting, score, held_out):
    """All that the rules need, instead of what the trainer looks at."""
    value, error = estimate_with_error(setting, default_loss("any", setting.kind), score, held_out)
    square, square_error = estimate_with_error(setting, default_loss("anchored", setting.kind), score, held_out)
    return {"held_out": value, "error": error, "square": square, "square_error": square_error, "choice": value}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    engine.estimate_held_out = look
    adult, rows = load_adult(), []
    jobs = [(k, method) for k in (64, 512) for method in ("anchored", "upm", "matching", "likelihood")]
    for k, method in track(jobs, console=Console(stderr=True), transient=True):
        runs = train_all(adult, method, k, seeds=SEEDS, epochs=EPOCHS)
        names = ("held_out", "error", "square", "square_error", "test_loss")
        history = {name: np.array([[run.history[name] for run in rates] for rates in runs]) for name in names}
        for rule, judge in RULES.items():
            where = [int(np.nanargmin(judged)) for judged in judge(history).reshape(len(SEEDS), -1)]
            chosen = history["test_loss"].reshape(len(SEEDS), -1)[np.arange(len(SEEDS)), where]
            rows.append((k, method, rule, f"{chosen.mean():.4f}", f"{chosen.max():.4f}"))
            Console().print(*rows[-1])
    if options.out:
        with options.out.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["k", "method", "rule", "mean_test_log_loss", "worst_seed"])
            writer.writerows(rows)


if __name__ == "__main__":
    main()
