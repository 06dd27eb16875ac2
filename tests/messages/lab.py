"""Bad input of lab, and the whole message that it gets."""

from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace

import pyarrow.parquet as pq

from cases.lab import HERE, TOY, made_up, toy, written
from unbag.cli._reproduce import _pair, reproduce
from unbag.lab import Plan, RunStore, Way, _choice, add_method, add_task, preset, read_plan
from unbag.lab._catalogue import METHODS, MODELS, TASKS
from unbag.lab._convolution import cnn_bfloat16
from unbag.lab._online import OnlineStore, online_preset
from unbag.lab._store import FORMAT


def other_format():
    path = written("old/toy/k.parquet", "")
    pq.write_table(RunStore.schema.with_metadata({"unbag_store": "99"}).empty_table(), path)
    RunStore(path.parent.parent).finished()


def asked(task=None, name=None, path=None, folder=None, report=None):
    nothing = SimpleNamespace(params=defaultdict(lambda: None))
    reproduce(nothing, task, preset=name, plan=path, store=folder, report=report)


def other_data():
    store = RunStore(HERE / "other")
    made_up(Plan(**{**TOY, "sizes": (20,)}), store)
    store.check_data("toy", 1000)
    store.check_data("toy", 900)


def other_choices():
    store = RunStore(HERE / "older")
    store.write_table("toy", "choices", [{"task": "toy", "size": 2}])
    _choice.read_choices(store)


MESSAGES = [
    (
        lambda: cnn_bfloat16((8, 8, 1), key=0, outputs=2),
        (
            "The model cnn-bfloat16 must have PyTorch's convolutions on a CPU, and one output: they "
            "are not there. Take the model cnn, or pip install torch."
        ),
    ),
    (
        lambda: Way.named("magic"),
        lambda: (
            f"A method must be one of {', '.join(METHODS)}: 'magic' given. Choose one, or add it."
        ),
    ),
    (
        lambda: Way.named("upm:magic"),
        (
            "A method's loss must be one of log, square, poisson, cross_entropy, brier: 'magic' "
            "given. Choose one of these."
        ),
    ),
    (
        lambda: add_method("upm", abs),
        (
            "A method to add must be a function with a new name of letters, digits and _: 'upm' "
            "given. See docs/adding.md."
        ),
    ),
    (
        lambda: add_task("mine", toy, model="magic"),
        lambda: (
            f"A task's model must be one of {', '.join(MODELS)}: 'magic' given. Choose one, or add "
            "it."
        ),
    ),
    (
        lambda: Plan("magic"),
        lambda: (
            f"A plan's task must be one of {', '.join(TASKS)}: 'magic' given. Choose one of these."
        ),
    ),
    (
        lambda: Plan("toy", sizes=(600,)).check_data(),
        (
            "A bag size must leave at least 2 bags: bags of 600 given for the 1000 rows of toy. "
            "Make the bags smaller."
        ),
    ),
    (
        lambda: Plan("toy", sizes=(300,), holdout=0.2).check_data(),
        (
            "A bag size must leave at least 4 bags: bags of 300 given for the 1000 rows of toy. "
            "Make the bags smaller."
        ),
    ),
    (
        lambda: Plan("toy", sizes=(1.5,)),
        "A plan's sizes must be a list with at least one int: (1.5,) given. Give one.",
    ),
    (
        lambda: Plan("toy", methods=()),
        "A plan's methods must be a list with at least one str: () given. Give one.",
    ),
    (
        lambda: Plan("toy", epochs=0),
        "A plan's epochs must be a whole number of at least 1: 0 given. Change it.",
    ),
    (
        lambda: Plan("toy", rates=(0.1, -0.1)),
        (
            "Bag sizes and learning rates must be positive: the smallest are 1 and -0.1. Leave "
            "these out."
        ),
    ),
    (
        lambda: Plan("toy", holdout=1),
        (
            "A plan's holdout and smoothing must lie in [0, 1): 1 and 0.1 given. Use 0.2 to hold "
            "out a fifth of the bags."
        ),
    ),
    (
        lambda: Plan("toy", holdout="x"),
        (
            "A plan's holdout and smoothing must lie in [0, 1): 'x' and 0.1 given. Use 0.2 to hold "
            "out a fifth of the bags."
        ),
    ),
    (
        lambda: Plan(["toy"]),
        "A plan's task must be a text: ['toy'] given. Put one name in quotation marks.",
    ),
    (
        lambda: Plan("toy", methods=5),
        "A plan's methods must be a list with at least one str: 5 given. Give one.",
    ),
    (
        lambda: preset("magic", "toy"),
        "A preset must be one of paper, laptop, smoke: 'magic' given. Choose one of these.",
    ),
    (
        lambda: read_plan(written("bad.toml", "task =")),
        (
            f"A plan must be a TOML file: {HERE / 'bad.toml'} is not (Invalid value (at end of "
            "document)). Fix it."
        ),
    ),
    (
        lambda: read_plan(written("odd.toml", 'task = "toy"\ncolour = 3')),
        "A plan must name a task and may have preset, model, methods, sizes, rates, "
        "repetitions, epochs, batch, smoothing, holdout, start, rows, rates_together, "
        f"repetitions_together: colour given in {HERE / 'odd.toml'}. Fix it.",
    ),
    (
        other_format,
        f"A store must be of format {FORMAT}: {HERE / 'old' / 'toy' / 'k.parquet'} is of format "
        "99. Use the unbag that wrote it, or another folder.",
    ),
    (
        lambda: online_preset("smoke", chunks=-1),
        "A plan's chunks must be a whole number of at least 0: -1 given. Change it.",
    ),
    (
        lambda: online_preset("smoke", rates=(-1.0,)),
        "Bag sizes and learning rates must be positive: the smallest are 16 and -1. Leave these "
        "out.",
    ),
    (
        lambda: OnlineStore(written("newer/plan.json", '{"colour": 3}').parent).plan(),
        "A plan of online runs must have the fields source, model, methods, sizes, rates, "
        "repetitions, chunks, rows, batch, priors, tuning: colour given in "
        f"{HERE / 'newer' / 'plan.json'}. Use the unbag that wrote it, or another folder.",
    ),
    (
        lambda: OnlineStore(written("torn/plan.json", '{"source"').parent).plan(),
        f"What a store of online runs keeps must be JSON: {HERE / 'torn' / 'plan.json'} is not "
        "(Expecting ':' delimiter: line 1 column 10 (char 9)). Delete it.",
    ),
    (
        other_data,
        f"A store's runs of a task must come from the same data: {HERE / 'other'} has runs of "
        "toy with 50 bags of 20, but the 900 rows that there are now make 45. Use another "
        "folder.",
    ),
    (
        other_choices,
        "A table of choices must have the columns task, model, start, epochs, batch, rows, "
        "size, holdout, repetition, among, candidates, method, loss, rate, epoch, test_loss, "
        f"test_auc: one in {HERE / 'older'} has task, size. Delete choices.csv there, and run "
        "its plan again.",
    ),
    (asked, "A task, a plan or a report must be asked for: none given. Try: unbag reproduce adult"),
    (
        lambda: _pair(["upm"]),
        "A paired test must have two methods: upm given. Give --compare twice, as --compare upm "
        "--compare anchored:square.",
    ),
    (
        lambda: asked("toy", "smoke", Path("p.toml")),
        "A plan must come from a preset or from a file: smoke and p.toml given. Leave one out.",
    ),
    (
        lambda: asked(report=written("file", "")),
        f"A report must go to a folder: {HERE / 'file'} is a file. Choose another name.",
    ),
    (
        lambda: asked(report=written("full/file", "").parent),
        (
            f"A report must go to an empty folder: {HERE / 'full'} is not empty. Use --force to "
            "overwrite."
        ),
    ),
    (
        lambda: asked(folder=HERE / "nothing", report=HERE / "new"),
        f"A report must have runs: {HERE / 'nothing'} has none. Make some: unbag reproduce adult",
    ),
]
