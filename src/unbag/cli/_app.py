"""Words in, work out: one verb per station. Data go to stdout, everything else to stderr."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Annotated, Any

import typer

from unbag.cli._check import check
from unbag.cli._console import plain_errors
from unbag.cli._design import design
from unbag.cli._evaluate import evaluate
from unbag.cli._plan import plan
from unbag.cli._predict import predict
from unbag.cli._select import select
from unbag.cli._train import train
from unbag.cli._weights import weights
from unbag.methods import METHODS

app = typer.Typer(
    no_args_is_help=True, help="Learning from label proportions.", add_completion=False
)
for verb in (check, design, evaluate, plan, predict, select, train, weights):
    app.command()(verb)


@app.callback()
def main() -> None:
    """Learning from label proportions: a model for each instance from totals of groups."""


@app.command()
def demo(
    folder: Annotated[
        Path,
        typer.Option(help="where the tables, models and the page go; its own files it overwrites"),
    ] = Path("demo"),
) -> None:
    """The whole way on the shipped Adult data: two tables, check, train, select, evaluate without
    labels, reveal them.

    Example: unbag demo
    """
    from unbag.cli._demo import run

    with plain_errors("demo", stopped="it starts from the beginning when it is run again"):
        run(folder)


@app.command()
def reproduce(
    task: Annotated[
        str | None, typer.Argument(help="adult, or another task; none when only a report is wanted")
    ] = None,
    preset: Annotated[
        str | None, typer.Option(help="smoke (a minute), laptop (hours), paper (the whole grid)")
    ] = None,
    plan: Annotated[
        Path | None, typer.Option(help="a plan as a TOML file, instead of a preset")
    ] = None,
    store: Annotated[
        Path | None, typer.Option(help="folder for the runs; by default unbag-store/<preset>")
    ] = None,
    method: Annotated[
        list[str] | None, typer.Option(help="method or method:loss; may be repeated")
    ] = None,
    size: Annotated[list[int] | None, typer.Option(help="bag size; may be repeated")] = None,
    rate: Annotated[list[float] | None, typer.Option(help="learning rate; may be repeated")] = None,
    model: Annotated[
        str | None, typer.Option(help="linear, perceptron, deep or cnn; by default the paper's")
    ] = None,
    repetitions: Annotated[int | None, typer.Option()] = None,
    epochs: Annotated[int | None, typer.Option()] = None,
    holdout: Annotated[
        float | None, typer.Option(help="share of the bags that chooses rate and epoch")
    ] = None,
    start: Annotated[str | None, typer.Option(help="usual or trivial")] = None,
    rates_together: Annotated[
        int | None, typer.Option(help="rates trained at once; fewer need less memory")
    ] = None,
    repetitions_together: Annotated[
        int | None, typer.Option(help="repetitions trained and stored at once")
    ] = None,
    extra: Annotated[
        list[Path] | None, typer.Option(help="Python file that adds methods or tasks")
    ] = None,
    download: Annotated[
        bool, typer.Option("--download", help="fetch the task's files if they are not there")
    ] = False,
    report: Annotated[
        Path | None, typer.Option(help="folder for tables, figures and claims made from the store")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="overwrite what the report folder holds")
    ] = False,
    engine: Annotated[
        str, typer.Option(help="here, or ray: on the workers of a Ray cluster")
    ] = "here",
    address: Annotated[str | None, typer.Option(help="of the Ray cluster, as host:6379")] = None,
    cpus: Annotated[float | None, typer.Option(help="of one Ray task; by default 1")] = None,
    gpus: Annotated[float | None, typer.Option(help="of one Ray task; by default 0")] = None,
) -> None:
    """Make the runs of the paper's batch experiments, and report them. What is in the store is not
    made again.

    Example: unbag reproduce adult --preset smoke
    """
    from unbag.cli._reproduce import reproduce as work

    changes: dict[str, Any] = {
        "methods": method, "sizes": size, "rates": rate, "model": model, "repetitions": repetitions, "epochs": epochs,
        "holdout": holdout, "start": start, "rates_together": rates_together,
        "repetitions_together": repetitions_together,
    }  # fmt: skip
    changes = {name: value for name, value in changes.items() if value is not None}
    resources = {"address": address, "cpus": cpus, "gpus": gpus}
    resources = {name: value for name, value in resources.items() if value is not None}
    with plain_errors("reproduce", stopped="finished groups are kept; the same words go on"):
        for path in extra or ():
            runpy.run_path(str(path))
        work(
            task=task, name=preset, path=plan, folder=store, changes=changes, report=report, force=force,
            fetch=download, engine=engine, resources=resources,
        )  # fmt: skip


@app.command()
def stream(
    source: Annotated[
        str,
        typer.Argument(
            help="clicks (made-up), criteo (in the data folder), or a file of its format"
        ),
    ],
    folder: Annotated[
        Path, typer.Option(help="for checkpoints, metrics and the report; resumed when it has any")
    ],
    method: Annotated[str, typer.Option(help=", ".join(METHODS))] = "anchored",
    loss: Annotated[str, typer.Option(help="by default the method's usual one")] = "",
    rate: Annotated[float, typer.Option(help="learning rate of Adam")] = 1e-3,
    size: Annotated[int, typer.Option(help="bag size")] = 512,
    prior: Annotated[str, typer.Option(help="chunk, first, or a number")] = "chunk",
    chunks: Annotated[
        int | None, typer.Option(help="stop after so many; by default at the end of the source")
    ] = None,
    rows: Annotated[int, typer.Option(help="events in a chunk")] = 2**16,
    batch: Annotated[int, typer.Option(help="events in a step")] = 4096,
    model: Annotated[
        str, typer.Option(help="paper (the deep embedding network) or small")
    ] = "paper",
    seed: Annotated[int, typer.Option()] = 0,
    every: Annotated[int, typer.Option(help="chunks between checkpoints")] = 8,
) -> None:
    """Learn from a stream: predict each chunk, then learn from its bags. The same words resume it
    after a crash.

    Example: unbag stream clicks --folder run --chunks 20
    """
    from unbag.cli._stream import follow

    fields = {
        "method": method,
        "loss": loss,
        "rate": rate,
        "size": size,
        "prior": prior,
        "batch": batch,
        "seed": seed,
    }
    with plain_errors("stream", stopped="the same words go on from the last checkpoint"):
        page = follow(
            source, folder, model=model, rows=rows, chunks=chunks, every=every, fields=fields
        )
        print(page)


@app.command()
def online(
    preset: Annotated[
        str, typer.Option(help="smoke (a minute), laptop (hours), paper (the whole grid)")
    ] = "smoke",
    store: Annotated[
        Path | None,
        typer.Option(help="folder for the runs; by default unbag-store/online-<preset>"),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="folder for tables, figures and claims")
    ] = None,
    chunks: Annotated[int | None, typer.Option()] = None,
    repetitions: Annotated[int | None, typer.Option()] = None,
    source: Annotated[
        str | None, typer.Option(help="clicks (made-up) or criteo (in the data folder)")
    ] = None,
    rows: Annotated[int | None, typer.Option(help="events in a chunk")] = None,
    tuning: Annotated[int | None, typer.Option(help="chunks that choose the rate; 0: all")] = None,
    size: Annotated[list[int] | None, typer.Option(help="bag size; may be repeated")] = None,
    rate: Annotated[list[float] | None, typer.Option(help="learning rate; may be repeated")] = None,
    method: Annotated[
        list[str] | None, typer.Option(help="method or method:loss; may be repeated")
    ] = None,
    only_report: Annotated[bool, typer.Option("--only-report", help="make no runs")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="overwrite what the report folder holds")
    ] = False,
) -> None:
    """Make the runs of the paper's online experiment, and report them. What is in the store is not
    made again.

    Example: unbag online --preset smoke --report online
    """
    from unbag.cli._online import experiment

    many = {"sizes": size, "rates": rate, "methods": method}
    changes = {
        "chunks": chunks,
        "repetitions": repetitions,
        "source": source,
        "rows": rows,
        "tuning": tuning,
    }
    changes |= {name: tuple(values) for name, values in many.items() if values}
    changes = {name: value for name, value in changes.items() if value is not None}
    with plain_errors("online", stopped="finished runs are kept; the same words go on"):
        experiment(preset, store, report, changes=changes, only_report=only_report, force=force)
