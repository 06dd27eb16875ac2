"""What of scikit-learn works with bags: each line of the page on it is tried here."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    RandomizedSearchCV,
    cross_val_predict,
    cross_val_score,
    learning_curve,
    train_test_split,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import unbag
from unbag import BagClassifier, BagKFold, BagRegressor, BagScorer, bag_targets
from unbag.estimators._targets import row_reports
from unbag.learners import Additive, DataWarning

ADDITIVE = {"learner": Additive(steps=3), "folds": 2}
PIPELINE = make_pipeline(
    make_column_transformer((StandardScaler(), ["x", "z"]), (OneHotEncoder(), ["shop"])),
    BagClassifier(**ADDITIVE),
)


class Shops:
    """600 rows in bags of 6, whose labels depend on x and on the shop."""

    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {"x": rng.normal(size=600), "shop": rng.choice(["a", "b"], 600), "z": rng.normal(size=600)}
    )
    labels = (rng.random(600) < 1 / (1 + np.exp(-2 * X.x - (X.shop == "a")))).to_numpy()
    bag = rng.permutation(600) // 6
    share = np.bincount(bag, weights=labels)[bag] / 6
    y = bag_targets(share, bag)


@pytest.fixture(scope="module")
def model():
    return BagClassifier(**ADDITIVE).fit(Shops.X, Shops.y)


def test_a_y_that_carries_bags_teaches_what_bag_does(model):
    same = BagClassifier(**ADDITIVE).fit(Shops.X, Shops.share, bag=Shops.bag)
    np.testing.assert_array_equal(same.predict_proba(Shops.X), model.predict_proba(Shops.X))
    assert model.score(Shops.X, Shops.y) == same.score(Shops.X, Shops.share, bag=Shops.bag)


def test_noise_and_strata_go_with_the_bags_of_y():
    stratum, noise = np.where(Shops.bag % 2, "odd", "even"), np.full(600, 0.5)
    y = bag_targets(Shops.share, Shops.bag, stratum=stratum, noise=noise)
    one = BagClassifier(**ADDITIVE).fit(Shops.X, y)
    given = {"bag": Shops.bag, "stratum": stratum, "noise": noise}
    other = BagClassifier(**ADDITIVE).fit(Shops.X, Shops.share, **given)
    np.testing.assert_array_equal(one.predict_proba(Shops.X), other.predict_proba(Shops.X))
    folds = [set(stratum[test]) for _, test in BagKFold(2).split(Shops.X, y)]
    assert folds == [{"odd", "even"}] * 2


@pytest.mark.parametrize("search", [GridSearchCV, RandomizedSearchCV])
def test_searches_need_no_routing(search):
    settings = {"learner": [Additive(steps=0), Additive(steps=3)]}
    more = {"n_iter": 1, "random_state": 0} if search is RandomizedSearchCV else {}
    found = search(BagClassifier(folds=2), settings, cv=BagKFold(2), **more).fit(Shops.X, Shops.y)
    assert -0.69 < found.best_score_ < -0.3


def test_pipelines_and_column_transformers_hand_the_bags_on():
    assert (cross_val_score(PIPELINE, Shops.X, Shops.y, cv=BagKFold(2)) > -0.69).all()
    scores = cross_val_score(
        PIPELINE, Shops.X, Shops.y, cv=BagKFold(2), scoring=BagScorer("auc"), error_score="raise"
    )
    assert (scores > 0.6).all()


def test_folds_hold_whole_bags_each_once():
    rows = [test for _, test in BagKFold(3, random_state=1).split(Shops.X, Shops.y)]
    assert sorted(np.concatenate(rows).tolist()) == list(range(600))
    assert sum(len(set(Shops.bag[test])) for test in rows) == 100
    for train, test in BagKFold(3).split(Shops.X, groups=Shops.bag):
        assert not set(Shops.bag[train]) & set(Shops.bag[test])
    assert BagKFold(3).get_n_splits() == 3


def test_with_routing_the_bags_go_to_the_splitter_as_groups():
    with sklearn.config_context(enable_metadata_routing=True):
        wants = BagClassifier(**ADDITIVE).set_fit_request(bag=True).set_score_request(bag=True)
        given = {"bag": Shops.bag, "groups": Shops.bag}
        scores = cross_val_score(wants, Shops.X, Shops.share, cv=BagKFold(2), params=given)
        assert (scores > -0.69).all()
        with (
            pytest.warns(DataWarning, match="A share must be a whole number of rows"),
            pytest.raises(ValueError, match="A bag must stay whole, to learn from"),
        ):
            cross_val_score(
                wants,
                Shops.X,
                Shops.share,
                cv=KFold(2, shuffle=True, random_state=0),
                params={"bag": Shops.bag},
                error_score="raise",
            )


def test_rows_that_are_merely_numbered_alike_are_judged(model):
    bag = np.arange(200) // 5  # the same names as bags of 6 had, and other reports
    share = np.bincount(bag, weights=Shops.labels[:200])[bag] / 5
    assert model.score(Shops.X[:200], share, bag=bag) < 0


def cut_by_folds():
    GridSearchCV(BagClassifier(**ADDITIVE), {"folds": [2]}, cv=2).fit(Shops.X, Shops.y)


def cut_by_a_split():
    X, _, y, _ = train_test_split(Shops.X, Shops.y, random_state=0)
    BagClassifier(**ADDITIVE).fit(X, y)


def cut_by_a_curve():
    learning_curve(BagClassifier(), Shops.X, Shops.y, cv=BagKFold(2), error_score="raise")


@pytest.mark.parametrize("cut", [cut_by_folds, cut_by_a_split, cut_by_a_curve])
def test_what_cuts_through_bags_is_refused(cut):
    with pytest.raises(ValueError, match="A bag must stay whole"):
        cut()


@pytest.mark.parametrize(
    "learn",
    [
        lambda one: StackingClassifier([("one", one)], cv=BagKFold(2)).fit(Shops.X, Shops.y),
        lambda one: VotingClassifier([("one", one)]).fit(Shops.X, Shops.y),
        lambda one: CalibratedClassifierCV(one, cv=BagKFold(2)).fit(Shops.X, Shops.y),
        lambda one: cross_val_predict(
            one, Shops.X, Shops.y, cv=BagKFold(2), method="predict_proba"
        ),
    ],
    ids=["stacking", "voting", "calibration", "cross_val_predict"],
)
def test_what_needs_labels_refuses_bags(learn):
    with pytest.raises((ValueError, TypeError), match=r"Unknown label type|uniformly strings"):
        learn(BagClassifier(**ADDITIVE))


def test_learners_are_stacked_by_fit_instead():
    bags = unbag.from_rows(Shops.bag, Shops.share, X=Shops.X)
    stacked = unbag.fit(bags, learner=[Additive(steps=3), "trees"], folds=2)
    assert list(stacked.weights) == ["additive", "trees"]


def test_fitted_models_vote_and_are_stacked_once_there_are_labels(model):
    other = BagClassifier(learner=Additive(steps=0), folds=2).fit(Shops.X, Shops.y)
    frozen = [("one", FrozenEstimator(model)), ("other", FrozenEstimator(other))]
    voted = VotingClassifier(frozen, voting="soft").fit(Shops.X, model.predict(Shops.X))
    mean = (model.predict_proba(Shops.X) + other.predict_proba(Shops.X)) / 2
    np.testing.assert_allclose(voted.predict_proba(Shops.X), mean)
    few = slice(0, 100)
    stacked = StackingClassifier(frozen, cv="prefit").fit(Shops.X[few], Shops.labels[few])
    assert stacked.score(Shops.X, Shops.labels) > 0.6


def test_a_fitted_model_is_calibrated_by_labels_or_by_bags(model):
    few = slice(0, 100)
    by_labels = CalibratedClassifierCV(FrozenEstimator(model)).fit(Shops.X[few], Shops.labels[few])
    assert by_labels.predict_proba(Shops.X).shape == (600, 2)
    other = unbag.random_bags(Shops.X, Shops.labels, size=5, seed=3)
    by_bags = unbag.recalibrate(model, other).wrap(model)
    assert by_bags.predict_proba(Shops.X).shape == (600, 2)


def test_importance_and_dependence_need_bags_or_nothing(model):
    importance = permutation_importance(model, Shops.X, Shops.y, n_repeats=2, random_state=0)
    assert np.argmax(importance.importances_mean) == 0
    curve = partial_dependence(model, Shops.X, ["x"], grid_resolution=5)["average"][0]
    assert (np.diff(curve) > 0).all()
    shops = partial_dependence(model, Shops.X, ["shop"], categorical_features=["shop"])
    assert shops["average"].shape == (1, 2)


@pytest.mark.parametrize("way", [BagClassifier(**ADDITIVE), PIPELINE], ids=["model", "pipeline"])
def test_cross_validation_judges_every_bag_by_a_model_that_never_saw_it(way):
    bags = unbag.from_rows(Shops.bag, Shops.share, X=Shops.X)
    found = unbag.cross_validate(way, bags, folds=2)
    assert len(found.models) == 2
    held = np.flatnonzero(found.fold == 1)
    by_other = unbag.metrics.scores_on(found.models[1], bags)[bags.rows_of(held)]
    np.testing.assert_array_equal(found.scores[bags.rows_of(held)], by_other)
    assert found.evaluation["log_loss"].low < 0.6 < found.evaluation["log_loss"].high + 0.2
    assert "2 folds" in repr(found)
    assert not hasattr(way, "kind_")


def test_bags_that_are_not_random_are_judged_by_their_likelihood():
    order = np.argsort(Shops.X.x.to_numpy())
    bag = np.empty(600, int)
    bag[order] = np.arange(600) // 6
    bags = unbag.from_rows(bag, y=Shops.labels, X=Shops.X)
    found = unbag.cross_validate(BagClassifier(**ADDITIVE), bags, folds=2)
    assert found.evaluation["gain_over_prior"].low > 0


NAMES = np.array(["red", "blue", "green"])
COLOUR = np.digitize(Shops.X.x + np.random.default_rng(1).normal(size=600), [-0.5, 0.5])
SHARES = {
    name: np.bincount(Shops.bag, weights=i == COLOUR)[Shops.bag] / 6 for i, name in enumerate(NAMES)
}


def test_names_of_classes_come_from_the_columns_of_shares():
    shares = pd.DataFrame(SHARES)
    model = BagClassifier(learner=Additive(steps=0), folds=2).fit(Shops.X, shares, bag=Shops.bag)
    assert model.classes_.tolist() == NAMES.tolist()
    assert np.mean(model.predict(Shops.X) == NAMES[COLOUR]) > 0.5
    assert -1.1 < model.score(Shops.X, NAMES[COLOUR]) < -0.5


def test_reports_indexed_by_bag_need_not_be_repeated_for_each_row():
    shares = pd.DataFrame(SHARES).groupby(Shops.bag).mean().sample(frac=1, random_state=0)
    rows = row_reports(shares, Shops.bag)
    np.testing.assert_allclose(rows.y, np.stack(list(SHARES.values()), axis=1))
    assert list(rows.classes) == NAMES.tolist()
    with pytest.raises(unbag.Refused, match="one entry for each bag"):
        row_reports(shares.iloc[1:], Shops.bag)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_the_names_of_classes_go_with_the_bags(make):
    rows = row_reports(bag_targets(make(SHARES), Shops.bag))
    assert list(rows.classes) == NAMES.tolist()
    np.testing.assert_array_equal(rows.y, np.stack(list(SHARES.values()), axis=1))


@pytest.mark.parametrize("make", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
def test_one_network_takes_frames_as_they_are_too(make, tmp_path):
    X = Shops.X.assign(
        day=pd.Timestamp("2026-01-01") + pd.to_timedelta(np.arange(600), "h"),
        x=Shops.X.x.where(np.arange(600) % 10 > 0),
        shop=pd.Categorical(Shops.X.shop),
    )
    table = make(X)
    model = BagClassifier(hidden=(), epochs=2).fit(table, Shops.y)
    assert model.feature_names_in_.tolist() == ["x", "shop", "z", "day"]
    model.save(tmp_path / "m.unbag")
    again = unbag.load(tmp_path / "m.unbag")
    np.testing.assert_array_equal(again.predict_proba(table), model.predict_proba(table))


def test_counts_carry_their_bags_too():
    y = bag_targets(3 * Shops.share, Shops.bag)
    counts = BagRegressor(**ADDITIVE).fit(Shops.X, y)
    assert cross_val_score(BagRegressor(**ADDITIVE), Shops.X, y, cv=BagKFold(2)).shape == (2,)
    assert counts.predict(Shops.X).mean() == pytest.approx(3 * Shops.share.mean(), rel=0.2)


def test_rows_that_were_split_one_by_one_are_warned_of():
    """A part of a bag does not have the share of the whole: 0.3 of 7 rows is 2.1."""
    learn = np.arange(len(Shops.bag)) % 4 > 0
    cut = {"X": Shops.X[learn], "y": Shops.share[learn], "bag": Shops.bag[learn]}
    model = BagClassifier(**ADDITIVE)
    with pytest.warns(DataWarning, match="A share must be a whole number of rows: .* such bags"):
        model.fit(**cut)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(Shops.X, np.round(Shops.share, 2), bag=Shops.bag)
        model.fit(**cut, noise=np.ones(learn.sum()))
