"""Trees on top of another learner: boosting starts from its scores and learns what they leave."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from unbag.additive import Additive, AdditiveModel
from unbag.bags import Bags, Kind
from unbag.learners._folds import ByFolds, FoldFit, fit_folds
from unbag.learners._protocol import Progress, arrays_of, under
from unbag.learners._trees import Trees, TreesModel


@dataclass(frozen=True, eq=False)
class StackedModel:
    """The sum of an additive model and of trees that started from its scores.

    Parameters
    ----------
    base : AdditiveModel
        Where boosting started.
    trees : TreesModel
        What it added.
    """

    base: AdditiveModel
    trees: TreesModel

    @property
    def kind(self) -> Kind:
        """What the scores mean."""
        return self.trees.kind

    def scores(self, X: Any) -> np.ndarray:
        """Logits, log rates or class scores of rows."""
        return self.base.scores(X) + self.trees.scores(X)

    def arrays(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """The model as arrays and settings."""
        return arrays_of({"base": self.base, "trees": self.trees})

    @classmethod
    def restore(cls, arrays: dict[str, np.ndarray], settings: dict[str, Any]) -> StackedModel:
        """The model that `arrays` described; see `Model.restore`."""
        return cls(
            AdditiveModel.restore(under(arrays, "base"), settings["base"]),
            TreesModel.restore(under(arrays, "trees"), settings["trees"]),
        )


@dataclass(frozen=True)
class Stacked(ByFolds):
    """Trees that start from the additive model's score.

    Each fold's trees start from the additive model of the same bags, so neither has learned from
    the fold that judges them. docs/learners-measured.md compares it with the combination of both,
    which is the default.

    Parameters
    ----------
    base : Additive
        Where boosting starts.
    trees : Trees
        What learns the rest; of depth 2 and 3 by default, as stumps add nothing to an additive
        model but what its prior held back.
    folds : int
        Of `fit`; the caller of `fit_folds` has made them.
    """

    base: Additive = field(default_factory=Additive)
    trees: Trees = field(default_factory=lambda: Trees(depth=(1, 3)))
    folds: int = 5

    name = "stacked"
    needs_random_bags = True

    def fit_folds(
        self, bags: Bags, fold: np.ndarray, *, seed: int = 0, progress: Progress | None = None
    ) -> FoldFit:
        """A model for each fold that never learned from the fold's bags, and the final one.

        See `fit_folds`.
        """
        base = fit_folds(self.base, bags, fold, seed=seed, progress=progress)
        start = base.scores(bags.X)
        trees = self.trees.fit_folds(bags, fold, seed=seed, progress=progress, start=start)
        pairs: Any = zip(base.models, trees.models, strict=True)
        final: Any = (base.final, trees.final)
        return FoldFit([StackedModel(a, b) for a, b in pairs], StackedModel(*final))
