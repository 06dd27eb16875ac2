"""Bags in parts that the tests of sums, here and on other machines, share."""

import numpy as np
import pyarrow as pa
from scipy import special

import unbag
from unbag.additive._sums import narrow_part

ROWS, BAG = 4000, 10


def world(kind="binary", seed=0):
    """Bags with a column of levels and a number with gaps."""
    rng = np.random.default_rng(seed)
    code, x = rng.integers(0, 6, ROWS), rng.normal(size=ROWS)
    score = -0.5 + rng.normal(0, 0.7, 6)[code] + 0.8 * x
    x[:40] = np.nan
    X = pa.table({"shop": [f"s{i}" for i in code], "x": pa.array(x, from_pandas=True)})
    y = {
        "binary": rng.random(ROWS) < special.expit(score),
        "total": rng.poisson(np.exp(score)),
        "histogram": np.searchsorted([0.3, 1.2], score + rng.logistic(size=ROWS)),
    }[kind]
    return unbag.random_bags(X, y, size=BAG, seed=0, kind=kind)


def parts_of(bags, terms, number=4, **options):
    pieces = np.array_split(np.arange(len(bags)), number)
    return [narrow_part(bags.take(piece), terms, **options) for piece in pieces]
