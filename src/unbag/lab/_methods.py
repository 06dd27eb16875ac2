"""Methods of learning from bags by their names in plans; `add_method` puts yours beside ours."""

from __future__ import annotations

from typing import NamedTuple

from unbag._rules import broken, one_of
from unbag.bags import Kind
from unbag.losses import LOSSES
from unbag.methods import METHODS as KNOWN
from unbag.methods import Method, usual_loss
from unbag.plots import CurveLook
from unbag.training import Objective

SMOOTHING = 0.1  # of labels, in the paper
UNSMOOTHED = "log smoothed by 0"  # of `curve_of`
METHODS: dict[str, Method | Objective] = {facts.name: facts.name for facts in KNOWN.values()}
USUAL_LOSS: dict[str, str] = {}
TITLES = {name: facts.title for name, facts in KNOWN.items()} | {"all": "any method"}
WAYS: dict[Kind, tuple[str, ...]] = {
    "binary": ("matching", "easy", "upm", "anchored:log", "anchored", "likelihood", "labels"),
    "histogram": (
        "matching", "easy", "upm", "upm:brier", "anchored:cross_entropy", "anchored", "likelihood",
        "labels",
    ),
    "total": ("matching", "easy", "upm", "anchored", "likelihood", "labels"),
}  # fmt: skip
"""What a plan runs when it names no methods, by the kind of report."""

LOOKS = {  # colours of Okabe and Ito, which everyone can tell apart
    "matching": CurveLook("#0072B2", "o"),
    "easy": CurveLook("#E69F00", "s"),
    "upm": CurveLook("#009E73", "D"),
    "anchored": CurveLook("#CC79A7", "^"),
    "likelihood": CurveLook("#56B4E9", "P"),
}
OUR_LOOK = CurveLook("#D55E00", "v")  # anchored with the square or the Brier loss


class Way(NamedTuple):
    """A method and the loss it is used with: one curve of a figure.

    Parameters
    ----------
    method, loss : str
        Their names.

    Examples
    --------
    >>> Way.named("anchored:square"), Way.named("upm")
    (Way(method='anchored', loss='square'), Way(method='upm', loss='log'))
    """

    method: str
    loss: str

    def __str__(self) -> str:
        return f"{self.method}:{self.loss}"

    @staticmethod
    def read(text: str) -> Way:
        """From what `str` made of one; it may be of a method that is not known here."""
        method, _, loss = text.partition(":")
        return Way(method, loss or "log")

    @staticmethod
    def named(text: str, kind: Kind = "binary") -> Way:
        """From "method" or "method:loss".

        Parameters
        ----------
        text : str
            The name.
        kind : {"binary", "total", "histogram"}
            Of the reports; decides the loss of a method that is named alone.
        """
        method, _, loss = text.partition(":")
        one_of("A method", method, METHODS, "Choose one, or add it.")
        loss = loss or USUAL_LOSS.get(method) or usual_loss(method, kind).name
        one_of("A method's loss", loss, LOSSES)
        return Way(method, loss)

    @property
    def is_ours(self) -> bool:
        """Whether it is anchored with the square or the Brier loss."""
        return self.method == "anchored" and self.loss in ("square", "brier")

    @property
    def title(self) -> str:
        """What figures and tables call it."""
        name = TITLES.get(self.method, self.method)
        if self.loss == UNSMOOTHED:
            return f"{name}, unsmoothed"
        if self.method != "anchored" and self.loss == "log":
            return name
        return f"{name}, {self.loss}"


def add_method(
    name: str, objective: Objective, *, loss: str = "log", title: str | None = None
) -> None:
    """Make a method of your own known to plans. `docs/adding.md` has an example.

    Parameters
    ----------
    name : str
        Part of a run's identity: change it when you change the method, or old runs count as new
        ones.
    objective : callable
        `objective(score, batch, loss) -> value`, in JAX.
    loss : str
        The usual one.
    title : str, optional
        What figures and tables call it; by default the name.
    """
    if not callable(objective) or not name.isidentifier() or name in KNOWN:
        raise broken(
            "A method to add must be a function with a new name of letters, digits and _",
            f"{name!r} given",
            "See docs/adding.md.",
        )
    METHODS[name] = objective
    USUAL_LOSS[name] = loss
    TITLES[name] = title or name


def smoothing_of(way: Way, smoothing: float) -> float:
    """The label smoothing of a method: off for the square loss, for the likelihood and for labels.

    The likelihood has no label to smooth. Labels are there as the ceiling, and smoothed labels end
    above it; what they do smoothed, EasyLLP and PM with bags of one do.
    """
    smooth = way.loss in ("log", "cross_entropy") and way.method not in ("likelihood", "labels")
    return smoothing * smooth


def curve_of(way: Way, smoothing: float) -> Way:
    """The way itself, or another curve where labels are not smoothed as usual."""
    if smoothing == smoothing_of(way, SMOOTHING):
        return way
    return way._replace(loss=f"{way.loss} smoothed by {smoothing:g}")
