"""Bad input of every area gets its message, word for word, and no refusal is without one.

A message says the thing, the rule, what was given (one offender and the count) and what to do.
"""

import ast
import traceback
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

import unbag

AREAS = sorted(path.stem for path in Path(__file__).parent.glob("[a-z]*.py"))
AREAS.remove(Path(__file__).stem)
PACKAGE = Path(unbag.__file__).resolve().parent
RULES = PACKAGE / "_rules.py"
HELPERS = ("refuse", "rows", "one_of", "two_bags", "self._refuse")
# tested beside what they need: a server, a screen, a stream that goes on
ELSEWHERE = {"_tour.py", "_app.py", "_files.py", "_buffer.py"}


def table_of(area):
    """The pairs of an area; skips where a package that it needs is not installed."""
    return import_module(f"messages.{area}").MESSAGES


@cache
def error_of(make):
    """Made once in a process, and looked at by both tests."""
    with pytest.raises(ValueError) as error:
        make()
    return error.value


@pytest.mark.parametrize("area", AREAS)
def test_bad_input_gets_a_clear_error(area, unchecked_shapes):
    """All messages of an area at once, so that its modules are imported when it is its turn."""
    table = table_of(area)
    given = [str(error_of(make)) for make, _ in table]
    expected = [message() if callable(message) else message for _, message in table]
    assert given == expected


def refusals(path):
    """Line ranges of the places in a source file that refuse something."""
    for node in ast.walk(ast.parse(path.read_text())):
        helper = isinstance(node, ast.Call) and ast.unparse(node.func) in HELPERS
        made_by = getattr(getattr(getattr(node, "exc", None), "func", None), "id", "")
        raises = isinstance(node, ast.Raise) and made_by in ("ValueError", "broken")
        if helper or raises:
            yield node.lineno, node.end_lineno


def place_of(error):
    """The innermost line of the package, outside the helpers that build messages."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "unbag" in f.filename]
    frame = next(f for f in reversed(frames) if Path(f.filename) != RULES)
    return Path(frame.filename).resolve(), frame.lineno


def test_every_refusal_has_a_test_of_its_text(unchecked_shapes):
    places, absent, untested = set(), set(), []
    for area in AREAS:
        try:
            places |= {place_of(error_of(make)) for make, _ in table_of(area)}
        except pytest.skip.Exception:
            absent.add(area)
    for path in sorted(PACKAGE.rglob("*.py")):
        if path == RULES or path.name in ELSEWHERE or path.parent.name in absent:
            continue
        for first, last in refusals(path):
            if not any(file == path and first <= line <= last for file, line in places):
                untested.append(f"{path.parent.name}/{path.name}:{first}")
    assert not untested, f"no test of the messages at {', '.join(untested)}"
