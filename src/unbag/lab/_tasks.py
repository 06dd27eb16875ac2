"""A name in, a task out: labelled data and the network that the paper trains on them; `add_task`
adds yours."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from inspect import signature
from typing import Any, NamedTuple

import numpy as np

from unbag import datasets, models
from unbag._rules import broken
from unbag.bags import Kind
from unbag.datasets import Dataset
from unbag.methods import usual_loss


class Task(NamedTuple):
    """Data to learn from.

    load : gives labelled training and test data. model : the name of the paper's network, or of the
        usual one.
    paper_rows : how many rows the paper trains on, to tell whether results can be compared with it.
    kind, outputs : of the reports, and how many scores the model gives for a row.
    """

    name: str
    load: Callable[[], Dataset]
    model: str = "perceptron"
    title: str = ""
    paper_rows: int | None = None
    kind: Kind = "binary"
    outputs: int = 1


Build = Callable[..., Any]
"""From (shape of one row, outputs=, key=, start=) to a model."""

MODELS: dict[str, Build] = {
    "linear": lambda shape, **options: models.mlp(int(np.prod(shape)), (), **options),
    "perceptron": lambda shape, **options: models.mlp(int(np.prod(shape)), (32,), **options),
    "deep": lambda shape, **options: models.mlp(int(np.prod(shape)), (300,) * 4, **options),
    "cnn": lambda shape, **options: models.cnn(shape, **options),
}
"""`perceptron` (one hidden layer of 32) is the paper's network for Adult, `deep` for Higgs, `cnn` for images."""

TASKS: dict[str, Task] = {}


def add_task(
    name: str,
    load: Callable[[], Dataset],
    *,
    model: str = "perceptron",
    title: str = "",
    paper_rows: int | None = None,
    kind: Kind = "binary",
    outputs: int = 1,
) -> None:
    """Make data known to plans under a name. See `Task` and `docs/adding.md`."""
    if model not in MODELS:
        raise broken(
            f"A task's model must be one of {', '.join(MODELS)}",
            f"{model!r} came",
            "Choose one, or add it.",
        )
    TASKS[name] = Task(name, load, model, title or name, paper_rows, kind, outputs)


def add_model(name: str, build: Build) -> None:
    """Make a network known to plans under a name: `build(shape, outputs=, key=, start=)` gives the
    model."""
    MODELS[name] = build


@lru_cache(maxsize=1)
def data_of(name: str) -> Dataset:
    """The data of a task, kept while it is the one worked on; an offset becomes the last column of
    the features."""
    data = TASKS[name].load()
    if data.offset is None or data.offset_test is None:
        return data
    beside = lambda X, offset: np.concatenate([X, offset[:, None].astype(X.dtype)], axis=1)
    return data._replace(
        X=beside(data.X, data.offset), X_test=beside(data.X_test, data.offset_test)
    )


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
    return score if data.offset is None else score - np.log(np.mean(np.exp(data.offset)))


_images = {"images": True}
add_task("adult", datasets.load_adult, title="Adult", paper_rows=32_561)
add_task(
    "mnist",
    partial(datasets.load_mnist, **_images),
    model="cnn",
    title="MNIST, even or odd",
    paper_rows=60_000,
)
add_task(
    "cifar-animal",
    partial(datasets.load_cifar10, "animal_machine", **_images),
    model="cnn",
    title="CIFAR-10, animal or machine",
    paper_rows=50_000,
)
add_task(
    "cifar-cat",
    partial(datasets.load_cifar10, "cat_rest", **_images),
    model="cnn",
    title="CIFAR-10, cat or not",
    paper_rows=50_000,
)
add_task("higgs", datasets.load_higgs, model="deep", title="Higgs", paper_rows=10_990_000)
add_task(
    "mnist-digits",
    partial(datasets.load_mnist, "digits"),
    title="MNIST, ten digits",
    kind="histogram",
    outputs=10,
)
add_task("bike-sharing", datasets.load_bike_sharing, title="bike sharing", kind="total")
add_task("motor-claims", datasets.load_fremtpl2, title="French motor claims", kind="total")
