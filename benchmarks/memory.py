"""How much memory does each station of `unbag train` take beside its input?

    python benchmarks/memory.py [--rows 5000000] [--out benchmarks/results/memory.csv]

Six numbers and six categories (3 to 1,000 levels) in bags of 50, read from Parquet. A line for each
station: its CPU seconds, what is in use when it begins and the most that is in use until its end,
less what the program takes by itself, and the same beside the columns of the events as they are
held (`beside_mb`; the goal is 1,500). `matrix` is the dense matrix that no station makes.
"""

import argparse
import csv
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from rich.console import Console

LEVELS, NUMBERS, SIZE, GOAL = (3, 8, 20, 60, 200, 1000), 6, 50, 1500
HEADER = ("station", "rows", "cpu_seconds", "before_mb", "peak_mb", "beside_mb", "goal")


def make(folder, rows):
    """Events and reports as Parquet."""
    import duckdb

    numbers = [f"(random() * 2 - 1)::float as x{j}" for j in range(NUMBERS)]
    levels = [f"'level ' || floor(random() * {n})::int as c{j}" for j, n in enumerate(LEVELS)]
    events, reports = folder / "events.parquet", folder / "reports.parquet"
    chance = "1 / (1 + exp(1.5 - x0 - x1 - (c0 = 'level 1')::int))"
    with duckdb.connect(config={"memory_limit": "1GB", "temp_directory": str(folder)}) as database:
        columns = ", ".join([*numbers, *levels])
        database.execute(f"create table e as select i // {SIZE} as bag, {columns} "
                         f"from range({rows}) t(i)")  # fmt: skip
        database.execute(f"copy e to '{events}' (row_group_size 122880)")
        database.execute(f"copy (select bag, sum((random() < {chance})::int) as sales "
                         f"from e group by bag) to '{reports}'")  # fmt: skip
    return events, reports


def in_use(name):
    """Megabytes of this process: VmRSS now, VmHWM at most."""
    line = next(x for x in Path("/proc/self/status").read_text().splitlines() if name in x)
    return int(line.split()[1]) / 1024


class Stations:
    """Runs stations one after the other and keeps a line of each."""

    def __init__(self, rows):
        self.rows, self.lines, self.own, self.table = rows, [], in_use("VmRSS"), 0.0

    def run(self, name, work):
        """One station; what it made comes back."""
        before, start = in_use("VmRSS"), time.process_time()
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = work()
        cpu, peak = time.process_time() - start, in_use("VmHWM") - self.own
        if name == "join":
            self.table = made.table.nbytes / 2**20
        numbers = (before - self.own, peak, peak - self.table)
        line = [name, self.rows, f"{cpu:.1f}", *(f"{x:.0f}" for x in numbers), GOAL]
        self.lines.append(line)
        Console().print(*line)
        return made


def measure(folder, rows, rounds):
    """Every station that has the rows in memory, with a part of the rounds of trees."""
    import lightgbm  # noqa: F401

    import unbag
    from unbag.diagnosis import diagnose
    from unbag.learners import Additive, Trees, fit, folds_of

    events, reports = make(folder, rows)
    small = unbag.join(*make_small(folder), on="bag", total="sales")
    fit(small, folds=2)  # loads what is loaded late
    stations = Stations(rows)
    bags = stations.run("join", lambda: unbag.join(events, reports, on="bag", total="sales"))
    stations.run("diagnose", lambda: diagnose(bags))
    read, fold = bags.as_read(), folds_of(bags, 5, seed=0)
    part = np.flatnonzero(fold != 0)
    model = stations.run("additive", lambda: Additive().fit(read.take(part)))
    stations.run("scores", lambda: model.scores(read.X))
    trees = Trees(rounds=rounds, patience=rounds)
    grown = stations.run("trees", lambda: trees.fit_folds(read, fold))
    stations.run("tree scores", lambda: grown.models[0].scores(read.X))
    width = len(bags.plan.names)
    size = rows * width * 4 / 2**20
    stations.lines.append(["matrix", rows, "", "", f"{size:.0f}", "", ""])
    Console().print(*stations.lines[-1])
    return stations.lines


def make_small(folder):
    (folder / "small").mkdir()
    return make(folder / "small", 5000)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        lines = measure(Path(folder), options.rows, options.rounds)
    if options.out:
        with options.out.open("w", newline="") as file:
            csv.writer(file).writerows([HEADER, *lines])


if __name__ == "__main__":
    main()
