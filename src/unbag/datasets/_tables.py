"""Tables: Adult, shipped with unbag, and published ones that lie in the data folder.

- Adult: does a person earn over $50,000 a year? Prepared as in the paper. Source, licence
  (CC BY 4.0) and citation: `files/LICENCE-adult.md`.
- Bike sharing: how many bikes were rented in an hour, by weather and time. The split is that of the
  Kaggle competition "Bike Sharing Demand": days 1 to 19 of each month train, the others test.
- French motor claims: drivers and cars, the number of claims, and the log of the exposure. A policy
  tests when its number, times Knuth's 2654435761 and modulo 2^32, falls into the first fifth: a
  split that does not depend on the order of the rows or on a random generator.
- Higgs: simulated collisions; was a Higgs boson made? The paper says that "each example has 21
  features which are a mix of directly measured properties of the system and hand-crafted high level
  features". The published data have 28: 21 measured ones, then 7 made from them by hand. The number
  fits the measured ones, the words fit all; we follow the number, and `high_level=True` gives all.
"""

from __future__ import annotations

import gzip
import hashlib
import lzma
import re
import zlib
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from pyarrow import csv

from unbag._rules import broken
from unbag.datasets._dataset import Dataset, encode_columns
from unbag.datasets._files import Source, damaged, find, read_columns

ADULT_COLUMNS = (
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation",
    "relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week",
    "native-country",
)  # fmt: skip
ADULT_NUMBERS = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
ADULT_SHA256 = {
    "data": "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    "test": "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
}
ADULT_CITATION = "Becker and Kohavi: Adult, UCI Machine Learning Repository, 1996"


def load_adult() -> Dataset:
    """Adult: 32,561 rows to train on and 16,281 to test on; label 1 means an income over $50,000.

    Categories are one-hot ("?" is a category of its own); numbers are scaled to [0, 1] by the range
    of the training part, so test values may fall a little outside.

    >>> adult = load_adult()
    >>> adult.X.shape, adult.X_test.shape, round(float(adult.y.mean()), 4)
    ((32561, 108), (16281, 108), 0.2408)
    """
    (train, y), (test, y_test) = read_adult("data"), read_adult("test")
    table = {name: np.concatenate([train[name], test[name]]) for name in ADULT_COLUMNS}
    is_test = np.arange(len(y) + len(y_test)) >= len(y)
    X, X_test, names = encode_columns(table, is_test, set(ADULT_COLUMNS) - set(ADULT_NUMBERS))
    about: dict[str, Any] = {
        "name": "adult/income",
        "citation": ADULT_CITATION,
        "licence": "CC BY 4.0",
    }
    return Dataset(X, y, X_test, y_test, names, **about)


def read_adult(part: Literal["data", "test"] = "data") -> tuple[dict[str, np.ndarray], np.ndarray]:
    """The people as they stand in the files, column by column, and who earns over $50,000.

    >>> people, rich = read_adult()
    >>> people["age"][:3].tolist(), people["workclass"][0].item(), int(rich.sum())
    ([39.0, 50.0, 38.0], 'State-gov', 7841)
    """
    packed = files("unbag.datasets").joinpath("files", f"adult.{part}.xz").read_bytes()
    text = lzma.decompress(packed)
    if hashlib.sha256(text).hexdigest() != ADULT_SHA256[part]:
        rule = f"The shipped file adult.{part} must have sha256 {ADULT_SHA256[part]}"
        raise broken(rule, "another given", "Install unbag again.")
    kinds = dict.fromkeys((*ADULT_COLUMNS, "income"), pa.string()) | dict.fromkeys(
        ADULT_NUMBERS, pa.float64()
    )
    table = csv.read_csv(
        BytesIO(text.replace(b", ", b",")),
        read_options=csv.ReadOptions(column_names=list(kinds)),
        # the first line of the test part is no person
        parse_options=csv.ParseOptions(invalid_row_handler=lambda row: "skip"),
        convert_options=csv.ConvertOptions(column_types=kinds),
    )
    people = {name: _values(table[name]) for name in ADULT_COLUMNS}
    income = _values(table["income"]).astype(str)  # the test part ends it with a point
    return people, np.char.startswith(income, ">50K").astype(np.float32)


def _values(column: Any) -> np.ndarray:
    """A column as NumPy has it; text by its few different values, which is many times faster."""
    if not pa.types.is_string(column.type):
        return column.to_numpy()
    coded = column.combine_chunks().dictionary_encode()
    return np.array(coded.dictionary.to_pylist())[coded.indices.to_numpy()]


BIKES_SOURCE = Source(
    "bike_sharing",
    "hour.csv",
    "https://archive.ics.uci.edu/static/public/275/bike+sharing+dataset.zip",
    member="hour.csv",
)
BIKES_CATEGORIES = ("season", "mnth", "hr", "weekday", "weathersit")
BIKES_NUMBERS = ("yr", "holiday", "workingday", "temp", "atemp", "hum", "windspeed")
BIKES_ROWS, BIKES_RENTALS = 17_379, 3_292_679
TRAINING_DAYS = 19
BIKES_CITATION = (
    "Fanaee-T and Gama: Event labeling combining ensemble detectors and background knowledge, "
    "2013 (UCI 275)"
)


def load_bike_sharing(*, folder: str | Path | None = None, download: bool = False) -> Dataset:
    """Bike sharing: 10,886 hours to train on and 6,493 to test on; labels are counts of rentals.

    Season, month, hour, day of the week and weather are one-hot; year, holiday, working day and the
    four measurements are scaled to [0, 1] by the training part. The date itself, the row's number
    and the two parts of the label (casual and registered rentals) are left out. No digest is
    official, because the file is about in more than one spelling of the dates; `official` means
    that the rows and the rentals are as many as were published.

    Parameters
    ----------
    folder : str or Path, optional
        The data folder; see `data_folder`.
    download : bool
        Fetch the file when it is not there.
    """
    path = find(BIKES_SOURCE, folder=folder, download=download).path
    types = {"dteday": pa.string(), "cnt": pa.int64()}
    types |= dict.fromkeys(BIKES_CATEGORIES, pa.int64()) | dict.fromkeys(
        BIKES_NUMBERS, pa.float64()
    )
    try:
        table = read_columns(path, types)
    except (pa.ArrowInvalid, KeyError) as error:
        raise damaged(path, "be the hourly CSV file with its header", error) from error
    dates = table.pop("dteday")  # 2011-01-31 as published, or 31/01/11
    days = [date[8:] if date[4:5] == "-" else date[:2] for date in dates]
    if not all(day.isdigit() and 1 <= int(day) <= 31 for day in days):
        rule = f"A date in {path} must read 2011-01-31 or 31/01/11"
        raise broken(rule, f"{dates[0]} was first", "Get the file again.")
    test = np.array(days, int) > TRAINING_DAYS
    if test.all() or not test.any():
        rule = "hold days before and after the 19th"
        raise damaged(path, rule, "it does not", "Get the whole file.")
    count = table.pop("cnt")
    X, X_test, names = encode_columns(table, test, BIKES_CATEGORIES)
    y, note = count.astype(np.float32), ""
    if (len(y), count.sum()) != (BIKES_ROWS, BIKES_RENTALS):
        note = f"{len(y):,} hours; the official file has {BIKES_ROWS:,}"
    return Dataset(
        X, y[~test], X_test, y[test], names, "bike_sharing/rentals", kind="total", classes=0,
        citation=BIKES_CITATION, licence="CC BY 4.0", official=not note, note=note,
    )  # fmt: skip


MOTOR_SOURCE = Source(
    "fremtpl2",
    "freMTPL2freq.arff",
    "https://www.openml.org/data/v1/download/20649148/freMTPL2freq.arff",
    "a45363e056e2ea56408b38eeb9d4d04d7f6c6982eb7a14ed5e807c7c71807cdd",
)
# The same rows as CSV, read when the file above is not there.
MOTOR_TABLES = "freMTPL2freq.csv*"
MOTOR_CATEGORIES = ("Area", "VehBrand", "VehGas", "Region")
CAPS = {"VehPower": np.inf, "VehAge": 20, "DrivAge": 90, "BonusMalus": 150, "Density": np.inf}
MOTOR_NUMBERS = ("IDpol", "ClaimNb", "Exposure", *CAPS)
MOTOR_ROWS, MOTOR_CLAIMS = 678_013, 36_102
MOST_CLAIMS, LONGEST_EXPOSURE = 4, 1.0
MOTOR_CITATION = (
    "Dutang and Charpentier: CASdatasets, insurance datasets (freMTPL2freq); OpenML 41214"
)


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
    file = find(MOTOR_SOURCE, **options, others=MOTOR_TABLES)
    table = _read_policies(file.path)
    test = is_test(table["IDpol"])
    if test.all() or not test.any():
        raise damaged(file.path, "hold more policies", f"{len(test)} given", "Get the whole file.")
    claims, exposure, note = table["ClaimNb"], table["Exposure"], ""
    if not file.official and (len(claims), claims.sum()) != (MOTOR_ROWS, MOTOR_CLAIMS):
        note = f"{len(claims):,} policies; the official file has {MOTOR_ROWS:,}"
    if capped:
        claims, exposure = np.minimum(claims, MOST_CLAIMS), np.minimum(exposure, LONGEST_EXPOSURE)
    y, offset = claims.astype(np.float32), np.log(exposure).astype(np.float32)
    features = {name: np.minimum(table[name], cap) for name, cap in CAPS.items()}
    features["log Density"] = np.log(features.pop("Density"))
    features |= {name: table[name] for name in MOTOR_CATEGORIES}
    X, X_test, names = encode_columns(features, test, MOTOR_CATEGORIES)
    return Dataset(
        X, y[~test], X_test, y[test], names, "fremtpl2/claims", kind="total", classes=0,
        offset=offset[~test], offset_test=offset[test], citation=MOTOR_CITATION,
        licence="GPL-2 or later (CASdatasets)", official=not note, note=note,
    )  # fmt: skip


def _read_policies(path: Path) -> dict[str, np.ndarray]:
    """The columns of the ARFF file or of the CSV file; both quote with '."""
    types: dict[str, Any] = dict.fromkeys(MOTOR_NUMBERS, pa.float64())
    types |= dict.fromkeys(MOTOR_CATEGORIES, pa.string())
    try:
        raw, names = path.read_bytes(), None
        if path.suffix == ".gz":
            raw = gzip.decompress(raw)
        if path.suffix == ".arff":
            head, raw = re.split(rb"(?im)^@data\s*\n", raw, maxsplit=1)
            lines = [line.split() for line in head.decode("ascii").splitlines() if line.split()]
            names = [x[1].strip("'\"") for x in lines if x[0].lower() == "@attribute"]
        table = read_columns(pa.BufferReader(raw), types, names=names, quote="'")
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


def is_test(policy: np.ndarray) -> np.ndarray:
    """Whether a policy is for testing, by its number alone.

    >>> is_test(np.array([1, 3, 5, 10])).tolist()
    [False, False, True, True]
    """
    return (policy.astype(np.uint64) * np.uint64(2654435761)) % np.uint64(2**32) < 2**32 / 5


LOW_LEVEL = (
    "lepton_pT", "lepton_eta", "lepton_phi", "missing_energy_magnitude", "missing_energy_phi",
    *(f"jet_{i}_{what}" for i in (1, 2, 3, 4) for what in ("pt", "eta", "phi", "btag")),
)  # fmt: skip
HIGH_LEVEL = ("m_jj", "m_jjj", "m_lv", "m_jlv", "m_bb", "m_wbb", "m_wwbb")
HIGGS_ROWS, HIGGS_TEST_ROWS = 11_000_000, 10_000
HIGGS_SOURCE = Source(
    "higgs",
    "HIGGS.csv.gz",
    "https://archive.ics.uci.edu/ml/machine-learning-databases/00280/HIGGS.csv.gz",
    "ea302c18164d4e3d916a1e2e83a9a8d07069fa6ebc7771e4c0540d54e593b698",
)
HIGGS_CITATION = (
    "Baldi, Sadowski and Whiteson: Searching for exotic particles in high-energy physics, 2014 "
    "(UCI HIGGS)"
)


def load_higgs(
    *,
    high_level: bool = False,
    test_rows: int = HIGGS_TEST_ROWS,
    folder: str | Path | None = None,
    download: bool = False,
    unofficial: bool = False,
) -> Dataset:
    """Higgs: the first 10,000 rows to test on, as in the paper, the others to train on.

    The label 1 means signal. The published file has 11,000,000 rows (2.6 GB). Where it is not
    there, another file `higgs/HIGGS*.csv.gz` of the same form is read; `note` then says which and
    how many rows it has, and `official` is False. The numbers stay as they were published.

    Parameters
    ----------
    high_level : bool
        Also give the 7 features made by hand, after the 21 measured ones.
    test_rows : int
        How many of the first rows are for testing.
    folder : str or Path, optional
        The data folder; see `data_folder`.
    download : bool
        Fetch the file when it is not there.
    unofficial : bool
        Take a file with another digest too.
    """
    name, features, every = "higgs/low_level", LOW_LEVEL, LOW_LEVEL + HIGH_LEVEL
    if high_level:
        name, features = "higgs/all", every
    options: Any = {"folder": folder, "download": download, "unofficial": unofficial}
    file = find(HIGGS_SOURCE, **options, others="HIGGS*.csv.gz")
    types = dict.fromkeys(["label", *features], pa.float32())
    try:
        y, *columns = read_columns(file.path, types, names=["label", *every]).values()
    except (OSError, pa.ArrowInvalid) as error:
        rule = "be a whole gzip file of a label and 28 numbers in each row"
        raise damaged(file.path, rule, error) from error
    X = np.column_stack(columns)
    if not (np.isin(y, (0, 1)).all() and np.isfinite(X).all()):
        rule = f"A label in {file.path} must be 0 or 1 and a feature finite"
        raise broken(rule, "there are others", "Delete it and get it again.")
    if not 0 < test_rows < len(y):
        rule = "The first rows are for testing and must leave some to train on"
        raise broken(rule, f"{test_rows} of {len(y)} given", "Lower test_rows.")
    notes = []
    if not file.official:
        notes.append(f"{len(y):,} rows from {file.path.name}; the official file has {HIGGS_ROWS:,}")
    if test_rows != HIGGS_TEST_ROWS:
        notes.append(f"{test_rows:,} rows to test on; the paper takes {HIGGS_TEST_ROWS:,}")
    train, test = slice(test_rows, None), slice(test_rows)
    return Dataset(
        X[train], y[train], X[test], y[test], features, name, citation=HIGGS_CITATION,
        licence="CC BY 4.0", official=not notes, note=", ".join(notes),
    )  # fmt: skip
