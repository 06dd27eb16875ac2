"""The one table of methods: what each makes of reports, its usual losses, and what it needs.

Training, PyTorch, boosting, SQL, the lab and the command line read this table; none keeps a list of
its own.

| method | objective | bags | noise |
|---|---|---|---|
| anchored, upm, easy | signed weights, linear in the loss components | random | unbiased under it |
| matching | loss of a bag's mean prediction | any | only reports in the loss's range |
| likelihood | law of a bag's count under the model | any | part of the law |
| labels | the ordinary loss | of one | none |
| those of `unbag.objectives` | a function of the scores; of other papers | see there | see there |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from unbag._rules import broken
from unbag.bags import Kind
from unbag.losses import LOSSES, PROPER, Loss

Method = Literal[
    "anchored", "upm", "easy", "matching", "likelihood", "labels",
    "debiased_square", "centred_square", "clipped_square", "moments", "llp_fc", "llp_vat", "mixbag",
]  # fmt: skip

BOUNDED: Mapping[Kind, str] = {"binary": "square", "total": "poisson", "histogram": "brier"}
"""Losses of probabilities that no sure mistake can blow up; for counts there is none."""


@dataclass(frozen=True)
class MethodFacts:
    """What is to be known of a method.

    Parameters
    ----------
    name : str
        What users call it.
    title : str
        What figures and tables call it.
    description : str
        One line for people who choose.
    objective : {"weights", "matching", "likelihood", "function"}
        Signed weights times loss components, a value of each bag that is not linear, or a function
        of `unbag.objectives`, which is for binary reports and for networks.
    losses : mapping from kind of report to the name of a loss
        The usual loss for each kind of report that the method takes.
    needs_random_bags : bool
        Whether bags must be random (within strata). The others only need one model that holds
        across bags, and make nothing of strata.
    leave_one_out : bool
        Whether each bag is centred by the means of the others, so that a bag must not be alone.
    takes_noise : bool
        Whether noisy reports outside their range can be learned from.
    """

    name: Method
    title: str
    description: str
    objective: Literal["weights", "matching", "likelihood", "function"] = "weights"
    losses: Mapping[Kind, str] = field(default_factory=lambda: PROPER)
    needs_random_bags: bool = True
    leave_one_out: bool = False
    takes_noise: bool = True

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of report that it takes."""
        return tuple(self.losses)


ANCHORED = MethodFacts(
    "anchored",
    "anchored",
    "unbiased, and less noisy the better the model is",
    losses=BOUNDED,
    leave_one_out=True,
)
UPM = MethodFacts(
    "upm",
    "GeneralUPM",
    "unbiased, with a variance that does not grow with the bag",
    leave_one_out=True,
)
EASY = MethodFacts("easy", "EasyLLP", "unbiased, with a variance that grows with the bag")
MATCHING = MethodFacts(
    "matching",
    "PM",
    "a bag's mean prediction should be its report",
    objective="matching",
    needs_random_bags=False,
    takes_noise=False,
)
LIKELIHOOD = MethodFacts(
    "likelihood",
    "count likelihood",
    "a bag's count should be likely under the predictions and the noise",
    objective="likelihood",
    needs_random_bags=False,
)
LABELS = MethodFacts(
    "labels",
    "labels",
    "bags of one, which are labels: the ceiling to compare with",
    needs_random_bags=False,
    takes_noise=False,
)


def _of_paper(name: Method, title: str, description: str, **about: Any) -> MethodFacts:
    """A method of another paper, which `unbag.objectives` has as a function."""
    binary: Mapping[Kind, str] = {"binary": about.pop("loss", "log")}
    return MethodFacts(name, title, description, "function", binary, **about)


_RANDOM = {"loss": "square", "leave_one_out": True}
_ANY = {"needs_random_bags": False, "takes_noise": False}
OF_PAPERS = (
    _of_paper(
        "debiased_square", "DSQ", "square loss of bags, debiased (Li and others 2024)", **_RANDOM
    ),
    _of_paper(
        "centred_square",
        "centred square",
        "square loss of centred bags (Busa-Fekete and others 2025)",
        **_RANDOM,
    ),
    _of_paper("clipped_square", "clipped square", "the same, residuals clipped", **_RANDOM),
    _of_paper("moments", "LLP-MM", "count profiles of a few instances should match", **_ANY),
    _of_paper("llp_fc", "LLP-FC", "the bag of a row as its noisy label, corrected", **_ANY),
    _of_paper("llp_vat", "LLP-VAT", "matching, and the same prediction nearby", **_ANY),
    _of_paper("mixbag", "MixBag", "matching, on mixtures of two bags too", **_ANY),
)

METHODS: Mapping[str, MethodFacts] = {
    facts.name: facts for facts in (ANCHORED, UPM, EASY, MATCHING, LIKELIHOOD, LABELS, *OF_PAPERS)
}
"""Every method by its name, with what training, boosting, SQL and the command line ask of it."""
FROM_BAGS = tuple(
    name for name, facts in METHODS.items() if name != "labels" and facts.objective != "function"
)
"""Those of this library, which every framework, "auto" and the demo know."""
FOR_NETWORKS = (*FROM_BAGS, *(facts.name for facts in OF_PAPERS))
"""What a network can be trained by from bags."""
LINEAR = tuple(name for name in FROM_BAGS if METHODS[name].objective == "weights")


def usual_loss(method: Any, kind: Kind) -> Loss:
    """The loss that a method is used with unless another is asked for.

    Parameters
    ----------
    method : str or callable
        A method's name; one that the table does not have takes the log loss, the Poisson loss or
        the cross entropy.
    kind : {"binary", "total", "histogram"}
        What the reports are.

    >>> usual_loss("anchored", "binary").name, usual_loss("upm", "histogram").name
    ('square', 'cross_entropy')
    """
    losses = PROPER
    if method in METHODS:
        check_kind(method, kind)
        losses = METHODS[method].losses
    return LOSSES[losses[kind]]


def check_kind(method: Any, kind: Kind) -> None:
    """Refuse reports of a kind that a method does not take.

    Parameters
    ----------
    method : str
        Of the table.
    kind : {"binary", "total", "histogram"}
        What the reports are.
    """
    if kind not in METHODS[method].kinds:
        raise broken(
            f"The method {method} must have reports of the kind {', '.join(METHODS[method].kinds)}",
            f"{kind} given",
            "Use anchored, which takes every kind.",
        )
