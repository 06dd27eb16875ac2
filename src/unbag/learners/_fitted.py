"""A model that learned from bags: it predicts, says how good it is, and goes into a file."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, ClassVar, cast

import numpy as np
from scipy import special

from unbag._lazy import as_html
from unbag._rules import Refused, broken, lacks_offset, rows
from unbag.additive import AdditiveModel, DataWarning, Effect
from unbag.bags import Bags, Kind
from unbag.learners._combine import Combination, offset_of, trivial_level
from unbag.learners._folds import look_random
from unbag.learners._protocol import Model, arrays_of, under
from unbag.learners._table import LEARNERS
from unbag.learners._trees import TreeColumns
from unbag.learners._verdict import OFFSET_ALONE, Verdict, verdict_of
from unbag.losses import proper_loss
from unbag.metrics import Estimate, Evaluation, ScoredBags, check_apart, evaluate_counts, scores_on
from unbag.tables import JoinedBags, Marginals, in_range, is_matrix

PESSIMISTIC = (
    "The evaluation is of the models of {folds} folds, each learned from the bags of the other "
    "folds; the final model learned from all bags, so this is slightly pessimistic for it."
)
NOT_RANDOM = "the bags are not random"
BAGS_OF_STRATUM = 4


@dataclass(frozen=True, eq=False, repr=False)
class Fitted:
    """A model that learned from bags, and what all bags say of it.

    Parameters
    ----------
    kind : {"binary", "total", "histogram"}
        What it predicts.
    models : dict of str to Model
        The final model of each learner.
    combination : Combination
        How their scores become one.
    evaluation : Evaluation or None
        From every bag, each judged by models that never saw it; None with too few bags.
    test : Evaluation or None
        From bags that were kept untouched, if that was asked for.
    notes : tuple of str
        What a user should know.
    learned_ : numpy.ndarray or None
        Marks of the bags learned from, where they have names, so that nobody evaluates on them.
    takes_tables : bool
        Whether it reads the columns of tables; else it takes a matrix.
    gain : Estimate or None
        By how many nats a bag's report is likelier than by the prior, for models that never saw it.
    slope : Estimate or None
        By how much the scores of these models should be stretched; 1 is right.
    worth : float or None
        How many labelled rows say as much of the effects as the bags do.
    needs_offset : bool
        Whether rows had an offset at training: nothing is predicted without one then.
    """

    kind: Kind
    models: dict[str, Model]
    combination: Combination
    evaluation: Evaluation | None = None
    test: Evaluation | None = None
    notes: tuple[str, ...] = ()
    learned_: np.ndarray | None = field(default=None, repr=False)
    takes_tables: bool = False
    gain: Estimate | None = None
    slope: Estimate | None = None
    worth: float | None = None
    needs_offset: bool = False

    offset_apart: ClassVar[bool] = True
    """Scores come without the offset of the rows."""

    _repr_html_ = as_html

    def __repr__(self) -> str:
        return f"Fitted({self.combination}; {self.kind})"

    @property
    def weights(self) -> dict[str, float]:
        """The weight of each learner in the combined score; all 0 is the prior."""
        return dict(zip(self.combination.names, self.combination.weights.tolist(), strict=True))

    @property
    def baseline(self) -> str:
        """What `gain` is over: the prior, or the offset of the rows at the right level."""
        return OFFSET_ALONE if self.needs_offset else "the prior"

    @property
    def verdict(self) -> Verdict:
        """Is the model better than the prior, how surely, what matters, and what to do next."""
        return self.verdict_with(self.strengths)

    def verdict_with(self, strengths: Mapping[str, float]) -> Verdict:
        """The verdict with strengths of the columns that were measured elsewhere."""
        known = {"slope": self.slope, "worth": self.worth, "baseline": self.baseline}
        return verdict_of(self.evaluation, self.gain, strengths=strengths, **known)

    @cached_property
    def effects(self) -> list[Effect]:
        """What the additive model makes each column add to the combined score, the strongest first;
        empty where that model has no part."""
        model: Any = self.models.get("additive")
        weight = self.weights.get("additive", 0.0)
        if model is None or not weight:
            return []
        return [one.times(weight) for one in model.effects()]

    @property
    def strengths(self) -> dict[str, float]:
        """Of each column the standard deviation of its effect."""
        return {effect.name: effect.strength for effect in self.effects}

    @property
    def judged_by_counts(self) -> bool:
        """Whether only the likelihood of counts could judge it, as its bags were not random."""
        return self.evaluation is not None and "gain_over_prior" in self.evaluation.estimates

    def evaluate(self, bags: Bags | Marginals) -> Evaluation:
        """What further bags say of the model, in the way in which those of training were judged."""
        if not isinstance(bags, Marginals):
            return tested(self, bags)
        from unbag.learners._held_cells import judged_cells  # late, as bags do not need it

        model = self.models.get("additive")
        if not isinstance(model, AdditiveModel) or len(self.models) > 1:
            raise broken(
                "Cells of marginal tables must judge the additive model alone",
                f"{' and '.join(self.models)} given",
                "Learn with {learner:additive}, or evaluate by bags.",
            )
        check_apart(self, cast(Any, bags), None)
        held = bags.take(np.flatnonzero(bags.observed))
        return judged_cells(model, held, held).evaluation

    def scores(self, X: Any) -> np.ndarray:
        """Logits, log rates or class scores of rows, without their offset.

        Parameters
        ----------
        X : table or matrix
            Rows as they were at training.
        """
        if is_matrix(X):
            X, beyond = in_range(X)
            for note in beyond:
                warnings.warn(note, DataWarning, stacklevel=2)
        return self.combination.apply(np.stack([self.models[n].scores(X) for n in self.weights]))

    def predict(self, X: Any, *, offset: Any = None) -> np.ndarray:
        """The probability of label 1, the mean count, or the probability of each class.

        Parameters
        ----------
        X : table or matrix
            Rows as they were at training.
        offset : array, optional
            Of each row, where bags had one: log exposure, or an old model's score.
        """
        if offset is None and self.needs_offset:
            raise lacks_offset()
        return _PREDICT[self.kind](self.scores_at(X, offset))

    def scores_at(self, X: Any, offset: Any) -> np.ndarray:
        """Scores of rows with this offset added, or with none where it is None.

        Parameters
        ----------
        X : table or matrix
            Rows as they were at training.
        offset : array or None
            Of each row.
        """
        score = self.scores(X)
        if offset is None:
            return score
        own = np.asarray(offset, float)
        if own.ndim:
            rows(len(own), len(score), thing="offset", of="row")
        return score + own.reshape(own.shape + (1,) * (score.ndim - 1))

    def predict_proba(self, X: Any, *, offset: Any = None) -> np.ndarray:
        """The probability of each class, one column for each; see `Fitted.predict`."""
        if self.kind == "total":
            raise broken("Probabilities must come from labels", "counts given", "Use predict.")
        h = self.predict(X, offset=offset)
        return h if self.kind == "histogram" else np.stack([1 - h, h], axis=1)

    def arrays(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """The model as arrays and settings that JSON can hold, for the model file."""
        arrays, models = arrays_of({"combination": self.combination, **self.models})
        if self.learned_ is not None:
            arrays["learned"] = self.learned_
        settings: dict[str, Any] = {"kind": self.kind, "notes": list(self.notes)}
        settings |= {"combination": models.pop("combination"), "models": models}
        settings |= {"takes_tables": self.takes_tables, "needs_offset": self.needs_offset}
        return arrays, settings

    @classmethod
    def restore(cls, arrays: dict[str, np.ndarray], settings: dict[str, Any]) -> Fitted:
        """The model that `arrays` described, without its evaluation; see `Model.restore`."""
        models = {
            name: LEARNERS[name].restore(under(arrays, name), own)
            for name, own in settings["models"].items()
        }
        combination = Combination.restore(under(arrays, "combination"), settings["combination"])
        return cls(
            settings["kind"],
            models,
            combination,
            notes=tuple(settings["notes"]),
            learned_=arrays.get("learned"),
            takes_tables=settings["takes_tables"],
            needs_offset=settings.get("needs_offset", False),  # older files do not say
        )


_PREDICT = {"binary": special.expit, "total": np.exp, "histogram": partial(special.softmax, axis=1)}


def tested(fitted: Fitted, bags: Bags) -> Evaluation:
    """What untouched bags say of the final model, in the way in which all bags were judged."""
    bags, usual = as_read(bags), proper_loss(bags.kind)
    scored = ScoredBags.of(scores_on(fitted, bags), bags, usual)
    return evaluate_further(scored, by_counts=fitted.judged_by_counts)


def as_read(bags: Bags) -> Bags:
    """Joined bags with the columns as they were in place of the matrix made from them."""
    return bags.as_read() if isinstance(bags, JoinedBags) else bags


def within_constants(bags: Bags) -> tuple[Bags, list[str]]:
    """Bags with strata by the categories that no bag mixes, where nobody gave strata.

    Bags of one campaign each may be random within campaigns and never are without: a bag must be
    compared with bags of its own campaign only. Where there are fewer than `BAGS_OF_STRATUM` bags
    for each stratum that would be made, nothing is changed.
    """
    if bags.stratum is not None or is_matrix(bags.X) or bags.size.mean() < 2:
        return bags, []
    constant: dict[str, np.ndarray] = {}
    for name, code in TreeColumns.of(bags.X).codes(bags.X):
        first = np.empty(len(bags), code.dtype)
        first[bags.bag] = code
        if np.array_equal(code, first[bags.bag]) and np.ptp(first) > 0:
            constant[name] = first
    if not constant:
        return bags, []
    together = np.stack(list(constant.values()), axis=1)
    stratum = np.unique(together, axis=0, return_inverse=True)[1].ravel()
    if len(bags) < BAGS_OF_STRATUM * (stratum.max() + 1):
        return bags, []
    words = ", ".join(constant)
    note = f"No bag mixes {words}: bags are compared with those of the same {words} only."
    return replace(bags, stratum=stratum), [note]


def evaluate_further(scored: ScoredBags, *, by_counts: bool = False) -> Evaluation:
    """What bags that had no part in learning say of a model, judged as those of training are: by
    losses where bags are random, maybe within the columns that no bag mixes, else by the likelihood
    of their reports.

    Parameters
    ----------
    scored : ScoredBags
        Bags that the model did not learn from, with its scores.
    by_counts : bool
        Whether the bags of training were judged by their likelihood: then these are too.
    """
    from unbag.metrics import evaluate_scored  # late, as learning does not need it

    why = NOT_RANDOM
    within, notes = within_constants(as_read(scored.bags))
    known = np.flatnonzero(within.observed)
    bags, score = within.take(known), scored.score[within.rows_of(known)]
    if not by_counts and look_random(score[None], bags, np.zeros(len(bags), int)):
        try:
            evaluation = evaluate_scored(scored._replace(bags=within))
            return replace(evaluation, notes=(*notes, *evaluation.notes))
        except Refused as error:
            why = reason(error)
    trivial = np.broadcast_to(trivial_level(bags) + offset_of(bags), score.shape)
    return evaluate_counts(score, bags, trivial=trivial, why=why)


def reason(error: Refused) -> str:
    """Why bags say nothing of a loss, without a remedy in words of Python."""
    first = error.refusals[0]
    return f"{first.rule}: {first.offender}"
