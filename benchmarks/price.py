"""What does learning from bags cost beside learning from labels? A ratio for each learner.

    python benchmarks/price.py [--rows 1000000] [--repeats 3] [--out benchmarks/results/price.csv]

The same rows on both sides, one thread, in CPU seconds, the best of some repeats, interleaved: the
additive learner beside scikit-learn's LogisticRegression (lbfgs, sparse one-hot columns), also with
a category of 20,000 levels, and trees beside plain LightGBM with as many rounds in all and the same
parameters. Both sides begin with the table as it is. A network epoch (20 numbers, 32 hidden units,
batches of 4,096 rows) is measured beside the epoch of the same network on labels, and beside a
plain PyTorch loop on labels, without compiling.
overhead.py compares single steps.
"""

import argparse
import csv
import time
import warnings
from functools import partial
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

LEVELS, MANY, NUMBERS, SIZE = (4, 10, 30, 100, 500), (4, 10, 30, 100, 20_000), 5, 50
WIDTH, HIDDEN, BATCH = 20, 32, 4096
GOALS = {"additive": 3.0, "additive, 20,000 levels": 3.0, "trees": 1.3, "network": 1.02}
FOLDS, ROUNDS = 5, 40
HEADER = ("learner", "rows", "bags_seconds", "labels_seconds", "ratio", "goal")


def make(rows, levels, seed=0):
    """A table of categories and numbers in bags, and the labels of its rows."""
    rng = np.random.default_rng(seed)
    codes = [rng.integers(0, count, rows) for count in levels]
    X = rng.normal(size=(rows, NUMBERS))
    score = X @ rng.normal(size=NUMBERS) / 2 - 2
    for code, count in zip(codes, levels, strict=True):
        score += 0.4 * rng.normal(size=count)[code]
    columns = {f"x{j}": x for j, x in enumerate(X.T)}
    for j, code in enumerate(codes):
        names = [f"level {i}" for i in range(levels[j])]
        columns[f"c{j}"] = pa.DictionaryArray.from_arrays(pa.array(code, pa.int32()), names)
    table, y = pa.table(columns), (rng.random(rows) < expit(score)).astype(float)
    bags = unbag.random_bags(table, y, size=SIZE, seed=seed)
    return bags, y[bags.rows]


def make_matrix(rows, seed=0):
    """A matrix of numbers in bags, and the labels of its rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, WIDTH)).astype(np.float32)
    y = (rng.random(rows) < expit(X @ rng.normal(size=WIDTH) / 4 - 1)).astype(float)
    bags = unbag.random_bags(X, y, size=SIZE, seed=seed)
    return bags, y[bags.rows]


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


def network(bags, y, epochs):
    model = unbag.models.mlp(WIDTH, (HIDDEN,), key=0)
    unbag.train(model, bags, "upm", "log", epochs=epochs, batch=BATCH)


def supervised(bags, y, epochs):
    model = unbag.models.mlp(WIDTH, (HIDDEN,), key=0)
    ones = unbag.Bags(np.arange(len(y)), y, X=bags.X)
    unbag.train(model, ones, "labels", "log", epochs=epochs, batch=BATCH)


def pytorch(bags, y, epochs):
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    layers = (torch.nn.Linear(WIDTH, HIDDEN), torch.nn.ReLU(), torch.nn.Linear(HIDDEN, 1))
    model = torch.nn.Sequential(*layers)
    adam = torch.optim.Adam(model.parameters(), lr=3e-3)
    X, label = torch.as_tensor(bags.X), torch.as_tensor(y, dtype=torch.float32)
    for _ in range(epochs):
        for rows in torch.randperm(len(y)).split(BATCH):
            score = model(X[rows])[:, 0]
            value = torch.nn.functional.binary_cross_entropy_with_logits(score, label[rows])
            adam.zero_grad()
            value.backward()
            adam.step()


def of_epoch(work, bags, y):
    """The seconds of one epoch, from four of them less two; the first call compiles."""
    _, two, four = (seconds(work, bags, y, epochs) for epochs in (1, 2, 4))
    return (four - two) / 2


def seconds(work, *given):
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        work(*given)
    return time.process_time() - start


PAIRS = {
    "additive": (partial(make, levels=LEVELS), seconds, additive, logistic),
    "additive, 20,000 levels": (partial(make, levels=MANY), seconds, additive, logistic),
    "trees": (partial(make, levels=LEVELS), seconds, trees, plain),
    "network": (make_matrix, of_epoch, network, supervised),
    "network, PyTorch": (make_matrix, of_epoch, network, pytorch),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--learners", nargs="+", default=tuple(PAIRS))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    threadpool_limits(1)
    rows = []
    for learner in options.learners:
        make_bags, measured, *works = PAIRS[learner]
        bags, y = make_bags(options.rows)
        runs = [[measured(work, bags, y) for work in works] for _ in range(options.repeats)]
        ours, theirs = np.min(runs, axis=0)
        rows.append([learner, options.rows, f"{ours:.1f}", f"{theirs:.1f}",
                     f"{ours / theirs:.2f}", GOALS.get(learner, "")])  # fmt: skip
        Console().print(*rows[-1])
        if options.out:
            with options.out.open("w", newline="") as file:
                csv.writer(file).writerows([HEADER, *rows])


if __name__ == "__main__":
    main()
