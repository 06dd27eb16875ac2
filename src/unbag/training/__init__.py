"""Training: a model and bags in, a trained model with its history out.

`_config` has the options, `_loader` the batches, `_objective` the loss of a batch by any method,
`_step` the one training step, `_sweep` maps it over learning rates x seeds, `_chunks` calls it for
a stream, `_validation` has the stop rule, `_run` the results, `_sharding` the devices.
"""

from unbag.methods import Method
from unbag.training._chunks import ChunkTrainer
from unbag.training._config import TrainingConfig
from unbag.training._objective import Objective
from unbag.training._run import Run
from unbag.training._sharding import Devices
from unbag.training._sweep import sweep, train
from unbag.training._validation import labelled_auc

__all__ = [
    "ChunkTrainer",
    "Devices",
    "Method",
    "Objective",
    "Run",
    "TrainingConfig",
    "labelled_auc",
    "sweep",
    "train",
]
