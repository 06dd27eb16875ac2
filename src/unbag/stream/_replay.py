"""A stream followed to the end of its source."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from unbag.datasets import Chunk, Chunks
from unbag.stream._learner import StreamLearner


def run_stream(source: Chunks, learner: StreamLearner) -> StreamLearner:
    """Learn from a source until it ends.

    It goes on where the learner stands. When the source breaks off or a chunk is refused,
    everything before it is made to last, and then the error is raised: the same call would stop at
    the same place again.

    Parameters
    ----------
    source : callable
        From a position to the chunks after it.
    learner : StreamLearner
        To be taught.

    Returns
    -------
    StreamLearner
        The same learner.
    """
    for chunk in _chunks(source, learner):
        with _kept(learner, ValueError):  # a chunk is refused before it changes anything
            learner.learn(chunk)
    learner.finish()
    return learner


def _chunks(source: Chunks, learner: StreamLearner) -> Iterator[Chunk]:
    with _kept(learner, Exception):
        yield from source(learner.position)


@contextmanager
def _kept(learner: StreamLearner, error: type[Exception]) -> Iterator[None]:
    """Make everything last before such an error is raised."""
    try:
        yield
    except error:
        if learner.folder:
            learner.checkpoint()
        raise
