import pickle
import re
import subprocess
import sys
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cases.packages import needs
from unbag import Bags, evaluate, losses, random_bags, weights
from unbag.boosting import BagObjective, _fit, fit_lightgbm, fit_xgboost, level_shift
from unbag.boosting._fit import LIGHTGBM, XGBOOST
from unbag.boosting._objective import CURVES, FLOOR
from unbag.datasets import load_adult

PAGE = (Path(__file__).parents[2] / "docs" / "boosting.md").read_text()
CASES = [
    (kind, loss, method)
    for kind, losses in CURVES.items()
    for loss in losses
    for method in ("anchored", "upm")
    if (kind, method) != ("histogram", "upm")
]
FITS = {"lightgbm": (fit_lightgbm, {"num_threads": 1}), "xgboost": (fit_xgboost, {"nthread": 1})}


@pytest.fixture(params=FITS)
def fit(request):
    """One of the two libraries, on one thread."""
    return fit_with(request.param)


def fit_with(name):
    needs(name)
    function, threads = FITS[name]
    return lambda *bags, **options: function(*bags, **threads, **options)


def world(kind="binary", n=2400, size=6, seed=0, **options):
    """Bags of rows whose labels depend on two of three features."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    rate = np.exp(np.clip(X[:, 0], -1, 1) + (X[:, 1] > 0) - 1)
    y = rng.uniform(size=n) < rate / (1 + rate) if kind == "binary" else rng.poisson(rate)
    if kind == "histogram":
        y = np.minimum(y, 2)
    return random_bags(X, y, size=size, seed=seed, kind=kind, **options), rate


def scores_of(bags, seed=1):
    shape = (len(bags.bag), *bags.report.shape[1:])
    return np.random.default_rng(seed).normal(size=shape)


@pytest.mark.parametrize("kind, loss, method", CASES)
def test_the_gradient_is_the_slope_of_the_signed_weighted_loss(kind, loss, method):
    bags, _ = world(kind, n=60)
    objective, z, step = BagObjective(bags, method=method, loss=loss), scores_of(bags), 1e-5
    W = len(z) * objective.weights(z)
    value = lambda z: np.sum(W * losses.LOSSES[loss].components(z, kind=kind), axis=1)
    if kind == "histogram":
        moves = step * np.eye(z.shape[1])
        slope = [(value(z + d) - value(z - d)) / (2 * step) for d in moves]
        slope = np.stack(slope, axis=1)
    else:
        slope = (value(z + step) - value(z - step)) / (2 * step)
    np.testing.assert_allclose(objective(z, None)[0], slope, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("kind", CURVES)
@pytest.mark.parametrize("strata", [None, 3])
def test_the_weights_are_those_of_the_anchored_method(kind, strata):
    stratum = None
    if strata:
        stratum = np.random.default_rng(2).integers(strata, size=240)
    bags, _ = world(kind, n=240, stratum=stratum)
    objective = BagObjective(bags)
    z = scores_of(bags)
    h = objective.predict(z)
    reference = h if kind == "histogram" else np.stack([np.ones_like(h), h], axis=1)
    expected = weights.anchored(
        bags.bag, bags.size, *bags.components(), reference, stratum=bags.stratum
    )
    np.testing.assert_allclose(objective.weights(z), expected, atol=1e-12)


@pytest.mark.parametrize("kind", CURVES)
def test_the_level_makes_the_mean_prediction_the_mean_report(kind):
    bags, _ = world(kind, n=600)
    objective = BagObjective(bags)
    z = 0.5 * scores_of(bags) + 0.3
    shift = level_shift(z, bags.prior, kind)
    mean = objective.predict(z + shift).mean(axis=0)
    np.testing.assert_allclose(mean, bags.prior, rtol=1e-6)


@pytest.mark.parametrize("kind, loss, method", CASES)
def test_the_hessian_is_positive_also_for_sure_predictions(kind, loss, method):
    bags, _ = world(kind, n=60)
    objective = BagObjective(bags, method=method, loss=loss)
    random = scores_of(bags)
    for z in (random, np.full_like(random, -1e3), np.full_like(random, 30.0)):
        gradient, hessian = objective(z)
        assert np.isfinite(gradient).all()
        assert np.isfinite(hessian).all()
        assert (hessian > 0.99 * FLOOR * objective.unit).all()


def test_the_hessian_is_exact_where_the_loss_is_convex_in_the_score():
    for kind, loss in (("binary", "log"), ("total", "poisson"), ("total", "square")):
        bags, _ = world(kind, n=60)
        objective, z, step = (
            BagObjective(bags, method="upm", loss=loss),
            0.3 * scores_of(bags),
            1e-4,
        )
        change = objective(z + step)[0] - objective(z - step)[0]
        np.testing.assert_allclose(objective(z)[1], change / (2 * step), rtol=1e-5)


def test_the_square_loss_has_the_gauss_newton_hessian_of_its_curve():
    bags, _ = world(n=60)
    objective, z = BagObjective(bags), np.full(60, 0.4)
    h = 1 / (1 + np.exp(-z))
    np.testing.assert_allclose(objective(z)[1], 2 * (h * (1 - h)) ** 2)


def test_instances_count_as_one_whatever_their_number():
    for n in (60, 600):
        bags, _ = world(n=n)
        for method in ("anchored", "upm"):
            _, hessian = BagObjective(bags, method=method, loss="log")(np.zeros(n))
            assert hessian.mean() == pytest.approx(0.25)


def test_an_anchored_gradient_is_the_bags_centred_residual():
    bags, _ = world(n=60)
    objective = BagObjective(bags, loss="log")
    z = np.full(60, objective.start)
    residual = bags.report - bags.prior
    expected = -bags.size * residual - bags.size * residual * bags.size / (60 - bags.size)
    np.testing.assert_allclose(objective(z)[0], expected[bags.bag], atol=1e-12)


def test_the_noise_of_an_anchored_gradient_falls_as_the_model_learns_and_that_of_upm_stays():
    rng = np.random.default_rng(0)
    z = 4 * rng.normal(size=32_000)
    h = 1 / (1 + np.exp(-z))
    bags = random_bags(None, rng.uniform(size=len(z)) < h, size=32, seed=0)
    noise = {
        (m, s): BagObjective(bags, method=m, loss="log")(s * z)[0].var()
        for m in ("anchored", "upm")
        for s in (0, 1)
    }
    assert noise["anchored", 1] / noise["anchored", 0] == pytest.approx(
        np.mean(h * (1 - h)) / 0.25, rel=0.1
    )
    assert noise["upm", 1] / noise["upm", 0] == pytest.approx(1, rel=0.1)


@pytest.mark.parametrize("strata", [False, True])
@pytest.mark.parametrize("method", ["anchored", "upm"])
def test_all_possible_draws_of_half_the_bags_average_to_all_bags(strata, method):
    bags, _ = world(n=48 if strata else 24, **({"stratum": np.arange(48) // 24} if strata else {}))
    objective, z = BagObjective(bags, method=method, share=0.5), scores_of(bags)
    drawn = np.unique([objective.weights(z, draw=i) for i in range(400 if strata else 60)], axis=0)
    assert len(drawn) == (36 if strata else 6)  # two of four bags, in each stratum
    np.testing.assert_allclose(drawn.mean(axis=0), objective.weights(z), atol=1e-15)


def test_each_call_draws_anew_and_the_seed_decides_which_bags():
    bags, _ = world(n=60)
    z = scores_of(bags)
    first, again, other = (BagObjective(bags, share=0.5, seed=seed) for seed in (0, 0, 1))
    calls = [first(z)[0], first(z)[0]]
    np.testing.assert_array_equal(calls, [again(z)[0], again(z)[0]])
    assert not np.allclose(calls[0], calls[1])
    assert not np.allclose(calls[0], other(z)[0])


def test_noisier_reports_weigh_less():
    noise = np.where(np.arange(10) < 5, 0.0, 20.0)
    bags = Bags(np.repeat(np.arange(10), 6), np.linspace(0.2, 0.6, 10), noise=noise)
    bag_weight = weights.noise_weights(bags.size, noise, variance=0.4 * 0.6)
    reference = np.tile([1, 0.5], (60, 1))
    expected = weights.anchored(
        bags.bag, bags.size, *bags.components(), reference, weight=bag_weight
    )
    np.testing.assert_allclose(BagObjective(bags).weights(np.zeros(60)), expected)
    assert bag_weight[0] > 10 * bag_weight[9]


@pytest.mark.parametrize(
    "kind, loss", [(kind, loss) for kind in ("binary", "total") for loss in CURVES[kind]]
)
def test_the_value_is_what_bags_estimate_of_the_loss(kind, loss):
    found, true = [], []
    for seed in range(100):
        bags, rate = world(kind, n=240, seed=seed)
        z = bags.X[:, 0] - 1
        h = rate / (1 + rate) if kind == "binary" else rate
        found.append(BagObjective(bags, loss=loss).value(z))
        true.append(losses.LOSSES[loss].value(z, h, kind=kind).mean())
    difference = np.subtract(found, true)
    assert abs(difference.mean()) < 4 * difference.std() / np.sqrt(len(difference))


@pytest.mark.parametrize(
    "kind, loss", [(kind, loss) for kind in ("binary", "total") for loss in CURVES[kind]]
)
def test_both_libraries_learn_from_bags_with_every_loss(fit, kind, loss):
    bags, rate = world(kind, n=3996)
    model = fit(bags, loss=loss, rounds=60, learning_rate=0.1)
    h = rate / (1 + rate) if kind == "binary" else rate
    error = np.mean((model.predict(bags.X) - h) ** 2)
    assert model.rounds > 10
    assert error < 0.3 * np.var(h), model


@lru_cache
def adult_at_64():
    adult = load_adult()
    return adult, random_bags(adult.X, adult.y, size=64, seed=0)


def test_boosting_from_bags_of_64_is_far_better_than_trivial_on_adult(fit):
    adult, bags = adult_at_64()
    model = fit(bags, rounds=30, learning_rate=0.2)
    probability = model.predict_proba(adult.X_test)
    np.testing.assert_allclose(probability.sum(axis=1), 1)
    np.testing.assert_allclose(probability[:, 1], model.predict(adult.X_test))
    loss = losses.log.value(model.scores(adult.X_test), adult.y_test).mean()
    assert loss < 0.40, model  # trivial: 0.547


def test_the_page_on_boosting_runs_and_prints_what_it_says(capsys):
    needs("lightgbm")
    first, second = re.findall(r"```py\n(.*?)```", PAGE, re.DOTALL)
    exec(first, {})
    promised = re.search(r"\nprinted\n\n    (.*?)\n    (.*?)\n", PAGE)
    chosen, loss = capsys.readouterr().out.splitlines()
    assert chosen.split("(")[0] == promised.group(1).split("(")[0]
    assert float(loss) == pytest.approx(
        float(promised.group(2)), abs=0.005
    )  # versions of LightGBM may differ a little
    exec(second, {})
    assert capsys.readouterr().out == "True\n"


def test_results_depend_on_the_seed_only(fit):
    bags, _ = world()
    first, again, other = (fit(bags, rounds=20, seed=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first.scores(bags.X), again.scores(bags.X))
    np.testing.assert_array_equal(first.history, again.history)
    assert not np.array_equal(first.history, other.history)


def test_held_out_bags_choose_the_round_and_the_booster_ends_there(fit):
    learn, held_out = world()[0].split(0.7, seed=0)
    model = fit(learn, held_out=held_out, rounds=60, learning_rate=0.5, max_depth=5)
    judge = BagObjective(held_out)
    assert 0 < model.rounds < 60
    assert len(model.history) == 61
    assert judge.value(model.scores(held_out.X)) == pytest.approx(
        model.history[model.rounds], rel=1e-5
    )
    assert judge.value(np.full(len(held_out.bag), model.start)) == pytest.approx(model.history[0])
    assert (
        str(model)
        .split("(")[1]
        .startswith(f"{model.rounds} of 60 rounds; loss from held-out bags 0.")
    )


def test_all_bags_are_learned_from_after_the_choice_unless_held_out_bags_are_given(fit):
    bags, _ = world()
    learn, held_out = bags.split(0.8, seed=0)
    chosen, part = fit(bags, rounds=20), fit(learn, held_out=held_out, rounds=20)
    np.testing.assert_array_equal(chosen.history, part.history)
    assert chosen.start == BagObjective(bags).start != part.start
    assert not np.allclose(chosen.scores(bags.X), part.scores(bags.X))


def test_the_trivial_predictor_stays_where_held_out_bags_say_the_opposite(fit):
    learn, held_out = world()[0].split(0.5, seed=0)
    mirrored = 2 * held_out.prior - held_out.report
    opposite = Bags(held_out.bag, mirrored, X=held_out.X, noise=np.ones(len(mirrored)))
    model = fit(learn, held_out=opposite, rounds=5)
    assert model.rounds == 0
    assert model.booster is None
    np.testing.assert_allclose(model.predict(learn.X), learn.prior)


def test_columns_in_another_order_are_refused(fit):
    bags, _ = world(n=240)
    frame = pd.DataFrame(bags.X, columns=["age", "my income", "zip"])
    model = fit(replace(bags, X=frame), rounds=5)
    np.testing.assert_array_equal(model.scores(frame), model.scores(frame.copy()))
    with pytest.raises(ValueError, match="column 0 is zip and was age"):
        model.scores(frame[["zip", "age", "my income"]])
    parts = [replace(bags, X=frame), replace(bags, X=frame[["age", "zip", "my income"]])]
    with pytest.raises(ValueError, match="column 1 is zip and was my income"):
        fit(parts[0], held_out=parts[1], rounds=5)


def test_bags_learned_from_are_refused_for_evaluation(fit):
    bags, _ = world(n=240)
    learn, held_out = replace(bags, names=np.array([f"bag {i}" for i in range(40)])).split(
        0.5, seed=0
    )
    model = fit(learn, rounds=5)
    with pytest.raises(ValueError, match="must not overlap the bags that the model learned from"):
        evaluate(model, learn)
    assert evaluate(model, held_out)["mean_prediction"].value == pytest.approx(
        model.predict(held_out.X).mean()
    )


def test_models_survive_a_pickle(fit):
    bags, _ = world()
    model = fit(bags, rounds=5)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.scores(bags.X), model.scores(bags.X))


def test_the_objective_works_in_a_users_own_training():
    bags, rate = world()
    z0 = BagObjective(bags).start
    lightgbm = needs("lightgbm")
    data = lightgbm.Dataset(bags.X, bags.report[bags.bag], init_score=np.full(len(bags.bag), z0))
    trees = lightgbm.train(
        {"objective": BagObjective(bags), "verbosity": -1, "num_threads": 1}, data, 5
    )
    light = z0 + trees.predict(bags.X)
    xgboost = needs("xgboost")
    options = {"base_score": z0, "nthread": 1}
    trees = xgboost.train(options, xgboost.DMatrix(bags.X), 5, obj=BagObjective(bags))
    extreme = trees.predict(xgboost.DMatrix(bags.X))
    assert np.corrcoef(light, rate)[0, 1] > 0.5
    assert np.corrcoef(extreme, rate)[0, 1] > 0.5


def test_bags_with_strata_and_sparse_features_can_be_boosted(fit):
    from scipy import sparse

    bags, _ = world(stratum=np.arange(2400) // 1200)
    model = fit(
        Bags(bags.bag, bags.report, X=sparse.csr_matrix(bags.X), stratum=bags.stratum), rounds=20
    )
    assert np.corrcoef(model.scores(sparse.csr_matrix(bags.X)), bags.X[:, 0])[0, 1] > 0.3


@pytest.mark.parametrize("library", [LIGHTGBM, XGBOOST], ids=lambda library: library.name)
def test_a_users_parameter_wins_under_each_of_its_names(library):
    fit = fit_with(library.name)
    bags, _ = world()
    slow = fit(bags, rounds=3, learning_rate=1e-9).history
    for alias in library.aliases["learning_rate"]:
        np.testing.assert_allclose(fit(bags, rounds=3, **{alias: 1e-9}).history, slow)
    assert np.ptp(slow) < 1e-6


def test_trees_are_deeper_from_3000_bags_on(monkeypatch):
    depths, y = [], np.arange(3000) % 2
    note = lambda objective, X, rounds, params, watch: depths.append(params["max_depth"])
    monkeypatch.setattr(_fit, "LIGHTGBM", LIGHTGBM._replace(grow=note))
    for count in (2999, 3000):
        fit_lightgbm(random_bags(np.zeros((count, 1)), y[:count], size=1, seed=0))
    assert depths == [1, 3]


def test_importing_the_shell_imports_no_library_and_its_absence_is_explained():
    code = (
        "import sys, numpy as np, unbag.boosting as b; from unbag import random_bags\n"
        "assert not {'lightgbm', 'xgboost'} & set(sys.modules)\n"
        "sys.modules['lightgbm'] = sys.modules['xgboost'] = None\n"
        "bags = random_bags(np.ones((40, 1)), np.tile([0, 1], 20), size=4, seed=0)\n"
        "for fit in (b.fit_lightgbm, b.fit_xgboost):\n"
        "    try: fit(bags)\n"
        "    except ImportError as error: print(error)\n"
    )
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    rest = " must be installed to boost with it. Run pip install 'unbag[boosting]'."
    assert printed.splitlines() == ["lightgbm" + rest, "xgboost" + rest]
