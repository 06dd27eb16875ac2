"""Weights in SQL equal those of NumPy, row for row, on DuckDB and on a real Spark; so do bags by
hash."""

import sys
from dataclasses import replace
from datetime import datetime
from importlib import import_module

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import csv
from typer.testing import CliRunner

from cases.spark import java_version, spark_session
from cases.sql import (
    FAULTS,
    GOOD,
    REPORTS,
    SAID,
    checks_of,
    faulty,
    in_files,
    named,
    on_duckdb,
    relate,
)
from unbag import check_tables, design_bags, join, sql, weights
from unbag.bags import as_components, mean_label_variance
from unbag.cli import app
from unbag.tables import LEFT_OUT as LEFT_OUT_RULES
from unbag.tables import RULES, TablesReport


def by_numpy(events, reports, *, method="upm", reference=None, **said):
    """Row number, weights, target and sample weight of each event, by `join` and `weights`."""
    bags = join(events, reports, features=(), **said).reported()
    noisy = None if bags.noise is None else bags.noise
    w = (
        noisy
        if noisy is None
        else weights.noise_weights(
            bags.size,
            noisy,
            variance=mean_label_variance(bags.prior, bags.kind),
            stratum=bags.stratum,
        )
    )
    given_ = (bags.size, *bags.components())
    if method == "anchored":
        g = (
            events[reference].to_numpy()
            if isinstance(reference, str)
            else np.stack([events[c].to_numpy() for c in reference], 1)
        )
        W = weights.anchored(
            bags.bag,
            *given_,
            as_components(g[bags.rows], bags.kind),
            weight=w,
            stratum=bags.stratum,
        )
    else:
        W = getattr(weights, method)(*given_, weight=w, stratum=bags.stratum)[bags.bag]
    label = weights.pseudo_labels(W, kind=bags.kind)
    order = np.argsort(bags.rows)
    return bags.rows[order], W[order], np.asarray(label.target)[order], label.sample_weight[order]


def columns_of(found, said):
    """The same four from the table that an engine gave."""
    found = found.sort_by("row")
    counts = said.get("counts")
    weight = [f"weight_{part}" for part in counts or ("1", "2")]
    target = [f"target_{part}" for part in counts] if counts else ["target"]
    stack = lambda names: np.stack([found[name].to_numpy() for name in names], axis=1)
    targets = stack(target)
    return (
        found["row"].to_numpy(),
        stack(weight),
        targets if counts else targets[:, 0],
        found["sample_weight"].to_numpy(),
    )


def same(one, other):
    np.testing.assert_array_equal(one[0], other[0])
    for a, b in zip(one[1:], other[1:], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-13)


def problem(
    seed,
    *,
    strata=1,
    classes=0,
    noisy=False,
    unseen=False,
    proportion=False,
    restated=False,
    text=False,
    method="upm",
):
    """Random events and reports with ragged sizes, and what is said of their columns."""
    rng = np.random.default_rng(seed)
    bags = int(rng.integers(2, 5)) * strata + 2 * unseen * strata
    size, stratum = rng.integers(1, 6, bags), np.arange(bags) % strata
    bag = rng.permutation(np.repeat(np.arange(bags), size))
    n = len(bag)
    name = lambda numbers: [f"bag {b:02d}" for b in numbers] if text else np.asarray(numbers) * 7
    events = {
        "row": np.arange(n),
        "day": name(bag),
        "x": rng.normal(size=n),
        "region": [f"s{s}" for s in stratum[bag]],
    }
    y = rng.integers(0, max(classes, 2), n)
    total = np.bincount(bag, weights=y, minlength=bags) + (rng.normal(size=bags) if noisy else 0)
    reports = {
        "day": name(np.arange(bags)),
        "sales": total,
        "events": size,
        "v": rng.choice([0.5, 2.0], bags),
    }
    said = {"on": "day", "total": "sales", "size": "events"}
    if classes:
        hist = np.stack([np.bincount(bag, weights=y == c, minlength=bags) for c in range(classes)])
        hist = hist + (rng.normal(size=hist.shape) * 0.02 if noisy else 0)
        reports |= {f"c{c}": hist[c] for c in range(classes)}
        said = {"on": "day", "counts": [f"c{c}" for c in range(classes)]}
    if proportion:
        reports["sales"] = total / size
        said = {"on": "day", "proportion": "sales"}
    said |= {"noise": "v"} if noisy else {}
    said |= {"stratum": "region"} if strata > 1 else {}
    said |= {"method": method}
    if unseen:  # in each stratum one bag is suppressed for its size, and one has no report yet
        status = np.array(["observed"] * bags, dtype=object)
        status[:strata] = "suppressed_by_size"
        reports = {
            k: np.asarray(v)[: bags - strata] for k, v in (reports | {"status": status}).items()
        }
        said["status"] = "status"
    if restated:
        early = {k: np.asarray(v)[:1] for k, v in reports.items()}
        early |= {k: early[k] * 0 for k in early if k in ("sales", "c0")}
        reports = {k: np.concatenate([np.asarray(v), early[k]]) for k, v in reports.items()}
        reports["made"] = np.array(
            ["2026-11-10"] * (len(reports["day"]) - 1) + ["2026-11-09"], "datetime64[us]"
        )
        said |= {"as_of": "made", "cut": "2026-11-16"}
    if method == "anchored":
        g = rng.dirichlet(np.ones(max(classes, 2)), n)
        events |= {f"g{i}": g[:, i] for i in range(max(classes, 1))}
        said["reference"] = [f"g{i}" for i in range(classes)] if classes else "g0"
    return pa.table(events), pa.table(reports), said


CASES = {
    "ragged sizes": {},
    "noise in strata": {"noisy": True, "strata": 3},
    "pending and suppressed": {"unseen": True, "strata": 2},
    "proportions, ids as text": {"proportion": True, "text": True},
    "a restated report and a cut": {"restated": True},
    "EasyLLP": {"method": "easy", "noisy": True, "strata": 2},
    "anchored": {"method": "anchored", "strata": 2, "unseen": True},
    "anchored under noise": {"method": "anchored", "noisy": True},
    "classes": {"classes": 3, "noisy": True, "strata": 2},
    "classes, anchored": {"classes": 3, "method": "anchored"},
}


@pytest.mark.parametrize("case", CASES)
def test_duckdb_gives_the_rows_of_numpy(case):
    events, reports, said = problem(1, **CASES[case])
    related = relate(events, reports, id="row", **said)
    told = sql.confirm(on_duckdb(related.checks, events=events, reports=reports).to_pylist())
    expected = by_numpy(events, reports, **said)
    same(columns_of(on_duckdb(related.targets, events=events, reports=reports), said), expected)
    kept = {k: v for k, v in said.items() if k not in ("method", "reference")}
    ours = check_tables(events, reports, **kept)
    assert told == ours


@settings(max_examples=10)
@given(
    st.integers(0, 2**32),
    st.sampled_from([1, 2]),
    st.sampled_from([0, 3]),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["upm", "easy", "anchored"]),
)
def test_any_tables_give_the_rows_of_numpy(seed, strata, classes, noisy, unseen, method):
    events, reports, said = problem(
        seed, strata=strata, classes=classes, noisy=noisy, unseen=unseen, method=method
    )
    found = on_duckdb(relate(events, reports, **said).targets, events=events, reports=reports)
    same(columns_of(found, said), by_numpy(events, reports, **said))


def test_totals_of_counts_are_weighted_by_the_variance_of_poisson_counts():
    events, reports, said = problem(3, noisy=True)
    reports = reports.set_column(1, "sales", pa.array(reports["sales"].to_numpy() * 5 + 5))
    said["kind"] = "total"
    found = on_duckdb(relate(events, reports, **said).targets, events=events, reports=reports)
    same(columns_of(found, said), by_numpy(events, reports, **said))


# --- what is refused: a change to good tables for each check ---


NOT_IN_JOIN = ("event_without_reference", "stratum_without_report", "lone_bag", "negative_weight")
RAISED_AT_ONCE = ("no_events", "no_reports", "event_with_unclear_time")


@pytest.mark.parametrize("name", FAULTS)
def test_numpy_join_and_sql_refuse_the_same_in_the_same_words(name):
    events, reports, said = faulty(name)
    checks = checks_of(events, reports, **said)
    assert name in [line["check"] for line in checks if line["refused"] and line["rows"]]
    if name != "event_without_reference":  # which NumPy takes as numbers
        with pytest.raises(ValueError):
            by_numpy(events, reports, **said)
    if name in RAISED_AT_ONCE:
        return
    ours = {k: v for k, v in said.items() if k not in ("method", "reference")}
    numpy = check_tables(events, reports, **ours)
    lines = [line for line in checks if line["check"] not in NOT_IN_JOIN]
    database = sql.confirm(lines, refuse=False)
    assert (name in NOT_IN_JOIN) or numpy.refused
    assert numpy[:6] == database[:6]
    for one, other in zip(numpy.refused, database.refused, strict=True):
        if "row " in one.offender:  # a database has no row numbers
            assert other.offender.endswith("has none")
            other = replace(other, offender=one.offender)
        assert one == other


@pytest.mark.parametrize(("column", "value"), [("sales", np.inf), ("sales", 1e19), ("v", np.inf)])
def test_numbers_that_no_count_can_be_are_refused_alike(column, value):
    events, reports, said = problem(0, noisy=column == "v")
    changed = reports[column].to_numpy().astype(float)
    changed[0] = value
    reports = reports.set_column(reports.column_names.index(column), column, pa.array(changed))
    del said["method"]
    database = sql.confirm(checks_of(events, reports, **said), refuse=False)
    assert database.refused
    assert check_tables(events, reports, **said) == database


def test_good_tables_are_not_refused():
    events, reports = pa.table(GOOD), pa.table(REPORTS)
    told = sql.confirm(checks_of(events, reports, **SAID))
    assert told == TablesReport(6, 3, 3, 3, 6, (), ())


def test_the_size_of_a_report_that_is_not_there_is_not_compared():
    changed = REPORTS | {"status": ["observed", "observed", "pending"], "events": [2, 2, 5]}
    events, reports = pa.table(GOOD), pa.table(changed)
    told = sql.confirm(checks_of(events, reports, **SAID))
    assert told == check_tables(events, reports, **SAID)
    assert not told.refused


def test_where_nobody_knows_a_word_it_is_not_said_that_nothing_is_observed():
    events, reports = pa.table(GOOD), pa.table(REPORTS | {"status": ["lost"] * 3})
    told = check_tables(events, reports, **SAID)
    assert [one.rule for one in told.refused] == [RULES["unknown_status"].rule]
    refused = [line for line in checks_of(events, reports, **SAID) if line["refused"]]
    assert "nothing_observed" not in [line["check"] for line in refused if line["rows"]]


def test_every_check_is_in_these_tables():
    assert set(FAULTS) | {"small_stratum", "stratum_not_expected"} == set(RULES)
    assert set(LEFT_OUT_RULES) == set(LEFT_OUT)


LEFT_OUT = {
    "bag_without_events": ({}, {"day": ["a", "b", "z"]}, {}),
    "bag_without_report": ({}, {"day": ["a", "b", "z"]}, {}),
    "late_report": ({}, {"made": np.array(["2026-11-02", "2026-11-02", "2026-11-20"], "datetime64[us]")},
                    {"as_of": "made", "cut": "2026-11-16"}),
    "older_report": ({}, {"day": ["a", "b", "b"], "made": [datetime(2026, 11, day) for day in (2, 2, 3)]},
                     {"as_of": "made"}),
    "late_bag": ({"when": np.array(["2026-11-01"] * 5 + ["2026-11-17"], "datetime64[us]")}, {},
                 {"time": "when", "cut": "2026-11-16"}),
    "other_size": ({}, {"events": [2, 2, 5]}, {"wrong_sizes": "leave_out"}),
    "not_observed": ({}, {"status": ["observed", "", "pending"]}, {}),
}  # fmt: skip


@pytest.mark.parametrize("name", LEFT_OUT)
def test_what_is_left_out_is_told_and_the_rest_equals_numpy(name):
    events, reports, said = LEFT_OUT[name]
    events, reports, said = pa.table(GOOD | events), pa.table(REPORTS | reports), SAID | said
    lines = {line["check"]: line for line in checks_of(events, reports, **said)}
    assert lines[name]["rows"] == 1
    told = sql.confirm(lines.values())
    assert any(LEFT_OUT_RULES[name].one in text for text in told.left_out)
    assert told == check_tables(events, reports, **said)
    events = events.append_column("row", pa.array(np.arange(len(events))))
    done = on_duckdb(relate(events, reports, **said).targets, events=events, reports=reports)
    same(columns_of(done, said), by_numpy(events, reports, **said))


def test_times_of_any_type_are_compared_with_the_cut():
    moment = np.array(
        ["2026-11-15"] * 5 + ["2026-11-16"], "datetime64[us]"
    )  # the cut is the first moment of its day
    for when, cut in (
        (pa.array(moment).cast(pa.timestamp("us", "UTC")), "2026-11-16"),
        (pa.array(moment).cast(pa.date32()), "2026-11-16"),
        (pa.array([str(m)[:10] for m in moment]), "2026-11-16"),
        (pa.array([1.0, 2, 3, 4, 5, 50]), 50),
        (pa.array([1, 2, 3, 4, 5, None]), 50),
    ):
        events, reports = pa.table(GOOD | {"when": when}), pa.table(REPORTS)
        said = SAID | {"time": "when", "cut": cut}
        lines = {line["check"]: line["rows"] for line in checks_of(events, reports, **said)}
        assert lines["late_bag"] == 1
        assert check_tables(events, reports, **said).bags == 2


MADE = {  # of the first and the second report of a bag
    "months first": ["12/31/2025", "01/05/2026"],
    "months first or days first": ["12/01/2026", "01/05/2026"],
    "versions as text": ["9", "10"],
    "versions": [9, 10],
    "a T in one": ["2026-01-05T01:00:00", "2026-01-05 09:00:00"],
    "a day and a moment": ["2026-01-05", "2026-01-05 09:00"],
    "zones": ["2026-01-05T09:30:00+09:00", "2026-01-05T01:00:00Z"],
    "no number": [1.0, np.nan],
    "no text": ["2026-01-05", ""],
    "no such day": ["2026-01-05", "2026-02-30"],
    "no day": ["2026-01-05", "infinity"],
}


def outcome(make):
    """What is made, or that it was refused."""
    try:
        return make()
    except ValueError:
        return "refused"


def restated_at(made):
    events = pa.table(GOOD | {"row": np.arange(6)})
    reports = pa.table(
        {"day": ["a", "a", "b", "c"], "sales": [0, 2, 1, 1], "made": [*made, made[0], made[0]]}
    )
    return events, reports


IN_CSV = ("months first", "months first or days first", "versions", "a T in one", "zones")


@pytest.mark.parametrize("case", IN_CSV)
def test_the_latest_report_of_a_file_is_the_one_that_join_takes(case, tmp_path):
    files = [tmp_path / name for name in ("events.csv", "reports.csv", "targets.parquet")]
    for table, file in zip(restated_at(MADE[case]), files[:2], strict=True):
        csv.write_csv(table, file)
    said = {"on": "day", "total": "sales", "as_of": "made"}
    numpy = outcome(lambda: by_numpy(*files[:2], **said))
    made = outcome(lambda: sql.write_targets(*files, **said))
    assert (numpy == "refused") == (made == "refused"), (numpy, made)
    if made != "refused":
        same(columns_of(pq.read_table(files[2]), said), numpy)


BEFORE_A_CUT = [(case, "2026-01-05 00:45") for case in ("months first", "a T in one", "zones")]


@pytest.mark.parametrize("case, cut", [*((case, None) for case in MADE), *BEFORE_A_CUT])
def test_the_latest_report_before_a_cut_is_the_one_that_join_takes(case, cut):
    said = {"on": "day", "total": "sales", "as_of": "made"} | ({"cut": cut} if cut else {})
    events, reports = restated_at(MADE[case])
    numpy = outcome(lambda: by_numpy(events, reports, **said))
    told = outcome(lambda: sql.confirm(checks_of(events, reports, **said)))
    assert (numpy == "refused") == (told == "refused"), (numpy, told)
    if told != "refused":
        targets = relate(events, reports, **said).targets
        same(columns_of(on_duckdb(targets, events=events, reports=reports), said), numpy)


# --- bags by hash ---

IDS = pa.table(
    {
        "click": [f"click-{i}é" for i in range(60)],
        "campaign": ["brand"] * 36 + ["shop"] * 24,
        "n": np.arange(60),
    }
)
DESIGNS = {
    "closed": ("click", {"size": 7, "salt": "spring"}),
    "closed, whole numbers": ("n", {"size": 9}),
    "closed, strata": ("click", {"size": 5, "stratum": "campaign", "salt": "x"}),
    "arriving": ("n", {"size": 8, "expected": 1004}),
    "arriving, strata": (
        "click",
        {"size": 8, "stratum": "campaign", "expected": {"brand": 500, "shop": 90}},
    ),
}


def designed_by_numpy(case):
    id, said = DESIGNS[case]
    stratum = IDS[said["stratum"]].to_pylist() if "stratum" in said else None
    return design_bags(IDS[id].to_pylist(), **(said | {"stratum": stratum})).tolist()


@pytest.mark.parametrize("case", DESIGNS)
def test_duckdb_assigns_the_bags_of_numpy(case):
    id, said = DESIGNS[case]
    made = sql.design(named(IDS, "events"), id, **said)
    assert sql.confirm(on_duckdb(made.checks, events=IDS).to_pylist()).events == 60
    assert on_duckdb(made.events, events=IDS).sort_by("n")["bag"].to_pylist() == designed_by_numpy(
        case
    )


@pytest.mark.parametrize(
    "ids, said, check",
    [
        (IDS.slice(0, 12), {"size": 7}, "small_stratum"),
        (pa.concat_tables([IDS, IDS.slice(0, 2)]), {"size": 7}, "event_twice"),
        (IDS.slice(0, 0), {"size": 7}, "no_events"),
        (IDS.set_column(0, "click", pa.array([""] * 60)), {"size": 7}, "event_without_id"),
        (
            IDS.set_column(1, "campaign", pa.array([""] * 60)),
            {"size": 7, "stratum": "campaign"},
            "event_without_stratum",
        ),
        (
            IDS,
            {"size": 7, "stratum": "campaign", "expected": {"brand": 90}},
            "stratum_not_expected",
        ),
    ],
)
def test_a_design_that_cannot_be_is_found(ids, said, check):
    made = sql.design(named(ids, "events"), "click", **said)
    lines = on_duckdb(made.checks, events=ids).to_pylist()
    assert check in [line["check"] for line in lines if line["rows"] and line["refused"]]
    with pytest.raises(ValueError):
        sql.confirm(lines)


# --- files and the command line ---


@pytest.fixture
def files(tmp_path):
    events, reports, _ = problem(5, text=True, strata=2, noisy=True)
    for name, table in (("events", events), ("reports", reports)):
        pq.write_table(table, tmp_path / f"{name}.parquet")
        csv.write_csv(table, tmp_path / f"{name}.csv")
    return tmp_path


WORDS = [
    "--on",
    "day",
    "--total",
    "sales",
    "--size",
    "events",
    "--stratum",
    "region",
    "--noise",
    "v",
    "--id",
    "row",
]


def unbag(*words):
    return CliRunner().invoke(app, ["weights", *map(str, words)])


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_the_command_writes_what_numpy_gives(files, form):
    out = files / f"targets.{form}"
    done = unbag(
        files / f"events.{form}",
        files / f"reports.{form}",
        *WORDS,
        "--out",
        out,
        "--memory",
        "200MB",
    )
    assert done.exit_code == 0, done.output
    made = pq.read_table(out) if form == "parquet" else csv.read_csv(out)
    said = {"on": "day", "total": "sales", "size": "events", "stratum": "region", "noise": "v"}
    events, reports = (pq.read_table(files / f"{name}.parquet") for name in ("events", "reports"))
    same(columns_of(made, said), by_numpy(events, reports, **said))
    again = unbag(files / f"events.{form}", files / f"reports.{form}", *WORDS, "--out", out)
    assert again.exit_code == 1
    assert "An output must not exist yet" in again.output


def test_the_command_prints_sql_that_runs(files):
    done = unbag(
        files / "events.parquet", files / "reports.parquet", *WORDS, "--keep", "row", "--sql"
    )
    checks, targets = (part for part in done.stdout.split(";\n") if part.strip())
    with duckdb.connect() as connection:
        for name in ("events", "reports"):
            connection.execute(f"create view {name} as from '{files / name}.parquet'")
        assert sql.confirm(connection.sql(checks).to_arrow_table().to_pylist()).reports > 0
        assert connection.sql(targets).columns == [
            "row",
            "weight_1",
            "weight_2",
            "target",
            "sample_weight",
        ]
    spark = unbag(
        files / "events.parquet", files / "reports.parquet", *WORDS, "--sql", "--dialect", "spark"
    )
    assert spark.exit_code == 0 or "unbag[spark]" in spark.output


def test_what_is_refused_leaves_no_file(files):
    events = files / "events.parquet"
    pq.write_table(pa.concat_tables([pq.read_table(events)] * 2), events)
    done = unbag(events, files / "reports.parquet", *WORDS, "--out", files / "targets.parquet")
    assert done.exit_code == 1
    assert "An event must occur once" in done.output
    assert not (files / "targets.parquet").exists()


def test_without_ibis_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ibis", None)
    monkeypatch.delitem(sys.modules, "unbag.sql")
    with pytest.raises(ImportError) as error:
        import_module("unbag.sql")
    assert (
        str(error.value) == 'SQL must have Ibis: it is not installed. Use pip install "unbag[sql]".'
    )


def test_ids_of_parquet_and_of_csv_are_compared_as_text(tmp_path):
    events = pa.table({"day": [1, 1, 2, 2], "row": np.arange(4)})
    pq.write_table(events, tmp_path / "events.PARQUET")  # the case of an ending says nothing
    (tmp_path / "reports.csv").write_text("day;sales\n1;2\n2;0\n")
    files = [tmp_path / name for name in ("events.PARQUET", "reports.csv", "targets.parquet")]
    said = {"on": "day", "total": "sales"}
    assert sql.write_targets(*files, **said).observed == 2
    same(columns_of(pq.read_table(files[2]), said), by_numpy(*files[:2], **said))


def test_the_bag_may_be_the_name_of_a_folder_of_csv_files(tmp_path):
    for day in (1, 2):
        (tmp_path / f"events/day={day}").mkdir(parents=True)
        (tmp_path / f"events/day={day}/a.csv").write_text(f"row\n{2 * day}\n{2 * day + 1}\n")
    (tmp_path / "reports.csv").write_text("day,sales\n1,2\n2,0\n")
    files = [tmp_path / name for name in ("events", "reports.csv", "targets.parquet")]
    said = {"on": "day", "total": "sales"}
    assert sql.write_targets(*files, **said).observed == 2
    assert pq.read_table(files[2]).sort_by("row")["row"].to_pylist() == [2, 3, 4, 5]


BAD_FILES = {
    "in Latin 1": {"events.csv": "day,x\na,1\nb,2\nmün,3\n".encode("latin-1")},
    "of no byte": {"events.csv": b""},
    "with a long row": {"events.csv": b"day,x\na,1\nb,2,3\na,2\n"},
    "with a short row": {"events.csv": b"day,x,y\na,1,1\nb,2\na,2,2\n"},
    "of different columns": {"events/1.csv": b"day,x\na,1\n", "events/2.csv": b"day,z\nb,1\n"},
}


@pytest.mark.parametrize("files", BAD_FILES.values(), ids=BAD_FILES)
def test_bad_files_are_refused_in_the_words_of_join(files, tmp_path):
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    (tmp_path / "reports.csv").write_text("day,sales\na,1\nb,1\n")
    given_ = (tmp_path / next(iter(files)).split("/")[0], tmp_path / "reports.csv")
    with pytest.raises(ValueError) as numpy:
        join(*given_, on="day", total="sales")
    with pytest.raises(ValueError) as database:
        sql.write_targets(*given_, tmp_path / "targets.parquet", on="day", total="sales")
    assert str(database.value) == str(numpy.value)


def test_a_full_disk_is_not_told_as_a_bad_file():
    def fill(events, reports):
        with sql.query_files(events, reports, **SAID) as (connection, _):
            connection.execute("copy events to '/dev/full' (format csv)")

    with pytest.raises(
        ValueError, match=r"^The disk must have room .* there is none for /dev/full. Free some"
    ):
        in_files(fill)


# --- a real Spark ---


# all that the cases above differ by, in few queries: Spark takes seconds for each
ON_SPARK = {
    "ids as text, noise in strata": {"text": True, "noisy": True, "strata": 3},
    "restated, pending and suppressed": {"restated": True, "unseen": True, "strata": 2},
    "EasyLLP": CASES["EasyLLP"],
    "anchored": CASES["anchored"],
    "classes": CASES["classes"],
}


@pytest.mark.parametrize(
    "told, version",
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_392"', 8),
        ('version "21"', 21),
        ("no", 0),
    ],
)
def test_the_version_of_java_is_read(told, version):
    assert java_version(("echo", told)) == version


@pytest.mark.engines
@pytest.mark.filterwarnings(
    "ignore:unclosed <socket:ResourceWarning"
)  # pyspark leaves them to the collector
@pytest.mark.filterwarnings(
    "ignore:os.fork:RuntimeWarning"
)  # JAX warns, if loaded; this fork becomes Java at once
def test_spark_gives_the_rows_and_bags_of_duckdb(tmp_path):
    """One test, because a session takes ten seconds to start."""
    with spark_session(tmp_path) as spark:
        compare_with_spark(spark, tmp_path)


def compare_with_spark(spark, folder):
    def run(expression, **tables):
        for name, table in tables.items():
            path = str(folder / f"{name}-{len(list(folder.iterdir()))}.parquet")
            pq.write_table(table, path)
            spark.read.parquet(path).createOrReplaceTempView(name)
        frame = spark.sql(sql.as_sql(expression, dialect="spark"))
        return pa.Table.from_pylist([row.asDict() for row in frame.collect()])

    for options in ON_SPARK.values():
        events, reports, said = problem(1, **options)
        related = relate(events, reports, **said)
        on_spark = columns_of(run(related.targets, events=events, reports=reports), said)
        same(on_spark, columns_of(on_duckdb(related.targets, events=events, reports=reports), said))
    names = ("wrong_size", "event_twice", "stratum_without_report")
    changes = [FAULTS[name] for name in names]
    events = pa.table(GOOD | changes[1][0] | changes[2][0])
    reports = pa.table(REPORTS | changes[0][1] | changes[2][1])
    checks = run(relate(events, reports, **SAID).checks, events=events, reports=reports).to_pylist()
    assert checks == checks_of(events, reports, **SAID)
    assert set(names) <= {line["check"] for line in checks if line["refused"] and line["rows"]}
    for case in ("closed, strata", "arriving, strata"):
        id, said = DESIGNS[case]
        made = sql.design(named(IDS, "events"), id, **said)
        assert run(made.events, events=IDS).sort_by("n")["bag"].to_pylist() == designed_by_numpy(
            case
        ), case
