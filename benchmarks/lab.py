"""How many model-epochs a second does the lab make? A model-epoch is one run over all training
rows, and its test.

    python benchmarks/lab.py [TASK] [MODEL] [--rates 16] [--repetitions 10] [--methods upm labels]
        [--out benchmarks/results/lab.csv]

For each method at bags of 64: learning rates x repetitions together, as `unbag reproduce` trains
them; the time of 3 epochs less that of 1, so that compiling does not count. Rows are added to the
file.
"""

import argparse
import csv
import time
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

from unbag.lab import preset
from unbag.lab._catalogue import TASKS, WAYS
from unbag.lab._run import train_group


def seconds(task, model, way, rates, repetitions, epochs):
    changes = {
        "methods": (way,),
        "sizes": (64,),
        "repetitions": repetitions,
        "epochs": epochs,
        "model": model,
    }
    plan = preset("paper", task, **changes)
    group = next(plan.groups())
    start = time.perf_counter()
    train_group(group._replace(rates=group.rates[-rates:]))
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", nargs="?", default="adult")
    parser.add_argument("model", nargs="?", default="")
    parser.add_argument("--rates", type=int, default=16)
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--methods", nargs="+", help="by default all of the task")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    given = (options.rates, options.repetitions)
    rows = []
    for way in track(
        options.methods or WAYS[TASKS[options.task].kind],
        console=Console(stderr=True),
        transient=True,
    ):
        seconds(options.task, options.model, way, *given, 1)
        one, three = (
            seconds(options.task, options.model, way, *given, epochs) for epochs in (1, 3)
        )
        rows.append(
            (
                options.task,
                options.model or "paper's",
                way,
                *given,
                f"{2 * given[0] * given[1] / (three - one):.3g}",
            )
        )
    names = ("task", "model", "method", "rates", "repetitions", "model_epochs_per_second")
    table = Table(*names)
    for row in rows:
        table.add_row(*map(str, row))
    Console().print(table)
    if options.out:
        fresh = not options.out.exists()
        with options.out.open("a", newline="") as file:
            csv.writer(file).writerows([names, *rows] if fresh else rows)


if __name__ == "__main__":
    main()
