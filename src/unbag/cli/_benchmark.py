"""`unbag benchmark`: every method of the field on the same bags, and yours beside them."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from unbag._rules import broken
from unbag.cli._console import tell
from unbag.cli._options import stopped_verb
from unbag.cli._reproduce import said

CHANGES = ("tasks", "bags_by", "sizes", "methods", "repetitions", "rows", "epsilons")


COMMAND = stopped_verb("finished runs are kept; the same words go on")


def benchmark(
    ctx: typer.Context,
    preset: str = "quick",
    store: Path | None = None,
    add: list[Path] | None = None,
    results: list[Path] | None = None,
    tasks: Annotated[list[str] | None, typer.Option("--task")] = None,
    bags_by: Annotated[list[str] | None, typer.Option("--bags")] = None,
    sizes: Annotated[list[int] | None, typer.Option("--size")] = None,
    methods: Annotated[list[str] | None, typer.Option("--method")] = None,
    repetitions: int | None = None,
    rows: int | None = None,
    epsilons: Annotated[list[float] | None, typer.Option("--epsilon")] = None,
    so_far: bool = False,
) -> None:
    """Rank every method of the field on the same bags, and your own beside them.

    Example: unbag benchmark --add my_method.py

    Parameters
    ----------
    preset
        quick (two minutes); rates, noise, bags (rare labels, noisy counts, bags that are not
        random); laptop (hours); night (everything)
    store
        folder for runs and leaderboard; unbag-benchmark/<preset>
    add
        Python file that adds a method, a learner or a task; repeat
    results
        CSV of results from outside, to stand beside ours; repeat
    tasks
        data; repeat
    bags_by
        random, naive, kmeans, feature, dirichlet, simple, intermediate, hard; repeat
    sizes
        bag size; repeat
    methods
        a competitor; repeat; by default all
    repetitions
        seeds of each setting
    rows
        training rows; 0 for all
    epsilons
        of Laplace noise on the counts, 0 for none; repeat
    so_far
        rank what was run before it was stopped; run nothing
    """
    import jax

    from unbag import lab

    for option, paths in (("add", add), ("results", results)):
        check_files(option, paths or ())
    for path in add or ():
        runpy.run_path(str(path))
    if preset not in ("laptop", "night"):  # others would mostly optimise small programs
        jax.config.update("jax_disable_most_optimizations", True)
    changes = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in said(ctx, *CHANGES).items()
    }
    plan = lab.benchmark_preset(preset, **changes)
    folder = store or Path("unbag-benchmark") / preset
    path = folder / "runs.csv"
    if so_far:
        check_files("store", [path])
        runs = lab.finished(lab.read_benchmark(path))
    else:
        runs = lab.run_benchmark(plan, path, tell=tell)
    outside = [run for path in results or () for run in lab.read_benchmark(path)]
    line = " ".join(["unbag", *sys.argv[1:]])
    for kind, own in lab.by_kind([*runs, *lab.of_blocks(plan, outside)]).items():
        board, place = lab.leaderboard(own), folder
        if kind != "binary":
            place = folder / kind
        written = lab.write_leaderboard(board, place, line=line)
        print(board.markdown())
        tell(f"{', '.join(path.name for path in written)} written: {place}")


def check_files(option: str, paths: Iterable[Path]) -> None:
    """Refuse files that are not there, before the work begins."""
    for path in paths:
        if not path.is_file():
            raise broken(
                f"A file of --{option} must exist", f"{path} does not", "Look at the path."
            )
