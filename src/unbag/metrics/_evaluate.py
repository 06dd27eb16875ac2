"""A model (or its scores) and held-out bags in, an `Evaluation` out: every metric with its
interval, no label used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from unbag._rules import broken
from unbag.bags import Bags, Kind, from_rows
from unbag.losses import Loss, named_loss
from unbag.metrics._estimate import Judge
from unbag.metrics._evaluation import Evaluation
from unbag.metrics._intervals import check_level
from unbag.metrics._leakage import check_apart
from unbag.metrics._randomness import doubts, warn_of
from unbag.metrics._scores import scores_of
from unbag.metrics._summary import summarise
from unbag.metrics._sums import Sums, checked_scores, collect, merge, predict, without_scores

USUAL: dict[Kind, tuple[str, ...]] = {
    "binary": ("log", "square"),
    "histogram": ("cross_entropy", "brier"),
    "total": ("poisson", "square"),
}


class Evaluator:
    """Evaluate in pieces: `update` with scores and bags as they come, `merge` with other machines,
    then `compute`.

    What is kept of a bag are a few sums and its scores, so that memory never grows with the
    features. A bag with a name may come in parts.

    Parameters
    ----------
    losses, level, bands : see `evaluate`.
    ordered : whether AUC and calibration are wanted. The scores are kept for these, equal ones of a
        bag once: rounded scores need less memory, and without them memory grows with the bags only.

    >>> rng = np.random.default_rng(0)
    >>> evaluator = Evaluator()
    >>> for day in range(2):
    ...     x = rng.normal(size=2000)
    ...     y = rng.uniform(size=2000) < 1 / (1 + np.exp(-x))
    ...     from unbag import random_bags
    ...     evaluator = evaluator.update(x, random_bags(None, y, size=10, seed=day))
    >>> print(evaluator.compute()["log_loss"])
    0.6119 [0.5717, 0.6521]
    """

    def __init__(
        self,
        losses: Sequence[Loss | str] | None = None,
        *,
        level: float = 0.95,
        bands: int = 10,
        ordered: bool = True,
    ) -> None:
        check_level(level)
        if bands < 1:
            raise broken("There must be at least one band", f"{bands} came", "Ten is usual.")
        self.losses, self.level, self.bands, self.ordered = losses, level, bands, ordered
        self.pieces: list[Sums] = []
        self.kind: Kind | None = None

    def update(self, score: Any, bags: Bags, *, reference: Any = None) -> Evaluator:
        """Add scores of these bags."""
        if self.kind not in (None, bags.kind):
            raise broken(
                "Pieces must be of one kind",
                f"{bags.kind} came after {self.kind}",
                "Evaluate them apart.",
            )
        self.kind = bags.kind
        self.pieces.append(
            collect(score, bags, self._losses(), reference=reference, ordered=self.ordered)
        )
        return self

    def merge(self, other: Evaluator) -> Evaluator:
        """Add what another evaluator has seen, which may be nothing."""
        self.kind = self.kind or other.kind
        if (other.losses, other.kind or self.kind) != (self.losses, self.kind):
            raise broken(
                "Evaluators to merge must have the same losses and kind of report",
                f"{other.losses} of {other.kind} came for {self.losses} of {self.kind}",
                "Make them alike.",
            )
        self.ordered = self.ordered and (other.ordered or not other.pieces)
        self.pieces += other.pieces
        return self

    def compute(self) -> Evaluation:
        """All metrics with their intervals."""
        sums = self.sums()
        return summarise(
            sums, Judge(sums), self._losses(), self.kind or "binary", self.level, self.bands, "bags"
        )

    def sums(self) -> Sums:
        """All pieces as one table."""
        if not self.pieces:
            raise broken(
                "An evaluation must have bags",
                "none came",
                "Call update with scores and bags first.",
            )
        return merge(
            self.pieces if self.ordered else [without_scores(piece) for piece in self.pieces]
        )

    def _losses(self) -> list[Loss]:
        return chosen_losses(self.losses, self.kind or "binary")


def chosen_losses(losses: Sequence[Loss | str] | None, kind: Kind) -> list[Loss]:
    """The losses asked for, or the usual ones of this kind of report."""
    return [named_loss(loss) if isinstance(loss, str) else loss for loss in losses or USUAL[kind]]


def evaluate(
    model: Any,
    bags: Bags,
    *,
    losses: Sequence[Loss | str] | None = None,
    level: float = 0.95,
    bands: int = 10,
    scale: Literal["score", "probability"] | None = None,
    trained_on: Bags | None = None,
) -> Evaluation:
    """How good is a model, from held-out bags alone: log loss, Brier score, AUC, calibration, each
    with an interval.

    Unbiased, because the reports of these bags never touched the model; no label of an instance is
    used. The bags must be random, within their strata if they have any: where mean predictions
    differ between bags beyond doubt, there is a warning (BagsNotRandom) and a note; `diagnose`
    tells more. Events whose report is pending or was suppressed for its size serve for the means.
    Intervals are Student's t from the spread between bags.

    Parameters
    ----------
    model : an estimator, a `Run`, a function from features to scores, or the scores (logits) of the
        instances. Of an estimator whose decisions are no logits of its probabilities (a support
        vector machine) the latter count.
    bags : held-out bags.
    losses : of `unbag.losses`, or names; by default log loss and Brier score (Poisson and square
        loss for totals). The first says what a score predicts: for totals scores are log rates, and
        counts when square comes first. Losses of one name are numbered: "your loss", "your loss 2".
    level : of the intervals. bands : number of bands in the calibration.
    scale : say "probability" when you, or your function, give probabilities in place of scores.
    trained_on : the bags the model learned from, to make sure that none of them is held out as
        well.

    >>> from unbag import random_bags
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=20_000)
    >>> y = rng.uniform(size=20_000) < 1 / (1 + np.exp(-x))
    >>> print(evaluate(x, random_bags(None, y, size=100, seed=0)))
    from 200 bags, 20,000 rows; intervals of 95%
      log_loss                  0.6235  [0.5599, 0.6871]  worth 149 labelled rows
      brier                     0.2191  [0.1924, 0.2458]  worth 161 labelled rows
      auc                       0.6997  [0.6255, 0.7739]  worth 174 labelled rows
      mean_prediction           0.5011  [0.4981, 0.5041]
      mean_report               0.4988  [0.4921, 0.5055]  worth 21,466 labelled rows
      prediction_minus_report   0.0023  [-0.0039, 0.0085]
    """
    found = evaluate_and_note(
        model, bags, losses=losses, level=level, bands=bands, scale=scale, trained_on=trained_on
    )
    warn_of(found.notes)
    return found


def evaluate_and_note(
    model: Any,
    bags: Bags,
    *,
    losses: Any = None,
    scale: Any = None,
    trained_on: Bags | None = None,
    **options: Any,
) -> Evaluation:
    """The same without a warning, for those who print the notes."""
    check_apart(model, bags, trained_on)
    first = chosen_losses(losses, bags.kind)[0]
    score = scores_of(model, bags.X, bags.kind, scale, loss=first)
    found = Evaluator(losses, **options).update(score, bags).compute()
    return replace(
        found,
        notes=found.notes + doubts(predict(checked_scores(score, bags), first, bags.kind), bags),
    )


def evaluate_labels(
    model: Any,
    y: Any,
    *,
    X: Any = None,
    kind: Kind = "binary",
    losses: Sequence[Loss | str] | None = None,
    level: float = 0.95,
    bands: int = 10,
    scale: Literal["score", "probability"] | None = None,
) -> Evaluation:
    """The same metrics under the same names from labels, so that the two can be compared.

    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=20_000)
    >>> y = rng.uniform(size=20_000) < 1 / (1 + np.exp(-x))
    >>> found = evaluate_labels(x, y)
    >>> print(found["auc"])
    0.7388 [0.7321, 0.7456]
    """
    score = scores_of(model, X, kind, scale, loss=chosen_losses(losses, kind)[0])
    y = np.asarray(y, float)
    if kind == "histogram" and y.ndim == 1:
        y = from_rows(np.arange(len(y)), y=y, kind=kind, classes=score.shape[1]).report
    evaluator = Evaluator(losses, level=level, bands=bands)
    evaluator.update(
        score, Bags(np.arange(len(y)), y, kind), reference=y
    )  # labels as reference: no residual is left
    sums = evaluator.sums()
    return summarise(sums, Judge(sums), evaluator._losses(), kind, level, bands, "labels")
