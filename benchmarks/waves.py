"""How many waves a cycle of hours, months or weeks should have, and what they cost where levels
have no order.

    UNBAG_DATA=... python benchmarks/waves.py

The additive model, test loss less trivial, means of four seeds: on tables with hours none to three
waves; on Adult's matrix, whose blocks of columns are in no order, none, and waves for all blocks of
eight columns and more.
"""

import warnings

import numpy as np
from learning import LEARNERS, loss_of, trivial_score
from learning_more import MORE_TASKS
from learning_tasks import TASKS, Task
from rich.console import Console

import unbag
from unbag.additive import _terms
from unbag.datasets import load_adult

SEEDS = range(4)


def gain(task: Task) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        score = np.asarray(LEARNERS["additive"](task)(task.test), float)
    losses = (loss_of(own, task.truth, task.bags.kind) for own in (score, trivial_score(task)))
    return next(losses) - next(losses)


def adult(size: int, seed: int) -> Task:
    known = load_adult()
    bags = unbag.random_bags(known.X, known.y, size=size, seed=seed)
    return Task(bags, known.y[bags.rows], known.X_test, known.y_test)


def main():
    usual = _terms.CYCLES, _terms.WAVES
    for name, sizes in {"shops": (32, 256), "weeks": (20, 200), "bike": (64, 256)}.items():
        for size in sizes:
            for waves in range(4):
                _terms.CYCLES, _terms.WAVES = usual[0] if waves else (), max(waves, 1)
                values = [gain((TASKS | MORE_TASKS)[name](size, seed)) for seed in SEEDS]
                Console().print(name, size, f"{waves} waves", f"{np.mean(values):.4f}")
    _terms.WAVES = usual[1]
    for size in (64, 256, 1024):
        for cycles in ((), range(8, 200)):
            _terms.CYCLES = cycles
            values = [gain(adult(size, seed)) for seed in SEEDS]
            words = "waves for blocks of 8 and more" if cycles else "no waves"
            Console().print("adult", size, words, f"{np.mean(values):.4f}")


if __name__ == "__main__":
    main()
