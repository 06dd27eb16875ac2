import subprocess
import sys
from dataclasses import replace
from functools import cache

import numpy as np
import pyarrow as pa
import pytest

from cases.learners import labels
from cases.packages import needs
from unbag import Bags, random_bags
from unbag.learners import Trees, TreesModel, folds_of
from unbag.learners._trees import TreeColumns

needs("lightgbm")
QUICK = Trees(rounds=60, patience=20, threads=1)


def table(n=4000, seed=0):
    """A number with gaps, a category, a date, and the logit that they have."""
    rng = np.random.default_rng(seed)
    age, shop = rng.normal(size=n), rng.integers(4, size=n)
    gap = rng.uniform(size=n) < 0.1
    score = -1 + np.where(gap, 0.8, age) + np.array([0, 1.0, -1.0, 0.5])[shop]
    day = np.datetime64("2026-01-01") + rng.integers(60, size=n)
    columns = {
        "age": pa.array(np.where(gap, np.nan, age), from_pandas=True),
        "shop": pa.array(np.array(["a", "b", "c", "d"])[shop]),
        "day": pa.array(day),
    }
    return pa.table(columns), score, rng


def bags_of(kind="binary", size=8, seed=0, **options):
    X, score, rng = table(seed=seed)
    y = labels(kind, score, rng)
    return random_bags(X, y, size=size, seed=seed, kind=kind, **options), score


@cache
def learned(kind):
    """Bags, the score of each row, the fold of each bag and what was learned, which is what `fit`
    does."""
    bags, score = bags_of(kind)
    fold = folds_of(bags, QUICK.folds, seed=0)
    return bags, score, fold, QUICK.fit_folds(bags, fold)


@pytest.mark.parametrize("kind", ["binary", "total"])
def test_trees_learn_from_a_table_of_raw_columns(kind):
    bags, score, _, found = learned(kind)
    assert np.corrcoef(found.final.scores(bags.X), score[bags.rows])[0, 1] > 0.9


def test_trees_learn_class_histograms():
    bags, score, _, learned_ = learned("histogram")
    found = learned_.final.scores(bags.X)
    assert found.shape == (len(bags.bag), 3)
    contrast = np.logaddexp(found[:, 1], found[:, 2]) - found[:, 0]
    assert np.corrcoef(contrast, score[bags.rows])[0, 1] > 0.85
    share = np.exp(found) / np.exp(found).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(share.mean(axis=0), bags.prior, atol=0.01)


@pytest.mark.parametrize("kind", ["binary", "total", "histogram"])
def test_the_mean_prediction_is_the_mean_report(kind):
    bags, _, fold, found = learned(kind)
    model = found.models[0]
    part = bags.take(np.flatnonzero(fold != 0))
    score = model.scores(part.X)
    predicted = {
        "binary": lambda: (1 / (1 + np.exp(-score))).mean(),
        "total": lambda: np.exp(score).mean(),
        "histogram": lambda: (np.exp(score) / np.exp(score).sum(axis=1, keepdims=True)).mean(0),
    }[kind]()
    np.testing.assert_allclose(predicted, part.prior, rtol=2e-3)


def test_a_fold_model_does_not_depend_on_the_reports_of_its_fold_but_by_other_folds_stop():
    """With the rounds fixed it does not depend on them at all."""
    bags, _ = bags_of(size=30)
    fold = folds_of(bags, 4, seed=0)
    changed = np.where(fold == 2, bags.report[::-1], bags.report)
    fixed = Trees(rounds=0)
    first = fixed.fit_folds(bags, fold).models[2].scores(bags.X)
    second = fixed.fit_folds(replace(bags, report=changed), fold).models[2].scores(bags.X)
    np.testing.assert_array_equal(first, second)


def test_the_same_seed_gives_the_same_model_on_any_number_of_threads():
    bags, _, _, one = learned("binary")
    two = replace(QUICK, threads=2).fit(bags, seed=0)
    np.testing.assert_array_equal(one.final.scores(bags.X), two.scores(bags.X))


def test_a_model_comes_back_from_its_arrays():
    bags, _, _, found = learned("histogram")
    model = found.final
    arrays, settings = model.arrays()
    assert all(array.dtype != object for array in arrays.values())
    back = TreesModel.restore(arrays, settings)
    np.testing.assert_array_equal(back.scores(bags.X), model.scores(bags.X))


def test_the_offset_is_added_to_scores_and_is_not_learned_again():
    bags, score = bags_of("total")
    with_truth = replace(bags, offset=score[bags.rows])
    found = QUICK.fit(with_truth).scores(bags.X)
    assert found.std() < 0.3 * score.std()
    assert abs(found.mean()) < 0.1


def test_noise_and_strata_are_taken():
    X, score, rng = table()
    y = rng.uniform(size=len(score)) < 1 / (1 + np.exp(-score))
    bags = random_bags(X, y, size=10, seed=0, stratum=rng.integers(3, size=len(y)))
    noise = np.full(len(bags), 2.0)
    report = bags.report + rng.normal(size=len(bags)) * np.sqrt(noise) / bags.size
    found = QUICK.fit(replace(bags, report=report, noise=noise)).scores(bags.X)
    assert np.corrcoef(found, score[bags.rows])[0, 1] > 0.8


def test_a_stratum_of_one_bag_is_no_obstacle():
    bags, _ = bags_of(size=60)
    stratum = np.zeros(len(bags), int)
    stratum[0] = 1
    assert np.isfinite(QUICK.fit(replace(bags, stratum=stratum)).scores(bags.X)).all()


def test_too_few_bags_give_the_prior():
    bags, _ = bags_of(size=2000)
    score = QUICK.fit(bags).scores(bags.X)
    np.testing.assert_allclose(1 / (1 + np.exp(-score)), bags.prior)


def test_levels_that_were_never_seen_are_missing():
    X = pa.table({"shop": ["a", "b", "a", None] * 30, "n": list(range(3)) * 40})
    columns = TreeColumns.of(X)
    assert columns.categorical == [0]
    found = columns.matrix(pa.table({"shop": ["b", "new", None], "n": [1, 2, 3]}))
    assert np.isnan(found[1, 0])
    assert not np.isnan(found[[0, 2], 0]).any()


def test_progress_is_reported():
    steps = []
    bags, _ = bags_of(size=30)
    Trees(rounds=10).fit(bags, progress=lambda *step: steps.append(step))
    assert steps[0][:2] == (0, 10)
    assert "trees of depth 1" in steps[0][2]


def test_a_matrix_and_a_sparse_matrix_are_taken():
    from scipy import sparse

    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 3)) * (rng.uniform(size=(3000, 3)) < 0.7)
    y = rng.uniform(size=3000) < 1 / (1 + np.exp(-X[:, 0]))
    bags = random_bags(X, y, size=6, seed=0)
    few = Trees(rounds=10)
    dense = few.fit(bags).scores(bags.X)
    same = few.fit(replace(bags, X=sparse.csr_array(bags.X))).scores(sparse.csr_array(bags.X))
    np.testing.assert_allclose(dense, same, atol=1e-9)


def test_without_lightgbm_the_message_says_what_to_do():
    code = (
        "import sys, numpy as np; sys.modules['lightgbm'] = None\n"
        "from unbag import random_bags; from unbag.learners import Trees\n"
        "bags = random_bags(np.arange(40.0)[:, None], np.tile([0, 1], 20), size=4, seed=0)\n"
        "try: Trees().fit(bags)\n"
        "except ImportError as error: print(error)\n"
    )
    command = [sys.executable, "-c", code]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "so there are no trees. Install libgomp1" in printed


def test_bags_of_one_are_labels():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2))
    y = rng.uniform(size=3000) < 1 / (1 + np.exp(-2 * X[:, 0]))
    bags = Bags(np.arange(3000), y.astype(float), X=X)
    z = QUICK.fit(bags).scores(X)
    assert np.mean(np.logaddexp(0, z) - y * z) < 0.5


@pytest.mark.parametrize("kind", ["binary", "total"])
def test_blocks_of_rows_change_nothing(kind, monkeypatch):
    bags = bags_of(kind)[0]
    trees = Trees(rounds=10)
    whole = trees.fit(bags).scores(bags.X)
    monkeypatch.setattr("unbag._arrays.BLOCK", 100)
    np.testing.assert_allclose(trees.fit(bags).scores(bags.X), whole, rtol=1e-9)
