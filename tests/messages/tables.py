"""Bad input of tables, and the whole message that it gets."""

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from cases.tables import DAY, FOLDER, LATIN, SAID, TWO, as_csv, as_parquet, told
from unbag import join, plan_features
from unbag.tables import (
    Column,
    Columns,
    FeaturePlan,
    OldScore,
    check_tables,
    open_table,
    plain_duckdb,
)
from unbag.tables._match import report_rows
from unbag.tables._rules import TWO_KINDS
from unbag.tables._values import as_numbers


def replaced(table, **columns):
    for name, values in columns.items():
        table = table.drop_columns([name]) if name in table.column_names else table
        table = table.append_column(name, pa.array(values))
    return table


def folder_of(name, **files):
    folder = FOLDER / name
    folder.mkdir(exist_ok=True)
    for file, content in files.items():
        kind = "csv" if isinstance(content, bytes) else "parquet"
        path = folder / f"{file}.{kind}"
        path.write_bytes(content) if kind == "csv" else pq.write_table(content, path)
    return folder


def toml(text):
    path = FOLDER / "bad.toml"
    path.write_text(text)
    return path


def asked_of_duckdb(sql, **settings):
    with (
        plain_duckdb(limit=settings.get("memory_limit")),
        duckdb.connect(config=settings) as connection,
    ):
        connection.execute(sql)


@plain_duckdb()
def without_room():
    """What DuckDB raises once its files fill nine tenths of the room that it found."""
    raise duckdb.OutOfMemoryException(
        "Out of Memory Error: failed to offload data block of size 256.0 KiB (9.0 GiB/9.0 GiB "
        "used).\nThis limit was set by the 'max_temp_directory_size' setting."
    )


DAYS = (
    pa.table({"day": ["mon", "mon", "tue"], "age": [1, 2, 3]}),
    pa.table({"day": ["mon", "tue"], "sales": [1, 0]}),
)
LATE_MIX = b"bag,x\n" + b"a,1\n" * 400_000 + b"b,many\n"

TWICE = pa.table([[1], [2], [3]], names=["x", "bag", "bag"])

MESSAGES = [
    (
        lambda: report_rows(
            pa.table({"day": ["mon"], "sales": [None], "events": [4.0], "kind": ["interval"]}),
            Columns(on="day", total="sales", size="events", status="kind"),
        ),
        "A report must not be hidden for its value, because leaving it out biases the result: "
        "whether it is hidden depends on the labels: bag mon has interval (1 such bag). Ask for "
        "noisy counts or larger bags, so that none is hidden, or accept the bias with "
        "accept_bias=True.",
    ),
    (
        lambda: told(replaced(TWO, id=[[1], [2]]), id="id"),
        "Ids, strata and levels must be text, numbers, dates or truth values: a column of type "
        "list<item: int64> given. Write each as one text.",
    ),
    (
        lambda: told(noise=float("nan")),
        "A noise variance must be finite and not negative: nan given. Give with noise= the variance "
        "of the noise on a count, or a column with it.",
    ),
    (
        lambda: told(cap=2.0),
        "A cap must come with totals of counts: the kind is binary. Say kind='total', or leave cap= "
        "out.",
    ),
    (
        lambda: told(cap=0),
        "A cap must be finite and positive: 0 given. Give with cap= the largest count of one event, "
        "or leave it out.",
    ),
    (
        lambda: told(prior=1),
        "A prior must leave something to learn, and so lie inside its range: 1 given. Leave prior= "
        "out to take the size-weighted mean report.",
    ),
    (
        lambda: FeaturePlan.from_json('{"format": 1, "columns": [{"name": 3, "kind": "hash"}]}'),
        "A planned column must be one that unbag planned: {'name': 3, 'kind': 'hash'} given. Make "
        "the plan again.",
    ),
    (
        lambda: check_tables(DAYS[1], DAYS[0], "day", total="sales"),
        "The events must come first, then the reports: the second table has no column 'sales', but "
        "the first has all columns of reports. Give the two tables the other way round.",
    ),
    (
        lambda: Columns("day", total="sales", status_map={"ok": "observed"}),
        "A meaning of statuses must come with their column: none was named. Name the column with "
        "status=.",
    ),
    (
        lambda: Columns("day", total="sales", status="s", status_map={"few": "suppressed"}),
        "A status must mean one of observed, suppressed_by_size, suppressed_by_value, pending, "
        "interval: 'few' means 'suppressed'. Did you mean 'suppressed_by_size'? "
        f"{TWO_KINDS}",
    ),
    (
        lambda: open_table(TWICE),
        "A column must appear once: 'bag' appears 2 times in the events. Rename or drop the others.",
    ),
    (
        lambda: open_table(pd.DataFrame([[1, 2, 3]], columns=["bag", "x", "bag"]), thing="reports"),
        "A column must appear once: 'bag' appears 2 times in the reports. Rename or drop the others.",
    ),
    (
        lambda: open_table(as_parquet(TWICE, "twice")),
        "A column must appear once: a file of events has one name twice. Rename or drop the others.",
    ),
    (
        lambda: open_table(as_csv(TWICE, "twice")),
        "A column must appear once: a file of events has one name twice. Rename or drop the others.",
    ),
    (
        lambda: asked_of_duckdb("select list(i) from range(999999) t(i)", memory_limit="2MB"),
        "The memory must suffice for what DuckDB holds of the tables: 2MB does not. Free some "
        "of it, or work on fewer bags at a time.",
    ),
    (
        lambda: asked_of_duckdb("copy (select 1) to '/dev/full' (format csv)"),
        "The disk must have room for what DuckDB writes: there is none for /dev/full. Free "
        "some, or set TMPDIR to a folder on a larger disk.",
    ),
    (
        without_room,
        "The disk must have room for what DuckDB writes: there is none for its own files. Free "
        "some, or set TMPDIR to a folder on a larger disk.",
    ),
    (
        lambda: asked_of_duckdb("select 'x'::integer"),
        "Tables and settings must be such that DuckDB can work with them: Conversion Error: "
        "Could not convert string 'x' to INT32. Correct what it names, or export the tables again.",
    ),
    (
        lambda: told(on="bga"),
        (
            "A column must exist: 'bga' is not in the events. Did you mean 'bag'? Its columns are "
            "bag, x. (1 further problem: check_tables lists all.)"
        ),
    ),
    (
        lambda: told(total="Zz"),
        "A column must exist: 'Zz' is not in the reports. Its columns are bag, n.",
    ),
    (
        lambda: told({"bag": ["a"]}),
        "A table of events must be a frame of pandas or polars, an Arrow table, a DuckDB "
        "relation or a path: dict given. Turn it into one of these.",
    ),
    (
        lambda: told(folder_of("both", a=TWO, b=b"bag\na\n")),
        f"A path of events must be Parquet or CSV files, of one kind: {FOLDER / 'both'} has csv "
        "and parquet. Name them .parquet, .pq, .csv, .csv.gz.",
    ),
    (
        lambda: told(folder_of("neither")),
        f"A path of events must be Parquet or CSV files, of one kind: {FOLDER / 'neither'} has "
        "neither. Name them .parquet, .pq, .csv, .csv.gz.",
    ),
    (
        lambda: told(folder_of("differ", a=TWO, b=TWO.rename_columns(["bag", "y"]))),
        (
            "Files of events must have the same columns: b.parquet differs from a.parquet in x, y. "
            "Export them again."
        ),
    ),
    (
        lambda: told(as_csv(TWO, "wide", text="bag,x\na,1\n".encode("utf-16"))),
        "A CSV file must be written in UTF-8: a file of events is not. Save it again with that "
        "encoding.",
    ),
    (
        lambda: told(as_csv(TWO, "latin", text=LATIN)),
        (
            "A CSV file must be written in UTF-8: a file of events is not. Save it again with that "
            "encoding."
        ),
    ),
    (
        lambda: told(as_csv(TWO, "none", text=b"")),
        "A table of events must hold at least one row: none given. Check the export.",
    ),
    (
        lambda: told(as_csv(TWO, "late", text=LATE_MIX)),
        "A column must hold values of one type: 'x' of the events began with double and has "
        "'many' in line 400002. Correct the file, or plan the column as a category or hash.",
    ),
    (
        lambda: told(pd.DataFrame({"bag": ["a"], ("x", 1): [1.0]})),
        "Names of columns must be text: the events have ('x', 1). Rename the columns.",
    ),
    (
        lambda: told(pd.DataFrame({"bag": ["a", 1]})),
        "A column must hold values of one type: the events do not (Expected bytes, got a 'int' "
        "object Conversion failed for column bag with type object). Turn all into one type.",
    ),
    (
        lambda: told(as_csv(TWO, "ragged", text=b"bag,x\na,1,2\nb,1\n")),
        "A CSV file must be a table with one line of column names: a file of events is not "
        f"(Could not open CSV input source '{FOLDER}/ragged-2-2.csv': Invalid: CSV "
        "parse error: Row #2: Expected 2 columns, got 3: a,1,2). Correct the file.",
    ),
    (
        lambda: told(TWO.slice(0, 0)),
        "A table of events must hold at least one row: none given. Check the export.",
    ),
    (
        lambda: told(reports=SAID.slice(0, 0)),
        "A table of reports must hold at least one row: none given. Check the export.",
    ),
    (
        lambda: plan_features(TWO.slice(0, 0)),
        "A table of events must hold at least one row: none given. Check the export.",
    ),
    (
        lambda: told(proportion="n"),
        (
            "Reports must have a total, counts or a proportion, and one of these only: total "
            "and proportion given. Keep one of total= and proportion=."
        ),
    ),
    (
        lambda: told(total=None),
        (
            "Reports must have a total, counts or a proportion, and one of these only: none "
            "given. Name the column of totals with total=, or those of classes with "
            "counts=."
        ),
    ),
    (
        lambda: told(total=None, counts=["n,m"]),
        "Class counts must be two columns or more: ['n,m'] given. Where these are several columns, "
        "name each by itself.",
    ),
    (
        lambda: join(
            DAYS[0], replaced(DAYS[1], sales=[2, 0]), on="day", proportion="sales", features=["age"]
        ),
        "A proportion must lie between 0 and 1, and all of these are whole numbers, as totals are: bag "
        "mon has 2 (1 such bag). Name the column with total= in place of proportion=.",
    ),
    (
        lambda: told(total=None, proportion="n", reports=replaced(SAID, n=[40, 7])),
        "A proportion must lie between 0 and 1: bag a has 40 (2 such bags). Divide percentages by 100. "
        "Mean counts are of the kind total, and noise that was added must be declared.",
    ),
    (
        lambda: told(reports=SAID.rename_columns(["Bag", *SAID.column_names[1:]])),
        "A key must have the same name in both tables: 'bag' is in the events and not in the reports. "
        f"Rename the column; those of the reports are {', '.join(['Bag', *SAID.column_names[1:]])}. (1 "
        "further problem: check_tables lists all.)",
    ),
    (
        lambda: told(total=None, counts=["n"]),
        "Class counts must be two columns or more: ['n'] given. Use total= for one.",
    ),
    (
        lambda: Columns([], total="sales"),
        "Bags must be named by one column or more: none given. Name it with on=.",
    ),
    (
        lambda: Columns("bag", total="sales", exposure="x"),
        (
            "An exposure must come with totals of counts: the kind is binary. "
            "Say kind='total', or leave exposure= out."
        ),
    ),
    (
        lambda: Columns("bag", total="sales", kind="total", exposure="x", score="x"),
        (
            "An event must have an old score or an exposure: both given. Add the logarithm of the "
            "exposure to the score, and leave exposure= out."
        ),
    ),
    (
        lambda: OldScore("hours", exposure=True).scores(pa.table({"hours": [1.0, 0.0]})),
        (
            "An exposure must be finite and positive: event 1 has 0 (1 such event). Leave out "
            "events that were not watched at all."
        ),
    ),
    (
        lambda: told(cut=3),
        (
            "A cut must have times to compare with: neither those of reports nor those of "
            "events given. Name a column with as_of= or time=."
        ),
    ),
    (
        lambda: told(reports=replaced(SAID, t=[5, 6]), as_of="t", cut=np.nan),
        "A cut must be a moment: nan given. Leave it out for none.",
    ),
    (
        lambda: told(features="age"),
        "Features must be a list of columns: 'age' given. Write ['age'] for one.",
    ),
    (
        lambda: told(wrong_sizes="keep"),
        (
            "What is done with wrong sizes must be one of refuse, leave_out: 'keep' given. "
            "Choose one of these."
        ),
    ),
    (
        lambda: told(kind="histogram"),
        (
            "A kind must fit the columns: histogram given with total. Class counts are a "
            "histogram, totals and proportions are binary or total; leave it out."
        ),
    ),
    (
        lambda: told(replaced(TWO, bag=[1, 2])),
        "A bag id must be of one type: 'bag' is whole numbers in the events and text in the "
        "reports. Turn both into text or both into whole numbers.",
    ),
    (
        lambda: told(replaced(TWO, bag=[1.5, 2])),
        "A bag id must be text, a whole number or a date: 'bag' of the events has type double. "
        "Write it as text, in the same way in both tables.",
    ),
    (
        lambda: told(replaced(TWO, bag=["a", None])),
        (
            "A bag id must not be missing: row 1 of the events has none (1 such event). Give "
            "such events their bag, or drop them on purpose."
        ),
    ),
    (
        lambda: told(replaced(TWO, s=["u", None]), stratum="s"),
        (
            "A stratum must not be missing: row 1 of the events has none (1 such event). Give "
            "it a stratum of its own."
        ),
    ),
    (
        lambda: told(pa.table({"bag": ["a", "a"], "s": ["u", "v"]}), stratum="s"),
        (
            "A bag must lie within one stratum: bag a has u and v (1 such bag). Cut it into one"
            " bag for each, or leave the stratum out."
        ),
    ),
    (
        lambda: told(replaced(TWO, id=[7, 7]), id="id"),
        (
            "Bags must not overlap: event 7 is in bags a and b (1 such event). An event counts "
            "in one report only; choose which, as the reports do."
        ),
    ),
    (
        lambda: told(pa.table({"bag": ["a", "a", "b"], "id": [7, 7, 8]}), id="id"),
        (
            "An event must occur once: event 7 occurs again in the same bag (1 such event). Drop "
            "the copies."
        ),
    ),
    (
        lambda: told(replaced(TWO, id=[7, None]), id="id"),
        (
            "An event id must not be missing: row 1 of the events has none (1 such event). Fill"
            " it in."
        ),
    ),
    (
        lambda: told(reports=replaced(SAID, bag=["a", None])),
        (
            "A report must name its bag: row 1 of the reports has none (1 such report). Drop "
            "such rows, which are often totals of the page."
        ),
    ),
    (
        lambda: told(reports=replaced(SAID, bag=["a", "a"])),
        (
            "A bag must have one report: bag a has several (1 such bag). Name with as_of= the "
            "column that tells which is latest; of two as of one time drop one. Where several "
            "columns name a bag, name all of them."
        ),
    ),
    (
        lambda: told(reports=pa.table({"bag": ["a", "a"], "n": [1, 0], "t": [5, 5]}), as_of="t"),
        (
            "A bag must have one report: bag a has several (1 such bag). Name with as_of= the "
            "column that tells which is latest; of two as of one time drop one. Where several "
            "columns name a bag, name all of them."
        ),
    ),
    (
        lambda: told(reports=replaced(SAID, t=[5, None]), as_of="t"),
        (
            "An as-of time must not be missing, and text must look like 2026-11-16 05:30: bag b"
            " has none (1 such report). Fill it in, or write it so."
        ),
    ),
    (
        lambda: told(reports=replaced(SAID, t=[5, 6]), as_of="t", cut="2026-01-01"),
        "A cut must be of the kind of the times: '2026-01-01' given and 't' of the reports has "
        "type int64. Give a date for dates, and a number for numbers.",
    ),
    (
        lambda: told(reports=replaced(SAID, t=["5th", "5th"]), as_of="t"),
        (
            "A time must be written like 2026-11-16 or 2026-11-16 05:30: 't' of the reports has "
            "'5th'. Write it so."
        ),
    ),
    (
        lambda: told(reports=replaced(SAID, t=[True, False]), as_of="t"),
        (
            "A time must be a date, a moment or a number: 't' of the reports has type bool. Choose "
            "another column."
        ),
    ),
    (
        lambda: told(reports=replaced(SAID, k=[1, 3]), size="k"),
        (
            "A reported size must be the number of events of the bag: bag b has 3 reported and "
            "1 in the table (1 such bag). Find the missing or doubled events, or leave such "
            "bags out with wrong_sizes='leave_out'."
        ),
    ),
    (
        lambda: told(reports=replaced(SAID, n=[1, -1])),
        (
            "A report without noise must not be negative: bag b has -1 (1 such bag). If noise was "
            "added, say so with epsilon=, or give its variance with noise=."
        ),
    ),
    (
        lambda: told(reports=replaced(SAID, n=[2, 1])),
        (
            "A total must lie between 0 and the number of events: bag a has 2 of 1 (1 such "
            "bag). Say kind='total' where an event may count more than once, or give the "
            "variance of the noise with noise=."
        ),
    ),
    (
        lambda: told(reports=replaced(SAID, m=[0, 2]), total=None, counts=["n", "m"]),
        (
            "Class counts must add up to the number of events: bag b has 2 of 1 (1 such bag). "
            "Name all classes, also the one of events without a label, or give the variance of "
            "the noise with noise=."
        ),
    ),
    (
        lambda: told(reports=replaced(SAID, bag=["A", "B"])),
        (
            "At least one bag must have events and a report: none has; the first of the events "
            "is a, of the reports A. Write the ids in the same way in both tables, or wait for "
            "reports; a cut= must come after some of them."
        ),
    ),
    (
        lambda: told(reports=replaced(SAID, t=[5, 6]), as_of="t", cut=1),
        (
            "At least one bag must have events and a report: none has; the first of the events "
            "is a, of the reports none. Write the ids in the same way in both tables, or wait "
            "for reports; a cut= must come after some of them."
        ),
    ),
    (
        lambda: told(reports=replaced(SAID, n=[1, None])),
        "A report must be finite: bag b has nan (1 such bag). Say with status= which bags are "
        "suppressed or pending, or fix the export; never write 0 for them.",
    ),
    (
        lambda: told(reports=replaced(SAID, s=[None, "interval"]), status="s"),
        "A report must not be hidden for its value, because leaving it out biases the result: "
        "whether it is hidden depends on the labels: bag b has interval (1 such bag). Ask for "
        "noisy counts or larger bags, so that none is hidden, or accept the bias with "
        "accept_bias=True.",
    ),
    (
        lambda: told(replaced(TWO, bag=["a", None]), reports=replaced(SAID, bag=["a", "a"])),
        (
            "A bag id must not be missing: row 1 of the events has none (1 such event). Give "
            "such events their bag, or drop them on purpose. (1 further problem: check_tables "
            "lists all.)"
        ),
    ),
    (
        lambda: told(reports=replaced(SAID, n=["1", "<5"])),
        "A column of numbers must hold numbers: 'n' of the reports has '<5'. Correct it, or leave "
        "it empty where there is none and say why with a status.",
    ),
    (
        lambda: as_numbers(pa.array(["1", "x"]), name="age"),
        "A column of numbers must hold numbers: 'age' of the events has 'x'. Correct it, or leave it "
        "empty where there is none.",
    ),
    (
        lambda: told(reports=replaced(SAID, n=["1", "1,234"])),
        "A column of numbers must hold numbers: 'n' of the reports has '1,234'. Write numbers with a "
        "decimal point and without separators of thousands: 1234.5, not 1,234.5 or 1.234,5.",
    ),
    (
        lambda: told(reports=replaced(SAID, n=[DAY(2026, 1, 1)] * 2)),
        "A column of numbers must hold numbers: 'n' of the reports has type date32[day]. Choose "
        "another column, or another kind in the plan.",
    ),
    (
        lambda: plan_features(TWO, leave_out=["bag", "x"]),
        "A plan must have at least one feature: none is left (). Add columns to the events.",
    ),
    (
        lambda: plan_features(TWO.slice(0, 1)),
        "A plan must have at least one feature: none is left (bag: it has one value only; x: it "
        "has one value only). Add columns to the events.",
    ),
    (
        lambda: plan_features(
            pa.table({"c": [f"v{i}" for i in range(1001)]}), override={"c": "category"}
        ),
        (
            "A category must have at most 1000 values: column 'c' has more. Give its values, or "
            "plan it as a hash."
        ),
    ),
    (
        lambda: plan_features(TWO, override={"xx": "drop"}),
        "A column must exist: 'xx' is not in the events. Did you mean 'x'? Its columns are bag, x.",
    ),
    (
        lambda: plan_features(TWO).apply(TWO.rename_columns(["bag", "X"])),
        "A column must exist: 'x' is not in the events. Its columns are bag, X.",
    ),
    (
        lambda: FeaturePlan((Column("new", "boolean"),)).apply(pa.table({"new": ["maybe"]})),
        (
            "A truth value must be one of true, 1, yes, false, 0, no: 'maybe' given in column "
            "'new'. Plan it as a category."
        ),
    ),
    (
        lambda: FeaturePlan.from_json("{}"),
        "A plan must be JSON that unbag wrote: something else given. Make it again.",
    ),
    (
        lambda: FeaturePlan.from_json('{"format": 9, "columns": []}'),
        "A plan must have format 1: 9 given. Use the unbag that wrote it.",
    ),
    (
        lambda: plan_features(TWO, override=toml("[columns.x\n")),
        "A file of a plan must be TOML: bad.toml is not (Expected ']' at the end of a table "
        "declaration (at line 1, column 11)). Correct the file.",
    ),
    (
        lambda: plan_features(TWO, override=toml("[x]\nkind = 'drop'\n")),
        "A file of a plan must have tables [columns.<name>] only: 'x' given in bad.toml. Write "
        "[columns.shop] and below it kind = 'hash'.",
    ),
    (
        lambda: plan_features(TWO, override={"x": {"kind": "hash", "bucket": 5}}),
        "A planned column must have a kind, and buckets, dimension or values: column 'x' has "
        "bucket. Did you mean 'buckets'? Correct its settings.",
    ),
    (
        lambda: plan_features(TWO, override={"x": {"buckets": 5}}),
        "A planned column must have a kind, and buckets, dimension or values: column 'x' has no "
        "kind. Correct its settings.",
    ),
    (
        lambda: plan_features(TWO, override={"x": "numerical"}),
        "A planned kind must be one of numeric, category, hash, date, boolean, drop: "
        "'numerical' given for column 'x'. Did you mean 'numeric'? Choose one.",
    ),
    (
        lambda: plan_features(TWO, override={"x": {"kind": "hash", "buckets": 2**25}}),
        "Buckets must be a whole number from 2 to 16777216, a dimension one from 1: 33554432 "
        "and 0 given for column 'x'. Leave them out to have them chosen.",
    ),
    (
        lambda: FeaturePlan((Column("t", "date", parts=("hour",)),)).apply(pa.table({"t": [5]})),
        "A column of times must hold dates, moments or text like 2026-11-16 05:30: 't' of the "
        "events has numbers (int64). Turn them into moments, as pandas.to_datetime(values, "
        "unit='s') does.",
    ),
]
