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


@pytest.mark.parametrize(
    "table, options, message",
    [
        (
            pa.table({"devise": ["tv"], "sales": [1]}),
            {},
            "key of a marginal table must be a column of the events: 'devise' of one is none. "
            "Did you mean 'device'\\? +Their columns are shop, day, device",
        ),
        (
            pa.table({"device": ["tv", "phone", "tv"], "sales": [1, 1, 1]}),
            {},
            "must come once in its table: cell one: device=tv has 2 lines",
        ),
        (pa.table({"sales": [4]}), {}, "must have keys: one has none"),
        (pa.table({"device": ["TV"], "sales": [4]}), {}, "no event is in a cell of one"),
        (_with(n=[3, 4]), {"size": "n"}, "cell one: device=tv has 4 reported and 3 events"),
        (pa.table({"device": ["tv"], "sales": [4]}), {}, r"must lie in \[0, 1\]: .*one: device=tv"),
        (_with(), {"kind": "histogram"}, "kind 'histogram' came"),
        (_with(), {"noise": [1.0, 2.0]}, "2 came for 1 tables"),
        (
            _with(state=["observed", "suppressed_by_value"]),
            {"status": "state"},
            "must not be hidden for its value",
        ),
        (pa.table({"device": pa.array([], pa.string()), "sales": pa.array([], pa.int64())}), {},
         "at least one row"),
    ],
)  # fmt: skip
def test_a_table_that_cannot_be_matched_is_refused(table, options, message):
    events, _ = clicks()
    with pytest.raises(unbag.Refused, match=message):
        join_marginals(events, {"one": table}, total="sales", **options)


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
    with pytest.raises(unbag.Refused, match=r"2 and by_shop has 4 for shop=3.*\(2 such sums\)"):
        join_marginals(
            events, {"by_shop_day": tables["by_shop_day"], "by_shop": by_shop}, total="sales"
        )


def test_two_tables_of_one_name_and_no_table_are_refused():
    events, tables = clicks()
    with pytest.raises(unbag.Refused, match="'by_device' came twice"):
        join_marginals(events, [tables["by_device"]] * 2, total="sales")
    with pytest.raises(unbag.Refused, match="at least one table"):
        join_marginals(events, [], total="sales")


def test_hidden_cells_with_a_threshold_are_kept_for_what_they_tell():
    events, _ = clicks()
    table = _with(state=["suppressed_by_value", "observed"])
    cells = join_marginals(events, [table], total="sales", status="state", below=5)
    assert cells.hidden.tolist() == [True, False]
    assert np.isnan(cells.total[0])
    left_out = join_marginals(events, [table], total="sales", status="state", accept_bias=True)
    assert not left_out.hidden.any()
