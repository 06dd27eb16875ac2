"""Words of the command line in, runs made and a report written; tables go to stdout, the rest to stderr."""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

from unbag.lab import choosing, claims, plots, variance
from unbag.lab.claims import BATCH_TASKS, Verdict, as_markdown, judge
from unbag.lab.engines import RayEngine
from unbag.lab.online_report import judge_online, results_of, write_online_report
from unbag.lab.online_store import online_stores
from unbag.lab.paging import write_index
from unbag.lab.plans import Experiment, Plan, preset, read_plan
from unbag.lab.reporting import (
    Runs,
    best_on_test,
    best_rows,
    experiment_table,
    price_rows,
    prices,
    read_runs,
)
from unbag.lab.running import run_plan
from unbag.lab.store import Store
from unbag.lab.tasks import data_of, download

METRICS: dict[str, Any] = {"log-loss": "test_loss", "auc": "test_auc"}


def reproduce(
    *,
    task: str | None = None,
    name: str | None = None,
    path: Path | None = None,
    folder: Path | None = None,
    changes: dict[str, Any],
    report: Path | None = None,
    force: bool = False,
    fetch: bool = False,
    engine: str = "here",
    resources: dict[str, Any] | None = None,
) -> None:
    """Make the missing runs of a task, then report; without a task only report.

    name : of a preset. path : of a plan. folder : of the store. changes : to the plan. report : folder for it.
    fetch : download files that are not there. engine : "here", in this process, or "ray". resources : for `RayEngine`.
    """
    store = Store(folder or Path("unbag-store") / (name or (path.stem if path else "smoke")))
    if task is None and path is None and report is None:
        raise ValueError("A task, a plan or a report must be asked for: none came. Try: unbag reproduce adult")
    maker = engine_of(engine, **(resources or {}))
    if report is not None:
        check_report(report, force)
    if task is not None or path is not None:
        plan = _plan(task, name, path, changes)
        if fetch:
            download(plan.task)
        _make(plan, store, maker)
    if report is not None:
        written = write_report(store, report)
        _tell(f"{len(written)} files written: {report}")


def _plan(task: str | None, name: str | None, path: Path | None, changes: dict[str, Any]) -> Plan:
    if path is not None and name is not None:
        raise ValueError(f"A plan must come from a preset or from a file: {name} and {path} came. Leave one out.")
    if path is not None:
        return read_plan(path, **changes, **({"task": task} if task else {}))
    return preset(name or "smoke", str(task), **changes)


def engine_of(name: str, **resources: Any) -> RayEngine | None:
    """What makes the runs, by name; None stands for this process."""
    if name not in ("here", "ray"):
        raise ValueError(f"An engine must be here or ray: {name!r} came. Leave it out to work in this process.")
    if name == "here" and resources:
        raise ValueError(f"Only the engine ray takes {', '.join(resources)}: the engine is here. Add --engine ray.")
    return RayEngine(**resources) if name == "ray" else None


def _make(plan: Plan, store: Store, engine: RayEngine | None) -> None:
    note = data_of(plan.task).note
    if note:
        _tell(f"{plan.task}: {note}")
    made = run_plan(plan, store, progress=True, engine=engine)
    _tell(f"{made} runs made, {plan.count() - made} were there already: {store.folder}")
    table = experiment_table(read_runs(store, task=plan.task), plan.experiment, "test_loss")
    print(f"{plan.experiment.title}: {plots.name_of('test_loss', plan.experiment)}\n\n{table}")


def _tell(text: str) -> None:
    print(text, file=sys.stderr)


def check_report(folder: Path, force: bool) -> None:
    """Refuse a place for a report that is taken."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"A report must go to a folder: {folder} is a file. Choose another name.")
    if folder.exists() and any(folder.iterdir()) and not force:
        raise ValueError(f"A report must go to an empty folder: {folder} is not empty. Use --force to overwrite.")


def write_report(store: Store, folder: Path) -> list[Path]:
    """Tables, figures and claims of everything in a store."""
    everything = read_runs(store)
    if not everything:
        raise ValueError(f"A report must have runs: {store.folder} has none. Make some: unbag reproduce adult")
    folder.mkdir(parents=True, exist_ok=True)
    spreads, choices = variance.read(store), choosing.read(store)
    streams = [(*pair, found) for pair in online_stores(store.folder / "online") if (found := results_of(*pair))]
    verdicts = judge(everything, spreads, choices)
    verdicts += [verdict for plan, _, found in streams for verdict in judge_online(plan, found)]
    experiments = sorted({runs.experiment for runs in everything if not runs.holdout})
    tables = {
        "best.csv": best_rows(everything),
        "choice.csv": price_rows(prices(everything, choices)),
        "claims.csv": [verdict._asdict() for verdict in verdicts],
        "variance.csv": [spread._asdict() for spread in spreads],
    }
    written = [_write_csv(folder / name, rows) for name, rows in tables.items() if rows]
    figures = _figures(everything, experiments, folder)
    for plan, runs, _ in streams:
        written += write_online_report(plan, runs, folder / f"online-{runs.folder.name}")
    pages = {"claims.md": _claims_page(verdicts), "report.md": _report_page(store, everything, experiments)}
    for name, text in pages.items():
        (folder / name).write_text(text)
    line = f"unbag reproduce --report, from the runs in {store.folder}"
    index = write_index(folder, line, everything, experiments, verdicts)
    return [*written, *figures, *(folder / name for name in pages), index]


def _write_csv(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return path


def _figures(everything: Sequence[Runs], experiments: Sequence[Experiment], folder: Path) -> list[Path]:
    """Each experiment alone, and the paper's tasks together: both metrics, all bag sizes and from 16 on."""
    pictures = {experiment.name: [experiment] for experiment in experiments}
    pictures["paper"] = [broadest for task in BATCH_TASKS if (broadest := _broadest(everything, task))]
    written = []
    for name, metric, smallest in product(pictures, METRICS, (1, 16)):
        sizes = lambda e, m=metric: _sizes(everything, [e], METRICS[m])
        shown = [e for e in pictures[name] if any(k >= smallest for k in sizes(e))]
        if len(shown) >= (2 if name == "paper" else 1):
            figure = plots.draw(everything, shown, METRICS[metric], smallest=smallest)
            written += plots.save(figure, folder / f"{name}-{metric}{'-from-16' if smallest > 1 else ''}")
    return written


def _broadest(everything: Sequence[Runs], task: str) -> Experiment | None:
    """The experiment of a task that has the most bag sizes."""
    sizes: dict[Experiment, set[int]] = {}
    for runs in everything:
        if runs.experiment.task == task and not runs.holdout:
            sizes.setdefault(runs.experiment, set()).add(runs.size)
    return max(sorted(sizes), key=lambda experiment: len(sizes[experiment]), default=None)


def _sizes(everything: Sequence[Runs], shown: Sequence[Experiment], metric: Any) -> list[int]:
    """Bag sizes of the curves that there are."""
    curves = [r for r in everything if r.experiment in shown and r.way.method != "labels" and not r.holdout]
    return [r.size for r in curves if best_on_test(r, metric)]


def _claims_page(verdicts: Sequence[Verdict]) -> str:
    rule = str(claims.__doc__).partition("\n\n")[2].strip()
    return f"# Claims\n\n{rule}\n\n{as_markdown(verdicts)}"


def _report_page(store: Store, everything: Sequence[Runs], experiments: Sequence[Experiment]) -> str:
    parts = [
        "# Results\n\nFor each method and bag size the best over learning rate and epoch of the mean over repetitions, "
        "with its standard error; the best is chosen on test data, as in the paper. A star: found in the last epoch or "
        "at an end of the rates, so that longer runs or other rates may do better. Details: `best.csv`. What held-out "
        "bags choose: `choice.csv`. Claims: `claims.md`. Made by "
        f"`unbag reproduce --report ... --store {store.folder}`.\n"
    ]
    for experiment in experiments:
        parts.append(f"## {experiment.title}\n")
        for metric in METRICS:
            if not _sizes(everything, [experiment], METRICS[metric]):
                continue
            table = experiment_table(everything, experiment, METRICS[metric])
            name, picture = plots.name_of(METRICS[metric], experiment), f"{experiment.name}-{metric}.png"
            parts.append(f"{name}\n\n{table}\n![{metric}]({picture})\n")
    return "\n".join(parts)
