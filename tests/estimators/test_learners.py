"""The learners behind scikit-learn's estimators: frames as they are, files, options."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import unbag
from unbag import BagClassifier, BagRegressor
from unbag.learners import Additive, Trees

QUICK = (Additive(), Trees(rounds=20, patience=10))


def frame(n=2000, seed=0):
    rng = np.random.default_rng(seed)
    shop, x = rng.integers(40, size=n), rng.normal(size=n)
    score = -1 + x + np.sin(shop)
    time = pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 5000, n), "h")
    X = pd.DataFrame(
        {
            "shop": pd.Categorical([f"s{i}" for i in shop]),
            "x": np.where(rng.random(n) < 0.1, np.nan, x),
            "time": time,
            "new": rng.random(n) < 0.5,
        }
    )
    y = rng.random(n) < 1 / (1 + np.exp(-score))
    bag = rng.permutation(n) // 8
    return X, y, np.bincount(bag, weights=y)[bag] / 8, bag, score


@pytest.mark.parametrize("make", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
def test_frames_go_in_as_they_are_at_fit_at_predict_and_through_a_file(make, tmp_path):
    X, y, share, bag, score = frame()
    table = make(X)
    model = BagClassifier(learner="additive").fit(table, share, bag=bag)
    assert np.corrcoef(model.decision_function(table), score)[0, 1] > 0.7
    assert model.evaluation_["log_loss"].low < -model.score(table, y) < 0.69
    model.save(tmp_path / "m.unbag")
    again = unbag.load(tmp_path / "m.unbag")
    np.testing.assert_array_equal(again.predict_proba(table), model.predict_proba(table))
    assert again.feature_names_in_.tolist() == ["shop", "x", "time", "new"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(make(X[["x", "shop", "time", "new"]]))


def test_the_default_combines_and_its_file_holds_everything(tmp_path):
    rng = np.random.default_rng(0)
    X, bag = rng.normal(size=(1500, 3)), np.arange(1500) // 5
    counts = rng.poisson(np.exp(0.7 * X[:, 0]))
    y = np.bincount(bag, weights=counts)[bag] / 5
    model = BagRegressor(learner=QUICK).fit(X, y, bag=bag)
    assert set(model.fitted_.weights) == {"additive", "trees"}
    assert model.fitted_.verdict.answer != "unknown"
    model.learner = "auto"  # your own learners are not saved, what they learned is
    model.save(tmp_path / "m.unbag")
    again = unbag.load(tmp_path / "m.unbag")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    with pytest.raises(ValueError, match="must not overlap the bags that the model learned from"):
        unbag.evaluate(again, unbag.from_rows(bag, y, X=X, kind="total"))


def test_class_histograms_and_labels_are_learned_by_the_learners_too():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 2))
    names = np.array(["a", "b", "c"])[np.digitize(X[:, 0] + rng.normal(size=900), [-0.5, 1])]
    model = BagClassifier(learner="additive").fit(X, names)
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert np.mean(model.predict(X) == names) > 0.5


def test_an_option_of_training_means_one_network():
    X, _, share, bag, _ = frame(n=400)
    numbers = X[["x"]].fillna(0.0)
    model = BagClassifier(method="upm", hidden=(), epochs=2).fit(numbers, share, bag=bag)
    assert model.fitted_ is None
    assert model.method_ == "upm"
    with pytest.raises(ValueError, match="Options of training must come with a network: epochs"):
        BagClassifier(learner="additive", epochs=2).fit(numbers, share, bag=bag)


def test_an_offset_goes_into_fit_and_predict():
    X, y, share, bag, score = frame()
    offset = score - X["x"].fillna(0).to_numpy()
    model = BagClassifier(learner="additive").fit(X, share, bag=bag, offset=offset)
    h = model.predict_proba(X, offset=offset)[:, 1]
    loss = -np.mean(np.log(np.where(y, h, 1 - h)))
    assert model.score(X, y, offset=offset) == pytest.approx(-loss, rel=1e-6)
    assert np.corrcoef(np.log(h / (1 - h)), score)[0, 1] > 0.9
    assert np.corrcoef(model.scores_at(X, None), score)[0, 1] < 0.9
    judge = unbag.random_bags(X, y, size=8, seed=1, offset=offset)
    told = unbag.evaluate(model, judge)["mean_prediction"].value
    assert told == pytest.approx(h.mean(), abs=1e-6)


def test_joined_bags_are_learned_from_their_columns_and_judged_by_them():
    X, y, _, bag, _ = frame()
    reports = pd.DataFrame({"bag": np.arange(250), "n": np.bincount(bag, weights=y)})
    bags = unbag.join(X.assign(bag=bag), reports, on="bag", total="n")
    learn, judge = bags.split(0.7, seed=0)
    model = BagClassifier(learner="additive").fit_bags(learn)
    assert model.takes_tables
    np.testing.assert_allclose(
        unbag.evaluate(model, judge)["mean_prediction"].value,
        model.predict_proba(judge.table)[:, 1].mean(),
    )
    fitted = unbag.fit(learn, learner=Additive())
    np.testing.assert_allclose(
        unbag.evaluate(fitted, judge)["log_loss"].value,
        unbag.evaluate(fitted.scores(judge.table), judge)["log_loss"].value,
    )
