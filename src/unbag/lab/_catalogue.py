"""What plans know by name: tasks, which are labelled data with the network that the paper trains
on them, networks, and methods with their losses; `add_task`, `add_model` and `add_method` add
yours."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from inspect import signature
from typing import Any, Literal, NamedTuple, cast

import numpy as np
import pyarrow as pa

from unbag import datasets, models
from unbag._rules import broken, one_of
from unbag.bags import Kind
from unbag.datasets import Dataset
from unbag.lab import _convolution
from unbag.losses import LOSSES, proper_loss
from unbag.methods import METHODS as KNOWN
from unbag.methods import Method, usual_loss
from unbag.plots import CurveLook
from unbag.training import Objective


class Task(NamedTuple):
    """Data to learn from.

    Parameters
    ----------
    name : str
        What plans call it.
    load : callable
        Gives labelled training and test data.
    model : str
        The name of the paper's network, or of the usual one.
    title : str
        What figures and tables call it.
    paper_rows : int, optional
        How many rows the paper trains on, to tell whether results can be compared with it.
    kind : {"binary", "total", "histogram"}
        Of the reports.
    outputs : int
        How many scores the model gives for a row.
    data : {"table", "images", "made"}
        What the rows are, for comparisons by kind of data.
    """

    name: str
    load: Callable[[], Dataset]
    model: str = "perceptron"
    title: str = ""
    paper_rows: int | None = None
    kind: Kind = "binary"
    outputs: int = 1
    data: Literal["table", "images", "made"] = "table"


Build = Callable[..., Any]  # from (shape of one row, outputs=, key=, start=) to a model


def _flat(shape: tuple[int, ...], hidden: tuple[int, ...] = (), **options: Any) -> Any:
    return models.mlp(int(np.prod(shape)), hidden, **options)


# `perceptron` (one hidden layer of 32) is the paper's network for Adult, `deep` for Higgs, `cnn`
# for images; `cnn-bfloat16` is the same with faster, rougher steps
MODELS: dict[str, Build] = {
    "linear": _flat,
    "perceptron": partial(_flat, hidden=(32,)),
    "deep": partial(_flat, hidden=(300,) * 4),
    "cnn": _convolution.cnn,
    "cnn-bfloat16": _convolution.cnn_bfloat16,
}
ROUNDED = {"cnn-bfloat16": "cnn"}  # the same network


def add_task(name: str, load: Callable[[], Dataset], **about: Any) -> None:
    """Make data known to plans under a name; see `docs/adding.md`.

    Parameters
    ----------
    name : str
        What plans call it.
    load : callable
        Gives labelled training and test data.
    **about : Any
        `model`, `title`, `paper_rows`, `kind`, `outputs` and `data`; see `Task`.
    """
    task = Task(name, load, **about)
    one_of("A task's model", task.model, MODELS, "Choose one, or add it.")
    TASKS[name] = task._replace(title=task.title or name)


def add_model(name: str, build: Build) -> None:
    """Make a network known to plans.

    Parameters
    ----------
    name : str
        What plans call it.
    build : callable
        `build(shape, outputs=, key=, start=)` gives the model for rows of that shape.
    """
    MODELS[name] = build


@lru_cache(maxsize=1)
def data_of(name: str) -> Dataset:
    """The data of a task, kept while it is the one worked on; an offset becomes the last column of
    the features."""
    data = TASKS[name].load()
    if data.offset is None or data.offset_test is None:
        return data
    pairs = ((data.X, data.offset), (data.X_test, data.offset_test))
    X, X_test = (np.concatenate([X, o[:, None].astype(X.dtype)], axis=1) for X, o in pairs)
    return data._replace(X=X, X_test=X_test)


def trivial_loss(data: Dataset, prior: Any, kind: Kind) -> float:
    """The test loss of a model without features."""
    score = trivial_score(data, prior, kind)
    alike = np.broadcast_to(score, (len(data.y_test), *np.shape(score)))
    if data.offset_test is not None:
        alike = alike + data.offset_test
    return float(np.mean(proper_loss(kind).value(alike, data.y_test, kind=kind)))


def title_of(task: str) -> str:
    """What figures and tables call a task; one that is not known here has its name."""
    if task in TASKS:
        return TASKS[task].title
    return task


def download(name: str) -> None:
    """Fetch the files of a task that are not there, where they can be fetched."""
    load: Any = TASKS[name].load
    if "download" in signature(load).parameters:
        load(download=True)


def has_papers_network(task: str, model: str) -> bool:
    """Whether a model is the paper's network for a task, however its steps are rounded."""
    return ROUNDED.get(model, model) == TASKS[task].model


def build(model: str, data: Dataset, **options: Any) -> Any:
    """A network for the data of a task, by name; options : outputs, key, start."""
    if data.offset is None:
        return MODELS[model](data.X.shape[1:], **options)
    return models.with_offset(MODELS[model]((data.X.shape[1] - 1,), **options))


def trivial_score(data: Dataset, prior: Any, kind: Kind) -> Any:
    """The score that a model without features gives every row, before its offset."""
    score = proper_loss(kind).trivial_score(prior, kind=kind)
    if data.offset is None:
        return score
    return score - np.log(np.mean(np.exp(data.offset)))


def _load_clicks(rate: float = 0.036) -> Dataset:
    """Clicks of campaigns, of which few convert: a table with categories of many levels."""
    made = datasets.make_conversions(100_000, 50_000, seed=0, rate=rate)
    drawn = np.random.default_rng(1).uniform(size=len(made.test_truth)) < made.test_truth
    events, test = cast(Any, made.events), cast(Any, made.test)  # tables stand for arrays here
    labels, names = made.label.astype(float), tuple(made.events.column_names)
    about = {"name": "clicks", "truth_test": made.test_truth}
    return Dataset(events, labels, test, drawn.astype(float), names, **about)


CRITEO_ROWS, CRITEO_TRAIN = 120_000, 80_000


def _load_criteo() -> Dataset:
    """Advertisements and whether they were clicked: the first rows of Criteo's file, or of the
    sample that is there, as 39 columns of codes; the last third is the test."""
    chunk = next(datasets.read_criteo(rows=CRITEO_ROWS))
    names = tuple(f"c{j}" for j in range(chunk.X.shape[1]))
    columns = [pa.array(column).cast(pa.string()) for column in chunk.X.T]
    table = cast(Any, pa.table(dict(zip(names, columns, strict=True))))
    label = np.asarray(chunk.y, float)
    split = min(CRITEO_TRAIN, 2 * len(label) // 3)
    return Dataset(table[:split], label[:split], table[split:], label[split:], names, "criteo")


_MADE = {"rows": 32_768, "test_rows": 16_384, "seed": 0}
_MNIST, _CIFAR, _HIGGS = datasets.load_mnist, datasets.load_cifar10, datasets.load_higgs
_ROWS = {"mnist": 60_000, "cifar": 50_000, "higgs": 10_990_000}  # in the paper
# in the order in which they are listed
TASKS: dict[str, Task] = {task.name: task for task in (
    Task("adult", datasets.load_adult, title="Adult", paper_rows=32_561),
    Task("mnist", partial(_MNIST, images=True), "cnn", "MNIST, even or odd", _ROWS["mnist"],
         data="images"),
    Task("cifar-animal", partial(_CIFAR, "animal_machine", images=True), "cnn",
         "CIFAR-10, animal or machine", _ROWS["cifar"], data="images"),
    Task("cifar-cat", partial(_CIFAR, "cat_rest", images=True), "cnn", "CIFAR-10, cat or not",
         _ROWS["cifar"], data="images"),
    Task("higgs", _HIGGS, "deep", "Higgs, 21 features", _ROWS["higgs"]),
    Task("higgs-all", partial(_HIGGS, high_level=True), "deep", "Higgs, 28 features",
         _ROWS["higgs"]),
    Task("mnist-digits", partial(_MNIST, "digits"), title="MNIST, ten digits", kind="histogram",
         outputs=10, data="images"),
    Task("gaussian", partial(datasets.make_gaussian, **_MADE), title="made Gaussian", data="made"),
    Task("heavy-tailed", partial(datasets.make_heavy_tailed, **_MADE), title="made heavy-tailed",
         data="made"),
    Task("clicks", _load_clicks, title="made clicks", data="made"),
    *(Task(f"clicks-{percent}", partial(_load_clicks, percent / 100), data="made",
           title=f"made clicks, {percent}%") for percent in (1, 5, 20)),
    Task("criteo", _load_criteo, title="Criteo sample"),
    Task("bike-sharing", datasets.load_bike_sharing, title="bike sharing", kind="total"),
    Task("motor-claims", datasets.load_fremtpl2, title="French motor claims", kind="total"),
)}  # fmt: skip

SMOOTHING = 0.1  # of labels, in the paper
UNSMOOTHED = "log smoothed by 0"  # of `curve_of`
METHODS: dict[str, Method | Objective] = {facts.name: facts.name for facts in KNOWN.values()}
USUAL_LOSS: dict[str, str] = {}
TITLES = {name: facts.title for name, facts in KNOWN.items()} | {"all": "any method"}
# what a plan runs when it names no methods, by the kind of report
WAYS: dict[Kind, tuple[str, ...]] = {
    "binary": ("matching", "easy", "upm", "anchored:log", "anchored", "likelihood", "labels"),
    "histogram": (
        "matching", "easy", "upm", "upm:brier", "anchored:cross_entropy", "anchored", "likelihood",
        "labels",
    ),
    "total": ("matching", "easy", "upm", "anchored", "likelihood", "labels"),
}  # fmt: skip

LOOKS = {  # colours of Okabe and Ito, which everyone can tell apart
    "matching": CurveLook("#0072B2", "o"),
    "easy": CurveLook("#E69F00", "s"),
    "upm": CurveLook("#009E73", "D"),
    "anchored": CurveLook("#CC79A7", "^"),
    "likelihood": CurveLook("#56B4E9", "P"),
}
OUR_LOOK = CurveLook("#D55E00", "v")  # anchored with the square or the Brier loss


class Way(NamedTuple):
    """A method and the loss it is used with: one curve of a figure.

    Parameters
    ----------
    method, loss : str
        Their names.

    Examples
    --------
    >>> Way.named("anchored:square"), Way.named("upm")
    (Way(method='anchored', loss='square'), Way(method='upm', loss='log'))
    """

    method: str
    loss: str

    def __str__(self) -> str:
        return f"{self.method}:{self.loss}"

    @staticmethod
    def read(text: str) -> Way:
        """From what `str` made of one; it may be of a method that is not known here."""
        method, _, loss = text.partition(":")
        return Way(method, loss or "log")

    @staticmethod
    def named(text: str, kind: Kind = "binary") -> Way:
        """From "method" or "method:loss".

        Parameters
        ----------
        text : str
            The name.
        kind : {"binary", "total", "histogram"}
            Of the reports; decides the loss of a method that is named alone.
        """
        method, _, loss = text.partition(":")
        one_of("A method", method, METHODS, "Choose one, or add it.")
        loss = loss or USUAL_LOSS.get(method) or usual_loss(method, kind).name
        one_of("A method's loss", loss, LOSSES)
        return Way(method, loss)

    @property
    def is_ours(self) -> bool:
        """Whether it is anchored with the square or the Brier loss."""
        return self.method == "anchored" and self.loss in ("square", "brier")

    @property
    def title(self) -> str:
        """What figures and tables call it."""
        name = TITLES.get(self.method, self.method)
        if self.loss == UNSMOOTHED:
            return f"{name}, unsmoothed"
        if self.method != "anchored" and self.loss == "log":
            return name
        return f"{name}, {self.loss}"


def add_method(
    name: str, objective: Objective, *, loss: str = "log", title: str | None = None
) -> None:
    """Make a method of your own known to plans. `docs/adding.md` has an example.

    Parameters
    ----------
    name : str
        Part of a run's identity: change it when you change the method, or old runs count as new
        ones.
    objective : callable
        `objective(score, batch, loss) -> value`, in JAX.
    loss : str
        The usual one.
    title : str, optional
        What figures and tables call it; by default the name.
    """
    if not callable(objective) or not name.isidentifier() or name in KNOWN:
        rule = "A method to add must be a function with a new name of letters, digits and _"
        raise broken(rule, f"{name!r} given", "See docs/adding.md.")
    METHODS[name] = objective
    USUAL_LOSS[name] = loss
    TITLES[name] = title or name


def smoothing_of(way: Way, smoothing: float) -> float:
    """The label smoothing of a method: off for the square loss, for the likelihood and for labels.

    The likelihood has no label to smooth. Labels are there as the ceiling, and smoothed labels end
    above it; what they do smoothed, EasyLLP and PM with bags of one do.
    """
    smooth = way.loss in ("log", "cross_entropy") and way.method not in ("likelihood", "labels")
    return smoothing * smooth


def curve_of(way: Way, smoothing: float) -> Way:
    """The way itself, or another curve where labels are not smoothed as usual."""
    if smoothing == smoothing_of(way, SMOOTHING):
        return way
    return way._replace(loss=f"{way.loss} smoothed by {smoothing:g}")
