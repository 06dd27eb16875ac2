from dataclasses import replace

import jax
import numpy as np
import pyarrow as pa
import pytest
from scipy import special
from scipy.special import expit, softmax

from unbag import Bags, Refused, from_rows, models, random_bags
from unbag._model_file import Misfit
from unbag.boosting import level_shift
from unbag.learners import LEARNERS, NetworkLearner, NetworkModel, fit, folds_of
from unbag.learners._network_model import NetworkColumns, _normal_scores
from unbag.learners._table import usual_learners
from unbag.training import FoldStopRule, Lanes, TrainingConfig

QUICK = NetworkLearner(rates=(1e-2,), hidden=(8,), folds=2, epochs=6, batch=512)
PREDICT = {"binary": expit, "total": np.exp, "histogram": lambda score: softmax(score, axis=1)}


def world(kind="binary", n=2000, size=20, seed=0, **options):
    """Bags of rows whose score is a line, and the score."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)).astype(np.float32)
    score = 2 * X[:, 0] - 1
    y = rng.uniform(size=n) < expit(score)
    if kind == "total":
        y = rng.poisson(np.exp(score / 2))
    if kind == "histogram":
        y = y.astype(int) + (rng.uniform(size=n) < 0.3)
    return random_bags(X, y, size=size, seed=seed, kind=kind, **options), score


def truth(bags, score):
    return score[bags.rows]


# the stop rule


def test_a_fold_is_stopped_by_the_other_folds_and_all_bags_by_all():
    rng = np.random.default_rng(0)
    losses = rng.uniform(size=(6, 3, 2))
    rule = FoldStopRule(3, 2)
    for step, loss in enumerate(losses):
        rule.better(7 * step, loss)
    smooth = (losses + losses[[0, 0, 1, 2, 3, 4]]) / 2
    total = smooth.sum(axis=1)
    for fold in range(3):
        others = total - smooth[:, fold]
        assert rule.step[fold].tolist() == (7 * others.argmin(axis=0)).tolist()
        assert np.allclose(rule.value[fold], others.min(axis=0))
    assert rule.step[3].tolist() == (7 * total.argmin(axis=0)).tolist()


def test_a_loss_that_is_not_finite_is_never_better():
    rule = FoldStopRule(2, 1)
    assert rule.better(0, np.ones((2, 1))).all()
    assert not rule.better(5, np.full((2, 1), np.nan)).any()
    assert (rule.step == 0).all()


def test_training_ends_at_twice_the_best_moment_and_some_steps_more():
    rule = FoldStopRule(2, 1)
    rule.better(0, np.ones((2, 1)))
    rule.better(100, np.zeros((2, 1)))
    rule.better(200 + rule.MORE - 1, np.ones((2, 1)))
    assert not rule.finished()
    rule.better(200 + rule.MORE, np.ones((2, 1)))
    assert rule.finished()


def test_rates_count_by_what_they_gained():
    rule = FoldStopRule(2, 3)
    rule.better(0, np.full((2, 3), 10.0))
    for step in (1, 2):
        rule.better(step, np.array([[2.0, 2.0, 6.0], [2.0, 2.0, 6.0]]))
    share = rule.shares()[-1]
    assert share.sum() == pytest.approx(1)
    assert share.tolist() == pytest.approx([0.4, 0.4, 0.2])


def test_rates_that_gained_nothing_count_equally():
    rule = FoldStopRule(2, 2)
    rule.better(0, np.ones((2, 2)))
    assert np.allclose(rule.shares(), 0.5)


# lanes


@pytest.mark.parametrize(
    ("method", "kind"),
    [
        ("anchored", "binary"),
        ("anchored", "histogram"),
        ("upm", "binary"),
        ("easy", "binary"),
        ("matching", "binary"),
        ("likelihood", "binary"),
    ],
)
def test_a_lane_never_learns_from_reports_of_bags_that_it_must_not_see(method, kind):
    bags, _ = world(kind, n=400)
    learns = np.ones((2, len(bags)), bool)
    learns[0, ::3] = False
    changed = bags.report.copy()
    changed[::3] = np.roll(changed[::3], 1, axis=0)
    assert not np.array_equal(changed, bags.report)
    outputs = 1 + 2 * (kind == "histogram")
    nets = [models.mlp(3, (4,), key=lane, outputs=outputs) for lane in range(2)]
    ends = []
    for report in (bags.report, changed):
        given = replace(bags, report=report)
        config = TrainingConfig(batch=200)
        lanes = Lanes(nets, given, learns, (0.01, 0.01), method=method, config=config)
        lanes.advance(4)
        ends.append([np.asarray(leaf) for leaf in jax.tree.leaves(lanes.average)])
    for first, second in zip(*ends, strict=True):
        assert np.array_equal(first[0], second[0])
    assert any(not np.array_equal(first[1], second[1]) for first, second in zip(*ends, strict=True))


def test_lanes_with_all_bags_and_one_start_stay_equal():
    bags, _ = world(n=400)
    net = models.mlp(3, (4,), key=0)
    learns = np.ones((2, len(bags)), bool)
    lanes = Lanes([net, net], bags, learns, (0.01, 0.01), config=TrainingConfig(batch=200))
    lanes.advance(3)
    for leaf in jax.tree.leaves(lanes.average):
        assert np.array_equal(leaf[0], leaf[1])


def test_a_stratum_whose_bags_a_lane_must_not_see_does_not_harm():
    stratum = np.repeat([0, 1], [300, 100])
    bags, _ = world(n=400, stratum=stratum)
    learns = np.stack([bags.stratum == 0, bags.stratum == 1])
    nets = [models.mlp(3, (4,), key=lane) for lane in range(2)]
    for method in ("anchored", "matching"):
        config = TrainingConfig(batch=100)
        lanes = Lanes(nets, bags, learns, (0.01, 0.01), method=method, config=config)
        lanes.advance(5)
        assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(lanes.average))


def test_the_order_of_rows_is_irrelevant():
    bags, _ = world(n=400)
    order = np.random.default_rng(1).permutation(len(bags.bag))
    shuffled = replace(bags, bag=bags.bag[order], X=bags.X[order], rows=bags.rows[order])
    ends = []
    for given in (bags, shuffled):
        net = models.mlp(3, (4,), key=0)
        learns = np.ones((1, len(bags)), bool)
        lanes = Lanes([net], given, learns, (0.01,), config=TrainingConfig(batch=200))
        lanes.advance(3)
        ends.append(jax.tree.leaves(lanes.average))
    for first, second in zip(*ends, strict=True):
        assert np.allclose(first, second, atol=1e-4)


# the level


@pytest.mark.parametrize("kind", ["binary", "total", "histogram"])
def test_the_level_makes_the_mean_prediction_the_mean_report(kind):
    rng = np.random.default_rng(0)
    score, mean = rng.normal(size=500), 0.036
    if kind == "histogram":
        score, mean = rng.normal(size=(500, 3)), np.array([0.7, 0.25, 0.05])
    moved = PREDICT[kind](score + level_shift(score, mean, kind))
    assert np.allclose(moved.mean(axis=0), mean, atol=1e-9)


@pytest.mark.parametrize("kind", ["binary", "total", "histogram"])
def test_the_mean_prediction_is_the_mean_report_and_something_is_learned(kind):
    bags, score = world(kind)
    model = QUICK.fit(bags)
    z = model.scores(bags.X)
    assert z.dtype == np.float64
    assert z.shape == bags.bag.shape + bags.report.shape[1:]
    mean = np.average(bags.report, axis=0, weights=bags.size)
    assert np.allclose(PREDICT[kind](z).mean(axis=0), mean, atol=1e-3)
    known = z[:, 1] - z[:, 0] if kind == "histogram" else z
    assert np.corrcoef(known, truth(bags, score))[0, 1] > 0.7


def test_the_mean_prediction_with_exposure_is_the_mean_count():
    rng = np.random.default_rng(0)
    X, exposure = rng.normal(size=(2000, 2)).astype(np.float32), rng.uniform(0.2, 3, size=2000)
    y = rng.poisson(exposure * np.exp(X[:, 0]))
    bags = random_bags(X, y, size=20, seed=0, kind="total")
    bags = replace(bags, offset=np.log(exposure[bags.rows]))
    z = QUICK.fit(bags).scores(bags.X)
    mean = np.average(bags.report, weights=bags.size)
    assert np.exp(z + bags.offset).mean() == pytest.approx(mean, rel=1e-3)
    assert np.corrcoef(z, bags.X[:, 0])[0, 1] > 0.8


# folds


@pytest.fixture(scope="module")
def folded():
    bags, _ = world()
    fold = folds_of(bags, 2, seed=0)
    return bags, fold, QUICK.fit_folds(bags, fold, seed=0)


def test_each_fold_has_its_model_at_the_level_of_the_bags_it_learned_from(folded):
    bags, fold, fit = folded
    assert len(fit.models) == 2
    for number, model in enumerate(fit.models):
        learned = np.flatnonzero(fold != number)
        mean = np.average(bags.report[learned], weights=bags.size[learned])
        h = expit(model.scores(bags.X[bags.rows_of(learned)]))
        assert h.mean() == pytest.approx(mean, abs=1e-4)


def test_the_final_model_is_the_mean_of_the_networks_of_folds_and_of_all_bags(folded):
    bags, _, fit = folded
    final, parts = fit.final, []
    assert np.allclose(final.weights, 1 / 3)
    for i in range(3):
        one = replace(final, leaves=[leaf[[i]] for leaf in final.leaves], weights=np.ones(1))
        parts.append(one.scores(bags.X))
    assert np.allclose(final.scores(bags.X), np.mean(parts, axis=0))


def test_a_stop_inside_an_epoch_is_taken():
    bags, _ = world(n=4000, size=10)
    looks = []
    quick = replace(QUICK, batch=100, epochs=1)
    quick.fit(bags, progress=lambda step, total, words: looks.append(words))
    of_first = [words for words in looks if "epoch 1," in words]
    assert len(of_first) > 5  # an epoch has 40 steps
    assert "step 2" in of_first[1]


def test_the_same_seed_gives_the_same_model():
    bags, _ = world(n=400)
    first, second = (QUICK.fit(bags, seed=3).scores(bags.X) for _ in range(2))
    assert np.array_equal(first, second)


def test_bags_that_teach_nothing_give_nearly_the_prior():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 5)).astype(np.float32)
    bags = random_bags(X, rng.uniform(size=2000) < 0.3, size=50, seed=0)
    h = expit(QUICK.fit(bags).scores(X))
    assert np.abs(h - 0.3).mean() < 0.06


def test_three_bags_give_their_mean():
    bags, _ = world(n=60)
    model = QUICK.fit(bags)
    assert len(model.weights) == 0
    assert np.allclose(expit(model.scores(bags.X)), bags.report.mean())


def test_lone_bags_of_a_stratum_are_left_out():
    stratum = np.repeat([0, 1, 2], [300, 20, 280])
    bags, _ = world(n=600, stratum=stratum)
    assert np.isfinite(QUICK.fit(bags).scores(bags.X)).all()


@pytest.mark.parametrize("method", ["upm", "matching", "likelihood"])
def test_other_methods_learn(method):
    bags, score = world()
    model = replace(QUICK, method=method).fit(bags)
    assert np.corrcoef(model.scores(bags.X), truth(bags, score))[0, 1] > 0.7


def test_only_methods_that_need_random_bags_say_so():
    needs = {m: NetworkLearner(method=m).needs_random_bags for m in ("anchored", "likelihood")}
    assert needs == {"anchored": True, "likelihood": False}


# features


def test_a_table_with_small_and_large_categories_is_learned_from_and_restored():
    rng = np.random.default_rng(0)
    n = 3000
    shop, site, age = rng.integers(3, size=n), rng.integers(60, size=n), rng.normal(size=n)
    score = np.array([-2.0, 0, 1.0])[shop] + age
    table = pa.table(
        {
            "age": pa.array(np.where(rng.uniform(size=n) < 0.1, np.nan, age), from_pandas=True),
            "shop": [f"shop {i}" for i in shop],
            "site": [f"site {i}" for i in site],
        }
    )
    bags = random_bags(table, rng.uniform(size=n) < expit(score), size=10, seed=0)
    model = QUICK.fit(bags)
    assert model.form.buckets
    assert np.corrcoef(model.scores(table), score)[0, 1] > 0.7
    assert np.array_equal(restored(model).scores(table), model.scores(table))


def restored(model):
    arrays, settings = model.arrays()
    return NetworkModel.restore(arrays, settings)


def test_images_are_learned_from_and_restored():
    rng = np.random.default_rng(0)
    y = rng.uniform(size=800) < 0.5
    X = rng.normal(size=(800, 4, 4, 1)).astype(np.float32)
    X[y, :2] += 1
    bags = random_bags(X, y, size=8, seed=0)
    model = replace(QUICK, epochs=2, batch=100).fit(bags)
    z = model.scores(X)
    assert z[y].mean() > z[~y].mean() + 0.3
    assert np.array_equal(restored(model).scores(X), z)


def test_numbers_are_centred_and_share_one_scale():
    X = np.array([[0.0, 5.0], [4.0, 5.0], [np.nan, 5.0]])
    columns, matrix = NetworkColumns.of(X)
    assert columns.mean.tolist() == [2, 5]
    assert matrix.tolist() == (np.array([[-2, 0], [2, 0], [0, 0]]) / columns.scale).tolist()


def test_columns_in_units_of_their_own_are_standardised_but_zeros_and_ones_stay():
    rng = np.random.default_rng(0)
    flag = (rng.uniform(size=500) < 0.02).astype(float)
    X = np.column_stack([rng.normal(size=500), 1000 * rng.normal(size=500), flag])
    _, matrix = NetworkColumns.of(X)
    spread = matrix.std(axis=0)
    assert spread[0] == pytest.approx(spread[1])
    assert spread[2] / spread[0] == pytest.approx(flag.std())
    assert np.mean(spread**2) == pytest.approx(1)
    other_units = NetworkColumns.of(X * np.array([1e-3, 60, 1]))[1]
    assert other_units == pytest.approx(matrix)
    assert np.isscalar(NetworkColumns.of(X * np.array([1, 2e-3, 1]))[0].scale)


def test_numbers_with_long_tails_are_normal_scores_of_their_ranks():
    x = np.random.default_rng(0).normal(size=999)
    columns, matrix = NetworkColumns.of(pa.table({"price": np.exp(3 * x), "size": x}))
    assert list(columns.tails) == [0]
    # of the logarithm, which is normal, the scores are a line but for the sample and the knots
    assert np.corrcoef(matrix.T)[0, 1] > 0.995
    beyond = pa.table({"price": [1e-9, 1e9], "size": [0.0, 0.0]})
    extremes = columns.matrix(beyond)[:, 0]
    assert extremes.tolist() == [matrix[:, 0].min(), matrix[:, 0].max()]


def test_normal_scores_are_those_of_the_middle_rank():
    ordered = np.repeat([0.0, 1.0, 5.0], [6, 3, 1])
    values, scores = _normal_scores(ordered)
    assert values.tolist() == [0, 1, 5]
    assert special.ndtr(scores) == pytest.approx([0.3, 0.75, 0.95])


def test_a_model_of_numbers_with_long_tails_is_restored_and_damage_is_refused():
    rng = np.random.default_rng(0)
    x = rng.normal(size=600)
    bags = random_bags(pa.table({"price": np.exp(3 * x)}), x > 0, size=6, seed=0)
    model = replace(QUICK, epochs=2, batch=100).fit(bags)
    assert list(model.columns.tails) == [0]
    assert np.array_equal(restored(model).scores(bags.X), model.scores(bags.X))
    arrays, settings = model.arrays()
    for damaged in (arrays["tail_0"][:, ::-1], arrays["tail_0"][0], np.zeros((2, 0))):
        with pytest.raises(Misfit, match="long tail"):
            NetworkModel.restore({**arrays, "tail_0": damaged}, settings)
    with pytest.raises(Misfit, match="long tail"):
        NetworkModel.restore({**arrays, "tail_7": arrays["tail_0"]}, settings)


def test_strata_go_where_they_are_of_no_use_and_a_known_prior_stays():
    bag, report = np.arange(12) // 2, np.tile([0.5, 0.0, 1.0], 4)[np.arange(12) // 2]
    plain = from_rows(bag, report, X=np.zeros((12, 1)), prior=0.2)
    assert NetworkLearner()._learnable(plain)[1].known_prior == 0.2
    strata = from_rows(bag, report, X=np.zeros((12, 1)), stratum=bag // 3, prior=[0.2, 0.4])
    assert NetworkLearner()._learnable(strata)[1].known_prior.tolist() == [0.2, 0.4]
    alone = NetworkLearner(method="likelihood")._learnable(strata)[1]
    assert alone.stratum is None
    assert alone.known_prior is None


def test_rows_of_another_shape_are_refused(folded):
    with pytest.raises(Refused, match="shape"):
        folded[2].final.scores(np.zeros((4, 7)))


def test_it_is_in_the_table_of_learners():
    assert isinstance(LEARNERS["network"].make(), NetworkLearner)


def test_fit_combines_and_judges_networks():
    bags, score = world()
    fitted = fit(bags, learner=QUICK, folds=2)
    assert fitted.weights["network"] > 0.3
    assert np.corrcoef(fitted.scores(bags.X), truth(bags, score))[0, 1] > 0.8
    assert fitted.evaluation is not None


@pytest.mark.parametrize(
    ("shape", "names"),
    [
        ((800, 4, 4, 1), ("network",)),
        ((800, 201), ("network",)),
        ((800, 20), ("additive", "trees")),
        ((80, 20), ("additive", "trees", "network")),
    ],
)
def test_networks_are_for_images_wide_matrices_and_few_bags(shape, names):
    rows = shape[0]
    bags = Bags(np.repeat(np.arange(rows // 8), 8), np.zeros(rows // 8), X=np.zeros(shape))
    assert usual_learners(bags) == names


def test_a_far_larger_column_does_not_make_the_others_constant():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3)).astype(np.float32)
    X[::50, 2] = -1e25
    _, matrix = NetworkColumns.of(X)
    spread = matrix.std(axis=0)
    assert spread[0] == pytest.approx(spread[1], rel=0.2)
    assert spread[0] > 0.3
