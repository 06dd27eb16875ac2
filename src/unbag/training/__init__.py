"""A model and bags in, a trained model with its history out; learning rates x seeds train together.

`epochs` makes batches of one shape, `sharing` one array of features, `objectives` turns a method
into the loss of a batch, `stepping` compiles the step, `watching` asks held-out bags and test
labels after each epoch, `recording` keeps what they said, `placing` lays batches over devices,
`checking` is what is refused, `engine` runs it all.
"""

from unbag.training._objective import Method, Objective, default_loss
from unbag.training._run import Run
from unbag.training._sharding import Devices
from unbag.training._sweep import sweep, train

__all__ = ["Devices", "Method", "Objective", "Run", "default_loss", "sweep", "train"]
