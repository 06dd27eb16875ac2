"""unbag works from its wheel, installed where nothing else of the repository is.

The environment is new and holds the wheel alone; its dependencies are those of the environment that
runs the tests, lent by PYTHONPATH (which, unlike a site folder, runs no .pth file, so the editable
install stays out). With dependencies of its own it takes minutes and a package index: `make wheel`
does that.
"""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from cases.packages import needs

ROOT = Path(__file__).parent.parent
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """An empty folder, and in it an environment with the wheel."""
    needs("hatchling")
    folder = tmp_path_factory.mktemp("wheel")
    quiet = ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-index"]
    pip = [sys.executable, "-m", "pip"]
    subprocess.run([*pip, "wheel", *quiet, "--no-build-isolation", "-w", folder, ROOT], check=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    (wheel,) = folder.glob("unbag-*.whl")
    subprocess.run(
        [*pip, "--python", folder / "venv" / "bin" / "python", "install", *quiet, wheel], check=True
    )
    (folder / "empty").mkdir()
    return folder


def run(place, program, *words):
    """What a program of the environment prints, run in the empty folder."""
    environment = os.environ | {"PYTHONPATH": sysconfig.get_path("purelib"), "COLUMNS": "120"}
    words = [place / "venv" / "bin" / program, *map(str, words)]
    result = subprocess.run(
        words, cwd=place / "empty", env=environment, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_the_wheel_brings_the_package_with_adult_and_nothing_of_the_repository(place):
    code = "import unbag; from unbag.datasets import load_adult; print(unbag.__file__, load_adult().X.shape)"
    file, shape = run(place, "python", "-c", code).split(" ", 1)
    assert Path(file).is_relative_to(place / "venv")
    assert shape == "(32561, 108)\n"


def test_the_command_line_of_the_wheel_says_its_verbs(place):
    printed = run(place, "unbag", "--help")
    assert all(verb in printed for verb in ("check", "train", "predict", "evaluate", "demo"))


def test_the_wheel_trains_and_predicts_on_two_small_tables(place):
    rng = np.random.default_rng(0)
    x, bag = rng.normal(size=800), np.arange(800) // 8
    sold = rng.random(800) < 1 / (1 + np.exp(-2 * x))
    pyarrow.csv.write_csv(
        pa.table({"event": np.arange(800), "bag": bag, "x": x}), place / "empty" / "events.csv"
    )
    reports = pa.table({"bag": np.arange(100), "sales": np.bincount(bag, weights=sold)})
    pyarrow.csv.write_csv(reports, place / "empty" / "reports.csv")
    columns = ["--on", "bag", "--total", "sales", "--id", "event"]
    files = ["--out", "model.unbag", "--page", "report.html"]
    assert "log_loss" in run(
        place,
        "unbag",
        "train",
        "events.csv",
        "reports.csv",
        *columns,
        "--learner",
        "additive",
        *files,
    )
    printed = run(place, "unbag", "predict", "model.unbag", "events.csv", "--id", "event")
    scores = pyarrow.csv.read_csv(pa.py_buffer(printed.encode()))
    assert scores.num_rows == 800
    assert np.corrcoef(scores["probability"].to_numpy(), x)[0, 1] > 0.5
    assert "<html" in (place / "empty" / "report.html").read_text()
