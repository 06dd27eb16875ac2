"""Bike sharing: how many bikes were rented in an hour, by weather and time.

The split is that of the Kaggle competition "Bike Sharing Demand": days 1 to 19 of each month train,
the others test.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from unbag._rules import broken
from unbag.datasets._dataset import Dataset, encode_columns
from unbag.datasets._files import Source, damaged, find, read_columns

SOURCE = Source(
    "bike_sharing",
    "hour.csv",
    "https://archive.ics.uci.edu/static/public/275/bike+sharing+dataset.zip",
    member="hour.csv",
)
CATEGORIES = ("season", "mnth", "hr", "weekday", "weathersit")
NUMBERS = ("yr", "holiday", "workingday", "temp", "atemp", "hum", "windspeed")
ROWS, RENTALS = 17_379, 3_292_679
TRAINING_DAYS = 19
CITATION = (
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
    path = find(SOURCE, folder=folder, download=download).path
    table = _read(path)
    test = _day(path, table.pop("dteday")) > TRAINING_DAYS
    if test.all() or not test.any():
        rule = "hold days before and after the 19th"
        raise damaged(path, rule, "it does not", "Get the whole file.")
    count = table.pop("cnt")
    X, X_test, names = encode_columns(table, test, CATEGORIES)
    y, note = count.astype(np.float32), ""
    if (len(y), count.sum()) != (ROWS, RENTALS):
        note = f"{len(y):,} hours; the official file has {ROWS:,}"
    return Dataset(
        X, y[~test], X_test, y[test], names, "bike_sharing/rentals", kind="total", classes=0,
        citation=CITATION, licence="CC BY 4.0", official=not note, note=note,
    )  # fmt: skip


def _read(path: Path) -> dict[str, np.ndarray]:
    types = {"dteday": pa.string(), "cnt": pa.int64(), **dict.fromkeys(CATEGORIES, pa.int64())}
    types |= dict.fromkeys(NUMBERS, pa.float64())
    try:
        return read_columns(path, types)
    except (pa.ArrowInvalid, KeyError) as error:
        raise damaged(path, "be the hourly CSV file with its header", error) from error


def _day(path: Path, dates: np.ndarray) -> np.ndarray:
    """The day of the month, from 2011-01-31 as published or from 31/01/11."""
    days = []
    for date in dates:
        place = slice(8, None) if date[4:5] == "-" else slice(2)
        days.append(date[place])
    if not all(day.isdigit() and 1 <= int(day) <= 31 for day in days):
        raise broken(
            f"A date in {path} must read 2011-01-31 or 31/01/11",
            f"{dates[0]} was first",
            "Get the file again.",
        )
    return np.array(days, int)
