"""`unbag reproduce`: the runs of the paper's batch experiments, and their report."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unbag._rules import broken, one_of
from unbag.cli._console import tell
from unbag.cli._options import stopped_verb

if TYPE_CHECKING:
    from unbag.lab import Plan, RayEngine, RunStore, Way

PRESETS = "smoke (a minute), laptop (hours), paper (the whole grid)"
Sizes = Annotated[list[int] | None, typer.Option("--size", help="bag size; may be repeated")]
Rates = Annotated[list[float] | None, typer.Option("--rate", help="learning rate; may be repeated")]
Methods = Annotated[
    list[str] | None, typer.Option("--method", help="method or method:loss; may be repeated")
]
ForceReport = Annotated[
    bool, typer.Option("--force", help="overwrite what the report folder holds")
]


COMMAND = stopped_verb("finished groups are kept; the same words go on")


def reproduce(
    ctx: typer.Context,
    task: Annotated[str | None, typer.Argument()] = None,
    preset: str | None = None,
    plan: Path | None = None,
    store: Path | None = None,
    methods: Methods = None,
    sizes: Sizes = None,
    rates: Rates = None,
    model: str | None = None,
    repetitions: int | None = None,
    epochs: int | None = None,
    holdout: float | None = None,
    start: str | None = None,
    rates_together: int | None = None,
    repetitions_together: int | None = None,
    extra: list[Path] | None = None,
    download: bool = False,
    report: Path | None = None,
    latex: bool = False,
    compare: list[str] | None = None,
    force: ForceReport = False,
    engine: str = "here",
    address: str | None = None,
    cpus: float | None = None,
    gpus: float | None = None,
) -> None:
    """Run the paper's batch experiments, and report the results. Runs that are in the store are not
    made again.

    Example: unbag reproduce adult --preset smoke

    Parameters
    ----------
    task
        adult, or another task; none when only a report is wanted
    preset
        smoke (a minute), laptop (hours), paper (the whole grid)
    plan
        a plan as a TOML file, instead of a preset
    store
        folder for the runs; by default unbag-store/<preset>
    model
        linear, perceptron, deep or cnn; by default the paper's
    holdout
        share of the bags that chooses rate and epoch
    start
        usual or trivial
    rates_together
        rates trained at once; fewer need less memory
    repetitions_together
        repetitions trained and stored at once
    extra
        Python file that adds methods or tasks
    download
        fetch the task's files if they are not there
    report
        folder for tables, figures and claims made from the store
    latex
        report: also the tables in LaTeX, tables.tex
    compare
        latex: two methods for a paired test; give it twice
    engine
        here, or ray: on the workers of a Ray cluster
    address
        of the Ray cluster, as host:6379
    cpus
        of one Ray task; by default 1
    gpus
        of one Ray task; by default 0
    """
    from unbag.lab import RunStore, write_report
    from unbag.lab import download as fetch

    for path in extra or ():
        runpy.run_path(str(path))
    if task is None and plan is None and report is None:
        raise broken(
            "A task, a plan or a report must be asked for",
            "none given",
            "Try: unbag reproduce adult",
        )
    runs = RunStore(store or Path("unbag-store") / (preset or getattr(plan, "stem", "smoke")))
    maker, pair = engine_of(engine, **said(ctx, "address", "cpus", "gpus")), _pair(compare or [])
    if report is not None:
        check_report(report, force)
    if task is not None or plan is not None:
        wanted = _plan(task, preset, plan, said(ctx, *CHANGES))
        if download:
            fetch(wanted.task)
        _make(wanted, runs, maker)
    if report is not None:
        written = write_report(runs, report, latex=latex, compare=pair)
        tell(f"{len(written)} files written: {report}")


CHANGES = (
    *("methods", "sizes", "rates", "model", "repetitions", "epochs", "holdout", "start"),
    *("rates_together", "repetitions_together"),
)


def said(ctx: typer.Context, *names: str) -> dict[str, Any]:
    """Those of these options that were given."""
    return {name: ctx.params[name] for name in names if ctx.params[name] not in (None, [], ())}


def _pair(names: list[str]) -> tuple[Way, Way] | None:
    """Two methods to compare."""
    if names and len(names) != 2:
        raise broken(
            "A paired test must have two methods",
            f"{', '.join(names)} given",
            "Give --compare twice, as --compare upm --compare anchored:square.",
        )
    if not names:
        return None
    from unbag.lab import Way

    first, second = (Way.named(name) for name in names)
    return first, second


def _plan(task: str | None, name: str | None, path: Path | None, changes: dict[str, Any]) -> Plan:
    from unbag.lab import preset, read_plan

    if path is None:
        return preset(name or "smoke", str(task), **changes)
    if name is not None:
        raise broken(
            "A plan must come from a preset or from a file",
            f"{name} and {path} given",
            "Leave one out.",
        )
    if task is not None:
        changes = changes | {"task": task}
    return read_plan(path, **changes)


def engine_of(name: str, **resources: Any) -> RayEngine | None:
    """What makes the runs, by name; None stands for this process."""
    one_of("An engine", name, ("here", "ray"), "Leave it out to work in this process.")
    if name == "ray":
        from unbag.lab import RayEngine

        return RayEngine(**resources)
    if resources:
        raise broken(
            f"Only the engine ray takes {', '.join(resources)}",
            "the engine is here",
            "Add --engine ray.",
        )
    return None


def _make(plan: Plan, store: RunStore, engine: RayEngine | None) -> None:
    from unbag.lab import data_of, plan_table, run_plan

    note = data_of(plan.task).note
    if note:
        tell(f"{plan.task}: {note}")
    made = run_plan(plan, store, progress=True, engine=engine)
    tell(f"{made} runs made, {plan.count() - made} were there already: {store.folder}")
    print(plan_table(plan, store))


def check_report(folder: Path, force: bool) -> None:
    """Refuse a place for a report that is taken."""
    if folder.exists() and not folder.is_dir():
        raise broken("A report must go to a folder", f"{folder} is a file", "Choose another name.")
    if folder.exists() and any(folder.iterdir()) and not force:
        raise broken(
            "A report must go to an empty folder",
            f"{folder} is not empty",
            "Use --force to overwrite.",
        )
