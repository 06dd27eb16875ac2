"""Tables that are larger than memory: the model of parts on disk is that of the whole table."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from scipy import special
from typer.testing import CliRunner

import unbag
from unbag.cli import app
from unbag.learners import Additive, LocalParts, fit_files, fit_parts, narrow_part
from unbag.learners._files import bytes_of
from unbag.tables._sources import Table

ROWS, BAG = 6000, 12


@pytest.fixture(scope="module", autouse=True)
def small_parts():
    """Parts of a few hundred rows, so that these tables have several."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("unbag.learners._files.FEWEST_ROWS", 1)
        yield


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """A folder with events in no order, and noisy reports of which some are pending."""
    folder, rng = tmp_path_factory.mktemp("tables"), np.random.default_rng(0)
    code, x = rng.integers(0, 8, ROWS), rng.normal(size=ROWS)
    score = -1 + rng.normal(0, 0.8, 8)[code] + x
    y = rng.random(ROWS) < special.expit(score)
    bag = rng.permutation(ROWS) // BAG
    columns = {"bag": bag, "shop": [f"s{i}" for i in code], "x": x}
    events = pa.table(columns | {"event": [f"e{i}" for i in range(ROWS)]})
    total = np.bincount(bag, weights=y) + rng.laplace(0, 1, ROWS // BAG)
    reports = pa.table({"bag": np.arange(ROWS // BAG), "sales": total}).slice(5)
    pyarrow.parquet.write_table(events, folder / "events.parquet", row_group_size=500)
    pyarrow.csv.write_csv(reports, folder / "reports.csv")
    return folder


@pytest.fixture(scope="module")
def fitted(tables):
    return fit_files(
        tables / "events.parquet",
        tables / "reports.csv",
        on="bag",
        total="sales",
        noise=2.0,
        id="event",
        memory="3MB",
        folds=2,
    )


def test_the_model_of_parts_on_disk_is_that_of_joined_bags(tables, fitted):
    files = (tables / "events.parquet", tables / "reports.csv")
    bags = unbag.join(*files, on="bag", total="sales", noise=2.0, id="event")
    model = fitted.fitted.models["additive"]
    joined = unbag.Bags(bags.bag, bags.report, X=bags.table, noise=bags.noise, status=bags.status)
    whole = fit_parts(LocalParts([narrow_part(joined, model.terms)]), model.terms, "binary")
    np.testing.assert_allclose(model.scores(bags.table), whole.scores(bags.table), atol=1e-5)
    assert model.log_evidence == pytest.approx(Additive().fit(joined).log_evidence, abs=0.3)
    assert fitted.summary == bags.summary


def test_folds_judge_it_by_bags_that_had_no_part_in_it(fitted):
    model = fitted.fitted
    assert model.gain.low > 0
    assert model.evaluation.bags == ROWS // BAG - 5
    assert model.verdict.answer == "better"
    mean = special.expit(model.combination.prior)
    assert mean == pytest.approx(model.evaluation["mean_report"].value, rel=0.01)
    assert len(model.learned_) == ROWS // BAG - 5


@pytest.mark.filterwarnings("ignore::unbag.learners.DataWarning")
def test_random_bags_of_campaigns_are_judged_as_random_ones_of_their_campaign():
    """The models of two folds differ in the level of a campaign; that is no difference of bags."""
    rng = np.random.default_rng(1)
    bag = np.repeat(np.arange(120), 50)
    campaign, x = bag % 20, rng.normal(size=6000)
    y = rng.random(6000) < special.expit(rng.normal(size=20)[campaign] + x - 1)
    names = [f"c{i}" for i in campaign]
    events = pa.table({"bag": bag, "campaign": names, "x": x})
    reports = pa.table({"bag": np.arange(120), "sales": np.bincount(bag, y).astype(int)})
    how = {"on": "bag", "total": "sales", "stratum": "campaign", "features": ["campaign", "x"]}
    evaluation = fit_files(events, reports, memory="6MB", **how).fitted.evaluation
    assert "log_loss" in evaluation.estimates
    assert len(evaluation.strata) == 20
    assert not evaluation.notes  # as of strata with two reports, which two parts would make


def test_train_with_a_limit_of_the_memory_writes_the_same_model(tables, fitted, tmp_path):
    files, model = [str(tables / "events.parquet"), str(tables / "reports.csv")], tmp_path / "m"
    words = ["train", *files, "--on", "bag", "--total", "sales", "--noise", "2", "--id", "event"]
    words += ["--memory", "3MB", "--folds", "2", "--out", str(model)]
    result = CliRunner().invoke(app, [*words, "--page", str(tmp_path / "p.html"), "--json"])
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["bags"] == ROWS // BAG - 5
    assert (tmp_path / "p.html").exists()
    out = tmp_path / "scores.csv"
    words = ["predict", str(model), files[0], "--id", "event", "--out", str(out)]
    assert CliRunner().invoke(app, words).exit_code == 0
    events = pyarrow.parquet.read_table(files[0])
    expected = fitted.fitted.predict(fitted.plan.columns_of(events))
    printed = pyarrow.csv.read_csv(out)["probability"].to_numpy()
    np.testing.assert_allclose(printed, expected, rtol=1e-6)


@pytest.mark.parametrize(
    "more, message",
    [
        (["--learner", "trees"], "must learn alone: trees given. Leave it out, or --memory"),
        (["--test", "0.2"], "must learn alone: test given"),
        (["--memory", "10KB"], "A memory must be at least 1MB: 10KB given"),
        (["--memory", "lots"], "with one of KB, MB, GB, TB: 'lots' given"),
    ],
)
def test_what_parts_on_disk_cannot_do_is_refused(tables, tmp_path, more, message):
    files = [str(tables / "events.parquet"), str(tables / "reports.csv")]
    words = ["train", *files, "--on", "bag", "--total", "sales", "--out", str(tmp_path / "m")]
    memory = [] if "--memory" in more else ["--memory", "1GB"]
    result = CliRunner().invoke(app, [*words, *memory, *more])
    assert result.exit_code == 1
    assert message in result.stderr


def test_a_size_of_memory_is_a_number_with_a_unit():
    assert bytes_of("64KB") == 2**16
    assert bytes_of("2 GiB") == 2**31
    with pytest.raises(unbag.Refused, match="must be a number with one of KB, MB, GB, TB"):
        bytes_of("-1GB")


def test_train_in_memory_reads_the_events_twice_and_the_reports_once(tables, tmp_path, monkeypatch):
    files, batches = [], Table.batches

    def counted(self, *columns, **how):
        if not isinstance(self.source, pa.Table):
            files.append(self.thing)
        return batches(self, *columns, **how)

    monkeypatch.setattr(Table, "batches", counted)
    names = [str(tables / "events.parquet"), str(tables / "reports.csv"), "--on", "bag"]
    more = ["--total", "sales", "--noise", "2", "--learner", "additive", "--folds", "2"]
    result = CliRunner().invoke(app, ["train", *names, *more, "--out", str(tmp_path / "m")])
    assert result.exit_code == 0, result.stderr
    assert sorted(files) == ["events", "events", "reports"]


LIMITED = """
import resource, sys
import numpy as np
from unbag.learners import fit_files
import unbag, pyarrow.dataset, duckdb, unbag.estimators
events, reports = sys.argv[1:]
how = dict(on="bag", total="sales", noise=2.0, id="event")
fit_files(events, reports, memory="1GB", folds=1, **how)  # loads what is loaded late
own = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (own + 300 * 2**20,) * 2)
big, totals = events.replace("events", "big"), reports.replace("reports", "totals")
model = fit_files(big, totals, memory="64MB", folds=1, on="bag", total="sales").fitted
print("learned", len(model.learned_))
bags = unbag.join(big, totals, on="bag", total="sales", plan=unbag.plan_features(big, one_hot=4096))
print("learned", len(unbag.fit(bags, learner="additive", folds=2).learned_))
try:
    bags.X
except MemoryError:
    print("too large as a matrix")
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux")
def test_a_table_whose_matrix_does_not_fit_into_the_address_space_is_learned(tables):
    """One-hot, 150,000 rows of 600 levels are 360 MB; the limit leaves 300."""
    rng, rows = np.random.default_rng(0), 150_000
    level, bag = rng.integers(0, 600, rows), np.arange(rows) // 300
    text = pa.DictionaryArray.from_arrays(level.astype(np.int32), [f"s{i}" for i in range(600)])
    events = pa.table({"bag": bag, "shop": text.cast(pa.string()), "x": rng.normal(size=rows)})
    pyarrow.parquet.write_table(events, tables / "big.parquet", row_group_size=20_000)
    total = np.bincount(bag, weights=rng.random(rows) < 0.3)
    pyarrow.csv.write_csv(
        pa.table({"bag": np.arange(len(total)), "sales": total}), tables / "totals.csv"
    )
    words = [sys.executable, "-c", LIMITED, tables / "events.parquet", tables / "reports.csv"]
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines() == ["learned 500"] * 2 + ["too large as a matrix"]


def test_logits_that_lie_between_0_and_1_in_one_part_stay_logits(tmp_path):
    rng, n = np.random.default_rng(0), 2000
    bag = np.repeat(np.arange(100), 20)
    old = np.where(bag < 75, rng.uniform(0.2, 0.8, n), rng.normal(0, 2, n))
    sold = rng.random(n) < 1 / (1 + np.exp(-old))
    events = pd.DataFrame({"bag": bag, "x": rng.normal(size=n), "old": old})
    reports = pd.DataFrame({"bag": range(100), "sales": np.bincount(bag, sold)})
    how = {"on": "bag", "total": "sales", "score": "old", "features": ["x"], "folds": 2}
    many, one = (fit_files(events, reports, memory=m, **how) for m in ("150KB", "1GB"))
    assert not many.old_score.probability
    np.testing.assert_allclose(many.fitted.scores(events[["x"]].head()),
                               one.fitted.scores(events[["x"]].head()), atol=0.02)  # fmt: skip


def test_a_part_of_one_bag_does_not_make_all_bags_look_chosen():
    rng, bags = np.random.default_rng(2), 101
    bag = np.repeat(np.arange(bags), 30)
    events = pd.DataFrame({"bag": bag, "a": rng.normal(size=len(bag))})
    sold = rng.random(len(bag)) < 1 / (1 + np.exp(-events.a))
    reports = pd.DataFrame({"bag": range(bags), "sales": np.bincount(bag, sold)})
    how = {"on": "bag", "total": "sales", "memory": "100KB", "folds": 2}
    evaluation = fit_files(events, reports, **how).fitted.evaluation
    assert "log_loss" in evaluation.estimates  # and not the likelihood of the counts alone
