"""Features and bags in, a trained network out: what classifier and regressor share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from unbag import losses
from unbag._arrays import namespace
from unbag._model_file import save_arrays
from unbag._rules import broken
from unbag.bags import Bags, Kind, from_rows
from unbag.estimators._fit import (
    ACROSS_BAGS,
    AUTO,
    RATES,
    bounded_methods,
    enough,
    network,
    overall_prior,
    warn_unless_random,
    without_strata,
)
from unbag.losses import Loss
from unbag.methods import usual_loss
from unbag.metrics._leakage import join_marks, marks
from unbag.selection import choose_and_note
from unbag.tables._plan import FeaturePlan
from unbag.training import Method, Run, sweep

WITHOUT_MATCHING = "Matching was left out: noise puts reports where its loss has no lower bound."


class BagEstimator(BaseEstimator):
    """What classifier and regressor share: features, bags, training, persistence."""

    n_features_in_: int
    feature_names_in_: np.ndarray
    classes_: np.ndarray
    kind_: Kind
    method_: Any
    model_: Any
    plan_: FeaturePlan | None = None
    learned_: np.ndarray | None = (
        None  # marks of the bags learned from, see `unbag.metrics._leakage`
    )

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
            validate_data(self, X, reset=reset, skip_check_array=True)  # the names of its columns
            X = check_array(np.column_stack([np.asarray(column, float) for column in X.columns]))
        else:
            X = validate_data(self, X, reset=reset, accept_sparse=["csr", "csc"], dtype=np.float64)
        X = X.toarray() if sparse.issparse(X) else X
        if reset:
            _check_plan(self.plan_, X.shape[1])
            self.mean_ = X.mean(axis=0)
            spread, rounding = X.std(axis=0), 1e-12 * np.abs(X).max(axis=0)
            self.scale_ = np.where(spread > rounding, spread, 1.0)
            if (
                self.plan_ is not None and self.plan_.buckets
            ):  # bucket numbers are names, not amounts
                self.mean_[self.plan_.numbers :], self.scale_[self.plan_.numbers :] = 0.0, 1.0
        return ((X - self.mean_) / self.scale_).astype(np.float32)

    def _whole(self, learn: Callable[[Any], None]) -> Any:
        """Learn with a copy, and become it if that went well: a fit that fails leaves the model as
        it was."""
        learner = copy(self)
        learn(learner)
        self.__dict__ = vars(learner)
        return self

    def _learn(self, bags: Bags, importance: np.ndarray | None) -> None:
        method = self._method() if importance is None else "labels"
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        share = self.held_out if importance is None and enough(bags, method) else 0
        if method in ACROSS_BAGS or importance is not None:
            bags = without_strata(bags)
        elif self.diagnose:
            warn_unless_random(bags)
        learn, held_out = bags.split(1 - share, seed=seed) if share else (bags, None)
        self.runs_ = self._train(method, bags, learn, held_out, importance, seed)
        self.choice_ = choose_and_note(self.runs_, held_out) if held_out is not None else None
        if self.choice_ is not None and self.method == "auto" and self._tried(bags) != AUTO:
            self.choice_ = replace(self.choice_, reason=f"{self.choice_.reason} {WITHOUT_MATCHING}")
        self.run_ = self.runs_[0] if self.choice_ is None else self.choice_.model
        self.model_, self.kind_, self.loss_ = self.run_.model, bags.kind, self.run_.loss
        self.method_ = self.run_.method  # with "auto", the one that was chosen
        self.bags_ = (
            None if bags.size.max() == 1 else replace(bags, X=None)
        )  # so that nobody evaluates on them
        self.learned_ = None if self.bags_ is None else marks(self.bags_)

    def _train(
        self,
        method: str,
        bags: Bags,
        learn: Bags,
        held_out: Bags | None,
        importance: np.ndarray | None,
        seed: int,
    ) -> list[Run]:
        """Every method at every rate, from the trivial predictor of all bags; the runs that did not
        diverge."""
        outputs = bags.report.shape[1] if bags.kind == "histogram" else 1
        start = self._loss(bags.kind, method).trivial_score(
            overall_prior(bags, importance), kind=bags.kind
        )
        make = lambda s: network(
            bags.X.shape[1], self.plan_, tuple(self.hidden), key=s, outputs=outputs, start=start
        )
        rates = RATES if self.learning_rate == "auto" and held_out is not None else (self._rate(),)
        methods = self._tried(bags) if self.method == "auto" and held_out is not None else (method,)
        options: dict[str, Any] = {
            "epochs": self.epochs,
            "batch": self.batch,
            "patience": self.patience if held_out is not None else None,
            "weight_decay": self.weight_decay,
            "devices": self.devices,
            "microbatch": self.microbatch,
        }
        options |= {
            "learning_rates": rates,
            "seeds": (seed,),
            "held_out": held_out,
            "importance": importance,
        }
        runs = [
            run
            for method in methods
            for run in sweep(
                make, learn, cast(Method, method), self._loss(bags.kind, method), **options
            )[0]
            if run.epoch > 0
        ]
        if not runs:
            raise broken(
                "A training must not diverge",
                f"all of {len(methods) * len(rates)} runs did",
                f"Scale the features, or lower learning_rate (now {self.learning_rate}).",
            )
        return runs

    def _first_epoch(self, learn: Callable[[Any], None]) -> Any:
        """Learn with one epoch and nothing held out: how learning in parts begins."""
        held_out, epochs = self.held_out, self.epochs

        def one_epoch(learner: Any) -> None:
            learner.held_out, learner.epochs = 0, 1
            learn(learner)
            learner.held_out, learner.epochs = held_out, epochs

        return self._whole(one_epoch)

    def _next_epoch(self, bags: Bags) -> None:
        """One more epoch from where the model is."""
        model, loss = self.model_, losses.LOSSES[self.loss_]
        weighted = self.method_ == "labels"  # the first rows had weights, and these have none
        method = cast(Method, self._method() if weighted else self.method_)
        options: dict[str, Any] = {
            "epochs": 1,
            "batch": self.batch,
            "weight_decay": self.weight_decay,
        }
        options |= {"devices": self.devices, "microbatch": self.microbatch}
        runs = sweep(lambda _: model, bags, method, loss, learning_rates=(self._rate(),), **options)
        self.run_, self.model_ = runs[0][0], runs[0][0].model
        if bags.size.max() > 1:  # two sets of bags are known again by their marks alone
            self.bags_, self.learned_ = None, join_marks(self.learned_, marks(bags))

    def _method(self) -> str:
        """The method, or the one that "auto" starts from."""
        return AUTO[0] if self.method == "auto" else self.method

    def _tried(self, bags: Bags) -> tuple[str, ...]:
        """The methods that "auto" tries."""
        return bounded_methods(bags, self._loss(bags.kind, "matching").form(bags.kind))

    def _rate(self) -> float:
        """The learning rate where nothing can be chosen."""
        return RATES[1] if self.learning_rate == "auto" else float(self.learning_rate)

    def _loss(self, kind: Kind, method: str) -> Loss:
        return usual_loss(method, kind) if self.loss is None else losses.named_loss(self.loss)

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
            raise broken(
                "There must be at least two bags",
                f"{len(bags)} came (n_samples={len(X)})",
                "One bag says nothing about who is who in it.",
            )
        return bags

    def save(self, path: str | Path) -> None:
        """Write the fitted estimator to one file (safetensors, JSON, no pickle); a failed save
        leaves the old one."""
        check_is_fitted(self)
        leaves = jax.tree.leaves(self.model_)
        arrays = {f"leaf{i}": np.asarray(leaf) for i, leaf in enumerate(leaves)}
        arrays |= {"mean": self.mean_, "scale": self.scale_}
        settings = {
            "estimator": type(self).__name__,
            "parameters": {name: _plain(value) for name, value in self.get_params().items()},
            "kind": self.kind_,
            "loss": self.loss_,
            "method": self.method_,
            "outputs": int(leaves[-1].shape[-1]),
            "features": int(self.n_features_in_),
            "names": None
            if not hasattr(self, "feature_names_in_")
            else [str(n) for n in self.feature_names_in_],
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
        model.plan_ = (
            None if settings.get("plan") is None else FeaturePlan.from_json(settings["plan"])
        )
        model.learned_ = arrays.get("learned")
        outputs = settings["outputs"]
        blank = network(
            settings["features"], model.plan_, parameters["hidden"], key=0, outputs=outputs
        )
        leaves = [jnp.asarray(arrays[f"leaf{i}"]) for i in range(len(jax.tree.leaves(blank)))]
        model.model_ = jax.tree.unflatten(jax.tree.structure(blank), leaves)
        model.mean_, model.scale_ = arrays["mean"], arrays["scale"]
        model.kind_, model.loss_, model.n_features_in_ = (
            settings["kind"],
            settings["loss"],
            settings["features"],
        )
        model.method_ = settings.get(
            "method", model._method()
        )  # files of before "auto" do not tell it
        if settings["names"] is not None:
            model.feature_names_in_ = np.asarray(settings["names"], dtype=object)
        if settings["classes"] is not None:
            model.classes_ = np.asarray(settings["classes"])
        return model

    def export(self) -> bytes:
        """The prediction (probabilities, or counts) as a program for serving: `jax.export`, for any
        number of rows.

        Load it with `jax.export.deserialize(blob).call(X)`, X in single precision as given to
        `predict`.
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


def _plain(value: Any) -> Any:
    """A parameter as JSON has it. A random state, which has been drawn from since, is chance:
    None."""
    if isinstance(value, tuple | list | np.ndarray):
        return [_plain(one) for one in value]
    if isinstance(value, np.random.RandomState):
        return None
    return value.item() if isinstance(value, np.generic) else value


def _check_plan(plan: FeaturePlan | None, width: int) -> None:
    if plan is not None and len(plan.names) != width:
        raise broken(
            "A plan must have made the features",
            f"{width} came for a plan of {len(plan.names)}",
            "Give the plan of these bags.",
        )
