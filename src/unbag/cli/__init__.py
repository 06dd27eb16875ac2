"""The command line: one file per verb. Data go to stdout, everything else to stderr."""

import atexit
import gc
import os
import sys
import threading
from contextlib import suppress

from unbag._lazy import postpone

# libraries are objects that stay: to look for garbage among them took 0.2 s of a network's start
gc.set_threshold(100_000, *gc.get_threshold()[1:])
# scikit-learn imports it and hardly uses it: half a second of every command that trains
postpone("scipy.stats")
try:
    from unbag.cli._app import app
except KeyboardInterrupt:  # while libraries are loaded nothing is begun yet
    print("stopped", file=sys.stderr)
    sys.exit(130)

__all__ = ["app", "run"]


def run() -> None:
    """The command line as a process of its own, which ends when the work has.

    Python would take its libraries apart object by object first, half a second of CPU after a
    network. What is to be done at the end is done: threads are joined, exit functions called,
    output is flushed.
    """
    try:
        app()
    except SystemExit as end:
        if isinstance(end.code, str):
            raise
        with suppress(OSError):  # nobody reads the output any more, and Python says so
            threading._shutdown()  # type: ignore[attr-defined]
            atexit._run_exitfuncs()
            print(end="", flush=True)
            print(end="", flush=True, file=sys.stderr)
            os._exit(end.code or 0)
        raise
