"""Learning while data arrives: predict first, learn when the report comes, resume after a crash.

`learning` has the learner, `settings` what decides it, `entering` checks what comes in, `stepping`
makes its steps, `waiting` keeps events until their report comes, `storing` has their files,
`watching` says how good the model is, `keeping` and `resuming` make everything last, `running`
follows a source, `reporting` writes the page.
"""

from unbag.stream._learner import StreamLearner
from unbag.stream._replay import run_stream
from unbag.stream._settings import Settings

__all__ = ["Settings", "StreamLearner", "run_stream"]
