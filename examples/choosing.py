"""Train a dozen models of Adult from bags of 64, and choose one without a single label.

    python examples/choosing.py

Held-out bags choose by paired differences; other bags judge the choice. Labels are looked at once,
at the very end.
"""

import sys

import numpy as np

import unbag
from unbag.datasets import load_adult

SHORT = "--short" in sys.argv


def main() -> None:
    adult = load_adult()
    bags = unbag.random_bags(adult.X, adult.y, size=64, seed=0)
    learn, held_out = bags.split(0.8, seed=0)
    start = unbag.losses.square.trivial_score(bags.prior)
    make = lambda seed: unbag.models.mlp(adult.X.shape[1], (32,), key=seed, start=start)
    rates = (0.01,) if SHORT else (0.0003, 0.001, 0.003, 0.01)
    runs = [
        run
        for method in (("anchored", "upm") if SHORT else ("anchored", "upm", "likelihood"))
        for run in unbag.sweep(
            make,
            learn,
            method,
            learning_rates=rates,
            epochs=3 if SHORT else 40,
            held_out=held_out,
            patience=15,
        )[0]
    ]
    choice = unbag.choose(runs, held_out, test=(adult.X_test, adult.y_test))
    print(choice)  # the column `labelled` is what the choice did not see

    judge = unbag.random_bags(
        adult.X_test, adult.y_test, size=64, seed=1
    )  # people that neither taught nor chose
    print(unbag.evaluate(choice.model, judge))
    score = np.asarray(choice.model.model(adult.X_test))
    print(
        "the labels, looked at now: log loss "
        f"{unbag.losses.log.value(score, adult.y_test).mean():.4f}"
    )


if __name__ == "__main__":
    main()
