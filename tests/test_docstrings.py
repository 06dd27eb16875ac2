"""The checker of docstrings tells right from wrong forms."""

import ast
import importlib.util
from pathlib import Path

import pytest

TOOL = Path(__file__).parent.parent / "tools" / "docstrings.py"
spec = importlib.util.spec_from_file_location("docstrings", TOOL)
docstrings = importlib.util.module_from_spec(spec)
spec.loader.exec_module(docstrings)

RIGHT = """
def join(events, *, on):
    '''Join.

    Parameters
    ----------
    events : table
        The events.
    on : str or list of str, optional
        The bag's columns.

    Returns
    -------
    Bags
        What was joined.

    >>> join(1, on="bag")
    '''
"""
ON = "    on : str or list of str, optional\n        The bag's columns.\n"
CASES = {
    "right": (RIGHT, []),
    "one argument": ("def one(x):\n    '''One.'''", []),
    "no section": ("def two(x, y):\n    '''Two.'''", ["no Parameters"]),
    "an argument left out": (RIGHT.replace(ON, ""), ["Parameters without on"]),
    "an argument too many": (
        RIGHT.replace(", *, on", ""),
        ["Parameters with on, which it has not"],
    ),
    "no description": (
        RIGHT.replace("        The events.\n", ""),
        ["no indented description below: events : table"],
    ),
    "a sentence for a type": (
        RIGHT.replace("events : table", "events : the events."),
        ["not `name : type`: events : the events."],
    ),
    "no type to return": (
        RIGHT.replace("    Bags\n        What was", "    What was"),
        ["no indented description below: What was joined."],
    ),
    "fields of a class": (
        "class Pair(NamedTuple):\n    '''Two.'''\n    x: int\n    y: int",
        ["no Parameters"],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_faults_of_a_docstring_are_named(case):
    code, faults = CASES[case]
    assert list(docstrings.faults(ast.parse(code).body[0])) == faults


def test_every_public_name_of_the_package_is_looked_at():
    assert {"bags", "weights", "losses", "tables"} <= set(docstrings.packages())
    names = {name for name, _ in docstrings.definitions("unbag.weights")}
    assert {"upm", "easy", "anchored"} <= names
