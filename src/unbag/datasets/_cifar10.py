"""CIFAR-10 from its binary files: animal against machine, or cat against the rest."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from unbag._rules import one_of
from unbag.datasets._dataset import Dataset
from unbag.datasets._files import LocalFile, Source, damaged, data_folder, fetch, find

Task = Literal["animal_machine", "cat_rest"]
CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
POSITIVE = {"animal_machine": ("bird", "cat", "deer", "dog", "frog", "horse"), "cat_rest": ("cat",)}
FOLDER = "cifar-10-batches-bin"
URL = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
ARCHIVE_SHA256 = "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"
SHA256 = {
    "data_batch_1.bin": "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
    "data_batch_2.bin": "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
    "data_batch_3.bin": "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
    "data_batch_4.bin": "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
    "data_batch_5.bin": "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
    "test_batch.bin": "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
}
RECORD = 1 + 3 * 32 * 32  # a label, then the red, the green and the blue plane
CITATION = (
    "Krizhevsky: Learning multiple layers of features from tiny images, University of Toronto, 2009"
)


def load_cifar10(
    task: Task = "animal_machine",
    *,
    images: bool = False,
    folder: str | Path | None = None,
    download: bool = False,
    unofficial: bool = False,
) -> Dataset:
    """CIFAR-10: 50,000 images to train on (five files) and 10,000 to test on, pixels / 255.

    Training files that are not there are left out; `note` then says how many were read, and
    `official` is False.

    Parameters
    ----------
    task : {"animal_machine", "cat_rest"}
        1 means animal, or 1 means cat, both as in the paper.
    images : bool
        Rows of shape (32, 32, 3) instead of 3072 columns, which are the same numbers in the same
        order.
    folder : str or Path, optional
        The data folder; see `data_folder`.
    download : bool
        Fetch the files when they are not there.
    unofficial : bool
        Take files with another digest too.
    """
    one_of("A task of CIFAR-10", task, get_args(Task))
    files = _files(data_folder(folder), download, unofficial)
    *train, (X_test, kind_test) = (_read(file.path) for file in files)
    X, kind = (np.concatenate(part) for part in zip(*train, strict=True))
    positive = np.isin(CLASSES, POSITIVE[task]).astype(np.float32)
    colours, side = ("red", "green", "blue"), range(32)
    names = tuple(f"{c}_{i}_{j}" for i in side for j in side for c in colours)
    if images:
        names = ()
    else:
        X, X_test = X.reshape(len(X), -1), X_test.reshape(len(X_test), -1)
    note = _note(files)
    about: dict[str, Any] = {"name": f"cifar10/{task}", "citation": CITATION, "note": note}
    return Dataset(
        X, positive[kind], X_test, positive[kind_test], names,
        official=not note, licence="none stated; cite the report", **about,
    )  # fmt: skip


def _files(root: Path, download: bool, unofficial: bool) -> list[LocalFile]:
    """The training files that are there, at least one, and the test file."""
    sources = [
        Source(FOLDER, name, URL, sha256, f"{FOLDER}/{name}", ARCHIVE_SHA256)
        for name, sha256 in SHA256.items()
    ]
    absent = [source for source in sources if not source.path(root).exists()]
    if absent and download:
        fetch(absent, root)
    *train, test = sources
    train = [source for source in train if source.path(root).exists()] or train[:1]
    return [find(source, folder=root, unofficial=unofficial) for source in (*train, test)]


def _note(files: list[LocalFile]) -> str:
    if not all(file.official for file in files):
        return "the files are not the official ones"
    if len(files) < len(SHA256):
        return f"{len(files) - 1} of the 5 training files"
    return ""


def _read(path: Path) -> tuple[np.ndarray, np.ndarray]:
    raw = np.fromfile(path, np.uint8)
    if len(raw) == 0 or len(raw) % RECORD or raw[::RECORD].max() > 9:
        rule = f"hold records of {RECORD} bytes that begin with a class from 0 to 9"
        raise damaged(path, rule, f"its {len(raw)} bytes do not")
    table = raw.reshape(-1, RECORD)
    X = table[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1).astype(np.float32, order="C")
    return X / 255, table[:, 0]
