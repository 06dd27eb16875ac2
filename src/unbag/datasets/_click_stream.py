"""An endless stream of made clicks with Criteo's schema, whose click probability is known.

Categories follow a power law, a share of them is born within the day and gone the next, and the
click rate moves with the hour. The probability is not linear in the features:

    score = level + tide(time) + sum_j a_j e_j(c_j) + sum_(i,j) b e_ij(c_i, c_j) + sum_i g sin(log(1
    + n_i))

e_j(c) is the effect of category c of feature j, a number that a hash of (j, c) draws from a uniform
law of variance 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from unbag._arrays import mix
from unbag._rules import broken
from unbag.datasets._criteo import BUCKETS, CATEGORIES, CHUNK, INTEGERS, MISSING, Records, encode
from unbag.datasets._dataset import Chunk

RATE, TIDE = 0.25, 0.35
STRENGTH = 0.9 / np.sqrt(np.arange(1, CATEGORIES + 1))  # a_j, in a mixed order of the features
PAIRS = ((0, 1), (4, 7), (5, 13), (2, 8), (16, 19))  # features whose categories act together
_BUCKETS = np.array(BUCKETS[INTEGERS:])
VALUES = np.where(_BUCKETS > 1000, 4 * _BUCKETS, np.maximum(_BUCKETS, 4))
NEW = 0.3 * (_BUCKETS > 1000)  # share of categories born lately
GONE = np.array([0.0, 0.0, 0.05, 0.05, *[0.0] * 15, 0.4, 0.05, 0.75, 0.0, 0.05, 0.4, 0.4])
LACKING = np.array([0.4, 0.0, 0.2, 0.2, 0.03, 0.2, 0.04, 0.0, 0.04, 0.4, 0.04, 0.7, 0.2])
SPREAD = np.linspace(0.8, 2.2, INTEGERS)


def read_clicks(
    *, seed: int = 0, rows: int = CHUNK, chunks: int | None = None, start: int = 0, day: int = 2**20
) -> Iterator[Chunk]:
    """Stream made clicks; the same seed and rows give the same chunks, wherever one starts.

    Parameters
    ----------
    seed : int
        Of everything that is drawn.
    rows : int
        Events in a chunk.
    chunks : int, optional
        How many there are in all; by default the stream has no end.
    start : int
        The `position` of the chunk to go on after; here the number of the next chunk.
    day : int
        Events in a day, in which the click rate rises and falls once and half of the new
        categories are replaced.

    >>> chunk = next(read_clicks(seed=0, rows=4096))
    >>> chunk.X.shape, bool(0.2 < chunk.truth.mean() < 0.3), chunk.position
    ((4096, 39), True, 1)
    """
    if rows < 1 or day < 1:
        rule = "A chunk and a day must have at least one event"
        raise broken(rule, f"{rows} and {day} given", "Ask for more.")
    number = start
    while chunks is None or number < chunks:
        records, truth, time = draw_clicks(number * rows, rows, seed=seed, day=day)
        number += 1
        yield Chunk(encode(records), y=records.label, time=time, truth=truth, position=number)


def draw_clicks(
    first: int, rows: int, *, seed: int, day: int = 2**20
) -> tuple[Records, np.ndarray, np.ndarray]:
    """Raw events number `first` to `first + rows` - 1, their click probabilities, and their times
    in days."""
    rng = np.random.default_rng([seed, first, rows])
    time = (first + np.arange(rows)) / day
    categories = _draw_categories(rng, time, seed)
    integers = _draw_integers(rng, categories, seed)
    truth = expit(
        _level(seed) + TIDE * np.sin(2 * np.pi * time) + _score(categories, integers, seed)
    )
    label = (rng.random(rows) < truth).astype(np.float32)
    categories = np.where(rng.random(categories.shape) < GONE, MISSING, categories)
    return Records(label, integers, categories), truth, time


def _draw_categories(rng: np.random.Generator, time: np.ndarray, seed: int) -> np.ndarray:
    """P(rank r) ~ 1 / r; a new category also depends on the half day in which it was born."""
    rank = np.exp(rng.random((len(time), CATEGORIES)) * np.log(VALUES + 1)).astype(np.uint64)
    born = np.floor(2 * time).astype(np.uint64)[:, None] + np.uint64(1)
    birth = np.where(rng.random(rank.shape) < NEW, born, np.uint64(0))
    hashed = _hash(rank + (birth << np.uint64(24)), np.arange(CATEGORIES), seed)
    return (hashed >> np.uint64(32)).astype(np.int64)


def _draw_integers(rng: np.random.Generator, categories: np.ndarray, seed: int) -> np.ndarray:
    middle = 1.5 + 0.5 * _effect(categories[:, :INTEGERS], 100 + np.arange(INTEGERS), seed)
    n = np.floor(np.exp(middle + SPREAD * rng.normal(size=middle.shape))).astype(np.int64)
    return np.where(rng.random(n.shape) < LACKING, MISSING, n)


@lru_cache
def _level(seed: int) -> float:
    """The level at which a quarter of the events are clicks, tides aside."""
    rng, time = np.random.default_rng([seed, 1]), np.zeros(2**14)
    categories = _draw_categories(rng, time, seed)
    score = _score(categories, _draw_integers(rng, categories, seed), seed)
    return float(brentq(lambda level: expit(level + score).mean() - RATE, -20, 20))  # pyright: ignore[reportArgumentType]


def _score(categories: np.ndarray, integers: np.ndarray, seed: int) -> np.ndarray:
    score = _effect(categories, np.arange(CATEGORIES), seed) @ _strength()
    for number, (i, j) in enumerate(PAIRS):
        together = (categories[:, i] & 15) * 16 + (categories[:, j] & 15)
        score += 0.35 * _effect(together, np.array([200 + number]), seed)
    wave = np.sin(np.log1p(np.maximum(integers, 0)))
    return score + 0.25 * np.where(integers == MISSING, 0.0, wave).sum(axis=1)


def _strength() -> np.ndarray:
    """The strongest effects belong to features of few and of many categories alike."""
    return 0.55 * STRENGTH[(7 * np.arange(CATEGORIES)) % CATEGORIES]


def _effect(value: np.ndarray, feature: np.ndarray, seed: int) -> np.ndarray:
    bits = _hash(value.astype(np.uint64), feature, seed) >> np.uint64(11)
    return np.sqrt(12) * (bits.astype(float) * 2.0**-53 - 0.5)


def _hash(value: np.ndarray, feature: np.ndarray, seed: int) -> np.ndarray:
    salt = mix(
        (np.asarray(feature) + 1).astype(np.uint64) * np.uint64(0x9E3779B9) + np.uint64(seed)
    )
    return mix(value ^ salt)


def write_clicks(path: str | Path, rows: int, *, seed: int = 0, day: int = 2**20) -> np.ndarray:
    """Write made clicks as a file of the challenge's format.

    Parameters
    ----------
    path : str or Path
        The file.
    rows : int
        How many events it has.
    seed : int
        Of everything that is drawn.
    day : int
        Events in a day; see `read_clicks`.

    Returns
    -------
    array
        The click probability of each event.
    """
    records, truth, _ = draw_clicks(0, rows, seed=seed, day=day)
    with Path(path).open("w", newline="") as file:
        for y, integers, categories in zip(*(part.tolist() for part in records), strict=True):
            fields = [str(int(y)), *(_field(n, "d") for n in integers)]
            fields += [_field(c, "08x") for c in categories]
            file.write("\t".join(fields) + "\n")
    return truth


def _field(value: int, form: str) -> str:
    if value == MISSING:
        return ""
    return format(value, form)
