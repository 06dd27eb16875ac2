"""`python -m unbag`: the command line."""

from unbag.cli import run

run()
