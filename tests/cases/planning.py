"""Small cases that the tests of planning, and the table of its messages, share."""

from unbag.planning import ModelSpread

SPREAD = ModelSpread(0.02, 0.05, 0.01)
