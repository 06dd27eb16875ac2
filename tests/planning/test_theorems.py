"""The paper's theorems, checked by simulation. Each test prints nothing and fails by its sigma.

The same simulations make the table in `docs/theorems.md`: python benchmarks/theorems.py.
"""

import numpy as np
import pytest
import theorems


@pytest.mark.slow
def test_the_pool_keeps_the_best_model_and_drops_those_with_more_regret_than_beta():
    row = theorems.pool_keeps_the_best(runs=60)
    assert row["kept"] >= 1 - row["delta"]
    assert row["dropped"] >= 1 - row["delta"]
    assert row["to_drop"] >= 1


@pytest.mark.slow
def test_q_concentrates_around_the_true_difference():
    rows = theorems.q_concentrates(runs=150)
    assert all(row["inside"] >= 1 - row["delta"] for row in rows)
    # the logarithm of a root mean square of normal errors has the variance 1 / (2 runs); the slope
    # is a difference of two, over the logarithm of 16
    sigma = (1 / 150) ** 0.5 / np.log(16)
    assert theorems.slope(rows, "bags", "rmse") == pytest.approx(-0.5, abs=4 * sigma)


@pytest.mark.slow
def test_in_a_realizable_problem_the_regret_falls_like_one_over_m():
    rows = theorems.regret_by_bags(runs=50)
    # a regret is about the square of a normal error, so that the logarithm of its mean has the
    # variance 2 / runs; -1 is expected, and -1/2 in problems that are not realizable
    sigma = (4 / 50) ** 0.5 / np.log(16)
    slope = theorems.slope(rows, "bags", "regret")
    assert slope == pytest.approx(-1, abs=3 * sigma)
    assert slope + 3 * sigma < -0.5


@pytest.mark.slow
def test_histograms_do_not_degrade_with_the_classes_and_totals_do():
    rows = theorems.classes(runs=4000)
    few, many = rows[0], rows[-1]
    assert many["classes"] >= 8 * few["classes"]
    assert many["histogram"] < 2 * few["histogram"]
    assert many["total"] > 0.5 * (many["classes"] / few["classes"]) ** 2 * few["total"]


@pytest.mark.slow
def test_with_heavy_tails_the_plain_mean_picks_wrongly_and_the_tournament_does_not():
    row = theorems.heavy_tails(runs=300)
    sigma = (0.25 / row["runs"]) ** 0.5
    assert row["tournament_wrong"] + 5 * sigma < row["mean_wrong"]
    assert row["tournament_wrong"] < 0.05
