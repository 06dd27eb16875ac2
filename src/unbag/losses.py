"""Losses as components per instance: what each possible label would cost.

Any loss is a sum of label components times loss components, loss = sum_r label_r * component_r:

| kind of report | label components | loss components |
|---|---|---|
| binary         | (1, y)           | (f1, f2), loss = f1 + y f2 |
| total          | (1, y)           | (f1, f2), the loss must be affine in the count y |
| histogram      | one-hot y        | (loss if class 0, ..., loss if class c-1) |

A loss never averages: multiply its components by the signed weights of `unbag.weights` and add up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, get_args

import numpy as np

from unbag._arrays import like, log_softmax, namespace
from unbag._rules import Refused, broken, one_of
from unbag.bags import Kind


class Link(NamedTuple):
    """How a score predicts.

    Parameters
    ----------
    predict : callable
        From scores to predictions, or to their logarithms.
    log_space : bool
        Whether `predict` gives logarithms.
    """

    predict: Callable[[Any], Any]
    log_space: bool

    def prediction(self, score: Any, kind: Kind) -> Any:
        """What scores predict: class probabilities, or the probability or count of each instance.

        Parameters
        ----------
        score : array
            One score per instance; for histograms one per instance and class.
        kind : {"binary", "total", "histogram"}
            What the reports are.

        >>> float(log.form("binary").link.prediction(np.array([0.0]), "binary")[0])
        0.5
        """
        prediction = self.predict(score)
        if self.log_space:
            prediction = namespace(prediction).exp(prediction)
        if kind != "histogram" and prediction.ndim > 1:
            return prediction[..., 1]  # of the pair (1 - h, h)
        return prediction


@dataclass(frozen=True)
class Form:
    """A loss for one kind of report: score -> prediction -> components.

    Parameters
    ----------
    predict : callable
        From scores to what may be averaged over a bag (proportion matching does so): logarithms of
        probabilities or rates when `log_space`, else plain predictions.
    components : callable
        From what `predict` gives to one row of components per instance.
    log_space : bool
        Whether `predict` gives logarithms.
    reports : tuple of float
        The range of reports for which the loss of a mean prediction is bounded below.
    constant : callable, optional
        From a prior to the best constant score.
    """

    predict: Callable[[Any], Any]
    components: Callable[[Any], Any]
    log_space: bool = True
    reports: tuple[float, float] = (-np.inf, np.inf)
    constant: Callable[[Any], Any] | None = None

    @property
    def link(self) -> Link:
        """How a score predicts."""
        return Link(self.predict, self.log_space)


@dataclass(frozen=True, eq=False)
class Loss:
    """A loss as components.

    Parameters
    ----------
    name : str
        What messages and results call it.
    forms : mapping from kind of report to Form
        For which kinds of report it exists.

    >>> log.components(np.array([0.0])).round(3)
    array([[0.693, 0.   ]])
    >>> log.value(np.array([2.0]), np.array([1.0])).round(3)
    array([0.127])
    """

    name: str
    forms: Mapping[Kind, Form] = field(repr=False)

    def form(self, kind: Kind | None = None) -> Form:
        """The loss for this kind of report, by default the first it has."""
        kind = kind or next(iter(self.forms))
        if kind not in self.forms:
            raise _no_form(self.name, kind)
        return self.forms[kind]

    def components(self, score: Any, *, kind: Kind | None = None) -> Any:
        """One row per instance, one column per component.

        Parameters
        ----------
        score : array
            Of each instance (and class).
        kind : {"binary", "total", "histogram"}, optional
            What the reports are; by default the first that the loss has.
        """
        form = self.form(kind)
        return form.components(form.predict(score))

    def trivial_score(self, prior: Any, *, kind: Kind | None = None) -> np.ndarray:
        """The score of the trivial predictor, which predicts the prior for everyone.

        Parameters
        ----------
        prior : float or array
            The label marginal.
        kind : {"binary", "total", "histogram"}, optional
            What the reports are; by default the first that the loss has.

        >>> float(log.trivial_score(0.5))
        0.0
        """
        constant = self.form(kind).constant
        if constant is None:
            rule = "A loss must know the score that predicts a prior, to start from it"
            raise broken(rule, f"{self.name} does not", "Start from the usual initialisation.")
        return np.asarray(constant(np.asarray(prior, float)))

    def value(self, score: Any, label: Any, *, kind: Kind | None = None) -> Any:
        """The ordinary loss of each instance, for labels that are known.

        Parameters
        ----------
        score : array
            Of each instance (and class).
        label : array
            Numbers for binary and total, class numbers or class probabilities for histogram.
        kind : {"binary", "total", "histogram"}, optional
            What the labels are; by default the first that the loss has.
        """
        components = self.components(score, kind=kind)
        xp = namespace(components)
        label = like(components, label)
        if (kind or next(iter(self.forms))) != "histogram":
            return components[..., 0] + label * components[..., 1]
        if label.ndim < components.ndim:
            classes = like(components, np.arange(components.shape[-1]))
            label = like(components, label[..., None] == classes)
        return xp.sum(label * components, axis=-1)


def _no_form(name: str, kind: str) -> Refused:
    """The error for a loss that does not exist for a kind of report."""
    one_of("A kind of report", kind, get_args(Kind))
    works = " or ".join(loss.name for loss in LOSSES.values() if kind in loss.forms)
    if kind == "total":
        return broken(
            "A loss for total counts must be affine in the label (loss = f1 + y f2), because only "
            "the sum of the counts in a bag is known",
            f"{name} is not",
            f"Use {works}, or report full histograms.",
        )
    rule = {
        "binary": "must take one score per instance and labels 0 and 1",
        "histogram": "must give one component per class",
    }[kind]
    return broken(f"A loss for {kind} reports {rule}", f"{name} does not", f"Use {works}.")


def _log_sigmoids(score: Any) -> Any:
    """(log(1 - h), log h) for the probability h = sigmoid(score); both share log(1 + e^-|score|).

    -|score| is written as a minimum: JAX takes 1 for the slope of |0|, which would stop models that
    start at 0.
    """
    xp = namespace(score)
    zero, shared = xp.zeros_like(score), xp.log1p(xp.exp(xp.minimum(score, -score)))
    return xp.stack(
        [-xp.maximum(score, zero) - shared, -xp.maximum(-score, zero) - shared], axis=-1
    )


def _log_components(log_h: Any) -> Any:
    """f1 = -log(1 - h), f2 = log((1 - h) / h)."""
    return namespace(log_h).stack([-log_h[..., 0], log_h[..., 0] - log_h[..., 1]], axis=-1)


def _square_components(log_h: Any) -> Any:
    """(y - h)^2 = h^2 + y (1 - 2 h) for y in {0, 1}."""
    xp = namespace(log_h)
    h = xp.exp(log_h[..., 1])
    return xp.stack([h**2, 1 - 2 * h], axis=-1)


def _square_total_components(h: Any) -> Any:
    """(y - h)^2 - y^2 = h^2 - 2 y h for any count y."""
    return namespace(h).stack([h**2, -2 * h], axis=-1)


def _poisson_components(log_h: Any) -> Any:
    """h - y log h."""
    xp = namespace(log_h)
    return xp.stack([xp.exp(log_h), -log_h], axis=-1)


def _brier_components(log_h: Any) -> Any:
    """(1/c) sum_q ({q = r} - h_q)^2 = (1 - 2 h_r + sum_q h_q^2) / c."""
    xp = namespace(log_h)
    h = xp.exp(log_h)
    return (1 - 2 * h + xp.sum(h**2, axis=-1, keepdims=True)) / log_h.shape[-1]


def _logit(p: Any) -> Any:
    p = np.clip(p, 1e-6, 1 - 1e-6)
    return np.log(p / (1 - p))


def _log_of_positive(p: Any) -> Any:
    return np.log(np.maximum(p, 1e-6))


def _itself(score: Any) -> Any:
    return score


def _minus(log_h: Any) -> Any:
    return -log_h


log = Loss("log", {"binary": Form(_log_sigmoids, _log_components, reports=(0, 1), constant=_logit)})
"""Log loss of the logit: f1 = log(1 + e^z), f2 = -z."""

square = Loss(
    "square",
    {
        "binary": Form(_log_sigmoids, _square_components, constant=_logit),
        "total": Form(_itself, _square_total_components, log_space=False, constant=_itself),
    },
)
"""Square loss. Binary: of the probability sigmoid(score). Total: of the predicted count, which is
the score itself; the term y^2, which no model changes and no total tells, is dropped, so values can
be negative."""

_OF_RATES = Form(_itself, _poisson_components, reports=(0, np.inf), constant=_log_of_positive)
poisson = Loss("poisson", {"total": _OF_RATES, "binary": _OF_RATES})
"""Poisson log loss h - y log h with h = exp(score), to which a log exposure may be added. Its value
leaves out log(y!), which no model changes, so it can be negative."""

cross_entropy = Loss(
    "cross_entropy",
    {"histogram": Form(log_softmax, _minus, reports=(0, 1), constant=_log_of_positive)},
)
"""Multi-class log loss of the class scores."""

brier = Loss(
    "brier", {"histogram": Form(log_softmax, _brier_components, constant=_log_of_positive)}
)
"""Multi-class square loss with the paper's factor 1/c."""

LOSSES: dict[str, Loss] = {loss.name: loss for loss in (log, square, poisson, cross_entropy, brier)}
PROPER: Mapping[Kind, str] = {"binary": "log", "total": "poisson", "histogram": "cross_entropy"}
"""The losses that say what scores mean (logits, log rates, class scores) and that judge models."""


def proper_loss(kind: Kind) -> Loss:
    """The loss that says what scores mean for a kind of report, and by which models are judged.

    >>> proper_loss("total").name
    'poisson'
    """
    return LOSSES[PROPER[kind]]


def named_loss(name: str) -> Loss:
    """A shipped loss by its name."""
    one_of("A loss", name, LOSSES)
    return LOSSES[name]


def smoothed(loss: Loss, epsilon: float = 0.1) -> Loss:
    """The loss with smoothed labels: (1 - eps) y + eps / 2, or (1 - eps) {r} + eps / c for a class.

    Its optimum is (1 - eps) eta + eps / 2 and not eta, so probabilities learned with it are not
    calibrated.

    Parameters
    ----------
    loss : Loss
        Binary or for histograms.
    epsilon : float
        How much; the paper uses 0.1.

    >>> smoothed(log, 0.1).value(np.array([0.0]), np.array([1.0])).round(3)
    array([0.693])
    """
    if not 0 <= epsilon < 1:
        raise broken("Smoothing must lie in [0, 1)", f"{epsilon} given", "The paper uses 0.1.")
    forms: dict[Kind, Form] = {
        kind: _smoothed_form(form, epsilon, kind)
        for kind, form in loss.forms.items()
        if kind != "total"
    }
    if not forms:
        rule = "Smoothing must have classes to smooth over"
        raise broken(rule, f"{loss.name} has only counts", "Leave it out.")
    return Loss(f"smoothed({loss.name}, {epsilon:g})", forms)


def _smoothed_form(form: Form, epsilon: float, kind: Kind) -> Form:
    def binary(prediction: Any) -> Any:
        f = form.components(prediction)
        f1, f2 = f[..., 0], f[..., 1]
        return namespace(f).stack([f1 + epsilon / 2 * f2, (1 - epsilon) * f2], axis=-1)

    def histogram(prediction: Any) -> Any:
        f = form.components(prediction)
        return (1 - epsilon) * f + epsilon * namespace(f).mean(f, axis=-1, keepdims=True)

    return replace(form, components={"binary": binary, "histogram": histogram}[kind])


def from_callable(loss: Callable[[Any, Any], Any], labels: Sequence[float] = (0, 1)) -> Loss:
    """Your own `loss(prediction, label)`, taken apart by asking for its value at every label.

    Parameters
    ----------
    loss : callable
        Takes the predictions (any array) and one label, and returns one value per instance.
    labels : sequence of float
        The whole set of labels. (0, 1) makes a binary loss; 0, ..., c - 1 one for class histograms.

    >>> absolute = from_callable(lambda h, y: abs(y - h))
    >>> absolute.components(np.array([0.25]))
    array([[0.25, 0.5 ]])
    """
    labels = tuple(float(label) for label in labels)
    if labels != tuple(range(len(labels))) or len(labels) < 2:
        rule = "Labels must be 0, 1, ..., c - 1 with c at least 2"
        raise broken(rule, f"{labels} given", "Number your classes so.")

    def classes(prediction: Any) -> Any:
        values = [loss(prediction, label) for label in labels]
        return namespace(prediction).stack(values, axis=-1)

    def line(prediction: Any) -> Any:
        at_0, at_1 = loss(prediction, labels[0]), loss(prediction, labels[1])
        return namespace(prediction).stack([at_0, at_1 - at_0], axis=-1)

    name = getattr(loss, "__name__", "loss").replace("<lambda>", "your loss")
    forms: dict[Kind, Form] = {}
    if len(labels) == 2:
        forms["binary"] = Form(_itself, line, log_space=False)
    forms["histogram"] = Form(_itself, classes, log_space=False)
    return Loss(name, forms)
