"""What `unbag demo` shows: the whole way on the shipped Adult data, from two tables to a page.

The default model learns from noisy totals of bags of 64 people, beside the methods of the paper. No
label of a person is looked at between the privacy system that makes the reports and the end, where
labels are revealed. Each step is the code behind a verb of the command line, and shows its words.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich import box
from rich.console import Console
from rich.table import Table

from unbag._rules import broken
from unbag.bags import Bags, design_bags, from_rows
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
from unbag.report import (
    Story,
    curves_of,
    ends_of,
    facts_of,
    named,
    page_of,
    value_of,
    verdicts,
    write_page,
)
from unbag.tables import Columns

MARK = "made-by-unbag-demo.txt"
COLUMNS = Columns("bag", total="rich", size="people", noise="variance", id="person")
WORDS = "--on bag --total rich --size people --noise variance --id person"
EPSILON, LATER, TEST = 1.0, 0.2, 0.2
DEFAULT = "default"
"""What `unbag train` does without any option."""
PAPER = ("upm", "easy", "matching")
"""The methods of the paper, for networks, which the default model is shown beside."""
COLUMNS_SHOWN = 6
Truths = dict[str, tuple[JudgedModel, Evaluation]]


class Files(NamedTuple):
    """Where the demo keeps what."""

    folder: Path

    @property
    def first(self) -> tuple[Path, Path]:
        """Events and reports to learn from."""
        return self.folder / "events.parquet", self.folder / "reports.parquet"

    @property
    def later(self) -> tuple[Path, Path]:
        """Events and reports that come later."""
        return self.folder / "later-events.parquet", self.folder / "later-reports.parquet"

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
    say = console or _console()
    files = Files(own_folder(folder))
    labels = make_tables(files, size)
    _tell_tables(say, files, size)
    bags = joined(*files.first, COLUMNS)
    diagnosis = diagnose(bags)
    _tell_check(say, files, f"{bags.summary}\n{diagnosis.verdict}")
    learn, _ = parted(bags, TEST, 0)
    with tell_warnings():
        models = _train(files, learn, methods, epochs)
    _tell_training(say, files, learn, models)
    choice, _ = selected([files.model(method) for method in models], *files.first, COLUMNS)
    best = Path(choice.name).stem
    _tell_choice(say, files, choice)
    judged = {method: (_judge(model, files), truth_of(model)) for method, model in models.items()}
    chosen, truth = judged[best]
    _tell_evaluation(say, files, best, chosen)
    effects = getattr(models[best].fitted_, "effects", [])
    _tell_effects(say, files, best, effects)
    _tell_truth(say, judged, best, _with_labels(learn, labels))
    runs = [run for model in models.values() for run in model.runs_]
    story = Story(
        "Who earns over $50,000? Learned from totals",
        f"unbag demo: bags of {size}, noise of epsilon {EPSILON:g}",
        tables=bags.summary,
        facts=facts_of(bags),
        diagnosis=diagnosis,
        choice=choice,
        curves=curves_of(runs, [model.run_ for model in models.values()]),
        evaluation=chosen.evaluation,
        predictions=chosen.predictions,
        trained=True,
        learned=len(models[best].learned_),
        labels=truth,
        effects=effects,
        verdict=chosen.verdict,
    )
    page = write_page(page_of(story), files.folder / "report.html", force=True)
    _step(say, 8, f"All this as a page to read: {page.resolve()}")
    return page


def _console() -> Console:
    width = {True: None, False: 100}[sys.stdout.isatty()]
    return Console(highlight=False, soft_wrap=True, width=width)


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
    """Write the tables, now and later; the labels of the first events come back, for the end."""
    people, rich = read_adult()
    person = np.char.add("p", np.arange(len(rich)).astype(str))
    bag = design_bags(person, size=size, salt="demo")
    everybody = pa.table({"person": person, "bag": bag.tolist(), **people})
    reports = private_reports(from_rows(bag, y=rich))
    first = int((1 - LATER) * reports.num_rows)
    soon = np.isin(bag, reports["bag"][:first].to_pylist())
    for where, paths, part in (
        (soon, files.first, reports[:first]),
        (~soon, files.later, reports[first:]),
    ):
        pq.write_table(everybody.filter(pa.array(where)), paths[0])
        pq.write_table(part, paths[1])
    return rich[soon]


def private_reports(bags: Bags) -> pa.Table:
    """What a privacy system gives away, in any order: noisy whole counts, and how noisy they
    are."""
    bags = noisy(bags, geometric(epsilon=EPSILON), seed=0)
    order = np.random.default_rng(0).permutation(len(bags))
    count = np.rint(bags.report * bags.size).astype(int)
    columns = {"bag": bags.names, "rich": count, "people": bags.size, "variance": bags.noise}
    return pa.table({name: np.asarray(column)[order].tolist() for name, column in columns.items()})


def _train(files: Files, learn: Any, methods: Sequence[str], epochs: int) -> dict[str, Any]:
    """A model file for each method; the models come back from the files, with their histories."""
    models, settings = {}, {"hidden": (32,), "epochs": epochs, "random_state": 0}
    with activity("learning") as progress:
        for number, method in enumerate(methods):
            progress(number, len(methods), f"learning: {method}")
            own = settings | {"method": method}
            if method == DEFAULT:
                own = {"random_state": 0}
            model = learned(learn, own)
            model.save(files.model(method))
            models[method] = open_model(files.model(method))
            models[method].runs_, models[method].run_ = model.runs_, model.run_
    return models


def _judge(model: Any, files: Files) -> JudgedModel:
    return judged_by(model, unseen(bags_for(model, *files.later, COLUMNS), model.learned_))


def truth_of(model: Any) -> Evaluation:
    """What the labels of 16,281 other people say of a model."""
    people, rich = read_adult("test")
    return evaluate_labels(scores_of(model, pa.table(people), "binary"), rich)


def _with_labels(learn: Any, labels: np.ndarray) -> Evaluation:
    """What the additive model reaches when each person's label is known: the ceiling."""
    from unbag.learners import Additive, DataWarning

    known = learn.reported()
    bags = from_rows(np.arange(len(known.rows)), y=labels[known.rows], X=known.table)
    people, rich = read_adult("test")
    with warnings.catch_warnings():  # rare capital gains decide a label; the prior holds them
        warnings.simplefilter("ignore", DataWarning)
        model = Additive().fit(bags)
    return evaluate_labels(model.scores(pa.table(people)), rich)


def _step(say: Console, number: int, title: str, words: str = "") -> None:
    say.print(f"\n{number}. {title}", style="bold")
    if words:
        say.print(f"   {words}", style="dim")


def _tell_tables(say: Console, files: Files, size: int) -> None:
    (events, reports), (new, later) = files.first, files.later
    _step(say, 1, f"Two tables, as a privacy system would leave them, in {files.folder}")
    say.print(
        f"{events.name}: people with their features and their bag of about {size}; nobody's label."
    )
    say.print(
        f"{reports.name}: how many in each bag earn over $50,000, with noise (epsilon = "
        f"{EPSILON:g})."
    )
    say.print(f"{new.name}, {later.name}: a fifth of the bags, which comes later.")


def _tell_check(say: Console, files: Files, summary: str) -> None:
    events, reports = files.first
    _step(say, 2, "Are the bags usable and random?", f"unbag check {events} {reports} {WORDS}")
    say.print(summary)


def _tell_training(say: Console, files: Files, learn: Any, models: dict[str, Any]) -> None:
    tables = " ".join(map(str, files.first))
    words = f"unbag train {tables} {WORDS} --test {TEST:g} --out {files.model(DEFAULT)}"
    _step(say, 3, "Learn the default model, and networks by the paper's methods beside it", words)
    for method in models:
        if method != DEFAULT:
            own = words.replace("--out", f"--method {method} --out")
            say.print(f"   {own.replace(DEFAULT, method)}", style="dim")
    say.print(f"Learned from {len(learn.reported())} bags.")


def _tell_choice(say: Console, files: Files, choice: Any) -> None:
    events, reports = files.first
    words = f"unbag select {files.folder}/*.unbag --events {events} --reports {reports} {WORDS}"
    _step(say, 4, "Choose one, by bags that none of them learned from", words)
    say.print(f"{choice.bags} bags chose {choice.name}. {choice.reason}")


def _tell_evaluation(say: Console, files: Files, best: str, judged: JudgedModel) -> None:
    events, reports = files.later
    words = f"unbag evaluate {files.model(best)} {events} {reports} {WORDS}"
    _step(say, 5, "How good is it? The later bags know, without a label", words)
    say.print(str(judged.evaluation))
    say.print(f"\n{judged.verdict}")


def _tell_effects(say: Console, files: Files, best: str, effects: Sequence[Effect]) -> None:
    """The strongest columns, and where their effects are lowest and highest."""
    _step(say, 6, "What does each column do?", f"unbag explain {files.model(best)}")
    table = Table("column", "strength", "lowest at", "highest at", box=box.SIMPLE)
    for one in effects[:COLUMNS_SHOWN]:
        table.add_row(one.name, f"{one.strength:.2f}", *ends_of(one))
    if not effects:
        say.print("Only the additive model tells what single columns do, and it has no part here.")
        return
    say.print(table)
    say.print("Effects on the log odds, in brackets; strength is their standard deviation.")


def _tell_truth(say: Console, judged: Truths, best: str, ceiling: Evaluation) -> None:
    """Of every method and metric whether the interval holds what the labels say."""
    _step(say, 7, "The labels, revealed: 16,281 other people, of whom nothing was used so far")
    table = Table("", "metric", "from bags", "95% interval", "labels say", "held", box=box.SIMPLE)
    main, held, count = (named("log_loss")[0], named("auc")[0]), 0, 0
    for method in sorted(judged, key=lambda m: judged[m][1]["log_loss"].value):
        model, truth = judged[method]
        rows, inside = verdicts(model.evaluation, truth)
        held, count = held + inside, count + len(rows)
        title = _title(method) + " (chosen)" * (method == best)
        for name, *cells in rows:
            if name in main or method == best:
                table.add_row(title, name, *cells)
                title = ""
    table.add_row("every label known", main[0], "", "", value_of(ceiling["log_loss"]), "")
    say.print(table)
    say.print(
        f"{held} of all {count} intervals hold what the labels say. They share their bags, so "
        "they miss together."
    )
    say.print("every label known: the additive model, learned from each person's own label.")


def _title(method: str) -> str:
    if method in METHODS:
        return METHODS[method].title
    return method
