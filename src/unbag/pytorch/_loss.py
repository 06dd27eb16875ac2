"""What a batch of bags says about the loss, as a scalar tensor with its gradient."""

from __future__ import annotations

from typing import Any, NamedTuple, get_args

import numpy as np
import torch

from unbag import weights
from unbag._arrays import sum_by
from unbag._rules import broken, one_of, refuse, rows
from unbag.bags import Kind, as_components, mean_label_variance
from unbag.bags import check_noise as check_variances
from unbag.likelihood import check_counts, check_link, count_likelihood
from unbag.losses import Loss, named_loss
from unbag.matching import check_reports, proportion_matching
from unbag.methods import FROM_BAGS, METHODS, Method, usual_loss
from unbag.weights import check_batch, check_instances


class Batch(NamedTuple):
    """A batch of bags on the device of the scores, report and prior in component form."""

    bag: torch.Tensor
    size: torch.Tensor
    report: torch.Tensor
    prior: torch.Tensor
    stratum: torch.Tensor | None
    weight: torch.Tensor | None


def as_numpy(tensor: torch.Tensor | None) -> Any:
    """A tensor of any device whose values can be looked at."""
    if tensor is None:
        return None
    return tensor.detach().cpu().numpy()


def check_shapes(b: Batch, prior: np.ndarray, kind: Kind) -> None:
    """Reports of the right kind, and a prior that looks like one of them."""
    by_class = kind == "histogram"
    if b.report.ndim != 2:
        one = {True: "row of class shares", False: "number"}[by_class]
        rule = f"Reports of kind {kind} must be one {one} for each bag"
        remedy = "Choose {kind} to fit the reports."
        raise broken(rule, f"a tensor of shape {_shape(b.report, kind)} given", remedy)
    one_report = tuple(b.report.shape[1:]) * by_class
    expected, given = one_report, "without"
    if b.stratum is not None:
        expected, given = (*prior.shape[:1], *one_report), "with"
    if prior.shape != expected or prior.ndim < (b.stratum is not None):
        raise broken(
            f"A prior must look like one report, of shape {one_report}, and with stratum= like "
            "one for each stratum",
            f"one of shape {prior.shape} given {given} stratum=",
            "Give Bags.prior, and {stratum} when the bags have strata.",
        )


def _shape(components: torch.Tensor, kind: Kind) -> tuple[int, ...]:
    """The shape that the user gave, before numbers became components."""
    return tuple(components.shape)[: components.ndim - (kind != "histogram")]


def check_scores(scores: torch.Tensor, b: Batch, loss: Loss, kind: Kind) -> None:
    """One finite score per instance, or per instance and class."""
    rows(len(scores), len(b.bag), thing="scores", of="instance")
    components = b.report.shape[1]
    if loss.components(scores[:1].detach(), kind=kind).shape != (1, components):
        per, outputs = "instance", "1 output"
        if kind == "histogram":
            per, outputs = "instance and class", f"{components} outputs"
        rule = f"Scores of kind {kind} must be one per {per}"
        remedy = f"Give the last layer of the model {outputs}."
        raise broken(rule, f"a tensor of shape {tuple(scores.shape)} given", remedy)
    rule = "A score must be finite"
    remedy = "Lower the learning rate, or look for NaN among the features."
    refuse(rule, _not_finite(scores), thing="instance", given=as_numpy(scores), remedy=remedy)


def _not_finite(values: torch.Tensor) -> np.ndarray:
    return as_numpy(~torch.isfinite(values).reshape(len(values), -1).all(dim=1))


def check_bags(b: Batch, *, leave_one_out: bool) -> None:
    """Whole bags, reports that can be used, and another bag to take the means from."""
    bag, size, report, prior, stratum, weight = (as_numpy(part) for part in b)
    check_batch(size, report, prior, weight, stratum, 0.0, leave_one_out=leave_one_out)
    rule = f"A bag number must lie between 0 and {len(size) - 1}, the last bag of the batch"
    remedy = "Number the bags of each batch from 0, as bag_loader does."
    refuse(rule, (bag < 0) | (bag >= len(size)), thing="instance", given=bag, remedy=remedy)
    check_instances(bag, size, bag)


def check_reference(reference: torch.Tensor, b: Batch, loss: Loss, kind: Kind) -> None:
    """One finite prediction per instance, in component form."""
    if reference.shape != (len(b.bag), b.report.shape[1]):
        raise broken(
            f"A reference must be a prediction like a report for each of the {len(b.bag)} "
            "instances",
            f"one of shape {_shape(reference, kind)} given",
            f"Give probabilities or counts as reference=, also where the {loss.name} loss "
            "predicts none.",
        )
    refuse(
        "A reference must be finite",
        _not_finite(reference),
        thing="instance",
        given=as_numpy(reference)[:, -1],
        remedy="If no reference was given, scores overflow: lower the learning rate.",
    )


class BagLoss(torch.nn.Module):
    """What a batch of bags says about the loss, as a scalar tensor.

    The value is sum_i W_i . f(x_i) with the signed weights W of the method; for matching the mean
    over the bags of the loss of their mean prediction; for the likelihood the mean over the bags of
    minus the log likelihood of their count, divided by the mean size. Wrong input is refused,
    except under `torch.compile`.

    Parameters
    ----------
    prior : float or array
        Of the whole data set, never of the batch: what `Bags.prior` gives, which is a proportion, a
        mean count or class marginals, and with strata one of these per stratum.
    method : {"anchored", "upm", "easy", "matching", "likelihood"}
        "anchored" is unbiased, and less noisy the better the model is.
    loss : Loss or str, optional
        Of `unbag.losses`, or its name, such as "square". By default square for anchored (brier
        for histograms), else log (cross_entropy for histograms), and poisson for totals.
    kind : {"binary", "total", "histogram"}
        What the reports are.

    >>> scores, bag = torch.zeros(4, requires_grad=True), torch.tensor([0, 0, 1, 1])
    >>> value = BagLoss(0.25)(scores, bag, torch.tensor([0.5, 0.0]), torch.tensor([2, 2]))
    >>> value.backward()
    >>> value.item(), scores.grad.tolist()
    (0.25, [-0.09375, -0.09375, 0.15625, 0.15625])
    """

    def __init__(
        self,
        prior: Any,
        *,
        method: Method = "anchored",
        loss: Loss | str | None = None,
        kind: Kind = "binary",
    ):
        super().__init__()
        one_of("A method", method, FROM_BAGS)
        one_of("A kind of report", kind, get_args(Kind))
        self.method: Method = method
        self.kind: Kind = kind
        if isinstance(loss, str):
            loss = named_loss(loss)
        self.loss = loss or usual_loss(method, kind)
        self.loss.form(kind)
        if method == "likelihood":
            check_link(self.loss, kind)
        if isinstance(prior, torch.Tensor):
            prior = as_numpy(prior)
        self.prior = given = np.asarray(prior, float)
        if not np.isfinite(given).all():
            raise broken("A prior must be finite", f"{given.tolist()} given", "Give Bags.prior.")

    def extra_repr(self) -> str:
        """What `print(loss)` shows in the brackets."""
        return (
            f"prior={self.prior.tolist()}, method={self.method!r}, loss={self.loss.name}, "
            f"kind={self.kind!r}"
        )

    def forward(
        self,
        scores: torch.Tensor,
        bag: Any,
        report: Any,
        size: Any,
        *,
        reference: Any = None,
        stratum: Any = None,
        weight: Any = None,
        noise: Any = None,
    ) -> torch.Tensor:
        """The loss of a batch of whole bags.

        Parameters
        ----------
        scores : Tensor
            One per instance (a column will do), or one per instance and class for histograms.
        bag : Tensor of int
            Bag number of each instance, 0 to B - 1 within this batch.
        report, size : Tensor
            Of each bag; the report as a proportion, a mean count, or a row of class shares.
        reference : Tensor, optional
            For anchored, a prediction for each instance, made without the labels of its own bag: a
            probability, a count, or a row of class probabilities. By default what the scores
            predict now.
        stratum : Tensor of int, optional
            Stratum number of each bag; the prior has one entry for each stratum.
        weight : Tensor, optional
            Of each bag, adding up to 1 in the batch (in each stratum of it). A bag of weight 0 may
            have the report NaN, because it is pending.
        noise : Tensor, optional
            Of each bag, the variance of the noise on its count, so that noisier bags weigh less:
            `weight` is then made by itself, proportional to 1 / (Var y + noise / size). For the
            likelihood it is part of the law of the count.
        """
        # single precision at least, because signed weights cancel; one column is one score each
        scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
        if self.kind != "histogram" and scores.ndim == 2 and scores.shape[1] == 1:
            scores = scores[:, 0]
        batch = Batch(
            _beside(scores, bag, torch.int64),
            _beside(scores, size, torch.int64),
            as_components(_beside(scores, report), self.kind),
            _beside(scores, as_components(self.prior, self.kind)),
            _beside(scores, stratum, torch.int64),
            _beside(scores, weight),
        )
        noise = _beside(scores, noise)
        if reference is not None and self.method != "anchored":
            rule = "A reference must go with method='anchored'"
            raise broken(rule, f"{self.method!r} given", "Leave it out.")
        if weight is not None and noise is not None and self.method != "likelihood":
            rule = "Bags must be weighed by weight= or by noise="
            raise broken(rule, "both given", "Leave one out.")
        if not torch.compiler.is_compiling():
            check_shapes(batch, self.prior, self.kind)
            check_scores(scores, batch, self.loss, self.kind)
            check_bags(batch, leave_one_out=METHODS[self.method].leave_one_out)
            if noise is not None:
                rows(len(noise), len(batch.size), thing="noise", of="bag")
                check_variances(as_numpy(noise))
        if self.method == "likelihood":
            return self._likelihood(scores, batch, noise)
        if noise is not None:  # `weights.noise_weights` for tensors, with Var y from the prior
            raw = 1 / (mean_label_variance(self.prior, self.kind) + noise / batch.size)
            if batch.stratum is None:
                total = raw.sum()
            else:
                total = sum_by(batch.stratum, raw, len(self.prior))[batch.stratum]
            batch = batch._replace(weight=raw / total)
        if self.method == "matching":
            return self._matched(scores, batch)
        with torch.no_grad():
            W = self._weights(scores, batch, reference)
        return (W * self.loss.components(scores, kind=self.kind)).sum()

    def _weights(self, scores: torch.Tensor, b: Batch, reference: Any) -> torch.Tensor:
        options = {"stratum": b.stratum, "weight": b.weight}
        if self.method != "anchored":
            return getattr(weights, self.method)(b.size, b.report, b.prior, **options)[b.bag]
        form = self.loss.form(self.kind)
        if reference is None and form.log_space:
            reference = form.link.prediction(scores, self.kind)
        elif reference is None:  # a loss of the user's own, which may take scores of any shape
            reference = form.predict(scores)
        g = as_components(_beside(scores, reference), self.kind)
        if not torch.compiler.is_compiling():
            check_reference(g, b, self.loss, self.kind)
        return weights.anchored(b.bag, b.size, b.report, b.prior, g, **options)

    def _matched(self, scores: torch.Tensor, b: Batch) -> torch.Tensor:
        # a bag's weight (times the share of its stratum) is what EasyLLP gives it for a component
        # that is always 1
        one, ones = torch.ones_like(b.report[:, :1]), torch.ones_like(b.prior[..., :1])
        w = weights.easy(b.size, one, ones, stratum=b.stratum, weight=b.weight) * b.size[:, None]
        prior = b.prior
        if b.stratum is not None:
            prior = prior[b.stratum]
        report = torch.where(w > 0, b.report, prior)
        if not torch.compiler.is_compiling():
            check_reports(
                as_numpy(report), self.loss.form(self.kind), name=self.loss.name, kind=self.kind
            )
        by_bag = proportion_matching(scores, b.bag, b.size, report, loss=self.loss, kind=self.kind)
        return (w[:, 0] * by_bag).sum()

    def _likelihood(self, scores: torch.Tensor, b: Batch, noise: Any) -> torch.Tensor:
        """As in `unbag.train`: a stratum counts by its bags, because the likelihood of all bags is
        the product over them."""
        w = torch.ones_like(b.report[:, 0])
        if b.weight is not None:
            w = b.weight
            if b.stratum is not None:
                real = (w > 0).to(w.dtype)
                w = w * sum_by(b.stratum, real, len(self.prior))[b.stratum]
        size = torch.where(w > 0, b.size, 0)  # a pending bag is padding
        largest = None
        if not torch.compiler.is_compiling():
            largest = int(size.max())
            check_counts(as_numpy(size), as_numpy(b.report), as_numpy(noise), self.kind)
        by_bag = count_likelihood(
            scores, b.bag, size, b.report, kind=self.kind, largest=largest, noise=noise
        )
        mean_size = size.sum() / (size > 0).sum()
        return (w * by_bag).sum() / w.sum() / mean_size


def _beside(scores: torch.Tensor, value: Any, dtype: torch.dtype | None = None) -> Any:
    """A tensor on the device of the scores and, unless another is named, of their type."""
    if value is None:
        return None
    return torch.as_tensor(value, dtype=dtype or scores.dtype, device=scores.device).detach()
