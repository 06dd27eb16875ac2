"""The benchmark: the same bags for everybody, runs made once, ranks that are right."""

import csv
import re
import runpy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit
from sklearn.tree import DecisionTreeClassifier
from typer.testing import CliRunner

from unbag import random_bags
from unbag.cli import app
from unbag.datasets import Dataset
from unbag.lab import (
    Benchmark,
    BenchmarkRun,
    Budget,
    add_learner,
    add_task,
    as_latex,
    as_learner,
    benchmark_preset,
    critical_difference,
    finished,
    leaderboard,
    of_blocks,
    read_benchmark,
    run_benchmark,
    write_leaderboard,
)
from unbag.lab._benchmark import PRESETS
from unbag.lab._catalogue import TASKS
from unbag.lab._competitors import OWN, ModuleLearner, competitors, shipped
from unbag.learners import LEARNERS
from unbag.methods import FOR_NETWORKS
from unbag.peers import PEERS

ROOT = Path(__file__).parents[2]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 2)).astype(np.float32)
Y = (RNG.uniform(size=600) < expit(2 * X[:, 0])).astype(np.float32)
TINY = Budget((4,), 1, 2, (1e-2,))


class Constant:
    """A learner that keeps what it was given."""

    name, needs_random_bags = "constant", False

    def __init__(self, score):
        self.score, self.given = score, []

    def fit(self, bags, *, seed=0, progress=None):
        self.given.append((bags, seed))
        return self

    def scores(self, X):
        return self.score * np.asarray(X)[:, 0]


@pytest.fixture
def tiny_task():
    """A task, and two learners of which the first is better."""
    add_task("tiny", lambda: Dataset(X[:400], Y[:400], X[400:], Y[400:], ("a", "b")), title="Tiny")
    good, bad = Constant(2.0), Constant(-2.0)
    add_learner("good", good, title="the good")
    add_learner("bad", bad)
    yield good, bad
    TASKS.pop("tiny")
    OWN.clear()


def plan(**changes):
    usual = {"tasks": ("tiny",), "sizes": (5, 20), "methods": ("bad", "good"), "repetitions": 2}
    return Benchmark(**{**usual, "budget": TINY, **changes})


def test_everybody_takes_part():
    names = set(shipped())
    assert {"unbag_fit", "labels", *FOR_NETWORKS, *(peer.name for peer in PEERS)} <= names
    assert {"additive", "trees"} <= names & set(LEARNERS)
    for who in shipped().values():
        assert who.make(TINY).needs_random_bags in (True, False)


def test_all_methods_get_the_same_bags_and_seeds(tiny_task, tmp_path):
    run_benchmark(plan(), tmp_path / "runs.csv")
    for (a, seed), (b, other) in zip(tiny_task[0].given, tiny_task[1].given, strict=True):
        assert a is b
        assert seed == other
    assert [seed for _, seed in tiny_task[0].given] == [0, 0, 1, 1]


def test_what_was_made_is_not_made_again(tiny_task, tmp_path):
    first = run_benchmark(plan(), tmp_path / "runs.csv")
    again = run_benchmark(plan(sizes=(5, 10, 20)), tmp_path / "runs.csv")
    assert len(tiny_task[0].given) == 6  # four, then two of the new size
    assert {run.key for run in first} < {run.key for run in again}
    assert [run.test_loss for run in first if run.method == "good"] == pytest.approx(
        [run.test_loss for run in again if run.method == "good" and run.size != 10], abs=1e-6
    )


def test_a_torn_last_line_is_made_again(tiny_task, tmp_path):
    path = tmp_path / "runs.csv"
    run_benchmark(plan(), path)
    path.write_text(path.read_text()[:-60])
    runs = run_benchmark(plan(), path)
    assert len(tiny_task[0].given) + len(tiny_task[1].given) == 9
    assert all(np.isfinite(run.test_loss) for run in runs)


def test_the_loss_is_that_of_the_test_labels_and_the_prior_that_of_the_bags(tiny_task, tmp_path):
    run = run_benchmark(plan(sizes=(5,), repetitions=1, methods=("good",)), tmp_path / "r.csv")[0]
    h, p = expit(2.0 * X[400:, 0]), Y[:400].mean()
    expected = -np.mean(np.log(np.where(Y[400:] == 1, h, 1 - h)))
    assert run.test_loss == pytest.approx(expected, abs=1e-5)
    assert run.trivial == pytest.approx(
        -np.mean(np.log(np.where(Y[400:] == 1, p, 1 - p))), abs=1e-4
    )
    assert run.bags == 80
    assert run.random


def test_a_refusal_is_a_result_and_the_last_rank(tiny_task, tmp_path):
    class Refusing(Constant):
        def fit(self, bags, *, seed=0, progress=None):
            return as_learner(3)  # which is refused

    add_learner("refusing", Refusing(1.0))
    runs = run_benchmark(plan(methods=("refusing", "bad", "good")), tmp_path / "runs.csv")
    assert {bool(run.note) for run in runs if run.method == "refusing"} == {True}
    board = leaderboard(
        run_benchmark(plan(methods=("refusing", "bad", "good")), tmp_path / "runs.csv")
    )
    assert [s.method for s in board.standings] == ["good", "bad", "refusing"]
    assert board.standings[-1].refused == 2


def test_counts_with_exposure_are_judged_with_it(tmp_path):
    exposure = RNG.uniform(0.5, 2, size=600)
    y, offset = RNG.poisson(exposure * np.exp(0.5 * X[:, 0])), np.log(exposure)
    data = Dataset(
        X[:400], y[:400], X[400:], y[400:], ("a", "b"), kind="total",
        offset=offset[:400], offset_test=offset[400:],
    )  # fmt: skip
    add_task("visits", lambda: data, kind="total")
    learner = Constant(0.5)
    add_learner("known", learner, kinds=("total",))
    asked = plan(tasks=("visits",), sizes=(5,), methods=("known", "em"), repetitions=1)
    (run,) = run_benchmark(asked, tmp_path / "runs.csv")  # em takes no counts
    TASKS.pop("visits")
    OWN.clear()
    bags = learner.given[0][0]
    np.testing.assert_allclose(bags.offset, offset[:400][bags.rows])
    rate = exposure[400:] * np.exp(0.5 * X[400:, 0])
    assert run.test_loss == pytest.approx(np.mean(rate - y[400:] * np.log(rate)), abs=1e-4)
    assert run.test_loss < run.trivial


def test_noise_is_that_of_its_epsilon_and_the_same_for_everybody(tiny_task, tmp_path):
    runs = run_benchmark(plan(sizes=(5,), repetitions=1, epsilons=(0.0, 0.5)), tmp_path / "r.csv")
    assert [run.epsilon for run in runs] == [0, 0, 0.5, 0.5]
    (exact, _), (noisy, _) = tiny_task[0].given
    assert exact.noise is None
    np.testing.assert_allclose(noisy.noise, 8)  # 2 / epsilon^2
    np.testing.assert_array_equal(noisy.report, tiny_task[1].given[1][0].report)
    assert runs[0].rate == pytest.approx(Y[:400].mean())
    assert [run.key for run in read_benchmark(tmp_path / "r.csv")] == [run.key for run in runs]


def test_tables_of_which_method_when_rank_within_each_level():
    def at(size, epsilon, method, loss, task="adult"):
        about = {"bags": 640 // size, "trivial": 0.7, "test_auc": 0.6, "rate": 0.25}
        place = (task, "random", size, 0, 0, "", method)
        return BenchmarkRun(*place, test_loss=loss, epsilon=epsilon, **about)

    runs = [
        at(16, 0.0, "em", 0.5), at(16, 0.0, "unbag_fit", 0.6), at(16, 0.0, "labels", 0.4),
        at(64, 0.0, "em", 0.66), at(64, 0.0, "unbag_fit", 0.64), at(64, 0.0, "labels", 0.4),
        at(64, 1.0, "em", 0.68), at(64, 1.0, "unbag_fit", 0.67), at(64, 1.0, "labels", 0.4),
    ]  # fmt: skip
    text = runpy.run_path(str(ROOT / "tools" / "field.py"))["guide"](runs)
    assert "| bags of 16 | 1 | 2 | EM 0.67 | unbag.fit 0.33 |  | place 2, 0.33 |" in text
    assert "| bags of 64 | 1 | 2 | unbag.fit 0.20 | EM 0.13 |  | place 1, 0.20 |" in text
    assert "| epsilon 1, variance 2 | 1 | 2 | unbag.fit 0.10 |" in text
    assert "| up to 30% have the label | 2 |" in text
    assert text.index("| exact counts | 1 |") < text.index("| epsilon 1")


def test_settings_without_all_methods_are_not_finished():
    runs = [*made("a", [0.5, 0.6]), *made("b", [0.6])]
    assert [run.task for run in finished(runs)] == ["t0", "t0"]


def made(method, losses, **more):
    """Runs of a method, one for each block."""
    usual = {"bags": 10, "trivial": 0.7, "test_auc": 0.6, "seconds": 1.0}
    return [
        BenchmarkRun(f"t{i}", "random", 8, 0, 0, "", method, test_loss=loss, **{**usual, **more})
        for i, loss in enumerate(losses)
    ]


def test_ranks_wins_and_the_way_to_labels():
    runs = [
        *made("a", [0.5, 0.6, 0.5]),
        *made("b", [0.6, 0.5, 0.6]),
        *made("c", [0.65, 0.65, 0.6]),
        *made("labels", [0.4, 0.4, 0.4]),
    ]
    board = leaderboard(runs)
    a, b, c = board.standings
    assert (a.method, b.method, c.method) == ("a", "b", "c")
    assert a.rank == pytest.approx((1 + 2 + 1) / 3)
    assert c.rank == pytest.approx((3 + 3 + 2.5) / 3)
    assert (a.wins, b.wins, c.wins) == (2, 1, 0)
    assert a.way == pytest.approx((0.7 - 0.5) / 0.3)
    assert board.critical == pytest.approx(critical_difference(3, 3))
    assert 0 < board.chance < 1


def test_a_method_without_all_blocks_is_not_ranked():
    board = leaderboard([*made("a", [0.5, 0.6]), *made("b", [0.6, 0.5]), *made("c", [0.1])])
    assert {s.method for s in board.standings} == {"a", "b"}


@pytest.mark.parametrize("methods, q", [(2, 1.960), (5, 2.728), (10, 3.164)])
def test_the_critical_difference_is_that_of_published_tables(methods, q):
    expected = q * np.sqrt(methods * (methods + 1) / (6 * 12))
    assert critical_difference(methods, 12) == pytest.approx(expected, rel=1e-3)


def test_a_leaderboard_is_written_as_page_figure_and_latex(tmp_path):
    board = leaderboard([*made("a_1", [0.5, 0.6]), *made("b", [0.6, np.nan])])
    paths = write_leaderboard(board, tmp_path / "new", line="unbag benchmark")
    assert [path.name for path in paths] == ["leaderboard.md", "leaderboard.tex", "ranks.svg"]
    assert "| a_1 | 1.00 | 2 |" in paths[0].read_text()
    assert "a\\_1 & \\textbf{1.00} & 2" in paths[1].read_text()
    assert paths[2].read_text().startswith("<svg ")


def test_latex_needs_no_caption_and_escapes_everything():
    text = as_latex(["a", "b, c"], [["50% & more", "1 ± 2"], ["a|b", "-0.3"], ["< 1", "> 2"]])
    assert "50\\% \\& more & 1 {\\scriptsize$\\pm$ 2} \\\\\na$|$b & $-$0.3 \\\\" in text
    assert "$<$ 1 & $>$ 2 \\\\" in text
    assert "a & \\begin{tabular}[b]{@{}r@{}}b,\\\\ c\\end{tabular} \\\\" in text
    assert "{table}" not in text


def test_results_from_outside_stand_beside_ours(tiny_task, tmp_path):
    path = tmp_path / "theirs.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["task", "size", "method", "test_loss"])
        writer.writerows([["tiny", 5, "theirs", 0.01], ["tiny", 20, "theirs", 0.02]])
    outside = of_blocks(plan(), read_benchmark(path))
    board = leaderboard([*run_benchmark(plan(), tmp_path / "runs.csv"), *outside])
    assert board.standings[0].method == "theirs"


@pytest.mark.parametrize("name", PRESETS)
def test_presets_name_what_there_is(name):
    assert benchmark_preset(name).count() > 80


def test_the_larger_presets_have_every_kind_of_data():
    names = {
        "adult", "mnist", "cifar-animal", "higgs", "criteo", "bike-sharing", "motor-claims",
        "clicks",
    }  # fmt: skip
    assert names <= {*PRESETS["laptop"]["tasks"]} & {*PRESETS["night"]["tasks"]}


def test_the_page_which_method_when_is_made_from_the_runs():
    tool = runpy.run_path(str(ROOT / "tools" / "field.py"))
    assert tool["page"]() == (ROOT / "docs" / "field.md").read_text()


def test_trees_of_scikit_learn_learn_pseudo_labels():
    bags = random_bags(X, Y, size=4, seed=0)
    model = as_learner(DecisionTreeClassifier(max_depth=3)).fit(bags, seed=1)
    assert np.corrcoef(model.scores(X), X[:, 0])[0, 1] > 0.7


def test_an_estimator_that_takes_bags_gets_them():
    class TakesBags:
        def fit(self, X, y, bag):
            self.given = (X, y, bag)
            return self

        def predict_proba(self, X):
            return np.tile([0.25, 0.75], (len(X), 1))

    bags = random_bags(X, Y, size=4, seed=0)
    model = as_learner(TakesBags()).fit(bags)
    np.testing.assert_allclose(expit(model.scores(X[:3])), 0.75)


def test_a_module_of_pytorch_learns():
    torch = pytest.importorskip("torch")
    bags = random_bags(X, Y, size=4, seed=0)
    module = torch.nn.Linear(2, 1)
    before = module.weight.detach().clone()
    learner = as_learner(module)
    assert isinstance(learner, ModuleLearner)
    model = replace(learner, epochs=15, rate=0.1, batch=200).fit(bags, seed=0)
    assert np.corrcoef(model.scores(X), X[:, 0])[0, 1] > 0.5
    assert expit(model.scores(X)).mean() == pytest.approx(Y.mean(), abs=0.05)
    assert torch.equal(before, module.weight)  # the user's own module is not touched


def test_an_objective_of_your_own_is_trained_by_the_same_network():
    def objective(score, batch, loss):
        return (score * batch.real).sum()

    learner = TINY.network(objective)
    assert learner.needs_random_bags
    assert learner.method is objective
    assert "unbag_fit" in competitors()


def test_a_stranger_adds_a_learner_in_thirty_lines_and_sees_it_ranked(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "adding.md").read_text()
    codes = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    code = next(code for code in codes if "add_learner(" in code)
    assert len(code.splitlines()) <= 30
    (tmp_path / "mine.py").write_text(code)
    words = ["--task", "gaussian", "--size", "16", "--rows", "512", "--repetitions", "1"]
    names = ["--method", "nearest_bags", "--method", "bag_means", "--store", str(tmp_path / "new")]
    words = ["benchmark", "--add", str(tmp_path / "mine.py"), *words, *names]
    result = CliRunner().invoke(app, words)
    OWN.clear()
    assert result.exit_code == 0, result.output
    assert "| nearest bags |" in result.stdout
    assert {path.name for path in (tmp_path / "new").iterdir()} == {
        "runs.csv", "leaderboard.md", "leaderboard.tex", "ranks.svg",
    }  # fmt: skip
