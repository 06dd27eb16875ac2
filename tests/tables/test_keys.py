"""Bags that two columns name together, as campaign and day: in memory, in SQL, from disk, in a stream."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import unbag
from unbag.sql import write_targets
from unbag.tables import Columns


def _tables(n=600, seed=0):
    rng = np.random.default_rng(seed)
    shop, week = rng.choice(["a", "a, b", "b"], n), rng.integers(0, 8, n)
    events = pd.DataFrame({"shop": shop, "week": week, "x": rng.normal(size=n)})
    events["sale"] = rng.random(n) < 0.4
    reports = events.groupby(["shop", "week"], as_index=False).agg(sales=("sale", "sum"))
    return events.drop(columns="sale"), reports.sample(frac=1, random_state=1)


def _one_key(table):
    return table.assign(
        bag=[f"{shop}|{week}" for shop, week in zip(table.shop, table.week, strict=True)]
    )


def test_two_columns_name_the_same_bags_as_one_column_of_both():
    events, reports = _tables()
    two = unbag.join(events, reports, on=["shop", "week"], total="sales")
    one = unbag.join(_one_key(events), _one_key(reports), on="bag", total="sales")
    assert len(two) == 24 == len(one)
    in_two, in_one = two.report[two.bag], one.report[one.bag]
    np.testing.assert_array_equal(in_two, in_one)
    assert {column.name for column in two.plan.used} == {"shop", "week", "x"}


def test_no_two_pairs_of_values_are_taken_for_one_bag():
    pairs = [
        ("a", "b, c"),
        ("a, b", "c"),
        ("a,", "b"),
        ("a", ",b"),
        ("a,, b", "c"),
        ("a", ", b, c"),
    ]
    reports = pd.DataFrame(pairs, columns=["one", "two"]).assign(sales=range(len(pairs)))
    events = pd.concat([reports.assign(x=i) for i in range(8)]).drop(columns="sales")
    bags = unbag.join(events, reports, on=("one", "two"), total="sales", features=["x"])
    assert len(bags) == len(pairs)
    np.testing.assert_array_equal(np.sort(bags.report * bags.size), range(len(pairs)))


def test_sql_matches_by_two_columns_as_join_does(tmp_path):
    pytest.importorskip("duckdb")
    events, reports = _tables()
    events.to_parquet(tmp_path / "events.parquet")
    reports.to_parquet(tmp_path / "reports.parquet")
    write_targets(tmp_path / "events.parquet", tmp_path / "reports.parquet", tmp_path / "t.parquet",
                     on=["shop", "week"], total="sales")  # fmt: skip
    ours = pd.read_parquet(tmp_path / "t.parquet").sort_values("x").target.to_numpy()
    bags = unbag.join(events, reports, on=["shop", "week"], total="sales", features=["x"])
    W = unbag.weights.upm(bags.size, *bags.components())[bags.bag]
    order = np.argsort(bags.X[:, 0])
    np.testing.assert_allclose(ours, (W[:, 1] / W[:, 0])[order], rtol=1e-9)


def test_learning_from_disk_gives_the_model_of_one_column_of_both(tmp_path):
    events, reports = _tables(2000)
    for frame, name in ((events, "events"), (reports, "reports")):
        _one_key(frame).to_parquet(tmp_path / f"{name}.parquet")
    files = tmp_path / "events.parquet", tmp_path / "reports.parquet"
    two, one = (
        unbag.learners.fit_files(*files, on, total="sales", features=["x", "shop"], memory="1GB")
        for on in (["shop", "week"], "bag")
    )
    rows = two.plan.columns_of(pa.Table.from_pandas(events.head(5)))
    # the folds differ, as they follow a hash of the ids, and with them the repaired slope
    np.testing.assert_allclose(two.fitted.scores(rows), one.fitted.scores(rows), atol=0.3)


def test_types_of_each_key_must_agree_and_one_key_at_least_is_named():
    events, reports = _tables()
    with pytest.raises(ValueError, match="'week' is whole numbers in the events and text"):
        unbag.join(events, reports.assign(week=reports.week.astype(str)), on=["shop", "week"],
                   total="sales")  # fmt: skip
    with pytest.raises(ValueError, match="Bags must be named by one column or more"):
        Columns([], total="sales")


def test_ids_that_are_features_are_the_same_from_csv_and_parquet(tmp_path):
    rng = np.random.default_rng(0)
    day = pd.to_datetime("2026-03-01") + pd.to_timedelta(rng.integers(9, size=600), "D")
    frame = {"shop": rng.integers(5, size=600), "day": day, "x": rng.normal(size=600)}
    events = pd.DataFrame(frame | {"area": rng.integers(3, size=600)})
    reports = events.groupby(["shop", "day"], as_index=False).agg(n=("x", lambda x: (x > 0).sum()))
    plans = []
    for ending in ("csv", "parquet"):
        files = [tmp_path / f"{name}.{ending}" for name in ("e", "r")]
        for table, file in zip((events, reports), files, strict=True):
            table.to_csv(file, index=False) if ending == "csv" else table.to_parquet(file)
        plans.append(unbag.join(*files, on=["shop", "day"], total="n").plan)
    kinds = [{column.name: column.kind for column in plan.columns} for plan in plans]
    assert kinds[0] == kinds[1]
    assert kinds[0] == {"shop": "category", "day": "date", "x": "numeric", "area": "numeric"}
