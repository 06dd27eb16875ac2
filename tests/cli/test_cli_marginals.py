"""Marginal tables in the command line: check, train, and which table to ask for next."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from scipy import special
from typer.testing import CliRunner

import unbag
from cases.cli import run
from unbag.cli import app
from unbag.learners import Additive, identifiable, rank_tables


@pytest.fixture
def events(tmp_path):
    rng = np.random.default_rng(0)
    codes = {"shop": 6, "day": 5, "age": 4}
    table = {name: [f"{name} {i}" for i in rng.integers(0, n, 2000)] for name, n in codes.items()}
    path = tmp_path / "events.parquet"
    pyarrow.parquet.write_table(pa.table(table), path)
    return path


def test_tables_are_ranked_as_in_python(events):
    words = ["plan", "--rate", "0.1", "--noise", "2", "--marginals", str(events)]
    words += ["--table", "shop,day", "--table", "age", "--given", "shop"]
    result = CliRunner().invoke(app, [*words, "--json"])
    assert result.exit_code == 0, result.output
    expected = rank_tables(
        events, [("shop", "day"), "age"], rate=0.1, noise=2, given=["shop"], given_noise=2
    )
    printed = json.loads(result.stdout)["tables"]
    assert [one["name"] for one in printed] == [one.name for one in expected]
    np.testing.assert_allclose(
        [one["reduction"] for one in printed], [one.reduction for one in expected], rtol=1e-4
    )
    text = CliRunner().invoke(app, words).stdout
    assert "variance less" in text
    assert "by_shop_day" in text


def test_a_candidate_may_have_its_own_noise(events):
    words = ["plan", "--rate", "0.1", "--noise", "2", "--marginals", str(events)]
    result = CliRunner().invoke(app, [*words, "--table", "age:50", "--table", "shop", "--json"])
    noise = {one["name"]: one["noise"] for one in json.loads(result.stdout)["tables"]}
    assert noise == {"by_age": 50, "by_shop": 2}


def test_candidates_and_their_keys_must_be_there(events):
    words = ["plan", "--rate", "0.1", "--marginals", str(events)]
    result = CliRunner().invoke(app, words)
    assert result.exit_code != 0
    assert "--table" in result.stderr
    result = CliRunner().invoke(app, [*words, "--table", "shopp"])
    assert result.exit_code != 0
    assert "Did you mean 'shop'" in result.stderr


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A folder with events and noisy tables of sales by shop and day, and by age."""
    folder, rng = tmp_path_factory.mktemp("shop"), np.random.default_rng(0)
    codes = {name: rng.integers(0, n, 5000) for name, n in {"shop": 6, "day": 5, "age": 4}.items()}
    score = -1 + sum(rng.normal(0, 0.7, 6)[code] for code in codes.values())
    sales = rng.random(5000) < 1 / (1 + np.exp(-score))
    table = pa.table({name: [f"{name} {i}" for i in code] for name, code in codes.items()})
    events = table.append_column("event", pa.array([f"e{i}" for i in range(5000)]))
    pyarrow.parquet.write_table(events, folder / "events.parquet")
    for keys in (["shop", "day"], ["age"]):
        counted = table.append_column("sales", pa.array(sales.astype(float)))
        counted = counted.group_by(keys).aggregate([("sales", "sum")])
        noisy = np.asarray(counted["sales_sum"]) + rng.laplace(0, 1, counted.num_rows)
        counted = counted.select(keys).append_column("sales", pa.array(noisy))
        pyarrow.csv.write_csv(counted, folder / f"by_{'_'.join(keys)}.csv")
    return folder


def tables_of(folder):
    named = [f"--marginal={folder / name}" for name in ("by_shop_day.csv", "by_age.csv")]
    return [str(folder / "events.parquet"), *named, "--total", "sales", "--id", "event"]


def test_train_learns_what_python_does_and_its_file_predicts(shop, tmp_path):
    model, page = tmp_path / "m.unbag", tmp_path / "page.html"
    words = ["train", *tables_of(shop), "--noise", "2", "--out", str(model), "--page", str(page)]
    result = CliRunner().invoke(app, [*words, "--json"])
    assert result.exit_code == 0, result.stderr
    assert "5,000 events in 34 cells of 2 tables" in result.stderr
    assert "better than always predicting the prior" in result.stderr
    assert json.loads(result.stdout)["source"] == "cells"
    events = pyarrow.parquet.read_table(shop / "events.parquet")
    files = [shop / "by_shop_day.csv", shop / "by_age.csv"]
    cells = unbag.join_marginals(events, files, total="sales", noise=2, id="event")
    expected = Additive().fit(cells)
    scores = tmp_path / "scores.parquet"
    words = ["predict", str(model), str(shop / "events.parquet"), "--out", str(scores)]
    assert CliRunner().invoke(app, words).exit_code == 0
    predicted = pyarrow.parquet.read_table(scores)["probability"].to_numpy()
    np.testing.assert_allclose(predicted, special.expit(expected.scores(cells.X)), rtol=1e-6)
    text = page.read_text()
    for words in ("What can these tables tell?", "34 cells", "Gain over the prior"):
        assert words in text


def test_check_says_what_the_tables_can_tell(shop):
    result = CliRunner().invoke(app, ["check", *tables_of(shop), "--noise", "2,2", "--json"])
    assert result.exit_code == 0, result.stderr
    told = json.loads(result.stdout)
    assert told["tables"] == {"by_shop_day": 30, "by_age": 4}
    events, named = str(shop / "events.parquet"), ["shop", "day", "age"]
    files = [shop / "by_shop_day.csv", shop / "by_age.csv"]
    cells = unbag.join_marginals(events, files, total="sales", noise=2, features=named)
    expected = {one.column: one.width for one in identifiable(cells)}
    assert {one["column"]: one["width"] for one in told["columns"]} == pytest.approx(expected)


def test_check_names_columns_that_tables_hardly_tell(shop):
    words = ["check", str(shop / "events.parquet"), "--marginal", str(shop / "by_age.csv")]
    result = CliRunner().invoke(app, [*words, "--total", "sales", "--noise", "2", "--id", "event"])
    assert "These tables hardly tell: shop, day" in result.stdout.replace("day, shop", "shop, day")


def test_check_lists_contradictions_and_ends_with_3(shop, tmp_path):
    other = tmp_path / "by_age.csv"
    other.write_text((shop / "by_age.csv").read_text().replace('age 0",', 'age 0",9'))
    words = ["check", str(shop / "events.parquet"), "--marginal", str(other)]
    words += ["--marginal", str(shop / "by_shop_day.csv"), "--total", "sales", "--noise", "2"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 3
    assert "refused: Tables that count the same events must have the same sums" in result.stdout
    assert "--noise" in result.stdout
    result = CliRunner().invoke(app, [*words, "--json"])
    assert not json.loads(result.stdout)["usable"]


@pytest.mark.parametrize(
    "more, message",
    [
        (["--on", "shop"], "--on given too"),
        (["--test", "0.2"], "Leave out --test"),
        (["--noise", "2", "--learner", "trees"], "must be learned by the additive model"),
        (["--noise", "variance"], "'variance' is not in the by_shop_day"),
    ],
)
def test_options_of_bags_are_refused_with_marginal_tables(shop, tmp_path, more, message):
    words = ["train", *tables_of(shop), "--out", str(tmp_path / "m.unbag"), *more]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 1
    assert message in result.stderr


def test_without_marginal_tables_the_reports_are_missing(shop):
    result = CliRunner().invoke(app, ["check", str(shop / "events.parquet"), "--total", "sales"])
    assert result.exit_code == 2
    assert "reports" in result.stderr


@pytest.mark.parametrize("verb", ["check", "train"])
def test_the_hint_of_an_error_shows_a_command_with_marginal_tables(tmp_path, verb):
    (tmp_path / "e.csv").write_text("x\n1\n2\n")
    more = ["--out", tmp_path / "m"] if verb == "train" else []
    words = [tmp_path / "e.csv", "--marginal", tmp_path / "none.csv", "--total", "n"]
    said = run(verb, *words, *more, code=1).stderr
    assert f"hint: a command that works looks like: unbag {verb} events.parquet --marginal" in said


def test_the_next_command_follows_the_verdict(tmp_path):
    rng = np.random.default_rng(0)
    events = pd.DataFrame({"shop": rng.integers(40, size=4000), "event": np.arange(4000)})
    events["shop"] = "s" + events["shop"].astype(str)
    effect = np.linspace(-2, 2, 40)[events.shop.str[1:].astype(int)]
    sold = rng.random(4000) < 1 / (1 + np.exp(-effect))
    events.to_csv(tmp_path / "e.csv", index=False)
    events.assign(sales=sold).groupby("shop")["sales"].sum().to_csv(tmp_path / "by_shop.csv")
    words = ["--marginal", tmp_path / "by_shop.csv", "--total", "sales", "--id", "event"]
    said = run("train", tmp_path / "e.csv", *words, "--out", tmp_path / "m.unbag").stderr
    assert "\n  unbag " in said.split("Next: ")[1]


@pytest.mark.parametrize("keys", [["shop"], ["shop", "day"]])
def test_a_table_that_was_learned_from_as_cells_does_not_judge_as_bags(tmp_path, keys):
    rng = np.random.default_rng(0)
    shop, day = rng.integers(12, size=2000), rng.integers(3, size=2000)
    events = pd.DataFrame({"shop": [f"s, {s}" for s in shop], "day": [f"d{d}" for d in day]})
    sold = rng.random(2000) < 1 / (1 + np.exp(-np.linspace(-2, 2, 12)[shop]))
    events.assign(id=np.arange(2000)).to_csv(tmp_path / "e.csv", index=False)
    table = tmp_path / "sums.csv"
    events.assign(sales=sold).groupby(keys)["sales"].sum().reset_index().to_csv(table, index=False)
    model, words = tmp_path / "m.unbag", ["--total", "sales", "--id", "id"]
    run("train", tmp_path / "e.csv", "--marginal", table, *words, "--out", model)
    on = [word for key in keys for word in ("--on", key)]
    said = run("evaluate", model, tmp_path / "e.csv", table, *on, *words, code=1).stderr
    assert "it learned from all" in said


def test_a_ranking_tells_what_it_leaves_out_without_a_line_of_code(tmp_path):
    rng = np.random.default_rng(0)
    events = pd.DataFrame({"id": [f"e{i}" for i in range(400)], "shop": rng.integers(4, size=400)})
    events.assign(shop="s" + events["shop"].astype(str)).to_csv(tmp_path / "e.csv", index=False)
    words = ["plan", "--marginals", tmp_path / "e.csv", "--table", "shop", "--rate", 0.3]
    said = run(*words).stderr
    assert said.startswith("warning: Left out of the model: 'id'")
    assert "DataWarning" not in said
