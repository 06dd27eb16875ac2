"""The doors: `evaluate`, `evaluate_labels` and `compare`, and `Evaluator` for bags in pieces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from unbag._rules import broken
from unbag.bags import Bags, Kind, from_rows
from unbag.losses import Loss
from unbag.metrics._estimate import Estimate, Judge, check_level, interval
from unbag.metrics._evaluation import Evaluation, metric_names, summarise, why_no_auc
from unbag.metrics._notes import doubts, warn_of
from unbag.metrics._ranks import auc
from unbag.metrics._scores import Evaluable, Scale, chosen_losses, score_bags, scores_of
from unbag.metrics._sums import NO_SCORES, BagSums, ScoredBags, collect, merge


class Evaluator:
    """Evaluate in pieces: `update` with scores and bags as they come, `merge` with other machines,
    then `compute`.

    What is kept of a bag are a few sums and its scores, so that memory never grows with the
    features. A bag with a name may come in parts.

    Parameters
    ----------
    losses : sequence of Loss or str, optional
        See `evaluate`.
    level : float
        Of the intervals.
    bands : int
        Number of bands in the calibration.
    ordered : bool
        Whether AUC and calibration are wanted. The scores are kept for these, equal ones of a bag
        once: rounded scores need less memory, and without them memory grows with the bags only.

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
            raise broken("There must be at least one band", f"{bands} given", "Ten is usual.")
        self.losses, self.level, self.bands, self.ordered = losses, level, bands, ordered
        self.pieces: list[BagSums] = []
        self.kind: Kind | None = None

    def update(self, score: Any, bags: Bags, *, reference: Any = None) -> Evaluator:
        """Add scores of these bags.

        Parameters
        ----------
        score : array
            Logits, class scores or log rates, one row per instance.
        bags : Bags
            The bags.
        reference : array, optional
            Prediction to centre by, instead of the model's own; made without the labels of these
            bags.
        """
        loss = chosen_losses(self.losses, bags.kind)[0]
        return self.add(ScoredBags.of(score, bags, loss), reference=reference)

    def add(self, scored: ScoredBags, *, reference: Any = None) -> Evaluator:
        """Add bags with their scores, as `update` does.

        Parameters
        ----------
        scored : ScoredBags
            The bags with their scores.
        reference : array, optional
            Prediction to centre by.
        """
        kind = scored.bags.kind
        if self.kind not in (None, kind):
            raise broken(
                "Pieces must be of one kind",
                f"{kind} given after {self.kind}",
                "Evaluate them apart.",
            )
        self.kind = kind
        losses = chosen_losses(self.losses, kind)
        self.pieces.append(collect(scored, losses, reference=reference, ordered=self.ordered))
        return self

    def merge(self, other: Evaluator) -> Evaluator:
        """Add what another evaluator has, which may be nothing."""
        self.kind = self.kind or other.kind
        if (other.losses, other.kind or self.kind) != (self.losses, self.kind):
            raise broken(
                "Evaluators to merge must have the same losses and kind of report",
                f"{other.losses} of {other.kind} given for {self.losses} of {self.kind}",
                "Make them alike.",
            )
        self.ordered = self.ordered and (other.ordered or not other.pieces)
        self.pieces += other.pieces
        return self

    def compute(self) -> Evaluation:
        """All metrics with their intervals."""
        return self._compute("bags")

    def _compute(self, source: Any) -> Evaluation:
        if not self.pieces or self.kind is None:
            raise broken(
                "An evaluation must have bags",
                "none given",
                "Call update with scores and bags first.",
            )
        sums, losses = merge(self.pieces), chosen_losses(self.losses, self.kind)
        if not self.ordered:  # scores of some pieces only would tell of these only
            sums = sums._replace(scores=NO_SCORES)
        return summarise(
            sums, losses, self.kind, level=self.level, bands_wanted=self.bands, source=source
        )


def evaluate(
    model: Evaluable,
    bags: Bags,
    *,
    losses: Sequence[Loss | str] | None = None,
    level: float = 0.95,
    bands: int = 10,
    scale: Scale | None = None,
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
    model : Evaluable
        An estimator, a `Run`, a function from features to scores, or the scores (logits) of the
        instances. Of an estimator whose decisions are no logits of its probabilities (a support
        vector machine) the latter count.
    bags : Bags
        Held-out bags.
    losses : sequence of Loss or str, optional
        By default log loss and Brier score (Poisson and square loss for totals). The first says
        what a score predicts: for totals scores are log rates, and counts when square comes first.
        Losses of one name are numbered: "your loss", "your loss 2".
    level : float
        Of the intervals.
    bands : int
        Number of bands in the calibration.
    scale : {"score", "probability"}, optional
        Say "probability" when you, or your function, give probabilities in place of scores.
    trained_on : Bags, optional
        The bags the model learned from, to make sure that none of them is held out as well.

    Returns
    -------
    Evaluation
        Every metric with its interval.

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
    scored = score_bags(model, bags, losses=losses, scale=scale, trained_on=trained_on)
    evaluation = evaluate_scored(scored, losses=losses, level=level, bands=bands)
    warn_of(evaluation.notes)
    return evaluation


def evaluate_scored(
    scored: ScoredBags,
    *,
    losses: Sequence[Loss | str] | None = None,
    level: float = 0.95,
    bands: int = 10,
) -> Evaluation:
    """Evaluate scores that are there already; bags that are not random get a note, no warning.

    Parameters
    ----------
    scored : ScoredBags
        What `score_bags` made.
    losses : sequence of Loss or str, optional
        Those that `score_bags` got.
    level : float
        Of the intervals.
    bands : int
        Number of bands in the calibration.
    """
    evaluation = Evaluator(losses, level=level, bands=bands).add(scored).compute()
    notes = evaluation.notes + doubts(scored.prediction, scored.bags)
    return replace(evaluation, notes=notes)


def evaluate_labels(
    model: Evaluable,
    y: Any,
    *,
    X: Any = None,
    kind: Kind = "binary",
    losses: Sequence[Loss | str] | None = None,
    level: float = 0.95,
    bands: int = 10,
    scale: Scale | None = None,
) -> Evaluation:
    """The same metrics under the same names from labels, so that the two can be compared.

    Parameters
    ----------
    model : Evaluable
        See `evaluate`.
    y : array
        Labels, counts or class numbers, one per row.
    X : array, sparse matrix or table, optional
        Features, where the model is no array of scores.
    kind : {"binary", "total", "histogram"}
        What the labels are.
    losses : sequence of Loss or str, optional
        See `evaluate`.
    level : float
        Of the intervals.
    bands : int
        Number of bands in the calibration.
    scale : {"score", "probability"}, optional
        See `evaluate`.

    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=20_000)
    >>> y = rng.uniform(size=20_000) < 1 / (1 + np.exp(-x))
    >>> print(evaluate_labels(x, y)["auc"])
    0.7388 [0.7321, 0.7456]
    """
    score = scores_of(model, X, kind, scale, loss=chosen_losses(losses, kind)[0])
    y = np.asarray(y, float)
    if kind == "histogram" and y.ndim == 1:
        y = from_rows(np.arange(len(y)), y=y, kind=kind, classes=score.shape[1]).report
    evaluator = Evaluator(losses, level=level, bands=bands)
    # labels as reference: no residual is left
    evaluator.update(score, Bags(np.arange(len(y)), y, kind), reference=y)
    return evaluator._compute("labels")


def compare(
    model: Evaluable,
    other: Evaluable,
    bags: Bags,
    *,
    losses: Sequence[Loss | str] | None = None,
    level: float = 0.95,
    scale: Scale | None = None,
    trained_on: Bags | None = None,
) -> dict[str, Estimate]:
    """Paired differences between two models, model - other, from the same bags: negative losses
    favour the first.

    Both are centred by the average of their predictions, and what they have in common cancels: the
    interval of a difference is much narrower than those of its two sides.

    Parameters
    ----------
    model, other : Evaluable
        See `evaluate`.
    bags : Bags
        Held-out bags.
    losses : sequence of Loss or str, optional
        See `evaluate`.
    level : float
        Of the intervals.
    scale : {"score", "probability"}, optional
        See `evaluate`.
    trained_on : Bags, optional
        See `evaluate`.

    Returns
    -------
    dict of str to Estimate
        Of each metric the difference; there is no "auc" where it is not defined.

    >>> from unbag import random_bags
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=20_000)
    >>> bags = random_bags(None, rng.uniform(size=20_000) < 1 / (1 + np.exp(-x)), size=100, seed=0)
    >>> print(compare(x, 2 * x, bags)["log_loss"])
    -0.0818 [-0.1453, -0.0183]
    """
    scored = [
        score_bags(one, bags, losses=losses, scale=scale, trained_on=trained_on)
        for one in (model, other)
    ]
    g = np.mean([one.prediction for one in scored], axis=0)
    warn_of(doubts(g, bags))
    chosen = chosen_losses(losses, bags.kind)
    first, second = (collect(one, chosen, reference=g) for one in scored)
    judge = Judge(first)  # both have the same reports and the same reference
    differences = {
        name: judge.expectation(first.T[:, i] - second.T[:, i], first.S[:, i] - second.S[:, i])
        for i, name in enumerate(metric_names(chosen, bags.kind))
    }
    if bags.kind == "binary" and not (why_no_auc(first, judge) or why_no_auc(second, judge)):
        differences["auc"] = auc(first, judge)[0] - auc(second, judge)[0]
    return {name: interval(value, judge, level=level) for name, value in differences.items()}
