"""An ad-tech engineer has an export of clicks and noisy reports by bag, and a terminal."""

import json
import shlex

import numpy as np
import pandas as pd
import pytest

from cases.cli import run
from cases.clicks import clicks, reports_of

ON = ["--on", "bag", "--total", "conversions"]
OWN = ["--status-map", "ok=observed", "--status-map", "too few=suppressed_by_size"]
COLUMNS = [*ON, "--size", "clicks", "--id", "event_id", "--stratum", "campaign", "--time", "ts"]


def last_hint(said):
    """The command of a hint, as words for `run`."""
    command = said.rstrip().rpartition("hint: unbag ")[2]
    return shlex.split(command)


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """The files that lie on the desk: this week's tables and the next week's."""
    folder = tmp_path_factory.mktemp("desk")
    for name, seed in (("old", 0), ("new", 1)):
        events, truth, label = clicks(seed=seed)
        reports = reports_of(events, label, seed=seed)
        restated = reports.head(5).assign(conversions=0.0, made="2026-10-15")
        events.to_csv(folder / f"{name}-events.csv", index=False)
        pd.concat([restated, reports]).to_csv(folder / f"{name}-reports.csv", index=False)
        events.assign(truth=truth).to_csv(folder / f"{name}-truth.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def trained(desk):
    """The command that the engineer arrives at, and what it prints."""
    tables = [desk / "old-events.csv", desk / "old-reports.csv"]
    words = [*tables, *COLUMNS, "--epsilon", 1, "--as-of", "made", "--status", "state", *OWN]
    quick = ["--learner", "additive", "--folds", 3]
    return run("train", *words, *quick, "--out", desk / "m.unbag", "--page", desk / "page.html")


def test_check_leads_from_mistake_to_mistake_until_the_tables_are_usable(desk):
    events, reports = desk / "old-events.csv", desk / "old-reports.csv"
    swapped = run("check", reports, events, *ON, code=1).stderr
    words = last_hint(swapped)
    first = run(*words, code=3)
    assert "A bag must have one report" in first.stdout  # restated reports: all faults in one go
    assert "A report must be finite" in first.stdout
    assert "are used" not in first.stdout
    assert "--as-of COLUMN" in first.stderr
    words = [*words, "--as-of", "made", "--status", "state"]
    unknown = run(*words, code=3).stdout
    assert "suppressed_by_size where the bag was too small" in unknown
    noisy = run(*words, *OWN, code=3)
    assert "A count without noise must be a whole number" in noisy.stdout
    words = last_hint(noisy.stderr)
    assert words[-2:] == ["--epsilon", "1"]
    usable = run(*words, "--stratum", "campaign", "--id", "event_id")
    assert "The bags look random" in usable.stdout
    assert "5 reports were restated later, and the latest of each bag is used" in usable.stdout
    assert "  campaign  one of 12 values" in usable.stdout
    assert "left out: the event's id" in usable.stdout


def test_the_verdict_is_right_and_tells_the_next_command(desk, trained):
    said = trained.stderr
    assert "The model is better than always predicting the prior" in said
    strongest = said.partition("effect on the score): ")[2].split(".\n")[0]
    assert [part.split()[0] for part in strongest.split(", ")][:3] == ["age", "device", "campaign"]
    assert "The model is better than always" in (desk / "page.html").read_text()
    following = said.splitlines()[-2].split()
    assert following[:3] == ["unbag", "predict", str(desk / "m.unbag")]


@pytest.mark.usefixtures("trained")
def test_predictions_of_the_next_week_are_close_to_the_truth(desk):
    out = desk / "scores.parquet"
    words = ["predict", desk / "m.unbag", desk / "new-events.csv", "--id", "event_id"]
    run(*words, "--out", out)
    scores, truth = pd.read_parquet(out), pd.read_csv(desk / "new-truth.csv")
    assert scores.event_id.tolist() == truth.event_id.tolist()
    p, t = scores.probability.to_numpy(), truth.truth.to_numpy()
    excess = np.mean(t * np.log(t / p) + (1 - t) * np.log((1 - t) / (1 - p)))
    prior = np.mean(t * np.log(t / t.mean()) + (1 - t) * np.log((1 - t) / (1 - t.mean())))
    assert excess < 0.25 * prior  # three quarters of the way from the prior to the truth
    assert abs(p.mean() - t.mean()) < 0.02


@pytest.mark.usefixtures("trained")
def test_new_reports_judge_explain_and_correct_the_model(desk):
    tables = [desk / "new-events.csv", desk / "new-reports.csv"]
    words = [*tables, *COLUMNS, "--epsilon", 1, "--as-of", "made", "--status", "state", *OWN]
    judged = run("evaluate", desk / "m.unbag", *words, "--json")
    assert "better than always predicting the prior" in judged.stderr
    truth = pd.read_csv(desk / "new-truth.csv").truth
    estimate = json.loads(judged.stdout)["estimates"]["mean_report"]
    assert estimate["low"] - 0.02 < truth.mean() < estimate["high"] + 0.02
    run("recalibrate", desk / "m.unbag", *words, "--out", desk / "b.unbag")
    run("predict", desk / "b.unbag", desk / "new-events.csv", "--out", desk / "b.csv")
    assert abs(pd.read_csv(desk / "b.csv").probability.mean() - truth.mean()) < 0.02
    effects = run("explain", desk / "b.unbag", "--column", "device").stdout
    assert effects.index("desk ") < effects.index("phone ")
