"""A path is a path, a column is the file's own, and a bit that changed is noticed."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from unbag import join
from unbag.tables import join_marginals, open_table, plan_features, write_tables

sql = pytest.importorskip("unbag.sql")
EVENTS = pa.table({"bag": [0, 0, 1, 1], "x": [1.0, 2.0, 3.0, 5.0], "campaign": list("aabb")})
REPORTS = pa.table({"bag": [0, 1], "n": [1, 2]})
SAID = {"on": "bag", "total": "n"}


@pytest.fixture
def reports(tmp_path):
    pq.write_table(REPORTS, tmp_path / "reports.parquet")
    return tmp_path / "reports.parquet"


def targets(events, reports, **said):
    out = reports.with_name("targets.parquet")
    sql.write_targets(events, reports, out, **(SAID | said))
    return pq.read_table(out)


@pytest.mark.parametrize("name", ["events[1]", "ev*", "e?", "{a,b}", "~a'b\nü"])
def test_characters_of_patterns_stand_for_themselves(name, tmp_path, reports):
    """Of two files, the one that the name would match as a pattern is not read."""
    decoy = EVENTS.set_column(1, "x", pa.array([9.0] * 4))
    for other in ("events1", "evil", "ea", "a"):
        pq.write_table(decoy, tmp_path / f"{other}.parquet")
    pq.write_table(EVENTS, tmp_path / f"{name}.parquet")
    assert sorted(targets(tmp_path / f"{name}.parquet", reports)["x"].to_pylist()) == [1, 2, 3, 5]


def test_a_folder_named_like_a_column_does_not_replace_the_column(tmp_path, reports):
    folder = tmp_path / "campaign=autumn"
    folder.mkdir()
    pq.write_table(EVENTS, folder / "events.parquet")
    for path in (folder / "events.parquet", tmp_path / "in" / ".."):
        (tmp_path / "in").mkdir(exist_ok=True)
        table = open_table(path if path.is_file() else folder)
        assert table.read(["campaign"])["campaign"].to_pylist() == list("aabb")
    kept = targets(folder / "events.parquet", reports)
    assert sorted(kept["campaign"].to_pylist()) == list("aabb")


def test_the_column_of_folders_is_read_when_somebody_names_it(tmp_path):
    for day in ("007", "008"):
        (tmp_path / f"day={day}").mkdir()
        pq.write_table(EVENTS.select(["x"]), tmp_path / f"day={day}" / "part.parquet")
    assert [c.name for c in plan_features(tmp_path).columns] == ["x"]
    reports = pa.table({"day": ["007", "008"], "n": [1, 3]})
    bags = join(tmp_path, reports, on="day", total="n")
    assert bags.names.tolist() == ["007", "008"]
    assert bags.report.tolist() == [0.25, 0.75]


def test_numbers_of_csv_files_that_begin_with_a_zero_are_text(tmp_path, reports):
    """The postcode 01067 in a CSV file is that of a Parquet file: as a number it was 1067, a level
    that predictions and marginal tables did not know, and the zero was gone from targets too."""
    path = tmp_path / "events.csv"
    path.write_text("bag,x,zip\n0,0.5,01067\n0,00,80331\n1,-0,01067\n1,10,80331\n")
    table = open_table(path).read(["x", "zip"])
    assert table["x"].to_pylist() == [0.5, 0, 0, 10]
    assert table["zip"].to_pylist() == ["01067", "80331"] * 2
    assert sorted(targets(path, reports)["zip"].to_pylist()) == ["01067"] * 2 + ["80331"] * 2
    cells = tmp_path / "by_zip.csv"
    cells.write_text("zip,n\n01067,1\n80331,2\n")
    events = pa.table({"zip": ["01067", "80331"] * 2, "x": [1.0, 2, 3, 5]})
    assert join_marginals(events, [cells], total="n").total.tolist() == [1, 2]


def test_a_part_without_rows_does_not_decide_the_types(tmp_path):
    empty = pa.table({"bag": pa.nulls(0), "x": pa.nulls(0), "campaign": pa.nulls(0)})
    pq.write_table(empty, tmp_path / "a.parquet")
    pq.write_table(EVENTS, tmp_path / "b.parquet")
    assert open_table(tmp_path).read(["bag", "x"])["x"].to_pylist() == [1, 2, 3, 5]


def test_a_quoted_value_may_go_over_several_lines(tmp_path):
    path = tmp_path / "events.csv"
    path.write_text('bag,"note, long",x\n1,"two\nlines",3\n2,one,4\n')
    table = open_table(path)
    assert table.schema.names == ["bag", "note, long", "x"]
    assert table.read(["note, long"])["note, long"].to_pylist() == ["two\nlines", "one"]


def test_every_bit_of_a_page_with_a_checksum_is_checked(tmp_path):
    path = tmp_path / "events.parquet"
    write_tables(path, [pa.table({"x": np.arange(200.0)})])
    whole, meta = path.read_bytes(), pq.read_metadata(path).row_group(0).column(0)
    start = meta.dictionary_page_offset or meta.data_page_offset
    rng = np.random.default_rng(0)
    silent = 0
    for _ in range(60):
        place = int(rng.integers(start, start + meta.total_compressed_size))
        damaged = bytearray(whole)
        damaged[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        try:
            silent += open_table(path).read(["x"])["x"].to_pylist() != list(range(200))
        except ValueError:
            continue
    assert silent == 0


def test_batches_of_wide_tables_have_fewer_rows():
    wide = pa.table({f"x{i}": np.zeros(3000) for i in range(2100)})
    sizes = [batch.num_rows for batch in open_table(wide).batches(wide.column_names)]
    assert max(sizes) * 2100 <= 2**22
    assert sum(sizes) == 3000
