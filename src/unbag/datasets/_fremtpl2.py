"""The file of French motor claims in, drivers and cars out, with the number of claims and the log
of the exposure.

A policy tests when its number, times Knuth's 2654435761 and modulo 2^32, falls into the first
fifth: a split that does not depend on the order of the rows or on a random generator.
"""

from __future__ import annotations

import gzip
import re
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

from unbag._rules import broken
from unbag.datasets._columns import one_hot, scaled, side_by_side
from unbag.datasets._dataset import Dataset
from unbag.datasets._files import Found, Source, data_folder, find

SOURCE = Source(
    "fremtpl2",
    "freMTPL2freq.arff",
    "https://www.openml.org/data/v1/download/20649148/freMTPL2freq.arff",
    "a45363e056e2ea56408b38eeb9d4d04d7f6c6982eb7a14ed5e807c7c71807cdd",
)
TABLES = (
    "freMTPL2freq.csv.gz",
    "freMTPL2freq.csv",
)  # the same rows as CSV, read when the file above is not there
CATEGORIES = ("Area", "VehBrand", "VehGas", "Region")
CAPS = {"VehPower": np.inf, "VehAge": 20, "DrivAge": 90, "BonusMalus": 150, "Density": np.inf}
NUMBERS = ("IDpol", "ClaimNb", "Exposure", *CAPS)
ROWS, CLAIMS = 678_013, 36_102
MOST_CLAIMS, LONGEST_EXPOSURE = 4, 1.0
CITATION = "Dutang and Charpentier: CASdatasets, insurance datasets (freMTPL2freq); OpenML 41214"


def load_fremtpl2(
    *,
    capped: bool = True,
    folder: str | Path | None = None,
    download: bool = False,
    unofficial: bool = False,
) -> Dataset:
    """French motor claims: 678,013 policies, a fifth of them to test on; `offset` is the log of the
    exposure in years.

    Area, brand, fuel and region are one-hot; power, age of the car (at most 20) and of the driver
    (at most 90), bonus-malus (at most 150) and the log of the density are scaled to [0, 1] by the
    training part.

    Parameters
    ----------
    capped : take at most 4 claims and at most 1 year a policy, as is usual with these data: the few
        above are held for errors (Noll, Salzmann and Wuethrich, 2018).
    folder, download, unofficial : where the files lie, and what may be done; see
        `unbag.datasets._files`.
    """
    file = _file(folder, download, unofficial)
    table = _read(file.path)
    test = is_test(table["IDpol"])
    if test.all() or not test.any():
        raise broken(
            f"The file {file.path} must hold more policies",
            f"{len(test)} came",
            "Get the whole file.",
        )
    X, X_test, names = _features(table, test)
    y = np.minimum(table["ClaimNb"], MOST_CLAIMS if capped else np.inf).astype(np.float32)
    exposure = np.minimum(table["Exposure"], LONGEST_EXPOSURE if capped else np.inf)
    offset = np.log(exposure).astype(np.float32)
    official = file.official or (len(y), table["ClaimNb"].sum()) == (ROWS, CLAIMS)
    return Dataset(
        X,
        y[~test],
        X_test,
        y[test],
        names,
        name="fremtpl2/claims",
        kind="total",
        classes=0,
        offset=offset[~test],
        offset_test=offset[test],
        citation=CITATION,
        licence="GPL-2 or later (CASdatasets)",
        official=official,
        note="" if official else f"{len(y):,} policies; the official file has {ROWS:,}",
    )


def is_test(policy: np.ndarray) -> np.ndarray:
    """Whether a policy is for testing, by its number alone.

    >>> is_test(np.array([1, 3, 5, 10])).tolist()
    [False, False, True, True]
    """
    return (policy.astype(np.uint64) * np.uint64(2654435761)) % np.uint64(2**32) < 2**32 / 5


def _features(
    table: dict[str, np.ndarray], test: np.ndarray
) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    numbers = {name: np.minimum(table[name], cap) for name, cap in CAPS.items()}
    numbers["log Density"] = np.log(numbers.pop("Density"))
    columns = [scaled(name, x[~test], x[test]) for name, x in numbers.items()]
    return side_by_side(
        columns + [one_hot(name, table[name][~test], table[name][test]) for name in CATEGORIES]
    )


def _file(folder: str | Path | None, download: bool, unofficial: bool) -> Found:
    place = data_folder(folder) / SOURCE.folder
    tables = [place / name for name in TABLES if (place / name).exists()]
    if tables and not (place / SOURCE.name).exists():
        return Found(tables[0], False)
    return find(SOURCE, folder=folder, download=download, unofficial=unofficial)


def _read(path: Path) -> dict[str, np.ndarray]:
    """The columns of the ARFF file or of the CSV file; both quote with '."""
    try:
        raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        table = _parse(raw, arff=path.suffix == ".arff")
    except (OSError, EOFError, zlib.error, ValueError, KeyError) as error:
        raise broken(
            f"The file {path} must be the whole table of policies with its header",
            f"{error}",
            "Delete it and get it again.",
        ) from error
    bad = ~((table["Exposure"] > 0) & (table["ClaimNb"] >= 0) & (table["Density"] > 0))
    if bad.any():
        raise broken(
            f"A policy in {path} must have a positive exposure and density, and no claims below 0",
            f"policy {int(table['IDpol'][bad][0])} has others",
            "Get the file again.",
        )
    return table


def _parse(raw: bytes, *, arff: bool) -> dict[str, np.ndarray]:
    names = None
    if arff:
        head, raw = re.split(rb"(?im)^@data\s*\n", raw, maxsplit=1)
        lines = [line.split() for line in head.decode("ascii").splitlines()]
        names = [line[1].strip("'\"") for line in lines if line and line[0].lower() == "@attribute"]
    types = dict.fromkeys(NUMBERS, pa.float64()) | dict.fromkeys(CATEGORIES, pa.string())
    table = csv.read_csv(
        pa.BufferReader(raw),
        csv.ReadOptions(column_names=names),
        csv.ParseOptions(quote_char="'"),
        csv.ConvertOptions(column_types=types, include_columns=list(types), null_values=[]),
    )
    return {name: table[name].to_numpy() for name in types}
