"""Tests stand alone: what two of them need is in `cases/`, `messages/` or `worlds.py`."""

import re
from pathlib import Path

import pytest

TESTS = sorted(Path(__file__).parent.rglob("*.py"))
OTHER_TEST = re.compile(r"^\s*(?:from|import)\s+(?:\w+\.)*(test_\w+)", re.MULTILINE)


@pytest.mark.parametrize(
    "line", ["import test_cli", "from test_cli import run", "  from cli.test_cli import run"]
)
def test_an_import_of_a_test_is_recognised(line):
    assert OTHER_TEST.findall(f"import numpy\n{line}\n") == ["test_cli"]


def test_no_test_imports_another():
    """Scripts that tests start are text in them, and are looked at too."""
    importing = {path.name: OTHER_TEST.findall(path.read_text()) for path in TESTS}
    del importing[Path(__file__).name]
    assert {name: others for name, others in importing.items() if others} == {}


def test_a_table_of_messages_is_run_by_one_test():
    """A table elsewhere would not count for `test_every_refusal_has_a_test_of_its_text`."""
    tables = {p.parent.name for p in TESTS if re.search(r"^MESSAGES = ", p.read_text(), re.M)}
    assert tables == {"messages"}
