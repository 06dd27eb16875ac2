"""Examples and documentation run as written, and print what they say."""

import re
import runpy
import shlex
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from cases.packages import needs
from printed import assert_same

ROOT = Path(__file__).parent.parent
PAGES = sorted(ROOT.glob("docs/**/*.md"))
BLOCK = re.compile(r"```(python|sh)\n(.*?)```(?:\n\nprints\n\n((?:    [^\n]+\n|\n)+))?", re.DOTALL)
ELSEWHERE = {
    "campaigns.md",
    "command-line.md",
}  # what these print is compared in test_diagnosis.py and test_cli.py


EXAMPLES = {  # what each must print in its short form
    "adding_a_method": r"squared PM, bags of 50: 0\.\d+",
    "boosted_trees": r"30 of 30 rounds.*trees 0\.[34]\d+.*linear 0\.[34]\d+",
    "campaigns": r"not random.*look random.*log loss 0\.[45]\d+ \(the same for everyone: 0\.6\d+\)",
    "choosing": r"chosen from 102 held-out bags.*looked at now: log loss 0\.[34]\d+",
    "counts_poisson": r"from the counts themselves: 0\.5\d+\nwith the true rates: 0\.5\d+",
    "marginals": r"clicks: [3-8]\d% of the way.*three tables.*: test log loss 0\.3[23]\d",
    "pytorch_adult": r"test log loss 0\.(3\d|4[01])\d, after epoch \d",  # trivial: 0.547,
    "streaming": r"exit code -9\n4,096 events learned; the same model as without the crash: True",
    "tournament_adult": r"chosen: .*regret on test data is 0\.00\d+\.",
    "two_tables": r"look random.*correlation with the true rates is 0\.[89]",
}
NEEDS = {"boosted_trees": "lightgbm", "pytorch_adult": "torch"}


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_the_examples_run(name, monkeypatch, tmp_path, capfd):
    if name in NEEDS:
        needs(NEEDS[name])
    script = str(ROOT / "examples" / f"{name}.py")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [script, "--short"])
    runpy.run_path(script, run_name="__main__")
    assert re.search(EXAMPLES[name], capfd.readouterr().out, re.DOTALL)


def test_every_example_is_run_listed_and_short():
    scripts = {path.stem: path.read_text() for path in ROOT.glob("examples/*.py")}
    assert set(scripts) == set(EXAMPLES)
    assert set(
        re.findall(
            r"^\| \[(\w+)\.py\]", (ROOT / "examples" / "README.md").read_text(), re.MULTILINE
        )
    ) == set(scripts)
    assert all(len(text.splitlines()) <= 80 for text in scripts.values())


def run_commands(code: str) -> str:
    """What `unbag ...` prints, line by line of a shell block; only such lines may be there."""
    from typer.testing import CliRunner

    from unbag.cli import app

    printed = ""
    for line in code.replace("\\\n", " ").splitlines():
        program, *words = shlex.split(line, comments=True)
        assert Path(program).name == "unbag", line
        result = CliRunner().invoke(app, words)
        assert result.exit_code == 0, (line, result.output)
        printed += result.stdout
    return printed


@pytest.mark.usefixtures("unchecked_shapes")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_in_the_documentation_runs_and_prints_what_it_says(
    page, monkeypatch, tmp_path, capsys
):
    text = page.read_text()
    if "import torch" in text:
        needs("torch")
    monkeypatch.chdir(tmp_path)
    names = {}  # a block may go on where the one above it stopped
    for language, code, promised in BLOCK.findall(text):
        if language == "python":
            exec(compile(code, str(page), "exec"), names)
            printed = capsys.readouterr().out
        elif page.name not in ELSEWHERE:
            printed = run_commands(code)
        if promised and page.name not in ELSEWHERE:
            assert_same(promised, printed)


def test_the_readmes_commands_lead_from_two_tables_to_a_page(monkeypatch, tmp_path):
    """On tables as the README describes them: a bag and any columns; a bag and its total."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    age, bag = rng.normal(40, 12, 4000), np.arange(4000) // 10
    device = rng.choice(["phone", "desk"], 4000)
    sold = rng.random(4000) < 1 / (1 + np.exp(2 - (device == "desk") - (age - 40) / 12))
    day = np.datetime64("2026-11-01") + rng.integers(0, 14, 4000)
    pyarrow.csv.write_csv(
        pa.table({"bag": bag, "age": age, "device": device, "day": day}), "events.csv"
    )
    pyarrow.csv.write_csv(
        pa.table({"bag": np.arange(400), "sales": np.bincount(bag, sold)}), "reports.csv"
    )
    (commands,) = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert "log_loss" in run_commands(commands)
    assert "<html" in Path("report.html").read_text()
    assert pyarrow.csv.read_csv("scores.csv").num_rows == 4000
