"""Bad tables through the command line: a clear error, an exit code that is not 0, and nothing left
behind."""

import json
import resource
import tempfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import unbag
from cases.cli import QUICK, SALES, run, world


def spoil(change, *, ending="parquet", which="events"):
    """A way to write one of the two tables anew, changed."""

    def write(folder):
        path = folder / f"{which}.{ending}"
        frame = pd.read_parquet(path) if ending == "parquet" else pd.read_csv(path)
        frame = change(frame)
        frame.to_parquet(path) if ending == "parquet" else frame.to_csv(path, index=False)

    return write, ending


def bytes_of(change, *, ending, which="events"):
    """A way to spoil the bytes of a table."""

    def write(folder):
        path = folder / f"{which}.{ending}"
        path.write_bytes(change(path.read_bytes()))

    return write, ending


def as_it_is(ending="parquet"):
    return (lambda folder: None), ending


def mixed(frame):
    return frame.assign(x=[*frame.x[:-1].astype(str), "much"])


def null_bag(frame):
    return frame.assign(bag=pd.array([None, *frame.bag[1:]], dtype="Int64"))


PLAN = Path(tempfile.mkdtemp()) / "plan.toml"
PLAN.write_text('[columns.x]\nkind = "numeric"\n')


BAD = {
    "a wrong bag column": (as_it_is(), ["--on", "bga", "--total", "sales"], "Did you mean 'bag'?"),
    "a wrong total": (as_it_is(), ["--on", "bag", "--total", "sale"], "Did you mean 'sales'?"),
    "a wrong id": (as_it_is(), [*SALES, "--id", "evnt"], "Did you mean 'event'?"),
    "a wrong size": (as_it_is(), [*SALES, "--size", "event"], "Did you mean 'events'?"),
    "a wrong stratum": (as_it_is(), [*SALES, "--stratum", "devise"], "Did you mean 'device'?"),
    "a wrong feature": (as_it_is(), [*SALES, "--feature", "devise"], "Did you mean 'device'?"),
    "no total": (as_it_is(), ["--on", "bag"], "Name the column of totals with --total, or"),
    "a cut without times": (as_it_is(), [*SALES, "--cut", "2026-01-01"], "Name a column with --as-of or --time."),
    "a wrong word for sizes": (as_it_is(), [*SALES, "--wrong-sizes", "mend"], "must be one of refuse, leave_out"),
    "numbers mixed with text": (spoil(mixed, ending="csv"), [*SALES, "--id", "event", "--columns", PLAN], "has 'much'"),
    "ids of two types": (
        spoil(lambda f: f.assign(bag=f.bag.astype(str))),
        SALES,
        "'bag' is text in the events and whole numbers in the reports",
    ),
    "a file of no bytes": (bytes_of(lambda b: b"", ending="csv"), SALES, "at least one row"),
    "a header alone": (bytes_of(lambda b: b.splitlines()[0] + b"\n", ending="csv"), SALES, "at least one row"),
    "Parquet without rows": (spoil(lambda f: f.head(0)), SALES, "at least one row: none given"),
    "reports without rows": (spoil(lambda f: f.head(0), which="reports"), SALES, "at least one row: none given"),
    "Parquet cut short": (bytes_of(lambda b: b[: len(b) // 2], ending="parquet"), SALES, "is cut short"),
    "CSV that is not UTF-8": (bytes_of(lambda b: b.replace(b"phone", b"t\xe9l"), ending="csv"), SALES, "UTF-8"),
    "a bag id that is null": (spoil(null_bag), SALES, "must not be missing"),
    "a report without a bag": (spoil(null_bag, which="reports"), SALES, "A report must name its bag: row 0"),
    "more sales than events": (
        spoil(lambda f: f.assign(sales=99), which="reports"),
        SALES,
        (
            "Say --kind total where an event may count more than once, or give the variance of the "
            "noise with --noise."
        ),
    ),
    "sizes that disagree": (
        spoil(lambda f: f.assign(events=f.events + 1), which="reports"),
        [*SALES, "--size", "events"],
        "leave such bags out with --wrong-sizes leave_out.",
    ),
    "an event in two bags": (
        spoil(lambda f: f.assign(event=["e00001", *f.event[1:]])), [*SALES, "--id", "event"], "e00001",
    ),
    "two reports of a bag": (
        spoil(lambda f: f.assign(bag=[1, *f.bag[1:]]), which="reports"), SALES, "Name with --as-of the column",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_tables_are_refused_and_nothing_is_left(tmp_path, name):
    (change, ending), words, text = BAD[name]
    world(tmp_path, count=60, size=6, ending=ending)
    change(tmp_path)
    tables = [tmp_path / f"events.{ending}", tmp_path / f"reports.{ending}"]
    before = sorted(path.name for path in tmp_path.iterdir())
    out = ["--out", tmp_path / "m.unbag", "--page", tmp_path / "p.html"]
    said = run("train", *tables, *words, *QUICK, *out, code=1)
    assert said.stderr.startswith("error: ")
    assert "\n\nhint: " in said.stderr
    assert "--help" not in said.stderr
    assert text in said.stderr
    assert said.stdout == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == before


REFUSED = ["more sales than events", "sizes that disagree", "two reports of a bag"]


@pytest.mark.parametrize("name", REFUSED)
def test_check_tells_the_same_in_words_of_the_command_line(tmp_path, name):
    (change, ending), words, text = BAD[name]
    world(tmp_path, count=60, size=6, ending=ending)
    change(tmp_path)
    said = run(
        "check", tmp_path / f"events.{ending}", tmp_path / f"reports.{ending}", *words, code=3
    )
    assert text in said.stdout
    assert "=" not in said.stdout


def test_check_gives_the_remedy_in_words_of_the_command_line(tmp_path):
    events, reports, _ = world(tmp_path, random=False)
    said = run("check", events, reports, *SALES, "--id", "event", code=3).stdout
    assert "Remedy: Name what the bags follow (campaign, day, site) with --stratum, if" in said
    assert "as unbag design does" in said
    assert "--method matching" in said
    assert "random_bags" not in said
    assert "=" not in said.partition("Remedy: ")[2].partition("\n")[0]
    assert "with --stratum, if" in run(
        "train", events, reports, *SALES, "--id", "event", "--linear", "--epochs", 1, "--out", tmp_path / "m"
    ).stderr  # fmt: skip


def test_bags_of_a_wrong_size_may_be_left_out(tmp_path):
    events, reports, _ = world(tmp_path, count=600)
    frame = pd.read_parquet(reports)
    frame.assign(events=[11, *frame.events[1:]]).to_parquet(reports)
    words = ["check", events, reports, *SALES, "--size", "events", "--id", "event"]
    assert "(1 such bag)" in run(*words, code=3).stdout
    assert "59 bags" in run(*words, "--wrong-sizes", "leave_out").stdout


def test_a_bias_may_be_accepted(tmp_path):
    events, reports, _ = world(tmp_path, count=600)
    frame = pd.read_parquet(reports)
    hidden = frame.sales < 3
    frame.assign(
        sales=frame.sales.where(~hidden), state=np.where(hidden, "suppressed_by_value", "observed")
    ).to_parquet(reports)
    words = ["check", events, reports, *SALES, "--status", "state", "--id", "event"]
    assert "accept the bias with --accept-bias." in run(*words, code=3).stdout
    accepted = run(*words, "--accept-bias", "--json")
    assert '"usable": true' in accepted.stdout


def test_features_may_be_named_and_the_prior_may_be_known(tmp_path):
    """The mean prediction follows the prior, so that a known one makes another model."""
    events, reports, _ = world(tmp_path, count=600)
    means = []
    for words in (), ("--prior", 0.9):
        model = tmp_path / f"m{len(words)}.unbag"
        run("train", events, reports, *SALES, *QUICK, "--feature", "x", *words, "--out", model)
        assert unbag.load(model).plan_.names == ("x",)
        means.append(unbag.load(model).predict_proba(np.linspace(-1, 1, 9)[:, None])[:, 1].mean())
    assert means[0] < 0.6
    assert means[1] > 0.8


@pytest.mark.parametrize("verb", ["check", "evaluate", "select", "weights"])
def test_only_training_takes_a_prior(verb):
    """The others estimate without one: an option that changes nothing would mislead."""
    assert "No such option: --prior" in run(verb, "--prior", 0.3, code=2).stderr


def test_an_option_of_other_verbs_is_named_where_a_longer_one_is_meant():
    assert (
        "No such option: --marginal" in run("plan", "e.csv", "--marginal", "a.csv", code=2).stderr
    )


def test_check_lists_a_total_above_the_cap(tmp_path):
    events, reports, _ = world(tmp_path, count=100)
    frame = pd.read_parquet(reports)
    frame.assign(sales=[35, *frame.sales[1:]]).to_parquet(reports)
    words = ["check", events, reports, *SALES, "--kind", "total", "--cap", 3, "--json"]
    found = json.loads(run(*words, code=3).stdout)
    assert not found["usable"]
    assert "bag 0 has 3.5" in found["tables"]["refused"][0]


def test_very_many_categories_make_no_larger_model(tmp_path):
    sizes = []
    for values in (12_000, 40_000):
        rng = np.random.default_rng(0)
        shop = rng.integers(0, values, 60_000)
        frame = pd.DataFrame({"bag": np.arange(60_000) // 6, "shop": [f"shop {s}" for s in shop]})
        frame.to_parquet(tmp_path / "e.parquet")
        sales = rng.binomial(6, 0.5, 10_000)
        pd.DataFrame({"bag": np.arange(10_000), "sales": sales}).to_parquet(tmp_path / "r.parquet")
        words = [
            tmp_path / "e.parquet",
            tmp_path / "r.parquet",
            *SALES,
            "--linear",
            "--epochs",
            1,
            "--test",
            0,
        ]
        run("train", *words, "--out", tmp_path / "m.unbag", "--force")
        sizes.append(
            (tmp_path / "m.unbag").stat().st_size - unbag.load(tmp_path / "m.unbag").learned_.nbytes
        )
    assert sizes[1] == pytest.approx(sizes[0], rel=0.01)
    assert sizes[1] < 2**21


def test_columns_that_are_no_features_are_told(tmp_path):
    write, ending = spoil(mixed, ending="csv")
    events, reports, _ = world(tmp_path, count=60, size=6, ending=ending)
    write(tmp_path)
    said = run("check", events, reports, *SALES, "--id", "event").stdout
    assert "  x       left out: most values are numbers and some are not, as 'much'" in said


def test_no_output_is_overwritten_without_force(tmp_path):
    events, reports, _ = world(tmp_path, count=200)
    model = tmp_path / "m.unbag"
    run("train", events, reports, *SALES, *QUICK, "--out", model)
    raw = tmp_path / "raw.parquet"
    pd.read_parquet(events).drop(columns="bag").to_parquet(raw)
    taken = {name: tmp_path / f"taken.{name}" for name in ("csv", "html")}
    for path in taken.values():
        path.write_text("old")
    for words in (
        ["train", events, reports, *SALES, "--out", model],
        [
            "train",
            events,
            reports,
            *SALES,
            "--out",
            tmp_path / "new.unbag",
            "--page",
            taken["html"],
        ],
        ["predict", model, events, "--out", taken["csv"]],
        ["evaluate", model, events, reports, *SALES, "--page", taken["html"]],
        [
            "select",
            model,
            model,
            "--events",
            events,
            "--reports",
            reports,
            *SALES,
            "--page",
            taken["html"],
        ],
        ["design", raw, "--id", "event", "--size", 5, "--out", taken["csv"]],
        ["weights", events, reports, *SALES, "--out", taken["csv"]],
    ):
        assert "An output must not exist yet" in run(*words, code=1).stderr
    assert {path.read_text() for path in taken.values()} == {"old"}
    assert not (tmp_path / "new.unbag").exists()


@contextmanager
def small_disk(most):
    """No file may grow beyond so many bytes: a disk that fills, as the operating system tells
    it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_disk_that_fills_leaves_no_part_of_an_output_and_keeps_the_old_one(tmp_path):
    events, reports, _ = world(tmp_path, count=3000)
    model, old, page = tmp_path / "m.unbag", tmp_path / "old.csv", tmp_path / "p.html"
    words = ["train", events, reports, *SALES, "--id", "event", *QUICK, "--out", model]
    raw = tmp_path / "raw.parquet"
    pd.read_parquet(events).drop(columns="bag").to_parquet(raw)
    old.write_text("old")
    with small_disk(500):
        assert run(*words, code=1).stderr.splitlines()[-3].startswith("error: ")
    assert not model.exists()
    run(*words)
    before = sorted(path.name for path in tmp_path.iterdir())
    with small_disk(500):
        for more in (
            ["predict", model, events, "--out", old, "--force"],
            ["predict", model, events, "--out", tmp_path / "new.parquet"],
            ["design", raw, "--id", "event", "--size", 5, "--out", old, "--force"],
            ["evaluate", model, events, reports, *SALES, "--page", page],
        ):
            assert run(*more, code=1).stderr.splitlines()[-3].startswith("error: ")
    assert old.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == before
