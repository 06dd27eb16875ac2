"""Learners: bags in, a fitted model out, all behind one protocol."""

from unbag.learners._protocol import Learner, Model, Progress

__all__ = ["Learner", "Model", "Progress"]
