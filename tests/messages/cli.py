"""Bad input of cli, and the whole message that it gets."""

import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
from click.core import ParameterSource

import unbag
from cases.cli import FOLDER
from unbag.cli._benchmark import check_files
from unbag.cli._design import expected_of, open_events
from unbag.cli._evaluate import bags_for, open_model, unseen
from unbag.cli._explain import chosen_effects, effects_of, explain
from unbag.cli._options import (
    as_mapping,
    check_is_table,
    check_once,
    check_output,
    check_pair,
    noise_variance,
    numbers_of,
)
from unbag.cli._plan import Contest, _cap, _noise, _refuse_bags, answers
from unbag.cli._predict import predictions
from unbag.cli._recalibrate import check_repair, recalibrate
from unbag.cli._select import selected
from unbag.cli._train import _with_labels, check_settings, joined, parted
from unbag.learners import Effect
from unbag.methods import METHODS
from unbag.metrics import marks
from unbag.tables import Columns, write_tables


def without_plan():
    path = Path(tempfile.mkdtemp()) / "m.unbag"
    X = np.arange(8.0)[:, None]
    unbag.BagClassifier(hidden=(), epochs=1).fit(X, np.arange(8) % 2).save(path)
    return path


def of_two_kinds():
    folder, table = Path(tempfile.mkdtemp()), pa.table({"x": ["a", "b"] * 4})
    for kind in (unbag.BagClassifier, unbag.BagRegressor):
        model = kind(hidden=(), epochs=1, learning_rate=0.01, held_out=0)
        model.fit(table, np.arange(8) % 2).save(folder / kind.__name__)
        yield folder / kind.__name__


DAYS = (
    pd.DataFrame({"day": ["mon", "mon", "tue", "tue"]}),
    pd.DataFrame({"day": ["mon", "tue"], "sales": [1, 2]}),
)

ONE = np.ones(1)


def a_table(name):
    path = Path(tempfile.mkdtemp()) / name
    DAYS[0].to_parquet(path)
    return path


SEEN = unbag.Bags(np.array([0, 0, 1]), np.array([0.5, 1.0]))


LINK = Path(tempfile.mkdtemp()) / "link.csv"
LINK.symlink_to("other.csv")


class Diverged:
    """A model whose predictions are no numbers."""

    kind_, takes_tables, old_score_ = "total", False, None
    plan_ = unbag.plan_features(pa.table({"x": [1.0, 2.0]}))

    def predict(self, batch):
        return np.array([1.0, np.nan])


SOURCES = {"regret": ParameterSource.COMMANDLINE, "size": ParameterSource.COMMANDLINE}

TOTAL = [SimpleNamespace(opts=["--total"], name="total", multiple=False)]

MESSAGES = [
    (
        lambda: parted(SEEN, 0.2, 0),
        "There must be at least 4 bags to keep some of them for the evaluation: 2 given. Learn "
        "from all of them, without an evaluation, with test=0.",
    ),
    (
        lambda: check_settings({"method": "best"}),
        f"A method must be one of {', '.join(METHODS)}, auto: 'best' given. Choose one of these.",
    ),
    (
        lambda: recalibrate(None, FOLDER, *DAYS, out=FOLDER / "better.unbag"),
        f"A model to recalibrate must be a file: {FOLDER} is a folder, as that of a stream. A stream "
        "corrects itself: let it learn from these files.",
    ),
    (
        lambda: check_repair(SimpleNamespace(old_score_="old"), "both"),
        "A model that corrects an old score must be recalibrated by its level alone: both were "
        "asked for. Say fit='intercept'.",
    ),
    (
        lambda: explain(Path("m.unbag"), out=FOLDER / "effects.pdf"),
        "A picture must be named .svg, .png: effects.pdf was given. Choose such a name.",
    ),
    (
        lambda: _with_labels(None, Path("labels.csv"), None, alone=False),
        "Labelled events must have a column of labels and be learned by learners: none is named, "
        "or options ask for one network. Name the column with label=, and leave out the options of "
        "a network.",
    ),
    (
        lambda: list(predictions(Diverged(), pa.table({"x": [1.0, 2.0]}), None)),
        "A prediction must be a number: row 1 has [nan] (1 such row). Look at the values of that "
        "row, or train the model again.",
    ),
    (
        lambda: check_output(Path("scores.txt"), force=False),
        "An output must be named .parquet or .csv: scores.txt was given. Choose such a name.",
    ),
    (
        lambda: check_output(Path("/nowhere/at/all.csv"), force=False),
        "An output must go to a folder that exists: /nowhere/at does not. Make it first.",
    ),
    (
        lambda: check_output(Path(__file__), force=False, table=False),
        f"An output must not exist yet: {__file__} does. Use force=True to overwrite it.",
    ),
    (
        lambda: check_output(FOLDER, force=True, table=False),
        f"An output must not exist yet: {FOLDER} does. Choose another name.",
    ),
    (
        lambda: check_output(LINK, force=True, table=False),
        "An output must not be a symbolic link, because writing would change another place: "
        f"{LINK} points to other.csv. Name that place itself.",
    ),
    (
        lambda: check_output(FOLDER / f"{'x' * 300}.csv", force=False),
        f"An output must go where a file can be written: {FOLDER}/{'x' * 300}.csv cannot be "
        "(File name too long). Choose another place.",
    ),
    (
        lambda: next(
            predictions(
                SimpleNamespace(kind_="histogram", classes_=["no", "yes"]), None, "probability_yes"
            )
        ),
        "An id must have another name than the predictions: 'probability_yes' is the name of "
        "one of probability_no, probability_yes. Rename that column, or leave id= out for row numbers.",
    ),
    (
        lambda: open_events(pd.DataFrame({"bag": [1], "event": [2]}), "event", None),
        "Events to design must have no bag yet: they have a column 'bag'. Rename or drop it.",
    ),
    (
        lambda: write_tables(None, []),
        "A table of events must hold at least one row: none given. Check the export.",
    ),
    (
        lambda: joined(*DAYS, Columns("day", total="sales")),
        "A model must have features: the events have no column beside those you named. Add some.",
    ),
    (
        lambda: open_model(without_plan()),
        "A model for tables must know how columns become features: m.unbag does not. Make it "
        "with unbag train, or with fit_bags(bags).",
    ),
    (
        lambda: bags_for(
            SimpleNamespace(kind_="binary"), *DAYS, Columns("day", counts=["no", "yes"])
        ),
        "Class counts must be those that the model learned from, in their order: no, yes given for "
        "no classes. Say --total COLUMN, without --counts.",
    ),
    (
        lambda: unseen(SEEN, marks(SEEN)),
        "An evaluation must have bags that the model did not learn from: it learned from all 2. "
        "Give other tables, or train with --test.",
    ),
    (
        lambda: _noise(1.0, 0.0, 1.0),
        "A rate must lie between 0 and 1: 1.0 was given. It is the share of events with a label 1.",
    ),
    (
        lambda: _cap("total", None, 2.0),
        "A plan for totals must know the largest count of an event: none was given. Give --cap.",
    ),
    (
        lambda: _cap("total", 0.0, 2.0),
        "The largest count of an event must be at least the mean count: 0 was given for a mean of 2. "
        "Change --cap or --rate.",
    ),
    (
        lambda: _noise(-1.0, 0.0, 1.0, "total"),
        "A mean count must be positive: -1.0 was given. It is the total per event.",
    ),
    (
        lambda: answers(
            None, 0.1, None, 64, _noise(0.5, 0.0, 1.0), Contest(12, 0.5, 0.5, larger=8.0)
        ),
        "The larger half of the bags must have a mean size of at least that of the smaller: 8 given "
        "for 64. Raise --larger-size, or lower --size.",
    ),
    (
        lambda: answers(None, -1.0, None, 64, _noise(0.5, 0.0, 1.0), Contest(12, 0.5, 0.5)),
        "A regret must be positive: -1 given. Give regret=0.01, say.",
    ),
    (
        lambda: _refuse_bags(SimpleNamespace(get_parameter_source=SOURCES.get)),
        "A ranking of marginal tables must come without what is asked of bags: --regret and --size "
        "given too. Leave it out, or marginals=.",
    ),
    (
        lambda: answers(None, None, None, 64, _noise(0.5, 0.0, 1.0), Contest(12, 0.5, 0.5)),
        "A plan must be asked something: none of --events, --regret and --bags was given. Give one or "
        "more.",
    ),
    (
        lambda: noise_variance(4.0, 1.0),
        "Noise must be given once: --noise 4.0 and --epsilon 1 were given. Leave noise= out.",
    ),
    (
        lambda: noise_variance(None, None, delta=1e-6),
        "A privacy budget must have an epsilon: --delta was given without it. Add epsilon=.",
    ),
    (
        lambda: noise_variance(None, 1.0, "gausian"),
        "A mechanism of noise must be one of laplace, geometric, gaussian: 'gausian' given. "
        "Did you mean 'gaussian'? Choose one of these, or give the variance with noise=.",
    ),
    (
        lambda: noise_variance(None, 1.0, "gaussian"),
        "A delta must be given for gaussian noise, and only there: --mechanism gaussian has None. "
        "Give delta='1e-6' with mechanism='gaussian', or leave both out for Laplace noise.",
    ),
    (
        lambda: as_mapping(["suppressed"]),
        "A meaning must be written as word=meaning: 'suppressed' was given. Write "
        "status_map='suppressed=suppressed_by_size', and repeat it for each word.",
    ),
    (
        lambda: numbers_of(["64;32"], "hidden"),
        "The values of --hidden must be positive whole numbers: 64;32 was given. Write --hidden "
        "64,32 for two layers.",
    ),
    (
        lambda: check_once(TOTAL, ["--total", "red", "--total=blue", "--total", "green"]),
        "--total takes one value: it is given 3 times. Give counts= in place of total= for one column "
        "per class, or keep one of them.",
    ),
    (
        lambda: check_files("add", [Path("no.py")]),
        "A file of --add must exist: no.py does not. Look at the path.",
    ),
    (
        lambda: check_pair("label", "sold", "labels", None),
        "--label must come with --labels: that is missing. Give labels= too, or leave label= out.",
    ),
    (
        lambda: check_is_table(a_table("m.unbag"), "events"),
        "A table of events must be a Parquet or CSV file: m.unbag is a model. Give the model "
        "first where a verb takes one, then the events, then the reports.",
    ),
    (
        lambda: open_model(a_table("events.parquet")),
        "The model must come first: a file that unbag train wrote: events.parquet is a Parquet "
        "file. Give the model, then the events.",
    ),
    (
        lambda: chosen_effects([Effect("age", 1.0, (), ONE, ONE)], ["agee"]),
        "A column must be one that the model learned from: 'agee' is none. Did you mean 'age'? "
        "Its columns are age.",
    ),
    (
        lambda: effects_of(SimpleNamespace(fitted_=None, method_="upm")),
        "Effects must come from a model with an additive part: this one is upm. Train "
        "another with unbag train --learner additive, or with its default.",
    ),
    (
        lambda: expected_of(["autumn=300", "20"]),
        "An expected count must be a whole number, or stratum=number for each stratum: "
        "autumn=300 20 was given. Say --expected 5000, or --expected autumn=5000 --expected "
        "spring=300.",
    ),
    (
        lambda: selected([Path("a"), Path("a")], *DAYS, Columns("day", total="sales")),
        "There must be two models or more to choose among: 1 was given. Name another.",
    ),
    (
        lambda: selected(list(of_two_kinds()), *DAYS, Columns("day", total="sales")),
        "Models to choose among must be of one kind: binary and total were given. Leave one.",
    ),
]
