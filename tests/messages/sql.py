"""Bad input of sql, and the whole message that it gets."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cases.sql import GOOD, REPORTS, SAID, checks_of, faulty, ibis, in_files, relate
from unbag import sql
from unbag.cli._weights import weights


def ask(**change):
    events, reports = pa.table(GOOD), pa.table(REPORTS)
    return relate(events, reports, **(SAID | change))


def many_ids(events, reports):
    pq.write_table(
        pa.table({"day": np.arange(300_000) // 2, "click": [f"click {i}" for i in range(300_000)]}),
        events,
    )
    pq.write_table(pa.table({"day": np.arange(150_000), "sales": np.ones(150_000)}), reports)
    sql.write_targets(
        events,
        reports,
        events.with_name("t.parquet"),
        memory="5MB",
        on="day",
        total="sales",
        id="click",
    )


def long_csv(events, reports):
    events = events.with_suffix(".csv")
    events.write_bytes(b"day,x\n" + b"a,1\n" * 300_000 + "é,1\n".encode("latin-1"))
    sql.write_targets(
        events, reports, events.with_name("t.parquet"), on="day", total="sales", kind="total"
    )


MESSAGES = [
    (
        lambda: in_files(long_csv),
        "A CSV file must be written in UTF-8: a file of events is not. Save it again with that "
        "encoding.",
    ),
    (
        lambda: relate(pa.table(GOOD | {"Unbag_W_0": [1.0] * 6}), pa.table(REPORTS), **SAID),
        "A column in SQL must not be named unbag_..., as those that live inside the query: "
        "'Unbag_W_0' of the events is. Rename it.",
    ),
    (
        lambda: relate(pa.table(GOOD | {"DAY": [1.0] * 6}), pa.table(REPORTS), **SAID),
        "Columns in SQL must differ in more than upper and lower case: 'day' and 'DAY' of the "
        "events do not. Rename one of them.",
    ),
    (
        lambda: ask(method="matching"),
        "A method in SQL must be one of anchored, upm, easy: 'matching' given. Choose one of these.",
    ),
    (
        lambda: ask(method="anchored"),
        "Method anchored must have 1 column(s) with a reference prediction: 0 given. Name with "
        "reference= one of the events, or one for each class; only anchored has any.",
    ),
    (
        lambda: ask(method="upm", reference="g"),
        "Method upm must have no column(s) with a reference prediction: 1 given. Name with "
        "reference= one of the events, or one for each class; only anchored has any.",
    ),
    (
        lambda: ask(stratum="when"),
        "Ids, strata and statuses in SQL must be text, whole numbers or dates: 'when' of the "
        "events has type timestamp(6). Cast it first, because engines write other types in "
        "their own ways.",
    ),
    (
        lambda: ask(keep=["age"]),
        "A column to keep must be one of the events, and not weight_1, weight_2, target, "
        "sample_weight: 'age' is not in the events. Rename it, or name others with keep=.",
    ),
    (
        lambda: relate(
            pa.table(GOOD).rename_columns(["day", "click", "region", "when", "target"]),
            pa.table(REPORTS),
            **SAID,
        ),
        "A column to keep must be one of the events, and not weight_1, weight_2, target, "
        "sample_weight: 'target' is the name of a result. Rename it, or name others with keep=.",
    ),
    (
        lambda: sql.as_sql(ibis.table({"a": "int64"}, name="t"), dialect="klingon"),
        "A dialect must be one that Ibis can write here: 'klingon' cannot be (Unknown dialect klingon). Use duckdb; or "
        'spark after pip install "unbag[spark]".',
    ),
    (
        lambda: sql.confirm(checks_of(*faulty("wrong_size")[:2], **SAID)),
        (
            "A reported size must be the number of events of the bag: bag b has 3 reported and "
            "2 in the table (1 such bag). Find the missing or doubled events, or leave such "
            "bags out with wrong_sizes='leave_out'."
        ),
    ),
    (
        lambda: sql.design(ibis.table({"bag": "int64"}, name="t"), "bag", size=2),
        "Events to design must have no bag yet: they have a column 'bag'. Rename or drop it.",
    ),
    (
        lambda: in_files(many_ids),
        "The memory must suffice for one line for each bag, and ids if they are checked: 5MB "
        "does not. Allow more with memory=, leave id= out, or work on fewer bags at a time.",
    ),
    (
        lambda: in_files(
            lambda e, r: sql.write_targets(e, r, e.with_name("t.parquet"), memory="much", **SAID)
        ),
        "Tables and settings must be such that DuckDB can work with them: Parser Error: Memory "
        "must have a number (e.g. 1GB). Correct what it names, or export the tables again.",
    ),
    (
        lambda: weights(SimpleNamespace(obj=None), Path("e"), Path("r")),
        "Targets must go to a file: --out is missing. Name one, or print the SQL with --sql.",
    ),
]
