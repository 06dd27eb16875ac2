"""`unbag train` without an option: every bag teaches and judges, old scores, bags not random."""

import json
import re

import numpy as np
import pandas as pd
import pytest

import unbag
from cases.cli import run

WORDS = ["--on", "bag", "--total", "sales", "--id", "event"]
QUICK = ["--learner", "additive", "--folds", 3]


def clicks(folder, *, by, n=3000, seed=0):
    """Events of campaigns on days in bags of one kind, their reports, and their true scores."""
    rng = np.random.default_rng(seed)
    campaign, day, x = rng.integers(5, size=n), rng.integers(12, size=n), rng.normal(size=n)
    score = -1 + 0.8 * np.sin(3 * campaign) + 2 * x
    bag = {
        "chance": rng.permutation(n) // 10,
        "campaign": 100 * campaign + rng.integers(60, size=n),
        "campaign x day": 100 * campaign + day,
    }[by]
    frame = pd.DataFrame(
        {
            "event": [f"e{i}" for i in range(n)],
            "bag": [f"b{b}" for b in bag],
            "campaign": [f"c{c}" for c in campaign],
            "day": pd.Timestamp("2026-03-01") + pd.to_timedelta(day, "D"),
            "x": x,
            "old": 1 / (1 + np.exp(-(score - 2 * x))),
        }
    )
    sold = rng.random(n) < 1 / (1 + np.exp(-score))
    frame.to_csv(folder / "e.csv", index=False)
    reports = frame.assign(sales=sold).groupby("bag", as_index=False)["sales"].sum()
    reports.to_csv(folder / "r.csv", index=False)
    return folder / "e.csv", folder / "r.csv", score


def predicted(folder, model, events):
    run("predict", model, events, "--id", "event", "--out", folder / "s.csv", "--force")
    p = pd.read_csv(folder / "s.csv").probability.to_numpy()
    return np.log(p / (1 - p))


@pytest.mark.parametrize("by", ["chance", "campaign"])
def test_every_bag_teaches_and_judges_and_the_verdict_says_so(tmp_path, by):
    events, reports, score = clicks(tmp_path, by=by)
    more = ["--stratum", "campaign", "--time", "day"] if by == "campaign" else []
    model, page = tmp_path / "m.unbag", tmp_path / "p.html"
    trained = run("train", events, reports, *WORDS, *more, *QUICK, "--out", model, "--page", page)
    count = len(pd.read_csv(reports))
    assert f"from {count} bags, 3,000 rows" in trained.stdout
    assert "slightly pessimistic" in trained.stderr
    assert "The model is better than always predicting the prior" in trained.stderr
    assert "Columns that matter most" in trained.stderr
    assert {"campaign", "day", "x"} <= {c.name for c in unbag.load(model).plan_.columns}
    assert np.corrcoef(predicted(tmp_path, model, events), score)[0, 1] > 0.9
    assert "<html" in page.read_text()
    said = run("evaluate", model, events, reports, *WORDS, code=1).stderr
    assert "it learned from all" in said


def test_an_untouched_share_judges_where_it_is_asked_for(tmp_path):
    events, reports, _ = clicks(tmp_path, by="chance")
    model = tmp_path / "m.unbag"
    words = [events, reports, *WORDS, *QUICK, "--test", 0.2, "--json", "--out", model]
    assert json.loads(run("train", *words).stdout)["bags"] == 60
    assert (
        "240 bags that the model learned from"
        in run("evaluate", model, events, reports, *WORDS).stderr
    )


def test_an_old_score_is_corrected_and_goes_into_predict_and_evaluate(tmp_path):
    events, reports, score = clicks(tmp_path, by="chance")
    model = tmp_path / "m.unbag"
    words = [events, reports, *WORDS, *QUICK, "--score", "old", "--test", 0.2, "--out", model]
    said = run("train", *words).stderr
    assert "old holds probabilities: bags teach what is to be added to its scores." in said
    assert "better than the old score (or exposure) alone" in said
    z = predicted(tmp_path, model, events)
    assert np.corrcoef(z, score)[0, 1] > 0.9
    told = json.loads(run("evaluate", model, events, reports, *WORDS, "--json").stdout)
    assert told["estimates"]["mean_prediction"]["value"] == pytest.approx(
        np.mean(1 / (1 + np.exp(-z))), abs=0.03
    )


def test_exposures_go_into_train_predict_and_evaluate(tmp_path):
    rng, n = np.random.default_rng(2), 4000
    hours, x, bag = rng.uniform(0.1, 1, n), rng.normal(size=n), rng.integers(0, 200, n)
    rate = np.exp(-1 + 0.8 * x)
    events = pd.DataFrame({"bag": bag, "x": x, "hours": hours})
    totals = np.bincount(bag, rng.poisson(hours * rate), minlength=200)
    events.to_parquet(tmp_path / "e.parquet")
    pd.DataFrame({"bag": range(200), "sales": totals}).to_parquet(tmp_path / "r.parquet")
    files, model = [tmp_path / "e.parquet", tmp_path / "r.parquet"], tmp_path / "m.unbag"
    words = ["--on", "bag", "--total", "sales"]
    run("train", *files, *words, "--kind", "total", "--exposure", "hours", *QUICK, "--out", model)
    run("predict", model, files[0], "--out", tmp_path / "p.parquet")
    count = pd.read_parquet(tmp_path / "p.parquet")["count"].to_numpy()
    events.assign(hours=2 * hours).to_parquet(tmp_path / "twice.parquet")
    run("predict", model, tmp_path / "twice.parquet", "--out", tmp_path / "q.parquet")
    # twice the exposure, twice the count, exactly; and the rates are the true ones
    np.testing.assert_allclose(
        pd.read_parquet(tmp_path / "q.parquet")["count"], 2 * count, rtol=1e-5
    )
    assert np.corrcoef(np.log(count / hours), np.log(rate))[0, 1] > 0.95
    run("evaluate", model, *files, *words, "--json", code=1)  # it learned from all bags
    from_disk = [*files, *words, "--kind", "total", "--exposure", "hours", "--memory", "1MB"]
    run("train", *from_disk, "--out", tmp_path / "d.unbag")
    run("predict", tmp_path / "d.unbag", files[0], "--out", tmp_path / "d.parquet")
    again = pd.read_parquet(tmp_path / "d.parquet")["count"]
    np.testing.assert_allclose(np.log(again), np.log(count), atol=0.1)
    events.assign(hours=0).to_parquet(tmp_path / "never.parquet")
    refused = run("predict", model, tmp_path / "never.parquet", code=1).stderr
    assert "An exposure must be finite and positive" in refused


def test_labels_of_some_events_are_learned_from_beside_the_bags(tmp_path):
    events, reports, score = clicks(tmp_path, by="chance", n=600)
    rng = np.random.default_rng(1)
    known = pd.read_csv(events).assign(sold=(rng.random(600) < 1 / (1 + np.exp(-score))) + 0)
    known.to_csv(tmp_path / "k.csv", index=False)
    model = tmp_path / "m.unbag"
    words = [events, reports, *WORDS, *QUICK, "--out", model, "--labels", tmp_path / "k.csv"]
    said = run("train", *words, "--label", "sold").stderr
    assert re.search(r"learned from \d+ bags and 600 labelled events: ", said)
    assert "The labelled rows look like the others in every column." in said
    assert np.corrcoef(predicted(tmp_path, model, events), score)[0, 1] > 0.9
    refused = run("train", *words, "--force", code=1).stderr
    assert "Name the column with --label" in refused


def test_bags_by_campaign_and_day_are_learned_from_and_judged_by_their_likelihood(tmp_path):
    events, reports, _ = clicks(tmp_path, by="campaign x day")
    model = tmp_path / "m.unbag"
    trained = run("train", events, reports, *WORDS, *QUICK, "--out", model)
    assert "warning: The bags are not random" in trained.stderr
    assert "Learning goes on" in trained.stderr
    assert "gain_over_prior" in trained.stdout
    assert "Judged by the likelihood of the counts" in trained.stdout
    assert "log_loss" not in trained.stdout
    later, counted, _ = clicks(tmp_path, by="campaign x day", seed=5)
    judged = run("evaluate", model, later, counted, *WORDS)
    assert "gain_over_prior" in judged.stdout
    assert "log_loss" not in judged.stdout  # it would be biased


def test_a_learner_that_is_not_known_is_refused(tmp_path):
    events, reports, _ = clicks(tmp_path, by="chance", n=200)
    words = [events, reports, *WORDS, "--learner", "forest", "--out", tmp_path / "m.unbag"]
    assert "A learner must be one of additive" in run("train", *words, code=1).stderr


NOTHING = "The reports tell nothing of the columns"
BAD = {
    "a constant column": (
        lambda e, r: e.assign(c="one"),
        "c         left out: it has one value only",
    ),
    "a column of one value for each row": (
        lambda e, r: e.assign(c=np.arange(len(e)) / 7),
        "learned from",
    ),
    "a separating column": (
        lambda e, r: e.assign(c=100.0 * (e.bag.map(r.set_index("bag").sales) > 2)),
        "learned from",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_columns_give_finite_predictions_and_words(tmp_path, case):
    events, reports, _ = clicks(tmp_path, by="chance", n=1000)
    change, words = BAD[case]
    change(pd.read_csv(events), pd.read_csv(reports)).to_csv(events, index=False)
    model = tmp_path / "m.unbag"
    said = run("train", events, reports, *WORDS, *QUICK, "--out", model).stderr
    assert words in said
    assert np.isfinite(predicted(tmp_path, model, events)).all()


def test_noise_too_large_to_learn_anything_gives_the_mean_and_says_so(tmp_path):
    events, reports, _ = clicks(tmp_path, by="chance", n=1000)
    noisy = pd.read_csv(reports)
    noisy["sales"] += np.random.default_rng(0).normal(0, 1e3, len(noisy))
    noisy.to_csv(reports, index=False)
    words = [events, reports, *WORDS, *QUICK, "--noise", 1e6, "--out", tmp_path / "m.unbag"]
    said = run("train", *words).stderr
    assert NOTHING in said
    assert "cannot tell whether the model is better" in said
    assert np.ptp(predicted(tmp_path, tmp_path / "m.unbag", events)) < 0.1


def test_one_network_at_another_level_gets_a_note(tmp_path, monkeypatch):
    monkeypatch.setattr("unbag.metrics._notes.OFF_LEVEL", 0.0)  # any difference is beyond doubt
    events, reports, _ = clicks(tmp_path, by="chance", n=600)
    model = tmp_path / "m.unbag"
    words = [*WORDS, "--method", "upm", "--epochs", 1, "--linear", "--test", 0]
    said = run("train", events, reports, *words, "--out", model).stderr
    run("predict", model, events, "--out", tmp_path / "s.csv")
    mean = pd.read_csv(tmp_path / "s.csv").probability.mean()
    assert f"note: The mean prediction, {mean:.4g}, is not the mean report" in said
