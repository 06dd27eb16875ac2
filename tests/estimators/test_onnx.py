"""Models as ONNX: what a runtime without unbag predicts is what we predict."""

import numpy as np
import pandas as pd
import pytest

import unbag
from cases.packages import needs
from unbag import BagClassifier, BagRegressor
from unbag.learners import Additive, DataWarning, Trees

needs("onnx")
runtime = needs("onnxruntime")
BOTH = (Additive(steps=4), Trees(rounds=10, patience=10, depth=(3,), folds=2))


def clicks(n=800, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "age": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
            "shop": pd.Series(rng.choice(list("abc"), n)).where(rng.random(n) > 0.05),
            "new": rng.random(n) < 0.5,
            "time": pd.Timestamp("2023-12-01") + pd.to_timedelta(rng.integers(0, 20_000, n), "h"),
        }
    )
    march = X.time.dt.month == 3
    score = X.age.fillna(1.0) + 2 * (X.shop == "a") - X.new + march - 1
    labels = (rng.random(n) < 1 / (1 + np.exp(-score))).to_numpy()
    return X, labels, rng.permutation(n) // 4


def served(path, X):
    """What the file predicts for a frame, or a matrix."""
    session = runtime.InferenceSession(str(path))
    if isinstance(X, np.ndarray):
        return session.run(None, {"X": X})[1]
    text = X[["shop", "new"]].astype(object).where(X[["shop", "new"]].notna(), "").astype(str)
    moment = X.time.astype("datetime64[us]").astype("int64").where(X.time.notna(), -(2**63))
    columns = {"age": X.age, "shop": text.shop.astype(object), "new": text.new.astype(object)}
    columns |= {"time": moment}
    return session.run(None, {k: v.to_numpy()[:, None] for k, v in columns.items()})[1]


@pytest.mark.parametrize("kind", ["binary", "total", "histogram"])
def test_a_runtime_predicts_what_we_predict(kind, tmp_path):
    X, labels, bag = clicks()
    shares = np.bincount(bag, weights=labels)[bag] / 4
    model = BagClassifier(learner=BOTH, folds=2)
    if kind == "total":
        model, shares = BagRegressor(learner=BOTH, folds=2), 2 * shares
    if kind == "histogram":
        some = np.floor(2 * shares) / 4
        shares = pd.DataFrame({"no": 1 - shares, "yes": some, "maybe": shares - some})
    model.fit(X, shares, bag=bag)
    new = clicks(200, seed=1)[0]
    new.loc[:9, "shop"], new.loc[10:14, "age"], new.loc[15:19, "time"] = "new", np.inf, pd.NaT
    expected = model.predict(new)[:, None] if kind == "total" else model.predict_proba(new)
    found = served(unbag.to_onnx(model, tmp_path / "model.onnx"), new)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert np.ptp(expected, axis=0).max() > 0.2


def test_matrices_are_served_too(tmp_path):
    _, labels, bag = clicks()
    rng = np.random.default_rng(2)
    X = np.column_stack([rng.normal(size=(800, 2)) + labels[:, None], np.eye(3)[bag % 3]])
    bags = unbag.from_rows(bag, y=labels, X=X)
    fitted = unbag.fit(bags, learner=BOTH, folds=2)
    found = served(unbag.to_onnx(fitted, tmp_path / "model.onnx"), X)
    np.testing.assert_allclose(found, fitted.predict_proba(X), atol=1e-6)


def together(*columns):
    """Labels that the columns tell only together: whether an odd number of them is high."""
    odd = np.sum(columns, axis=0) % 2 == 1
    return np.random.default_rng(3).random(len(odd)) < np.where(odd, 0.9, 0.1)


def pairs_of(fitted):
    return {term.pair for term in fitted.models["additive"].terms.terms if term.pair}


def test_pairs_of_columns_are_served_too(tmp_path):
    X, _, bag = clicks(4000)
    labels = together(X.age > 0, X.shop == "a", X.new)
    labels = np.where(bag % 2, labels, together(X.age.isna(), X.new))
    model = BagClassifier(learner=(Additive(steps=4),), folds=2)
    model.fit(X, np.bincount(bag, weights=labels)[bag] / 4, bag=bag)
    assert ("age", "new") in pairs_of(model.fitted_)
    new = clicks(200, seed=1)[0]
    new.loc[:9, "shop"], new.loc[10:14, "age"], new.loc[15:19, "time"] = "new", np.inf, pd.NaT
    found = served(unbag.to_onnx(model, tmp_path / "model.onnx"), new)
    np.testing.assert_allclose(found, model.predict_proba(new), atol=1e-6)


def test_pairs_of_columns_of_a_matrix_are_served_too(tmp_path):
    rng = np.random.default_rng(2)
    code, two, x = rng.integers(0, 4, 4000), rng.integers(0, 2, 4000) * 2.5, rng.normal(size=4000)
    labels = np.where(np.arange(4000) % 2, together(code > 1, two > 0), together(code > 1, x > 0))
    X = np.column_stack([np.eye(4)[code][:, :3], two, x])  # the last level has no column
    fitted = unbag.fit(unbag.random_bags(X, labels, size=4, seed=0), learner=(Additive(),), folds=2)
    assert pairs_of(fitted) >= {("columns 0 to 2", "column 3"), ("columns 0 to 2", "column 4")}
    X[:5, :3], X[5:9, 0], X[9:12, 3:] = 1.0, np.nan, np.nan
    found = served(unbag.to_onnx(fitted, tmp_path / "model.onnx"), X)
    np.testing.assert_allclose(found, fitted.predict_proba(X), atol=1e-6)


def test_codes_that_are_whole_numbers_are_served_too(tmp_path):
    rng = np.random.default_rng(2)
    shop, x = rng.integers(100, 130, 4000), rng.normal(size=4000)
    X = np.column_stack([shop, x])
    labels = together(shop % 2, x > 5)
    fitted = unbag.fit(unbag.random_bags(X, labels, size=4, seed=0), learner=(Additive(),), folds=2)
    assert ("column 0",) in pairs_of(fitted)
    X[:5, 0] = 99, 130, 117.5, np.nan, 1e9
    found = served(unbag.to_onnx(fitted, tmp_path / "model.onnx"), X)
    np.testing.assert_allclose(found, fitted.predict_proba(X), atol=1e-6)


def test_flags_of_one_category_are_served_too(tmp_path):
    rng = np.random.default_rng(2)
    day = rng.integers(0, 4, 2000)
    X = pd.DataFrame(np.eye(4)[day], columns=list("abcd"))
    bags = unbag.random_bags(X, together(day > 1), size=4, seed=0)
    fitted = unbag.fit(bags, learner=(Additive(),), folds=2)
    assert fitted.models["additive"].terms.terms[0].flags == tuple("abcd")
    new = pd.DataFrame(
        [[1, 0, 0, 0], [0, 0, 0, 0], [1, 0, 0, 1], [0, np.nan, 0, 0]], columns=X.columns
    )
    new = new.astype(float)
    session = runtime.InferenceSession(str(unbag.to_onnx(fitted, tmp_path / "model.onnx")))
    found = session.run(None, {name: new[name].to_numpy()[:, None] for name in new})[1]
    with pytest.warns(DataWarning, match="of such a row the last column counts"):
        expected = fitted.predict_proba(new)
    np.testing.assert_allclose(found, expected, atol=1e-6)
