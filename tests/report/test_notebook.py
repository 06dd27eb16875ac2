"""Objects that show themselves in a notebook, and the bar during long fits."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

import unbag
from unbag import _progress
from unbag._progress import whom_to_inform
from unbag.learners import Additive

EVIL = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def learned():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 1))
    bags = unbag.random_bags(X, rng.random(600) < 1 / (1 + np.exp(-2 * X[:, 0])), size=5, seed=0)
    given = (bags.X, bags.report[bags.bag])
    return bags, unbag.BagClassifier(learner=Additive(steps=0), folds=2).fit(*given, bag=bags.bag)


def test_bags_diagnoses_evaluations_choices_and_models_show_themselves(learned):
    bags, model = learned
    choice = unbag.choose({EVIL: model.decision_function(bags.X), "zero": np.zeros(600)}, bags)
    shown = {
        "Bags with a report": bags,
        "Are the bags random?": unbag.diagnose(bags),
        "How good is it?": model.evaluation_,
        "Methods compared": choice,
        "What each column does": model.fitted_,
    }
    for words, thing in shown.items():
        html = thing._repr_html_()
        assert words in html
        assert "<script" not in html
        assert html.count("<div") == html.count("</div>")
    assert "&lt;script&gt;" in choice._repr_html_()


def test_an_estimator_shows_its_diagram_and_what_bags_say(learned):
    html = learned[1]._repr_mimebundle_()["text/html"]
    assert "sk-estimator" in html
    assert learned[1].fitted_.verdict.headline in html
    assert "A model learned from bags" not in unbag.BagClassifier()._repr_html_()


def test_cross_validation_shows_its_evaluation(learned):
    evaluation = learned[1].evaluation_
    found = unbag.estimators.CrossValidation(evaluation, (), np.zeros(0), np.zeros(0))
    assert found._repr_html_() == evaluation._repr_html_()


class Notebook:
    """What IPython shows, without IPython."""

    def __init__(self, **shell):
        self.shown, self.shell = [], SimpleNamespace(**shell)

    def get_ipython(self):
        return self.shell

    def HTML(self, text):
        return text

    def display(self, shown, display_id):
        self.shown.append(shown)
        return SimpleNamespace(update=self.shown.append)


@pytest.fixture
def notebook(monkeypatch):
    made = Notebook(kernel=None)
    monkeypatch.setitem(sys.modules, "IPython", made)
    monkeypatch.setitem(sys.modules, "IPython.display", made)
    monkeypatch.setattr(_progress, "SILENCE", 0.0)
    monkeypatch.setattr(_progress, "PAUSE", 0.0)
    return made


def test_fits_show_a_bar_in_a_notebook(notebook, learned):
    bags, _ = learned
    unbag.fit(bags, learner=Additive(steps=0), folds=2)
    assert '<progress value="3" max="3"></progress> additive: all bags' in notebook.shown[-1]
    unbag.BagClassifier(hidden=(), epochs=2, learning_rate=0.1).fit_bags(bags)
    assert '<progress value="2" max="2"></progress> network: epoch 2' in notebook.shown[-1]


def test_short_work_and_terminals_have_no_bar(notebook, monkeypatch):
    monkeypatch.setattr(_progress, "SILENCE", 60.0)
    whom_to_inform()(1, None, "reading")
    assert notebook.shown == []
    monkeypatch.setitem(sys.modules, "IPython", Notebook())
    assert whom_to_inform() is None
    monkeypatch.delitem(sys.modules, "IPython")
    assert whom_to_inform() is None


def test_a_bar_says_how_long_it_will_take():
    assert _progress.bar_html(1, 3, f"{EVIL}: 1", 4.0).endswith(": 1, about 8 s left")
    assert (
        _progress.bar_html(1, None, "reading", 4.0) == "<progress></progress> reading, 4 s so far"
    )
    assert "<script" not in _progress.bar_html(1, 3, EVIL, 4.0)
