"""Each message in full: the thing, the rule, what came (one offender and the count), what to do."""

import ast
import importlib
import traceback
from pathlib import Path

import numpy as np
import pytest

import unbag
from unbag import Bags, from_rows, random_bags, weights

BAG = np.array([0, 0, 1, 1])
ONES = np.ones(2)
REPORT = np.array([[1, 0.5], [1, 0.25]])
PRIOR = np.array([1, 0.3])
SIZE = np.array([2, 2])

MESSAGES = [
    (
        lambda: Bags(BAG, [0.5, 0.5], offset=[0, np.nan, 0, 0]),
        "An offset must be finite: instance 1 has nan (1 such instance). Give the log exposure, or "
        "the score of a model, of every instance.",
    ),
    (
        lambda: Bags(BAG, [0.5, 0.5], offset=np.zeros(3)),
        "offset must have one entry for each instance: 3 came for 4 instances. Give them in the "
        "order of the instances.",
    ),
    (
        lambda: Bags(BAG, [0.5, 0.5], stratum=[0, 1], stratum_names=["north"]),
        "Every stratum must have a name: 1 came, and the last stratum is number 1. Give one for "
        "each number from 0, or leave stratum_names= out.",
    ),
    (
        lambda: Bags(BAG, [0.5, np.nan]),
        "A report must be finite: bag 1 has nan (1 such bag). Say with status= which bags are "
        "suppressed or pending, or fix the export; never write 0 for them.",
    ),
    (
        lambda: Bags(BAG, [np.inf, -np.inf]),
        "A report must be finite: bag 0 has inf (2 such bags). Say with status= which bags are "
        "suppressed or pending, or fix the export; never write 0 for them.",
    ),
    (
        lambda: Bags(BAG, [0.5, 1.5]),
        "A proportion without noise must lie in [0, 1]: bag 1 has 1.5 (1 such bag). Divide "
        "totals by the bag size; if noise was added on purpose, declare its variance with "
        "noise=.",
    ),
    (
        lambda: Bags(BAG, [0.5, -0.5], noise=[1, 0]),
        "A proportion without noise must lie in [0, 1]: bag 1 has -0.5 (1 such bag). Divide "
        "totals by the bag size; if noise was added on purpose, declare its variance with "
        "noise=.",
    ),
    (
        lambda: Bags(BAG, [-1, 2], "total"),
        "A mean count without noise must lie in [0, inf]: bag 0 has -1 (1 such bag). Divide "
        "totals by the bag size; if noise was added on purpose, declare its variance with "
        "noise=.",
    ),
    (
        lambda: Bags(BAG, [1, 7], "total", cap=5),
        "A mean count without noise must lie in [0, 5]: bag 1 has 7 (1 such bag). Divide totals "
        "by the bag size; if noise was added on purpose, declare its variance with noise=.",
    ),
    (
        lambda: Bags(BAG, [[0.5, 0.5], [-0.1, 1.1]], "histogram"),
        "A class share without noise must lie in [0, 1]: bag 1 has [-0.1,  1.1] (1 such bag). "
        "Divide totals by the bag size; if noise was added on purpose, declare its variance "
        "with noise=.",
    ),
    (
        lambda: Bags(BAG, [[0.5, 0.4], [0.5, 0.5]], "histogram"),
        "A histogram without noise must sum to 1: bag 0 has 0.9 (1 such bag). Divide class "
        "counts by the bag size; if noise was added, declare its variance with noise=.",
    ),
    (
        lambda: Bags(BAG, [0.5, 0.5], noise=[1, -1]),
        "A noise variance must be finite and not negative: bag 1 has -1 (1 such bag). Give the "
        "variance of the noise on the bag's count, 0 for an exact report.",
    ),
    (
        lambda: Bags(BAG, [0.5, 0.5, 0.5]),
        (
            "A bag must hold at least one instance: bag 2 has 0 (1 such bag). Drop its report, or "
            "add its rows."
        ),
    ),
    (
        lambda: Bags(BAG, [0.5]),
        "A bag number must lie between 0 and 0, the last report: row 2 has 1 (2 such rows). "
        "Number the bags in the order of the reports, or use from_rows for ids of any kind.",
    ),
    (
        lambda: Bags(BAG, [[0.5], [0.5]]),
        "Reports of kind binary must have 1 dimension(s), one entry per bag: an array of shape "
        "(2, 1) came. Use kind='histogram' for class shares, else one number per bag.",
    ),
    (
        lambda: Bags(BAG, [0.5, 0.5], "ternary"),
        "A kind of report must be one of binary, total, histogram: 'ternary' came. Proportions "
        "are binary, mean counts are total, class shares are histogram.",
    ),
    (
        lambda: Bags(BAG, [0.5, 0.5], X=np.ones((3, 2))),
        (
            "X must have one entry for each instance: 3 came for 4 instances. Give them in the "
            "order of the instances."
        ),
    ),
    (
        lambda: Bags(BAG, [0.5, 0.5], stratum=[0]),
        (
            "stratum must have one entry for each bag: 1 came for 2 bags. Give them in the order "
            "of the bags."
        ),
    ),
    (
        lambda: Bags(BAG, [0.5, 0.5], stratum=[0, -1]),
        "A stratum number must not be negative: bag 1 has -1 (1 such bag). Number the strata "
        "from 0, or use from_rows for strata of any kind.",
    ),
    (
        lambda: Bags(BAG, [0.5, 0.5], known_prior=[0.5, 0.5]),
        "A prior must be finite and look like one report (one per stratum), of shape (): [0.5, "
        "0.5] of shape (2,) came. Leave it out to take the size-weighted mean report.",
    ),
    (
        lambda: Bags(BAG, [[0.5, 0.5], [0.5, 0.5]], "histogram", known_prior=[0.2, 0.3, 0.5]),
        "A prior must be finite and look like one report (one per stratum), of shape (2,): "
        "[0.2, 0.3, 0.5] of shape (3,) came. Leave it out to take the size-weighted mean report.",
    ),
    (
        lambda: from_rows([1, "a", 1], [0.5, 0.5, 0.5]),
        (
            "A bag id must be of one type: int and str came. Turn all into strings or all into "
            "integers."
        ),
    ),
    (
        lambda: from_rows(["a", None, "b"], [0.5, 0.5, 0.5]),
        (
            "A bag id must not be missing: row 1 has None (1 such row). Drop such rows or give "
            "them a bag."
        ),
    ),
    (
        lambda: from_rows(np.array([1, np.nan]), [0.5, 0.5]),
        (
            "A bag id must not be missing: row 1 has nan (1 such row). Drop such rows or give them "
            "a bag."
        ),
    ),
    (
        lambda: from_rows(np.array([[1], [2]]), [0.5, 0.5]),
        "A bag id must be one value per row: an array of shape (2, 1) came. Flatten it.",
    ),
    (
        lambda: from_rows(["a", "b"], {"a": 0.5}),
        (
            "Every bag must have a report: bag b has none (1 such bag). Add it, or leave the rows "
            "of that bag out."
        ),
    ),
    (
        lambda: from_rows(["a", "b"], {"a": 0.5, "b": 0, "c": 1, "d": 1}),
        "A bag must hold at least one instance: bag c has a report and no rows (2 such bags). "
        "Drop its report, or add its rows.",
    ),
    (
        lambda: from_rows(["a", "a", "b"], [0.5, 0.6, 0.5]),
        "A report must be the same for all rows of a bag: bag a has 0.5 and 0.6 (1 such bag). "
        "Give every row its bag's report, or pass labels of the rows as y=.",
    ),
    (
        lambda: from_rows(["a", "a", "b"], [0.5, 0.5, 0.5], size={"a": 2, "b": 3}),
        "A reported size must be the number of rows of the bag: bag b has 3 reported and 1 rows "
        "(1 such bag). Find the missing or doubled rows: the estimate is biased without them.",
    ),
    (
        lambda: from_rows(["a", "b"], [0.5]),
        (
            "report must have one entry for each row: 1 came for 2 rows. Give them in the order of "
            "the rows."
        ),
    ),
    (
        lambda: from_rows(["a", "b"]),
        "Bags must have either reports or labels: both or neither came. Give report= or y=.",
    ),
    (
        lambda: random_bags(None, [0, 1, 2], size=1, seed=0),
        (
            "A binary label must be 0 or 1: row 2 has 2 (1 such row). Use kind='histogram' or "
            "kind='total'."
        ),
    ),
    (
        lambda: random_bags(None, [0, 1, -2], size=1, seed=0, kind="total"),
        "A count must be finite and not negative: row 2 has -2 (1 such row). Use counts.",
    ),
    (
        lambda: random_bags(None, [0, 1.5, 1], size=1, seed=0, kind="histogram"),
        "A class must be a whole number from 0: row 1 has 1.5 (1 such row). Use class numbers.",
    ),
    (
        lambda: random_bags(None, [0, 3], size=1, seed=0, kind="histogram", classes=3),
        "A class must be below 3: row 1 has 3 (1 such row). Raise classes=, or leave it out.",
    ),
    (
        lambda: random_bags(None, [0, 1], size=3, seed=0),
        "Bags must fit into the rows: bags of 3 came for 2 rows. Make the bags smaller.",
    ),
    (
        lambda: random_bags(None, [0, 1], size=[1, 2], seed=0),
        "Bag sizes must fit into the rows: they add up to 3 for 2 rows. Leave some out.",
    ),
    (
        lambda: random_bags(None, [0, 1], size=[1, 0], seed=0),
        "A bag size must be positive: bag 1 has 0 (1 such bag). Leave empty bags out.",
    ),
    (
        lambda: Bags(BAG, [0.5, 0.5]).split(0.5, seed=0),
        "Bags to split must be at least four, two for each part: set of bags 0 has 2 (1 such "
        "set of bags). Make smaller bags, or merge small strata.",
    ),
    (
        lambda: random_bags(None, np.tile([0, 1], 10), size=4, seed=0).split(1.0, seed=0),
        "A fraction must lie between 0 and 1: 1.0 came. Use 0.8 to hold out a fifth.",
    ),
    (
        lambda: list(Bags(BAG[:2], [0.5]).batches(seed=0)),
        "An epoch must hold at least two bags, because each bag is centred by the mean of the "
        "others: 1 came. Give more bags, or a pool of further instances.",
    ),
    (
        lambda: list(Bags(np.arange(4), np.ones(4), stratum=[0, 1, 1, 1]).batches(seed=0)),
        "A stratum must hold at least two bags, because each bag is centred by the mean of the "
        "others: stratum 0 has 1 (1 such stratum). Merge small strata, or cut them into random "
        "sub-bags; where a stratum has one report only, leave the strata out and train by "
        "matching or likelihood.",
    ),
    (
        lambda: list(Bags(BAG, [0.5, 0.5]).batches(0, seed=0)),
        "A batch must hold at least one instance: 0 came. The paper uses 4096.",
    ),
    (
        lambda: weights.upm(SIZE[:1], REPORT[:1], PRIOR),
        "A batch must hold at least two bags, because each bag is centred by the mean of the "
        "others: 1 came. Give more bags, or a pool of further instances.",
    ),
    (
        lambda: weights.upm(
            np.ones(3), np.ones((3, 2)), np.ones((2, 2)), stratum=np.array([0, 0, 1])
        ),
        "A stratum must hold at least two bags, because each bag is centred by the mean of the "
        "others: stratum 1 has 1 (1 such stratum). Merge small strata, or cut them into random "
        "sub-bags; where a stratum has one report only, leave the strata out and train by "
        "matching or likelihood.",
    ),
    (
        lambda: weights.upm(SIZE, REPORT, np.ones(3)),
        "A prior must have one entry per component, of shape (2,): one of shape (3,) came. Take "
        "it from Bags.components().",
    ),
    (
        lambda: weights.upm(SIZE, REPORT, PRIOR, stratum=np.zeros(2, int)),
        "A prior must have one entry per component for each stratum, of shape (2, 2): one of "
        "shape (2,) came. Take it from Bags.components().",
    ),
    (
        lambda: weights.upm(SIZE, REPORT, PRIOR, weight=np.array([0.5, 0.6])),
        "The weights of the bags must add up to 1 in each stratum: stratum 0 has 1.1 (1 such "
        "stratum). Divide them by their sum.",
    ),
    (
        lambda: weights.easy(SIZE, REPORT, PRIOR, weight=np.array([1.5, -0.5])),
        "A bag's weight must be finite and not negative: bag 1 has -0.5 (1 such bag). Use "
        "noise_weights for noisy reports.",
    ),
    (
        lambda: weights.easy(SIZE, REPORT * np.nan, PRIOR),
        (
            "A report must be finite: bag 0 has [nan, nan] (2 such bags). Give a bag whose report "
            "is pending the weight 0."
        ),
    ),
    (
        lambda: weights.upm(np.ones(3), REPORT, PRIOR),
        (
            "size must have one entry for each bag: 3 came for 2 bags. Give them in the order of "
            "the bags."
        ),
    ),
    (
        lambda: weights.anchored(BAG, np.array([1, 3]), REPORT, PRIOR, np.ones((4, 2))),
        "A size must be the number of instances of the bag: bag 0 has size 1 and 2 instances (2 "
        "such bags). Batches must hold whole bags.",
    ),
    (
        lambda: weights.anchored(BAG, SIZE, REPORT, PRIOR, np.ones((3, 2))),
        "reference must have one entry for each instance: 3 came for 4 instances. Give them in "
        "the order of the instances.",
    ),
    (
        lambda: weights.anchored(BAG, SIZE, REPORT, PRIOR, np.ones((4, 2)), pool=3),
        "A pool must come with the mean of the reference, reference_mean=: none came. Give its "
        "mean over these instances and the pool together.",
    ),
    (
        lambda: random_bags(None, [0, 1], size=1, seed=0, stratum=["a"]),
        (
            "stratum must have one entry for each row: 1 came for 2 rows. Give them in the order "
            "of the rows."
        ),
    ),
    (
        lambda: from_rows(["a", "b"], y=[1]),
        (
            "y must have one entry for each row: 1 came for 2 rows. Give them in the order of the "
            "rows."
        ),
    ),
    (
        lambda: weights.upm(SIZE, REPORT, np.stack([PRIOR, PRIOR]), stratum=np.zeros(3, int)),
        (
            "stratum must have one entry for each bag: 3 came for 2 bags. Give them in the order "
            "of the bags."
        ),
    ),
    (
        lambda: weights.upm(SIZE, REPORT, np.stack([PRIOR, PRIOR]), stratum=np.array([0, 2])),
        "A stratum number must lie between 0 and 1, the last prior: bag 1 has 2 (1 such bag). "
        "Give one prior for each stratum.",
    ),
    (
        lambda: weights.upm(SIZE, REPORT, PRIOR, weight=np.full(3, 1 / 3)),
        (
            "weight must have one entry for each bag: 3 came for 2 bags. Give them in the order of "
            "the bags."
        ),
    ),
    (
        lambda: weights.noise_weights(SIZE, ONES, variance=0),
        "A label variance must be positive: 0 came. For binary labels it is p (1 - p).",
    ),
    (
        lambda: weights.upm_by_bag(np.ones((4, 2)), BAG, np.array([1, 3]), REPORT, PRIOR),
        "A size must be the number of instances of the bag: bag 0 has size 1 and 2 instances (2 "
        "such bags). Batches must hold whole bags.",
    ),
    (
        lambda: weights.pseudo_labels(np.array([[0.5, 0.1], [0.0, 0.2]])),
        "A sample weight must be positive: row 1 has 0 (1 such row). Give at least two bags a "
        "positive weight in each stratum.",
    ),
]


@pytest.mark.parametrize("make, message", MESSAGES, ids=range(len(MESSAGES)))
def test_bad_input_gets_a_clear_error(make, message, unchecked_shapes):
    with pytest.raises(ValueError) as error:
        make()
    assert str(error.value) == message


RULES = Path(unbag.__file__).parent / "_rules.py"
HELPERS = ("refuse", "rows", "two_bags", "self._refuse")


def refusals(path):
    """Line ranges of the places in a source file that refuse something."""
    for node in ast.walk(ast.parse(path.read_text())):
        helper = isinstance(node, ast.Call) and ast.unparse(node.func) in HELPERS
        made_by = getattr(getattr(getattr(node, "exc", None), "func", None), "id", "")
        raises = isinstance(node, ast.Raise) and made_by in ("ValueError", "broken")
        if helper or raises:
            yield node.lineno, node.end_lineno


def place_of(error):
    """The innermost line of the package, outside the helpers that build messages."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "unbag" in f.filename]
    frame = next(f for f in reversed(frames) if Path(f.filename) != RULES)
    return Path(frame.filename).resolve(), frame.lineno


TABLES = (
    "test_bad_input",
    "test_learner_messages",
    "test_losses",
    "test_matching",
    "test_likelihood",
    "test_medians",
    "test_planning",
    "test_tournaments",
    "test_training",
    "test_estimators",
    "test_pytorch",
    "test_boosting",
    "test_lab",
    "test_diagnosis",
    "test_metrics",
    "test_selection",
    "test_recalibration",
    "test_statuses",
    "test_noise",
    "test_designing",
    "test_datasets",
    "test_datasets_synthetic",
    "test_criteo",
    "test_stream",
    "test_tables",
    "test_cli",
    "test_sql",
    "test_engines",
    "test_parallel",
    "test_report",
)
# tested beside what they need: a server, a screen, tables of cells, a stream that goes on
ELSEWHERE = {
    RULES.name,
    "_demo.py",
    "_app.py",
    "_adult.py",
    "_files.py",
    "_buffer.py",
    "_marginals.py",
    "_cells.py",
    "_held_cells.py",
    "_identification.py",
    "_overlap.py",
}


def test_every_refusal_has_a_test_of_its_text(unchecked_shapes):
    seen, absent = set(), set()
    for table in TABLES:
        try:
            messages = importlib.import_module(table).MESSAGES
        except pytest.skip.Exception:  # an optional package is not installed
            absent.add(table.removeprefix("test_"))
            continue
        for make, _ in messages:
            with pytest.raises(ValueError) as error:
                make()
            seen.add(place_of(error.value))
    untested = []
    for path in sorted(Path(unbag.__file__).resolve().parent.rglob("*.py")):
        left_out = (
            path == RULES or path.name in ELSEWHERE - {RULES.name} or path.parent.name in absent
        )
        for first, last in refusals(path) if not left_out else ():
            if not any(where == path and first <= line <= last for where, line in seen):
                untested.append(f"{path.parent.name}/{path.name}:{first}")
    assert not untested, f"no test of the messages at {', '.join(untested)}"


def test_reports_outside_their_range_are_normal_once_noise_is_declared():
    assert Bags(BAG, [1.4, -0.2], noise=[4, 4]).prior == pytest.approx(0.6)
    assert Bags(BAG, [[1.2, -0.1], [0.3, 0.3]], "histogram", noise=[4, 4]).noise.tolist() == [4, 4]


def test_shapes_are_checked_in_the_tests():
    import jaxtyping

    with pytest.raises(jaxtyping.TypeCheckError):
        weights.upm(np.ones(3), REPORT, PRIOR)
