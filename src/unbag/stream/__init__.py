"""Learning while data arrives: predict first, learn when the report comes, resume after a crash.

`learning` has the learner; `stepping` makes its steps, `waiting` keeps events until their report comes, `watching` says
how good the model is, `keeping` makes everything last, `running` follows a source, `reporting` writes the page.
"""

from unbag.stream.learning import Settings, StreamLearner
from unbag.stream.running import run_stream

__all__ = ["Settings", "StreamLearner", "run_stream"]
