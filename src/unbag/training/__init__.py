"""Training: a model and bags in, a trained model with its history out.

`_config` has the options, `_loader` the batches, `_objective` the loss of a batch by any method,
`_step` the one training step, `_sweep` maps it over learning rates x seeds, `_lanes` over folds
that share their batches, `_chunks` calls it for a stream, `_validation` has the stop rules, `_run`
the results, `_sharding` the devices.
"""

from unbag.methods import Method
from unbag.training._chunks import ChunkTrainer
from unbag.training._config import TrainingConfig
from unbag.training._lanes import Lanes
from unbag.training._objective import Objective
from unbag.training._run import Run
from unbag.training._sharding import Devices
from unbag.training._sweep import sweep, train
from unbag.training._validation import FoldStopRule, labelled_auc

__all__ = [
    "ChunkTrainer",
    "Devices",
    "FoldStopRule",
    "Lanes",
    "Method",
    "Objective",
    "Run",
    "TrainingConfig",
    "labelled_auc",
    "sweep",
    "train",
]
