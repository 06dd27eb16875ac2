"""The verbs on tables: what they print, what they write, how they fail."""

import dataclasses
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest
import typer

import unbag
from cases.cli import FOLDER, QUICK, SALES, run, world
from unbag.cli._app import VERBS as VERBS_OF_THE_APP
from unbag.cli._console import plain_errors
from unbag.cli._options import COLUMN_HELP, ColumnOptions
from unbag.tables import ColumnNames, Columns


def test_errors_of_duckdb_are_told_without_a_traceback(tmp_path, monkeypatch, capsys):
    events, reports = world(tmp_path)[:2]
    connect = duckdb.connect
    monkeypatch.setattr(
        duckdb, "connect", lambda config=None: connect(config={"memory_limit": "100KB"})
    )
    told = run("check", events, reports, *SALES, "--id", "event", code=1).stderr
    assert told.startswith(
        "error: The memory must suffice for the ids that are checked: it does not."
    )
    assert "leave --id out" in told
    with pytest.raises(typer.Exit), plain_errors(["check"]):
        raise duckdb.IOException(
            'IO Error: Could not write file "spill.tmp": No space left on device'
        )
    assert "there is none for spill.tmp. Free some" in capsys.readouterr().err


VERBS = ["check", "train", "predict", "evaluate", "select", "plan", "design"]


@pytest.mark.parametrize("verb", VERBS)
def test_help_shows_an_example(verb):
    assert f"Example: unbag {verb} " in run(verb, "--help").stdout
    assert run(verb, code=2).stdout == ""


def test_help_breaks_lines_at_the_edge_of_the_terminal_only():
    lines = [line.strip() for line in run("train", "--help").stdout.split("╭")[0].splitlines()]
    text = "\n".join(lines).split("\n\n")[2]
    first = [line.split()[0] for line in text.splitlines()]
    for line, word in zip(text.splitlines(), first[1:], strict=False):
        assert len(f" {line} {word}") > 79  # the next word would not have fitted


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_check_says_whether_bags_are_random_by_its_exit_code(tmp_path, ending):
    events, reports, _ = world(tmp_path, ending=ending)
    words = ["--on", "bag", "--total", "sales", "--size", "events", "--id", "event"]
    good = run("check", events, reports, *words)
    assert "3,000 events and 300 reports were read." in good.stdout
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
    found = json.loads(
        run("check", events, reports, "--on", "bag", "--total", "sales", "--json", code=3).stdout
    )
    assert not found["usable"]
    assert found["random"] is None


def test_what_cannot_be_read_is_told_on_stderr(tmp_path):
    events, reports, _ = world(tmp_path, count=40)
    wrong = run("check", events, reports, "--on", "bag", "--total", "sale", code=1)
    assert wrong.stdout == ""
    assert wrong.stderr.startswith(
        "error: A column must exist: 'sale' is not in the reports. Did you mean 'sales'?"
    )
    corrected = f"unbag check {events} {reports} --on bag --total sales"
    assert wrong.stderr.endswith(f"\n\nhint: {corrected}\n")
    events.write_bytes(events.read_bytes()[:500])
    assert (
        "cut short"
        in run("check", events, reports, "--on", "bag", "--total", "sales", code=1).stderr
    )
    assert (
        "does not"
        in run(
            "check", tmp_path / "no.csv", reports, "--on", "bag", "--total", "sales", code=1
        ).stderr
    )


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_design_writes_the_bags_that_the_library_makes(tmp_path, ending):
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
    assert bags.bag.tolist() == unbag.design_bags(ids, size=10, stratum=stratum, salt="s").tolist()
    assert run(*words, "--out", out, code=1).stderr.startswith(
        "error: An output must not exist yet"
    )
    run(*words, "--out", out, "--all-columns", "--force")
    assert list(read(out).columns) == ["event", "x", "campaign", "bag"]
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([path.name, out.name])
    assert run(*words).stdout.splitlines()[0].replace('"', "") == "event,campaign,bag"


def test_from_design_to_evaluation_on_two_tables(tmp_path):
    """The whole way: the events get their bags, the bags their reports, and single events their
    predictions."""
    _, _, y = world(tmp_path, count=4000)
    frame = pd.read_parquet(tmp_path / "events.parquet").drop(columns="bag")
    frame.to_parquet(tmp_path / "raw.parquet")
    events, reports, model, out = (
        tmp_path / name for name in ("e.parquet", "r.csv", "m.unbag", "s.csv")
    )
    run(
        "design",
        tmp_path / "raw.parquet",
        "--id",
        "event",
        "--size",
        5,
        "--all-columns",
        "--out",
        events,
    )
    designed = pd.read_parquet(events).assign(y=y)
    designed.groupby("bag", as_index=False).agg(sales=("y", "sum")).to_csv(reports, index=False)
    trained = run("train", events, reports, *SALES, "--id", "event", *QUICK, "--out", model)
    assert "from 160 bags, 800 rows" in trained.stdout
    assert f"learned from 640 bags: {model}" in trained.stderr
    assert "The bags look random" in trained.stderr

    assert (
        run("predict", model, events, "--id", "event", "--out", out).stderr
        == f"4,000 predictions: {out}\n"
    )
    scores = pd.read_csv(out)
    assert scores.event.tolist() == designed.event.tolist()
    assert (
        unbag.evaluate_labels(scores.probability.to_numpy(), y, scale="probability")["auc"].value
        > 0.8
    )

    judged = run("evaluate", model, events, reports, *SALES, "--json")
    assert judged.stderr.startswith("640 bags that the model learned from were left out.\n")
    assert json.loads(judged.stdout)["bags"] == 160
    assert (
        str(trained.stdout).splitlines()[1].split()[1]
        == f"{json.loads(judged.stdout)['estimates']['log_loss']['value']:.4f}"
    )


def test_predictions_are_those_of_the_estimator_for_hashed_columns_in_files_of_any_kind(tmp_path):
    rng = np.random.default_rng(0)
    shop = rng.integers(0, 100, 2000)
    frame = pd.DataFrame({"event": [f"{i:04d}" for i in range(2000)], "bag": np.arange(2000) // 4})
    frame = frame.assign(shop=[f"shop {s}" for s in shop], x=rng.normal(size=2000))
    y = rng.normal(size=100)[shop] + frame.x > 0
    frame.to_csv(tmp_path / "e.csv", index=False)
    frame.to_parquet(tmp_path / "e.parquet")
    frame.assign(y=y).groupby("bag", as_index=False).agg(sales=("y", "sum")).to_csv(
        tmp_path / "r.csv", index=False
    )
    model = tmp_path / "m.unbag"
    run(
        "train",
        tmp_path / "e.csv",
        tmp_path / "r.csv",
        *SALES,
        "--id",
        "event",
        "--epochs",
        3,
        "--out",
        model,
    )
    loaded = unbag.load(model)
    assert len(loaded.plan_.buckets) == 1
    expected = loaded.predict_proba(loaded.plan_.apply(frame))[:, 1]
    for ending, read in (
        ("csv", lambda path: pd.read_csv(path, dtype={"event": str})),
        ("parquet", pd.read_parquet),
    ):
        out = tmp_path / f"s.{ending}"
        run("predict", model, tmp_path / f"e.{ending}", "--id", "event", "--out", out)
        found = read(out)
        np.testing.assert_allclose(found.probability, expected, rtol=1e-12)
        assert found.event.tolist() == frame.event.tolist()
    printed = run("predict", model, tmp_path / "e.csv").stdout.splitlines()
    assert printed[0] == '"row","probability"'
    assert [line.split(",")[0] for line in printed[1:]] == [str(i) for i in range(2000)]


@pytest.mark.parametrize("kind", ["total", "classes"])
def test_counts_and_classes_have_their_own_columns(tmp_path, kind):
    rng = np.random.default_rng(0)
    x = rng.normal(size=1200)
    counts = {
        "total": {"sales": rng.poisson(np.exp(x))},
        "classes": {n: np.digitize(x, [-1, 1]) == i for i, n in enumerate("abc")},
    }[kind]
    events = pd.DataFrame({"bag": np.arange(1200) // 4, "x": x})
    events.to_parquet(tmp_path / "e.parquet")
    events[["bag"]].assign(**counts).groupby("bag", as_index=False).sum().to_parquet(
        tmp_path / "r.parquet"
    )
    columns = (
        ["--total", "sales"]
        if kind == "total"
        else ["--counts", "a", "--counts", "b", "--counts", "c"]
    )
    words = [tmp_path / "e.parquet", tmp_path / "r.parquet", "--on", "bag", *columns]
    model = tmp_path / "m.unbag"
    run("train", *words, *QUICK, "--out", model, *(["--kind", "total"] if kind == "total" else []))
    run("predict", model, tmp_path / "e.parquet", "--out", tmp_path / "s.parquet")
    found = pd.read_parquet(tmp_path / "s.parquet")
    assert list(found.columns)[1:] == (
        ["count"] if kind == "total" else [f"probability_{n}" for n in "abc"]
    )
    assert np.corrcoef(found.iloc[:, -1], x)[0, 1] > 0.5
    assert "240 bags that the model learned from" in run("evaluate", model, *words).stderr


def test_a_failure_leaves_no_file_behind(tmp_path):
    events, reports, _ = world(tmp_path, count=400)
    model, out = tmp_path / "m.unbag", tmp_path / "s.csv"
    run("train", events, reports, *SALES, "--id", "event", *QUICK, "--out", model)
    before = model.read_bytes()
    assert "Use --force" in run("train", events, reports, *SALES, "--out", model, code=1).stderr
    run(
        "train",
        events,
        reports,
        *SALES,
        "--id",
        "event",
        "--method",
        "no",
        "--force",
        "--out",
        model,
        code=1,
    )
    assert model.read_bytes() == before
    pd.read_parquet(events).drop(columns="x").to_parquet(tmp_path / "short.parquet")
    assert (
        "'x' is not in the events"
        in run("predict", model, tmp_path / "short.parquet", "--out", out, code=1).stderr
    )
    frame = pd.concat([pd.read_parquet(events).drop(columns="event")] * 250).astype({"x": object})
    frame.iloc[-1, 1] = "much"  # in the last of several batches, when the first are already written
    frame.to_csv(tmp_path / "long.csv", index=False)
    assert (
        "'much' in line"
        in run("predict", model, tmp_path / "long.csv", "--out", out, code=1).stderr
    )
    assert (
        "events.parquet is a Parquet file"
        in run("predict", events, events, "--out", out, code=1).stderr
    )
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "events.parquet", "long.csv", "m.unbag", "reports.parquet", "short.parquet",
    ]  # fmt: skip


def test_a_model_is_saved_before_it_is_evaluated(tmp_path, monkeypatch):
    def fail(*_):
        raise ValueError("no evaluation")

    events, reports, _ = world(tmp_path, count=400)
    model = tmp_path / "m.unbag"
    monkeypatch.setattr("unbag.cli._evaluate.judged_by", fail)
    said = run(
        "train", events, reports, *SALES, "--linear", "--epochs", 1, "--out", model, code=1
    ).stderr
    assert "error: no evaluation" in said
    assert unbag.load(model).kind_ == "binary"


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_design_copies_ids_of_64_bits_as_they_are(tmp_path, ending):
    text = "event,visitor,x\n" + "".join(f"{i},{2**60 + i},{i / 2}\n" for i in range(12))
    (tmp_path / "e.csv").write_text(text)
    out = tmp_path / f"bags.{ending}"
    run("design", tmp_path / "e.csv", "--id", "event", "--size", 3, "--all-columns", "--out", out)
    found = pd.read_parquet(out) if ending == "parquet" else pd.read_csv(out)
    assert found.visitor.tolist() == [2**60 + i for i in range(12)]
    assert found.x.tolist() == [i / 2 for i in range(12)]


def test_a_disk_that_fills_leaves_the_old_file(tmp_path, monkeypatch):
    def full(place, *_):
        Path(place).write_text("half")
        raise OSError(28, "No space left on device")

    events, out = tmp_path / "e.csv", tmp_path / "bags.csv"
    pd.DataFrame({"event": range(10)}).to_csv(events, index=False)
    out.write_text("old")
    monkeypatch.setattr("unbag.tables._sources._write", full)
    said = run(
        "design", events, "--id", "event", "--size", 2, "--out", out, "--force", code=1
    ).stderr
    assert said.startswith("error: [Errno 28] No space left on device\n\nhint: ")
    assert out.read_text() == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bags.csv", "e.csv"]


def test_select_prints_the_better_model_and_leaves_out_what_any_learned_from(tmp_path):
    events, reports, _ = world(tmp_path, count=6000, size=4)
    good, bad = tmp_path / "good.unbag", tmp_path / "bad.unbag"
    without = tmp_path / "plan.toml"
    without.write_text('[columns.x]\nkind = "drop"\n')
    run("train", events, reports, *SALES, "--id", "event", *QUICK, "--out", good)
    run(
        "train",
        events,
        reports,
        *SALES,
        "--id",
        "event",
        *QUICK,
        "--seed",
        1,
        "--columns",
        without,
        "--out",
        bad,
    )
    words = ["select", bad, good, "--events", events, "--reports", reports, *SALES]
    found = run(*words)
    assert found.stdout == f"{good}\n"
    assert found.stderr.startswith("chosen from ")
    table = json.loads(run(*words, "--json").stdout)
    marks_of = [unbag.load(path).learned_[:, 1] for path in (good, bad)]
    assert table["bags"] == 1500 - len(np.union1d(*marks_of))
    assert [row["name"] for row in table["table"]] == [str(good), str(bad)]
    by = ["--rule", "tournament", "--beta", 0.5, "--failure", 0.8]  # so few bags
    assert run(*words, *by).stderr.count("The tournament leaves ") == 1


def test_plan_says_what_the_theorems_say():
    from unbag.planning import (
        ModelSpread,
        Noise,
        Problem,
        bags_needed,
        interval_width,
        regret_supported,
    )

    words = ["plan", "--rate", 0.2, "--size", 16, "--regret", 0.1, "--bags", 10**6, "--json"]
    found = json.loads(run(*words).stdout)
    problem = Problem(models=12, size=16, spread=ModelSpread(0.25, 0.25, 0.25), prior=0.2)
    assert found["needed"]["guaranteed_bags"] == bags_needed(0.1, problem)
    assert found["supported"]["guaranteed_regret"] == pytest.approx(
        regret_supported(10**6, problem)
    )
    noise = Noise(0.16, 0.0, np.log(4), 1.0)
    enough = found["needed"]["bags"]
    assert (
        interval_width(enough * 16, 16, noise) / 2
        <= 0.1
        < interval_width((enough - 1) * 16, 16, noise) / 2
    )


def test_plan_knows_totals_histograms_and_bags_of_mixed_sizes():
    from unbag.planning import HistogramSpread, ModelSpread, Problem, bags_needed

    problems = {
        ("--kind", "total", "--cap", 10): Problem(
            12, 16, ModelSpread(25.0, 0.25, 0.25), prior=0.02, cap=10
        ),
        ("--kind", "histogram", "--classes", 5): Problem(
            12,
            16,
            HistogramSpread(1.25, 1.25),
            classes=5,  # E max_r is at most the sum over r
        ),
        ("--larger-size", 64): Problem(
            12, 16, ModelSpread(0.25, 0.25, 0.25), prior=0.2, means_size=64
        ),
    }
    for words, problem in problems.items():
        asked = ["plan", "--rate", 0.2, "--size", 16, "--regret", 0.5, *words, "--json"]
        needed = json.loads(run(*asked).stdout)["needed"]
        assert needed["guaranteed_bags"] == bags_needed(0.5, problem)
        printed = run(*asked[:-1]).stdout
        assert ("an order of magnitude" in printed) == ("histogram" in words)


def test_plan_names_the_bags_for_each_size_and_the_fast_rate_where_it_helps():
    from unbag import losses
    from unbag.planning import ModelSpread, Noise, Problem, bags_needed, interval_width, sandwich

    words = ["plan", "--rate", 0.5, "--size", 4, "--regret", 1e-5, "--score-sd", 0.3, "--json"]
    found = json.loads(run(*words).stdout)
    noise, problem = (
        Noise(0.25, 0.0, 0.0, 0.09),
        Problem(models=12, size=4, spread=ModelSpread(*[0.25] * 3), prior=0.5),
    )
    fast = bags_needed(1e-5, problem, curvature=sandwich(losses.log, (-0.9, 0.9)))
    assert found["needed"]["guaranteed_fast_bags"] == pytest.approx(fast, rel=1e-6)
    assert fast < bags_needed(1e-5, problem)
    for row in found["needed_by_size"]:
        assert interval_width(row["bags"] * row["size"], row["size"], noise) / 2 <= 1e-5
    assert run(*words[:-1]).stdout.count("possible predictor is among") == 1


def test_plan_tells_no_fast_rate_where_scores_are_so_large_that_the_loss_has_no_curvature():
    found = json.loads(
        run("plan", "--rate", 0.5, "--size", 4, "--regret", 0.1, "--score-sd", 9, "--json").stdout
    )
    assert found["needed"]["guaranteed_bags"] > 0
    assert found["needed"]["guaranteed_fast_bags"] is None


def test_plan_knows_the_noise_of_a_privacy_budget():
    from unbag.noise import gaussian, geometric, laplace

    words = ["plan", "--rate", 0.1, "--epsilon", 0.5, "--bags", 50, "--json"]
    made = {
        (): laplace(epsilon=0.5),
        ("--sensitivity", 2): laplace(epsilon=0.5, cap=2),
        ("--mechanism", "geometric"): geometric(epsilon=0.5),
        ("--mechanism", "gaussian", "--delta", 1e-6): gaussian(epsilon=0.5, delta=1e-6),
    }
    for more, noise in made.items():
        assert json.loads(run(*words, *more).stdout)["noise_variance"] == noise.variance


def test_design_gives_arriving_events_the_bags_that_the_library_gives(tmp_path):
    ids = np.arange(60)
    stratum = np.array(["a", "b"])[ids % 2]
    pd.DataFrame({"event": ids, "campaign": stratum}).to_parquet(tmp_path / "e.parquet")
    words = ["design", tmp_path / "e.parquet", "--id", "event", "--size", 10]
    bag = lambda result: [line.split(",")[-1].strip('"') for line in result.stdout.splitlines()[1:]]
    assert (
        bag(run(*words, "--expected", 200))
        == unbag.design_bags(ids, size=10, expected=200).tolist()
    )
    expected = {"a": 100, "b": 300}
    found = run(*words, "--stratum", "campaign", "--expected", "a=100", "--expected", "b=300")
    assert (
        bag(found) == unbag.design_bags(ids, size=10, stratum=stratum, expected=expected).tolist()
    )
    assert (
        "mapping from strata"
        in run(*words, "--stratum", "campaign", "--expected", 200, code=1).stderr
    )


def test_plan_compares_sizes_under_noise():
    text = run("plan", "--rate", 0.1, "--noise", 100, "--events", 10**6, "--bags", 50).stdout
    assert text.startswith("Best size at noise variance 100: 73 events a bag.\n")
    rows = json.loads(
        run("plan", "--rate", 0.1, "--noise", 100, "--events", 10**6, "--json").stdout
    )["sizes"]
    assert min(rows, key=lambda row: row["within"])["size"] == 73
    assert "nothing: it needs more bags" in run("plan", "--rate", 0.1, "--bags", 5).stdout
    assert "Invalid value for '--noise'" in run("plan", "--rate", 0.1, "--noise", -1, code=2).stderr


def test_the_commands_of_the_guide_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (FOLDER.parents[1] / "docs" / "command-line.md").read_text()
    for language, code in re.findall(r"```(python|py|sh)\n(.*?)```", page, re.DOTALL):
        if language != "sh":  # a block of py needs what the commands wrote, and runs only here
            exec(compile(code, "command-line.md", "exec"), {})
        for line in code.splitlines() if language == "sh" else ():
            run(*shlex.split(line)[1:])
    assert len(pd.read_parquet("scores.parquet")) == 8000
    assert {f"`{name}`" for name in VERBS} <= set(re.findall(r"`\w+`", page))


def test_help_and_version_import_no_library_that_is_slow_to_load():
    code = """
import sys
from unbag.cli import app
for words in sys.argv[1:]:
    try: app(words.split())
    except SystemExit: pass
slow = ("jax", "pyarrow", "duckdb", "sklearn", "scipy", "pandas")
print([name for name in slow if name in sys.modules])
"""
    asked = [f"{verb} --help" for verb in VERBS_OF_THE_APP]
    command = [sys.executable, "-c", code, "--help", "--version", *asked]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert f"unbag {unbag.__version__}\n" in printed
    assert printed.count("Example: unbag ") == len(asked)
    assert printed.endswith("[]\n")


def test_every_verb_has_a_file_and_a_help_of_its_own():
    for name in VERBS_OF_THE_APP:
        assert run(name, "--help").stdout.strip()


def test_every_field_of_the_columns_has_an_option_with_help():
    names = [field.name for field in dataclasses.fields(Columns)]
    assert list(COLUMN_HELP)[: len(names)] == names
    assert list(COLUMN_HELP) == [field.name for field in dataclasses.fields(ColumnOptions)]
    assert ["on", *ColumnNames.__annotations__] == names
    words = run("train", "--help").stdout
    assert all(f"--{name.replace('_', '-')}" in words for name in names)


@pytest.mark.parametrize(
    "words, said",
    [
        (["--regret", 0.1, "--cap", 5], "--cap must come with --kind total"),
        (["--regret", 0.1, "--classes", 5], "--classes must come with --kind histogram"),
        (["--regret", 0.1, "--table", "shop"], "--table must come with --marginals"),
        (["--regret", -1], "A regret must be positive: -1 given"),
        (["--marginals", "e.csv", "--table", "a", "--bags", 5], "--bags given too"),
    ],
)
def test_plan_refuses_options_that_would_do_nothing(words, said):
    assert said in run("plan", "--rate", 0.5, *words, code=1).stderr


def test_plan_names_the_loss_of_the_kind_and_one_event():
    words = ["plan", "--rate", 0.5, "--regret", 0.1]
    printed = run(*words, "--kind", "total", "--cap", 5).stdout
    assert "1 event a bag" in printed
    assert "tell the Poisson loss" in printed
    assert "log loss" not in printed
    assert "tell the log loss" in run(*words).stdout


def test_a_cap_of_binary_reports_is_refused_and_one_of_a_model_of_counts_is_not(tmp_path):
    events, reports, _ = world(tmp_path, count=400)
    refused = run("check", events, reports, *SALES, "--cap", 3, code=1).stderr
    assert "A cap must come with totals of counts" in refused
    model, totals = tmp_path / "m.unbag", ["--kind", "total", "--learner", "additive"]
    run("train", events, reports, *SALES, *totals, "--cap", 3, "--test", 0.3, "--out", model)
    run("evaluate", model, events, reports, *SALES, "--cap", 3)


def test_columns_with_commas_are_hinted_one_by_one(tmp_path):
    events, reports, _ = world(tmp_path, count=400)
    said = run("check", events, reports, "--on", "bag, x", "--total", "sales", code=1).stderr
    assert "These are 2 columns: name each by itself" in said
    assert "--on bag --on x --total sales" in said


@pytest.mark.parametrize(
    "words, said, hint",
    [
        (
            ["benchmark", "--so-far", "--store", "nowhere"],
            "A file of --store must exist: nowhere/runs.csv does not",
            "unbag",
        ),
        (["benchmark", "--add", "no.py"], "A file of --add must exist: no.py", "unbag"),
        (["benchmark", "--results", "no.csv"], "A file of --results must exist: no.csv", "unbag"),
        (["stream", "nowhere", "--on", "b", "--proportion", "p"], "must come from a folder", ""),
        (
            ["select", "a", "b", "--events", "e", "--reports", "r", "--on", "b", "--beta", 0.1],
            "--beta must come with --rule tournament",
            "--rule tournament",
        ),
    ],
)
def test_what_is_not_there_is_refused_and_nothing_is_left_behind(
    tmp_path, monkeypatch, words, said, hint
):
    monkeypatch.chdir(tmp_path)
    more = ["--total", "s"] * (words[0] == "select")
    stderr = run(*words, *more, code=1).stderr
    assert said in stderr
    assert hint in stderr.split("hint: ")[1]
    assert list(tmp_path.iterdir()) == []


def test_a_stream_without_events_leaves_no_folder(tmp_path):
    (tmp_path / "inbox").mkdir()
    run("stream", tmp_path / "inbox", "--on", "b", "--proportion", "p", code=1)
    assert [path.name for path in tmp_path.iterdir()] == ["inbox"]


def test_a_stream_resumed_by_another_column_says_only_that(tmp_path):
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    rng = np.random.default_rng(0)
    events = pd.DataFrame({"bag": np.arange(400) // 4, "day": np.arange(400) // 8})
    events.assign(x=rng.normal(size=400)).to_csv(inbox / "e.csv", index=False)
    share = pd.DataFrame({"bag": np.arange(100), "day": np.arange(100), "p": rng.random(100)})
    share.assign(p=(4 * share.p).round() / 4).to_csv(inbox / "r.csv", index=False)
    (inbox / "bad.csv").write_text("x,p\n1,0.5\n")  # a report of no bag
    first = run("stream", inbox, "--on", "bag", "--proportion", "p", "--rows", 64)
    assert "bad.csv is set aside: A column must exist: 'bag'" in first.stderr
    page = (tmp_path / "inbox-run" / "report.html").read_text()
    assert "Set aside" in page
    assert "Nothing was set aside" not in page
    said = run("stream", inbox, "--on", "day", "--proportion", "p", "--rows", 64, code=1).stderr
    assert (
        "source was 'inbox --on bag --proportion p' and is 'inbox --on day --proportion p'" in said
    )


def test_a_stream_says_that_it_may_have_learned_from_the_bags_and_is_not_recalibrated(tmp_path):
    inbox, out = tmp_path / "inbox", tmp_path / "m.unbag"
    inbox.mkdir()
    events, reports, _ = world(inbox, count=2000, ending="csv")
    run("stream", inbox, *SALES, "--size", "events", "--rows", 256, "--id", "event")
    folder = tmp_path / "inbox-run"
    said = run("evaluate", folder, events, reports, *SALES).stderr
    assert "does not know which bags it learned from" in said
    assert "unbag recalibrate" not in said
    refused = run("recalibrate", folder, events, reports, *SALES, "--out", out, code=1).stderr
    assert "A model to recalibrate must be a file" in refused


def test_a_total_beside_a_proportion_is_not_answered_by_a_third(tmp_path):
    events, reports, _ = world(tmp_path, count=400)
    said = run("check", events, reports, *SALES, "--proportion", "sales", code=1).stderr
    assert "Keep one of --total and --proportion." in said
    assert "--counts" not in said


def test_help_of_verbs_that_take_marginal_tables_asks_for_no_bags():
    usage = run("train", "--help").stdout
    assert "[reports]" in usage
    assert "Missing option '--on'" in run("train", "e", "r", "--out", "m", code=2).stderr


def test_evaluations_and_models_from_disk_name_the_next_command(tmp_path):
    events, reports, _ = world(tmp_path, count=3000)
    model = tmp_path / "m.unbag"
    words = ["train", events, reports, *SALES, "--memory", "1MB", "--id", "event", "--out", model]
    assert f"  unbag predict {model} NEW_EVENTS --out" in run(*words).stderr
    later = world(tmp_path, count=3000, seed=1, name="later")[:2]
    words = [*SALES, "--size", "events", "--noise", 0.5]
    said = run("evaluate", model, *later, *words).stderr
    assert f"\n  unbag recalibrate {model} NEW_EVENTS NEW_REPORTS --on bag" in said
    assert "--size events --noise 0.5 --out better.unbag" in said
