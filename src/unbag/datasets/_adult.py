"""Adult, shipped with unbag and prepared as in the paper: does a person earn over $50,000 a year?

Source, licence (CC BY 4.0) and citation: `files/LICENCE-adult.md`.
"""

from __future__ import annotations

import hashlib
import lzma
from importlib.resources import files
from io import BytesIO
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from pyarrow import csv

from unbag._rules import broken
from unbag.datasets._dataset import Dataset, encode_columns

COLUMNS = (
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation",
    "relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week",
    "native-country",
)  # fmt: skip
NUMBERS = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
SHA256 = {
    "data": "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    "test": "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
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
    (train, y), (test, y_test) = read_adult("data"), read_adult("test")
    table = {name: np.concatenate([train[name], test[name]]) for name in COLUMNS}
    is_test = np.arange(len(y) + len(y_test)) >= len(y)
    X, X_test, names = encode_columns(table, is_test, set(COLUMNS) - set(NUMBERS))
    about: dict[str, Any] = {"name": "adult/income", "citation": CITATION, "licence": "CC BY 4.0"}
    return Dataset(X, y, X_test, y_test, names, **about)


def read_adult(part: Literal["data", "test"] = "data") -> tuple[dict[str, np.ndarray], np.ndarray]:
    """The people as they stand in the files, column by column, and who earns over $50,000.

    >>> people, rich = read_adult()
    >>> people["age"][:3].tolist(), people["workclass"][0].item(), int(rich.sum())
    ([39.0, 50.0, 38.0], 'State-gov', 7841)
    """
    packed = files("unbag.datasets").joinpath("files", f"adult.{part}.xz").read_bytes()
    text = lzma.decompress(packed)
    if hashlib.sha256(text).hexdigest() != SHA256[part]:
        raise broken(
            f"The shipped file adult.{part} must have sha256 {SHA256[part]}",
            "another given",
            "Install unbag again.",
        )
    kinds = dict.fromkeys((*COLUMNS, "income"), pa.string()) | dict.fromkeys(NUMBERS, pa.float64())
    table = csv.read_csv(
        BytesIO(text.replace(b", ", b",")),
        read_options=csv.ReadOptions(column_names=list(kinds)),
        # the first line of the test part is no person
        parse_options=csv.ParseOptions(invalid_row_handler=lambda row: "skip"),
        convert_options=csv.ConvertOptions(column_types=kinds),
    )
    people = {name: _values(table[name]) for name in COLUMNS}
    income = _values(table["income"]).astype(str)  # the test part ends it with a point
    return people, np.char.startswith(income, ">50K").astype(np.float32)


def _values(column: Any) -> np.ndarray:
    """A column as NumPy has it; text by its few different values, which is many times faster."""
    if not pa.types.is_string(column.type):
        return column.to_numpy()
    coded = column.combine_chunks().dictionary_encode()
    return np.array(coded.dictionary.to_pylist())[coded.indices.to_numpy()]
