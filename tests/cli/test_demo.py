"""`make demo`: the whole way, and that its files and words are what they say."""

import io
import re

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from cases.cli import run
from cases.report import SECTIONS
from unbag._model_file import load_arrays
from unbag.cli import _tour
from unbag.datasets import read_adult


def some_people(*part):
    """A quarter of Adult, in bags of a quarter of the size: as many bags, and far less work."""
    people, rich = read_adult(*part)
    return {name: values[:8000] for name, values in people.items()}, rich[:8000]


@pytest.fixture(scope="module")
def went(tmp_path_factory):
    """A short demo in a folder with the files of a former one, and what it printed."""
    folder = _tour.own_folder(tmp_path_factory.mktemp("demo") / "own")
    for name in ("events.parquet", "default.unbag", "report.html"):
        (folder / name).write_text("old")
    console = Console(width=120, file=io.StringIO(), highlight=False, soft_wrap=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_tour, "read_adult", some_people)
        page = _tour.run(
            folder, size=32, epochs=2, methods=("default", "matching"), console=console
        )
    assert page == folder / "report.html"
    return folder, console.file.getvalue()


def test_the_demo_tells_every_step_and_ends_with_the_page(went):
    folder, text = went
    assert re.findall(r"^(\d)\. ", text, re.M) == list("12345678")
    assert text.rstrip().endswith(str(folder / "report.html"))
    page = (folder / "report.html").read_text()
    for section in set(SECTIONS) - {"prior"}:
        assert f'<section id="{section}"' in page
    assert len(page) < 90_000


def test_whether_an_interval_held_is_what_its_numbers_say(went):
    rows = re.findall(r"(Log loss|AUC) +(\S+) +(\S+) to (\S+) +(\S+) +(yes|no)", went[1])
    assert len(rows) == 4
    for _, value, low, high, truth, held in rows:
        assert float(low) <= float(value) <= float(high)
        if (
            abs(float(truth) - float(low)) > 0.01 < abs(float(truth) - float(high))
        ):  # else rounding decides
            assert (float(low) <= float(truth) <= float(high)) == (held == "yes")
    held, count = map(int, re.search(r"(\d+) of all (\d+) intervals hold", went[1]).groups())
    assert count == 10
    assert held <= count


def test_the_tables_hold_no_label_and_the_reports_carry_noise(went):
    folder, _ = went
    people, rich = some_people()
    parts = [pd.read_parquet(folder / name) for name in ("events.parquet", "later-events.parquet")]
    assert [set(part.columns) for part in parts] == [{"person", "bag", *people}] * 2
    events = pd.concat(parts)
    assert sorted(events.person) == sorted(f"p{i}" for i in range(len(rich)))
    assert not set(parts[0].bag) & set(parts[1].bag)
    reports = pd.concat(
        [pd.read_parquet(folder / name) for name in ("reports.parquet", "later-reports.parquet")]
    )
    exact = (
        events.assign(rich=rich[events.person.str[1:].astype(int)])
        .groupby("bag")
        .rich.agg(["sum", "size"])
    )
    reports = reports.set_index("bag").join(exact)
    assert (reports.people == reports["size"]).all()
    noise = reports.rich - reports["sum"]
    assert (reports.variance == reports.variance.iloc[0]).all()
    error = np.sqrt(6 / len(noise)) * reports.variance.iloc[0]  # kurtosis of this noise is below 7
    assert abs(np.mean(noise**2) - reports.variance.iloc[0]) < 4 * error


def test_the_words_that_the_demo_shows_do_the_same(went):
    folder, text = went
    words = {
        line.split()[1]: line.split()[1:]
        for line in text.splitlines()
        if line.startswith("   unbag ")
    }
    assert list(words) == ["check", "train", "select", "evaluate", "explain"]
    chosen = re.search(r"bags chose (\S+)\. ", text).group(1)
    models = [str(folder / f"{method}.unbag") for method in ("default", "matching")]
    found = run(words["select"][0], *models, *words["select"][2:])
    assert found.stdout.strip() == chosen
    evaluated = run(*words["evaluate"]).stdout
    assert evaluated in text
    strongest = re.search(r"^  (\S+) +\d\.\d\d  ", text, re.M).group(1)
    assert strongest in run(*words["explain"]).stdout
    assert "The bags look random" in run(*words["check"]).stdout
    own = folder.parent / "own.unbag"
    run(*words["train"][:-1], own, "--epochs", 2)
    (mine, told), (theirs, shown) = map(load_arrays, (own, folder / "matching.unbag"))
    assert told == shown
    assert mine.keys() == theirs.keys()
    assert all((mine[name] == theirs[name]).all() for name in mine)


def test_a_folder_that_something_else_filled_is_refused(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    said = run("demo", "--folder", tmp_path, code=1).stderr
    assert said.startswith("error: The demo must have a folder of its own: ")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
