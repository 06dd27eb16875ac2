"""What classifier and regressor share: rows and targets in, a fitted model and its file out."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import _num_samples, check_is_fitted, column_or_1d, validate_data

from unbag import losses
from unbag._arrays import namespace
from unbag._lazy import as_html
from unbag._model_file import Misfit, save_arrays
from unbag._rules import broken, lacks_offset
from unbag.bags import Bags, Kind, from_rows
from unbag.estimators._network import Training
from unbag.estimators._targets import RowReports, impossible_shares, row_importance, row_reports
from unbag.learners import LEARNERS, DataWarning, Fitted, Learner, fit
from unbag.metrics import join_marks, level_note, marks
from unbag.tables import (
    FeaturePlan,
    Marginals,
    OldScore,
    in_range,
    is_known,
    is_number,
    open_table,
    plan_features,
)

Targets = tuple[np.ndarray, Any, Kind]
# a matrix in double precision; which of its numbers are usable is another question
NUMBERS: dict[str, Any] = {"accept_sparse": ["csr", "csc"], "dtype": np.float64}
NUMBERS["ensure_all_finite"] = False


class BagEstimator(BaseEstimator):
    """What classifier and regressor share: features, bags, training, persistence."""

    n_features_in_: int
    feature_names_in_: np.ndarray
    classes_: np.ndarray
    kind_: Kind
    method_: Any
    model_: Any
    plan_: FeaturePlan | None = None
    fitted_: Fitted | None = None  # None for one network that was trained by itself
    old_score_: OldScore | None = None
    learned_: np.ndarray | None = None  # marks of the bags learned from, see `unbag.metrics.marks`

    def __init__(
        self,
        method: str | None = None,
        loss: str | None = None,
        *,
        learner: Any = "auto",
        folds: int = 5,
        time_limit: float | None = None,
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
        self.learner = learner
        self.folds = folds
        self.time_limit = time_limit
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
        tags.input_tags.allow_nan = True
        tags.non_deterministic = False
        return tags

    def fit(
        self,
        X: Any,
        y: Any,
        bag: Any = None,
        sample_weight: Any = None,
        *,
        stratum: Any = None,
        noise: Any = None,
        prior: Any = None,
        offset: Any = None,
    ) -> Self:
        """Learn from bags, or from labels when no bag is given.

        Parameters
        ----------
        X : array, frame, pyarrow.Table or sparse matrix
            Rows of features. The columns of a frame (pandas, polars, Arrow) may be numbers, text,
            categories, dates or truth values, with missing ones.
        y : array or frame
            With `bag`, for each row the proportion, the mean count or the row of class shares that
            its bag reported, or a pandas object with one entry for each bag, indexed by the ids in
            `bag`; the columns of a frame of shares name the classes. Without, labels or counts, or
            what `unbag.bag_targets` made, which carries the bags.
        bag : array, optional
            Id of each row's bag.
        sample_weight : array, optional
            Of each row, only without bags: a report speaks of its whole bag. Rows with weights are
            learned from by a network and the method "labels", whichever was chosen, because only
            there does a row's weight change what is estimated; nothing is held out.
        stratum : array, optional
            Of each row, the same throughout a bag, when bags are random only within strata
            (campaigns, days).
        noise : array, optional
            Of each row, variance of the noise on its bag's count, the same throughout a bag.
        prior : float or array, optional
            The mean label (or the class shares) if it is known from elsewhere, see `Bags`; else the
            mean report.
        offset : array, optional
            Of each row, added to its score: the logarithm of its exposure, or the score of a model
            that is already there, to which bags then teach a correction. `predict` needs it too.
        """
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        rows, further = row_reports(y, bag, stratum, noise), {"prior": prior, "offset": offset}
        if rows.bag is None and rows.y.ndim < np.asarray(y).ndim:
            column_or_1d(np.asarray(y), warn=True)  # as other estimators warn of a column of labels
        return self._whole(lambda learner: learner._fit(X, rows, sample_weight, **further))

    def fit_bags(self, bags: Bags | Marginals, *, classes: Sequence[Any] | None = None) -> Self:
        """Learn from bags as `join`, `random_bags` or `from_rows` made them, or from cells of
        `join_marginals`.

        Parameters
        ----------
        bags : Bags or Marginals
            With features; bags whose report is not observed are left out. Of joined bags the plan
            of the features is kept.
        classes : sequence, optional
            What the classes of a histogram are called; by default their numbers.

        >>> from unbag import BagClassifier, random_bags
        >>> X = np.arange(200.0)[:, None]
        >>> bags = random_bags(X, X[:, 0] > 100, size=5, seed=0)
        >>> BagClassifier(hidden=(), epochs=20).fit_bags(bags).predict([[20.0], [180.0]])
        array([0, 1])
        """
        return self._whole(lambda learner: learner._fit_bags(bags.reported(), classes))

    def _fit_bags(self, bags: Any, classes: Sequence[Any] | None) -> None:
        self._name_classes(bags, classes)
        self.plan_ = getattr(bags, "plan", None)
        self.old_score_ = getattr(bags, "old_score", None)
        if not self._asks_training():
            table = getattr(bags, "table", None)
            self._fit_learners(
                replace(bags, X=self._rows(bags.X if table is None else table, reset=True))
            )
        elif isinstance(bags, Marginals):
            raise broken(
                "Marginal tables must be learned by the additive model",
                f"{', '.join(Training.of(self).given)} given, which train one network",
                "Leave them out.",
            )
        else:
            self._train_alone(replace(bags, X=self._matrix(bags.X, reset=True)), None)
        self.learned_ = marks(bags)  # also of bags of one, which fit takes for labels

    def _name_classes(self, bags: Bags, classes: Sequence[Any] | None) -> None:
        """Refuse bags of another kind, and say what the classes are called."""
        raise NotImplementedError

    def _fit(
        self,
        X: Any,
        rows: RowReports,
        sample_weight: Any = None,
        *,
        classes: Any = None,
        alone: bool = False,
        **further: Any,
    ) -> None:
        self.plan_ = self.old_score_ = None
        alone = alone or sample_weight is not None or self._asks_training()
        X = (self._matrix if alone else self._rows)(X, reset=True)
        targets = self._first_targets(rows, _num_samples(X), classes)
        importance = row_importance(sample_weight, _num_samples(X), labelled=rows.bag is None)
        bags = self._bags(X, targets, rows, **further)
        if alone:
            self._train_alone(bags, importance)
        else:
            self._fit_learners(bags)

    def _first_targets(self, rows: RowReports, count: int, classes: Any) -> Targets:
        """The targets of the first rows, which say what the classes are."""
        return self._targets(rows, count)

    def _targets(self, rows: RowReports, count: int) -> Targets:
        """Reports of each row, bag ids, and the kind of the reports."""
        raise NotImplementedError

    def _bags(self, X: Any, targets: Targets, rows: RowReports, **further: Any) -> Bags:
        y, bag, kind = targets
        own = {"stratum": rows.stratum, "noise": rows.noise}
        bags = from_rows(bag, y, X=X, kind=kind, **own, **further)
        if len(bags) < 2:
            rule = "There must be at least two bags"
            remedy = "One bag says nothing about who is who in it."
            raise broken(rule, f"{len(bags)} given (n_samples={_num_samples(X)})", remedy)
        impossible = impossible_shares(bags)
        if impossible is not None:
            warnings.warn(impossible, DataWarning, stacklevel=5)
        return bags

    def _go_on(self, X: Any, rows: RowReports, classes: Any = None) -> Self:
        """One epoch over these bags, the first or one more."""
        if not hasattr(self, "kind_") or self.fitted_ is not None:
            held_out, epochs = self.held_out, self.epochs

            def one_epoch(learner: Any) -> None:  # with nothing held out
                learner.held_out, learner.epochs = 0, 1
                learner._fit(X, rows, classes=classes, alone=True)
                learner.held_out, learner.epochs = held_out, epochs

            return self._whole(one_epoch)
        X = self._matrix(X, reset=False)
        bags = self._bags(X, self._targets(rows, _num_samples(X)), rows)
        training, method = self._training(), self.method_
        if method == "labels":  # the first rows had weights, and these have none
            method = training.first_method
        loss = losses.LOSSES[self.loss_]
        self.model_, self.run_ = training.one_epoch(self.model_, bags, method, loss)
        if bags.size.max() > 1:  # two sets of bags are known again by their marks alone
            self.bags_, self.learned_ = None, join_marks(self.learned_, marks(bags))
        return self

    def _matrix(self, X: Any, *, reset: bool) -> Any:
        """Rows as a matrix of numbers for one network, in which some may be missing."""
        planned = not reset and self.plan_ is not None
        if _is_table(X):
            if reset or self.plan_ is None or hasattr(self, "feature_names_in_"):
                validate_data(
                    self, X, reset=reset, skip_check_array=True
                )  # the names of its columns
            X = self._matrix_of(X, reset=reset)
        elif planned and np.shape(X)[1:] == (len(self.plan_.names),):  # type: ignore[union-attr]
            X = check_array(X, dtype="float64", ensure_all_finite=False)  # the plan made it
        else:
            X = validate_data(self, X, reset=reset, **NUMBERS)
        X, beyond = in_range(X)
        for note in beyond:
            warnings.warn(note, DataWarning, stacklevel=4)
        return X

    def _matrix_of(self, X: Any, *, reset: bool) -> np.ndarray:
        """The columns of a table as numbers, by a plan where some of them are no numbers."""
        if reset and self.plan_ is None:
            table = open_table(X)
            known = all(is_number(kind) for kind in table.schema.types)
            columns = table.read(table.schema.names).columns if known else []
            if not known or not all(is_known(np.asarray(c, float)).all() for c in columns):
                self.plan_ = plan_features(X)
        if self.plan_ is not None and self.plan_.reads(X):
            return self.plan_.apply(X).astype(np.float64)  # as a matrix that the plan made
        columns = [np.asarray(column, float) for column in _columns_of(X)]
        return check_array(np.column_stack(columns), input_name="X", ensure_all_finite=False)

    def _rows(self, X: Any, *, reset: bool) -> Any:
        """Rows as the learners take them: tables as they are, else a matrix of numbers."""
        plan = None if reset else self._plan_of_events()
        if _is_table(X) and plan is not None:  # the columns that it reads, as they were at training
            table = open_table(X)
            batch = table.read(table.need(plan.read))
            return plan.columns_of(batch) if self.takes_tables else plan.features(batch)
        if _is_table(X):
            validate_data(self, X, reset=reset, skip_check_array=True)  # the names of its columns
            if _num_samples(X) == 0:
                rule = "There must be at least one row"
                raise broken(rule, "0 given (samples)", "Give at least one.")
            if reset or self.takes_tables:
                return X
            return np.column_stack([np.asarray(column, float) for column in _columns_of(X)])
        if plan is not None and not hasattr(X, "tocsr") and np.asarray(X).dtype.kind in "OUS":
            rule = "Rows for a model of tables must be a table with its columns"
            remedy = "Give a frame, as pandas.DataFrame(rows), or an Arrow table."
            raise broken(rule, f"{type(X).__name__} given", remedy)
        X = validate_data(self, X, reset=reset, **NUMBERS)
        if not reset and self.takes_tables:
            return pa.table(dict(zip(self.feature_names_in_, X.T, strict=True)))
        return X

    def _plan_of_events(self) -> FeaturePlan | None:
        """The plan, if it reads tables of events: these have further columns, such as keys."""
        if self.plan_ is None:
            return None
        if {*self.plan_.read} != {*getattr(self, "feature_names_in_", self.plan_.read)}:
            return None
        return self.plan_

    def _asks_training(self) -> bool:
        """Whether the options ask for one network that is trained by itself."""
        return self.learner == "auto" and bool(Training.of(self).given)

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _fit_learners(self, bags: Bags) -> None:
        """Cross-fit and combine, see `unbag.fit`."""
        training, learner = Training.of(self), self.learner
        if learner == "network":
            learner = training.as_learner()
        elif training.given and learner != "auto":
            raise broken(
                "Options of training must come with a network",
                f"{', '.join(training.given)} given with learner={learner!r}",
                "Leave them out, or say {learner:network}.",
            )
        options = {"folds": self.folds, "time_limit": self.time_limit, "seed": self._seed()}
        self._keep(fit(bags, learner=learner, **options))
        self._remember(bags)

    def _keep(self, fitted: Fitted) -> None:
        self.fitted_, self.kind_ = fitted, fitted.kind
        self.loss_ = losses.proper_loss(fitted.kind).name
        self.evaluation_, self.notes_ = fitted.evaluation, fitted.notes
        self.model_ = self.run_ = self.choice_ = None
        self.method_, self.runs_ = " and ".join(fitted.weights), []

    def of_fitted(
        self,
        fitted: Fitted,
        plan: FeaturePlan,
        *,
        classes: Sequence[Any] | None = None,
        old_score: OldScore | None = None,
    ) -> Self:
        """Become a model that was fitted elsewhere, as by `unbag.learners.fit_files`.

        Parameters
        ----------
        fitted : Fitted
            The model.
        plan : FeaturePlan
            How the columns of the events are read.
        classes : sequence, optional
            What the classes of a histogram are called.
        old_score : OldScore, optional
            Where events have what is added to their scores.
        """
        self._keep(fitted)
        self.plan_, self.bags_, self.learned_ = plan, None, fitted.learned_
        self.old_score_ = old_score
        names = plan.read
        self.feature_names_in_, self.n_features_in_ = np.array(names, dtype=object), len(names)
        if fitted.kind != "total":
            self.classes_ = np.arange(2) if classes is None else np.array(classes)
        return self

    def _train_alone(self, bags: Bags, importance: np.ndarray | None) -> None:
        """Train one network, stopped by held-out bags."""
        if bags.offset is not None:
            rule = "An offset must come to learners that take it"
            remedy = "Leave these out, or say {learner:network}."
            raise broken(rule, "it is given with options of one training", remedy)
        self.fitted_, self.evaluation_, self.notes_ = None, None, ()
        how = {"plan": self.plan_, "seed": self._seed(), "diagnosed": self.diagnose}
        trained = self._training().fit(bags, importance=importance, **how)
        self.model_, self.runs_, self.run_, self.choice_ = trained
        self.kind_, self.loss_ = bags.kind, self.run_.loss
        self.method_ = self.run_.method  # with "auto", the one that was chosen
        if importance is None:  # weighted rows have another mean
            h = self._link(self.model_.scores(bags.X))
            note = level_note(h[:, 1] if bags.kind == "binary" else h, bags)
            self.notes_ = () if note is None else (note,)
        self._remember(bags)

    def _training(self) -> Training:
        """The options of one training, checked."""
        return Training.of(self)

    def _remember(self, bags: Bags) -> None:
        """Keep the bags learned from, or their marks, so that nobody evaluates on them."""
        self.bags_ = self.learned_ = None
        if bags.size.max() > 1 and isinstance(bags, Bags):
            self.bags_ = replace(bags.bare(), offset=None)
            self.learned_ = marks(self.bags_)

    def _html_repr(self) -> str:
        """In notebooks: the diagram of scikit-learn, and what bags say of the fitted model."""
        diagram = super()._html_repr()
        if self.fitted_ is None:
            return diagram
        return f"{diagram}{as_html(self.fitted_)}"

    @property
    def takes_tables(self) -> bool:
        """Whether rows come as a table: so they did at training."""
        return self.fitted_ is not None and self.fitted_.takes_tables

    @property
    def offset_apart(self) -> bool:
        """Whether scores come without the offset of the rows."""
        return self.fitted_ is not None

    def _whole(self, learn: Callable[[Any], None]) -> Any:
        """Learn with a copy, and become it if that went well: a fit that fails leaves the model as
        it was."""
        learner = copy(self)
        learn(learner)
        self.__dict__ = vars(learner)
        return self

    def _scores(self, X: Any, offset: Any = None) -> np.ndarray:
        """Scores to predict by: never without the offset that the model learned with."""
        check_is_fitted(self, "kind_")
        if offset is None and self.fitted_ is not None and self.fitted_.needs_offset:
            old = self.old_score_  # where the rows bring their old scores or exposures
            if old is None or not _is_table(X) or old.column not in open_table(X).schema.names:
                raise lacks_offset(getattr(old, "column", None))
            offset = old.scores(open_table(X).read([old.column]))
        return self.scores_at(X, offset)

    def scores_at(self, X: Any, offset: Any) -> np.ndarray:
        """Scores of rows with this offset added, or with none where it is None; in double
        precision, so that they do not depend on which rows come together.

        Parameters
        ----------
        X : array, frame, pyarrow.Table or sparse matrix
            Rows of features.
        offset : array or None
            Of each row; one network takes none.
        """
        if self.fitted_ is not None:
            return self.fitted_.scores_at(self._rows(X, reset=False), offset)
        return self.model_.scores(self._matrix(X, reset=False))

    def score(
        self,
        X: Any,
        y: Any,
        bag: Any = None,
        sample_weight: Any = None,
        *,
        stratum: Any = None,
        noise: Any = None,
        offset: Any = None,
    ) -> float:
        """Minus the log loss (of counts the Poisson loss, its constant left out): estimated from
        bags without bias when `bag` is given, else from labels.

        Parameters
        ----------
        X, y, bag, sample_weight, stratum, noise, offset : array
            See `fit`.
        """
        from unbag.estimators._judgement import estimate_loss, refuse_cut_bags  # late: not to learn

        score, rows = self._scores(X, offset), row_reports(y, bag, stratum, noise)
        weight = row_importance(sample_weight, len(score), labelled=rows.bag is None)
        if self.kind_ == "total":  # a network that learned by the square loss has no log rates
            score = np.log(np.maximum(self._link(score), 1e-12))
        reports, _, kind = self._targets(rows, len(score))
        refuse_cut_bags(self, rows)
        further = {"sample_weight": weight, "stratum": rows.stratum, "noise": rows.noise}
        return -estimate_loss(score, reports, rows.bag, kind, **further)

    def save(self, path: str | Path, *, force: bool = True) -> None:
        """Write the fitted estimator to one file (safetensors, JSON, no pickle); a failed save
        leaves the old one.

        Parameters
        ----------
        path : str or Path
            Where to.
        force : bool
            Whether a file that is there is replaced; else it is refused.
        """
        check_is_fitted(self)
        if self.fitted_ is not None:
            of_learners, own = self.fitted_.arrays()
            arrays = {f"fitted.{name}": array for name, array in of_learners.items()}
            settings: dict[str, Any] = {"fitted": own}
        else:
            arrays, own = self.model_.arrays()
            settings = {"network": own}
        settings |= {
            "estimator": type(self).__name__,
            "parameters": {name: _plain(value) for name, value in self.get_params().items()},
            "kind": self.kind_,
            "loss": self.loss_,
            "method": self.method_,
            "features": int(self.n_features_in_),
            "names": _plain(getattr(self, "feature_names_in_", None)),
            "classes": _plain(getattr(self, "classes_", None)),
            "plan": self.plan_ and self.plan_.to_json(),
            "old_score": self.old_score_,
        }
        if self.learned_ is not None:
            arrays["learned"] = self.learned_
        save_arrays(path, arrays, settings, force=force)

    @classmethod
    def restore(cls, arrays: dict[str, np.ndarray], settings: dict[str, Any]) -> Any:
        """The estimator that was saved as these arrays and settings."""
        parameters = settings["parameters"] | {
            "hidden": tuple(np.atleast_1d(settings["parameters"]["hidden"]).tolist())
        }
        model = cls(**parameters)
        model.kind_, model.loss_ = settings["kind"], settings["loss"]
        model.n_features_in_ = settings["features"]
        if settings["names"] is not None:
            model.feature_names_in_ = np.asarray(settings["names"], dtype=object)
        if settings["classes"] is not None:
            model.classes_ = np.asarray(settings["classes"])
        model.method_ = settings["method"]
        if settings.get("from_matrix"):
            raise Misfit("it was fitted to the matrix of a plan, by an unbag of before 2026-11-18")
        if settings["old_score"] is not None:
            model.old_score_ = OldScore(*settings["old_score"])
        if settings["plan"] is not None:
            model.plan_ = FeaturePlan.from_json(settings["plan"])
        model.learned_ = arrays.get("learned")
        if "fitted" in settings:
            own = {k.removeprefix("fitted."): a for k, a in arrays.items() if k != "learned"}
            model.fitted_ = Fitted.restore(own, settings["fitted"])
            if model.old_score_ is not None:  # as files of before 2026-11-17 do not say
                model.fitted_ = replace(model.fitted_, needs_offset=True)
            return model
        if "network" not in settings:
            raise Misfit("its network was saved by an unbag of before 2026-11-17")
        model.model_ = LEARNERS["network"].restore(arrays, settings["network"])
        return model

    def export(self) -> bytes:
        """The prediction (probabilities, or counts) as a program for serving: `jax.export`, for any
        number of rows.

        Load it with `jax.export.deserialize(blob).call(X)`, X in single precision as given to
        `predict`.
        """
        check_is_fitted(self)
        if self.fitted_ is not None:
            rule = "A program for serving must be made of one network"
            remedy = "Choose one with {method:anchored}, or write the model with to_onnx."
            raise broken(rule, f"learner={self.learner!r} learned {self.method_}", remedy)
        import jax  # late, as in `_network`

        network, centred = self.model_.network(), self.model_.columns.centred
        serve = jax.jit(lambda X: self._link(network(centred(X))))
        rows = jax.export.symbolic_shape("rows")[0]
        shape = jax.ShapeDtypeStruct((rows, self.n_features_in_), np.float32)
        return bytes(jax.export.export(serve)(shape).serialize())

    def _link(self, score: Any) -> Any:
        """Scores as probabilities of the classes, or as counts."""
        form = losses.LOSSES[self.loss_].form(self.kind_)
        prediction = form.predict(score)
        if form.log_space:
            return namespace(prediction).exp(prediction)
        return prediction


def _is_table(X: Any) -> bool:
    """Whether X has named columns: a frame of pandas or polars, or an Arrow table."""
    return hasattr(X, "columns") and hasattr(X, "shape")


def _columns_of(X: Any) -> list[Any]:
    """The columns of a table, of any library."""
    if type(X).__module__.startswith("pyarrow"):
        return list(X.columns)
    return [X[name] for name in X.columns]


def _plain(value: Any) -> Any:
    """A parameter as JSON has it: a learner is its name, and a random state, which has been drawn
    from since, is chance: None."""
    if isinstance(value, tuple | list | np.ndarray):
        return [_plain(one) for one in value]
    if isinstance(value, np.random.RandomState):
        return None
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Learner):
        return value.name
    return value
