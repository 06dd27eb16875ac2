"""Two models and held-out bags in, paired differences with intervals out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from unbag.bags import Bags
from unbag.losses import Loss
from unbag.metrics._estimate import Judge
from unbag.metrics._evaluate import chosen_losses
from unbag.metrics._intervals import Estimate, interval
from unbag.metrics._leakage import check_apart
from unbag.metrics._randomness import doubts, warn_of
from unbag.metrics._ranks import auc
from unbag.metrics._scores import scores_of
from unbag.metrics._summary import names_of, why_no_auc
from unbag.metrics._sums import collect, predict


def compare(
    model: Any,
    other: Any,
    bags: Bags,
    *,
    losses: Sequence[Loss | str] | None = None,
    level: float = 0.95,
    scale: Literal["score", "probability"] | None = None,
    trained_on: Bags | None = None,
) -> dict[str, Estimate]:
    """Paired differences between two models, model - other, from the same bags: negative losses
    favour the first.

    Both are centred by the average of their predictions, and what they have in common cancels: the
    interval of a difference is much narrower than those of its two sides. Arguments are those of
    `evaluate`; there is no "auc" where it is not defined.

    >>> from unbag import random_bags
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=20_000)
    >>> bags = random_bags(None, rng.uniform(size=20_000) < 1 / (1 + np.exp(-x)), size=100, seed=0)
    >>> print(compare(x, 2 * x, bags)["log_loss"])
    -0.0818 [-0.1453, -0.0183]
    """
    for one in (model, other):
        check_apart(one, bags, trained_on)
    chosen = chosen_losses(losses, bags.kind)
    scores = [scores_of(m, bags.X, bags.kind, scale, loss=chosen[0]) for m in (model, other)]
    g = np.mean([predict(score, chosen[0], bags.kind) for score in scores], axis=0)
    warn_of(doubts(g, bags))
    first, second = (collect(score, bags, chosen, reference=g) for score in scores)
    judge = Judge(first)
    found = {
        name: judge.expectation(first.T[:, i] - second.T[:, i], first.S[:, i] - second.S[:, i])
        for i, name in enumerate(names_of(chosen, bags.kind))
    }
    if bags.kind == "binary" and not (why_no_auc(first, judge) or why_no_auc(second, judge)):
        found["auc"] = auc(first, judge)[0] - auc(second, judge)[0]
    return {name: interval(value, judge, level=level) for name, value in found.items()}
