"""The binary files of CIFAR-10 in, small colour images out: animal against machine, or cat against
the rest."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args

import numpy as np

from unbag._rules import broken
from unbag.datasets._dataset import Dataset
from unbag.datasets._files import Found, Source, data_folder, fetch, find

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
    """CIFAR-10: 50,000 images to train on (five files of 10,000) and 10,000 to test on, pixels
    divided by 255.

    Training files that are not there are left out; `note` then says how many were read, and
    `official` is False.

    Parameters
    ----------
    task : "animal_machine", where 1 means animal, or "cat_rest", where 1 means cat, both as in the
        paper.
    images : rows of shape (32, 32, 3) instead of 3072 columns, which are the same numbers in the
        same order.
    folder, download, unofficial : where the files lie, and what may be done; see
        `unbag.datasets._files`.
    """
    if task not in POSITIVE:
        raise broken(
            f"A task of CIFAR-10 must be one of {list(get_args(Task))}",
            f"{task!r} came",
            "Choose one of these.",
        )
    files = _files(data_folder(folder), download, unofficial)
    parts = [_read(file.path, images) for file in files]
    X, digit = (np.concatenate(part) for part in zip(*parts[:-1], strict=True))
    positive = np.isin(CLASSES, POSITIVE[task]).astype(np.float32)
    note = _note(files)
    return Dataset(
        X,
        positive[digit],
        parts[-1][0],
        positive[parts[-1][1]],
        ()
        if images
        else tuple(
            f"{c}_{i}_{j}" for i in range(32) for j in range(32) for c in ("red", "green", "blue")
        ),
        name=f"cifar10/{task}",
        citation=CITATION,
        licence="none stated; cite the report",
        official=not note,
        note=note,
    )


def _sources() -> list[Source]:
    return [
        Source(FOLDER, name, URL, sha, f"{FOLDER}/{name}", ARCHIVE_SHA256)
        for name, sha in SHA256.items()
    ]


def _files(root: Path, download: bool, unofficial: bool) -> list[Found]:
    """The training files that are there, at least one, and the test file."""
    there = lambda source: (root / source.folder / source.name).exists()
    absent = [source for source in _sources() if not there(source)]
    if absent and download:
        fetch(absent, root)
    *train, test = _sources()
    train = [source for source in train if there(source)] or train[:1]
    return [find(source, folder=root, unofficial=unofficial) for source in (*train, test)]


def _note(files: list[Found]) -> str:
    if not all(file.official for file in files):
        return "the files are not the official ones"
    return "" if len(files) == 6 else f"{len(files) - 1} of the 5 training files"


def _read(path: Path, images: bool) -> tuple[np.ndarray, np.ndarray]:
    raw = np.fromfile(path, np.uint8)
    if len(raw) == 0 or len(raw) % RECORD or raw[::RECORD].max() > 9:
        raise broken(
            (
                f"The file {path} must hold records of {RECORD} bytes that begin with a class "
                "from 0 to 9"
            ),
            f"its {len(raw)} bytes do not",
            "Delete it and get it again.",
        )
    table = raw.reshape(-1, RECORD)
    X = (
        table[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1).astype(np.float32, order="C")
        / 255
    )
    return X if images else X.reshape(len(X), -1), table[:, 0]
