"""Tasks by name: labelled data and the network that the paper trains on them; `add_task` adds
yours."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from inspect import signature
from typing import Any, Literal, NamedTuple, cast

import numpy as np
import pyarrow as pa

from unbag import datasets, models
from unbag._rules import one_of
from unbag.bags import Kind
from unbag.datasets import Dataset
from unbag.lab import _convolution
from unbag.methods import usual_loss


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


Build = Callable[..., Any]
"""From (shape of one row, outputs=, key=, start=) to a model."""


def _flat(shape: tuple[int, ...], hidden: tuple[int, ...] = (), **options: Any) -> Any:
    return models.mlp(int(np.prod(shape)), hidden, **options)


MODELS: dict[str, Build] = {
    "linear": _flat,
    "perceptron": partial(_flat, hidden=(32,)),
    "deep": partial(_flat, hidden=(300,) * 4),
    "cnn": _convolution.cnn,
}
"""`perceptron` (one hidden layer of 32) is the paper's network for Adult, `deep` for Higgs, `cnn`
for images."""

TASKS: dict[str, Task] = {}


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
    return data._replace(
        X=_beside(data.X, data.offset), X_test=_beside(data.X_test, data.offset_test)
    )


def _beside(X: np.ndarray, offset: np.ndarray) -> np.ndarray:
    return np.concatenate([X, offset[:, None].astype(X.dtype)], axis=1)


def trivial_loss(data: Dataset, prior: Any, kind: Kind) -> float:
    """The test loss of a model without features."""
    score = trivial_score(data, prior, kind)
    alike = np.broadcast_to(score, (len(data.y_test), *np.shape(score)))
    if data.offset_test is not None:
        alike = alike + data.offset_test
    return float(np.mean(usual_loss("any", kind).value(alike, data.y_test, kind=kind)))


def title_of(task: str) -> str:
    """What figures and tables call a task; one that is not known here has its name."""
    return TASKS[task].title if task in TASKS else task


def download(name: str) -> None:
    """Fetch the files of a task that are not there, where they can be fetched."""
    load: Any = TASKS[name].load
    if "download" in signature(load).parameters:
        load(download=True)


def build(model: str, data: Dataset, **options: Any) -> Any:
    """A network for the data of a task, by name; options : outputs, key, start."""
    if data.offset is None:
        return MODELS[model](data.X.shape[1:], **options)
    return models.with_offset(MODELS[model]((data.X.shape[1] - 1,), **options))


def trivial_score(data: Dataset, prior: Any, kind: Kind) -> Any:
    """The score that a model without features gives every row, before its offset."""
    score = usual_loss("any", kind).trivial_score(prior, kind=kind)
    if data.offset is None:
        return score
    return score - np.log(np.mean(np.exp(data.offset)))


def _load_clicks(rate: float = 0.036) -> Dataset:
    """Clicks of campaigns, of which few convert: a table with categories of many levels."""
    made = datasets.make_conversions(100_000, 50_000, seed=0, rate=rate)
    drawn = np.random.default_rng(1).uniform(size=len(made.test_truth)) < made.test_truth
    events, test = cast(Any, made.events), cast(Any, made.test)  # tables stand for arrays here
    names, labels = tuple(made.events.column_names), (made.label.astype(float), drawn.astype(float))
    return Dataset(events, labels[0], test, labels[1], names, "clicks", truth_test=made.test_truth)


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


def _add_shipped() -> None:
    add_task("adult", datasets.load_adult, title="Adult", paper_rows=32_561)
    images: dict[str, Any] = {"model": "cnn", "data": "images"}
    mnist = partial(datasets.load_mnist, images=True)
    add_task("mnist", mnist, title="MNIST, even or odd", paper_rows=60_000, **images)
    animal = partial(datasets.load_cifar10, "animal_machine", images=True)
    title = "CIFAR-10, animal or machine"
    add_task("cifar-animal", animal, title=title, paper_rows=50_000, **images)
    cat = partial(datasets.load_cifar10, "cat_rest", images=True)
    add_task("cifar-cat", cat, title="CIFAR-10, cat or not", paper_rows=50_000, **images)
    higgs: dict[str, Any] = {"model": "deep", "paper_rows": 10_990_000}
    add_task("higgs", datasets.load_higgs, title="Higgs, 21 features", **higgs)
    every = partial(datasets.load_higgs, high_level=True)
    add_task("higgs-all", every, title="Higgs, 28 features", **higgs)
    digits = partial(datasets.load_mnist, "digits")
    classes: dict[str, Any] = {"kind": "histogram", "outputs": 10, "data": "images"}
    add_task("mnist-digits", digits, title="MNIST, ten digits", **classes)
    made = {"rows": 32_768, "test_rows": 16_384, "seed": 0}
    gaussian = partial(datasets.make_gaussian, **made)
    add_task("gaussian", gaussian, title="made Gaussian", data="made")
    heavy = partial(datasets.make_heavy_tailed, **made)
    add_task("heavy-tailed", heavy, title="made heavy-tailed", data="made")
    add_task("clicks", _load_clicks, title="made clicks", data="made")
    for percent in (1, 5, 20):
        clicks = partial(_load_clicks, percent / 100)
        title = f"made clicks, {percent}%"
        add_task(f"clicks-{percent}", clicks, title=title, data="made")
    add_task("criteo", _load_criteo, title="Criteo sample")
    add_task("bike-sharing", datasets.load_bike_sharing, title="bike sharing", kind="total")
    add_task("motor-claims", datasets.load_fremtpl2, title="French motor claims", kind="total")


_add_shipped()
