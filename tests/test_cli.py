"""The verbs on tables: what they print, what they write, how they fail."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from unbag.cli import app
from unbag.commands.designing import open_events
from unbag.commands.writing import check_output

FOLDER = Path(__file__).parent


def run(*words, code=0):
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == code, result.output + repr(result.exception)
    return result


def world(folder, *, count=3000, size=10, random=True, seed=0, ending="parquet", name=""):
    """Events and reports as files; the labels stay here."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=count)
    x = x if random else np.sort(x)
    events = pd.DataFrame({
        "event": [f"e{i:05d}" for i in range(count)],
        "bag": np.arange(count) // size,
        "x": x,
        "device": rng.choice(["phone", "desk"], count),
    })  # fmt: skip
    y = rng.random(count) < 1 / (1 + np.exp(1 - 2 * x - (events.device == "desk")))
    reports = events.assign(y=y).groupby("bag", as_index=False).agg(sales=("y", "sum"), events=("y", "size"))
    paths = folder / f"{name}events.{ending}", folder / f"{name}reports.{ending}"
    for frame, path in zip((events, reports), paths, strict=True):
        frame.to_parquet(path) if ending == "parquet" else frame.to_csv(path, index=False)
    return *paths, y


MESSAGES = [
    (
        lambda: check_output(Path("scores.txt"), force=False),
        "An output must be named .parquet or .csv: scores.txt came. Choose such a name.",
    ),
    (
        lambda: check_output(Path("/nowhere/at/all.csv"), force=False),
        "An output must go to a folder that exists: /nowhere/at does not. Make it first.",
    ),
    (
        lambda: check_output(Path(__file__), force=False, table=False),
        f"An output must not exist yet: {__file__} does. Use --force to overwrite it.",
    ),
    (
        lambda: check_output(FOLDER, force=True, table=False),
        f"An output must not exist yet: {FOLDER} does. Choose another name.",
    ),
    (
        lambda: open_events(pd.DataFrame({"bag": [1], "event": [2]}), "event", None),
        "Events to design must have no bag yet: they have a column 'bag'. Rename or drop it.",
    ),
]


@pytest.mark.parametrize("make, message", MESSAGES, ids=range(len(MESSAGES)))
def test_bad_input_gets_a_clear_error(make, message):
    with pytest.raises(ValueError) as error:
        make()
    assert str(error.value) == message


VERBS = ["check", "design"]


@pytest.mark.parametrize("verb", VERBS)
def test_help_shows_an_example(verb):
    assert f"Example: unbag {verb} " in run(verb, "--help").stdout
    assert run(verb, code=2).stdout == ""


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_check_says_whether_bags_are_random_by_its_exit_code(tmp_path, ending):
    events, reports, _ = world(tmp_path, ending=ending)
    words = ["--on", "bag", "--total", "sales", "--size", "events", "--id", "event"]
    good = run("check", events, reports, *words)
    assert "3,000 events and 300 reports came." in good.stdout
    assert "The bags look random" in good.stdout
    assert good.stderr == ""
    events, reports, _ = world(tmp_path, ending=ending, random=False, name="sorted-")
    bad = run("check", events, reports, *words, "--json", code=3)
    found = json.loads(bad.stdout)
    assert found["usable"]
    assert not found["random"]
    assert found["features"][0]["name"] == "x"


def test_check_lists_what_is_refused(tmp_path):
    events, reports, _ = world(tmp_path, count=40)
    frame = pd.read_parquet(reports)
    pd.concat([frame, frame.head(1)]).to_parquet(reports)
    bad = run("check", events, reports, "--on", "bag", "--total", "sales", code=3)
    assert "refused: " in bad.stdout
    found = json.loads(run("check", events, reports, "--on", "bag", "--total", "sales", "--json", code=3).stdout)
    assert not found["usable"]
    assert found["random"] is None


def test_what_cannot_be_read_is_told_on_stderr(tmp_path):
    events, reports, _ = world(tmp_path, count=40)
    wrong = run("check", events, reports, "--on", "bag", "--total", "sale", code=1)
    assert wrong.stdout == ""
    assert wrong.stderr.startswith("error: A column must exist: 'sale' is not in the reports. Did you mean 'sales'?")
    assert wrong.stderr.endswith("\n\nhint: unbag check --help shows an example\n")
    events.write_bytes(events.read_bytes()[:500])
    assert "cut short" in run("check", events, reports, "--on", "bag", "--total", "sales", code=1).stderr
    assert "does not" in run("check", tmp_path / "no.csv", reports, "--on", "bag", "--total", "sales", code=1).stderr


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_design_writes_the_bags_that_the_library_makes(tmp_path, ending):
    from unbag import design_bags

    ids, stratum = np.arange(100), np.array(["a", "b"])[np.arange(100) % 2]
    frame = pd.DataFrame({"event": ids, "x": ids / 7, "campaign": stratum})
    path, out = tmp_path / f"events.{ending}", tmp_path / f"bags.{ending}"
    frame.to_parquet(path) if ending == "parquet" else frame.to_csv(path, index=False)
    words = ["design", path, "--id", "event", "--size", 10, "--stratum", "campaign", "--salt", "s"]
    done = run(*words, "--out", out)
    assert done.stderr == f"100 events in 10 bags: {out}\n"
    read = pd.read_parquet if ending == "parquet" else pd.read_csv
    bags = read(out)
    assert list(bags.columns) == ["event", "campaign", "bag"]
    assert bags.bag.tolist() == design_bags(ids, size=10, stratum=stratum, salt="s").tolist()
    assert run(*words, "--out", out, code=1).stderr.startswith("error: An output must not exist yet")
    run(*words, "--out", out, "--all-columns", "--force")
    assert list(read(out).columns) == ["event", "x", "campaign", "bag"]
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([path.name, out.name])
    assert run(*words).stdout.splitlines()[0].replace('"', "") == "event,campaign,bag"
