"""Raw fields of Criteo's events in, bucket numbers out.

The paper leaves open how 40 boundaries make "40 buckets", and where missing values go. Ours: 40
boundaries, evenly spaced in the logarithm from 1 to 10^7, cut the numbers into 41 buckets, and
missing numbers have one more. A missing category is hashed like a value of its own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

INTEGERS, CATEGORIES = 13, 26
NAMES = (
    "label",
    *(f"I{i}" for i in range(1, INTEGERS + 1)),
    *(f"C{i}" for i in range(1, CATEGORIES + 1)),
)
BOUNDARIES = np.geomspace(1, 1e7, 40)
WHOLE = np.ceil(BOUNDARIES.round(6)).astype(np.int64)  # the same cuts for whole numbers
TABLE = (  # buckets, embedding size: the paper's table, features 14 to 39
    (700, 30), (500, 30), (10000, 70), (10000, 70), (200, 22), (20, 10), (10000, 70), (400, 30), (10, 10),
    (10000, 70), (5000, 50), (10000, 70), (5000, 50), (50, 10), (5000, 53), (10000, 70), (10, 10), (5000, 50),
    (5000, 50), (10, 10), (10000, 70), (10, 10), (10, 10), (10000, 70), (10, 20), (10000, 70),
)  # fmt: skip
BUCKETS = (*[len(BOUNDARIES) + 2] * INTEGERS, *(buckets for buckets, _ in TABLE))
DIMENSIONS = (*[10] * INTEGERS, *(dimension for _, dimension in TABLE))
MISSING = np.iinfo(np.int64).min


class Records(NamedTuple):
    """Raw events: clicks, whole numbers and categories as 32-bit numbers; `MISSING` where a field
    is empty."""

    label: np.ndarray
    integers: np.ndarray
    categories: np.ndarray


def encode(records: Records) -> np.ndarray:
    """Bucket numbers of every feature, ready for `unbag.models.embedding_network(BUCKETS,
    DIMENSIONS, key=...)`.

    >>> encode(Records(np.zeros(1), np.full((1, 13), MISSING), np.full((1, 26), MISSING)))[0, :4].tolist()
    [0, 0, 0, 0]
    """
    X = np.empty((len(records.label), len(BUCKETS)), np.int32)
    bucket = 1 + np.searchsorted(WHOLE, records.integers, side="right")
    X[:, :INTEGERS] = np.where(records.integers == MISSING, 0, bucket)
    feature = np.arange(INTEGERS, INTEGERS + CATEGORIES, dtype=np.uint64)
    hashed = mix(records.categories.astype(np.uint64) + (feature << np.uint64(33)))
    X[:, INTEGERS:] = hashed % np.array(BUCKETS[INTEGERS:], np.uint64)
    return X


def mix(x: np.ndarray) -> np.ndarray:
    """Splitmix64's finaliser: a hash of 64-bit numbers, the same everywhere."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
