"""Features and bags in, a trained network out: what classifier and regressor share."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from unbag import losses, models
from unbag.arrays import namespace
from unbag.bags import Bags, Kind, from_rows
from unbag.bags.holding import take_rows
from unbag.diagnosis import BagsNotRandom
from unbag.diagnosis import diagnose as diagnose_bags
from unbag.losses import Loss
from unbag.matching import unbounded
from unbag.metrics.scoring import marks
from unbag.saving import save_arrays
from unbag.selection import choose
from unbag.tables.plans import FeaturePlan
from unbag.training import Devices, Method, default_loss, sweep

RATES = (1e-3, 3e-3, 1e-2, 3e-2)
AUTO = ("anchored", "upm", "matching", "likelihood")
WITHOUT_MATCHING = "Matching was left out: noise puts reports where its loss has no lower bound."
ACROSS_BAGS = ("matching", "likelihood")  # need no random bags, only a model that holds across them
ENOUGH_TO_HOLD_OUT = 10
LOOK_AT = 2e6  # numbers in bags, so that the diagnosis stays a small part of a fit


class BagEstimator(BaseEstimator):
    """What classifier and regressor share: features, bags, training, persistence."""

    n_features_in_: int
    feature_names_in_: np.ndarray
    classes_: np.ndarray
    kind_: Kind
    method_: Any
    model_: Any
    plan_: FeaturePlan | None = None
    learned_: np.ndarray | None = None  # marks of the bags learned from, see `unbag.metrics.scoring`

    def __init__(
        self,
        method: str = "anchored",
        loss: str | None = None,
        *,
        hidden: Sequence[int] = (32,),
        learning_rate: float | str = "auto",
        epochs: int = 60,
        batch: int = 4096,
        held_out: float = 0.2,
        patience: int | None = 15,
        weight_decay: float = 0.0,
        diagnose: bool = True,
        devices: int | str | None = None,
        microbatch: int | None = None,
        random_state: Any = 0,
    ) -> None:
        self.method = method
        self.loss = loss
        self.hidden = hidden
        self.learning_rate = learning_rate
        self.epochs = epochs
        self.batch = batch
        self.held_out = held_out
        self.patience = patience
        self.weight_decay = weight_decay
        self.diagnose = diagnose
        self.devices = devices
        self.microbatch = microbatch
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.non_deterministic = False
        return tags

    def _features(self, X: Any, *, reset: bool) -> np.ndarray:
        """Rows as scaled single-precision numbers; the scale is that of the first rows seen."""
        if type(X).__module__.startswith("pyarrow"):
            X = np.column_stack([np.asarray(column) for column in X.columns])
        X = validate_data(self, X, reset=reset, accept_sparse=["csr", "csc"], dtype=np.float64)
        X = X.toarray() if sparse.issparse(X) else X
        if reset:
            _check_plan(self.plan_, X.shape[1])
            self.mean_ = X.mean(axis=0)
            spread = X.std(axis=0)
            self.scale_ = np.where(spread > 1e-12, spread, 1.0)
            if self.plan_ is not None and self.plan_.buckets:  # bucket numbers are names, not amounts
                self.mean_[self.plan_.numbers :], self.scale_[self.plan_.numbers :] = 0.0, 1.0
        return ((X - self.mean_) / self.scale_).astype(np.float32)

    def _learn(self, bags: Bags, importance: np.ndarray | None) -> None:
        if self._method() in ACROSS_BAGS:  # compares each bag with its own prediction, so strata are of no use to it
            lone = bags.stratum is not None and (np.bincount(bags.stratum) < 2).any()
            bags = replace(bags, stratum=None, known_prior=None, stratum_names=None)
        else:
            lone = False
            if self.diagnose:
                _warn_unless_random(bags)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        outputs = bags.report.shape[1] if bags.kind == "histogram" else 1
        start = self._loss(bags.kind, self._method()).trivial_score(_overall_prior(bags), kind=bags.kind)
        make = lambda s: _network(bags.X.shape[1], self.plan_, tuple(self.hidden), key=s, outputs=outputs, start=start)
        learn, held_out = bags, None
        enough = len(bags) >= ENOUGH_TO_HOLD_OUT and not lone and _splits(bags)
        if self.held_out and enough and importance is None:
            learn, held_out = bags.split(1 - self.held_out, seed=seed)
        auto = self.learning_rate == "auto"
        rates = RATES if auto and held_out is not None else ((RATES[1],) if auto else (float(self.learning_rate),))
        methods = self._tried(bags) if self.method == "auto" and held_out is not None else (self._method(),)
        runs = [
            run
            for method in methods
            for run in sweep(
                make,
                learn,
                cast(Method, method),
                self._loss(bags.kind, method),
                learning_rates=rates,
                seeds=(seed,),
                epochs=self.epochs,
                batch=self.batch,
                held_out=held_out,
                patience=self.patience if held_out is not None else None,
                weight_decay=self.weight_decay,
                importance=importance,
                devices=cast(Devices, self.devices),
                microbatch=self.microbatch,
            )[0]
            if run.epoch > 0
        ]
        if not runs:
            raise ValueError(
                f"A training must not diverge: all of {len(methods) * len(rates)} runs did. Scale the features, or "
                f"lower learning_rate (now {self.learning_rate})."
            )
        self.runs_ = runs
        self.choice_ = choose(runs, held_out) if held_out is not None else None
        if self.choice_ is not None and self.method == "auto" and methods != AUTO:
            self.choice_ = replace(self.choice_, reason=f"{self.choice_.reason} {WITHOUT_MATCHING}")
        self.run_ = runs[0] if self.choice_ is None else self.choice_.model
        self.model_, self.kind_, self.loss_ = self.run_.model, bags.kind, self.run_.loss
        self.method_ = self.run_.method  # with "auto", the one that was chosen
        self.bags_ = None if bags.size.max() == 1 else replace(bags, X=None)  # so that nobody evaluates on them
        self.learned_ = None if self.bags_ is None else marks(self.bags_)

    def _first_epoch(self, fit: Callable[[], Any]) -> Any:
        """Fit with one epoch and nothing held out: how learning in parts begins."""
        held_out, epochs = self.held_out, self.epochs
        try:
            self.held_out, self.epochs = 0, 1
            return fit()
        finally:
            self.held_out, self.epochs = held_out, epochs

    def _next_epoch(self, bags: Bags) -> None:
        """One more epoch from where the model is."""
        rate = RATES[1] if self.learning_rate == "auto" else float(self.learning_rate)
        model, loss = self.model_, losses.LOSSES[self.loss_]
        method = cast(Method, self.method_)
        place: dict[str, Any] = {"devices": self.devices, "microbatch": self.microbatch}
        runs = sweep(lambda _: model, bags, method, loss, learning_rates=(rate,), epochs=1, batch=self.batch, **place)
        self.run_, self.model_ = runs[0][0], runs[0][0].model

    def _method(self) -> str:
        """The method, or the one that "auto" starts from."""
        return AUTO[0] if self.method == "auto" else self.method

    def _tried(self, bags: Bags) -> tuple[str, ...]:
        """The methods that "auto" tries: matching only where its loss has a lower bound at every report."""
        form = self._loss(bags.kind, "matching").form(bags.kind)
        bad = unbounded(bags.components().report, form, bags.kind).any()
        return tuple(method for method in AUTO if not (bad and method == "matching"))

    def _loss(self, kind: Kind, method: str) -> Loss:
        return default_loss(method, kind) if self.loss is None else losses.named_loss(self.loss)

    def _scores(self, X: Any) -> np.ndarray:
        """Scores in double precision, so that they do not depend on which rows come together."""
        check_is_fitted(self)
        X = self._features(X, reset=False)
        with jax.enable_x64(True):
            model = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), self.model_)
            return np.asarray(model(jnp.asarray(X, jnp.float64)))

    def _bags(self, X: np.ndarray, y: Any, bag: Any, kind: Kind, **further: Any) -> Bags:
        bags = from_rows(bag, y, X=X, kind=kind, **further)
        if len(bags) < 2:
            raise ValueError(
                f"There must be at least two bags: {len(bags)} came (n_samples={len(X)}). One bag says nothing "
                "about who is who in it."
            )
        return bags

    def save(self, path: str | Path) -> None:
        """Write the fitted estimator to one file (safetensors, JSON, no pickle); a failed save leaves the old one."""
        check_is_fitted(self)
        leaves = jax.tree.leaves(self.model_)
        arrays = {f"leaf{i}": np.asarray(leaf) for i, leaf in enumerate(leaves)}
        arrays |= {"mean": self.mean_, "scale": self.scale_}
        settings = {
            "estimator": type(self).__name__,
            "parameters": {k: list(v) if isinstance(v, tuple) else v for k, v in self.get_params().items()},
            "kind": self.kind_,
            "loss": self.loss_,
            "method": self.method_,
            "outputs": int(leaves[-1].shape[-1]),
            "features": int(self.n_features_in_),
            "names": None if not hasattr(self, "feature_names_in_") else [str(n) for n in self.feature_names_in_],
            "classes": self.classes_.tolist() if hasattr(self, "classes_") else None,
            "plan": None if self.plan_ is None else self.plan_.to_json(),
        }
        arrays |= {} if self.learned_ is None else {"learned": self.learned_}
        save_arrays(path, arrays, settings)

    @classmethod
    def restore(cls, arrays: dict[str, np.ndarray], settings: dict[str, Any]) -> Any:
        """The estimator that was saved as these arrays and settings."""
        parameters = settings["parameters"] | {"hidden": tuple(settings["parameters"]["hidden"])}
        model = cls(**parameters)
        model.plan_ = None if settings.get("plan") is None else FeaturePlan.from_json(settings["plan"])
        model.learned_ = arrays.get("learned")
        outputs = settings["outputs"]
        blank = _network(settings["features"], model.plan_, parameters["hidden"], key=0, outputs=outputs)
        leaves = [jnp.asarray(arrays[f"leaf{i}"]) for i in range(len(jax.tree.leaves(blank)))]
        model.model_ = jax.tree.unflatten(jax.tree.structure(blank), leaves)
        model.mean_, model.scale_ = arrays["mean"], arrays["scale"]
        model.kind_, model.loss_, model.n_features_in_ = settings["kind"], settings["loss"], settings["features"]
        model.method_ = settings.get("method", model._method())  # files of before "auto" do not tell it
        if settings["names"] is not None:
            model.feature_names_in_ = np.asarray(settings["names"], dtype=object)
        if settings["classes"] is not None:
            model.classes_ = np.asarray(settings["classes"])
        return model

    def export(self) -> bytes:
        """The prediction (probabilities, or counts) as a program for serving: `jax.export`, for any number of rows.

        Load it with `jax.export.deserialize(blob).call(X)`, X in single precision as given to `predict`.
        """
        check_is_fitted(self)
        mean, scale = jnp.asarray(self.mean_, jnp.float32), jnp.asarray(self.scale_, jnp.float32)
        serve = jax.jit(lambda X: self._link(self.model_((X - mean) / scale)))
        rows = jax.export.symbolic_shape("rows")[0]
        shape = jax.ShapeDtypeStruct((rows, self.n_features_in_), jnp.float32)
        return bytes(jax.export.export(serve)(shape).serialize())

    def _link(self, score: Any) -> Any:
        """Scores as probabilities of the classes, or as counts."""
        form = losses.LOSSES[self.loss_].form(self.kind_)
        prediction = form.predict(score)
        return namespace(prediction).exp(prediction) if form.log_space else prediction

    def fit_bags(self, X: Any, bags: Sequence[Sequence[int]], proportions: Any) -> Any:
        """The field's older convention: a list of row numbers for each bag, and one report for each."""
        rows = np.concatenate([np.asarray(rows, int) for rows in bags])
        bag = np.repeat(np.arange(len(bags)), [len(rows) for rows in bags])
        X = take_rows(X if hasattr(X, "shape") else np.asarray(X), rows)
        return self.fit(X, np.asarray(proportions, float)[bag], bag=bag)  # type: ignore[attr-defined]


def _overall_prior(bags: Bags) -> np.ndarray:
    """One prior for all strata, by their shares of the rows."""
    if bags.stratum is None:
        return bags.prior
    instances = np.bincount(bags.stratum, weights=bags.size, minlength=bags.strata)
    held = instances > 0
    return np.average(bags.prior[held], axis=0, weights=instances[held])


def _check_plan(plan: FeaturePlan | None, width: int) -> None:
    if plan is not None and len(plan.names) != width:
        raise ValueError(
            f"A plan must have made the features: {width} came for a plan of {len(plan.names)}. Give the plan of these "
            "bags."
        )


def _network(width: int, plan: FeaturePlan | None, hidden: Sequence[int], **further: Any) -> Any:
    """A perceptron, with embeddings of the last columns when the plan says that they are bucket numbers."""
    if plan is None or not plan.buckets:
        return models.mlp(width, hidden, **further)
    return models.mixed_network(plan.numbers, plan.buckets, plan.dimensions, widths=hidden, **further)


def _splits(bags: Bags) -> bool:
    """Whether every stratum has bags to learn from and bags to hold out."""
    count = np.bincount(bags.stratum) if bags.stratum is not None else np.array([len(bags)])
    return bool((count[count > 0] >= 4).all())


def _warn_unless_random(bags: Bags) -> None:
    """Warn of bags that are not random; bags of one, which are labels, never are."""
    found = diagnose_bags(bags, most=LOOK_AT)
    if not found.random:
        text = f"{found.verdict} {found.remedy} unbag.diagnose(bags) tells more; diagnose=False says that you know."
        warnings.warn(text, BagsNotRandom, stacklevel=4)


def row_importance(sample_weight: Any, count: int, *, labelled: bool) -> np.ndarray | None:
    """Sample weights of rows that are bags of one, or nothing."""
    if sample_weight is None:
        return None
    if not labelled:
        raise ValueError(
            "Rows in bags must not have weights: sample_weight came with bag. A report speaks of its whole bag; "
            "declare noise with Bags(noise=...) instead."
        )
    weight = np.asarray(sample_weight, float)
    weight = np.full(count, float(weight)) if weight.ndim == 0 else weight
    if weight.shape != (count,) or not (np.isfinite(weight).all() and (weight >= 0).all() and weight.sum() > 0):
        raise ValueError(
            f"Sample weights must be finite, not negative, not all zero, and one for each of {count} rows: an array of "
            f"shape {weight.shape} and sum {weight.sum():g} came. Leave the weights out for equal ones."
        )
    return weight
