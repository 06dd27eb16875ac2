"""The idx files of MNIST in, images of digits out: even against odd as in the paper, or all ten
digits."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from unbag._rules import broken
from unbag.datasets._dataset import Dataset
from unbag.datasets._files import Source, find

Task = Literal["even_odd", "digits"]
# yann.lecun.com, the first address, refuses downloads by now
URL = "https://ossci-datasets.s3.amazonaws.com/mnist/"
SHA256 = {
    "train-images-idx3-ubyte.gz": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    "train-labels-idx1-ubyte.gz": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    "t10k-images-idx3-ubyte.gz": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    "t10k-labels-idx1-ubyte.gz": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
}
CITATION = "LeCun, Cortes and Burges: The MNIST database of handwritten digits, 1998"


def load_mnist(
    task: Task = "even_odd",
    *,
    images: bool = False,
    folder: str | Path | None = None,
    download: bool = False,
    unofficial: bool = False,
) -> Dataset:
    """MNIST: 60,000 digits to train on and 10,000 to test on, pixels divided by 255.

    Parameters
    ----------
    task : "even_odd", where 1 means even as in the paper, or "digits", ten classes reported as
        histograms.
    images : rows of shape (28, 28, 1) instead of 784 columns.
    folder, download, unofficial : where the files lie, and what may be done; see
        `unbag.datasets._files`.
    """
    if task not in get_args(Task):
        raise broken(
            f"A task of MNIST must be one of {list(get_args(Task))}",
            f"{task!r} came",
            "Choose one of these.",
        )
    sources = [Source("mnist", name, URL + name, sha256) for name, sha256 in SHA256.items()]
    files = [
        find(source, folder=folder, download=download, unofficial=unofficial) for source in sources
    ]
    (X, y), (X_test, y_test) = (_part(files[i].path, files[i + 1].path, images) for i in (0, 2))
    label = _even if task == "even_odd" else _digit
    official = all(file.official for file in files)
    return Dataset(
        X,
        label(y),
        X_test,
        label(y_test),
        () if images else tuple(f"pixel_{i}_{j}" for i in range(28) for j in range(28)),
        name=f"mnist/{task}",
        kind="binary" if task == "even_odd" else "histogram",
        classes=2 if task == "even_odd" else 10,
        citation=CITATION,
        licence="CC BY-SA 3.0",
        official=official,
        note="" if official else "the files are not the official ones",
    )


def _even(digit: np.ndarray) -> np.ndarray:
    return (digit % 2 == 0).astype(np.float32)


def _digit(digit: np.ndarray) -> np.ndarray:
    return digit.astype(np.int32)


def read_idx(path: Path) -> np.ndarray:
    """The array of bytes in a gzip file of the idx format: two zeros, the type 8, the number of
    axes, their lengths."""
    try:
        raw = gzip.decompress(path.read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise broken(
            f"The file {path} must be a whole gzip file", f"{error}", "Delete it and get it again."
        ) from error
    axes = raw[3] if len(raw) > 4 and raw[:3] == b"\0\0\x08" else 0
    shape = (
        np.frombuffer(raw[4 : 4 + 4 * axes], ">u4") if len(raw) >= 4 + 4 * axes else np.array([])
    )
    if axes == 0 or len(raw) != 4 + 4 * axes + int(np.prod(shape, dtype=np.int64)):
        raise broken(
            f"The file {path} must be an idx file of bytes, as long as its head says",
            f"its head is {raw[:16].hex()} and its length {len(raw)}",
            "Delete it and get it again.",
        )
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * axes).reshape(shape)


def _part(images: Path, labels: Path, as_images: bool) -> tuple[np.ndarray, np.ndarray]:
    X, y = read_idx(images), read_idx(labels)
    if X.shape[1:] != (28, 28) or y.shape != X.shape[:1]:
        raise broken(
            "MNIST must have images of 28 by 28 and a label for each",
            f"{X.shape} came in {images} and {y.shape} in {labels}",
            "Get both files again.",
        )
    return X.reshape(len(X), *((28, 28, 1) if as_images else (784,))).astype(np.float32) / 255, y
