"""What the additive model learns from marginal tables: Adult, clicks, coverage, hidden cells.

    python benchmarks/marginals.py [--out benchmarks/results/marginals.csv] [--parts adult clicks]
                                   [--seeds 3] [--simulations 50]

Adult: test log loss from three and six noisy tables, at a noise variance of 2 and at an equal total
privacy budget (an event in three tables spends three times, so its noise has nine times the
variance), beside as many random bags and all labels. Clicks (`make_conversions`, with a day drawn
at random): the share of the way from the trivial predictor to the true probabilities. Coverage: how
many true effects lie in their 95% intervals. Hidden: clicks whose cells below 10 are suppressed.
Nothing is chosen by labels. Rows of other runs in the file stay.
"""

import argparse
import csv
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from learning import labels, loss_of, slope
from learning_tasks import Task
from rich.console import Console
from scipy.special import expit, logit

import unbag
from unbag.datasets import make_conversions, read_adult
from unbag.learners import Additive

HEADER = ("part", "reports", "numbers", "noise", "value", "standard_error", "slope", "misfit",
          "seconds")  # fmt: skip
THREE = (("education", "sex"), ("occupation",), ("age band", "marital-status"))
SIX = (*THREE, ("workclass",), ("relationship", "hours band"), ("native-country",))
CLICKS = (("campaign", "day"), ("country", "device"), ("publisher",))
DAYS, BELOW = 14, 10
Row = tuple[Any, ...]


def tabulated(
    events: pa.Table, keys: Sequence[str], label: np.ndarray, noise: float, rng: np.random.Generator
) -> pa.Table:
    """The table of totals by these keys, with Laplace noise."""
    table = events.select(list(keys)).append_column("total", pa.array(label.astype(float)))
    table = table.group_by(list(keys)).aggregate([("total", "sum")])
    total = np.asarray(table["total_sum"]) + rng.laplace(0, np.sqrt(noise / 2), table.num_rows)
    return table.drop(["total_sum"]).append_column("total", pa.array(total))


def banded(people: dict[str, np.ndarray]) -> pa.Table:
    """The people with bands of ten years and of ten hours, which only keys of tables use."""
    bands = {
        "age band": np.minimum(people["age"] // 10 * 10, 70),
        "hours band": np.minimum(people["hours-per-week"] // 10 * 10, 60),
    }
    return pa.table({**people, **bands})


def scored(fit: Callable[[], Any], test: pa.Table, truth: np.ndarray) -> list[float]:
    """Test log loss, slope, lack of fit and seconds."""
    start = time.perf_counter()
    model = fit()
    seconds = time.perf_counter() - start
    score = model.scores(test)
    return [loss_of(score, truth, "binary"), slope(score, truth), model.misfit, seconds]


def adult(seeds: int) -> Iterator[Row]:
    (people, rich), (others, truth) = read_adult(), read_adult("test")
    events, X, test = banded(people), pa.table(people), pa.table(others)
    for name, keys in (("three tables", THREE), ("six tables", SIX)):
        numbers = 0
        for noise in (2, 2 * len(keys) ** 2):
            runs = []
            for seed in range(seeds):
                rng = np.random.default_rng(seed)
                tables = [tabulated(events, key, rich, noise, rng) for key in keys]
                cells = unbag.join_marginals(
                    events, tables, total="total", noise=noise, features=X.schema.names
                )
                numbers = len(cells)
                runs.append(scored(lambda: Additive().fit(cells), test, truth))  # noqa: B023
            yield ("adult", name, numbers, noise, *summary(runs))
        runs = []
        for seed in range(seeds):
            bags = noisy_bags(X, rich, numbers, seed)
            runs.append(scored(lambda: Additive().fit(bags), test, truth))  # noqa: B023
        yield ("adult", "random bags", numbers, 2, *summary(runs))
    ones = unbag.Bags(np.arange(len(rich)), rich.astype(float), X=X)
    runs = [scored(lambda: Additive().fit(ones), test, truth)]
    yield ("adult", "all labels", len(rich), 0, *summary(runs))


def noisy_bags(X: pa.Table, label: np.ndarray, number: int, seed: int) -> unbag.Bags:
    """So many random bags, with Laplace noise of variance 2 on their counts."""
    bags = unbag.random_bags(X, label, size=len(label) // number, seed=seed)
    noise = np.random.default_rng(seed).laplace(0, 1, len(bags))
    report = bags.report + noise / bags.size
    return unbag.Bags(bags.bag, report, X=bags.X, noise=np.full(len(bags), 2.0))


def click_tables(
    seed: int, rows: int = 300_000, publishers: int = 2_000
) -> tuple[Any, pa.Table, list[pa.Table]]:
    """Made clicks, the same with a day of 14 that was drawn at random, and three tables of them."""
    made = make_conversions(rows, seed=seed, publishers=publishers)
    rng = np.random.default_rng([seed, 1])
    day = np.datetime64("2026-03-02") + rng.integers(0, DAYS, rows).astype("timedelta64[D]")
    events = made.events.append_column("day", pa.array(day))
    return made, events, [tabulated(events, key, made.label, 2, rng) for key in CLICKS]


def way(loss: float, prior: float, truth: np.ndarray) -> float:
    """The share of the way from the trivial predictor to the truth."""
    trivial = loss_of(np.full(len(truth), logit(prior)), truth, "binary")
    return (trivial - loss) / (trivial - loss_of(logit(truth), truth, "binary"))


def clicks(seeds: int) -> Iterator[Row]:
    runs: dict[str, list[list[float]]] = {}
    numbers: dict[str, int] = {}
    for seed in range(seeds):
        made, events, tables = click_tables(seed)
        names = made.events.schema.names
        cells = unbag.join_marginals(events, tables, total="total", noise=2, features=names)
        bags, few = made.bags(), sample(made, len(cells), seed)
        fits = {
            "three tables": (len(cells), lambda: Additive().fit(cells)),  # noqa: B023
            "random bags": (int(bags.observed.sum()), lambda: Additive().fit(bags)),  # noqa: B023
            "as many labels": (len(cells), lambda: Plain(few)),  # noqa: B023
            "all labels": (len(made.label), lambda: Plain((made.events, made.label))),  # noqa: B023
        }
        for name, (number, fit) in fits.items():
            row = scored(fit, made.test, made.test_truth)
            row[0] = way(row[0], made.label.mean(), made.test_truth)
            runs.setdefault(name, []).append(row)
            numbers[name] = number
    for name, rows in runs.items():
        noise = 2
        if "labels" in name:
            noise = 0
        yield ("clicks", name, numbers[name], noise, *summary(rows))


def sample(made: Any, number: int, seed: int) -> tuple[pa.Table, np.ndarray]:
    """So many clicks with their labels."""
    chosen = np.random.default_rng(seed).choice(len(made.label), number, replace=False)
    return made.events.take(chosen), made.label[chosen]


class Plain:
    """Logistic regression on labels."""

    misfit = 0.0

    def __init__(self, labelled: tuple[pa.Table, np.ndarray]) -> None:
        X, y = labelled
        self.scores = labels(Task(unbag.Bags(np.arange(len(y)), y, X=X), y, X, y))


def hidden(seeds: int) -> Iterator[Row]:
    """Cells below 10 are suppressed: left out, or used as what is below the threshold."""
    runs: dict[str, list[list[float]]] = {"all cells": [], "left out": [], "below 10": []}
    number: dict[str, int] = {}
    for seed in range(seeds):
        made, events, tables = click_tables(seed, 100_000, 400)
        names = made.events.schema.names
        given = {"total": "total", "noise": 2.0, "features": names}
        small = [suppressed(table) for table in tables]
        whole = unbag.join_marginals(events, tables, **given)
        left_out = unbag.join_marginals(events, small, status="status", accept_bias=True, **given)
        below = unbag.join_marginals(events, small, status="status", below=BELOW, **given)
        for name, cells in zip(runs, (whole, left_out, below), strict=True):
            row = scored(lambda: Additive().fit(cells), made.test, made.test_truth)  # noqa: B023
            row[0] = way(row[0], made.label.mean(), made.test_truth)
            runs[name].append(row)
            number[name] = int(cells.observed.sum())
    for name, rows in runs.items():
        yield ("hidden", name, number[name], 2, *summary(rows))


def suppressed(table: pa.Table) -> pa.Table:
    small = np.asarray(table["total"]) < BELOW
    status = np.where(small, "suppressed_by_value", "observed")
    total = pa.array(np.where(small, np.nan, table["total"]), from_pandas=True)
    return (
        table.drop(["total"])
        .append_column("total", total)
        .append_column("status", pa.array(status))
    )


def coverage(simulations: int) -> Iterator[Row]:
    """How many true effects of levels lie in their 95% intervals, over small simulations."""
    inside, seconds = [], time.perf_counter()
    for seed in range(simulations):
        events, score, effects = small_world(seed)
        rng = np.random.default_rng([seed, 1])
        y = (rng.random(len(score)) < expit(score)).astype(float)
        tables = [tabulated(events, key, y, 2, rng) for key in (("a", "b"), ("c",), ("d",))]
        cells = unbag.join_marginals(events, tables, total="total", noise=2.0)
        model = Additive().fit(cells)
        for effect in model.effects():
            level = np.array([effects[effect.name][int(at[1:])] for at in effect.at])
            inside.append(np.abs(effect.effect - level) < 1.96 * effect.error)
    share = np.array([one.mean() for one in inside])
    error = share.std(ddof=1) / np.sqrt(len(share))
    each = (time.perf_counter() - seconds) / simulations
    covered = float(np.concatenate(inside).mean())
    yield ("coverage", "three tables", simulations, 2, covered, error, np.nan, np.nan, each)


def small_world(seed: int) -> tuple[pa.Table, np.ndarray, dict[str, np.ndarray]]:
    """20,000 events with four columns of levels, their scores, and the centred effects."""
    rng = np.random.default_rng(seed)
    columns, effects, score = {}, {}, np.full(20_000, -2.0)
    for name, levels in (("a", 6), ("b", 5), ("c", 12), ("d", 30)):
        code = rng.choice(levels, 20_000, p=rng.dirichlet(np.full(levels, 3.0)))
        effect = rng.normal(0, 0.5, levels)
        effects[name] = effect - effect[code].mean()
        score += effects[name][code]
        columns[name] = pa.array([f"{name}{i}" for i in code])
    return pa.table(columns), score, effects


def summary(runs: list[list[float]]) -> tuple[float, ...]:
    """Mean value, its standard error, and the means of the rest."""
    values = np.array(runs)
    mean, error = values.mean(axis=0), np.nan
    if len(values) > 1:
        error = values[:, 0].std(ddof=1) / np.sqrt(len(values))
    return mean[0], error, *mean[1:]


PARTS = {"adult": adult, "clicks": clicks, "coverage": coverage, "hidden": hidden}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--parts", nargs="+", default=tuple(PARTS), choices=tuple(PARTS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--simulations", type=int, default=50)
    options = parser.parse_args()
    warnings.simplefilter("ignore", unbag.learners.DataWarning)
    rows, console = read_rows(options.out), Console(width=120)
    for part in options.parts:
        runs = {"coverage": options.simulations}.get(part, options.seeds)
        for row in PARTS[part](runs):
            key, numbers = tuple(map(str, row[:4])), row[4:]
            rows[key] = [*(f"{number:.4f}" for number in numbers[:4]), f"{numbers[4]:.1f}"]
            console.print(*key, *rows[key])
            write_rows(options.out, rows)


def read_rows(path: Path | None) -> dict[tuple[str, ...], list[str]]:
    if path is None or not path.exists():
        return {}
    with path.open() as file:
        return {tuple(row[:4]): row[4:] for row in list(csv.reader(file))[1:]}


def write_rows(path: Path | None, rows: dict[tuple[str, ...], list[str]]) -> None:
    if path is None:
        return
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([HEADER, *([*key, *row] for key, row in rows.items())])


if __name__ == "__main__":
    main()
