"""What a page on a model may report: everything on the way from two tables to an evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from unbag.bags import Bags
from unbag.diagnosis import Diagnosis, Drift
from unbag.learners import Verdict
from unbag.metrics import Estimate, Evaluation
from unbag.selection import Choice
from unbag.tables import TablesReport

# of the metrics that are not called like their key
NAMES = {
    "brier": "Brier score",
    "auc": "AUC",
    "poisson": "Poisson loss",
    "square": "Squared error",
    "gain_over_prior": "Gain over the prior",
}
MEANINGS = {
    "log_loss": "how surprised the model is by what happens; lower is better",
    "brier": "mean squared error of the predicted probability; lower is better",
    "auc": "how often a positive event gets a higher score than a negative one; 0.5 is chance, 1 "
    "is perfect",
    "poisson": "how surprised the model is by the counts, less what no model changes; lower is "
    "better",
    "square": "of the predicted count, less what no model changes, so it may be negative; lower is "
    "better",
    "explained": "share of the differences between cells that the model explains; 1 is perfect, 0 "
    "is the mean rate",
    "log_likelihood": "of a report that the model did not see; higher is better",
    "gain_over_prior": "by how many nats a report that the model did not see is likelier than by "
    "the mean rate",
    "coverage": "share of unseen totals in their 95% intervals; 0.95 is right",
    "mean_prediction": "what the model predicts on average",
    "mean_report": "what the bags reported on average",
    "prediction_minus_report": "0 is right; above 0 the model predicts too much",
}
DECIDES = ("log_loss", "poisson", "brier", "square")


class Facts(NamedTuple):
    """Bags in a few numbers.

    Parameters
    ----------
    bags, events : int
        Bags with a report, and the events in them.
    smallest, size, largest : int, float, int
        The sizes of the bags: least, mean, greatest.
    prior : float or None
        The mean report; None for class histograms, which have several.
    noise : float
        The mean variance of the noise on a bag's count; 0 for exact reports.
    pending, waiting : int
        Bags whose report is still to come, and the events in them, which only serve the means.
    hidden : int
        Bags whose report was suppressed and will not come.
    strata : int
        How many strata there are.
    """

    bags: int
    events: int
    smallest: int
    size: float
    largest: int
    prior: float | None
    noise: float
    pending: int = 0
    strata: int = 1
    waiting: int = 0
    hidden: int = 0


def facts_of(bags: Bags) -> Facts:
    """The numbers of some bags."""
    known, size, prior = bags.reported(), bags.size, None
    if bags.kind != "histogram":
        prior = float(np.average(known.report, weights=known.size))
    due = np.zeros(len(bags), bool)
    if bags.status is not None:
        due = bags.status == "pending"
    return Facts(
        bags=len(known),
        events=len(known.bag),
        smallest=int(size.min()),
        size=float(size.mean()),
        largest=int(size.max()),
        prior=prior,
        noise=float(known.noise_or_zero.mean()),
        pending=int(due.sum()),
        strata=len(np.unique(bags.stratum_or_zero)),
        waiting=int(size[due].sum()),
        hidden=len(bags) - len(known) - int(due.sum()),
    )


class LearningCurve(NamedTuple):
    """Loss by epoch of one run, as held-out bags estimate it.

    Parameters
    ----------
    name : str
        What the run is called.
    loss : sequence of float
        After each epoch.
    epoch : int
        The epoch that was chosen, from 1; 0 for none.
    group : str
        The method.
    chosen : bool
        Whether this run was chosen within its method.
    """

    name: str
    loss: Sequence[float]
    epoch: int = 0
    group: str = ""
    chosen: bool = False

    @property
    def reached(self) -> float:
        """The loss at the chosen epoch; infinite where there is none."""
        if not self.epoch or not np.isfinite(self.loss[self.epoch - 1]):
            return np.inf
        return float(self.loss[self.epoch - 1])


@dataclass(frozen=True)
class Story:
    """All that a page on a model may report; what is missing is left out.

    Parameters
    ----------
    title, line : str
        Of the page.
    tables : TablesReport, optional
        What was read and what was left out.
    facts : Facts, optional
        All bags in a few numbers.
    diagnosis : Diagnosis, optional
        Are the bags random?
    drift : Drift, optional
        The prior over time.
    choice : Choice, optional
        Models compared on held-out bags.
    curves : sequence of LearningCurve
        How they learned.
    evaluation : Evaluation, optional
        Of the model, from bags that it did not learn from.
    predictions : array (instances,), optional
        Probabilities or counts of the evaluated events.
    trained : bool
        Whether a model was learned on the way.
    learned : int
        From how many bags.
    labels : Evaluation, optional
        What labels, revealed in the end, say of the same metrics.
    effects : sequence of Effect
        What each column adds to the score, the strongest first.
    columns : sequence of Identified
        What marginal tables can tell of the effect of each column.
    unit : str
        What has a report: a bag, or a cell of a marginal table.
    verdict : Verdict, optional
        Whether the model is of use, in sentences.
    readings : sequence of (str, str)
        Each column of the events, and how it is read or why it is left out.
    """

    title: str
    line: str = ""
    tables: TablesReport | None = None
    facts: Facts | None = None
    diagnosis: Diagnosis | None = None
    drift: Drift | None = None
    choice: Choice | None = None
    curves: Sequence[LearningCurve] = ()
    evaluation: Evaluation | None = None
    predictions: np.ndarray | None = None
    trained: bool = False
    learned: int = 0
    labels: Evaluation | None = None
    effects: Sequence[Any] = ()
    columns: Sequence[Any] = ()
    unit: str = "bag"
    verdict: Verdict | None = None
    readings: Sequence[tuple[str, str]] = ()

    @property
    def biased(self) -> bool:
        """Whether the bags are known not to be random, or not known to be."""
        return self.diagnosis is not None and not self.diagnosis.random

    @property
    def estimates(self) -> dict[str, Estimate]:
        """The metrics of the evaluation; none where there is no evaluation."""
        return getattr(self.evaluation, "estimates", {})

    @property
    def loss(self) -> str | None:
        """The metric that decides, if there is an evaluation."""
        return next((name for name in DECIDES if name in self.estimates), None)

    @property
    def trivial(self) -> float | None:
        """The log loss of predicting the mean report; None where one number does not tell it."""
        if self.evaluation is None or "log_loss" not in self.estimates:
            return None
        return self.evaluation.trivial_loss


def named(metric: str) -> tuple[str, str]:
    """A metric's name and what it means."""
    name = NAMES.get(metric, metric.replace("_", " ").capitalize())
    return name, MEANINGS.get(metric, "")


def brief(names: Sequence[str]) -> dict[str, str]:
    """Names without what all of them have in common after their first part.

    >>> list(brief(["upm log, rate 0.1, seed 0", "upm log, rate 0.01, seed 0"]).values())
    ['upm log, rate 0.1', 'upm log, rate 0.01']
    """
    parts = [name.split(", ") for name in names]
    if len({len(part) for part in parts}) != 1:
        return dict(zip(names, names, strict=True))
    kept = [i for i in range(len(parts[0])) if i == 0 or len({part[i] for part in parts}) > 1]
    return {name: ", ".join(part[i] for i in kept) for name, part in zip(names, parts, strict=True)}


def curves_of(runs: Sequence[Any], chosen: Sequence[Any] = ()) -> list[LearningCurve]:
    """The learning curves of runs; nothing of those for which no bags were held out.

    Parameters
    ----------
    runs : sequence of Run
        What `train` or `sweep` returned.
    chosen : sequence of Run
        Which of them were chosen.
    """
    names = [f"{r.method} {r.loss}, rate {r.learning_rate:g}, seed {r.seed}" for r in runs]
    short = brief(names)
    own = {id(run) for run in chosen}
    return [
        LearningCurve(
            short[name],
            np.asarray(run.history["held_out"], float).tolist(),
            run.epoch,
            f"{run.method} {run.loss}",
            id(run) in own,
        )
        for name, run in zip(names, runs, strict=True)
        if "held_out" in run.history
    ]
