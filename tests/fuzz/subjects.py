"""What is damaged, and what may follow: a clear refusal, or the same as an independent reader says.

A subject takes a random generator and a folder, tries one case, and returns "refused" or "equal";
anything else is a fault: an error of another kind, or a difference that nobody was told of.
"""

import csv
import io
import json
import math
import shutil
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from typer.testing import CliRunner

from cases.stream import SMALL, network, stopped
from fuzz.damage import CELLS, WORDS, changed_array, changed_bytes, changed_settings, csv_text
from unbag import _model_file
from unbag.cli import app
from unbag.estimators import BagClassifier, load
from unbag.report._page import Page, Section, Text, render
from unbag.stream import StreamLearner
from unbag.stream._checkpoint import STORE
from unbag.tables import join, open_table, write_tables

TABLE = pa.table(
    {
        "bag": np.arange(60) // 6,
        "x": np.linspace(-3, 3, 60),
        "shop": [f"shop {i % 7}" for i in range(60)],
        "day": np.array(["2026-11-16"] * 60, "datetime64[D]"),
    }
)
REPORTS = pa.table({"bag": np.arange(10), "n": [1, 3, 2, 4, 2, 5, 1, 3, 2, 4]})


class SilentDifferenceError(Exception):
    """Accepted, and not what the file says."""


def parquet(rng, folder):
    """A Parquet file with checksums: refused, the same as before, or, where the part of the file
    changed that no checksum covers (names, types), the same as DuckDB reads."""
    path = folder / "events.parquet"
    path.write_bytes(changed_bytes(_parquet_file(), rng))
    try:
        table = open_table(path)
        rows = table.read(table.schema.names)
    except ValueError:
        return "refused"
    if rows.equals(TABLE) or _rows(rows) == _rows(TABLE):
        return "equal"
    with duckdb.connect() as connection:
        other = connection.read_parquet(str(path)).to_arrow_table()
    if _rows(rows) != _rows(other):
        raise SilentDifferenceError(path)
    return "equal"


@cache
def _parquet_file():
    buffer = Path(__file__).with_name("_events.parquet")
    write_tables(buffer, [TABLE])
    content = buffer.read_bytes()
    buffer.unlink()
    return content


def _rows(table):
    return [str(column.to_pylist()) for column in table.columns]


def csv_file(rng, folder):
    """A CSV file of anything, mostly damaged: refused, or cell by cell what Python's reader says."""
    text, _ = csv_text(rng)
    content = text.encode()
    if rng.random() < 0.7:
        content = changed_bytes(content, rng)
    path = folder / "events.csv"
    path.write_bytes(content)
    try:
        table = open_table(path)
        ours = table.read(table.schema.names)
    except ValueError:
        return "refused"
    separator = table.source.format.parse_options.delimiter
    text = content.removeprefix(b"\xef\xbb\xbf").decode()
    header, *rows = (row for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator))
    rows = [row for row in rows if row]
    if ours.column_names != header or ours.num_rows != len(rows):
        raise SilentDifferenceError(content)
    for i, name in enumerate(header):
        if not all(map(_same_cell, ours[name].to_pylist(), [row[i] for row in rows])):
            raise SilentDifferenceError(content)
    return "equal"


def _same_cell(value, cell):
    if isinstance(value, str):
        return value == cell
    if isinstance(value, bool):
        return cell.strip().lower() in ({True: ("true", "1"), False: ("false", "0")}[value])
    if isinstance(value, int | float):
        try:
            return value == type(value)(cell) or (math.isnan(value) and math.isnan(float(cell)))
        except ValueError:
            return False
    # missing in a column of numbers; moments are compared by their text
    return value is None or str(value)[:10] == cell.strip()[:10]


VERBS = {
    "check": ["{events}", "{reports}", "--on", "bag", "--total", "n"],
    "weights": ["{events}", "{reports}", "--on", "bag", "--total", "n", "--out", "{out}"],
    "design": ["{rows}", "--id", "x", "--size", "4", "--out", "{out}"],
    "plan": ["--rate", "0.1"],
}
OPTIONS = ["--noise", "--cap", "--cut", "--time", "--stratum", "--as-of", "--status", "--size",
           "--kind", "--id", "--feature", "--prior", "--method", "--keep", "--memory", "--salt",
           "--expected", "--bags", "--rows", "--wrong-sizes", "--on", "--total"]  # fmt: skip


def options(rng, folder):
    """A verb with options of any value: it works, or says in a sentence what is wrong."""
    verb = str(rng.choice(list(VERBS)))
    names = ("events", "reports", "rows", "out")
    places = {name: str(folder / f"{name}.parquet") for name in names}
    pq.write_table(TABLE.drop_columns(["bag"]), places["rows"])
    pq.write_table(TABLE, places["events"])
    pq.write_table(REPORTS, places["reports"])
    words = [word.format(**places) for word in VERBS[verb]]
    for _ in range(int(rng.integers(1, 3))):
        words += [str(rng.choice(OPTIONS)), str(rng.choice(WORDS))]
    Path(places["out"]).unlink(missing_ok=True)
    result = CliRunner().invoke(app, [verb, *words])
    if result.exit_code not in (0, 1, 2, 3) or "Traceback" in result.output:
        raise SilentDifferenceError((verb, words))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return "equal" if result.exit_code in (0, 3) else "refused"


@cache
def models():
    """Of each learner a model of the same bags, as a file, and its predictions."""
    import tempfile

    folder, made = Path(tempfile.mkdtemp()), []
    bags = join(TABLE, REPORTS, on="bag", total="n")
    for number, learner in enumerate(("additive", "trees", "network", None)):
        own = {"epochs": 1, "hidden": (2,)} if learner is None else {"learner": learner, "folds": 2}
        model = BagClassifier(**own, diagnose=False).fit_bags(bags)
        path = folder / f"{number}.unbag"
        model.save(path)
        made.append((path.read_bytes(), predicted(load(path))))
    shutil.rmtree(folder)
    return made


def predicted(model):
    if model.plan_ is None:
        raise ValueError("a model for tables must have a plan, says the command line")
    (batch,) = model.plan_.tables(TABLE)
    rows = model.plan_.columns_of(batch) if model.takes_tables else model.plan_.features(batch)
    return model.predict_proba(rows)


def model_file(rng, folder):
    """A model file with damaged bytes: refused, or bit for bit the same predictions."""
    content, before = models()[int(rng.integers(4))]
    path = folder / "model.unbag"
    path.write_bytes(changed_bytes(content, rng))
    try:
        model = load(path)
    except ValueError:
        return "refused"
    if not np.array_equal(predicted(model), before):
        raise SilentDifferenceError("another model")
    return "equal"


def crafted_model(rng, folder):
    """A model file whose settings or arrays somebody changed, digest included: refused, or a model
    that predicts numbers."""
    content, _ = models()[int(rng.integers(4))]
    path = folder / "model.unbag"
    path.write_bytes(content)
    metadata, arrays = _model_file._read(path)
    settings = json.loads(metadata["unbag"])
    if rng.random() < 0.3:
        name = sorted(arrays)[int(rng.integers(len(arrays)))]
        arrays[name] = changed_array(arrays[name], rng)
    else:
        settings = _deeper(settings, rng)
    path.write_bytes(_model_file.as_bytes(arrays, json.dumps(settings)))
    try:
        model = load(path)
    except ValueError:
        return "refused"
    try:
        numbers = predicted(model)
    except ValueError:
        return "refused"
    if not np.isfinite(numbers).all():
        raise SilentDifferenceError(settings)
    return "equal"


def _deeper(settings, rng):
    """Plans are texts inside of the settings; half of the changes are made in them."""
    inner = settings["settings"]
    if inner.get("plan") and rng.random() < 0.4:
        inner["plan"] = json.dumps(changed_settings(json.loads(inner["plan"]), rng))
        return settings
    settings["settings"] = changed_settings(inner, rng)
    return settings


@cache
def _stream():
    import tempfile

    folder = Path(tempfile.mkdtemp())
    stopped(folder)
    again = StreamLearner(network(), method="upm", folder=folder, **SMALL)
    state = state_of(again)
    again.close()
    files = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    shutil.rmtree(folder)
    return files, state


def state_of(learner):
    """Everything that a stream rests on: parameters, counters, what waits, and the events."""
    leaves, settled = learner._trainer.save()
    numbers = [bag.number for bag in learner._buffer.bags.values()]
    waiting = learner._store.read(numbers) if numbers else ()  # a stream at its end has none
    arrays = [leaf.tobytes() for leaf in (*leaves, *waiting)]
    return json.dumps([learner._state(), settled], sort_keys=True, default=str), arrays


def checkpoint(rng, folder):
    """A stream's database with damaged bytes: refused, or the same state bit for bit."""
    files, before = _stream()
    place = folder / "stream"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    for name, content in files.items():
        (place / name).write_bytes(content)
    (place / STORE).write_bytes(changed_bytes(files[STORE], rng))
    try:
        learner = StreamLearner(network(), method="upm", folder=place, **SMALL)
    except (ValueError, OSError):
        return "refused"
    try:
        same = state_of(learner) == before
    finally:
        learner.close()
    if not same:
        raise SilentDifferenceError("another state")
    return "equal"


class _Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags = []
        self.text = []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, *(name for name, _ in attrs)))

    def handle_data(self, data):
        self.text.append(data)


HOSTILE = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "</style><b>", "{{ 7*7 }}",
           "{% raw %}", "&lt;", "javascript:alert(1)", "\x1b[2J", "]]>", "<!--"]  # fmt: skip


def page(rng, folder):
    """A page with names of any kind: the same tags as with a plain word, and every name as text."""
    words = [str(rng.choice([*HOSTILE, *CELLS[1:]])) for _ in range(4)]
    ours, plain = (_parsed(each) for each in (words, ["word"] * 4))
    if ours.tags != plain.tags:
        raise SilentDifferenceError(words)
    if not set(words[3].split()) <= set("".join(ours.text).split()):
        raise SilentDifferenceError(words)
    return "equal"


def _parsed(words):
    first, second, third, fourth = words
    parser = _Tags()
    parser.feed(render(Page(first, second, [Section("one", third, [Text(fourth)])])))
    return parser


SUBJECTS = {
    "Parquet files": parquet,
    "CSV files": csv_file,
    "options": options,
    "model files, damaged": model_file,
    "model files, crafted": crafted_model,
    "checkpoints": checkpoint,
    "pages": page,
}
