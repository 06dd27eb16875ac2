import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

from cases.packages import needs
from unbag.datasets import load_adult

ROOT = Path(__file__).parent.parent


def test_importing_unbag_imports_no_framework():
    code = "import sys, unbag; print([m for m in ('jax', 'torch', 'sklearn', 'pandas', 'matplotlib') if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_the_command_line_imports_scipys_statistics_only_when_they_are_used():
    code = """
import sys, unbag.cli, sklearn.base
print("scipy.stats._stats_py" in sys.modules)
import scipy.stats.distributions
from scipy.stats import norm
print(norm.cdf(0), sys.modules["scipy.stats"] is scipy.stats, scipy.stats.norm is norm)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n0.5 True True\n"


README = (ROOT / "README.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```\n\nIt prints\n\n    (.*?)\n\n", README, re.DOTALL)


def test_every_example_of_the_readme_says_what_it_prints():
    assert len(EXAMPLES) == README.count("```python")


@pytest.mark.parametrize("code, promised", EXAMPLES, ids=range(len(EXAMPLES)))
def test_the_readmes_examples_run_and_print_what_the_readme_says(code, promised):
    """Word for word; numbers that training ends in may differ a little from machine to machine."""
    if "import torch" in code:
        needs("torch")
    # of this size, compiling with all optimisations costs less than running without them
    env = {**os.environ, "JAX_DISABLE_MOST_OPTIMIZATIONS": "0"}
    words = [sys.executable, "-c", code]
    printed = subprocess.run(words, capture_output=True, text=True, check=True, env=env).stdout
    for said, word in zip(promised.split(), printed.split(), strict=True):
        number = re.fullmatch(r"([0-9]*\.[0-9]+)(\D?)", said)
        if number is None:
            assert word == said
        else:
            assert float(word.rstrip(",.;%]")) == pytest.approx(float(number.group(1)), abs=0.02)


def test_adult_is_prepared_as_in_the_paper():
    adult = load_adult()
    assert adult.X.shape == (32561, len(adult.features))
    assert adult.X_test.shape == (16281, len(adult.features))
    assert adult.y.sum() == 7841
    assert adult.y_test.sum() == 3846
    assert (adult.X.min(), adult.X.max()) == (0, 1)
    numbers = [i for i, name in enumerate(adult.features) if "=" not in name]
    assert len(numbers) == 6
    np.testing.assert_array_equal(adult.X[:, numbers].min(axis=0), 0)
    np.testing.assert_array_equal(adult.X[:, numbers].max(axis=0), 1)
    one_hot = np.delete(adult.X, numbers, axis=1)
    np.testing.assert_array_equal(one_hot.sum(axis=1), 8)


def test_the_command_line_shows_its_verbs():
    from typer.testing import CliRunner

    from unbag.cli import app

    result = CliRunner().invoke(app, ["--help"])
    assert result.exit_code == 0
    assert "demo" in result.output


def test_the_licence_is_the_one_that_the_package_declares():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    name, number = declared["license"].split("-")
    first = (ROOT / "LICENSE").read_text().split("http")[0].split()
    assert [name, "License", "Version", f"{float(number)},"] == first[:4]
    assert all((ROOT / path).is_file() for path in declared["license-files"])


def test_contributing_says_what_every_part_does():
    folder, table = ROOT / "src" / "unbag", (ROOT / "CONTRIBUTING.md").read_text()
    files = [path.stem for path in folder.glob("[a-z]*.py")]
    folders = [f"{path.parent.name}/" for path in folder.glob("*/__init__.py")]
    assert [name for name in files + folders if f"`{name}`" not in table] == []
