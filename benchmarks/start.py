"""Time to the first model: from the shell prompt to the verdict, on the demo's tables.

    python benchmarks/start.py [--repeats 3] [--commands network] [--out FILE.csv]

Each start is a new process, and the best of some repeats counts, which take turns; `warm` is the
second call of the same command in one process. `compiled` is a network whose programs JAX finds in
its cache folder, `cold` the first start of all, with an empty one. Seconds of the CPU (of all cores
together) and of the clock; `load` is the load average: above the number of cores others took part
of the clock.
"""

import argparse
import csv
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console

HEADER = ("command", "start", "cpu_seconds", "seconds", "load", "cores", "goal")
TABLES = """
import sys
from pathlib import Path
from unbag.cli._tour import Files, make_tables
make_tables(Files(Path(sys.argv[1])), 64)
"""
ONCE = "from unbag.cli import run; run()"
TWICE = """
import sys, time
from typer.testing import CliRunner
from unbag.cli import app
for again in range(2):
    cpu, clock = time.process_time(), time.perf_counter()
    done = CliRunner().invoke(app, sys.argv[1:])
    assert done.exit_code == 0, done.output
print(time.process_time() - cpu, time.perf_counter() - clock)
"""
# goals: seconds, and for a network beside a warm start
WORDS = {"additive": ["--learner", "additive"], "default": [], "network": ["--learner", "network"]}
GOALS = {("help", "cold"): 0.5, ("additive", "cold"): 3.0, ("network", "compiled"): "warm + 2"}


def seconds(code, words, cache):
    """CPU and clock of one process, and what it printed."""
    environment = os.environ | {"JAX_COMPILATION_CACHE_DIR": str(cache)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode
    before, clock = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, "-c", code, *map(str, words)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    after, clock = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - clock
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return (cpu, clock), done.stdout


def starts(folder, name, words, repeats):
    """The kinds of start of one command, with the best CPU and clock of each, taken in turns."""
    cache = folder / f"compiled-{name}"
    once = lambda: seconds(ONCE, words, cache)[0]
    again = lambda: tuple(map(float, seconds(TWICE, words, cache)[1].split()[-2:]))
    kinds = {"cold": once, "warm": again}
    if name == "help":
        kinds = {"cold": once}
    elif name == "network":
        yield "cold", once()
        kinds = {"compiled": once, "warm": again}
    rounds = [[run() for run in kinds.values()] for _ in range(repeats)]
    for kind, times in zip(kinds, zip(*rounds, strict=True), strict=True):
        cpu, clock = zip(*times, strict=True)
        yield kind, (min(cpu), min(clock))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--commands", nargs="+", choices=["help", *WORDS], default=["help", *WORDS])
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    lines, cores = [HEADER], len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        seconds(TABLES, [folder], folder)
        named = {"on": "bag", "total": "rich", "size": "people", "noise": "variance"}
        usual = [word for name, column in named.items() for word in (f"--{name}", column)]
        files = [
            folder / "events.parquet",
            folder / "reports.parquet",
            "--out",
            folder / "m",
            "--force",
        ]
        train = ["train", *files, *usual]
        commands = {"help": ["--help"]} | {key: [*train, *more] for key, more in WORDS.items()}
        for command in options.commands:
            words = commands[command]
            for start, (cpu, clock) in starts(folder, command, words, options.repeats):
                load, goal = os.getloadavg()[0], GOALS.get((command, start), "")
                times = (f"{cpu:.2f}", f"{clock:.2f}", f"{load:.1f}")
                lines.append([command, start, *times, cores, goal])
                Console().print(*lines[-1])
                if options.out:
                    with options.out.open("w", newline="") as file:
                        csv.writer(file).writerows(lines)


if __name__ == "__main__":
    main()
