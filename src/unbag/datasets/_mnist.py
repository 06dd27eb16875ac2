"""MNIST from its idx files: even against odd as in the paper, or all ten digits."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from unbag._rules import broken, one_of
from unbag.datasets._dataset import Dataset
from unbag.datasets._files import Source, damaged, find

Task = Literal["even_odd", "digits"]
# yann.lecun.com, the first address, refuses downloads by now
URL = "https://ossci-datasets.s3.amazonaws.com/mnist/"
SHA256 = {  # of NAME-ubyte.gz
    "train-images-idx3": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    "train-labels-idx1": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    "t10k-images-idx3": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    "t10k-labels-idx1": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
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
    one_of("A task of MNIST", task, get_args(Task))
    sources = [
        Source("mnist", f"{name}-ubyte.gz", f"{URL}{name}-ubyte.gz", sha256)
        for name, sha256 in SHA256.items()
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
    about |= {"name": f"mnist/{task}", "citation": CITATION, "licence": "CC BY-SA 3.0"}
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
        raise broken(
            "MNIST must have images of 28 by 28 and a label for each",
            f"{X.shape} given in {images} and {y.shape} in {labels}",
            "Get both files again.",
        )
    return X.astype(np.float32) / 255, y.astype(np.int32)
