"""Learning while data arrives: predict first, learn when the report comes, resume after a crash.

`_learner` has the learner, `_rules` its settings and what it refuses, `_buffer` keeps events until
their report comes, `_checkpoint` makes everything last, `_monitor` says how good the model is,
`_replay` follows a source, `_folder` reads files that fall into a folder.
"""

from unbag.stream._checkpoint import read_metrics
from unbag.stream._folder import Arrival, FolderInput, Setup, StreamModel, learner_of
from unbag.stream._learner import StreamLearner
from unbag.stream._replay import View, run_stream
from unbag.stream._rules import StreamSettings

__all__ = [
    "Arrival",
    "FolderInput",
    "Setup",
    "StreamLearner",
    "StreamModel",
    "StreamSettings",
    "View",
    "learner_of",
    "read_metrics",
    "run_stream",
]
