"""Bad input of stream, and the whole message that it gets."""

import os
from datetime import date
from unittest.mock import patch

import numpy as np

from cases.stream import PLACE, SMALL, chunk_of, network, source
from unbag import models
from unbag.cli._stream import follow_folder
from unbag.datasets import Chunk
from unbag.lab import _online as online
from unbag.lab._online import OnlineStore, online_preset, run_online, write_online_report
from unbag.methods import METHODS
from unbag.stream import FolderInput, StreamLearner, StreamModel, StreamSettings, run_stream
from unbag.stream._checkpoint import METRICS
from unbag.stream._folder import _check_end
from unbag.tables import Column, Columns, FeaturePlan

ONE = {"chunks": 1, "every": 1}
SALES = Columns("bag", total="sales", size="events")
AGE = FeaturePlan((Column("age", "numeric"),))


def inbox():
    folder = PLACE / "inbox"
    folder.mkdir(exist_ok=True)
    return folder


def without_bag():
    path = PLACE / "e.csv"
    path.write_text("bag,age\na,1\n,2\n")
    return path


def half_written():
    path = PLACE / "half.csv"
    path.write_text("bag,age\na,1\nb,")
    return path


def resumed_otherwise():
    learner = StreamLearner(network(), folder=PLACE / "other", **SMALL)
    learner.learn(chunk_of(0))
    learner.checkpoint()
    learner.close()
    StreamLearner(models.mlp(3, (9,), key=0), folder=PLACE / "other", **{**SMALL, "rate": 0.5})


def other_columns():
    learner = StreamLearner(network(), **SMALL)
    learner.events(np.ones((2, 3)), [1, 1])
    learner.events(np.ones((2, 4)), [1, 1])


def other_data():
    store = OnlineStore(PLACE / "other data")
    store.check_data("clicks", "these")
    store.check_data("criteo", "those")
    store.check_data("clicks", "these")
    store.check_data("clicks", "those")


def taken_folder():
    first = StreamLearner(network(), folder=PLACE / "taken", **SMALL)
    try:
        StreamLearner(network(), folder=PLACE / "taken", **SMALL)
    finally:
        first.close()


def foreign_folder():
    (PLACE / "foreign").mkdir(exist_ok=True)
    (PLACE / "foreign" / "metrics.jsonl").write_text("yours\n")
    try:
        StreamLearner(network(), folder=PLACE / "foreign", **SMALL)
    finally:
        assert (PLACE / "foreign" / "metrics.jsonl").read_text() == "yours\n"


def too_short(folder):
    with patch.object(
        online, "_chunk", lambda source, rows, start: Chunk(np.ones((4, 2)), y=np.ones(4))
    ):
        run_online(online_preset("smoke", methods=("upm",), sizes=(128,)), OnlineStore(folder))


def shortened(folder):
    """A stream whose log lost its end."""
    run_stream(lambda p: source(p, 2), learner(folder=folder)).close()
    os.truncate(folder / METRICS, 10)
    learner(folder=folder)


def learner(**further):
    return StreamLearner(network(), **SMALL, **further)


MESSAGES = [
    (
        lambda: learner().report("a", 0.5),
        "The bag ids of a stream must be a list: an array of shape () given. Give a list, also of "
        "one.",
    ),
    (
        lambda: learner().report(["a"], [0.5], size=[16.9]),
        "A size must be a whole number, or None where it is not known: 16.9 given. Say how many "
        "events the report is about.",
    ),
    (
        lambda: shortened(PLACE / "log"),
        f"The logs of a stream must be those of its checkpoint: {PLACE / 'log' / METRICS} is "
        "shorter than it was. Put a copy of the folder in its place, or begin again in another "
        "one.",
    ),
    (
        lambda: too_short(PLACE / "short"),
        (
            "A stream must have at least one chunk of 1024 events: clicks has fewer. Make chunks "
            "smaller."
        ),
    ),
    (
        lambda: StreamSettings(size=0),
        "A stream's size must be a whole number of at least 1: 0 given. Change it.",
    ),
    (lambda: StreamSettings(rate=0.0), "A learning rate must be positive: 0.0 given. Try 0.001."),
    (
        lambda: StreamSettings(method="best"),
        f"A method must be one of {', '.join(METHODS)}: 'best' given. Choose one of these.",
    ),
    (
        lambda: StreamSettings(prior=2.0),
        "A stream's prior must be 'chunk', 'first' or a number between 0 and 1: 2.0 given. Use "
        "'chunk' when the rate moves.",
    ),
    (
        lambda: StreamSettings(restated="average"),
        "What is done with restated reports must be one of replace, refuse: 'average' given. "
        "Choose one of these.",
    ),
    (
        lambda: StreamLearner(network()).learn(Chunk(np.ones((2, 3)))),
        "A chunk to learn at once must have labels: y is None. Use events and reports instead.",
    ),
    (
        lambda: StreamLearner(network()).learn(Chunk(np.ones((2, 3)), y=np.ones(3))),
        (
            "y must have one entry for each event: 3 given for 2 events. Give them in the order of "
            "the events."
        ),
    ),
    (
        lambda: StreamLearner(network()).events(np.ones((2, 3)), [1]),
        (
            "bag must have one entry for each event: 1 given for 2 events. Give them in the order "
            "of the events."
        ),
    ),
    (
        lambda: StreamLearner(network()).report([1], [0.5, 0.5]),
        (
            "report must have one entry for each bag: 2 given for 1 bags. Give them in the order of "
            "the bags."
        ),
    ),
    (
        lambda: StreamLearner(network()).report([1], [0.5], size=[1, 2]),
        (
            "size must have one entry for each bag: 2 given for 1 bags. Give them in the order of "
            "the bags."
        ),
    ),
    (
        lambda: StreamLearner(network()).report([1], [0.5], noise=[1, 2]),
        (
            "noise must have one entry for each bag: 2 given for 1 bags. Give them in the order of "
            "the bags."
        ),
    ),
    (
        lambda: StreamLearner(network()).events(np.ones((2, 4)), [1, 1]),
        "Features must fit the model: X of shape (2, 4) and type float64 given, which it does "
        "not take. Give the features that it was made for.",
    ),
    (
        lambda: StreamLearner(network()).events([["a", "b", "c"]], [1]),
        "Features must be numbers: X of type <U1 given. Turn words into whole numbers first.",
    ),
    (
        other_columns,
        "The features of a stream must keep their shape: (4,) given after (3,). Read other "
        "columns as another stream, or repair the export.",
    ),
    (
        lambda: StreamLearner(network()).report([date(2024, 1, 2)], [0.5]),
        "A bag id must be a whole number or a string: datetime.date(2024, 1, 2) given. Turn all "
        "ids into strings, with str().",
    ),
    (
        lambda: StreamLearner(network()).checkpoint(),
        "A checkpoint must have a folder: none was given. Make the learner with folder=.",
    ),
    (
        resumed_otherwise,
        f"A stream must be resumed as it was begun: in {PLACE / 'other'} rate was 0.02 and is "
        "0.5, the model has other parameters. Use the same, or another folder.",
    ),
    (
        taken_folder,
        f"A stream must be run by one process at a time: another one works in {PLACE / 'taken'}. "
        "Wait for it, or use another folder.",
    ),
    (
        lambda: online_preset("huge"),
        "A preset must be one of paper, laptop, smoke: 'huge' given. Choose one of these.",
    ),
    (
        lambda: online_preset("smoke", source="avazu"),
        "An online plan's source must be one of criteo, clicks: 'avazu' given. Choose one of these.",
    ),
    (
        lambda: online_preset("smoke", sizes=(1024,)),
        "A bag size must leave at least 2 bags in a chunk: bags of 1024 given for chunks of "
        "1024. Make the bags smaller.",
    ),
    (
        lambda: write_online_report(
            online_preset("smoke"), OnlineStore(PLACE / "none"), PLACE / "report"
        ),
        f"A report must have runs: {PLACE / 'none'} has none of this plan. Make them: unbag online",
    ),
    (
        other_data,
        "A store's online runs must come from the same data: the first chunk of clicks that "
        f"there is now is not the one that {PLACE / 'other data'} has runs of. Use another "
        "folder.",
    ),
    (
        lambda: follow_folder(inbox(), PLACE / "o", SALES, None, {}, follow=False, **ONE),
        f"A stream must find events in its folder: {PLACE / 'inbox'} has no file of them. Add "
        "files of events, or wait for them with follow=True.",
    ),
    (
        lambda: FolderInput(PLACE / "nowhere", PLACE, SALES),
        f"A stream must come from a folder of files: {PLACE / 'nowhere'} is none. Make the folder, "
        "or look at the path.",
    ),
    (
        lambda: FolderInput(inbox(), PLACE, Columns("bag", counts=["a", "b"])),
        "A stream must have reports on a binary label: these are of kind histogram. Use unbag "
        "train for counts and classes.",
    ),
    (
        lambda: FolderInput(inbox(), PLACE, Columns("bag", total="sales")),
        "Totals of a stream must come with the number of events in the bag, as files arrive in any "
        "order: no column was named. Name it with size=, or give proportions with proportion=.",
    ),
    (
        lambda: StreamModel(inbox()),
        f"A folder in place of a model must be that of a stream of files: {PLACE / 'inbox'} is "
        "none. Give the folder that unbag stream wrote with --folder.",
    ),
    (
        lambda: list(FolderInput(inbox(), PLACE, SALES)._parts(without_bag(), AGE)),
        "A bag id must not be missing: an event of e.csv has none. Give such events their bag, or "
        "drop them on purpose.",
    ),
    (
        lambda: _check_end(half_written()),
        "A CSV file must end with the end of a line: half.csv does not, so that it may be "
        "half-written. It is read as soon as its last line is finished.",
    ),
    (
        foreign_folder,
        (
            f"A stream must have a folder of its own: {PLACE / 'foreign'} holds something else. "
            "Name another one."
        ),
    ),
]
