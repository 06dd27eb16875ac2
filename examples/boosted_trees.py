"""Boosted trees of Adult from bags of 64 people, beside a linear model of the same bags. No label
is used to learn.

    python examples/boosted_trees.py

Needs LightGBM: pip install '.[boosting]' in the clone. A fifth of the bags chooses the number of
rounds; labels of test people are looked at once, at the very end.
"""

import sys

import numpy as np

import unbag
from unbag.boosting import fit_lightgbm
from unbag.datasets import load_adult

SHORT = "--short" in sys.argv


def main() -> None:
    adult = load_adult()
    bags = unbag.random_bags(
        adult.X, adult.y, size=64, seed=0
    )  # of 32,512 labels only 508 shares are kept

    trees = fit_lightgbm(bags, rounds=30 if SHORT else 600, num_threads=1)
    print(trees)

    linear = unbag.BagClassifier(hidden=(), epochs=3 if SHORT else 60)
    linear.fit(bags.X, bags.report[bags.bag], bag=bags.bag)

    log_loss = unbag.losses.log.value
    probability = linear.predict_proba(adult.X_test)[:, 1]
    print(f"test log loss: trees {log_loss(trees.scores(adult.X_test), adult.y_test).mean():.3f}")
    print(
        "test log loss: linear "
        f"{log_loss(np.log(probability / (1 - probability)), adult.y_test).mean():.3f}"
    )
    print("test log loss: the same for everyone 0.547")


if __name__ == "__main__":
    main()
