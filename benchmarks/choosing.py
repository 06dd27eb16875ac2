"""What does choosing from bags alone cost? Method, learning rate and epoch, chosen by held-out bags
and by labels.

    UNBAG_DATA=... python benchmarks/choosing.py [--data adult gaussian] [--out
    benchmarks/results/choosing.csv]

A fifth of the bags is held out, six methods x 4 learning rates learn from the others, networks
start at the trivial predictor. For every seed the file gets the test log loss of

    chosen          rate by `unbag.choose` and epoch by the trainer, within one method or over
    several (auto, all six) best on test    the lowest over rates and epochs, by labels that nobody
    has log estimate    naive: the lowest loss that `unbag.evaluate` estimates, over rates and
    epochs square estimate naive: the same with the square loss

Rows that are in the file already are not made again. MNIST needs its files and is left out, with a
word, without them.
"""

import argparse
import csv
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import track

from unbag import choose, losses, models, random_bags
from unbag.datasets import load_adult, load_mnist, make_gaussian, make_heavy_tailed
from unbag.estimators._network import AUTO, RATES
from unbag.metrics import judge_all, predict
from unbag.training import _sweep
from unbag.training._validation import Validation

OUT = Path(__file__).parent / "results" / "choosing.csv"
METHODS = {name: (name, None) for name in AUTO} | {
    "anchored:log": ("anchored", "log"),
    "easy": ("easy", None),
}
OVER = {"auto": tuple(AUTO), "all six": tuple(METHODS)}
NAIVE = {"log estimate": losses.log, "square estimate": losses.square}
HEAD = [
    "data",
    "k",
    "seed",
    "held_out_bags",
    "method",
    "rule",
    "test_log_loss",
    "picked",
    "rate",
    "epoch",
]


class Trial(NamedTuple):
    """load : from a seed to labelled data."""

    load: object
    sizes: tuple
    seeds: int
    epochs: int


TRIALS = {
    "gaussian": Trial(lambda seed: make_gaussian(seed=seed), (16, 64, 256), 6, 40),
    "heavy-tailed": Trial(lambda seed: make_heavy_tailed(seed=seed), (16, 64, 256), 6, 40),
    "adult": Trial(lambda seed: load_adult(), (16, 64, 256, 512), 6, 40),
    "mnist": Trial(lambda seed: load_mnist(), (64, 256), 4, 10),
}


class Looker(Validation):
    """Looks at what naive rules look at, too: plain estimates, where each model is centred by
    itself."""

    def _from_bags(self, score, seed):
        plain = {
            name: [_plain(one, self.held_out[seed], loss) for one in score]
            for name, loss in NAIVE.items()
        }
        return super()._from_bags(score, seed) | {
            name: np.array(values) for name, values in plain.items()
        }


def _plain(score, bags, loss):
    if not np.isfinite(score).all():
        return np.nan
    return judge_all([score], bags, predict(score, loss, bags.kind), loss).value[0]


def learn(data, k, seed, epochs):
    """The runs of every method, and the held-out bags."""
    training, held_out = random_bags(data.X, data.y, size=k, seed=seed).split(0.8, seed=seed)
    start = losses.log.trivial_score(training.prior)
    make = lambda seed: models.mlp(data.X.shape[1], (32,), key=seed, start=start)
    options = {"learning_rates": RATES, "seeds": (seed,), "epochs": epochs, "held_out": held_out}
    test = (data.X_test, data.y_test)
    runs = {
        name: _sweep.sweep(make, training, method, loss, test=test, **options)[0]
        for name, (method, loss) in METHODS.items()
    }
    return (
        runs,
        held_out,
        float(losses.log.value(np.full(len(data.y_test), start), data.y_test).mean()),
    )


def told(runs, held_out, trivial):
    """(method, rule, test loss, picked method, rate, epoch) of everything that is compared."""
    yield "trivial", "trivial", trivial, "", "", ""
    for name, among in ({name: (name,) for name in METHODS} | OVER).items():
        candidates = [(method, run) for method in among for run in runs[method]]
        chosen = choose([run for _, run in candidates], held_out).model
        picked = next(method for method, run in candidates if run is chosen)
        yield name, "chosen", *_at(picked, chosen, chosen.epoch - 1)
        for rule in ("best on test", *NAIVE):
            yield name, rule, *_lowest(candidates, "test_loss" if rule == "best on test" else rule)


def _at(method, run, epoch):
    return run.history["test_loss"][epoch], method, run.learning_rate, epoch + 1


def _lowest(candidates, what):
    """The run and the epoch where something seen is lowest."""
    seen = np.nan_to_num(
        np.array([run.history[what] for _, run in candidates]), nan=np.inf, posinf=np.inf
    )
    which, epoch = np.unravel_index(np.argmin(seen), seen.shape)
    return _at(*candidates[which], int(epoch))


def make_rows(name, k, seed):
    """The rows of one data set, bag size and seed."""
    trial = TRIALS[name]
    runs, held_out, trivial = learn(trial.load(seed), k, seed, trial.epochs)
    for method, rule, loss, picked, rate, epoch in told(runs, held_out, trivial):
        yield [name, k, seed, len(held_out), method, rule, f"{loss:.5f}", picked, rate, epoch]


def read(path):
    """The rows of a file, as dicts; none where there is no file."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def run_missing(names, path):
    """Make what the file lacks and add it, seed by seed."""
    there = {(row["data"], int(row["k"]), int(row["seed"])) for row in read(path)}
    jobs = [
        (name, k, seed)
        for name in names
        for k in TRIALS[name].sizes
        for seed in range(TRIALS[name].seeds)
    ]
    for job in track(
        [job for job in jobs if job not in there], console=Console(stderr=True), transient=True
    ):
        try:
            rows = list(make_rows(*job))
        except FileNotFoundError as error:
            Console(stderr=True).print(f"{job[0]} is left out: {error}")
            continue
        new = not path.exists()
        with path.open("a", newline="") as file:
            csv.writer(file).writerows([HEAD, *rows] if new else rows)


def losses_of(rows):
    """Test losses over seeds by (data, k), then by (method, rule); and the number of held-out bags
    by (data, k)."""
    found, bags = defaultdict(lambda: defaultdict(list)), {}
    for row in sorted(rows, key=lambda row: (row["data"], int(row["k"]), int(row["seed"]))):
        setting = row["data"], int(row["k"])
        found[setting][row["method"], row["rule"]].append(float(row["test_log_loss"]))
        bags[setting] = int(row["held_out_bags"])
    return found, bags


def mean_and_error(values):
    """Mean and standard error over seeds."""
    values = np.asarray(values)
    return values.mean(), values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan


def cell(values):
    return "{:.4f} ± {:.4f}".format(*mean_and_error(values))


def behind(found, choice, rule="chosen"):
    """The best single method of those chosen among, and by how much the choice is behind it (paired
    over seeds)."""
    best = min(OVER[choice], key=lambda method: np.mean(found[method, rule]))
    return best, *mean_and_error(np.subtract(found[choice, "chosen"], found[best, rule]))


def by_method(found, bags):
    """Test log loss of what bags choose within each method and over methods."""
    columns = [*METHODS, *OVER]
    yield ["data", "k", "held-out bags", *columns, "best on test, all six", "trivial"]
    for setting, of in found.items():
        cells = [cell(of[column, "chosen"]) for column in columns]
        yield [setting[0], setting[1], bags[setting], *cells, cell(of["all six", "best on test"]),
               f"{np.mean(of['trivial', 'trivial']):.4f}"]  # fmt: skip


def on_test(found, bags):
    """The best on test within each method, rate and epoch by labels."""
    yield ["data", "k", *METHODS]
    for (data, k), of in found.items():
        yield [data, k, *(cell(of[method, "best on test"]) for method in METHODS)]


def verdicts(found, bags):
    """Whether the choice is within one standard error of the best single method."""
    yield [
        "data",
        "k",
        "held-out bags",
        "among",
        "best single method",
        "choice behind it",
        "verdict",
    ]
    for setting, of in found.items():
        for choice in OVER:
            best, gap, error = behind(of, choice)
            reached = "reached" if gap <= error else "missed"
            verdict = reached if bags[setting] >= 50 else f"{reached}, few bags"
            yield [*setting, bags[setting], choice, best, f"{gap:+.4f} ± {error:.4f}", verdict]


def naive(found, bags):
    """Mean and worst seed of what rules choose, Adult."""
    rules = ["chosen", *NAIVE, "best on test"]
    yield ["k", "method", *rules]
    for (data, k), of in found.items():
        for method in [*METHODS, "all six"] if data == "adult" else []:
            yield [
                k,
                method,
                *(f"{np.mean(of[method, r]):.3f} ({np.max(of[method, r]):.2f})" for r in rules),
            ]


def show(rows):
    """Print the tables in Markdown, as they stand in docs/choosing.md."""
    found, bags = losses_of(rows)
    for table in (verdicts, by_method, on_test, naive):
        head, *lines = table(found, bags)
        print(f"\n{table.__doc__}\n")
        print(
            "\n".join(
                "| " + " | ".join(map(str, line)) + " |"
                for line in (head, ["---"] * len(head), *lines)
            )
        )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", nargs="+", choices=TRIALS, default=list(TRIALS))
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    _sweep.Validation = Looker
    run_missing(options.data, options.out)
    show(read(options.out))


if __name__ == "__main__":
    main()
