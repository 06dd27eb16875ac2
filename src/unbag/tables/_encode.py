"""One column of a plan, and its features: numbers, bucket numbers, or codes of levels."""

# pyright: reportAttributeAccessIssue=false
# (the functions of pyarrow.compute are made when it is imported)

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unbag._rules import broken
from unbag.bags import stable_hash
from unbag.tables._values import (
    SECOND,
    as_codes,
    as_moments,
    as_numbers,
    as_text,
    is_known,
    is_number,
    plain,
)

FeatureKind = Literal["numeric", "category", "hash", "date", "boolean", "drop"]
MOST_BUCKETS = 2**24  # single precision holds whole numbers up to here exactly
DAY = 86_400 * SECOND
SHOWN = 4  # of the values of a category, in words
PERIODS = {"hour": DAY, "weekday": 7 * DAY, "season": 365.2425 * DAY}


@dataclass(frozen=True)
class Column:
    """How one column becomes features.

    Parameters
    ----------
    name : str
        Of the column.
    kind : str
        numeric (scaled), category (one-hot), hash (a bucket number for an embedding), date (parts),
        boolean or drop.
    mean, sd : float
        Of a numeric column.
    missing : bool
        Whether values were missing, so that there is an indicator of it.
    values : tuple of str
        Of a category.
    parts : tuple of str
        Of a date: hour, weekday and season.
    buckets, dimension : int
        Of a hash, and of its embedding.
    why : str
        Why a column was dropped.
    """

    name: str
    kind: FeatureKind
    mean: float = 0.0
    sd: float = 1.0
    missing: bool = False
    values: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    buckets: int = 0
    dimension: int = 0
    why: str = ""

    @property
    def reading(self) -> str:
        """How the column is read, or why it is not, in a few words.

        >>> Column("device", "category", values=("desk", "phone"), missing=True).reading
        'one of 2 values: desk, phone; some are missing'
        """
        shown = ", ".join(self.values[:SHOWN]) + ", ..." * (len(self.values) > SHOWN)
        words = {
            "numeric": f"a number, of mean {self.mean:.4g} and standard deviation {self.sd:.4g}",
            "category": f"one of {len(self.values)} values: {shown}",
            "hash": f"one of many values; a network hashes them into {self.buckets:,} buckets",
            "date": f"a time: its {', '.join(self.parts)} and trend, in UTC",
            "boolean": "true or false",
            "drop": f"left out: {self.why}",
        }[self.kind]
        return words + "; some are missing" * self.missing


def encode(column: Column, values: Any) -> np.ndarray:
    """The features of a column: numbers in single precision of which each has a weight, with an
    indicator of missing ones; or for a hash its bucket numbers.

    >>> encode(Column("age", "numeric", mean=30, sd=10, missing=True), pa.array([40, None]))
    array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    if column.kind == "date":
        features, gap = _waves(column, values)
    else:
        (x,) = narrow(column, values).values()
        if column.kind == "hash":
            return x[:, None].astype(np.float32)
        if column.kind == "numeric":
            gap = np.isnan(x)
            features = np.where(gap, 0.0, (x - column.mean) / column.sd)[:, None]
        elif column.kind == "boolean":
            features, gap = (x == 1)[:, None], x == 2
        else:
            levels = len(column.values)
            features, gap = x[:, None] == np.arange(levels), x == levels
    if column.missing:
        features = np.column_stack([features, gap])
    return features.astype(np.float32)


def narrow(column: Column, values: Any) -> dict[str, np.ndarray]:
    """The column as it is, one array for each thing that it tells: numbers, or codes of levels.

    A learner that gives each level its own coefficient, or splits on levels, needs no wide matrix.

    Parameters
    ----------
    column : Column
        What the plan says of it.
    values : pyarrow.Array or pyarrow.ChunkedArray
        Its values.

    Returns
    -------
    dict of str to numpy.ndarray
        Numbers (float64, NaN where one is missing), or codes (int64): of a category the place of
        the value, then one code for missing, and -1 for a value that the plan does not know; of a
        boolean 0, 1 and 2 for missing; of a hash its bucket, 0 for missing. A date tells its hour,
        weekday and month as codes (the last code for missing), and its trend in days as a number.

    >>> device = Column("device", "category", values=("phone", "tablet"))
    >>> narrow(device, pa.array(["tablet", "tv", None]))
    {'device': array([ 1, -1,  2])}
    """
    name = column.name
    if column.kind == "date":
        return _date_parts(column, values)
    if column.kind == "hash":
        return {name: buckets_of(values, column=name, buckets=column.buckets)}
    if column.kind == "category":
        return {name: _category_codes(column, values)}
    if column.kind == "boolean":
        return {name: _boolean_codes(column, values)}
    x = as_numbers(values, name=name)
    return {name: np.where(is_known(x), x, np.nan)}


def as_read(column: Column, values: Any) -> Any:
    """The column as its kind says: text for levels, numbers, moments, or as it is.

    Parameters
    ----------
    column : Column
        What the plan says of it.
    values : pyarrow.Array or pyarrow.ChunkedArray
        Its values.
    """
    if column.kind in ("category", "hash"):
        return as_text(values).dictionary_encode()
    if column.kind == "numeric":
        array = plain(values)
        if pa.types.is_integer(array.type):
            return array  # as narrow as it was
        x = as_numbers(array, name=column.name)
        kind = array.type if pa.types.is_floating(array.type) else pa.float64()
        return pa.array(np.where(is_known(x), x, np.nan), kind, from_pandas=True)
    if column.kind == "date":
        moments = pa.array(as_moments(values, name=column.name), from_pandas=True)
        return moments.cast(pa.int64(), safe=False).cast(pa.timestamp("us"))
    return plain(values)


def levels_of(column: Column) -> dict[str, tuple[str, ...] | None]:
    """What each array of `narrow` is called, and what its codes mean: None for a number.

    >>> levels_of(Column("device", "category", values=("phone", "tablet")))
    {'device': ('phone', 'tablet', 'missing')}
    """
    name = column.name
    if column.kind == "numeric":
        return {name: None}
    if column.kind == "date":
        parts = {f"{name} {part}": _DATE_LEVELS[part] for part in column.parts}
        return parts | {f"{name} trend": None}
    buckets = (f"bucket {i}" for i in range(1, column.buckets))
    known = {
        "category": (*column.values, "missing"),
        "boolean": ("false", "true", "missing"),
        "hash": ("missing", *buckets),
    }
    return {name: known[column.kind]}


def feature_names(column: Column) -> tuple[str, ...]:
    """What each feature of a column is called.

    >>> feature_names(Column("device", "category", values=("phone", "tablet"), missing=True))
    ('device=phone', 'device=tablet', 'device missing')
    """
    name = column.name
    own = {
        "category": [f"{name}={value}" for value in column.values],
        "date": [f"{name} {part} {wave}" for part in column.parts for wave in ("sin", "cos")],
        "hash": [f"{name} bucket"],
    }.get(column.kind, [name])
    if column.missing and column.kind != "hash":
        own.append(f"{name} missing")
    return tuple(own)


def buckets_of(values: Any, *, column: str, buckets: int) -> np.ndarray:
    """The bucket of each value: 0 when it is missing, else 1 + hash mod (buckets - 1).

    The hash is `unbag.bags.stable_hash`: the first 15 hexadecimal digits of the MD5 of
    "|column|value", so that any database can repeat it. A value that was never seen has its bucket
    all the same.

    Parameters
    ----------
    values : pyarrow.Array
        Of any type; compared as text.
    column : str
        Its name, so that columns with the same values have buckets of their own.
    buckets : int
        How many there are.

    >>> buckets_of(pa.array(["a", None, "b"]), column="shop", buckets=100).tolist()
    [88, 0, 26]
    """
    texts, code = as_codes(values)
    known = np.asarray(texts.is_valid())
    bucket, own = np.zeros(len(texts), np.int64), texts.drop_null().to_pylist()
    if own:
        bucket[known] = 1 + stable_hash(own, [column] * len(own)) % (buckets - 1)
    return bucket[code]


def _category_codes(column: Column, values: Any) -> np.ndarray:
    texts, code = as_codes(values)
    index = pc.index_in(texts, value_set=pa.array(column.values, pa.string())).fill_null(-1)
    place = np.asarray(index).astype(np.int64)
    place[np.asarray(texts.is_null())] = len(column.values)
    return place[code]


def _moments(column: Column, values: Any) -> np.ndarray:
    """Microseconds since 1970. Numbers are refused: seconds, milliseconds and nanoseconds look
    alike, and would be other days. A frame may have missing times as numbers, all of them NaN."""
    moment = as_moments(values, name=column.name)
    if is_number(values.type) and np.isfinite(moment).any():
        raise broken(
            "A column of times must hold dates, moments or text like 2026-11-16 05:30",
            f"{column.name!r} of the events has numbers ({values.type})",
            "Turn them into moments, as pandas.to_datetime(values, unit='s') does.",
        )
    return moment


def _waves(column: Column, values: Any) -> tuple[np.ndarray, np.ndarray]:
    """Where in the day, the week and the year: sine and cosine, so that midnight is next to
    midnight; and which moments are missing."""
    moment = _moments(column, values)
    gap = ~np.isfinite(moment)
    angles = [2 * np.pi * np.mod(moment, PERIODS[part]) / PERIODS[part] for part in column.parts]
    waves = np.column_stack([wave(angle) for angle in angles for wave in (np.sin, np.cos)])
    return np.where(gap[:, None], 0.0, waves), gap


def _date_parts(column: Column, values: Any) -> dict[str, np.ndarray]:
    """Codes of the hour, weekday and month, the last of each for missing; and days since 1970."""
    moment = _moments(column, values)
    gap = ~np.isfinite(moment)
    moment = np.where(gap, 0.0, moment)
    day = moment / DAY
    month = day.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64) % 12
    # the first of January 1970 was a Thursday, weekday 3 when Monday is 0
    codes = {
        "hour": moment % DAY // (DAY / 24),
        "weekday": (np.floor(day) + 3) % 7,
        "season": month,
    }
    missing = {part: len(levels) - 1 for part, levels in _DATE_LEVELS.items()}
    parts = {
        f"{column.name} {part}": np.where(gap, missing[part], codes[part]).astype(np.int64)
        for part in column.parts
    }
    return parts | {f"{column.name} trend": np.where(gap, np.nan, day)}


def _boolean_codes(column: Column, values: Any) -> np.ndarray:
    text = pc.utf8_lower(as_text(values))
    yes, no = (pc.is_in(text, value_set=pa.array(words)) for words in (TRUE, FALSE))
    gap = np.asarray(text.is_null())
    strange = ~(np.asarray(pc.or_(yes, no)) | gap)
    if strange.any():
        raise broken(
            f"A truth value must be one of {', '.join(TRUE + FALSE)}",
            f"{text[int(np.argmax(strange))].as_py()!r} given in column {column.name!r}",
            "Plan it as a category.",
        )
    return np.where(gap, 2, np.asarray(yes.fill_null(False))).astype(np.int64)


TRUE, FALSE = ["true", "1", "yes"], ["false", "0", "no"]


_WEEK = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_YEAR = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DATE_LEVELS = {
    "hour": (*(str(hour) for hour in range(24)), "missing"),
    "weekday": (*_WEEK, "missing"),
    "season": (*_YEAR, "missing"),
}
