"""Tables of every kind become the same bags; what is wrong with them is told or refused, each in
its words."""

import atexit
import datetime
import gzip
import math
import shutil
from hashlib import md5

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import unbag
from cases.tables import DAY, FOLDER, LATIN, TWO, as_csv, as_parquet, told
from unbag import models, plan_features, train
from unbag.metrics import Evaluator
from unbag.tables import (
    Column,
    Columns,
    FeaturePlan,
    as_moments,
    buckets_of,
    check_tables,
    join,
    levels_of,
    narrow,
    open_table,
    report_rows,
)
from unbag.tables._infer import Survey
from unbag.tables._values import as_moment, as_text

atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)

EVENTS = pa.table(
    {
        "id": ["e1", "e2", "e3", "e4", "e5", "e6"],
        "bag": ["b", "a", "b", "c", "a", "b"],
        "age": [20.0, 30.0, None, 50.0, 30.0, 20.0],
        "clicks": [1, 2, 3, 4, 5, 6],
        "device": ["phone", "tablet", "phone", None, "phone", "tablet"],
        "new": [True, False, True, True, None, False],
        "day": pa.array([DAY(2026, 1, d) for d in (5, 6, 7, 8, 9, 10)]),
        "market": ["de"] * 6,
    }
)
REPORTS = pa.table({"bag": ["a", "b", "d"], "sales": [1, 2, 5], "n": [2, 3, 9]})
NEED = {"on": "bag", "total": "sales", "id": "id"}


def relation(table):
    connection = duckdb.connect()
    connection.register("t", table)
    return connection.sql("select * from t")


def as_folder(table):
    folder = FOLDER / f"folder-{table.num_rows}-{len(table.column_names)}"
    folder.mkdir(exist_ok=True)
    for i in range(2):
        pq.write_table(table.slice(3 * i, 3), folder / f"part{i}.parquet")
    (folder / "_SUCCESS").write_text("")
    return folder


KINDS = {
    "arrow": lambda t: t,
    "pandas": lambda t: t.to_pandas(),
    "pandas with an index": lambda t: t.to_pandas().set_index(np.arange(t.num_rows) + 7),
    "polars": pl.from_arrow,
    "polars categories": lambda t: pl.from_arrow(t).with_columns(
        pl.col("bag").cast(pl.Categorical)
    ),
    "polars lazily": lambda t: pl.from_arrow(t).lazy(),
    "duckdb": relation,
    "parquet": as_parquet,
    "parquet as text": lambda t: str(as_parquet(t)),
    "parquet folder": as_folder,
    "csv": as_csv,
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_table_makes_the_same_bags(kind):
    bags = join(KINDS[kind](EVENTS), KINDS[kind](REPORTS), **NEED)
    assert bags.names.tolist() == ["a", "b", "c"]
    assert bags.bag.tolist() == [1, 0, 1, 2, 0, 1]
    assert bags.rows.tolist() == [0, 1, 2, 3, 4, 5]
    np.testing.assert_allclose(bags.report, [1 / 2, 2 / 3, np.nan])
    assert bags.status.tolist() == ["observed", "observed", "pending"]
    names = (
        "age",
        "age missing",
        "clicks",
        "device=phone",
        "device=tablet",
        "device missing",
        "new",
        "new missing",
    )
    assert bags.plan.names == (*names, "day weekday sin", "day weekday cos")
    clicks = (np.arange(1, 7) - 3.5) / np.sqrt(35 / 12)
    angle = (
        2 * np.pi * np.array([4, 5, 6, 0, 1, 2]) / 7
    )  # from Thursday, as 1970 began; 2026-01-05 is a Monday
    age = np.array([-10, 0, 0, 20, 0, -10]) / np.sqrt(600 / 5)
    expected = [
        age, [0, 0, 1, 0, 0, 0], clicks, [1, 0, 1, 0, 1, 0], [0, 1, 0, 0, 0, 1], [0, 0, 0, 1, 0, 0],
        [1, 0, 1, 1, 0, 0], [0, 0, 0, 0, 1, 0], np.sin(angle), np.cos(angle),
    ]  # fmt: skip
    np.testing.assert_allclose(bags.X, np.column_stack(expected), atol=1e-6)
    assert bags.X.dtype == np.float32
    assert bags.summary.left_out == (
        "1 report of bags without events was left out: d.",
        "1 bag has no report and waits for it (pending): c.",
    )
    assert bags.summary[:5] == (6, 3, 3, 2, 6)


def test_joined_bags_are_bags_in_every_part():
    events = pa.table({"bag": np.repeat(np.arange(12), 2), "x": np.arange(24.0)})
    bags = join(
        events, pa.table({"bag": np.arange(12), "sales": [1] * 12}), on="bag", total="sales"
    )
    part, rest = bags.split(0.5, seed=0)
    assert part.plan is bags.plan
    assert rest.summary is bags.summary
    np.testing.assert_allclose(part.X, bags.plan.apply(events)[part.rows])
    assert bags.names.dtype.kind == "i"


def test_sums_of_sums_are_sums(monkeypatch):
    """Bags are counted in parts; that the parts are summed up often changes nothing."""
    monkeypatch.setattr("unbag.tables._match.FOLD", 1)
    bags = join(as_parquet(EVENTS), REPORTS, **NEED, size="n", stratum="market")
    assert bags.size.tolist() == [2, 3, 1]


def test_totals_class_counts_and_proportions_are_reports():
    events = pa.table({"bag": ["a", "a", "b", "b"]})
    by = lambda reports, **columns: join(
        events, pa.table({"bag": ["b", "a"], **reports}), on="bag", **columns
    )
    assert by({"n": [1, 2]}, total="n").report.tolist() == [1, 0.5]
    assert by({"n": [1, 5]}, total="n", kind="total").report.tolist() == [2.5, 0.5]
    assert by({"p": [0.5, 1]}, proportion="p").report.tolist() == [1, 0.5]
    classes = by({"no": [1, 0], "yes": [1, 2]}, counts=["no", "yes"])
    assert classes.report.tolist() == [[0, 1], [0.5, 0.5]]
    assert classes.kind == "histogram"
    assert by({"n": [1, 2]}, total="n").X is None


def test_noise_status_and_strata_come_from_columns():
    events = pa.table({"bag": ["a", "a", "b", "c"], "place": ["x", "x", "y", "x"]})
    status = [None, "suppressed_by_size", "observed"]
    reports = pa.table(
        {"bag": ["a", "b", "c"], "n": [3.5, None, -0.5], "v": [2.0, None, 1.0], "s": status}
    )
    bags = join(events, reports, on="bag", total="n", noise="v", status="s", stratum="place")
    np.testing.assert_allclose(bags.noise, [2, np.nan, 1])
    assert bags.report[0] == 1.75
    assert bags.status.tolist() == ["observed", "suppressed_by_size", "observed"]
    assert bags.stratum.tolist() == [0, 1, 0]
    assert bags.summary.left_out == (
        "1 report is suppressed or pending and not used: b is suppressed_by_size.",
    )
    same = join(events, reports.slice(0, 1), on="bag", total="n", noise=2)
    assert same.noise[0] == 2


def test_pieces_of_several_tables_do_not_mix_their_strata():
    """In each piece the strata are numbered anew; an evaluation in pieces must tell them apart by
    name."""
    x, sales = np.random.default_rng(0).normal(size=96), [0, 1, 3, 2] * 6
    market = np.repeat(["brand", "shop", "away", "brand"], 6)
    events = pa.table({"bag": np.repeat(np.arange(24), 4), "x": x, "market": np.repeat(market, 4)})
    said = {
        "on": "bag",
        "total": "sales",
        "stratum": "market",
        "plan": plan_features(events, features=["x"]),
    }
    reports = pa.table({"bag": np.arange(24), "sales": sales})
    whole, *pieces = (
        join(part, reports, **said) for part in (events, events.slice(0, 48), events.slice(48))
    )
    assert [part.stratum_names.tolist() for part in pieces] == [
        ["brand", "shop"],
        ["away", "brand"],
    ]
    collected = Evaluator()
    for part in pieces:
        collected.update(part.X[:, 0], part)
    expected = unbag.evaluate(whole.X[:, 0], whole)["log_loss"].value
    assert collected.compute()["log_loss"].value == pytest.approx(expected)
    assert join(events, reports, on="bag", total="sales").stratum_names is None


def test_the_latest_report_before_the_cut_is_used():
    events = pa.table({"bag": ["a", "b", "b", "c"], "when": [1, 2, 2, 9]})
    reports = pa.table({"bag": ["b", "b", "b", "a"], "n": [0, 1, 2, 1], "made": [3, 4, 6, 7]})
    columns = {"on": "bag", "total": "n", "as_of": "made", "time": "when"}
    assert join(events, reports, **columns).report.tolist()[:2] == [1, 1]
    bags = join(events, reports, **columns, cut=5)
    assert bags.names.tolist() == ["a", "b"]
    assert bags.status.tolist() == ["pending", "observed"]
    assert bags.report[1] == 0.5
    assert bags.dropped == 1
    assert bags.summary.left_out == (
        "2 reports were made after the cut and are left out: a and 1 more.",
        "1 report was restated later, and the latest is used: b.",
        "1 bag has events after the cut and was left out: c.",
        "1 bag has no report and waits for it (pending): a.",
    )


def test_a_cut_may_be_a_date_or_a_moment_in_any_form():
    made = pa.array([datetime.datetime(2026, 1, 1, 5), datetime.datetime(2026, 1, 2, 5)])
    events = pa.table({"bag": ["a", "b"]})
    cuts = (
        "2026-01-02",
        DAY(2026, 1, 2),
        np.datetime64("2026-01-01T06:00"),
        datetime.datetime(2026, 1, 1, 6),
    )
    text = pa.array(["2026-01-01 05:00", "2026-01-02 05:00"])
    zone = pa.array(["2026-01-01T06:00:00+01:00", "2026-01-02T05:00:00Z"])
    for cut in cuts:
        for times in (made, text, zone, made.cast(pa.timestamp("ns", "Europe/Berlin"))):
            reports = pa.table({"bag": ["a", "b"], "n": [1, 1], "made": times})
            bags = join(events, reports, on="bag", total="n", as_of="made", cut=cut)
            assert bags.observed.tolist() == [True, False]


def test_a_cut_leaves_out_its_own_moment_and_a_date_is_its_midnight():
    """A backtest as of a day must see nothing of that day."""
    events = pa.table(
        {
            "bag": ["a", "b", "c"],
            "day": [DAY(2026, 11, d) for d in (14, 15, 16)],
            "hour": [1.0, 2, 3],
        }
    )
    reports = pa.table(
        {"bag": ["a", "b"], "n": [1, 0], "made": [DAY(2026, 11, 15), DAY(2026, 11, 16)]}
    )
    for columns in (
        {"time": "day", "as_of": "made", "cut": "2026-11-16"},
        {"time": "hour", "cut": 3},
    ):
        bags = join(events, reports, on="bag", total="n", **columns)
        assert bags.names.tolist() == ["a", "b"]
        assert bags.observed.tolist() == [True, "as_of" not in columns]


def test_without_a_cut_nothing_is_late():
    """Also no event whose time is missing or infinite."""
    events = pa.table({"bag": ["a", "b"], "when": [None, np.inf]})
    reports = pa.table({"bag": ["a", "b"], "n": [1, 0], "made": [1.0, np.inf]})
    assert join(
        events, reports, on="bag", total="n", time="when", as_of="made"
    ).observed.tolist() == [True, True]


def test_bags_of_wrong_size_are_left_out_on_request():
    bags = join(
        EVENTS, REPORTS.set_column(2, "n", [[2, 4, 9]]), **NEED, size="n", wrong_sizes="leave_out"
    )
    assert bags.names.tolist() == ["a", "c"]
    assert bags.rows.tolist() == [1, 3, 4]
    assert "1 bag has another size than was reported and was left out: b." in bags.summary.left_out
    np.testing.assert_allclose(bags.X, join(EVENTS, REPORTS, **NEED).X[[1, 3, 4]])


def test_ids_are_the_same_in_any_form():
    """Days as dates, moments or text; 007 in CSV files stays 007; numbers in CSV files meet numbers
    elsewhere."""
    reports = pa.table({"bag": ["2026-01-05", "2026-01-06"], "n": [1, 0]})
    day = pa.array([DAY(2026, 1, 5), DAY(2026, 1, 6)])
    for days in (day, day.cast(pa.timestamp("ns")), day.cast(pa.timestamp("s"))):
        assert join(pa.table({"bag": days}), reports, on="bag", total="n").report.tolist() == [1, 0]
    zeros = pa.table({"bag": ["007", "7"], "n": [1, 0]})
    events = as_csv(pa.table({"bag": ["007", "7"]}), "zeros", text=b"bag\n007\n7\n")
    assert join(events, zeros, on="bag", total="n").report.tolist() == [1, 0]
    numbers = pa.table({"bag": [7, 70], "n": [1, 0]})
    events = as_csv(pa.table({"bag": ["7", "70"]}), "numbers", text=b"bag\n7\n70\n")
    assert join(events, numbers, on="bag", total="n").report.tolist() == [1, 0]
    moments = pa.array([datetime.datetime(2026, 1, 5, 6, 30, 0, 500)])
    assert as_text(moments).to_pylist() == ["2026-01-05 06:30:00.000500"]
    assert as_moment(datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)) == 0


def test_hashes_of_64_bits_are_ids():
    bag = pa.array([2**64 - 1, 5], pa.uint64())
    bags = join(pa.table({"bag": bag}), pa.table({"bag": bag, "n": [1, 0]}), on="bag", total="n")
    assert dict(zip(bags.names.tolist(), bags.report.tolist(), strict=True)) == {
        str(2**64 - 1): 1,
        "5": 0,
    }


def test_csv_files_with_other_separators_and_compression_are_read():
    text = b"bag;x\na;1\nb;2\n"
    (FOLDER / "semi.csv.gz").write_bytes(gzip.compress(text))
    (FOLDER / "semi.csv").write_bytes(text.replace(b";", b"\t"))
    for name in ("semi.csv.gz", "semi.csv"):
        table = open_table(FOLDER / name)
        assert table.schema.names == ["bag", "x"]
        assert table.read(["x"])["x"].to_pylist() == [1, 2]


def test_only_empty_text_is_missing():
    path = as_csv(EVENTS, "na", text=b"shop,n\nNA,NA\nus,3\n,4\n")
    table = open_table(path).read(["shop", "n"])
    assert as_text(table["shop"]).to_pylist() == ["NA", "us", None]
    assert table["n"].to_pylist() == [None, 3, 4]


def test_folders_named_by_column_have_that_column():
    folder = FOLDER / "hive"
    for day in (1, 2):
        (folder / f"day={day}").mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"x": [day, 5]}), folder / f"day={day}" / "part.parquet")
    bags = join(folder, pa.table({"day": [1, 2], "n": [1, 0]}), on="day", total="n")
    assert bags.bag.tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize(
    "leftover", ["_temporary/0/task_1", "_delta_log", ".ipynb_checkpoints", "_day=1/.old"]
)
def test_leftovers_in_hidden_folders_are_no_events(tmp_path, leftover):
    for folder in ("_day=1", "_day=2/part", leftover):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"bag": ["a"]}), tmp_path / folder / "t.parquet")
    table = open_table(tmp_path)
    assert table.read(["bag"]).num_rows == 2
    assert table.schema.names == ["bag", "_day"]


def test_check_tables_tells_everything_at_once():
    events = pa.table(
        {
            "id": ["e", "e", "f", "f", "g"],
            "bag": ["a", "b", "a", "a", None],
            "s": ["x", "x", "y", "x", "x"],
        }
    )
    reports = pa.table({"bag": ["a", "a", "b", None], "n": [9, 9, 1, 0], "k": [4, 4, 1, 0]})
    told = check_tables(events, reports, on="bag", total="n", size="k", id="id", stratum="s")
    starts = ("A bag id must not", "A bag must lie", "Bags must not overlap", "An event must occur once",
              "A report must name", "A bag must have one", "A reported size", "A total must lie")  # fmt: skip
    assert not told.usable
    assert len(told.refused) == len(starts)
    assert all(
        refusal.rule.startswith(start) for refusal, start in zip(told.refused, starts, strict=True)
    )
    assert [refusal.count for refusal in told.refused] == [1, 1, 1, 1, 1, 1, 1, 1]
    assert str(told).count("refused: ") == 8
    assert str(told).startswith("5 events and 4 reports were read.\nrefused: ")


# ------------------------------------------------------------------------------------------------
# the plan


def many(rows=5000, *, seed=0):
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "x": pa.array(rng.normal(7, 3, rows), mask=rng.random(rows) < 0.1),
            "shop": pa.array(
                [f"s{i}" for i in rng.integers(0, 400, rows)], mask=rng.random(rows) < 0.05
            ),
            "kind": rng.choice(["u", "v", "w"], rows),
            "event": [f"id{i}" for i in range(rows)],
            "when": np.datetime64("2026-01-01T00:00:00")
            + rng.integers(0, 86400 * 500, rows).astype("timedelta64[s]"),
        }
    )


def with_ids(rows=70_000):
    """Ids in no order, amounts that repeat, and numbers that are no whole ones; more rows than a
    batch has."""
    rng = np.random.default_rng(0)
    ids, amount = rng.permutation(rows) + 10**15, rng.integers(0, 5000, rows)
    return pa.table({"event": ids, "amount": amount, "x": rng.normal(size=rows)})


@pytest.mark.parametrize("texts", [False, True])
def test_numbers_of_ids_and_amounts_kept_as_text_are_left_out_with_the_remedy(texts):
    numbers = np.arange(1000)
    column = {"click_id": numbers}
    if texts:
        column = {"price": [f"{1.37 * n:.3f}" for n in numbers]}
    table = pa.table({**column, "x": np.sin(numbers)})
    assert repr(plan_features(table)) == (
        f"FeaturePlan(1 number, 0 hashed; dropped: {next(iter(column))}, nearly every row has a "
        "different number, as ids do; if it is a quantity, plan it as numeric)"
    )
    survey = Survey(open_table(table))
    survey.add(table)
    assert len(survey.notes) == texts  # an id needs no word beyond the list of columns
    planned = plan_features(table, override=dict.fromkeys(column, "numeric"))
    assert planned.numbers == 2


def test_a_numeric_id_is_dropped_with_a_word_and_amounts_stay():
    plan = plan_features(with_ids())
    assert repr(plan) == (
        "FeaturePlan(2 numbers, 0 hashed; dropped: event, nearly every row has a different whole "
        "number, as ids do; name it as a feature to use it)"
    )
    table = with_ids().append_column("bag", pa.array(np.arange(70_000) // 10))
    reports = pa.table({"bag": np.arange(7000), "sales": np.arange(7000) % 5})
    assert join(table, reports, on="bag", total="sales").plan.names == ("amount", "x")


@pytest.mark.parametrize("source", [as_parquet, as_csv])
@pytest.mark.parametrize("start", [0, 2**60])
def test_a_numeric_id_is_dropped_from_files_of_any_kind_and_size(source, start):
    """Above 2^53 double precision has no place for each whole number."""
    rng = np.random.default_rng(0)
    visit, x = start + np.arange(300), rng.normal(size=300)
    table = pa.table({"visit": visit, "x": x, "amount": rng.integers(0, 50, 300)})
    assert plan_features(source(table, f"ids{start}")).names == ("x", "amount")


def test_a_csv_file_may_begin_with_whole_numbers_and_go_on_with_others():
    """The first megabyte, from which types are guessed, has whole numbers only."""
    text = "a,b\n" + f"{2**60},1\n" * 60_000 + f"{2**60 + 1},2.5\n"
    found = open_table(as_csv(EVENTS, "later", text=text.encode())).read(["a", "b"])
    assert found["a"][-1].as_py() == 2**60 + 1
    assert found["b"][-1].as_py() == 2.5


def test_whole_numbers_that_are_named_stay_and_so_do_those_of_a_few_rows():
    table = with_ids(rows=101)
    assert "event" in plan_features(table, features=["event", "x"]).names
    assert "event" in plan_features(table, override={"event": {"kind": "numeric"}}).names
    assert "event" not in plan_features(table).names
    assert "event" in plan_features(with_ids(rows=100)).names


@pytest.mark.parametrize("name", ["shop_id", "shopId", "zip", "area_code"])
def test_numbers_in_a_column_that_is_named_as_codes_are_are_names(name):
    rng = np.random.default_rng(0)
    shop = rng.integers(1000, 1005, 300)
    plan = plan_features(pa.table({name: shop, "grid": shop, "bids": shop}))
    kinds = {column.name: column.kind for column in plan.columns}
    assert kinds == {name: "category", "grid": "numeric", "bids": "numeric"}
    assert plan.columns[0].values == tuple(str(code) for code in range(1000, 1005))
    new = pd.DataFrame(
        {name: [1001.0, np.nan], "grid": 0.0, "bids": 0.0}
    )  # pandas has gaps as floats
    (_, codes), *_ = plan.narrow_columns(new)
    assert codes[0] == 1
    assert codes[1] != 1
    with_numbers = plan_features(pa.table({name: shop}), override={name: {"kind": "numeric"}})
    assert with_numbers.columns[0].kind == "numeric"


def test_a_plan_has_numbers_first_and_buckets_last():
    plan = plan_features(many())
    kinds = {column.name: column.kind for column in plan.columns}
    assert kinds == {
        "x": "numeric",
        "shop": "hash",
        "kind": "category",
        "event": "drop",
        "when": "date",
    }
    assert plan.buckets == (1024,)
    assert plan.dimensions == (6,)
    assert plan.names[-1] == "shop bucket"
    assert plan.numbers == 2 + 3 + 6
    assert (
        repr(plan)
        == "FeaturePlan(11 numbers, 1 hashed; dropped: event, nearly every row has a different value, as ids do)"
    )
    X = plan.apply(many())
    np.testing.assert_allclose(X[:, 0].astype(float).mean(), 0, atol=1e-6)
    known = X[:, 1] == 0
    np.testing.assert_allclose(X[known, 0].astype(float).std(), 1, atol=1e-5)


def test_buckets_follow_the_specification():
    texts = ["a", "b", "ü", "a"]
    digits = lambda text: int(md5(f"|shop|{text}".encode()).hexdigest()[:15], 16)
    assert buckets_of(pa.array([*texts, None, ""]), column="shop", buckets=64).tolist() == [
        *(1 + digits(text) % 63 for text in texts), 0, 0,
    ]  # fmt: skip
    with duckdb.connect() as connection:
        sql = (
            "select 1 + ('0x' || substr(md5(concat_ws('|', '', 'shop', 'a')), 1, 15))::BIGINT % 63"
        )
        assert connection.execute(sql).fetchone() == (1 + digits("a") % 63,)
    assert buckets_of(pa.array([], pa.string()), column="shop", buckets=64).tolist() == []
    assert (
        buckets_of(pa.array([7, 8]), column="c", buckets=9).tolist()
        == buckets_of(pa.array([7.0, 8.0]), column="c", buckets=9).tolist()
    )


@pytest.mark.parametrize(
    "source", [as_parquet, as_csv, pl.from_arrow, lambda t: t.to_pandas(), relation]
)
def test_streaming_equals_in_memory(source):
    events, plan = many(3000), plan_features(many(3000))
    again = plan_features(source(events))
    assert [c.kind for c in again.columns] == [c.kind for c in plan.columns]
    np.testing.assert_allclose(again.apply(source(events)), plan.apply(events), atol=1e-5)
    parts = list(plan.batches(source(events), rows=700, keep=["event"]))
    assert len(parts) > 1 or source is as_csv
    np.testing.assert_allclose(
        np.concatenate([part.X for part in parts]), plan.apply(events), atol=1e-6
    )
    assert (
        pa.concat_tables(part.kept for part in parts)["event"]
        .cast(pa.string())
        .equals(events["event"])
    )


def test_the_statistics_of_batches_are_those_of_the_whole():
    """A mean far from 0, batches of all sizes, one of them without any number."""
    rng = np.random.default_rng(1)
    x = np.concatenate([np.full(65536, np.nan), 1e6 + rng.normal(size=100_000), [np.inf]])
    column = plan_features(pa.table({"x": x})).columns[0]
    good = x[np.isfinite(x)]
    assert column.mean == pytest.approx(good.mean(), rel=1e-12)
    assert column.sd == pytest.approx(good.std(), rel=1e-9)
    assert column.missing


def test_a_plan_survives_json():
    plan = plan_features(many())
    again = FeaturePlan.from_json(plan.to_json())
    assert again == plan
    np.testing.assert_array_equal(again.apply(many(seed=1)), plan.apply(many(seed=1)))


def test_prediction_knows_what_to_do_with_the_unknown():
    events = pa.table({"age": [10.0, 30.0], "device": ["phone", "tablet"], "new": [True, False]})
    plan = plan_features(events)
    X = plan.apply(
        pa.table(
            {"new": [None, "TRUE"], "device": ["watch", None], "age": [None, "20"], "more": [1, 2]}
        )
    )
    np.testing.assert_allclose(X, [[0, 0, 0, 0], [0, 0, 0, 1]])
    assert plan.apply(events.slice(0, 0)).shape == (0, 4)


def test_csv_files_are_read_with_the_types_of_the_plan():
    """Codes that look like numbers stay the text they were planned as, and 01 is not 1."""
    plan = plan_features(pa.table({"code": ["01", "1", "2"], "x": [1.5, 2, 3]}))
    path = as_csv(EVENTS, "codes", text=b"x,code\n1,01\n2,1\n")
    np.testing.assert_array_equal(
        plan.apply(path), plan.apply(pa.table({"code": ["01", "1"], "x": [1.0, 2.0]}))
    )
    assert plan.apply(path)[:, [0, 1]].tolist() == [[1, 0], [0, 1]]


def test_a_toml_file_overrides_the_plan():
    path = FOLDER / "plan.toml"
    path.write_text(
        '[columns.shop]\nkind = "hash"\nbuckets = 64\ndimension = 3\n'
        '[columns.x]\nkind = "drop"\n[columns.kind]\nkind = "category"\nvalues = ["u", "v"]\n'
        '[columns.event]\nkind = "hash"\n'
    )
    plan = plan_features(many(), override=path)
    assert plan.buckets == (64, 8192 * 2)
    assert plan.dimensions == (3, 12)
    assert plan.names == (
        "kind=u", "kind=v", "when hour sin", "when hour cos", "when weekday sin", "when weekday cos",
        "when season sin", "when season cos", "shop bucket", "event bucket",
    )  # fmt: skip
    mapping = {"x": "category", "kind": {"kind": "hash"}}
    few = pa.table({"x": [1, 2, 1], "kind": ["u", "v", "u"], "bag": [1, 2, 3]})
    bags = join(
        few, pa.table({"bag": [1, 2, 3], "n": [0, 1, 0]}), on="bag", total="n", plan=mapping
    )
    assert bags.plan.names == ("x=1", "x=2", "kind bucket")
    again = join(
        as_csv(few, "few"),
        pa.table({"bag": [1, 2, 3], "n": [0, 1, 0]}),
        on="bag",
        total="n",
        plan=bags.plan,
    )
    np.testing.assert_array_equal(again.X, bags.X)
    wanted = plan_features(pa.table({"flag": ["yes", "no"], "day": ["2026-01-05", "2026-01-06"]}), override={
        "flag": "boolean", "day": "date"})  # fmt: skip
    assert wanted.names == ("flag", "day weekday sin", "day weekday cos")


def test_categories_of_a_frame_are_categories_also_when_they_are_numbers():
    frame = pd.DataFrame({"code": pd.Categorical([3, 1, 3])})
    assert plan_features(frame).names == ("code=1", "code=3")


def test_columns_that_say_nothing_are_dropped_with_a_word():
    rows = 4
    events = pa.table(
        {
            "x": [1, 2, 3, 4],
            "one": ["de"] * rows,
            "same": [7.0] * rows,
            "none": pa.array([None] * rows, pa.float64()),
            "list": [[1]] * rows,
            "nothing": pa.nulls(rows),
            "half": [7.0, None, 7.0, 7.0],
        }
    )
    plan = plan_features(events)
    assert plan.names == ("x", "half", "half missing")
    assert [column.why for column in plan.columns if column.kind == "drop"] == [
        "it has one value only", "it has one value only", "it has no values",
        "its type, list<item: int64>, is no number, text or date",
        "it has no values",
    ]  # fmt: skip


def test_millions_of_categories_stay_small():
    """Values that fill memory many times over if they were kept: the plan holds none of them."""
    rows = 400_000
    number = np.random.default_rng(0).integers(0, 200_000, rows)
    plan = plan_features(pa.table({"shop": [f"shop number {i}" for i in number]}))
    assert plan.buckets == (2**14,)
    assert len(plan.to_json()) < 200
    X = plan.apply(pa.table({"shop": ["shop number 5", "never seen", None]}))
    assert X[2, 0] == 0
    assert ((X[:2] > 0) & (X[:2] < 2**14)).all()


def test_numbers_and_buckets_are_learned_together():
    rng = np.random.default_rng(0)
    shop, x, effect = rng.integers(0, 40, 3200), rng.normal(size=3200), 2 * rng.normal(size=40)
    y = (effect[shop] + x > 0).astype(int)
    events = pa.table(
        {"x": x, "shop": [f"s{i}" for i in shop], "bag": np.repeat(np.arange(800), 4)}
    )
    reports = pa.table({"bag": np.arange(800), "sales": y.reshape(-1, 4).sum(axis=1)})
    bags = join(events, reports, on="bag", total="sales")
    assert bags.plan.numbers == 1
    model = models.mixed_network(bags.plan.numbers, bags.plan.buckets, bags.plan.dimensions, key=0)
    run = train(model, bags, learning_rate=0.03, epochs=10, batch=400, test=(bags.X, y))
    assert run.history["test_auc"][-1] > 0.95
    classes = models.mixed_network(1, bags.plan.buckets, bags.plan.dimensions, key=0, outputs=3)
    assert classes(bags.X[:2]).shape == (2, 3)
    plain = models.mixed_network(2, (), (), key=0, start=-1.0)
    assert plain(np.ones((2, 2), np.float32)).tolist() == [-1, -1]


def test_dates_go_around():
    moments = as_moments(pa.array(["1970-01-01 00:00", "1970-01-01 06:00", None]), name="t")
    assert moments[1] == 6 * 3600 * 1e6
    column = Column("t", "date", parts=("hour",), missing=True)
    X = FeaturePlan((column,)).apply(
        pa.table({"t": ["1970-01-01 00:00", "1970-01-09 06:00", None]})
    )
    np.testing.assert_allclose(X, [[0, 1, 0], [1, 0, 0], [0, 0, 1]], atol=1e-6)


# ------------------------------------------------------------------------------------------------
# refusals


def cut_short():
    path = as_parquet(many(50), "cut")
    path.write_bytes(path.read_bytes()[:900])
    return path


def damaged():
    path = FOLDER / "damaged.parquet"
    pq.write_table(
        pa.table({"bag": np.arange(200_000), "x": np.random.default_rng(0).random(200_000)}), path
    )
    found = bytearray(path.read_bytes())
    found[1000:100_000] = bytes(99_000)
    path.write_bytes(bytes(found))
    return path


WHOLE = "is cut short, damaged or something else"


def test_what_goes_wrong_in_duckdb_is_told_by_join(monkeypatch):
    connect = duckdb.connect
    monkeypatch.setattr(
        duckdb, "connect", lambda config=None: connect(config={"memory_limit": "10KB"})
    )
    with pytest.raises(
        ValueError,
        match=r"^The memory must suffice for the ids .* does not. Free some of it, leave id= ",
    ):
        join(EVENTS, REPORTS, **NEED)


@pytest.mark.parametrize("make", [cut_short, damaged], ids=["cut short", "damaged"])
def test_a_damaged_parquet_file_is_refused(make):
    with pytest.raises(
        ValueError, match=f"A file must be whole: one of the events {WHOLE} .* Export it again."
    ):
        told(make(), reports=pa.table({"bag": [0, 1], "n": [1, 0]}))


def test_text_that_is_not_utf8_is_refused_wherever_it_stands():
    late = b"bag,city\n" + b"a,Bonn\n" * 200_000 + LATIN[9:]
    for text in (late, LATIN.replace(b"city", "Stra\xdfe".encode("latin-1"))):
        with pytest.raises(ValueError, match="A CSV file must be written in UTF-8"):
            told(as_csv(TWO, "latin", text=text), reports=pa.table({"bag": ["a"], "n": [1]}))


def test_what_is_not_there_is_not_found():
    with pytest.raises(
        FileNotFoundError, match=r"A file of events must exist: nowhere.csv does not"
    ):
        told("nowhere.csv")
    with pytest.raises(
        FileNotFoundError, match=r"A file of a plan must exist: nowhere.toml does not"
    ):
        told(plan="nowhere.toml")


def test_importing_unbag_imports_no_tables():
    import subprocess
    import sys

    code = "import sys, unbag; print([m for m in ('pyarrow', 'narwhals', 'duckdb', 'polars') if m in sys.modules])"
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
        == "[]\n"
    )
    assert unbag.join is join


def test_narrow_columns_say_what_the_wide_features_say():
    moment = datetime.datetime
    when = pa.array([moment(2026, 11, 16, 5, 30), None, moment(2026, 1, 4, 23, 0)])
    date = Column("at", "date", parts=("hour", "weekday", "season"))
    parts, levels = narrow(date, when), levels_of(date)
    read = {name: [levels[name][code] for code in parts[name]] for name in parts if levels[name]}
    assert read["at hour"] == ["5", "missing", "23"]
    assert read["at weekday"] == ["Monday", "missing", "Sunday"]
    assert read["at season"] == ["Nov", "missing", "Jan"]
    np.testing.assert_allclose(np.diff(parts["at trend"][[2, 0]]), 316 - 17.5 / 24)
    number = narrow(Column("age", "numeric", mean=3, sd=2), pa.array([3, None]))["age"]
    np.testing.assert_array_equal(number, [3, np.nan])
    for column, values in (
        (Column("b", "boolean", missing=True), pa.array([True, None, False])),
        (Column("c", "category", values=("x", "y"), missing=True), pa.array(["y", None, "z", "x"])),
    ):
        code = narrow(column, values)[column.name]
        wide = (code[:, None] == np.arange(len(levels_of(column)[column.name]))).astype(float)
        expected = FeaturePlan((column,)).features(pa.table({column.name: values}))
        np.testing.assert_array_equal(wide[:, -expected.shape[1] :], expected)
    hashed = Column("h", "hash", buckets=8)
    values = pa.array(["q", None])
    np.testing.assert_array_equal(
        narrow(hashed, values)["h"], buckets_of(values, column="h", buckets=8)
    )


def test_bags_whose_features_are_their_table_take_it_once():
    events = pa.table({"bag": [0, 0, 1, 1, 2, 2], "age": [1, 2, 3, 4, 5, 6]})
    reports = pa.table({"bag": [0, 1, 2], "sales": [1, 0, 2]})
    part = join(events, reports, on="bag", total="sales").as_read().take([2, 0])
    assert part.X is part.table
    assert part.table["age"].to_pylist() == [5, 6, 1, 2]


def test_times_that_are_all_missing_may_be_numbers():
    """As pandas reads a column without a value."""
    plan = FeaturePlan((Column("t", "date", parts=("hour",)),))
    assert (plan.apply(pa.table({"t": [math.nan, None]})) == 0).all()


def test_the_answer_among_the_events_is_no_feature():
    """As when the reports were joined to the events before."""
    bag = np.arange(40) // 4
    events = pa.table({"bag": bag, "x": np.arange(40.0), "sales": bag % 3})
    reports = pa.table({"bag": np.arange(10), "sales": np.arange(10) % 3})
    bags = join(events, reports, on="bag", total="sales", accept_bias=True)
    assert bags.plan.names == ("x",)
    (left,) = [column for column in bags.plan.columns if column.kind == "drop"]
    assert left.why == "the reports have it too, so it is what is to be learned"
    named = join(events, reports, on="bag", total="sales", features=["x", "sales"])
    assert named.plan.names == ("x", "sales")


def test_reports_alone_are_the_observed_ones_as_shares():
    table = pa.table(
        {"day": ["mon", "tue", "wed"], "sales": [1.0, None, 3.0], "events": [4, 4, 6],
         "state": ["observed", "pending", None]}
    )  # fmt: skip
    rows = report_rows(table, Columns(on="day", total="sales", size="events", status="state"))
    assert rows.bag.to_pylist() == ["mon", "wed"]
    assert rows.value.tolist() == [0.25, 0.5]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_durations_are_numbers_of_seconds(unit):
    seconds = [1, None, 3, 5]
    given = pa.array(seconds, pa.duration("s")).cast(pa.duration(unit))
    plan = plan_features(pa.table({"dwell": given}))
    assert (plan.columns[0].kind, plan.columns[0].mean) == ("numeric", 3.0)
    same = plan.apply(pa.table({"dwell": seconds}))
    np.testing.assert_array_equal(plan.apply(pa.table({"dwell": given})), same)
