"""Bags that a model learned from are known again when their report was restated or is not there."""

from types import SimpleNamespace

import numpy as np
import pytest

import unbag
from unbag.cli._evaluate import tell_learned, unseen
from unbag.metrics import check_apart, known_bags, marks
from unbag.recalibration import Recalibrated

BAGS = 120


def make(seed=0, *, sizes=None, bags=BAGS):
    """Bags of ten events, or of these sizes, with counts that are drawn anew for each seed."""
    size = np.full(bags, 10) if sizes is None else sizes
    count = np.random.default_rng(seed).binomial(size, 0.3)
    return unbag.Bags(
        np.repeat(np.arange(bags), size),
        count / size,
        names=np.array([f"bag {i}" for i in range(bags)]),
    )


def restated(bags, where):
    """The same bags, one more counted in some."""
    count = bags.report * bags.size
    return unbag.Bags(
        bags.bag, np.where(where, count + 1, count) / bags.size, names=bags.names, kind="total"
    )


def ragged(seed):
    return np.random.default_rng(seed).integers(5, 30, BAGS)


def recalibrated(model):
    nothing = SimpleNamespace(learned_=None)
    return Recalibrated(SimpleNamespace(steps=[("model", model)]), nothing)


LEARNED = np.arange(96)
HALF = np.arange(BAGS) % 2 == 0


def test_restated_bags_are_left_out_and_told(capsys):
    bags = make()
    learned = marks(bags.take(LEARNED))
    again = restated(bags, HALF)
    fresh = unseen(again, learned)
    assert fresh.names.tolist() == bags.names[96:].tolist()
    tell_learned(again, fresh, learned)
    assert capsys.readouterr().err == (
        "96 bags that the model learned from were left out. 48 of them have another report "
        "or size than it learned from.\n"
    )


@pytest.mark.parametrize(
    "wrap", [lambda m: SimpleNamespace(steps=[("scale", None), ("model", m)]), recalibrated]
)
def test_a_pipeline_or_a_search_knows_the_bags_of_its_last_step(wrap):
    bags = make()
    model = wrap(SimpleNamespace(learned_=marks(bags.take(LEARNED))))
    for each in (model, SimpleNamespace(best_estimator_=model)):
        with pytest.raises(ValueError, match="96 such"):
            check_apart(each, bags, None)
        check_apart(each, bags.take(np.arange(96, BAGS)), None)


def test_what_is_learned_in_parts_is_known_again_part_by_part():
    rng, model = np.random.default_rng(0), unbag.BagClassifier(hidden=(), diagnose=False)
    rows, number = rng.normal(size=(80, 2)), np.arange(80) // 4
    parts = [
        (np.array([f"{part}{i}" for i in number]), rng.integers(0, 5, 20)[number] / 4)
        for part in "abc"
    ]
    bags = [unbag.from_rows(names, y, X=rows) for names, y in parts]
    for names, y in [*parts[:2], parts[0]]:
        model.partial_fit(rows, y, bag=names)
    for learned in bags[:2]:
        with pytest.raises(ValueError, match="20 such"):
            check_apart(model, learned, None)
    check_apart(model, bags[2], None)
    assert len(model.learned_) == 40


def test_bags_whose_report_is_not_there_any_more_are_left_out():
    bags = make()
    status = np.where(np.arange(BAGS) % 3 == 0, "pending", "observed")
    later = unbag.Bags(
        bags.bag,
        np.where(status == "pending", np.nan, bags.report),
        names=bags.names,
        status=status,
    )
    known = known_bags(later, marks(bags.take(LEARNED)))
    assert np.flatnonzero(known.bag).tolist() == LEARNED.tolist()
    assert not known.restated.any()


def test_sizes_tell_the_table_where_all_reports_were_restated():
    bags = make(sizes=ragged(0))
    again, learned = restated(bags, True), marks(bags.take(LEARNED))
    assert np.flatnonzero(known_bags(again, learned).bag).tolist() == LEARNED.tolist()


@pytest.mark.parametrize("sizes", ["alike", "ragged", "of two strata"])
def test_another_table_that_is_numbered_alike_is_new(sizes):
    of = {
        "alike": lambda seed: None,
        "ragged": ragged,
        "of two strata": lambda seed: np.repeat([10, 12], BAGS // 2),
    }
    one, other = (make(seed, sizes=of[sizes](seed)) for seed in (1, 2))
    known = known_bags(other, marks(one))
    assert known.bag.mean() < 0.5  # by chance a few agree in name, size and report
    assert not known.restated.any()
    check_apart(SimpleNamespace(learned_=marks(one)), other, None)
    check_apart(None, other, one)


@pytest.mark.parametrize("remembered", ["marks", "bags"])
@pytest.mark.parametrize("pending", [False, True])
def test_held_out_bags_with_restated_reports_are_refused(remembered, pending):
    bags, again = make(), restated(make(), HALF)
    if pending:  # of some bags the report is not there any more
        status = np.where(np.arange(BAGS) < 12, "pending", "observed")
        again = unbag.Bags(again.bag, again.report, "total", names=bags.names, status=status)
    models = {"marks": SimpleNamespace(learned_=marks(bags)), "bags": SimpleNamespace(bags_=bags)}
    with pytest.raises(ValueError, match="must not overlap the bags that the model learned from"):
        check_apart(models[remembered], again, None)


def test_a_model_without_marks_knows_no_bag():
    assert not known_bags(make(), None).bag.any()


def test_reports_that_were_rounded_to_single_precision_are_the_same_reports():
    report, bag = np.random.default_rng(0).integers(1, 9, 40) / 9, np.repeat(np.arange(40), 9)
    learned = unbag.Bags(bag, report, names=np.arange(40))
    again = unbag.Bags(bag, report.astype(np.float32), names=np.arange(40))
    with pytest.raises(ValueError, match="Held-out bags must not overlap"):
        check_apart(SimpleNamespace(bags_=learned), again, None)
