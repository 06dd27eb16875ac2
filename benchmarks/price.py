"""What does learning from bags cost beside learning from labels? A ratio for each learner.

    python benchmarks/price.py [--rows 1000000] [--repeats 3] [--out benchmarks/results/price.csv]

The same rows on both sides, one thread, in CPU seconds, the best of some repeats, interleaved: the
additive learner beside scikit-learn's LogisticRegression (lbfgs, sparse one-hot columns), and trees
beside plain LightGBM with as many rounds in all and the same parameters. Both sides begin with the
table as it is. The network's ratio is in overhead.py.
"""

import argparse
import csv
import time
import warnings
from pathlib import Path

import lightgbm
import numpy as np
import pyarrow as pa
from learning import _one_hot
from rich.console import Console
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

import unbag
from unbag.learners import Additive, Trees
from unbag.learners._trees import TreeColumns

LEVELS, NUMBERS, SIZE = (4, 10, 30, 100, 500), 5, 50
GOALS = {"additive": 3.0, "trees": 1.3}
FOLDS, ROUNDS = 5, 40
HEADER = ("learner", "rows", "bags_seconds", "labels_seconds", "ratio", "goal")


def make(rows, seed=0):
    """A table of categories and numbers, labels, and their bags."""
    rng = np.random.default_rng(seed)
    codes = [rng.integers(0, count, rows) for count in LEVELS]
    X = rng.normal(size=(rows, NUMBERS))
    score = X @ rng.normal(size=NUMBERS) / 2 - 2
    for code, count in zip(codes, LEVELS, strict=True):
        score += 0.4 * rng.normal(size=count)[code]
    columns = {f"x{j}": x for j, x in enumerate(X.T)}
    for j, code in enumerate(codes):
        names = [f"level {i}" for i in range(LEVELS[j])]
        columns[f"c{j}"] = pa.DictionaryArray.from_arrays(pa.array(code, pa.int32()), names)
    table, y = pa.table(columns), (rng.random(rows) < expit(score)).astype(float)
    return unbag.random_bags(table, y, size=SIZE, seed=seed), y


def additive(bags, y):
    Additive().fit(bags)


def logistic(bags, y):
    model = LogisticRegression(C=1.0, max_iter=1000)
    model.fit(_one_hot(bags.X)(bags.X), y)


def trees(bags, y):
    Trees(rounds=ROUNDS, depth=(3,), patience=10**6, folds=FOLDS, threads=1).fit(bags)


def plain(bags, y):
    columns = TreeColumns.of(bags.X)
    params = {"objective": "binary", "num_leaves": 8, "max_depth": 3, "max_bin": 63}
    params |= {"feature_fraction": 0.5, "verbosity": -1, "num_threads": 1, "force_col_wise": True}
    params |= {"max_cat_to_onehot": 10**6, "min_data_in_leaf": 2 * SIZE}
    data = lightgbm.Dataset(columns.matrix(bags.X), y, categorical_feature=columns.categorical)
    lightgbm.train(params, data, FOLDS * (ROUNDS + 5))  # trees look at held-out bags once more


PAIRS = {"additive": (additive, logistic), "trees": (trees, plain)}


def seconds(work, bags, y):
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        work(bags, y)
    return time.process_time() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--learners", nargs="+", default=tuple(PAIRS))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    threadpool_limits(1)
    bags, labels = make(options.rows)
    y, rows = labels[bags.rows], []
    for learner in options.learners:
        runs = [[seconds(work, bags, y) for work in PAIRS[learner]] for _ in range(options.repeats)]
        ours, theirs = np.min(runs, axis=0)
        rows.append([learner, options.rows, f"{ours:.1f}", f"{theirs:.1f}",
                     f"{ours / theirs:.2f}", GOALS[learner]])  # fmt: skip
        Console().print(*rows[-1])
        if options.out:
            with options.out.open("w", newline="") as file:
                csv.writer(file).writerows([HEADER, *rows])


if __name__ == "__main__":
    main()
