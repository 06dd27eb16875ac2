"""The hourly file of bike sharing in, weather and time out, and how many bikes were rented in the
hour.

The split is that of the Kaggle competition "Bike Sharing Demand": days 1 to 19 of each month train,
the others test.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

from unbag._rules import broken
from unbag.datasets._columns import one_hot, scaled, side_by_side
from unbag.datasets._dataset import Dataset
from unbag.datasets._files import Source, find

SOURCE = Source(
    "bike_sharing",
    "hour.csv",
    "https://archive.ics.uci.edu/static/public/275/bike+sharing+dataset.zip",
    "",
    "hour.csv",
)
CATEGORIES = ("season", "mnth", "hr", "weekday", "weathersit")
NUMBERS = ("yr", "holiday", "workingday", "temp", "atemp", "hum", "windspeed")
ROWS, RENTALS = 17_379, 3_292_679
TRAINING_DAYS = 19
CITATION = "Fanaee-T and Gama: Event labeling combining ensemble detectors and background knowledge, 2013 (UCI 275)"


def load_bike_sharing(*, folder: str | Path | None = None, download: bool = False) -> Dataset:
    """Bike sharing: 10,886 hours to train on and 6,493 to test on; the label is the number of
    rentals in the hour.

    Season, month, hour, day of the week and weather are one-hot; year, holiday, working day and the
    four measurements are scaled to [0, 1] by the training part. The date itself, the row's number
    and the two parts of the label (casual and registered rentals) are left out. No digest is
    official, because the file is about in more than one spelling of the dates; `official` means
    that the rows and the rentals are as many as were published.

    Parameters
    ----------
    folder, download : where the file lies, and whether it may be downloaded; see
        `unbag.datasets._files`.
    """
    path = find(SOURCE, folder=folder, download=download).path
    table = _read(path)
    train = _day(path, table["dteday"]) <= TRAINING_DAYS
    if train.all() or not train.any():
        raise broken(
            f"The file {path} must hold days before and after the 19th",
            "it does not",
            "Get the whole file.",
        )
    encoder = lambda column: one_hot if column in CATEGORIES else scaled
    columns = [encoder(c)(c, table[c][train], table[c][~train]) for c in (*CATEGORIES, *NUMBERS)]
    X, X_test, names = side_by_side(columns)
    y = table["cnt"].astype(np.float32)
    official = (len(y), table["cnt"].sum()) == (ROWS, RENTALS)
    return Dataset(
        X,
        y[train],
        X_test,
        y[~train],
        names,
        name="bike_sharing/rentals",
        kind="total",
        classes=0,
        citation=CITATION,
        licence="CC BY 4.0",
        official=official,
        note="" if official else f"{len(y):,} hours; the official file has {ROWS:,}",
    )


def _read(path: Path) -> dict[str, np.ndarray]:
    wanted = {"dteday": pa.string(), "cnt": pa.int64(), **dict.fromkeys(CATEGORIES, pa.int64())}
    wanted |= dict.fromkeys(NUMBERS, pa.float64())
    convert = csv.ConvertOptions(column_types=wanted, include_columns=list(wanted), null_values=[])
    try:
        table = csv.read_csv(path, convert_options=convert)
    except (pa.ArrowInvalid, KeyError) as error:
        raise broken(
            f"The file {path} must be the hourly CSV file with its header",
            f"{error}",
            "Delete it and get it again.",
        ) from error
    return {name: table[name].to_numpy() for name in wanted}


def _day(path: Path, dates: np.ndarray) -> np.ndarray:
    """The day of the month, from 2011-01-31 as published or from 31/01/11."""
    day = [date[8:] if date[4:5] == "-" else date[:2] for date in dates]
    if not all(d.isdigit() and 1 <= int(d) <= 31 for d in day):
        raise broken(
            f"A date in {path} must read 2011-01-31 or 31/01/11",
            f"{dates[0]} came first",
            "Get the file again.",
        )
    return np.array(day, int)
