"""The command line: one file per verb. Data go to stdout, everything else to stderr."""

import sys

from unbag._lazy import postpone

# scikit-learn imports it and hardly uses it: half a second of every command that trains
postpone("scipy.stats")
try:
    from unbag.cli._app import app
except KeyboardInterrupt:  # while libraries are loaded nothing is begun yet
    print("stopped", file=sys.stderr)
    sys.exit(130)

__all__ = ["app"]
