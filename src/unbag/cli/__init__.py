"""The command line: one file per verb. Data go to stdout, everything else to stderr."""

from unbag.cli._app import app

__all__ = ["app"]
