"""Labels for some rows beside bags of the others, and a model that is already there."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy.special import expit

import unbag
from unbag.learners import Additive, fit, fit_files, with_labels


def rows(n, rng, shift=0.0):
    x, shop = rng.normal(shift, 1, n), rng.integers(4, size=n)
    score = -1 + 1.5 * x + np.linspace(-1, 1, 4)[shop]
    return pa.table({"x": x, "shop": np.array(list("abcd"))[shop]}), score


def loss(model, X, score, offset=None):
    z, p = model.scores(X), expit(score)
    if offset is not None:
        z = z + offset
    return np.mean(np.logaddexp(0, z) - p * z)


def world(seed=0, n=2000, size=100):
    rng = np.random.default_rng(seed)
    X, score = rows(n, rng)
    return unbag.random_bags(X, rng.random(n) < expit(score), size=size, seed=seed), rng


@pytest.mark.filterwarnings("ignore::unbag.learners.DataWarning")
def test_labels_of_some_make_a_better_model_than_bags_alone():
    bags, rng = world()
    own, own_score = rows(300, rng)
    both = with_labels(bags, own, rng.random(300) < expit(own_score))
    assert len(both) == len(bags) + 300
    assert both.notes == ("The labelled rows look like the others in every column.",)
    fresh, score = rows(5000, rng)
    alone, together = (fit(each, learner=Additive()) for each in (bags, both))
    assert loss(together, fresh, score) < loss(alone, fresh, score) - 0.01
    assert both.notes[0] in together.notes


def test_labelled_rows_that_are_not_like_the_others_are_named_by_column():
    bags, rng = world()
    own, _ = rows(300, rng, shift=1.0)
    (note,) = with_labels(bags, own.to_pandas(), np.arange(300) % 2).notes
    assert note.startswith("The labelled rows are not like the others: their means differ in x (")
    assert "shop" not in note


def test_labels_go_with_matrices_histograms_noise_and_names():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 2)), rng.integers(3, size=300)
    bag = np.arange(300) // 10
    bags = unbag.from_rows(bag, y=y, X=X, kind="histogram", noise=dict.fromkeys(range(30), 2.0))
    both = with_labels(bags, X[:5], y[:5])
    np.testing.assert_array_equal(both.report[-5:], np.eye(3)[y[:5]])
    assert both.noise[-5:].tolist() == [0] * 5
    assert both.names[-1] == "labelled 4"
    assert both.take([0, 30]).X.shape == (11, 2)
    with pytest.raises(ValueError, match="one label for each labelled row: 4 given for 5 rows"):
        with_labels(bags, X[:5], y[:4])


def test_labels_go_beside_joined_bags_with_the_columns_of_the_events():
    rng = np.random.default_rng(0)
    X, _ = rows(400, rng)
    events = X.to_pandas().assign(bag=np.arange(400) // 10)
    reports = pd.DataFrame({"bag": np.arange(40), "n": rng.integers(0, 10, 40)})
    bags = unbag.join(events, reports, on="bag", total="n")
    both = with_labels(bags, events.drop(columns="bag").head(7), np.arange(7) % 2)
    assert both.X.num_rows == 407
    assert set(both.X.schema.names) == {"x", "shop"}


@pytest.mark.filterwarnings("ignore::unbag.learners.DataWarning")
def test_an_old_score_is_kept_where_bags_teach_little_and_corrected_where_it_is_wrong():
    rng = np.random.default_rng(0)
    X, score = rows(2000, rng)
    y = rng.random(2000) < expit(score)
    old = score - 1.5 * X["x"].to_numpy() + 0.5  # it knows the shops, not x, and is too high
    few = unbag.random_bags(X, y, size=250, seed=0, offset=old)
    many = unbag.random_bags(X, y, size=5, seed=0, offset=old)
    fresh, truth = rows(5000, rng)
    offset = truth - 1.5 * fresh["x"].to_numpy() + 0.5
    by_old = loss(fit(few, learner=Additive()), fresh, truth, offset)
    corrected = loss(fit(many, learner=Additive()), fresh, truth, offset)
    best = np.mean(np.logaddexp(0, truth) - expit(truth) * truth)
    plain = np.mean(np.logaddexp(0, offset) - expit(truth) * offset)
    assert by_old < plain  # at least the level is repaired
    assert corrected - best < 0.15 * (plain - best)


def test_an_old_score_of_probabilities_is_known_as_such_and_stays_a_feature():
    rng = np.random.default_rng(0)
    events = pa.table({"bag": np.arange(60) // 6, "x": rng.normal(size=60), "p": rng.random(60)})
    reports = pa.table({"bag": np.arange(10), "n": rng.integers(0, 6, 10)})
    bags = unbag.join(events, reports, on="bag", total="n", score="p")
    assert bags.old_score[:2] == ("p", True)
    p = events["p"].to_numpy()[bags.rows]
    np.testing.assert_allclose(bags.offset, np.log(p / (1 - p)))
    assert set(bags.table.schema.names) == {"x", "p"}
    logits = events.set_column(2, "p", pa.array(10 * rng.normal(size=60)))
    assert not unbag.join(logits, reports, on="bag", total="n", score="p").old_score.probability
    holes = events.set_column(2, "p", pa.array([None, *p[1:]]))
    with pytest.raises(ValueError, match="An old score must be finite"):
        unbag.join(holes, reports, on="bag", total="n", score="p")


ADDITIVE = {"learner": Additive()}


def visits(n=600):
    """Joined bags of counts with exposures, and the events that they were made from."""
    rng = np.random.default_rng(0)
    bag, hours, x = np.arange(n) // 6, rng.uniform(1, 20, n), rng.normal(size=n)
    events = pd.DataFrame({"bag": bag, "id": np.arange(n), "hours": hours, "x": x})
    y = rng.poisson(hours * np.exp(0.5 * x - 2))
    reports = pd.DataFrame({"bag": np.arange(n // 6), "n": np.bincount(bag, weights=y)})
    words = {"on": "bag", "total": "n", "kind": "total", "exposure": "hours"}
    return events, unbag.join(events, reports, **words, id="id")


def test_predict_reads_the_exposure_from_events_and_never_takes_it_for_zero(tmp_path):
    events, bags = visits()
    model = unbag.BagRegressor(**ADDITIVE).fit_bags(bags)
    right = model.fitted_.predict(bags.table, offset=bags.offset)
    np.testing.assert_allclose(model.predict(events)[bags.rows], right)
    np.testing.assert_allclose(model.predict(bags.table, np.log(events.hours)[bags.rows]), right)
    model.save(tmp_path / "model.unbag")
    read = unbag.load(tmp_path / "model.unbag")
    assert read.learner == "additive"  # as a name, which a file can hold
    np.testing.assert_allclose(read.predict(pa.table(events))[bags.rows], right)
    for refused in (
        lambda: model.predict(events.drop(columns="hours")),
        lambda: read.predict(events.drop(columns="hours")),
        lambda: read.score(events[["x"]], np.ones(len(events))),
        lambda: model.fitted_.predict(bags.table),
    ):
        with pytest.raises(ValueError, match="must have that of each row to predict: none given"):
            refused()
    with pytest.raises(ValueError, match="offset must have one entry for each row: 3 given"):
        model.predict(events, offset=np.ones(3))


def test_an_offset_of_fit_is_asked_for_by_predict_and_reaches_scorers_and_recalibration():
    rng = np.random.default_rng(0)
    X, old, bag = rng.normal(size=(600, 2)), rng.normal(size=600), np.arange(600) // 5
    y = rng.random(600) < expit(old + X[:, 0])
    report = (np.bincount(bag, weights=y) / 5)[bag]
    model = unbag.BagClassifier(**ADDITIVE).fit(X, report, bag=bag, offset=old)
    for predict in (model.predict, model.predict_proba, model.decision_function):
        with pytest.raises(ValueError, match=r"none given\. Give offset=: old scores as logits"):
            predict(X)
    right = model.decision_function(X, offset=old)
    np.testing.assert_allclose(right, model.scores_at(X, None) + old)
    assert unbag.BagScorer("auc")(model, X, y, offset=old) > 0.7
    score = model.score(X, y, offset=old)
    assert unbag.BagScorer("log_loss")(model, X, y, offset=old) == score
    fresh = unbag.random_bags(X, y, size=4, seed=1, offset=old)
    repaired = unbag.recalibrate(model, fresh).wrap(model)
    np.testing.assert_allclose(repaired.scores_at(X, old), repaired.recalibration.apply(right))
    rows = fresh.rows
    by_scores = unbag.evaluate(repaired.scores_at(X[rows], old[rows]), fresh)
    assert unbag.evaluate(repaired, fresh)["log_loss"] == by_scores["log_loss"]


def test_the_rival_of_an_old_score_from_disk_is_the_old_score():
    events, bags = visits()
    reports = pd.DataFrame({"bag": bags.names, "n": bags.report * bags.size})
    words = {"total": "n", "kind": "total", "exposure": "hours", "id": "id"}
    fitted = fit_files(events, reports, "bag", **words).fitted
    assert "better than the old score (or exposure) alone" in str(fitted.verdict)
