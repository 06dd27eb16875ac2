"""A data scientist knows pandas and scikit-learn, and has shares of groups in place of labels."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import unbag
from cases.clicks import clicks

FEATURES = ["campaign", "ts", "age", "device"]


@pytest.fixture(scope="module")
def week():
    """A frame as it comes from a warehouse: text, times, missing values, and the share of its bag
    beside each row; the truth stays here."""
    events, truth, label = clicks(count=4000)
    share = events.assign(sold=label).groupby("bag").sold.transform("mean")
    return events, share, truth


@pytest.fixture(scope="module")
def fitted(week):
    events, share, _ = week
    model = unbag.BagClassifier(learner="additive", folds=3)
    return model.fit(events[FEATURES], share, bag=events.bag, stratum=events.campaign)


def test_a_frame_goes_in_as_it_is_at_fit_and_at_predict(week, fitted):
    events, _, truth = week
    p = fitted.predict_proba(events[FEATURES])[:, 1]
    assert np.corrcoef(np.log(p / (1 - p)), np.log(truth / (1 - truth)))[0, 1] > 0.85
    tomorrow, there, _ = clicks(count=500, seed=1)
    assert abs(fitted.predict_proba(tomorrow[FEATURES])[:, 1].mean() - there.mean()) < 0.06


def test_the_model_says_in_words_what_it_is_worth(fitted):
    verdict = fitted.fitted_.verdict
    assert verdict.answer == "better"
    assert verdict.step == "predict"
    assert 50 < fitted.fitted_.worth < 4000  # bags say less than labels would
    assert next(iter(fitted.fitted_.strengths)) == "age"


def test_shares_without_a_bag_are_told_what_is_missing(week):
    events, share, _ = week
    with pytest.raises(ValueError, match="bag="):
        unbag.BagClassifier().fit(events[["age"]].fillna(40), share)


def test_two_frames_are_joined_by_the_same_words_as_on_the_command_line(week):
    events, share, truth = week
    reports = pd.DataFrame({"bag": events.bag, "rate": share}).drop_duplicates()
    columns = {"on": "bag", "proportion": "rate", "id": "event_id", "stratum": "campaign"}
    bags = unbag.join(events, reports, **columns)
    assert [c.name for c in bags.plan.used] == [c for c in events if c not in ("event_id", "bag")]
    model = unbag.fit(bags, learner="additive", folds=3)
    found, low, high = (model.evaluation["mean_prediction"][i] for i in (0, 2, 3))
    assert low - 0.03 < truth.mean() < high + 0.03
    assert abs(found - truth.mean()) < 0.03


def test_pipelines_and_copies_work_as_with_any_estimator(week):
    events, share, _ = week
    without_time = FunctionTransformer(lambda frame: frame.drop(columns="ts"))
    model = make_pipeline(without_time, unbag.BagClassifier(learner="additive", folds=2))
    model.fit(events[FEATURES], share, bagclassifier__bag=events.bag)
    assert model.predict_proba(events[FEATURES]).shape == (4000, 2)
    assert clone(model[-1]).get_params()["learner"] == "additive"
