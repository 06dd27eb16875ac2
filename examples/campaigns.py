"""Bags that follow campaigns: what goes wrong, how it is found without a label, and what repairs
it.

    python examples/campaigns.py

Made data, so that the true loss is known. More in docs/campaigns.md.
"""

import sys
import warnings

import numpy as np

import unbag
from unbag.datasets import make_campaigns

SHORT = "--short" in sys.argv
warnings.simplefilter(
    "ignore", unbag.BagsNotRandom
)  # `evaluate` warns of the bags that follow campaigns


def tell(title: str, bags: unbag.Bags, score: np.ndarray, y: np.ndarray) -> None:
    """What the bags say of these scores, and what the labels say."""
    found = unbag.evaluate(score[bags.rows], bags, losses=["log"])["log_loss"]
    truth = unbag.losses.log.value(score[bags.rows], y[bags.rows]).mean()
    print(f"\n{title}\n  log loss from bags {found}, from the hidden labels {truth:.3f}")
    print(f"  {unbag.diagnose(bags).verdict}")


def main() -> None:
    n = 40_000
    data = make_campaigns(n, 1, seed=3, campaigns=20, feature_effect=0.2, label_effect=0.2)
    order = np.argsort(data.campaign, kind="stable")
    X, y, campaign = data.X[order], data.y[order], data.campaign[order]
    score = (
        np.log(data.truth[order] / (1 - data.truth[order])) / 2
    )  # a model that is half as sure as it should be

    tell(
        "Bags of 256 in the order of the campaigns",
        unbag.from_rows(np.arange(n) // 256, y=y, X=X),
        score,
        y,
    )
    tell(
        "Random bags of 256 in each",
        unbag.random_bags(X, y, size=256, seed=7, stratum=campaign),
        score,
        y,
    )

    whole = unbag.from_rows(
        campaign, y=y, X=X
    )  # nothing can be cut: compare bags with their own prediction
    start = unbag.losses.log.trivial_score(whole.prior)
    model = unbag.models.linear(X.shape[1], key=0, start=start)
    run = unbag.train(model, whole, "likelihood", learning_rate=0.02, epochs=5 if SHORT else 20)
    loss = unbag.losses.log.value(np.asarray(run.model(X)), y).mean()
    trivial = unbag.losses.log.value(np.full(n, start), y).mean()
    print(
        f"\nOne report for each campaign, likelihood: log loss {loss:.3f} (the same for everyone: "
        f"{trivial:.3f})"
    )


if __name__ == "__main__":
    main()
