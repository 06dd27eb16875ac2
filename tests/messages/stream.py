"""Bad input of stream, and the whole message that it gets."""

from datetime import date
from unittest.mock import patch

import numpy as np

from cases.stream import PLACE, SMALL, chunk_of, network
from unbag import models
from unbag.cli._stream import follow
from unbag.datasets import Chunk
from unbag.lab import _online_run as online
from unbag.lab._online_plan import online_preset
from unbag.lab._online_report import write_online_report
from unbag.lab._online_run import run_online
from unbag.lab._online_store import OnlineStore
from unbag.stream import StreamLearner, StreamSettings


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
        online, "_chunks", lambda source, rows: iter([Chunk(np.ones((4, 2)), y=np.ones(4))])
    ):
        run_online(online_preset("smoke", methods=("upm",), sizes=(128,)), OnlineStore(folder))


MESSAGES = [
    (
        lambda: too_short(PLACE / "short"),
        (
            "A stream must have at least one chunk of 1024 events: clicks has fewer. Make chunks "
            "smaller."
        ),
    ),
    (
        lambda: StreamSettings(size=0),
        "A stream's size must be a whole number of at least 1: 0 came. Change it.",
    ),
    (lambda: StreamSettings(rate=0.0), "A learning rate must be positive: 0.0 came. Try 0.001."),
    (
        lambda: StreamSettings(method="best"),
        "A method must be one of anchored, upm, easy, matching, likelihood, labels: 'best' came. "
        "Choose one of these.",
    ),
    (
        lambda: StreamSettings(prior=2.0),
        "A stream's prior must be 'chunk', 'first' or a number between 0 and 1: 2.0 came. Use "
        "'chunk' when the rate moves.",
    ),
    (
        lambda: StreamSettings(restated="average"),
        "Restated reports must be dealt with by 'replace' or 'refuse': 'average' came. Choose one.",
    ),
    (
        lambda: StreamLearner(network()).learn(Chunk(np.ones((2, 3)))),
        "A chunk to learn at once must have labels: y is None. Use events and reports instead.",
    ),
    (
        lambda: StreamLearner(network()).learn(Chunk(np.ones((2, 3)), y=np.ones(3))),
        (
            "y must have one entry for each event: 3 came for 2 events. Give them in the order of "
            "the events."
        ),
    ),
    (
        lambda: StreamLearner(network()).events(np.ones((2, 3)), [1]),
        (
            "bag must have one entry for each event: 1 came for 2 events. Give them in the order "
            "of the events."
        ),
    ),
    (
        lambda: StreamLearner(network()).report([1], [0.5, 0.5]),
        (
            "report must have one entry for each bag: 2 came for 1 bags. Give them in the order of "
            "the bags."
        ),
    ),
    (
        lambda: StreamLearner(network()).report([1], [0.5], size=[1, 2]),
        (
            "size must have one entry for each bag: 2 came for 1 bags. Give them in the order of "
            "the bags."
        ),
    ),
    (
        lambda: StreamLearner(network()).report([1], [0.5], noise=[1, 2]),
        (
            "noise must have one entry for each bag: 2 came for 1 bags. Give them in the order of "
            "the bags."
        ),
    ),
    (
        lambda: StreamLearner(network()).events(np.ones((2, 4)), [1, 1]),
        "Features must fit the model: X of shape (2, 4) and type float64 came, which it does "
        "not take. Give the features that it was made for.",
    ),
    (
        lambda: StreamLearner(network()).events([["a", "b", "c"]], [1]),
        "Features must be numbers: X of type <U1 came. Turn words into whole numbers first.",
    ),
    (
        other_columns,
        "The features of a stream must keep their shape: (4,) came after (3,). Read other "
        "columns as another stream, or repair the export.",
    ),
    (
        lambda: StreamLearner(network()).report([date(2024, 1, 2)], [0.5]),
        "A bag id must be a whole number or a string: datetime.date(2024, 1, 2) came. Turn all "
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
        "A preset must be one of paper, laptop, smoke: 'huge' came. Choose one of these.",
    ),
    (
        lambda: online_preset("smoke", source="avazu"),
        "An online plan's source must be one of criteo, clicks: 'avazu' came. Choose one of these.",
    ),
    (
        lambda: online_preset("smoke", sizes=(1024,)),
        "A bag size must leave at least 2 bags in a chunk: bags of 1024 came for chunks of "
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
        lambda: follow(
            "clicks", PLACE / "m", model="huge", rows=4096, chunks=1, every=1, fields={"seed": 0}
        ),
        "A stream's model must be one of paper, small: 'huge' came. Choose one of these.",
    ),
    (
        lambda: follow(
            "avazu", PLACE / "n", model="small", rows=4096, chunks=1, every=1, fields={"seed": 0}
        ),
        "A source must be clicks, criteo or a file: 'avazu' is none. Look at the path.",
    ),
    (
        lambda: follow(
            "clicks", PLACE / "n", model="small", rows=1000, chunks=1, every=1, fields={"size": 512}
        ),
        (
            "A chunk must hold at least two bags: 1000 rows came for bags of 512. Give more "
            "--rows, or a smaller --size."
        ),
    ),
    (
        foreign_folder,
        (
            f"A stream must have a folder of its own: {PLACE / 'foreign'} holds something else. "
            "Name another one."
        ),
    ),
]
