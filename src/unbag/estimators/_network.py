"""One network that is trained by itself, stopped and chosen by held-out bags.

What trains is imported when it trains: JAX takes a second to import, and most models need none.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from unbag import losses
from unbag._rules import broken
from unbag.bags import Bags, Kind
from unbag.diagnosis import BagsNotRandom, diagnose
from unbag.learners import Learner, make_learner
from unbag.losses import Loss
from unbag.matching import unbounded
from unbag.methods import FOR_NETWORKS, FROM_BAGS, METHODS, Method, usual_loss
from unbag.tables import FeaturePlan

if TYPE_CHECKING:
    from unbag.learners import NetworkModel
    from unbag.selection import Choice
    from unbag.training import Run

RATES = (1e-3, 3e-3, 1e-2, 3e-2)
AUTO = tuple(name for name in FROM_BAGS if name != "easy")  # whose variance is never the lowest
ACROSS_BAGS = tuple(name for name in FOR_NETWORKS if not METHODS[name].needs_random_bags)
LOOK_AT = 2e6  # numbers in bags, so that the diagnosis stays a small part of a fit
WITHOUT_MATCHING = "Matching was left out: noise puts reports where its loss has no lower bound."
OF_LEARNER = {"method": "method", "loss": "loss", "hidden": "hidden", "epochs": "epochs"}
OF_LEARNER |= {"batch": "batch", "learning_rate": "rates"}
"""The options that the network learner of `unbag.learners` has too, and what it calls them."""


class Trained(NamedTuple):
    """The model, all runs that did not diverge, the one it is of, and how bags chose it."""

    model: NetworkModel
    runs: list[Run]
    run: Run
    choice: Choice | None


@dataclass(frozen=True)
class Training:
    """The options of one training, see `BagClassifier`; an unusual value asks for that training."""

    method: str | None = None
    loss: str | None = None
    hidden: tuple[int, ...] = (32,)
    learning_rate: float | str = "auto"
    epochs: int = 60
    batch: int = 4096
    held_out: float = 0.2
    patience: int | None = 15
    weight_decay: float = 0.0
    devices: int | str | None = None
    microbatch: int | None = None

    @staticmethod
    def of(estimator: Any) -> Training:
        """The options of an estimator."""
        values = {option.name: getattr(estimator, option.name) for option in fields(Training)}
        if not isinstance(values["hidden"], str):
            widths = np.atleast_1d(values["hidden"])  # one number is one layer
            values["hidden"] = tuple(widths.tolist())  # no numbers of NumPy
        return Training(**values)

    @property
    def given(self) -> list[str]:
        """The options that have another value than the usual one."""
        return [o.name for o in fields(self) if getattr(self, o.name) != o.default]

    @property
    def first_method(self) -> str:
        """The method, or the one that "auto" starts from."""
        if self.method is None or self.method == "auto":
            return AUTO[0]
        return self.method

    @property
    def rate(self) -> float:
        """The learning rate where nothing can be chosen."""
        if self.learning_rate == "auto":
            return RATES[1]
        return float(self.learning_rate)

    def loss_of(self, kind: Kind, method: str) -> Loss:
        """The loss that was asked for, or the usual one of the method."""
        if self.loss is None:
            return usual_loss(method, kind)
        return losses.named_loss(self.loss)

    def as_learner(self) -> Learner:
        """The network learner of `unbag.learners` with the options that were given."""
        unknown = [name for name in self.given if name not in OF_LEARNER]
        if unknown:
            rule = f"Options of the network learner must be among {', '.join(OF_LEARNER)}"
            remedy = "Leave {learner} out to train one network with them."
            raise broken(rule, f"{', '.join(unknown)} given", remedy)
        options = {OF_LEARNER[name]: getattr(self, name) for name in self.given}
        if "rates" in options:
            options["rates"] = (float(options["rates"]),)
        return replace(cast(Any, make_learner("network")), **options)

    def fit(
        self,
        bags: Bags,
        *,
        plan: FeaturePlan | None,
        importance: np.ndarray | None,
        seed: int,
        diagnosed: bool,
    ) -> Trained:
        """Train from the trivial predictor, with every method and rate that was asked for.

        Parameters
        ----------
        bags : Bags
            With a matrix of numbers, of which some may be missing.
        plan : FeaturePlan or None
            Of its columns.
        importance : numpy.ndarray or None
            Weights of labelled rows: they are ordinary labels, and nothing is held out.
        seed : int
            Of the network and of what is held out.
        diagnosed : bool
            Whether to warn of bags that are not random.
        """
        from unbag.learners import NetworkColumns, NetworkForm, NetworkModel
        from unbag.selection import choose
        from unbag.training import sweep

        sizes: tuple[Any, ...] = (bags.X.shape[1],)
        if plan is not None:
            sizes = (plan.numbers, plan.buckets, plan.dimensions)
        columns, X = NetworkColumns.of(bags.X, numbers=sizes[0], each=True)
        form = NetworkForm(self.hidden, bags.report[0].size, *sizes)
        bags = replace(bags, X=X.astype(np.float32))
        method, share = self.first_method, self.held_out
        if importance is not None:
            method, share = "labels", 0
        # some can be held out of 10 bags, if each stratum has some for learning and some to hold
        count = np.bincount(bags.stratum_or_zero)
        fewest = 2 if method in ACROSS_BAGS else 4
        if len(bags) < 10 or (count[count > 0] < fewest).any():
            share = 0
        if method in ACROSS_BAGS or importance is not None:
            bags = bags.without_strata()
        elif diagnosed:  # bags of one, which are labels, are never "not random"
            diagnosis = diagnose(bags, most=LOOK_AT)
            if not diagnosis.random:
                more = "unbag.diagnose(bags) tells more; diagnose=False says that you know."
                text = f"{diagnosis.verdict} {diagnosis.remedy} {more}"
                warnings.warn(text, BagsNotRandom, stacklevel=5)
        learn, held_out, methods, rates = bags, None, (method,), (self.rate,)
        options = {"seeds": (seed,), "importance": importance}
        if share:
            learn, held_out = bags.split(1 - share, seed=seed)
            options |= {"held_out": held_out, "patience": self.patience}
            if self.learning_rate == "auto":
                rates = RATES
            if self.method == "auto":
                methods = self.tried(bags)
        options |= self._shared(self.epochs, rates)
        prior = bags.overall_prior
        if importance is not None:
            prior = np.average(bags.report, axis=0, weights=importance)
        start = self.loss_of(bags.kind, method).trivial_score(prior, kind=bags.kind)
        runs: list[Run] = []
        for each in methods:
            loss = self.loss_of(bags.kind, each)
            made = sweep(
                lambda key: form.make(key, start), learn, cast(Method, each), loss, **options
            )
            runs += [run for run in made[0] if run.epoch > 0]  # those that did not diverge
        if not runs:
            remedy = f"Scale the features, or lower learning_rate (now {self.learning_rate})."
            given = f"all of {len(methods) * len(rates)} runs did"
            raise broken("A training must not diverge", given, remedy)
        run, choice = runs[0], None
        if held_out is not None:
            choice = choose(runs, held_out, warn=False)
            if self.method == "auto" and methods != AUTO:
                choice = replace(choice, reason=f"{choice.reason} {WITHOUT_MATCHING}")
            run = choice.model
        return Trained(NetworkModel.of_one(bags.kind, columns, form, run.model), runs, run, choice)

    def one_epoch(
        self, model: NetworkModel, bags: Bags, method: str, loss: Loss
    ) -> tuple[NetworkModel, Run]:
        """One more epoch from where a network is, over bags with a matrix of numbers."""
        options = self._shared(1, (self.rate,))
        from unbag.training import sweep

        bags = replace(bags, X=model.columns.matrix(bags.X).astype(np.float32))
        start = model.network()
        ((run,),) = sweep(lambda _: start, bags, cast(Method, method), loss, **options)
        return model.of_one(model.kind, model.columns, model.form, run.model), run

    def _shared(self, epochs: int, rates: Sequence[float]) -> dict[str, Any]:
        names = ("batch", "weight_decay", "devices", "microbatch")
        own = {name: getattr(self, name) for name in names}
        return own | {"epochs": epochs, "learning_rates": rates}

    def tried(self, bags: Bags) -> tuple[str, ...]:
        """The methods that "auto" tries: matching only where its loss has a lower bound."""
        form = self.loss_of(bags.kind, "matching").form(bags.kind)
        if unbounded(bags.components().report, form, bags.kind).any():
            return tuple(method for method in AUTO if method != "matching")
        return AUTO
