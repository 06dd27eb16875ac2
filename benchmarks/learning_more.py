"""Further tables for learning.py, as a newcomer's may be, each with a difficulty of its own.

Nothing of the library was chosen on them. A task takes the size of the bags and a seed, as in
learning_tasks.py.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from learning_tasks import Task, numbered, texts
from scipy.special import expit, softmax
from sklearn.datasets import load_diabetes, load_wine

import unbag


def wine(size: int, seed: int) -> Task:
    """Three sorts from 13 numbers of 130 bottles."""
    X, y = load_wine(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = order[:130], order[130:]
    bags = unbag.random_bags(X[train], y[train], size=size, seed=seed, kind="histogram", classes=3)
    return Task(bags, y[train][bags.rows], X[test], np.eye(3)[y[test]])


def diabetes(size: int, seed: int) -> Task:
    """Totals of a score from 25 to 346, ten numbers of 330 patients."""
    X, y = load_diabetes(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = order[:330], order[330:]
    bags = unbag.random_bags(X[train], y[train], size=size, seed=seed, kind="total")
    return Task(bags, y[train][bags.rows], X[test], y[test])


def housing(size: int, seed: int) -> Task:
    """Above the median price or not: place on a map, income, age, rooms; effects are curved."""
    rng, n = np.random.default_rng([seed, 20]), 20_000
    place = rng.integers(0, 2, n)
    x, y = rng.normal(place * 3 - 1, 1, n), rng.normal(2 - place * 3, 1, n)
    income, age = rng.gamma(3, 1.3, n), rng.integers(1, 53, n).astype(float)
    rooms = rng.lognormal(1.6, 0.3, n) * (1 + 0.05 * income)
    score = 0.9 * (income - 4) - 1.2 * np.hypot(x - 2, y + 1) / 2 + 0.01 * age + 0.1 * rooms
    table = {"longitude": x, "latitude": y, "income": income, "age": age, "rooms": rooms}
    return _binary(pa.table(table), score - np.median(score), size, seed)


def prices(size: int, seed: int) -> Task:
    """Numbers with tails so heavy that a line says nothing, and skewed prices."""
    rng, n = np.random.default_rng([seed, 21]), 20_000
    X, price = rng.standard_cauchy((n, 3)), rng.lognormal(3, 1.5, n)
    score = 1.2 * np.tanh(X[:, 0]) - 0.6 * (np.log(price) - 3) - 1
    table = pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "price": price})
    return _binary(table, score, size, seed)


def weeks(size: int, seed: int) -> Task:
    """Times in two years: the day of the week, the hour and a trend."""
    rng, n = np.random.default_rng([seed, 22]), 20_000
    hour = rng.integers(0, 730 * 24, n)
    score = np.where((hour // 24) % 7 >= 5, 1.0, -0.3) + 0.8 * np.cos(hour / 12 * np.pi)
    when = np.datetime64("2024-01-01", "s") + hour * np.timedelta64(1, "h")
    table = pa.table({"when": when, "device": texts(rng.integers(0, 3, n))})
    return _binary(table, score + hour / 9000 - 2.5, size, seed)


def ids(size: int, seed: int) -> Task:
    """An id of its own for each row, one of 3,000 sellers, and a country."""
    rng, n = np.random.default_rng([seed, 23]), 20_000
    seller = np.minimum(rng.zipf(1.5, n), 3000) - 1
    country = rng.integers(0, 20, n)
    score = 0.7 * rng.normal(size=3000)[seller] + 0.7 * rng.normal(size=20)[country] - 1.5
    table = {"id": texts(rng.permutation(n)), "seller": texts(seller), "country": texts(country)}
    return _binary(pa.table(table), score, size, seed)


def typos(size: int, seed: int) -> Task:
    """Names of 12 towns, a tenth of them misspelt in some way, and an age."""
    rng, n = np.random.default_rng([seed, 24]), 20_000
    towns = np.array([f"town{i:02d}ville" for i in range(12)])
    code, age = rng.integers(0, 12, n), rng.normal(40, 12, n)
    name, wrong = towns[code].astype(object), rng.random(n) < 0.1
    place, letter = rng.integers(0, 10, n), rng.integers(97, 123, n)
    for i in np.flatnonzero(wrong):
        name[i] = name[i][: place[i]] + chr(letter[i]) + name[i][place[i] + 1 :]
    score = 0.8 * rng.normal(size=12)[code] + 0.04 * (age - 40) - 1
    return _binary(pa.table({"town": pa.array(name.tolist()), "age": age}), score, size, seed)


def gaps(size: int, seed: int) -> Task:
    """Numbers that are missing the more often the larger they are."""
    rng, n = np.random.default_rng([seed, 25]), 20_000
    X = rng.normal(size=(n, 5))
    score = X[:, 0] - 0.7 * X[:, 1] + 0.4 * X[:, 2] - 1
    gone = rng.random((n, 5)) < expit(2 * X - 1)
    columns = {f"x{j}": pa.array(np.where(gone[:, j], np.nan, X[:, j]), from_pandas=True)
               for j in range(5)}  # fmt: skip
    return _binary(pa.table(columns), score, size, seed)


def copies(size: int, seed: int) -> Task:
    """A constant, three columns twice, and ten that are nearly the same."""
    rng, n = np.random.default_rng([seed, 26]), 20_000
    X, common = rng.normal(size=(n, 3)), rng.normal(size=n)
    near = common[:, None] + 0.1 * rng.normal(size=(n, 10))
    columns = {f"x{j}": X[:, j] for j in range(3)} | {f"same{j}": X[:, j] for j in range(3)}
    columns |= {f"near{j}": near[:, j] for j in range(10)} | {"one": np.ones(n)}
    return _binary(pa.table(columns), X[:, 0] - 0.5 * X[:, 1] + 0.8 * common - 1, size, seed)


def dense(size: int, seed: int) -> Task:
    """A hundred numbers, each of which matters a little, along a line."""
    rng, n = np.random.default_rng([seed, 27]), 20_000
    X = rng.normal(size=(n, 100))
    return _binary(X, X @ rng.normal(size=100) / 10 - 0.5, size, seed)


def scarce(size: int, seed: int) -> Task:
    """A rate of 0.1% in 120,000 rows."""
    rng, n = np.random.default_rng([seed, 28]), 120_000
    site, X = rng.integers(0, 30, n), rng.normal(size=(n, 3))
    score = 0.8 * rng.normal(size=30)[site] + X[:, 0] - 8
    return _binary(numbered(X).append_column("site", texts(site)), score, size, seed)


def sorts(size: int, seed: int) -> Task:
    """Five classes, of which one has 1% of the rows."""
    rng, n = np.random.default_rng([seed, 29]), 20_000
    X, shop = rng.normal(size=(n, 4)), rng.integers(0, 15, n)
    levels = 0.7 * rng.normal(size=(15, 5))
    p = softmax(X[:, :3] @ rng.normal(size=(3, 5)) + levels[shop] + [1, 0.5, 0, 0, -3.5], axis=1)
    y = (rng.random(n)[:, None] > np.cumsum(p, axis=1)).sum(axis=1)
    table, split = numbered(X).append_column("shop", texts(shop)), n * 3 // 4
    bags = unbag.random_bags(table[:split], y[:split], size=size, seed=seed, kind="histogram",
                             classes=5)  # fmt: skip
    return Task(bags, y[bags.rows], table[split:], p[split:], known=True)


def zeros(size: int, seed: int) -> Task:
    """Totals of which four in five events are zero, for a reason of their own."""
    rng, n = np.random.default_rng([seed, 30]), 20_000
    shop, X = rng.integers(0, 25, n), rng.normal(size=(n, 4))
    buys = expit(0.8 * X[:, 0] + 0.5 * rng.normal(size=25)[shop] - 1.6)
    amount = np.exp(0.5 * X[:, 1] + 2)
    y = (rng.random(n) < buys) * rng.poisson(amount)
    table, split = numbered(X).append_column("shop", texts(shop)), n * 3 // 4
    bags = unbag.random_bags(table[:split], y[:split].astype(float), size=size, seed=seed,
                             kind="total")  # fmt: skip
    return Task(bags, y[bags.rows].astype(float), table[split:], (buys * amount)[split:])


def loud(size: int, seed: int) -> Task:
    """Clicks in bags within 20 campaigns, whose declared noise differs a hundredfold."""
    rng, n = np.random.default_rng([seed, 31]), 30_000
    campaign, publisher = rng.integers(0, 20, n), rng.integers(0, 200, n)
    hour = rng.integers(0, 24, n).astype(float)
    score = 0.5 * rng.normal(size=20)[campaign] + 0.7 * rng.normal(size=200)[publisher]
    truth = expit(score + 0.5 * np.sin(hour / 12 * np.pi) - 2.5)
    table = pa.table({"campaign": texts(campaign), "publisher": texts(publisher), "hour": hour})
    y, split = (rng.random(n) < truth).astype(float), n * 3 // 4
    within = campaign[:split]
    order = np.lexsort((rng.random(split), within))
    bag = np.empty(split, int)
    bag[order] = np.arange(split) // size
    bag = np.unique(within * split + bag, return_inverse=True)[1]  # no bag of two campaigns
    k, mean = np.bincount(bag), np.bincount(bag, y[:split]) / np.bincount(bag)
    stratum = np.bincount(bag, within) / k
    scale = np.geomspace(0.3, 3, 20)[stratum.astype(int)]
    report = mean + rng.laplace(size=len(k)) * scale / k
    bags = unbag.Bags(bag, report, X=table[:split], stratum=stratum.astype(int),
                      noise=2 * scale**2)  # fmt: skip
    return Task(bags, y[:split], table[split:], truth[split:], known=True)


def mixed(size: int, seed: int) -> Task:
    """Bags of 1 to 5,000 rows: `size` of them, most small, but most rows in large ones."""
    rng = np.random.default_rng([seed, 32])
    k = np.round(np.exp(rng.uniform(0, np.log(5000), size))).astype(int)
    n = k.sum() + 5000
    sort, X = rng.integers(0, 12, n), rng.normal(size=(n, 4))
    truth = expit(0.7 * rng.normal(size=12)[sort] + X[:, 0] - 0.6 * X[:, 1] ** 2 - 0.7)
    y = (rng.random(n) < truth).astype(float)
    table, split = numbered(X).append_column("sort", texts(sort)), int(k.sum())
    bag = np.repeat(np.arange(size), k)
    bags = unbag.Bags(bag, np.bincount(bag, y[:split]) / k, X=table[:split])
    return Task(bags, y[:split], table[split:], truth[split:], known=True)


MORE_TASKS: dict[str, Callable[[int, int], Task]] = {
    "wine": wine, "diabetes": diabetes, "housing": housing, "prices": prices, "weeks": weeks,
    "ids": ids, "typos": typos, "gaps": gaps, "copies": copies, "dense": dense, "scarce": scarce,
    "sorts": sorts, "zeros": zeros, "loud": loud, "mixed": mixed,
}  # fmt: skip
MORE_SIZES: dict[str, tuple[int, ...]] = {
    "wine": (5,), "diabetes": (5,), "housing": (20, 200), "prices": (20, 200), "weeks": (20, 200),
    "ids": (20, 200), "typos": (20, 200), "gaps": (20, 200), "copies": (20, 200),
    "dense": (20, 200), "scarce": (100,), "sorts": (20, 200), "zeros": (20, 200),
    "loud": (20, 200), "mixed": (60, 300),
}  # fmt: skip


def _binary(table: Any, score: np.ndarray, size: int, seed: int) -> Task:
    """Labels of this score; three quarters of the rows are learned from."""
    truth, split = expit(score), len(score) * 3 // 4
    y = (np.random.default_rng([seed, 19]).random(len(truth)) < truth).astype(float)
    bags = unbag.random_bags(table[:split], y[:split], size=size, seed=seed)
    return Task(bags, y[bags.rows], table[split:], truth[split:], known=True)
