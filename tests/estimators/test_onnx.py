"""Models as ONNX: what a runtime without unbag predicts is what we predict."""

import numpy as np
import pandas as pd
import pytest

import unbag
from cases.packages import needs
from unbag import BagClassifier, BagRegressor
from unbag.learners import Additive, Trees

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
        shares = pd.DataFrame({"no": 1 - shares, "yes": shares / 2, "maybe": shares / 2})
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
