"""Expected counts from totals: the Poisson loss, with exposures, and how good it is from totals
alone.

    python examples/counts_poisson.py

The counts are made, so the true rates are known. Bags of 20 report their total; a policy of half a
year has half the claims.
"""

import sys

import numpy as np

import unbag
from unbag.datasets import make_counts

SHORT = "--short" in sys.argv


def main() -> None:
    data = make_counts(20_000, 5_000, seed=0, least_exposure=0.1)
    X, X_test = (
        np.column_stack([data.X, data.offset]),
        np.column_stack([data.X_test, data.offset_test]),
    )
    bags = unbag.random_bags(X, data.y, size=20, seed=0, kind="total")
    held_out = unbag.random_bags(X_test, data.y_test, size=20, seed=1, kind="total")

    start = np.log(bags.prior / np.exp(data.offset).mean())  # the mean count for an exposure of 1
    model = unbag.models.with_offset(unbag.models.linear(data.X.shape[1], key=0, start=start))
    run = unbag.train(
        model, bags, learning_rate=0.02, epochs=5 if SHORT else 60
    )  # totals: Poisson by itself

    print("Poisson loss from 250 held-out totals:", unbag.evaluate(run, held_out)["poisson"])
    loss = unbag.losses.poisson.value
    score = np.asarray(run.model(X_test))
    print(f"from the counts themselves: {loss(score, data.y_test).mean():.4f}")
    print(f"with the true rates: {loss(np.log(data.truth_test), data.y_test).mean():.4f}")


if __name__ == "__main__":
    main()
