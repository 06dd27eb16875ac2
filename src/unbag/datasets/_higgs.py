"""Higgs: simulated collisions; was a Higgs boson made?

The paper says that "each example has 21 features which are a mix of directly measured properties of
the system and hand-crafted high level features". The published data have 28: 21 measured ones, then
7 made from them by hand. The number fits the measured ones, the words fit all; we follow the
number, and `high_level=True` gives all 28.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from unbag._rules import broken
from unbag.datasets._dataset import Dataset
from unbag.datasets._files import Source, damaged, find, read_columns

LOW_LEVEL = (
    "lepton_pT", "lepton_eta", "lepton_phi", "missing_energy_magnitude", "missing_energy_phi",
    *(f"jet_{i}_{what}" for i in (1, 2, 3, 4) for what in ("pt", "eta", "phi", "btag")),
)  # fmt: skip
HIGH_LEVEL = ("m_jj", "m_jjj", "m_lv", "m_jlv", "m_bb", "m_wbb", "m_wwbb")
ROWS, TEST_ROWS = 11_000_000, 10_000
SOURCE = Source(
    "higgs",
    "HIGGS.csv.gz",
    "https://archive.ics.uci.edu/ml/machine-learning-databases/00280/HIGGS.csv.gz",
    "ea302c18164d4e3d916a1e2e83a9a8d07069fa6ebc7771e4c0540d54e593b698",
)
CITATION = (
    "Baldi, Sadowski and Whiteson: Searching for exotic particles in high-energy physics, 2014 "
    "(UCI HIGGS)"
)


def load_higgs(
    *,
    high_level: bool = False,
    test_rows: int = TEST_ROWS,
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
    name, features = "higgs/low_level", LOW_LEVEL
    if high_level:
        name, features = "higgs/all", LOW_LEVEL + HIGH_LEVEL
    options: Any = {"folder": folder, "download": download, "unofficial": unofficial}
    file = find(SOURCE, **options, others="HIGGS*.csv.gz")
    y, X = _read(file.path, features)
    if not 0 < test_rows < len(y):
        raise broken(
            "The first rows are for testing and must leave some to train on",
            f"{test_rows} of {len(y)} given",
            "Lower test_rows.",
        )
    notes = []
    if not file.official:
        notes.append(f"{len(y):,} rows from {file.path.name}; the official file has {ROWS:,}")
    if test_rows != TEST_ROWS:
        notes.append(f"{test_rows:,} rows to test on; the paper takes {TEST_ROWS:,}")
    train, test = slice(test_rows, None), slice(test_rows)
    return Dataset(
        X[train], y[train], X[test], y[test], features, name, citation=CITATION,
        licence="CC BY 4.0", official=not notes, note=", ".join(notes),
    )  # fmt: skip


def _read(path: Path, features: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    types, names = dict.fromkeys(["label", *features], pa.float32()), LOW_LEVEL + HIGH_LEVEL
    try:
        y, *columns = read_columns(path, types, names=["label", *names]).values()
    except (OSError, pa.ArrowInvalid) as error:
        rule = "be a whole gzip file of a label and 28 numbers in each row"
        raise damaged(path, rule, error) from error
    X = np.column_stack(columns)
    if not (np.isin(y, (0, 1)).all() and np.isfinite(X).all()):
        raise broken(
            f"A label in {path} must be 0 or 1 and a feature finite",
            "there are others",
            "Delete it and get it again.",
        )
    return y, X
