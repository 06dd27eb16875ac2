"""What `train`, `evaluate`, `explain` and `recalibrate` say, and the hints of all verbs."""

import json
import re
import shutil
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import unbag
from cases.cli import SALES, run, world
from unbag.cli._console import activity, hint_of
from unbag.cli._explain import in_words
from unbag.cli._train import next_command, rate_of
from unbag.learners import Effect, labelled_rows, verdict_of
from unbag.metrics import Estimate
from unbag.tables import watched

ADDITIVE = ["--learner", "additive", "--folds", 3]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Two tables, a model that learned from the first half of the bags, and the second half."""
    folder = tmp_path_factory.mktemp("trained")
    events, reports, y = world(folder, count=3000)
    e, r = pd.read_parquet(events), pd.read_parquet(reports)
    for name, part in (("old", e.bag < 200), ("new", e.bag >= 200)):
        e[part].to_parquet(folder / f"{name}-events.parquet")
        r[r.bag.isin(e.bag[part])].to_parquet(folder / f"{name}-reports.parquet")
    model, page = folder / "m.unbag", folder / "p.html"
    tables = folder / "old-events.parquet", folder / "old-reports.parquet"
    words = [*tables, *SALES, "--id", "event", *ADDITIVE, "--out", model, "--page", page, "--json"]
    return folder, run("train", *words), y


def test_train_ends_with_a_verdict_that_also_heads_the_page(trained):
    folder, done, _ = trained
    said = done.stderr
    headline = "The model is better than always predicting the prior, 0."
    assert headline in said
    for part in (
        "Evidence: log loss",
        "Level and slope:",
        "labelled rows",
        "matter most",
        "Next: ",
    ):
        assert part in said
    assert said.rstrip().splitlines()[-2].startswith("  unbag ")  # the command to type next
    assert json.loads(done.stdout)["verdict"][0].startswith(headline)
    page = (folder / "p.html").read_text()
    assert page.index(headline) < page.index('id="input"')


def test_train_lists_each_column_and_how_it_is_read(trained):
    folder, done, _ = trained
    assert "Columns: 2 used, 2 left out" in done.stderr
    assert "  device  one of 2 values: desk, phone" in done.stderr
    assert "  event   left out: the event's id (--id)" in done.stderr
    page = (folder / "p.html").read_text()
    assert "one of 2 values: desk, phone" in page
    assert "left out: the bag" in page


def test_a_model_that_knows_nothing_gets_a_warning(tmp_path):
    events, reports, _ = world(tmp_path, count=600)
    r = pd.read_parquet(reports)
    drawn = np.random.default_rng(0).binomial(r.events, 0.3)
    r.assign(sales=drawn).to_parquet(reports)
    words = [events, reports, *SALES, "--id", "event", "--linear", "--epochs", 5]
    said = run("train", *words, "--out", tmp_path / "m.unbag").stderr
    assert (
        "warning: These bags cannot tell whether" in said or "warning: The model is worse" in said
    )
    assert "do not" in said


def test_evaluate_gives_the_verdict_of_other_bags(trained):
    folder, _, _ = trained
    tables = folder / "new-events.parquet", folder / "new-reports.parquet"
    said = run("evaluate", folder / "m.unbag", *tables, *SALES).stderr
    assert said.startswith("The model is better than always predicting the prior")
    assert "Columns that matter most (standard deviation of their effect on the score): x " in said


def test_explain_prints_and_draws_the_effects_with_intervals(trained):
    folder, _, _ = trained
    printed = run("explain", folder / "m.unbag").stdout
    assert printed.index("\nx (standard deviation") < printed.index("\ndevice (standard deviation")
    effects = json.loads(run("explain", folder / "m.unbag", "--json", "--column", "device").stdout)
    values = dict(zip(effects[0]["at"], effects[0]["effect"], strict=True))
    errors = dict(zip(effects[0]["at"], effects[0]["error"], strict=True))
    away = values["desk"] - values["phone"] - 1  # the truth is 1
    assert abs(away) < 4 * (errors["desk"] + errors["phone"])
    for ending, start in (("svg", b"<?xml"), ("png", b"\x89PNG")):
        out = folder / f"effects.{ending}"
        run("explain", folder / "m.unbag", "--out", out)
        assert out.read_bytes().lower().startswith(start.lower())
    assert (
        "must be named .svg"
        in run("explain", folder / "m.unbag", "--out", folder / "e.pdf", code=1).stderr
    )


@pytest.mark.parametrize("learner", ["additive", "network alone"])
def test_recalibrate_corrects_the_level_and_remembers_the_bags(trained, tmp_path, learner):
    folder, _, _ = trained
    model, better = folder / "m.unbag", tmp_path / "better.unbag"
    if learner == "network alone":
        model = tmp_path / "n.unbag"
        tables = folder / "old-events.parquet", folder / "old-reports.parquet"
        run("train", *tables, *SALES, "--id", "event", "--epochs", 2, "--out", model)
    tables = folder / "new-events.parquet", folder / "new-reports.parquet"
    words = [model, *tables, *SALES, "--out", better, "--json"]
    repair = json.loads(run("recalibrate", *words).stdout)
    rows = unbag.load(model).plan_.apply(tables[0])
    old, new = (unbag.load(path) for path in (model, better))
    if old.takes_tables:
        rows = old.plan_.columns_of(next(iter(old.plan_.tables(tables[0]))))
    score = [np.log(m.predict_proba(rows)[:, 1] / m.predict_proba(rows)[:, 0]) for m in (old, new)]
    expected = repair["slope"]["value"] * score[0] + repair["intercept"][0]["value"]
    np.testing.assert_allclose(score[1], expected, rtol=1e-3, atol=1e-3)
    assert "it learned from all" in run("evaluate", better, *tables, *SALES, code=1).stderr


def test_the_correction_of_an_old_score_is_of_its_level_only(tmp_path):
    events, reports, _ = world(tmp_path, count=600)
    frame = pd.read_parquet(events)
    frame.assign(old=0.3).to_parquet(events)
    model = tmp_path / "m.unbag"
    words = [events, reports, *SALES, "--id", "event", "--score", "old", *ADDITIVE]
    run("train", *words, "--out", model)
    said = run(
        "recalibrate", model, events, reports, *SALES, "--out", tmp_path / "b", code=1
    ).stderr
    assert "must be recalibrated by its level alone" in said
    assert said.rstrip().endswith("--fit intercept")


HINTS = {
    "a misspelt method": (["--method", "mathcing"], "--method matching"),
    "a misspelt learner": (["--learner", "addtive"], "--learner additive"),
    "a misspelt loss": (["--loss", "squar"], "--loss square"),
    "a misspelt mechanism": (["--epsilon", "1", "--mechanism", "laplas"], "--mechanism laplace"),
    "a misspelt column": (["--id", "evnt"], "--id event"),
}


@pytest.mark.parametrize("name", HINTS)
def test_the_hint_is_the_command_to_type_next(tmp_path, name):
    events, reports, _ = world(tmp_path, count=60)
    more, right = HINTS[name]
    said = run("train", events, reports, *SALES, *more, "--out", tmp_path / "m", code=1).stderr
    hint = said.rstrip().rpartition("\n\nhint: ")[2]
    assert hint.startswith(f"unbag train {events} {reports} --on bag --total sales")
    assert right in hint
    assert more[-1] not in hint.split()


def test_swapped_tables_and_a_model_in_their_place_are_recognised(tmp_path, trained):
    events, reports, _ = world(tmp_path, count=60)
    said = run("check", reports, events, *SALES, code=1).stderr
    assert "The events must come first" in said
    assert said.rstrip().endswith(f"hint: unbag check {events} {reports} --on bag --total sales")
    model = shutil.copy(trained[0] / "m.unbag", tmp_path)
    said = run("evaluate", model, reports, events, *SALES, code=1).stderr
    assert f"hint: unbag evaluate {model} {events} {reports} --on bag" in said
    assert "m.unbag is a model" in run("check", model, reports, *SALES, code=1).stderr
    assert "events.parquet is a Parquet file" in run("predict", events, events, code=1).stderr


def test_proportions_and_noisy_counts_given_as_totals_are_recognised(tmp_path):
    events, reports, _ = world(tmp_path, count=60)
    r = pd.read_parquet(reports)
    r.assign(sales=r.sales / r.events).to_parquet(reports)
    done = run("check", events, reports, *SALES, code=3)
    assert "as proportions do: bag 0 has" in done.stdout
    assert done.stderr.rstrip().endswith("--on bag --proportion sales")
    r.assign(sales=r.sales + 0.25).to_parquet(reports)
    done = run("check", events, reports, *SALES, code=3)
    assert "A count without noise must be a whole number" in done.stdout
    assert done.stderr.rstrip().endswith("--on bag --total sales --epsilon 1")
    assert run("check", events, reports, *SALES, "--epsilon", 1, "--id", "event").exit_code == 0


def test_check_tells_all_that_is_refused_and_nothing_of_what_would_be_used(tmp_path):
    events, reports, _ = world(tmp_path, count=60)
    r = pd.read_parquet(reports)
    state = ["lost", *["fine"] * 5]
    r = r.assign(state=state, events=[11, *r.events[1:]])
    pd.concat([r, r.tail(1)]).to_parquet(reports)
    words = [events, reports, *SALES, "--status", "state", "--size", "events"]
    printed = run("check", *words, code=3).stdout
    assert printed.count("refused: ") == 2
    assert "(6 such bags). Say what your own words mean with --status-map" in printed
    assert "suppressed_by_size where the bag was too small" in printed
    assert "used," not in printed
    meaning = ["--status-map", "fine=observed", "--status-map", "lost=suppressed_by_size"]
    assert run("check", *words, *meaning, code=3).stdout.count("refused: ") == 1
    wrong = run("check", events, reports, "--on", "bagg", "--total", "sale", code=1).stderr
    assert wrong.count("A column must exist") == 3


def test_widths_of_layers_may_have_commas(tmp_path):
    events, reports, _ = world(tmp_path, count=200)
    model = tmp_path / "m.unbag"
    run("train", events, reports, *SALES, "--hidden", "6,4", "--epochs", 1, "--out", model)
    assert unbag.load(model).hidden == (6, 4)


def test_options_to_be_left_out_are_no_hint():
    error = unbag.Refused(unbag.Refusal("A thing must hold", "it does not", "Leave {id} out."))
    assert hint_of(error, ["check"]) == ""


def test_a_verdict_says_how_many_bags_would_settle_it():
    evaluation = type("E", (), {"estimates": {}, "source": "bags", "bags": 50})
    unsure = verdict_of(evaluation, Estimate(0.1, 0.1, -0.1, 0.3))
    assert (unsure.answer, unsure.step) == ("unsure", "more")
    assert "about 4 times as many (200)" in unsure.sentences[-1]
    assert verdict_of(evaluation, Estimate(-1.0, 0.1, -1.2, -0.8)).answer == "worse"
    assert verdict_of(None, None).answer == "unknown"
    off = verdict_of(evaluation, Estimate(1.0, 0.1, 0.8, 1.2), slope=Estimate(0.5, 0.1, 0.3, 0.7))
    assert (off.answer, off.step) == ("better", "recalibrate")


def test_a_verdict_says_what_is_not_known():
    """An AUC of -0.2 was printed, a slope between plus and minus a million, and a log loss above
    that of the prior beside "better", without a word."""
    log_loss, auc = Estimate(0.3, 0.02, 0.26, 0.34), Estimate(-0.2, 0.2, -0.6, 0.2)
    known = {"estimates": {"log_loss": log_loss, "auc": auc}, "source": "bags", "bags": 50}
    evaluation = type("E", (), known | {"trivial_loss": 0.29})
    gain, slope = Estimate(1.0, 0.1, 0.8, 1.2), Estimate(2.0, 1e6, -2e6, 2e6)
    said = str(verdict_of(evaluation, gain, slope=slope))
    assert "of the prior 0.2900, which the interval contains; AUC not known: these bags" in said
    assert "slope not known: these bags leave it anywhere." in said
    evaluation.estimates["auc"], evaluation.trivial_loss = Estimate(0.7, 0.1, 0.5, 0.9), 0.4
    said = str(verdict_of(evaluation, gain, slope=Estimate(1.0, 0.1, 0.8, 1.2)))
    assert "of the prior 0.4000; AUC 0.7000 [0.5000, 0.9000] (0.5 is chance)" in said
    assert "slope 1.0000 [0.8000, 1.2000]" in said


def test_what_strata_differ_by_is_not_counted_as_worth():
    rng = np.random.default_rng(0)
    bag, stratum = np.arange(2000) // 20, np.arange(100) % 2
    score = rng.normal(size=2000) + 3 * stratum[bag]
    report = np.full(100, 0.5)
    parts = [
        labelled_rows(score[stratum[bag] == s], unbag.Bags(np.arange(1000) // 20, report[:50]))
        for s in (0, 1)
    ]
    whole = labelled_rows(score, unbag.Bags(bag, report))
    within = labelled_rows(score, unbag.Bags(bag, report, stratum=stratum))
    assert min(parts) * 1.5 < within < sum(parts) * 1.5
    assert within < 150 < 1000 < whole


def test_bags_of_one_are_worth_their_rows_and_noise_takes_from_it():
    rng = np.random.default_rng(0)
    score = rng.normal(size=400)
    labels = unbag.Bags(np.arange(400), np.zeros(400))
    assert labelled_rows(score, labels) == pytest.approx(400)
    v = 1 / (1 + np.exp(-score)) / (1 + np.exp(score))
    noisy = unbag.Bags(np.arange(400), np.zeros(400), noise=np.full(400, 0.5))
    away, V = score - np.average(score, weights=v), v + 0.5
    known = np.sum((v * away) ** 2 / V) - np.sum(v * v * away / V) ** 2 / np.sum(v**2 / V)
    assert labelled_rows(score, noisy) == pytest.approx(known / np.mean(v * away**2))
    assert labelled_rows(np.zeros(400), labels) is None


def test_long_work_gives_lines_with_the_time_left(capsys, monkeypatch):
    monkeypatch.setattr("unbag._progress.SILENCE", 2.0)
    clock = iter(np.arange(0.0, 100.0, 1.0))
    monkeypatch.setattr("unbag._progress.monotonic", lambda: next(clock))
    with activity("learning") as told:
        for step in range(1, 6):
            told(step, 10, f"trees: round {step}, loss 0.5")
    lines = capsys.readouterr().err.splitlines()
    assert 1 <= len(lines) < 5  # not one for each step
    assert lines[0].startswith("trees: round ")
    assert re.search(r" \(\d of 10, about \d+ s left\)$", lines[0])


def test_the_time_left_counts_from_the_end_of_the_work_before(capsys, monkeypatch):
    monkeypatch.setattr("unbag._progress.SILENCE", 2.0)
    clock = iter([0.0, 10.0, 20.0, 21.0, 31.0])
    monkeypatch.setattr("unbag._progress.monotonic", lambda: next(clock))
    with activity("learning") as shown:
        shown(1, 6, "additive: fold 1")  # after 10 seconds: the first step says how long one takes
        shown(2, 6, "additive: fold 2")
        shown(300, None, "reading events: 300 rows")  # other work in between
        shown(3, 6, "additive: fold 3")
    assert capsys.readouterr().err.splitlines() == [
        "additive: fold 1 (1 of 6, about 50 s left)",
        "additive: fold 2 (2 of 6, about 40 s left)",
        "additive: fold 3 (3 of 6, about 31 s left)",
    ]


def test_reading_is_watched_batch_by_batch(tmp_path):
    events, _, _ = world(tmp_path, count=300)
    told = []
    with watched(lambda thing, rows: told.append((thing, rows))):
        unbag.plan_features(events)
    assert told[-1] == ("events", 300)
    with activity("reading"):
        unbag.plan_features(events)
    unbag.plan_features(events)
    assert len(told) == 1


LONE = {
    "--method upm": "A stratum to split must hold at least four bags, two for each part: stratum c has 1",
    "--method matching --noise 1": "outside it has no lower bound: bag c9 has -0.1",
}


@pytest.mark.parametrize("words", LONE)
def test_errors_name_bags_and_strata_as_the_tables_do(tmp_path, words):
    rng = np.random.default_rng(0)
    bags = [*(f"a{i}" for i in range(8)), *(f"b{i}" for i in range(8)), "c9"]
    events = pd.DataFrame({"bag": np.repeat(bags, 10), "x": rng.normal(size=170)})
    events.assign(shop=events.bag.str[0]).to_csv(tmp_path / "e.csv", index=False)
    sales = [*rng.integers(1, 9, 16), -1 if "noise" in words else 1]
    pd.DataFrame({"bag": bags, "sales": sales}).to_csv(tmp_path / "r.csv", index=False)
    tables = [tmp_path / "e.csv", tmp_path / "r.csv", *SALES]
    strata = ["--stratum", "shop"] if "upm" in words else ["--test", 0]
    more = [*words.split(), *strata, "--epochs", 1, "--held-out", 0, "--out", tmp_path / "m"]
    assert LONE[words] in run("train", *tables, *more, code=1).stderr


def test_bags_of_campaigns_correct_and_choose_within_campaigns(tmp_path):
    """Random bags of one campaign each tell nothing of the slope across campaigns."""
    rng = np.random.default_rng(0)
    campaign, x = rng.integers(6, size=9000), rng.normal(size=9000)
    score = -1 + 1.5 * np.sin(2 * campaign) + x
    place = pd.Series(rng.permutation(9000)).groupby(campaign).rank().astype(int) // 12
    bag = [f"c{c} {p}" for c, p in zip(campaign, place, strict=True)]
    frame = pd.DataFrame({"bag": bag, "campaign": [f"c{c}" for c in campaign], "x": x})
    y = rng.random(9000) < 1 / (1 + np.exp(-score))
    reports = frame.assign(sales=y).groupby("bag", as_index=False)["sales"].sum()
    frame.to_parquet(tmp_path / "e.parquet")
    reports.to_parquet(tmp_path / "r.parquet")
    files, words = (tmp_path / "e.parquet", tmp_path / "r.parquet"), ["--on", "bag", "--total"]
    words = [*words, "sales", "--learner", "additive", "--folds", 3, "--test", 0.5]
    run("train", *files, *words, "--out", tmp_path / "m.unbag")
    words = [*files, "--on", "bag", "--total", "sales", "--json"]
    said = run("recalibrate", tmp_path / "m.unbag", *words, "--out", tmp_path / "n.unbag")
    assert "No bag mixes campaign" in said.stderr
    assert "not random" not in said.stderr
    slope = json.loads(said.stdout)["slope"]
    assert slope["low"] < 1 < slope["high"]
    assert slope["high"] - slope["low"] < 1


def test_explain_shows_a_value_with_all_its_classes():
    at, effect = np.arange(40.0), np.arange(120.0).reshape(40, 3)
    effect = Effect("age", 1.0, tuple(at), effect, np.ones((40, 3)))
    lines = in_words([effect], "histogram", ["none", "mild", "severe"]).splitlines()
    assert [line.split()[:2] for line in lines[3:6]] == [
        ["0", c] for c in ("none", "mild", "severe")
    ]
    assert [line.split()[0] for line in lines[3:15:3]] == ["0", "13", "26", "39"]
    assert lines[15] == "  ... and 36 more: --column 'age'"


def test_the_rate_to_plan_with_is_that_of_all_events():
    """Strata have priors of their own, which count by their events."""
    bag = np.repeat(np.arange(4), [90, 90, 10, 10])
    bags = unbag.Bags(bag, [0.1, 0.1, 0.9, 0.9], stratum=[0, 0, 1, 1])
    assert rate_of(bags) == pytest.approx(0.1 * 0.9 + 0.9 * 0.1)


def test_a_network_is_not_to_be_explained(tmp_path):
    """It has no effects: `unbag explain` would refuse the model of the line before."""
    context = SimpleNamespace(meta={})
    network = SimpleNamespace(kind_="binary", old_score_=None, fitted_=None)
    words = next_command("other", context, network, tmp_path / "m.unbag", 0.1)
    assert words == "  unbag plan --rate 0.1 --regret 0.01"
