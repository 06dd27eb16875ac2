"""Training: a model and bags in, a trained model with its history out.

`_config` has the options, `_loader` the batches, `_objective` the loss of a batch by any method,
`_step` the one training step, `_sweep` maps it over learning rates x seeds, `_lanes` over folds
that share their batches, `_chunks` calls it for a stream, `_validation` has the stop rules, `_run`
the results, `_sharding` the devices.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unbag.training._chunks import ChunkTrainer as ChunkTrainer
    from unbag.training._config import TrainingConfig as TrainingConfig
    from unbag.training._lanes import Lanes as Lanes
    from unbag.training._objective import Objective as Objective
    from unbag.training._run import Run as Run
    from unbag.training._sharding import Devices as Devices
    from unbag.training._sweep import sweep as sweep
    from unbag.training._sweep import train as train
    from unbag.training._validation import FoldStopRule as FoldStopRule
    from unbag.training._validation import labelled_auc as labelled_auc
else:
    from unbag._lazy import attach

    __getattr__, __dir__, __all__ = attach(__name__)
