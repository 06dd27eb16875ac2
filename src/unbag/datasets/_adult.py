"""The shipped census files in, Adult as the paper prepares it out: does a person earn over $50,000
a year?

Source, licence (CC BY 4.0) and citation: `files/LICENCE-adult.md`.
"""

from __future__ import annotations

import hashlib
import lzma
from importlib.resources import files

import numpy as np

from unbag._rules import broken
from unbag.datasets._columns import one_hot, scaled, side_by_side
from unbag.datasets._dataset import Dataset

COLUMNS = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
)
NUMBERS = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
SHA256 = {
    "adult.data": "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    "adult.test": "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
}
CITATION = "Becker and Kohavi: Adult, UCI Machine Learning Repository, 1996"


def load_adult() -> Dataset:
    """Adult: 32,561 rows to train on and 16,281 to test on; label 1 means an income over $50,000.

    Categories are one-hot ("?" is a category of its own); numbers are scaled to [0, 1] by the range
    of the training part, so test values may fall a little outside.

    >>> adult = load_adult()
    >>> adult.X.shape, adult.X_test.shape, round(float(adult.y.mean()), 4)
    ((32561, 108), (16281, 108), 0.2408)
    """
    train, test = _read("adult.data"), _read("adult.test")
    encoder = lambda column: scaled if column in NUMBERS else one_hot
    X, X_test, names = side_by_side(
        [encoder(c)(c, train[:, i], test[:, i]) for i, c in enumerate(COLUMNS)]
    )
    return Dataset(
        X,
        _label(train),
        X_test,
        _label(test),
        names,
        name="adult/income",
        citation=CITATION,
        licence="CC BY 4.0",
    )


def read_adult(part: str = "data") -> tuple[dict[str, np.ndarray], np.ndarray]:
    """The people as they stand in the files, column by column, and who earns over $50,000: part
    "data" or "test".

    >>> people, rich = read_adult()
    >>> people["age"][:3].tolist(), people["workclass"][0].item(), int(rich.sum())
    ([39.0, 50.0, 38.0], 'State-gov', 7841)
    """
    table = _read(f"adult.{part}")
    column = lambda i, name: table[:, i].astype(float) if name in NUMBERS else table[:, i]
    return {name: column(i, name) for i, name in enumerate(COLUMNS)}, _label(table)


def _read(name: str) -> np.ndarray:
    packed = files("unbag.datasets").joinpath("files", f"{name}.xz").read_bytes()
    text = lzma.decompress(packed)
    if hashlib.sha256(text).hexdigest() != SHA256[name]:
        raise broken(
            f"The shipped file {name} must have sha256 {SHA256[name]}",
            "another came",
            "Install unbag again.",
        )
    rows = [
        line.split(", ")
        for line in text.decode("ascii").splitlines()
        if line.count(", ") == len(COLUMNS)
    ]
    return np.array(rows)


def _label(table: np.ndarray) -> np.ndarray:
    return np.char.startswith(table[:, -1], ">50K").astype(np.float32)
