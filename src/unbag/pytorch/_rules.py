"""What is refused of a batch of bags in tensors."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch

from unbag._rules import broken, refuse, rows
from unbag.bags import Kind
from unbag.bags import check_noise as check_variances
from unbag.losses import Loss
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


def check_prior(prior: np.ndarray) -> None:
    """Finite numbers."""
    if not np.isfinite(prior).all():
        raise broken("A prior must be finite", f"{prior.tolist()} given", "Give Bags.prior.")


def check_shapes(b: Batch, prior: np.ndarray, kind: Kind) -> None:
    """Reports of the right kind, and a prior that looks like one of them."""
    by_class = kind == "histogram"
    if b.report.ndim != 2:
        one = {True: "row of class shares", False: "number"}[by_class]
        raise broken(
            f"Reports of kind {kind} must be one {one} for each bag",
            f"a tensor of shape {_given_shape(b.report, kind)} given",
            "Choose {kind} to fit the reports.",
        )
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


def _given_shape(components: torch.Tensor, kind: Kind) -> tuple[int, ...]:
    """The shape that the user gave, before numbers became components."""
    if kind == "histogram":
        return tuple(components.shape)
    return tuple(components.shape[:-1])


def check_scores(scores: torch.Tensor, b: Batch, loss: Loss, kind: Kind) -> None:
    """One finite score per instance, or per instance and class."""
    rows(len(scores), len(b.bag), thing="scores", of="instance")
    components = b.report.shape[1]
    if loss.components(scores[:1].detach(), kind=kind).shape != (1, components):
        per, outputs = "instance", "1 output"
        if kind == "histogram":
            per, outputs = "instance and class", f"{components} outputs"
        raise broken(
            f"Scores of kind {kind} must be one per {per}",
            f"a tensor of shape {tuple(scores.shape)} given",
            f"Give the last layer of the model {outputs}.",
        )
    refuse(
        "A score must be finite",
        _not_finite(scores),
        thing="instance",
        given=as_numpy(scores),
        remedy="Lower the learning rate, or look for NaN among the features.",
    )


def _not_finite(values: torch.Tensor) -> np.ndarray:
    return as_numpy(~torch.isfinite(values).reshape(len(values), -1).all(dim=1))


def check_bags(b: Batch, *, leave_one_out: bool) -> None:
    """Whole bags, reports that can be used, and another bag to take the means from."""
    bag, size, report, prior, stratum, weight = (as_numpy(part) for part in b)
    if stratum is not None:
        refuse(
            f"A stratum number must lie between 0 and {len(prior) - 1}, the last prior",
            (stratum < 0) | (stratum >= len(prior)),
            thing="bag",
            given=stratum,
            remedy="Give the numbers of Bags.stratum, and Bags.prior.",
        )
    check_batch(size, report, prior, weight, stratum, 0.0, leave_one_out=leave_one_out)
    refuse(
        f"A bag number must lie between 0 and {len(size) - 1}, the last bag of the batch",
        (bag < 0) | (bag >= len(size)),
        thing="instance",
        given=bag,
        remedy="Number the bags of each batch from 0, as bag_loader does.",
    )
    check_instances(bag, size, bag)


def check_noise(noise: torch.Tensor | None, b: Batch) -> None:
    """One variance for each bag, where there are any."""
    if noise is None:
        return
    rows(len(noise), len(b.size), thing="noise", of="bag")
    check_variances(as_numpy(noise))


def check_reference(reference: torch.Tensor, b: Batch, loss: Loss, kind: Kind) -> None:
    """One finite prediction per instance, in component form."""
    if reference.shape != (len(b.bag), b.report.shape[1]):
        raise broken(
            f"A reference must be a prediction like a report for each of the {len(b.bag)} "
            "instances",
            f"one of shape {_given_shape(reference, kind)} given",
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
