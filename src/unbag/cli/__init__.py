"""The command line: one file per verb. Data go to stdout, everything else to stderr."""

import sys

try:
    from unbag.cli._app import app
except KeyboardInterrupt:  # while libraries are loaded nothing is begun yet
    print("stopped", file=sys.stderr)
    sys.exit(130)

__all__ = ["app"]
