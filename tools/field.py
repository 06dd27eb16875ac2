"""Write the tables of docs/field.md from the runs in results/benchmark; `--check` only compares."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from unbag.lab import BenchmarkRun, Leaderboard, Standing, finished, leaderboard, read_benchmark
from unbag.lab._benchmark import WAYS
from unbag.lab._catalogue import TASKS
from unbag.lab._competitors import DEFAULT
from unbag.lab._markup import as_markdown

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "field.md"
START, END = "<!-- made by tools/field.py -->\n", "<!-- end -->\n"

Level = tuple[float, str] | None
"""Where a row of a table stands, and what it says; None for runs that the table leaves out."""


class Condition(NamedTuple):
    """Something that the best method may depend on.

    Parameters
    ----------
    title : str
        Of the table.
    level : callable
        From a run to its row.
    plain : str
        The row that every task and size has; those that have no other are left out, so that rows
        can be compared. Empty: all stay.
    """

    title: str
    level: Callable[[BenchmarkRun], Level]
    plain: str = ""


def _clean(run: BenchmarkRun) -> bool:
    """Bags that were drawn at random, with exact counts."""
    return run.bags_by == "random" and not run.epsilon


def _size(run: BenchmarkRun) -> Level:
    return (run.size, f"bags of {run.size}") if _clean(run) else None


def _number(run: BenchmarkRun) -> Level:
    return _band(run.bags, (32, 128, 512), "{} bags") if _clean(run) else None


def _rate(run: BenchmarkRun) -> Level:
    known = _clean(run) and np.isfinite(run.rate)
    return _band(100 * run.rate, (2, 10, 30), "{}% have the label") if known else None


def _band(value: float, edges: Sequence[int], words: str) -> Level:
    """The first edge that a value does not exceed."""
    for most in edges:
        if value <= most:
            return most, words.format(f"up to {most}")
    return np.inf, words.format(f"more than {edges[-1]}")


def _noise(run: BenchmarkRun) -> Level:
    if run.bags_by != "random":
        return None
    if not run.epsilon:
        return 0, EXACT
    return 1 / run.epsilon, f"epsilon {run.epsilon:g}, variance {2 / run.epsilon**2:.3g}"


def _data(run: BenchmarkRun) -> Level:
    task = TASKS.get(run.task)
    if task is None or not _clean(run):
        return None
    if task.kind == "total":
        return 3, "counts"
    names = {"made": "made data", "table": "tables", "images": "images"}
    return list(names).index(task.data), names[task.data]


def _way(run: BenchmarkRun) -> Level:
    if run.epsilon:
        return None
    if run.bags_by == "random":
        return 0, RANDOM
    return 1 + WAYS.index(run.bags_by), f"`{run.bags_by}` bags"


EXACT, RANDOM = "exact counts", "random bags"
CONDITIONS = (
    Condition("Bag size", _size),
    Condition("Number of bags", _number),
    Condition("Rate of the label", _rate),
    Condition("Noise on the counts", _noise, EXACT),
    Condition("Kind of data", _data),
    Condition("Random or not", _way, RANDOM),
)


def guide(runs: Sequence[BenchmarkRun]) -> str:
    """Tables in Markdown of the three best methods, one table for each thing that may decide.

    A row ranks the methods that took part in all its settings, as a leaderboard does; the number
    beside a method is its way from the prior (0) to a network with labels (1).

    Parameters
    ----------
    runs : sequence of BenchmarkRun
        Of any benchmarks; settings that miss methods should be left out (`finished`).
    """
    return "\n".join(filter(None, (_section(condition, runs) for condition in CONDITIONS)))


def _section(condition: Condition, runs: Sequence[BenchmarkRun]) -> str:
    levels = {run: condition.level(run) for run in runs}
    if condition.plain:
        changed = {
            (run.task, run.size)
            for run, level in levels.items()
            if level and level[1] != condition.plain
        }
        levels = {run: at for run, at in levels.items() if (run.task, run.size) in changed}
    rows = []
    for level in sorted({level for level in levels.values() if level}):
        board = leaderboard([run for run in levels if levels[run] == level])
        rows.append(_row(level[1], board))
    if not rows:
        return ""
    header = ["when", "settings", "methods", "first", "second", "third", "unbag.fit"]
    return f"### {condition.title}\n\n{as_markdown(header, rows)}"


def _row(name: str, board: Leaderboard) -> list[str]:
    best = [_shown(standing) for standing in board.standings[:3]]
    best += [""] * (3 - len(best))
    place = [i for i, s in enumerate(board.standings, 1) if s.method == DEFAULT]
    default = "".join(f"place {i}, {_shown(board.standings[i - 1], name=False)}" for i in place)
    return [name, str(len(board.blocks)), str(len(board.standings)), *best, default]


def _shown(standing: Standing, *, name: bool = True) -> str:
    way = f"{standing.way:.2f}" if np.isfinite(standing.way) else "-"
    return f"{standing.title} {way}" if name else way


def tables() -> str:
    """What all committed runs say."""
    paths = sorted((ROOT / "results" / "benchmark").glob("*/runs.csv"))
    return guide([run for path in paths for run in finished(read_benchmark(path))])


def page() -> str:
    """The page with its tables made anew."""
    before, _, rest = PAGE.read_text().partition(START)
    return f"{before}{START}\n{tables()}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(page() != PAGE.read_text())
    PAGE.write_text(page())
