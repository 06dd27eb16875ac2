"""What a page on a model may tell: everything that was found on the way from two tables to an
evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import Any, NamedTuple

import numpy as np

from unbag.bags import Bags
from unbag.diagnosis import Diagnosis
from unbag.diagnosis._drift import Drift
from unbag.metrics import Evaluation
from unbag.selection import Choice
from unbag.tables._summary import TablesReport

MEANINGS = {
    "log_loss": ("Log loss", "how surprised the model is by what happens; lower is better"),
    "brier": ("Brier score", "mean squared error of the predicted probability; lower is better"),
    "auc": (
        "AUC",
        (
            "how often a positive event gets a higher score than a negative one; 0.5 is chance, 1 "
            "is perfect"
        ),
    ),
    "poisson": (
        "Poisson loss",
        "how surprised the model is by the counts, less what no model changes; lower is better",
    ),
    "square": (
        "Squared error",
        (
            "of the predicted count, less what no model changes, so it may be negative; lower is "
            "better"
        ),
    ),
    "mean_prediction": ("Mean prediction", "what the model predicts on average"),
    "mean_report": ("Mean report", "what the bags reported on average"),
    "prediction_minus_report": (
        "Prediction minus report",
        "0 is right; above 0 the model predicts too much",
    ),
}


class Facts(NamedTuple):
    """Bags in a few numbers.

    events : of bags with a report. waiting : of bags without, which only serve the means.
    noise : the mean variance of the noise on a bag's count; 0 for exact reports.
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


def facts_of(bags: Bags) -> Facts:
    """The numbers of some bags; the prior of class histograms, which have several, is left out."""
    seen = bags.reported()
    prior = None if bags.kind == "histogram" else float(np.average(seen.report, weights=seen.size))
    size, noise = bags.size, 0.0 if seen.noise is None else float(np.mean(seen.noise))
    pending = len(bags) - len(seen)
    strata = 1 if bags.stratum is None else len(np.unique(bags.stratum))
    few = (len(seen), len(seen.bag), int(size.min()), float(size.mean()), int(size.max()))
    return Facts(*few, prior, noise, pending, strata, len(bags.bag) - len(seen.bag))


class Curve(NamedTuple):
    """Loss by epoch of one run, as held-out bags estimate it, and the epoch that was chosen (from
    1; 0 for none).

    group : the method. chosen : whether this run was chosen within its method.
    """

    name: str
    loss: Sequence[float]
    epoch: int = 0
    group: str = ""
    chosen: bool = False


@dataclass(frozen=True)
class Story:
    """All that a page on a model may tell; what is missing is left out.

    Parameters
    ----------
    title, line : of the page.
    told : what came in and what was left out. facts : all bags in a few numbers.
    diagnosis : are the bags random? drift : the prior over time.
    choice : models compared on held-out bags. curves : how they learned.
    evaluation : of the model, from bags that it did not learn from.
    predictions : probabilities or counts of the evaluated events.
    trained : whether a model was learned on the way. learned : from how many bags.
    labels : what labels, revealed in the end, say of the same metrics.
    """

    title: str
    line: str = ""
    told: TablesReport | None = None
    facts: Facts | None = None
    diagnosis: Diagnosis | None = None
    drift: Drift | None = None
    choice: Choice | None = None
    curves: Sequence[Curve] = ()
    evaluation: Evaluation | None = None
    predictions: np.ndarray | None = None
    trained: bool = False
    learned: int = 0
    labels: Evaluation | None = None

    @property
    def loss(self) -> str | None:
        """The metric that decides, if there is an evaluation."""
        names = self.evaluation.estimates if self.evaluation else {}
        return next(
            (name for name in ("log_loss", "poisson", "brier", "square") if name in names), None
        )

    @property
    def trivial(self) -> float | None:
        """The loss of predicting the mean report for every event; None where one number does not
        tell it."""
        return None if self.evaluation is None else trivial_loss(self.evaluation)


def trivial_loss(evaluation: Evaluation) -> float | None:
    """Log loss of the mean report p: -p log p - (1 - p) log(1 - p).

    >>> from types import SimpleNamespace
    >>> half = SimpleNamespace(estimates={"log_loss": 0, "mean_report": SimpleNamespace(value=0.5)})
    >>> round(trivial_loss(half), 4)
    0.6931
    """
    found = evaluation.estimates
    if "log_loss" not in found or "mean_report" not in found:
        return None
    p = found["mean_report"].value
    return -p * log(p) - (1 - p) * log(1 - p) if 0 < p < 1 else None


def named(metric: str) -> tuple[str, str]:
    """A metric's name and what it means."""
    return MEANINGS.get(metric, (metric.replace("_", " ").capitalize(), ""))


def names_of(runs: Sequence[Any]) -> list[str]:
    """What runs are called, without what they have in common.

    >>> from types import SimpleNamespace as Run
    >>> names_of([Run(method="upm", loss="log", learning_rate=r, seed=0) for r in (0.1, 0.01)])
    ['upm log, rate 0.1', 'upm log, rate 0.01']
    """
    told = [(f"{r.method} {r.loss}", f"rate {r.learning_rate:g}", f"seed {r.seed}") for r in runs]
    kept = [0, *(i for i in (1, 2) if len({name[i] for name in told}) > 1)]
    return [", ".join(name[i] for i in kept) for name in told]


def curves_of(runs: Sequence[Any], chosen: Sequence[Any] = ()) -> list[Curve]:
    """The curves of runs, of which some were chosen; nothing where no bags were held out."""
    told = [
        (name, run)
        for name, run in zip(names_of(runs), runs, strict=True)
        if "held_out" in run.history
    ]
    loss = lambda run: np.asarray(run.history["held_out"], float).tolist()
    own = lambda run: any(run is one for one in chosen)
    return [
        Curve(name, loss(run), run.epoch, f"{run.method} {run.loss}", own(run))
        for name, run in told
    ]
