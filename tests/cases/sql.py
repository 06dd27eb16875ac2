"""Small cases that the tests of sql, and the table of its messages, share."""

from datetime import datetime
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cases.packages import needs
from unbag import sql

ibis = needs("ibis")


def named(table, name):
    return ibis.table(ibis.Schema.from_pyarrow(table.schema), name=name)


# Ibis takes half a second to write the SQL of a relation, and it depends on the types of columns and
# not on rows: tables of the same types share it.
as_duckdb = cache(sql.as_sql)


database = cache(duckdb.connect)  # once, as it takes as long as to work on six rows


def on_duckdb(expression, **tables):
    for name, table in tables.items():
        database().register(name, table)
    return database().sql(as_duckdb(expression)).to_arrow_table()


def relate(events, reports, **said):
    columns = tuple((k, tuple(v) if isinstance(v, list) else v) for k, v in sorted(said.items()))
    return _relate(events.schema, reports.schema, columns)


@cache
def _relate(events, reports, columns):
    said = {k: list(v) if isinstance(v, tuple) else v for k, v in columns}
    tables = (
        ibis.table(ibis.Schema.from_pyarrow(s), name=n)
        for s, n in ((events, "events"), (reports, "reports"))
    )
    return sql.relate(*tables, **said)


GOOD = {"day": ["a", "a", "b", "b", "c", "c"], "click": [1, 2, 3, 4, 5, 6], "region": ["n", "n", "n", "n", "n", "n"],
        "when": np.array(["2026-11-01"] * 6, "datetime64[us]"), "g": [0.5] * 6}  # fmt: skip

REPORTS = {"day": ["a", "b", "c"], "sales": [1.0, 0.0, 2.0], "events": [2, 2, 2], "v": [0.0, 0.0, 0.0],
           "status": ["observed", "", "observed"], "made": np.array(["2026-11-02"] * 3, "datetime64[us]")}  # fmt: skip

SAID = {
    "on": "day",
    "total": "sales",
    "size": "events",
    "status": "status",
    "id": "click",
    "stratum": "region",
}

# thirty bags of four, each with two: no chance is so even
EVEN = (
    {"day": np.repeat([f"d{i}" for i in range(30)], 4).tolist(), "click": list(range(120)),
     "region": ["n"] * 120, "when": np.array(["2026-11-01"] * 120, "datetime64[us]"), "g": [0.5] * 120},
    {"day": [f"d{i}" for i in range(30)], "sales": [2.0] * 30, "events": [4] * 30, "v": [0.0] * 30,
     "status": [""] * 30, "made": np.array(["2026-11-02"] * 30, "datetime64[us]")},
    {},
)  # fmt: skip
FAULTS = {
    "no_events": ({}, {}, {}),
    "no_reports": ({}, {}, {}),
    "event_without_bag": ({"day": ["a", "a", "b", "b", "c", None]}, {"events": [2, 2, 1], "sales": [1.0, 0, 1]}, {}),
    "event_without_stratum": ({"region": ["n", "n", "n", "n", "n", ""]}, {}, {}),
    "event_without_id": ({"click": [1, 2, 3, 4, 5, None]}, {}, {}),
    "bag_in_two_strata": ({"region": ["n", "s", "n", "n", "n", "n"]}, {}, {}),
    "event_with_unclear_time": (
        {"when": ["2026-11-01"] * 5 + ["11/02/2026"]}, {}, {"time": "when", "cut": "2026-11-16"}
    ),
    "event_in_two_bags": ({"click": [1, 2, 3, 4, 1, 6]}, {}, {}),
    "event_twice": ({"click": [1, 2, 3, 3, 5, 6]}, {}, {}),
    "report_without_bag": ({}, {"day": ["a", "b", None]}, {}),
    "report_without_time": ({}, {"made": [datetime(2026, 11, 2), None, datetime(2026, 11, 2)]}, {"as_of": "made"}),
    "bag_with_two_reports": ({}, {"day": ["a", "b", "b"]}, {}),
    "wrong_size": ({}, {"events": [2, 3, 2]}, {}),
    "proportion_as_total": ({}, {"sales": [0.5, 0.0, 1.0]}, {}),
    "fractional_count": ({}, {"sales": [1.0, 0.0, 1.5]}, {}),
    "negative_report": ({}, {"sales": [1.0, 0.0, -1.0]}, {}),
    "impossible_total": ({}, {"sales": [1.0, 0.0, 3.0]}, {}),
    "reports_too_even": EVEN,
    "no_sizes": ({}, {"events": pa.nulls(3, pa.int64())}, {}),
    "impossible_counts": ({}, {"b": [1.0, 2, 2]}, {"total": None, "counts": ["sales", "b"]}),
    "total_as_proportion": ({}, {"sales": [1.0, 0, 2]}, {"total": None, "proportion": "sales"}),
    "impossible_proportion": (
        {}, {"sales": [0.5, 0, 7]}, {"total": None, "proportion": "sales"}
    ),
    "impossible_report": ({}, {"sales": [1.0, 0, 7]}, {"kind": "total", "cap": 2}),
    "unknown_status": ({}, {"status": ["observed", "", "lost"]}, {}),
    "hidden_by_value": ({}, {"status": ["observed", "", "interval"]}, {}),
    "report_not_finite": ({}, {"sales": [1.0, 0.0, np.nan]}, {}),
    "wrong_noise": ({}, {"v": [0.0, 0.0, -1.0]}, {"noise": "v"}),
    "nothing_observed": ({}, {"day": ["A", "B", "C"]}, {}),
    "stratum_without_report": (
        {"region": ["n", "n", "n", "n", "s", "s"]}, {"status": ["observed", "observed", "pending"]}, {}
    ),
    "lone_bag": ({"region": ["n", "n", "n", "n", "s", "s"]}, {}, {}),
    "negative_weight": ({}, {"b": [1.0, 2, 0], "sales": [1.0, 0, -9], "v": [9.0] * 3},
                        {"total": None, "counts": ["sales", "b"], "noise": "v"}),
    "event_without_reference": ({"g": [0.5] * 5 + [np.nan]}, {}, {"method": "anchored", "reference": "g"}),
}  # fmt: skip


def faulty(name):
    events, reports, said = FAULTS[name]
    rows = lambda table, none: table.slice(0, 0) if none else table
    return (
        rows(pa.table(GOOD | events), name == "no_events"),
        rows(pa.table(REPORTS | reports), name == "no_reports"),
        SAID | said,
    )


def checks_of(events, reports, **said):
    return on_duckdb(
        relate(events, reports, **said).checks, events=events, reports=reports
    ).to_pylist()


def in_files(make):
    """Do something with two small files, one of them damaged at will."""
    with TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{name}.parquet" for name in ("events", "reports")]
        for path, table in zip(paths, (GOOD, REPORTS), strict=True):
            pq.write_table(pa.table(table), path)
        make(*paths)
