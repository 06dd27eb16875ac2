"""Pictures show the values that they were given."""

import numpy as np
import pytest

from unbag.additive import Effect
from unbag.lab._catalogue import LOOKS, Way
from unbag.lab._figures import experiments_figure, save_figure
from unbag.lab._plan import Experiment
from unbag.lab._results import Average, BestCells
from unbag.plots import (
    Interval,
    Level,
    Series,
    draw_calibration,
    draw_curves,
    draw_drift,
    draw_intervals,
    draw_predictions,
    draw_prior,
    draw_stream,
    effects_figure,
    limits,
    new_figure,
)
from unbag.report._sections import ends_of

GAP = np.array([0.1, np.nan, 0.3])
ROWS = [
    {"chunk": i, "window_auc": 0.7, "window_auc_error": 0.01, "prior": 0.2, "drift": i == 2}
    for i in range(1, 4)
]
MEANS = {("upm", 1): 0.3, ("upm", 16): 0.4, ("easy", 1): 0.5, ("labels", 1): 0.2}
CELLS = BestCells(
    Experiment("adult", "linear", "usual", 50, 4096, 0),
    "test_loss",
    {
        (Way(method, "log"), size): Average(mean, np.nan, np.array([mean]), (0,))
        for (method, size), mean in MEANS.items()
    },
    trivial=0.6,
    rows=32_561,
    bags={1: 32_561, 16: 2_035},
)


@pytest.fixture
def axes():
    return new_figure().subplots()


def points(line):
    return np.column_stack(line.get_data())


def test_a_curve_lies_where_its_values_say_and_breaks_at_a_gap(axes):
    draw_curves(axes, [Series("a", [1, 2, 3], GAP, GAP - 0.1, GAP + 0.1)], x="x", y="y")
    (line,) = axes.get_lines()
    np.testing.assert_array_equal(points(line), np.column_stack([[1, 2, 3], GAP]))
    assert line.get_markevery() == [0, 2]  # points without a line to them have a dot


def test_bars_stand_at_the_points_in_place_of_a_band(axes):
    series = Series("a", [1, 2], np.array([0.3, 0.4]), [0.2, 0.35], [0.4, 0.45])
    draw_curves(axes, [series], x="x", y="y", bars=True)
    (bars,) = axes.collections
    ends = [segment.tolist() for segment in bars.get_segments()]
    assert ends == [[[1, 0.2], [1, 0.4]], [[2, 0.35], [2, 0.45]]]


def test_levels_and_marks_are_where_they_should_be(axes):
    series = [Series("a", [1, 2], [0.5, 0.4])]
    draw_curves(axes, series, x="x", y="y", levels=[Level("prior", 0.45)], marks=[(2, 0.4)])
    _, level, ring = axes.get_lines()
    assert set(level.get_ydata()) == {0.45}
    assert points(ring).tolist() == [[2, 0.4]]


def test_a_picture_of_losses_ends_above_the_trivial_one(axes):
    draw_curves(axes, [Series("a", [1, 2, 3], [0.5, 0.4, 90.0])], x="x", y="y", most=0.7)
    assert axes.get_ylim()[1] == 0.7


def test_limits_leave_out_runs_that_diverged_unless_all_is_to_be_shown():
    low, high = limits([0.3, 0.31, 0.32, 0.33, 200.0])
    assert low < 0.3
    assert high < 1
    assert limits([0.3, 0.31, 0.32, 0.33, 200.0], outliers=True)[1] > 200
    assert limits([np.nan]) == (0.0, 1.0)
    assert limits([2.0, 2.0]) == (1.0, 3.0)


def test_calibration_has_a_diagonal_and_every_band(axes):
    draw_calibration(axes, Series("", [0.1, 0.5], [0.2, 0.4], [0.1, 0.3], [0.3, 0.5]))
    diagonal, bands, *_ = axes.get_lines()
    assert np.ptp(points(diagonal), axis=1).tolist() == [0, 0]
    assert points(bands).tolist() == [[0.1, 0.2], [0.5, 0.4]]


def test_drift_of_classes_has_one_row_of_points_for_each(axes):
    prior = np.array([[0.2, 0.8], [0.3, 0.7]])
    start = np.array(["2026-01-01T00:00", "2026-02-01T00:00"], "datetime64[m]")
    draw_drift(axes, start, prior, prior - 0.1, prior + 0.1, np.array([0.25, 0.75]))
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["class 0", "class 1"]
    assert axes.get_xlabel() == "window of time, from 2026-01-01 to 2026-02-01"


def test_intervals_have_their_names_and_the_chosen_one_a_ring(axes):
    rows = [Interval("a" * 200, 0.5, 0.4, 0.6, True), Interval("b", 0.5, -9, 9)]
    draw_intervals(axes, rows, x="loss")
    names = [text.get_text() for text in axes.texts]
    assert names[1] == "b"
    assert names[0].endswith("(chosen)")
    assert len(names[0]) < 70
    assert axes.get_xlim()[0] > -1  # a wide interval does not make a dot of the chosen one


def test_bars_of_predictions_add_up_to_all_events(axes):
    draw_predictions(axes, np.array([0.1, 0.5, 0.7, 0.9]))
    assert sum(bar.get_height() for bar in axes.patches) == pytest.approx(100)


def test_a_stream_shows_what_its_log_holds_and_leaves_out_what_is_unknown(axes):
    draw_stream(axes, ROWS, "auc")
    (line,) = axes.get_lines()
    assert points(line).tolist() == [[1, 0.7], [2, 0.7], [3, 0.7]]


def test_a_moved_prior_is_ringed(axes):
    draw_prior(axes, ROWS)
    _, ring = axes.get_lines()
    assert points(ring).tolist() == [[2, 0.2]]


def test_a_zoomed_figure_shows_the_curves_and_no_more():
    low, high = experiments_figure([CELLS], sizes=(1, 16)).axes[0].get_ylim()
    assert (low, high) == pytest.approx((0.3 - 0.08 * 0.2, 0.5 + 0.08 * 0.2))


def test_a_zoom_goes_as_far_above_the_trivial_predictor_as_the_best_is_below_it():
    failed = {**CELLS.best, (Way("easy", "log"), 16): Average(2.0, np.nan, np.array([2.0]), (0,))}
    figure = experiments_figure([CELLS._replace(best=failed)], sizes=(1, 16))
    low, high = figure.axes[0].get_ylim()
    assert (low, high) == pytest.approx((0.3 - 0.08 * 0.6, 0.9 + 0.08 * 0.6))
    auc = {where: average._replace(mean=1 - average.mean) for where, average in failed.items()}
    cells = CELLS._replace(best=auc, metric="test_auc", trivial=0.5)
    low, high = experiments_figure([cells], sizes=(1, 16)).axes[0].get_ylim()
    assert (low, high) == pytest.approx((0.3 - 0.08 * 0.4, 0.7 + 0.08 * 0.4))


@pytest.mark.parametrize("task, model, network", [
    ("adult", "perceptron", "1 hidden layer of 32, the paper's network"),
    ("higgs", "deep", "4 hidden layers of 300, the paper's network"),
    ("mnist", "perceptron", "1 hidden layer of 32; the paper: CNN"),
    ("bike-sharing", "linear", "linear"),
])  # fmt: skip
def test_a_panel_says_which_network_it_is_of_and_which_the_paper_took(task, model, network):
    cells = CELLS._replace(experiment=Experiment(task, model, "usual", 50, 4096, 0))
    texts = [text.get_text() for text in experiments_figure([cells]).axes[0].texts]
    assert network in texts


def test_an_experiment_has_a_curve_for_each_method_in_its_look():
    easy, upm, trivial, labels = experiments_figure([CELLS]).axes[0].get_lines()
    assert points(upm).tolist() == [[1, 0.3], [16, 0.4]]
    assert (easy.get_color(), upm.get_color()) == (LOOKS["easy"].colour, LOOKS["upm"].colour)
    assert set(trivial.get_ydata()) == {0.6}
    assert (labels.get_label(), set(labels.get_ydata())) == ("labels", {0.2})


@pytest.mark.parametrize("count", [1, 4])
def test_figures_of_experiments_are_the_same_file_each_time(tmp_path, count):
    one, two = (
        save_figure(experiments_figure([CELLS] * count), tmp_path / name).read_text()
        for name in ("one", "two")
    )
    assert one == two


@pytest.mark.parametrize("days", [True, False])
def test_only_days_are_shown_as_dates_whatever_the_column_is_called(days):
    effect = Effect("sales trend", 1.0, (20454.0, 20484.0), np.arange(2.0), np.ones(2), days)
    figure = effects_figure([effect], unit="log odds")
    figure.canvas.draw()
    ticks = [label.get_text() for label in figure.axes[0].get_xticklabels()]
    assert any("2026" in text for text in ticks) == days
    assert ends_of(effect)[0] == ("2026-01-01 (+0.00)" if days else "20,454 (+0.00)")


def test_a_number_with_a_long_tail_has_a_logarithmic_axis_and_missing_values_no_part_in_it():
    value, error = np.array([-9.0, 0.1, 0.2, 0.3]), np.full(4, 0.05)
    price = Effect("price", 1.0, (None, 1.0, 3.0, 900.0), value, error, False)
    hour = Effect("hour", 1.0, (None, 1.0, 3.0, 23.0), value, error, False)
    axes = effects_figure([price, hour], unit="log odds").axes
    assert [each.get_xscale() for each in axes] == ["log", "linear"]
    assert all(each.get_ylim()[0] > -1 for each in axes)
