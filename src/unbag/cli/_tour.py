"""The tour that `unbag demo` gives: the whole way on the shipped Adult data, from two tables to a
page.

The default model learns from noisy totals of bags of 64 people, beside the methods of the paper. No
label of a person is looked at between the privacy system that makes the reports and the end, where
labels are revealed. Each step is the code behind a verb of the command line, and shows its words.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich import box
from rich.console import Console
from rich.table import Table

from unbag import report
from unbag._rules import broken
from unbag.bags import design_bags, from_rows
from unbag.cli._console import activity, tell_warnings
from unbag.cli._evaluate import JudgedModel, bags_for, judged_by, open_model, unseen
from unbag.cli._select import selected
from unbag.cli._train import joined, learned, parted
from unbag.datasets import read_adult
from unbag.diagnosis import diagnose
from unbag.learners import Effect
from unbag.methods import METHODS
from unbag.metrics import Evaluation, evaluate_labels, scores_of
from unbag.noise import geometric, noisy
from unbag.tables import Columns

MARK = "made-by-unbag-demo.txt"
COLUMNS = Columns("bag", total="rich", size="people", noise="variance", id="person")
WORDS = "--on bag --total rich --size people --noise variance --id person"
EPSILON, LATER, TEST = 1.0, 0.2, 0.2
DEFAULT = "default"  # what `unbag train` does without any option
# the methods of the paper, for networks, which the default model is shown beside
PAPER = ("upm", "easy", "matching")
COLUMNS_SHOWN = 6


class Files(NamedTuple):
    """Where the demo keeps what."""

    folder: Path

    def tables(self, when: str = "") -> tuple[Path, Path]:
        """Events and reports: those to learn from, or the "later-" ones."""
        return self.folder / f"{when}events.parquet", self.folder / f"{when}reports.parquet"

    def model(self, method: str) -> Path:
        """The model of a method."""
        return self.folder / f"{method}.unbag"


def run(
    folder: Path,
    *,
    size: int = 64,
    epochs: int = 60,
    methods: Sequence[str] = (DEFAULT, *PAPER),
    console: Console | None = None,
) -> Path:
    """The whole way, told on the console as it goes; returns the path of the report page.

    Parameters
    ----------
    folder : Path
        Where everything is written; one that something else filled is refused.
    size : int
        People in a bag.
    epochs : int
        At most, for each method.
    methods : sequence of str
        Ways to learn.
    console : rich.console.Console, optional
        Where to print.
    """
    width = {True: None, False: 100}[sys.stdout.isatty()]
    say = console or Console(highlight=False, soft_wrap=True, width=width)

    def step(title: str, words: str = "") -> None:
        say.print(f"\n{next(numbers)}. {title}", style="bold")
        if words:
            say.print(f"   {words}", style="dim")

    files, numbers = Files(own_folder(folder)), count(1)
    (events, reports), (new, later) = files.tables(), files.tables("later-")
    labels = make_tables(files, size)
    step(f"Two tables, as a privacy system would leave them, in {files.folder}")
    say.print(
        f"{events.name}: people with their features and their bag of about {size}; nobody's label."
        f"\n{reports.name}: how many in each bag earn over $50,000, with noise (epsilon = "
        f"{EPSILON:g}).\n{new.name}, {later.name}: a fifth of the bags, which comes later."
    )

    bags = joined(events, reports, COLUMNS)
    diagnosis = diagnose(bags)
    step("Are the bags usable and random?", f"unbag check {events} {reports} {WORDS}")
    say.print(f"{bags.summary}\n{diagnosis.verdict}")

    learn, _ = parted(bags, TEST, 0)
    with tell_warnings():
        models = _train(files, learn, methods, epochs)
    words = f"unbag train {events} {reports} {WORDS} --test {TEST:g} --out {files.model(DEFAULT)}"
    step("Learn the default model, and networks by the paper's methods beside it", words)
    for method in [name for name in models if name != DEFAULT]:
        own = words.replace("--out", f"--method {method} --out").replace(DEFAULT, method)
        say.print(f"   {own}", style="dim")
    say.print(f"Learned from {len(learn.reported())} bags.")

    choice, _ = selected([files.model(method) for method in models], events, reports, COLUMNS)
    words = f"unbag select {files.folder}/*.unbag --events {events} --reports {reports} {WORDS}"
    step("Choose one, by bags that none of them learned from", words)
    say.print(f"{choice.bags} bags chose {choice.name}. {choice.reason}")

    best = Path(choice.name).stem
    judged = {
        method: judged_by(model, unseen(bags_for(model, new, later, COLUMNS), model.learned_))
        for method, model in models.items()
    }
    words = f"unbag evaluate {files.model(best)} {new} {later} {WORDS}"
    step("How good is it? The later bags know, without a label", words)
    say.print(f"{judged[best].evaluation}\n\n{judged[best].verdict}")

    effects = getattr(models[best].fitted_, "effects", [])
    step("What does each column do?", f"unbag explain {files.model(best)}")
    _tell_effects(say, effects)

    step("The labels, revealed: 16,281 other people, of whom nothing was used so far")
    people, rich = read_adult("test")
    truths = {
        method: evaluate_labels(scores_of(model, pa.table(people), "binary"), rich)
        for method, model in models.items()
    }
    ceiling = evaluate_labels(_with_labels(learn, labels).scores(pa.table(people)), rich)
    _tell_truth(say, judged, truths, best, ceiling)

    story = report.Story(
        "Who earns over $50,000? Learned from totals",
        f"unbag demo: bags of {size}, noise of epsilon {EPSILON:g}",
        tables=bags.summary,
        facts=report.facts_of(bags),
        diagnosis=diagnosis,
        choice=choice,
        curves=report.curves_of(
            [run for model in models.values() for run in model.runs_],
            [model.run_ for model in models.values()],
        ),
        evaluation=judged[best].evaluation,
        predictions=judged[best].predictions,
        trained=True,
        learned=len(models[best].learned_),
        labels=truths[best],
        effects=effects,
        verdict=judged[best].verdict,
    )
    page = report.write_page(report.page_of(story), files.folder / "report.html", force=True)
    step(f"All this as a page to read: {page.resolve()}")
    return page


def own_folder(folder: Path) -> Path:
    """The folder, made if need be; one that holds something else is refused."""
    taken = folder.exists() and (not folder.is_dir() or any(folder.iterdir()))
    if taken and not (folder / MARK).exists():
        raise broken(
            "The demo must have a folder of its own",
            f"{folder} holds something else",
            "Name another one.",
        )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARK).write_text(
        "unbag demo wrote this folder, and overwrites its files when it runs again.\n"
    )
    return folder


def make_tables(files: Files, size: int) -> np.ndarray:
    """Write the tables, now and later: of each bag a noisy whole count, as a privacy system gives
    it away, in any order. The labels of the first events come back, for the end."""
    people, rich = read_adult()
    person = np.char.add("p", np.arange(len(rich)).astype(str))
    bag = design_bags(person, size=size, salt="demo")
    everybody = pa.table({"person": person, "bag": bag.tolist(), **people})
    bags = noisy(from_rows(bag, y=rich), geometric(epsilon=EPSILON), seed=0)
    total = np.rint(bags.report * bags.size).astype(int)
    columns = {"bag": bags.names, "rich": total, "people": bags.size, "variance": bags.noise}
    order = np.random.default_rng(0).permutation(len(bags))
    reports = pa.table({name: np.asarray(each)[order].tolist() for name, each in columns.items()})
    first = int((1 - LATER) * reports.num_rows)
    soon = np.isin(bag, reports["bag"][:first].to_pylist())
    for when, where, part in (("", soon, reports[:first]), ("later-", ~soon, reports[first:])):
        pq.write_table(everybody.filter(pa.array(where)), files.tables(when)[0])
        pq.write_table(part, files.tables(when)[1])
    return rich[soon]


def _train(files: Files, learn: Any, methods: Sequence[str], epochs: int) -> dict[str, Any]:
    """A model file for each method; the models come back from the files, with their histories."""
    models = {}
    with activity("learning") as progress:
        for number, method in enumerate(methods):
            progress(number, len(methods), f"learning: {method}")
            settings = {"hidden": (32,), "epochs": epochs, "method": method}
            if method == DEFAULT:
                settings = {}
            model = learned(learn, settings | {"random_state": 0})
            model.save(files.model(method))
            models[method] = open_model(files.model(method))
            models[method].runs_, models[method].run_ = model.runs_, model.run_
    return models


def _with_labels(learn: Any, labels: np.ndarray) -> Any:
    """The additive model that learned from each person's label: the ceiling."""
    from unbag.learners import Additive, DataWarning

    known = learn.reported()
    bags = from_rows(np.arange(len(known.rows)), y=labels[known.rows], X=known.table)
    with warnings.catch_warnings():  # rare capital gains decide a label; the prior holds them
        warnings.simplefilter("ignore", DataWarning)
        return Additive().fit(bags)


def _tell_effects(say: Console, effects: Sequence[Effect]) -> None:
    """The strongest columns, and where their effects are lowest and highest."""
    if not effects:
        say.print("Only the additive model tells what single columns do, and it has no part here.")
        return
    table = Table("column", "strength", "lowest at", "highest at", box=box.SIMPLE)
    for one in effects[:COLUMNS_SHOWN]:
        table.add_row(one.name, f"{one.strength:.2f}", *report.ends_of(one))
    say.print(table)
    say.print("Effects on the log odds, in brackets; strength is their standard deviation.")


def _tell_truth(
    say: Console,
    judged: dict[str, JudgedModel],
    truths: dict[str, Evaluation],
    best: str,
    ceiling: Evaluation,
) -> None:
    """Of every method and metric whether the interval holds what the labels say."""
    table = Table("", "metric", "from bags", "95% interval", "labels say", "held", box=box.SIMPLE)
    main, held, intervals = (report.named("log_loss")[0], report.named("auc")[0]), 0, 0
    for method in sorted(judged, key=lambda method: truths[method]["log_loss"].value):
        rows, inside = report.held_intervals(judged[method].evaluation, truths[method])
        held, intervals = held + inside, intervals + len(rows)
        title = getattr(METHODS.get(method), "title", method) + " (chosen)" * (method == best)
        for name, *cells in rows:
            if name in main or method == best:
                table.add_row(title, name, *cells)
                title = ""
    table.add_row("every label known", main[0], "", "", report.value_of(ceiling["log_loss"]), "")
    say.print(table)
    say.print(
        f"{held} of all {intervals} intervals hold what the labels say. They share their bags, so "
        "they miss together."
    )
    say.print("every label known: the additive model, learned from each person's own label.")
