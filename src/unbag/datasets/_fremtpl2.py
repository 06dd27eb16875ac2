"""French motor claims: drivers and cars, the number of claims, and the log of the exposure.

A policy tests when its number, times Knuth's 2654435761 and modulo 2^32, falls into the first
fifth: a split that does not depend on the order of the rows or on a random generator.
"""

from __future__ import annotations

import gzip
import re
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from unbag._rules import broken
from unbag.datasets._dataset import Dataset, encode_columns
from unbag.datasets._files import Source, damaged, find, read_columns

SOURCE = Source(
    "fremtpl2",
    "freMTPL2freq.arff",
    "https://www.openml.org/data/v1/download/20649148/freMTPL2freq.arff",
    "a45363e056e2ea56408b38eeb9d4d04d7f6c6982eb7a14ed5e807c7c71807cdd",
)
# The same rows as CSV, read when the file above is not there.
TABLES = "freMTPL2freq.csv*"
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
    """French motor claims: 678,013 policies, a fifth of them to test on.

    The label is the number of claims, and `offset` the log of the exposure in years. Area, brand,
    fuel and region are one-hot; power, age of the car (at most 20) and of the driver (at most 90),
    bonus-malus (at most 150) and the log of the density are scaled to [0, 1] by the training part.

    Parameters
    ----------
    capped : bool
        Take at most 4 claims and at most 1 year a policy, as is usual with these data: the few
        above are held for errors (Noll, Salzmann and Wuethrich, 2018).
    folder : str or Path, optional
        The data folder; see `data_folder`.
    download : bool
        Fetch the file when it is not there.
    unofficial : bool
        Take a file with another digest too.
    """
    options: Any = {"folder": folder, "download": download, "unofficial": unofficial}
    file = find(SOURCE, **options, others=TABLES)
    table = _read(file.path)
    test = is_test(table["IDpol"])
    if test.all() or not test.any():
        raise damaged(file.path, "hold more policies", f"{len(test)} given", "Get the whole file.")
    claims, exposure = table["ClaimNb"], table["Exposure"]
    note = ""
    if not file.official and (len(claims), claims.sum()) != (ROWS, CLAIMS):
        note = f"{len(claims):,} policies; the official file has {ROWS:,}"
    if capped:
        claims, exposure = np.minimum(claims, MOST_CLAIMS), np.minimum(exposure, LONGEST_EXPOSURE)
    y, offset = claims.astype(np.float32), np.log(exposure).astype(np.float32)
    X, X_test, names = encode_columns(_features(table), test, CATEGORIES)
    return Dataset(
        X, y[~test], X_test, y[test], names, "fremtpl2/claims", kind="total", classes=0,
        offset=offset[~test], offset_test=offset[test], citation=CITATION,
        licence="GPL-2 or later (CASdatasets)", official=not note, note=note,
    )  # fmt: skip


def is_test(policy: np.ndarray) -> np.ndarray:
    """Whether a policy is for testing, by its number alone.

    >>> is_test(np.array([1, 3, 5, 10])).tolist()
    [False, False, True, True]
    """
    return (policy.astype(np.uint64) * np.uint64(2654435761)) % np.uint64(2**32) < 2**32 / 5


def _features(table: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    features = {name: np.minimum(table[name], cap) for name, cap in CAPS.items()}
    features["log Density"] = np.log(features.pop("Density"))
    return features | {name: table[name] for name in CATEGORIES}


def _read(path: Path) -> dict[str, np.ndarray]:
    """The columns of the ARFF file or of the CSV file; both quote with '."""
    try:
        raw = path.read_bytes()
        if path.suffix == ".gz":
            raw = gzip.decompress(raw)
        table = _parse(raw, arff=path.suffix == ".arff")
    except (OSError, EOFError, zlib.error, ValueError, KeyError) as error:
        rule = "be the whole table of policies with its header"
        raise damaged(path, rule, error) from error
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
    return read_columns(pa.BufferReader(raw), types, names=names, quote="'")
