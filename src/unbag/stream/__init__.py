"""Learning while data arrives: predict first, learn when the report comes, resume after a crash.

`_learner` has the learner, `_settings` its settings and what it refuses, `_buffer` keeps events
until their report comes, `_checkpoint` makes everything last, `_monitor` says how good the model
is, `_replay` follows a source, `_folder` reads files that fall into a folder.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unbag.stream._checkpoint import read_metrics as read_metrics
    from unbag.stream._folder import FolderInput as FolderInput
    from unbag.stream._folder import StreamModel as StreamModel
    from unbag.stream._folder import learner_of as learner_of
    from unbag.stream._learner import StreamLearner as StreamLearner
    from unbag.stream._replay import run_stream as run_stream
    from unbag.stream._settings import StreamSettings as StreamSettings
else:
    from unbag._lazy import attach

    __getattr__, __dir__, __all__ = attach(__name__)
