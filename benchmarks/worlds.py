"""The default on many small made tables, each another one: does a change help in general?

    python benchmarks/worlds.py --out benchmarks/results/worlds.csv [--worlds 40] [--first 0]
    python benchmarks/worlds.py --summary benchmarks/results/worlds.csv [--against before.csv]

World N is drawn from N alone: kind of report, number and size of bags, rate, columns (numbers of
several laws, categories of 2 to 60 levels), which of them matter, how, and how much; in one of six
nothing does. True means are known, so `loss` is the expected loss on fresh rows, `trivial` that of
the mean report and `truth` that of the true means, in nats an event (totals: a counted unit).
Beside the default stand its learners and ridge regression on bag counts. The summary is the mean of
loss less trivial with its standard error over worlds, and of the difference to the default; with
`--against`, of the difference to another file, world by world.
"""

import argparse
import csv
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from learning import loss_of, ridge, slope, trivial_score
from learning_tasks import Task
from rich.console import Console
from scipy.optimize import brentq
from scipy.special import expit, softmax, xlogy

import unbag

KEY = ("world", "kind", "form", "bags", "size", "rate", "strength", "learner")
VALUES = ("loss", "trivial", "truth", "slope")
FORMS = ("lines", "curves", "levels", "pairs", "boxes", "dense")
TESTED, MOST_ROWS = 8000, 24_000


def world(number: int) -> tuple[tuple[Any, ...], Task]:
    """Its description, without the learner, and its bags with rows to test on."""
    rng = np.random.default_rng([number, 154])
    kind = str(rng.choice(["binary", "total", "histogram"], p=[0.65, 0.25, 0.1]))
    form, strength = str(rng.choice(FORMS)), float(rng.choice([0.0, 0.3, 0.5, 0.8, 1.2, 1.8]))
    count = round(np.exp(rng.uniform(np.log(12), np.log(600))))
    size = round(np.exp(rng.uniform(np.log(6), np.log(min(400, MOST_ROWS / count)))))
    rate = float(np.exp(rng.uniform(*np.log([0.1, 50] if kind == "total" else [0.02, 0.5]))))
    n = count * size + TESTED
    table, score = _columns(rng, form, n)
    score *= strength / max(score.std(), 1e-9)
    truth, y = _labels(rng, kind, rate, score)
    split, classes = count * size, {"classes": 3} if kind == "histogram" else {}
    bags = unbag.random_bags(table[:split], y[:split], size=size, seed=number, kind=kind, **classes)
    known = (number, kind, form, count, size, f"{rate:.3g}", strength)
    return known, Task(bags, y[bags.rows], table[split:], truth[split:], known=True)


def _columns(rng: np.random.Generator, form: str, n: int) -> tuple[pa.Table, np.ndarray]:
    """Columns, and a score of them of which the scale means nothing."""
    numbers, categories = int(rng.integers(1, 9)), int(rng.integers(0, 5))
    if form == "dense":
        numbers, categories = int(rng.integers(20, 61)), 0
    laws = [rng.normal, rng.uniform, rng.standard_exponential, lambda size: rng.poisson(3, size)]
    X = [np.asarray(laws[rng.integers(len(laws))](size=n), float) for _ in range(numbers)]
    codes = [_codes(rng, n) for _ in range(categories + (form == "levels" and not categories))]
    table = {f"x{j}": x for j, x in enumerate(X)}
    table |= {f"c{j}": pa.array(code).cast(pa.string()) for j, code in enumerate(codes)}
    Z = [(x - x.mean()) / x.std() for x in X]
    matter = rng.random(numbers) < (1 if form == "dense" else 0.6)
    matter[rng.integers(numbers)] |= form != "levels"
    own = [z * rng.normal() for z, counts in zip(Z, matter, strict=True) if counts]
    if form == "curves":
        own += [np.sin(z * rng.uniform(1, 3)) + rng.normal() * z**2 / 3 for z in Z if len(own)]
    if form == "pairs":
        a, b = (Z[rng.integers(numbers)] for _ in range(2))
        own = [0.5 * part for part in own] + [1.5 * a * b]
    if form == "boxes":
        own = [1.5 * np.prod([z > rng.normal() / 2 for z in Z[:k]], axis=0)
               for k in rng.integers(1, min(numbers, 3) + 1, 4)]  # fmt: skip
    share = 1.5 if form == "levels" else 0.7
    own += [share * rng.normal(size=code.max() + 1)[code] for code in codes if rng.random() < 0.7]
    if form == "levels" or not own:
        own.append(rng.normal(size=codes[0].max() + 1)[codes[0]] * 1.5 if codes else Z[0])
    score = np.clip(np.sum(own, axis=0), *np.quantile(np.sum(own, axis=0), [0.001, 0.999]))
    return pa.table(table), score - score.mean()


def _codes(rng: np.random.Generator, n: int) -> np.ndarray:
    """Levels, evenly or unevenly frequent."""
    levels = round(np.exp(rng.uniform(np.log(2), np.log(60))))
    share = rng.dirichlet(np.full(levels, rng.choice([1.0, 20.0])))
    return rng.choice(levels, n, p=share)


def _labels(
    rng: np.random.Generator, kind: str, rate: float, score: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """True means, and labels; totals scatter more than Poisson's in half of the worlds."""
    if kind == "total":
        truth = np.exp(score) * rate / np.exp(score).mean()
        shape = float(rng.choice([0.5, 2.0, np.inf, np.inf]))
        wild = rng.gamma(shape, 1 / shape, len(score)) if np.isfinite(shape) else 1.0
        return truth, rng.poisson(truth * wild).astype(float)
    if kind == "histogram":
        p = softmax(np.outer(score, [1.0, 0.0, -0.7]) + rng.normal(size=3), axis=1)
        return p, (rng.random(len(p))[:, None] > np.cumsum(p, axis=1)).sum(axis=1)
    level = brentq(lambda level: expit(score + level).mean() - rate, -30, 30)
    truth = expit(score + float(level))  # pyright: ignore[reportArgumentType]
    return truth, (rng.random(len(truth)) < truth).astype(float)


def learned(task: Task) -> dict[str, Any]:
    """Of each learner the scores of rows; all but ridge regression are of one fit."""
    fitted = unbag.fit(task.bags)
    scores = {name: model.scores for name, model in fitted.models.items()}
    return {"default": fitted.scores, **scores, "ridge": ridge(task)}


def row(task: Task, score: np.ndarray) -> list[float]:
    """The values of a row."""
    truth, kind = task.truth, task.bags.kind
    if kind == "binary":
        least = float(-(xlogy(truth, truth) + xlogy(1 - truth, 1 - truth)).mean())
    else:
        least = loss_of(np.log(truth), truth, kind)
    unit = truth.mean() if kind == "total" else 1.0
    losses = loss_of(score, truth, kind), loss_of(trivial_score(task), truth, kind), least
    steep = slope(score, truth) if kind == "binary" else np.nan
    return [*(value / unit for value in losses), steep]


def read(path: Path) -> dict[tuple[str, ...], list[str]]:
    if not path.exists():
        return {}
    with path.open() as file:
        return {tuple(line[: len(KEY)]): line[len(KEY) :] for line in list(csv.reader(file))[1:]}


def write(path: Path, rows: dict[tuple[str, ...], list[str]]) -> None:
    with path.open("w", newline="") as file:
        order = sorted(rows.items(), key=lambda item: (item[0][-1], int(item[0][0])))
        csv.writer(file).writerows([(*KEY, *VALUES), *([*key, *row] for key, row in order)])


def summarise(path: Path, against: Path | None) -> None:
    rows, others = read(path), read(against) if against is not None else {}
    kept = {key: values for key, values in rows.items() if not others or key in others}
    parts = {
        "all": lambda key: True,
        "nothing to learn": lambda key: float(key[6]) == 0,
        "weak (0.3, 0.5)": lambda key: 0 < float(key[6]) < 0.6,
        "strong": lambda key: float(key[6]) > 0.6,
        "below 60 bags": lambda key: int(key[3]) < 60,
        "totals": lambda key: key[1] == "total",
        "histograms": lambda key: key[1] == "histogram",
    }
    console = Console(width=120)
    console.print("learner, worlds, loss less trivial (s.e.), loss less the other's (s.e.)")
    for learner in sorted({key[-1] for key in kept}):
        for name, part in parts.items():
            pairs = []
            for key, value in kept.items():
                if key[-1] == learner and part(key):
                    other = others.get(key) or kept[(*key[:-1], "default")]
                    loss = float(value[0])
                    pairs.append([loss - float(value[1]), loss - float(other[0])])
            if len(pairs) < 2:
                continue
            mean = np.mean(pairs, axis=0)
            error = np.std(pairs, axis=0, ddof=1) / np.sqrt(len(pairs))
            words = [f"{m:+.4f} ({e:.4f})" for m, e in zip(mean, error, strict=True)]
            console.print(f"{learner:10} {name:18} {len(pairs):4}", *words)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--summary", type=Path, help="print the means of this file and stop")
    parser.add_argument("--against", type=Path, help="another file, to compare with")
    parser.add_argument("--worlds", type=int, default=40)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    if options.summary:
        return summarise(options.summary, options.against)
    rows = read(options.out)
    for number in range(options.first, options.first + options.worlds):
        known, task = world(number)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = learned(task)
        for learner, scores in made.items():
            values = [f"{value:.6g}" for value in row(task, np.asarray(scores(task.test), float))]
            Console(width=160).print(*known, learner, *values)
            rows[(*(str(value) for value in known), learner)] = values
        write(options.out, rows)


if __name__ == "__main__":
    main()
