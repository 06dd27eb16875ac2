"""The command line: one file per verb. Data go to stdout, everything else to stderr."""

import gc
import sys

from unbag._lazy import postpone

# libraries are objects that stay: to look for garbage among them took 0.2 s of a network's start
gc.set_threshold(50_000, *gc.get_threshold()[1:])
# scikit-learn imports it and hardly uses it: half a second of every command that trains
postpone("scipy.stats")
try:
    from unbag.cli._app import app
except KeyboardInterrupt:  # while libraries are loaded nothing is begun yet
    print("stopped", file=sys.stderr)
    sys.exit(130)

__all__ = ["app"]
