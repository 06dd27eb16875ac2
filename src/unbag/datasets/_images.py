"""Images: MNIST from its idx files, even against odd as in the paper or all ten digits; CIFAR-10
from its binary files, animal against machine or cat against the rest."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from unbag._rules import broken, one_of
from unbag.datasets._dataset import Dataset
from unbag.datasets._files import Source, damaged, data_folder, fetch, find

MNIST_Task = Literal["even_odd", "digits"]
# yann.lecun.com, the first address, refuses downloads by now
MNIST_URL = "https://ossci-datasets.s3.amazonaws.com/mnist/"
MNIST_SHA256 = {  # of NAME-ubyte.gz
    "train-images-idx3": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    "train-labels-idx1": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    "t10k-images-idx3": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    "t10k-labels-idx1": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
}
MNIST_CITATION = "LeCun, Cortes and Burges: The MNIST database of handwritten digits, 1998"


def load_mnist(
    task: MNIST_Task = "even_odd",
    *,
    images: bool = False,
    folder: str | Path | None = None,
    download: bool = False,
    unofficial: bool = False,
) -> Dataset:
    """MNIST: 60,000 digits to train on and 10,000 to test on, pixels divided by 255.

    Parameters
    ----------
    task : {"even_odd", "digits"}
        Even (1) against odd as in the paper, or ten classes reported as histograms.
    images : bool
        Rows of shape (28, 28, 1) instead of 784 columns.
    folder : str or Path, optional
        The data folder; see `data_folder`.
    download : bool
        Fetch the files when they are not there.
    unofficial : bool
        Take files with another digest too.
    """
    one_of("A task of MNIST", task, get_args(MNIST_Task))
    sources = [
        Source("mnist", f"{name}-ubyte.gz", f"{MNIST_URL}{name}-ubyte.gz", sha256)
        for name, sha256 in MNIST_SHA256.items()
    ]
    options: dict[str, Any] = {"folder": folder, "download": download, "unofficial": unofficial}
    files = [find(source, **options) for source in sources]
    (X, y), (X_test, y_test) = (_part(files[i].path, files[i + 1].path) for i in (0, 2))
    about: dict[str, Any] = {"kind": "histogram", "classes": 10}
    if task == "even_odd":
        y, y_test = ((digit % 2 == 0).astype(np.float32) for digit in (y, y_test))
        about = {}
    if not all(file.official for file in files):
        about |= {"official": False, "note": "the files are not the official ones"}
    names = tuple(f"pixel_{i}_{j}" for i in range(28) for j in range(28))
    if images:
        X, X_test, names = X[..., None], X_test[..., None], ()
    else:
        X, X_test = X.reshape(-1, 784), X_test.reshape(-1, 784)
    about |= {"name": f"mnist/{task}", "citation": MNIST_CITATION, "licence": "CC BY-SA 3.0"}
    return Dataset(X, y, X_test, y_test, names, **about)


def read_idx(path: Path) -> np.ndarray:
    """The array of bytes in a gzip file of the idx format.

    The format has two zeros, the type 8, the number of axes, their lengths, and the bytes.
    """
    try:
        raw = gzip.decompress(path.read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise damaged(path, "be a whole gzip file", error) from error
    axes = 0
    if len(raw) > 4 and raw[:3] == b"\0\0\x08":
        axes = raw[3]
    head = 4 + 4 * axes
    shape = np.frombuffer(raw[4:head].ljust(4 * axes, b"\0"), ">u4")
    if axes == 0 or len(raw) != head + int(np.prod(shape, dtype=np.int64)):
        given = f"its head is {raw[:16].hex()} and its length {len(raw)}"
        raise damaged(path, "be an idx file of bytes, as long as its head says", given)
    return np.frombuffer(raw, np.uint8, offset=head).reshape(shape)


def _part(images: Path, labels: Path) -> tuple[np.ndarray, np.ndarray]:
    X, y = read_idx(images), read_idx(labels)
    if X.shape[1:] != (28, 28) or y.shape != X.shape[:1]:
        rule = "MNIST must have images of 28 by 28 and a label for each"
        remedy = "Get both files again."
        raise broken(rule, f"{X.shape} given in {images} and {y.shape} in {labels}", remedy)
    return X.astype(np.float32) / 255, y.astype(np.int32)


CIFAR_Task = Literal["animal_machine", "cat_rest"]
CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
POSITIVE = {"animal_machine": ("bird", "cat", "deer", "dog", "frog", "horse"), "cat_rest": ("cat",)}
CIFAR_FOLDER = "cifar-10-batches-bin"
CIFAR_URL = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
CIFAR_ARCHIVE_SHA256 = "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"
CIFAR_SHA256 = {
    "data_batch_1.bin": "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
    "data_batch_2.bin": "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
    "data_batch_3.bin": "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
    "data_batch_4.bin": "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
    "data_batch_5.bin": "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
    "test_batch.bin": "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
}
RECORD = 1 + 3 * 32 * 32  # a label, then the red, the green and the blue plane
CIFAR_CITATION = (
    "Krizhevsky: Learning multiple layers of features from tiny images, University of Toronto, 2009"
)


def load_cifar10(
    task: CIFAR_Task = "animal_machine",
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
    one_of("A task of CIFAR-10", task, get_args(CIFAR_Task))
    root = data_folder(folder)
    sources = [
        Source(
            CIFAR_FOLDER, name, CIFAR_URL, sha256, f"{CIFAR_FOLDER}/{name}", CIFAR_ARCHIVE_SHA256
        )
        for name, sha256 in CIFAR_SHA256.items()
    ]
    absent = [source for source in sources if not source.path(root).exists()]
    if absent and download:
        fetch(absent, root)
    *train, test = sources  # of the training files those that are there, at least one
    train = [source for source in train if source.path(root).exists()] or train[:1]
    files = [find(source, folder=root, unofficial=unofficial) for source in (*train, test)]
    *train, (X_test, kind_test) = (_read(file.path) for file in files)
    X, kind = (np.concatenate(part) for part in zip(*train, strict=True))
    positive = np.isin(CLASSES, POSITIVE[task]).astype(np.float32)
    colours, side = ("red", "green", "blue"), range(32)
    names = tuple(f"{c}_{i}_{j}" for i in side for j in side for c in colours)
    if images:
        names = ()
    else:
        X, X_test = X.reshape(len(X), -1), X_test.reshape(len(X_test), -1)
    note = ""
    if not all(file.official for file in files):
        note = "the files are not the official ones"
    elif len(files) < len(CIFAR_SHA256):
        note = f"{len(files) - 1} of the 5 training files"
    about: dict[str, Any] = {"name": f"cifar10/{task}", "citation": CIFAR_CITATION, "note": note}
    return Dataset(
        X, positive[kind], X_test, positive[kind_test], names,
        official=not note, licence="none stated; cite the report", **about,
    )  # fmt: skip


def _read(path: Path) -> tuple[np.ndarray, np.ndarray]:
    raw = np.fromfile(path, np.uint8)
    if len(raw) == 0 or len(raw) % RECORD or raw[::RECORD].max() > 9:
        rule = f"hold records of {RECORD} bytes that begin with a class from 0 to 9"
        raise damaged(path, rule, f"its {len(raw)} bytes do not")
    table = raw.reshape(-1, RECORD)
    X = table[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1).astype(np.float32, order="C")
    return X / 255, table[:, 0]
