"""Tables to learn from bags of: real ones and made ones, each with rows to test on.

A task takes the size of the bags (for `few` their number) and a seed. Made tables know the true
means of their labels; real ones are tested on labels. To add a table, add a function to TASKS.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from scipy.special import expit, softmax
from sklearn.datasets import load_breast_cancer, load_digits, make_classification, make_moons

import unbag
from unbag import datasets


class Task(NamedTuple):
    """Bags with their labels, and rows to test on.

    `truth` holds labels, or the true means of labels where `known`; of classes one column each.
    """

    bags: unbag.Bags
    labels: np.ndarray
    test: Any
    truth: np.ndarray
    known: bool = False
    offset: np.ndarray | None = None


def adult(size: int, seed: int) -> Task:
    (people, rich), (others, truth) = datasets.read_adult(), datasets.read_adult("test")
    return _of_labels(pa.table(people), rich, pa.table(others), truth, size, seed)


def adult_hours(size: int, seed: int) -> Task:
    """Who works more than 40 hours: another label from the columns of Adult."""
    parts = []
    for part in ("data", "test"):
        people, rich = datasets.read_adult(part)
        people = {**people, "rich": rich.astype(str)}
        label = (np.asarray(people.pop("hours-per-week"), float) > 40).astype(float)
        parts += [pa.table(people), label]
    return _of_labels(*parts, size, seed)


def cancer(size: int, seed: int) -> Task:
    """Few rows, many numeric columns that say nearly the same."""
    X, y = load_breast_cancer(return_X_y=True)
    return _shuffled(X, y, 400, size, seed)


@cache
def _higgs() -> datasets.Dataset:
    return datasets.load_higgs()


def higgs(size: int, seed: int) -> Task:
    return _of_dataset(_higgs(), size, seed)


@cache
def _mnist() -> datasets.Dataset:
    return datasets.load_mnist()


def mnist(size: int, seed: int) -> Task:
    return _of_dataset(_mnist(), size, seed)


def bike(size: int, seed: int) -> Task:
    """Totals: bikes rented in an hour."""
    return _of_dataset(datasets.load_bike_sharing(), size, seed)


@cache
def _motor() -> datasets.Dataset:
    return datasets.load_fremtpl2()


def motor(size: int, seed: int) -> Task:
    """Totals with an exposure: claims of policies."""
    return _of_dataset(_motor(), size, seed)


@cache
def _criteo() -> tuple[np.ndarray, np.ndarray]:
    chunk = next(datasets.read_criteo(rows=120_000))
    return chunk.X, chunk.y


def criteo(size: int, seed: int) -> Task:
    """Clicks on advertisements: 39 columns of codes."""
    X, y = _criteo()
    names = [f"c{j}" for j in range(X.shape[1])]
    table = pa.table({name: pa.array(X[:, j]).cast(pa.string()) for j, name in enumerate(names)})
    split = 80_000
    return _of_labels(table[:split], y[:split], table[split:], y[split:], size, seed)


def clicks(size: int, seed: int) -> Task:
    made = datasets.make_conversions(seed=seed)
    return Task(made.bags(), made.label, made.test, made.test_truth, known=True)


def crossed(size: int, seed: int) -> Task:
    """Interactions only: no column alone tells anything."""
    rng = np.random.default_rng([seed, 1])
    X = rng.uniform(-1, 1, size=(60_000, 8))
    shop, day = rng.integers(0, 4, 60_000), rng.integers(0, 4, 60_000)
    score = 1.5 * np.sign(X[:, 0] * X[:, 1]) + 1.5 * np.where((shop + day) % 2, 1, -1) - 0.5
    table = numbered(X).append_column("shop", texts(shop)).append_column("day", texts(day))
    return _of_truth(table, expit(score), 40_000, size, seed)


def smooth(size: int, seed: int) -> Task:
    """Numbers with curved effects and one product, beside columns that say nothing."""
    rng = np.random.default_rng([seed, 2])
    X = rng.normal(size=(60_000, 10))
    score = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] ** 2 + X[:, 2] + 0.7 * X[:, 3] * X[:, 2] - 1
    return _of_truth(numbered(X), expit(score), 40_000, size, seed)


def nothing(size: int, seed: int) -> Task:
    """Labels that no column tells."""
    rng = np.random.default_rng([seed, 3])
    table = numbered(rng.normal(size=(40_000, 8)))
    table = table.append_column("place", texts(rng.integers(0, 300, 40_000)))
    return _of_truth(table, np.full(40_000, 0.3), 30_000, size, seed)


def rare(size: int, seed: int) -> Task:
    """Labels with a rate of 0.5%."""
    rng = np.random.default_rng([seed, 4])
    n, site = 250_000, rng.integers(0, 60, 250_000)
    X = rng.normal(size=(n, 4))
    effect = rng.normal(size=60)
    score = effect[site] + 0.8 * X[:, 0] + 0.6 * np.maximum(X[:, 1], 0) - 6.4
    table = numbered(X).append_column("site", texts(site))
    return _of_truth(table, expit(score), 200_000, size, seed)


def few(count: int, seed: int) -> Task:
    """So many bags of 200 rows in all."""
    rng = np.random.default_rng([seed, 5])
    n = 200 * count + 20_000
    X, kind = rng.normal(size=(n, 5)), rng.integers(0, 6, n)
    score = 1.2 * X[:, 0] - 0.8 * X[:, 1] + np.linspace(-1, 1, 6)[kind] - 0.5
    table = numbered(X).append_column("sort", texts(kind))
    return _of_truth(table, expit(score), 200 * count, 200, seed)


def huge(size: int, seed: int) -> Task:
    """A column of 20,000 levels and one of a level for nearly every row."""
    rng = np.random.default_rng([seed, 6])
    n = 120_000
    page = np.minimum(rng.zipf(1.3, n), 20_000) - 1
    person, x = rng.integers(0, 200_000, n), rng.normal(size=n)
    score = 0.8 * rng.normal(size=20_000)[page] + 0.8 * x - 2
    table = pa.table({"x": x, "page": texts(page), "person": texts(person)})
    return _of_truth(table, expit(score), 100_000, size, seed)


def classes(size: int, seed: int) -> Task:
    """Class histograms of four classes."""
    rng = np.random.default_rng([seed, 7])
    n = 60_000
    X, colour = rng.normal(size=(n, 5)), rng.integers(0, 10, n)
    W, levels = rng.normal(size=(3, 4)), rng.normal(size=(10, 4))
    p = softmax(0.8 * X[:, :3] @ W + 0.6 * levels[colour] + [1, 0, 0, -0.5], axis=1)
    y = (rng.random(n)[:, None] > np.cumsum(p, axis=1)).sum(axis=1)
    table, split = numbered(X).append_column("colour", texts(colour)), 40_000
    bags = unbag.random_bags(table[:split], y[:split], size=size, seed=seed, kind="histogram",
                             classes=4)  # fmt: skip
    return Task(bags, y[bags.rows], table[split:], p[split:], known=True)


def slopes(size: int, seed: int) -> Task:
    """A number whose slope differs between segments; made after the search for pairs was fixed."""
    rng = np.random.default_rng([seed, 8])
    segment, X = rng.integers(0, 5, 40_000), rng.normal(size=(40_000, 3))
    score = np.linspace(-1.2, 1.2, 5)[segment] * X[:, 0] + 0.3 * X[:, 1] - 0.7
    table = numbered(X).append_column("segment", texts(segment))
    return _of_truth(table, expit(score), 25_000, size, seed)


def hours(size: int, seed: int) -> Task:
    """Hours that matter the other way round at weekends; made after the search was fixed."""
    rng = np.random.default_rng([seed, 9])
    hour, day, city = (rng.integers(0, most, 40_000) for most in (24, 7, 30))
    wave = np.sin(hour / 12 * np.pi)
    table = pa.table({"hour": hour.astype(float), "day": texts(day), "city": texts(city)})
    return _of_truth(table, expit(np.where(day > 4, 1.2, -1.2) * wave - 1.5), 25_000, size, seed)


def sums(size: int, seed: int) -> Task:
    """A sum of columns, in which there is no pair; made after the search was fixed."""
    rng = np.random.default_rng([seed, 10])
    sort, X = rng.integers(0, 12, 40_000), rng.normal(size=(40_000, 4))
    score = 0.7 * rng.normal(size=12)[sort] + 0.8 * np.tanh(X[:, 0]) - 0.5 * X[:, 1] - 1
    table = numbered(X).append_column("sort", texts(sort))
    return _of_truth(table, expit(score), 25_000, size, seed)


def digits(size: int, seed: int) -> Task:
    """Even or odd from 64 pixels of 1,300 small pictures; nothing was chosen on it."""
    X, y = load_digits(return_X_y=True)
    return _shuffled(X, y % 2, 1300, size, seed)


def moons(size: int, seed: int) -> Task:
    """Two columns whose border is a curve; nothing was chosen on it."""
    return _shuffled(*make_moons(12_000, noise=0.3, random_state=seed), 8000, size, seed)


def clusters(size: int, seed: int) -> Task:
    """Six clusters in 20 columns, most of them sums or noise; nothing was chosen on it."""
    X, y = make_classification(14_000, n_features=20, n_informative=6, n_redundant=4,
                               n_clusters_per_class=3, random_state=seed)  # fmt: skip
    return _shuffled(X, y, 8000, size, seed)


def shops(size: int, seed: int) -> Task:
    """Shops, hours, and amounts that are missing where it matters; nothing was chosen on it."""
    rng = np.random.default_rng([seed, 7])
    shop, hour = rng.integers(0, 200, 24_000), rng.integers(0, 365 * 24, 24_000)
    amount, gap = rng.lognormal(3, 1.2, 24_000), rng.random(24_000) < 0.2
    score = rng.normal(0, 0.6, 200)[shop] + 0.8 * np.sin(hour / 12 * np.pi) + 0.7 * gap - 1.5
    table = pa.table({
        "shop": texts(shop),
        "when": np.datetime64("2026-01-01", "us") + hour * np.timedelta64(1, "h"),
        "amount": pa.array(np.where(gap, np.nan, amount), from_pandas=True),
        "device": texts(rng.integers(0, 3, 24_000)),
    })  # fmt: skip
    return _of_truth(table, expit(score + 0.4 * (np.log(amount) - 3)), 16_000, size, seed)


def tails(size: int, seed: int) -> Task:
    """Six prices and amounts with long tails; the logarithm of two matters, and one has a cap."""
    rng = np.random.default_rng([seed, 9])
    X = np.exp(rng.normal(0, [0.5, 1, 1.5, 1, 2, 1], (12_000, 6)))
    score = 0.6 * np.log(X[:, 1]) - 0.4 * np.log(X[:, 2]) + 0.3 * np.minimum(X[:, 0], 4) - 1.3
    return _of_truth(numbered(X), expit(score), 6000, size, seed)


TASKS: dict[str, Callable[[int, int], Task]] = {
    "adult": adult, "adult_hours": adult_hours, "cancer": cancer, "higgs": higgs, "bike": bike,
    "motor": motor, "criteo": criteo, "clicks": clicks, "crossed": crossed, "smooth": smooth,
    "nothing": nothing, "rare": rare, "few": few, "huge": huge, "classes": classes, "mnist": mnist,
    "slopes": slopes, "hours": hours, "sums": sums, "digits": digits, "moons": moons,
    "clusters": clusters, "shops": shops, "tails": tails,
}  # fmt: skip
SIZES: dict[str, tuple[int, ...]] = {
    "adult": (16, 64, 256, 512, 1024, 2048), "adult_hours": (32, 256), "cancer": (4, 16),
    "higgs": (16, 64, 256, 1024), "bike": (16, 64, 256), "motor": (16, 256, 1024),
    "criteo": (32, 256), "clicks": (0,), "crossed": (8, 64), "smooth": (16, 128, 1024),
    "nothing": (16, 256, 2048), "rare": (64, 512), "few": (8, 16, 30), "huge": (20, 100),
    "classes": (16, 128), "mnist": (64, 512),
    "slopes": (16, 64), "hours": (16, 64), "sums": (16, 64), "digits": (8, 32), "moons": (16, 128),
    "clusters": (16, 128), "shops": (32, 256), "tails": (16, 64, 256),
}  # fmt: skip


def _of_labels(
    X: Any, y: np.ndarray, X_test: Any, y_test: np.ndarray, size: int, seed: int
) -> Task:
    bags = unbag.random_bags(X, y, size=size, seed=seed)
    return Task(bags, y[bags.rows], X_test, y_test)


def _shuffled(X: np.ndarray, y: np.ndarray, split: int, size: int, seed: int) -> Task:
    order, y = np.random.default_rng(seed).permutation(len(y)), y.astype(float)
    train, test = order[:split], order[split:]
    return _of_labels(X[train], y[train], X[test], y[test], size, seed)


def _of_dataset(data: datasets.Dataset, size: int, seed: int) -> Task:
    bags = unbag.random_bags(data.X, data.y, size=size, seed=seed, kind=data.kind,
                             offset=data.offset)  # fmt: skip
    return Task(bags, data.y[bags.rows], data.X_test, data.y_test, offset=data.offset_test)


def _of_truth(table: pa.Table, truth: np.ndarray, split: int, size: int, seed: int) -> Task:
    y = (np.random.default_rng([seed, 0]).random(len(truth)) < truth).astype(float)
    bags = unbag.random_bags(table[:split], y[:split], size=size, seed=seed)
    return Task(bags, y[bags.rows], table[split:], truth[split:], known=True)


def numbered(X: np.ndarray) -> pa.Table:
    """A table of these columns, x0, x1 and so on."""
    return pa.table({f"x{j}": x for j, x in enumerate(X.T)})


def texts(code: np.ndarray) -> pa.Array:
    """Codes as text, so that they are levels."""
    return pa.array(code).cast(pa.string())
