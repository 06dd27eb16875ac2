"""scikit-learn's own checks, and ours: bags in fit, in grid searches and in scorers; files that
come back the same."""

import warnings

import jax
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, PoissonRegressor
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import unbag
from cases.estimators import BAG, LABELS, X, Y, people
from unbag._model_file import load_arrays, save_arrays
from unbag.estimators import BagClassifier, BagRegressor, BagScorer, estimate_loss, load
from unbag.estimators._network import Training
from unbag.learners import DataWarning

NOT_EXACT = (
    "without weights the rows are bags of one, some of them held out; with weights they are labels"
)
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": NOT_EXACT,
    "check_sample_weight_equivalence_on_sparse_data": NOT_EXACT,
}


FAST = {"hidden": (), "epochs": 30, "learning_rate": 0.03}


BRIEF = {"hidden": (), "epochs": 4, "learning_rate": 0.3}


@parametrize_with_checks(
    [BagClassifier(**BRIEF), BagRegressor(**BRIEF)],
    expected_failed_checks=lambda estimator: EXPECTED,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
def test_scikit_learns_checks_pass(estimator, check):
    check(estimator)


def test_a_model_learned_from_bags_predicts_for_rows():
    X, y, bag, labels = people()
    model = BagClassifier(**FAST).fit(X, y, bag=bag)
    assert model.classes_.tolist() == [0, 1]
    assert roc_auc_score(labels, model.predict_proba(X)[:, 1]) > 0.8
    assert set(model.predict(X)) == {0, 1}
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


def test_defaults_give_a_useful_model_when_one_row_in_twenty_is_positive():
    X, y, bag, labels = people(n=8000, k=20, shift=-5.0)
    assert 0.02 < labels.mean() < 0.08
    model = BagClassifier().fit(X, y, bag=bag)
    test, _, _, truth = people(n=4000, seed=1, shift=-5.0)
    trivial = log_loss(truth, np.full(len(truth), labels.mean()))
    assert log_loss(truth, model.predict_proba(test)[:, 1]) < 0.9 * trivial


def test_without_bags_labels_are_ordinary_and_may_be_strings():
    X, _, _, labels = people()
    model = BagClassifier("easy", **FAST).fit(X, np.array(["no", "yes"])[labels])
    assert model.classes_.tolist() == ["no", "yes"]
    assert (model.predict(X) == np.array(["no", "yes"])[labels]).mean() > 0.75
    three = BagClassifier(**FAST).fit(X, np.digitize(X[:, 0], [-0.5, 0.5]) + 10)
    assert three.classes_.tolist() == [10, 11, 12]
    assert three.predict_proba(X).shape == (1600, 3)


@pytest.mark.parametrize("method", ["anchored", "upm"])
def test_weights_of_rows_count_as_in_other_estimators(method):
    X, _, _, labels = people(n=400)
    weight, options = (
        np.where(labels == 1, 9.0, 1.0),
        {"hidden": (), "epochs": 150, "learning_rate": 0.05},
    )
    model = BagClassifier(method, **options).fit(X, labels, sample_weight=weight)
    expected = LogisticRegression(C=np.inf).fit(X, labels, sample_weight=weight)
    np.testing.assert_allclose(model.predict_proba(X), expected.predict_proba(X), atol=0.02)
    counts = BagRegressor(method, **options).fit(X, 3 * labels, sample_weight=weight)
    rates = PoissonRegressor(alpha=0).fit(X, 3 * labels, sample_weight=weight).predict(X)
    np.testing.assert_allclose(counts.predict(X), rates, rtol=0.05)
    assert model.partial_fit(X, labels, bag=np.arange(400)).run_.method == method


def test_where_training_starts_weights_count_too():
    X, _, _, labels = people(n=400)
    still = BagClassifier(hidden=(), epochs=1, learning_rate=1e-9)
    weight = np.where(labels == 1, 9.0, 1.0)
    strata = {"sample_weight": weight, "stratum": np.arange(400) % 2}
    mean = np.average(labels, weights=weight)
    np.testing.assert_allclose(
        still.fit(X, labels, **strata).predict_proba(X)[:, 1], mean, atol=1e-5
    )


def test_class_histograms_are_rows_of_y():
    X, _, _, _ = people()
    label = np.digitize(X[:, 0], [-0.5, 0.5])
    bag = np.arange(1600) // 4
    share = np.eye(3)[label].reshape(400, 4, 3).mean(axis=1)[bag]
    model = BagClassifier(**FAST).fit(X, share, bag=bag)
    assert (model.predict(X) == label).mean() > 0.7


@pytest.mark.parametrize("noise", [None, np.ones(80)], ids=["exact", "noisy"])
def test_a_column_of_proportions_is_no_histogram(noise):
    X, y, bag, labels = people(n=80)
    options = {"bag": bag, "noise": noise}
    model = (
        BagClassifier(hidden=(), epochs=1)
        .fit(X, y[:, None], **options)
        .partial_fit(X, y[:, None], **options)
    )
    assert model.kind_ == "binary"
    assert model.score(X, y[:, None], **options) == model.score(X, y, **options)
    assert model.score(X, labels[:, None]) == model.score(X, labels)
    assert BagScorer("auc")(model, X, y[:, None], **options) == BagScorer("auc")(
        model, X, y, **options
    )


def test_counts_are_learned_from_means():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 2))
    counts, bag = rng.poisson(np.exp(0.5 * X[:, 0])), np.arange(2000) // 5
    y = np.bincount(bag, weights=counts)[bag] / 5
    model = BagRegressor(**FAST).fit(X, y, bag=bag)
    assert np.corrcoef(model.predict(X), np.exp(0.5 * X[:, 0]))[0, 1] > 0.9
    assert model.score(X, y, bag=bag) == pytest.approx(model.score(X, counts), abs=0.1)


def test_scores_from_bags_estimate_scores_from_labels():
    X, y, bag, _ = people(n=4000)
    model = BagClassifier(**FAST).fit(X, y, bag=bag)
    test, reports, ids, truth = people(n=8000, seed=1)
    assert model.score(test, reports, bag=ids) == pytest.approx(model.score(test, truth), abs=0.03)
    assert model.score(test, truth) == pytest.approx(
        -log_loss(truth, model.predict_proba(test)), abs=1e-6
    )
    auc = roc_auc_score(truth, model.predict_proba(test)[:, 1])
    assert BagScorer("auc")(model, test, truth) == pytest.approx(auc, abs=1e-6)
    assert BagScorer("auc")(model, test, reports, bag=ids) == pytest.approx(auc, abs=0.03)
    brier = np.mean((truth - model.predict_proba(test)[:, 1]) ** 2)
    assert BagScorer("brier")(model, test, truth) == pytest.approx(-brier, abs=1e-9)
    assert BagScorer("brier")(model, test, reports, bag=ids) == pytest.approx(-brier, abs=0.015)


def test_scorers_take_labels_of_any_names():
    X, _, _, labels = people(n=80)
    names = np.array(["no", "yes"])[labels]
    model = BagClassifier(hidden=(), epochs=1).fit(X, names)
    by_number = BagClassifier(hidden=(), epochs=1).fit(X, labels)
    for metric in ("log_loss", "auc", "brier"):
        assert BagScorer(metric)(model, X, names) == BagScorer(metric)(by_number, X, labels)


def test_noise_and_strata_go_all_the_way_fit_more_and_score():
    X, y, bag, _ = people(n=1600)
    rng = np.random.default_rng(0)
    ids, number = np.unique(bag, return_inverse=True)
    noisy = (y * 8 + rng.normal(size=len(ids))[number] * 3) / 8
    assert noisy.min() < 0
    further = {"noise": np.full(len(X), 9.0), "stratum": number % 2}
    model = BagClassifier(hidden=(), epochs=3, diagnose=False).fit(X, noisy, bag=bag, **further)
    model.partial_fit(X, noisy, bag=bag, **further)
    bags = unbag.from_rows(bag, noisy, **further)
    expected = unbag.evaluate(model.decision_function(X), bags)["log_loss"].value
    assert model.score(X, noisy, bag=bag, **further) == pytest.approx(-expected)
    assert BagScorer("log_loss")(model, X, noisy, bag=bag, **further) == pytest.approx(-expected)
    brier = unbag.evaluate(model.decision_function(X), bags)["brier"].value
    assert BagScorer("brier")(model, X, noisy, bag=bag, **further) == pytest.approx(-brier)


def test_one_report_per_campaign_can_be_matched_and_is_refused_by_unbiased_methods():
    X, y, bag, _ = people(n=800)
    with pytest.raises(ValueError, match="at least two bags"):
        BagClassifier(hidden=(), epochs=2, diagnose=False).fit(X, y, bag=bag, stratum=bag)
    model = BagClassifier("matching", hidden=(), epochs=5).fit(X, y, bag=bag, stratum=bag)
    assert model.choice_ is None  # nothing that is unbiased could choose
    assert np.isfinite(model.predict_proba(X)).all()


def test_pipelines_grid_searches_and_group_folds_receive_the_bags():
    X, y, bag, _ = people()
    with config_context(enable_metadata_routing=True):
        model = BagClassifier(**FAST).set_fit_request(bag=True).set_score_request(bag=True)
        pipeline = make_pipeline(StandardScaler(), model)
        folds = GroupKFold(3)
        seen = cross_validate(
            pipeline,
            X,
            y,
            cv=folds,
            params={"bag": bag, "groups": bag},
            scoring=BagScorer("auc"),
            error_score="raise",
        )
        assert np.isfinite(seen["test_score"]).all()
        assert seen["test_score"].mean() > 0.7
        by_loss = cross_validate(
            pipeline, X, y, cv=folds, params={"bag": bag, "groups": bag}, error_score="raise"
        )
        assert by_loss["test_score"].mean() > -0.65
        grid = {"bagclassifier__learning_rate": [1e-6, 0.03]}
        search = GridSearchCV(
            pipeline, grid, cv=folds, scoring=BagScorer("log_loss"), error_score="raise"
        )
        search.fit(X, y, bag=bag, groups=bag)
        assert search.best_params_ == {"bagclassifier__learning_rate": 0.03}
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()
        given = {"bag": bag, "groups": bag, "noise": np.ones(len(bag))}
        model = BagClassifier(**FAST).set_fit_request(bag=True, noise=True)
        noisy = cross_validate(
            model, X, y, cv=folds, params=given, scoring=BagScorer("brier"), error_score="raise"
        )
        assert np.isfinite(noisy["test_score"]).all()


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, sparse.csr_array, "arrow"], ids=str)
def test_tables_and_sparse_matrices_are_accepted(make):
    X, y, bag, _ = people(n=400)
    expected = BagClassifier(**FAST).fit(X, y, bag=bag).predict_proba(X)
    columns = {str(i): column for i, column in enumerate(X.T)}
    table = pa.table(columns) if make == "arrow" else make(X)
    if make is pd.DataFrame:
        table.columns = ["a", "b", "c"]
    model = BagClassifier(**FAST).fit(table, y, bag=bag)
    np.testing.assert_allclose(model.predict_proba(table), expected, atol=1e-6)


@pytest.mark.parametrize("make", [pa.table, pl.DataFrame, pd.DataFrame])
def test_columns_in_another_order_are_refused(make):
    X, y, bag, _ = people(n=80)
    model = BagClassifier(hidden=(), epochs=1).fit(make({"a": X[:, 0], "b": X[:, 1]}), y, bag=bag)
    with pytest.raises(ValueError, match="same order"):
        model.predict(make({"b": X[:, 1], "a": X[:, 0]}))
    gap, mean = (make({"a": [value, 1.0], "b": [0.0, 1.0]}) for value in (np.nan, X[:, 0].mean()))
    np.testing.assert_allclose(model.predict_proba(gap), model.predict_proba(mean))  # as learners'


def test_a_fit_that_fails_leaves_the_model_as_it_was():
    X, _, bag, labels = people(n=80)
    for kind, target in ((BagClassifier, np.array(["no", "yes"])[labels]), (BagRegressor, labels)):
        model = kind(hidden=(), epochs=1)
        for bad in (model.fit, model.partial_fit):
            with pytest.raises(ValueError, match="A report must be the same"):
                bad(X, np.arange(80) / 80, bag=bag)
            with pytest.raises(NotFittedError):
                model.predict(X)
        before = dict(vars(model.fit(X, target)))
        with pytest.raises(ValueError, match="A report must be the same"):
            model.fit(X[:, :2] * 1000 + 5, np.arange(80) / 80, bag=bag)
        assert vars(model).keys() == before.keys()
        assert all(value is before[name] for name, value in vars(model).items())


def test_a_constant_column_is_not_scaled_by_its_rounding_errors():
    X, y, bag, _ = people(n=80)
    X[:, 1], X[:, 2] = 1e9 + 0.1, X[:, 2] * 1e-15
    assert X[:, 1].std() > 0
    scale = BagClassifier(hidden=(), epochs=1).fit(X, y, bag=bag).model_.columns.scale
    np.testing.assert_allclose(scale, [X[:, 0].std(), 1.0, X[:, 2].std()])


def test_learning_can_go_on():
    X, y, bag, labels = people()
    model = BagClassifier(hidden=(), learning_rate=0.03)
    losses = []
    for _ in range(30):
        model.partial_fit(X, y, bag=bag)
        losses.append(log_loss(labels, model.predict_proba(X)))
    assert losses[-1] < losses[0] - 0.05
    assert (model.held_out, model.epochs) == (0.2, 60)
    counts = BagRegressor(hidden=(), learning_rate=0.03)
    for _ in range(20):
        counts.partial_fit(X, 3 * y, bag=bag)
    assert counts.predict(X).mean() == pytest.approx(3 * labels.mean(), rel=0.2)
    labelled = BagClassifier(hidden=()).partial_fit(X[:50], np.zeros(50), classes=[0, 1])
    assert labelled.classes_.tolist() == [0, 1]


def test_weights_decay_in_every_part():
    X, y, bag, _ = people(n=80)
    plain, decayed = (
        BagClassifier(hidden=(), learning_rate=0.1, weight_decay=d) for d in (0.0, 0.5)
    )
    first = plain.partial_fit(X, y, bag=bag).model_
    decayed.partial_fit(X, y, bag=bag).model_ = first
    slopes = [
        one.partial_fit(X, y, bag=bag).model_.network().layers[0].weight for one in (plain, decayed)
    ]
    decay = 0.1 * 0.5 * first.network().layers[0].weight
    np.testing.assert_allclose(slopes[0] - slopes[1], decay, rtol=1e-3)


def campaigns(seed=0):
    """Two campaigns, one with few positives and one with many, cut into random bags."""
    X, _, _, _ = people(seed=seed)
    rng, stratum = np.random.default_rng(seed), np.repeat(["brand", "shop"], 800)
    labels = X[:, 0] * 2 + np.where(stratum == "brand", -3, 1) + rng.logistic(size=1600) > 0
    bag = np.concatenate([rng.permutation(800) // 8, 100 + rng.permutation(800) // 8])
    return X, np.bincount(bag, weights=labels)[bag] / 8, bag, stratum, labels


def test_strata_and_noise_go_into_fit():
    X, y, bag, stratum, labels = campaigns()
    start = BagClassifier(hidden=(), epochs=1, learning_rate=1e-9, diagnose=False).fit(
        X, y, bag=bag, stratum=stratum
    )
    assert start.predict_proba(X)[:, 1].mean() == pytest.approx(
        labels.mean(), abs=1e-4
    )  # the prior of all strata
    model = BagClassifier(**FAST).fit(X, y, bag=bag, stratum=stratum)
    assert model.bags_.strata == 2
    assert (
        roc_auc_score(labels, X[:, 0]) - roc_auc_score(labels, model.predict_proba(X)[:, 1]) < 0.02
    )
    noisy = y + (np.random.default_rng(1).laplace(size=200) / 8)[bag]
    model = BagClassifier(**FAST).fit(
        X, noisy, bag=bag, stratum=stratum, noise=np.full(len(y), 2.0)
    )
    assert (
        roc_auc_score(labels, X[:, 0]) - roc_auc_score(labels, model.predict_proba(X)[:, 1]) < 0.05
    )


@pytest.mark.parametrize("method", ["anchored", "matching"])
def test_a_known_prior_goes_into_fit(method):
    X, y, bag, _, _ = campaigns()
    still = {"method": method, "hidden": (), "epochs": 1, "learning_rate": 1e-9, "diagnose": False}
    model = BagClassifier(**still).fit(X, y, bag=bag, prior=0.2)
    assert model.bags_.prior == 0.2
    np.testing.assert_allclose(
        model.predict_proba(X)[:, 1], 0.2, atol=1e-4
    )  # where the training starts
    assert BagRegressor(**still).fit(X, y, bag=bag, prior=0.2).bags_.prior == 0.2


def test_histograms_and_counts_have_strata_too():
    X, y, bag, stratum, _ = campaigns()
    positive = np.rint(np.bincount(bag, y)).astype(int)  # some of each bag are of a third class
    third = (np.random.default_rng(0).binomial(positive, 0.5) / np.bincount(bag))[bag]
    shares = np.stack([1 - y, y - third, third], axis=1)
    assert (
        BagClassifier(**FAST | {"epochs": 1})
        .fit(X, shares, bag=bag, stratum=stratum)
        .predict_proba(X)
        .shape[1]
        == 3
    )
    assert (
        BagRegressor(**FAST | {"epochs": 1}).fit(X, y, bag=bag, stratum=stratum).bags_.strata == 2
    )


def test_a_loaded_model_goes_on_with_the_method_that_was_chosen(tmp_path):
    X, y, bag, _ = people()
    model = BagClassifier("auto", **FAST | {"epochs": 1}).fit(X, y, bag=bag)
    model.method_, model.loss_ = "likelihood", "log"  # as if bags had chosen it
    model.save(tmp_path / "model.unbag")
    loaded = load(tmp_path / "model.unbag").partial_fit(X, y, bag=bag)
    assert loaded.run_.method == "likelihood"
    np.testing.assert_allclose(
        loaded.predict_proba(X), model.partial_fit(X, y, bag=bag).predict_proba(X)
    )


def test_auto_leaves_matching_out_with_a_word_where_noise_takes_its_lower_bound_away():
    X, y, bag, _ = people(n=400)
    given = {"y": np.where(bag == 3, -0.25, y), "bag": bag, "noise": np.full(len(y), 2.0)}
    model = BagClassifier("auto", **FAST | {"epochs": 1}).fit(X, **given)
    assert {run.method for run in model.runs_} == {"anchored", "upm", "likelihood"}
    word = " Matching was left out: noise puts reports where its loss has no lower bound."
    assert model.choice_.reason.endswith(word)
    bags = unbag.from_rows(bag, given["y"], noise=given["noise"])
    assert "matching" in Training("auto", loss="square").tried(bags)


@pytest.mark.parametrize("kind", ["binary", "strings", "counts"])
def test_a_saved_model_comes_back_the_same_and_serves_the_same(tmp_path, kind):
    X, y, bag, labels = people(n=400)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    if kind == "counts":
        model = BagRegressor(hidden=(4,), epochs=3).fit(frame, y * 3, bag=bag)
    elif kind == "strings":
        model = BagClassifier(hidden=(4,), epochs=3).fit(frame, np.array(["no", "yes"])[labels])
    else:
        model = BagClassifier(hidden=(4,), epochs=3).fit(frame, y, bag=bag)
    path = tmp_path / "model.unbag"
    model.save(path)
    again = load(path)
    assert again.get_params() == model.get_params()
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
    predict = model.predict if kind == "counts" else model.predict_proba
    served = jax.export.deserialize(bytearray(model.export())).call(X.astype(np.float32))
    np.testing.assert_allclose(served, predict(frame), rtol=1e-4, atol=1e-6)


def test_parameters_of_numpy_can_be_saved(tmp_path):
    X, y, bag, _ = people(n=80)
    given = {
        "hidden": np.array([2]),
        "epochs": np.int64(1),
        "learning_rate": np.float32(0.5),
        "diagnose": np.False_,
    }
    BagClassifier(**given, random_state=np.random.RandomState(0)).fit(X, y, bag=bag).save(
        tmp_path / "model.unbag"
    )
    kept = load(tmp_path / "model.unbag").get_params()
    assert {name: kept[name] for name in given} == {
        "hidden": (2,), "epochs": 1, "learning_rate": 0.5, "diagnose": False
    }  # fmt: skip
    assert kept["random_state"] is None


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    X, y, bag, _ = people(n=400)
    model = BagClassifier(hidden=(), epochs=2).fit(X, y, bag=bag)
    path = tmp_path / "model.unbag"
    model.save(path)
    before = path.read_bytes()

    def full(*arguments, **options):
        raise OSError("No space left on device")

    monkeypatch.setattr("pathlib.Path.write_bytes", full)
    with pytest.raises(OSError, match="No space left"):
        model.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_two_saves_of_one_model_are_the_same_bytes(tmp_path):
    model = BagClassifier(hidden=(), epochs=1).fit(X, Y, bag=BAG)
    for name in "abcdef":
        model.save(tmp_path / name)
    assert len({(tmp_path / name).read_bytes() for name in "abcdef"}) == 1
    np.testing.assert_array_equal(load(tmp_path / "a").predict_proba(X), model.predict_proba(X))


def test_the_file_of_an_older_network_says_what_it_is(tmp_path):
    path = tmp_path / "model.unbag"
    BagClassifier(method="anchored", epochs=1).fit(X, Y, bag=BAG).save(path)
    arrays, settings = load_arrays(path)
    del settings["network"]
    save_arrays(path, arrays, settings)
    with pytest.raises(ValueError, match="saved by an unbag of before 2026-11-17"):
        load(path)


def test_a_file_that_is_not_there_is_an_error_of_its_own():
    with pytest.raises(FileNotFoundError, match="A model file must exist"):
        load("nowhere.unbag")


@pytest.mark.parametrize("value", [np.nan, np.inf, -1e39, 1e300])
def test_one_network_takes_numbers_as_missing_that_the_learners_do(value):
    strange, gap = (np.where(np.arange(80)[:, None] == 7, one, X) for one in (value, np.nan))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        same, model = (
            BagClassifier(hidden=(), epochs=1).fit(x, Y, bag=BAG) for x in (gap, strange)
        )
        np.testing.assert_array_equal(model.predict_proba(strange), same.predict_proba(gap))
    if not np.isnan(value):
        with pytest.warns(DataWarning, match="Column . has 1 value beyond 1e.38, first in row 7"):
            model.predict(strange)


def test_the_estimate_from_bags_of_one_is_close_to_the_labels():
    score = X[:, 0]
    by_labels, by_bags = (
        estimate_loss(score, LABELS, bag, "binary") for bag in (None, np.arange(80))
    )
    assert by_bags == pytest.approx(by_labels, abs=0.1)


@pytest.mark.parametrize("kind", ["binary", "histogram", "total"])
def test_fit_bags_learns_what_fit_learns_from_their_rows(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2)).astype(np.float32)
    labels = {"binary": 2, "histogram": 3, "total": 5}
    bags = unbag.random_bags(X, rng.integers(0, labels[kind], 120), size=4, seed=0, kind=kind)
    make = {"total": BagRegressor}.get(kind, BagClassifier)
    settings = {"hidden": (), "epochs": 2, "learning_rate": 0.01, "held_out": 0, "diagnose": False}
    one = make(**settings).fit_bags(bags)
    other = make(**settings).fit(bags.X, bags.report[bags.bag], bag=bags.bag)
    np.testing.assert_allclose(one._scores(X), other._scores(X), rtol=1e-6)
    wrong = {BagRegressor: BagClassifier, BagClassifier: BagRegressor}[make]
    with pytest.raises(ValueError, match=r"^Bags of a (classifier|regression) must report"):
        wrong(**settings).fit_bags(bags)


def test_one_number_is_the_noise_of_every_bag():
    one = BagClassifier(learner="additive").fit(X, Y, bag=BAG, noise=0.1)
    each = BagClassifier(learner="additive").fit(X, Y, bag=BAG, noise=np.full(len(Y), 0.1))
    assert (one.predict_proba(X) == each.predict_proba(X)).all()


def test_reports_of_any_type_of_number_are_learned_from():
    given = BagClassifier(learner="additive").fit(X, Y.astype(object), bag=BAG)
    usual = BagClassifier(learner="additive").fit(X, Y, bag=BAG)
    assert (given.predict_proba(X) == usual.predict_proba(X)).all()


def test_one_hidden_layer_may_be_one_number(tmp_path):
    model = BagClassifier(hidden=8, epochs=1).fit(X, Y, bag=BAG)
    model.save(tmp_path / "m.unbag")
    assert (load(tmp_path / "m.unbag").predict_proba(X) == model.predict_proba(X)).all()
