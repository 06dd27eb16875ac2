"""Examples and documentation run as written."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted(ROOT.glob("docs/**/*.md"))


def test_the_tournament_on_adult_chooses_well(capsys):
    runpy.run_path(str(ROOT / "examples" / "tournament_adult.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert "chosen: " in printed
    assert float(re.search(r"regret on test data is ([0-9.]+)\.\n", printed).group(1)) < 0.01


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_in_the_documentation_runs(page, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for code in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
        exec(compile(code, str(page), "exec"), {})
