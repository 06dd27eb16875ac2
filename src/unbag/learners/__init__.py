"""Learners: bags in, a fitted model out, all behind one protocol."""

from unbag.learners._additive import Additive, AdditiveModel, Effect
from unbag.learners._protocol import Learner, Model, Progress
from unbag.learners._terms import DataWarning

__all__ = ["Additive", "AdditiveModel", "DataWarning", "Effect", "Learner", "Model", "Progress"]
