"""Files of the Criteo display advertising challenge in, chunks of bucket numbers and clicks out, as a stream."""

from unbag.datasets.criteo.reading import CHUNK, CITATION, SOURCE, find_criteo, read_criteo
from unbag.datasets.criteo.records import (
    BUCKETS,
    CATEGORIES,
    DIMENSIONS,
    INTEGERS,
    MISSING,
    NAMES,
    Records,
    encode,
    mix,
)

__all__ = [
    "BUCKETS",
    "CATEGORIES",
    "CHUNK",
    "CITATION",
    "DIMENSIONS",
    "INTEGERS",
    "MISSING",
    "NAMES",
    "SOURCE",
    "Records",
    "encode",
    "find_criteo",
    "mix",
    "read_criteo",
]
