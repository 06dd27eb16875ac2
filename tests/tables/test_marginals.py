"""Marginal tables are matched with the events that they count, and refused when they cannot be."""

import datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import unbag
from unbag.tables import Marginals, join_marginals


def clicks():
    """Six events, and their sales by shop and day and by device."""
    day = [datetime.date(2026, 1, d) for d in (4, 4, 5, 5, 5, 4)]
    events = pa.table(
        {
            "shop": [3, 3, 3, 7, 7, 7],
            "day": day,
            "device": ["tv", "phone", "tv", "tv", "phone", "phone"],
        }
    )
    by_shop_day = pa.table(
        {
            "shop": ["3", "3", "7", "7"],
            "day": ["2026-01-04", "2026-01-05", "2026-01-04", "2026-01-05"],
            "sales": [1, 1, 0, 2],
        }
    )
    by_device = pa.table({"device": ["phone", "tv"], "sales": [1, 3]})
    return events, {"by_shop_day": by_shop_day, "by_device": by_device}


def test_every_event_is_counted_in_the_cell_of_its_keys_whoever_writes_them_how():
    events, tables = clicks()
    cells = join_marginals(events, tables, total="sales")
    assert isinstance(cells, Marginals)
    rows, naive = events.to_pylist(), []
    for table in tables.values():
        for line in table.to_pylist():
            keys = [key for key in line if key != "sales"]
            naive.append([all(str(row[key]) == str(line[key]) for key in keys) for row in rows])
    np.testing.assert_array_equal(cells.S.toarray(), np.array(naive, float))
    np.testing.assert_allclose(cells.total, [1, 1, 0, 2, 1, 3])
    np.testing.assert_array_equal(cells.reports.size, [2, 1, 1, 2, 3, 3])
    assert cells.names[0] == "by_shop_day: shop=3, day=2026-01-04"
    assert cells.notes == ()


def test_files_and_frames_and_arrow_tables_give_the_same_cells(tmp_path):
    events, tables = clicks()
    paths = []
    for name, table in tables.items():
        paths.append(tmp_path / f"{name}.csv")
        table.to_pandas().to_csv(paths[-1], index=False)
    one = unbag.join_marginals(events.to_pandas(), paths, total="sales", noise=2.0)
    two = unbag.join_marginals(events, tables, total="sales", noise=[2.0, 2.0])
    np.testing.assert_array_equal(one.S.toarray(), two.S.toarray())
    np.testing.assert_array_equal(one.names, two.names)
    np.testing.assert_array_equal(one.noise, np.full(6, 2.0))


def test_large_numbers_and_missing_values_are_keys_like_others():
    events = pd.DataFrame({"id": [1e7, 2e7, np.nan, 1e7]})
    table = pd.DataFrame({"id": [10_000_000, 20_000_000, None], "n": [1, 0, 1]})
    cells = join_marginals(events, [table], total="n")
    np.testing.assert_array_equal(cells.S.toarray(), [[1, 0, 0, 1], [0, 1, 0, 0], [0, 0, 1, 0]])


def test_cells_without_events_and_events_without_a_cell_are_noted():
    events, _ = clicks()
    by_device = pa.table({"device": ["tv", "watch"], "sales": [3, 9]})
    cells = join_marginals(events, {"by_device": by_device}, total="sales")
    assert len(cells) == 1
    assert cells.notes == (
        "Left out: 1 cell of by_device without events, with a total of 9: by_device: device=watch.",
        "In no cell of by_device: 3 events.",
    )
    assert cells.S.shape == (1, 6)


def test_cells_are_taken_with_all_their_events():
    events, tables = clicks()
    part = join_marginals(events, tables, total="sales").take([5, 0])
    assert part.names.tolist() == ["by_device: device=tv", "by_shop_day: shop=3, day=2026-01-04"]
    assert part.S.shape == (2, 6)
    assert part.of_table.tolist() == [1, 0]


def _with(**columns):
    _, tables = clicks()
    table = tables["by_device"]
    for name, values in columns.items():
        table = table.append_column(name, pa.array(values))
    return table


def test_cells_that_are_hidden_for_their_value_are_refused_without_a_threshold():
    events, _ = clicks()
    table = _with(state=["observed", "suppressed_by_value"])
    with pytest.raises(unbag.Refused, match="must not be hidden for its value"):
        join_marginals(events, [table], total="sales", status="state")


def test_tables_whose_sums_contradict_are_refused_with_both_numbers():
    events, tables = clicks()
    tables["by_device"] = pa.table({"device": ["phone", "tv"], "sales": [2, 3]})
    message = "by_shop_day has 4 and by_device has 5 for all events"
    with pytest.raises(unbag.Refused, match=message):
        join_marginals(events, tables, total="sales")
    assert len(join_marginals(events, tables, total="sales", noise=2.0)) == 6


def test_sums_are_compared_for_each_value_of_the_keys_that_tables_share():
    events, tables = clicks()
    by_shop = pa.table({"shop": [3, 7], "sales": [4, 1]})
    with pytest.raises(unbag.Refused, match=r"2 and by_shop has 4 for shop=3.*2 such sums"):
        join_marginals(
            events, {"by_shop_day": tables["by_shop_day"], "by_shop": by_shop}, total="sales"
        )


def test_all_contradictions_are_listed():
    events, tables = clicks()
    tables["by_shop"] = pa.table({"shop": [3, 7], "sales": [3, 2]})
    with pytest.raises(unbag.Refused) as error:
        join_marginals(events, tables, total="sales")
    assert len(error.value.refusals) == 2


def test_noise_may_be_a_column_a_number_or_one_of_these_for_each_table():
    events, tables = clicks()
    tables["by_device"] = _with(variance=[3.0, 4.0])
    cells = join_marginals(events, tables, total="sales", noise=[2.0, "variance"])
    assert cells.noise.tolist() == [2, 2, 2, 2, 3, 4]


def test_noise_makes_negative_totals_normal():
    events, _ = clicks()
    table = pa.table({"device": ["phone", "tv"], "sales": [-1.5, 3]})
    assert join_marginals(events, [table], total="sales", noise=2).total[0] == -1.5


def test_an_empty_total_is_hidden_where_a_threshold_is_given():
    events, _ = clicks()
    table = pa.table({"device": ["phone", "tv"], "sales": [None, 3]})
    cells = join_marginals(events, [table], total="sales", below=5)
    assert cells.hidden.tolist() == [True, False]
    assert "Not observed (suppressed_by_value): 1 cell." in cells.notes


def test_events_that_no_table_counts_are_noted():
    events, tables = clicks()
    few = {name: table.slice(0, 1) for name, table in tables.items()}
    cells = join_marginals(events, few, total="sales")
    assert cells.notes[-1] == (
        "In no cell of any table, so that nothing is learned from them: 2 events."
    )


def test_an_id_is_no_feature_and_the_plan_reads_new_rows():
    events, tables = clicks()
    events = events.append_column("event", pa.array([f"e{i}" for i in range(6)]))
    cells = join_marginals(events, tables, total="sales", id="event")
    assert "event" not in cells.X.schema.names
    assert cells.plan.columns_of(events).equals(cells.X)
    again = join_marginals(events, tables, total="sales", plan=cells.plan)
    assert again.X.equals(cells.X)


def test_hidden_cells_with_a_threshold_are_kept_for_what_they_tell():
    events, _ = clicks()
    table = _with(state=["suppressed_by_value", "observed"])
    cells = join_marginals(events, [table], total="sales", status="state", below=5)
    assert cells.hidden.tolist() == [True, False]
    assert np.isnan(cells.total[0])
    left_out = join_marginals(events, [table], total="sales", status="state", accept_bias=True)
    assert not left_out.hidden.any()
