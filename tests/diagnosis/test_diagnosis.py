"""Random bags are left alone, campaigns are caught, trifles are shrugged off: naive formulas and
simulation."""

import itertools
import re
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse, stats

import unbag
from unbag import BagClassifier, Bags, BagsNotRandom, diagnose, drift, losses, random_bags, weights
from unbag.diagnosis._bias import label_dispersion
from unbag.diagnosis._variance import (
    BagLayout,
    ScaledColumns,
    analyse,
    by_exchange,
    chance,
    holm,
    pairs,
)


def people(n, seed, *, features=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, features))
    return X, (X[:, 0] - 1 + rng.logistic(size=n) > 0).astype(float)


def campaigns(n, k, effect, seed, *, features=3, stratum=False):
    """Bags of k, each from one of 20 campaigns whose features (and so labels) differ by
    `effect`."""
    rng = np.random.default_rng(seed)
    campaign = np.repeat(rng.integers(0, 20, size=n // k), k)
    X = (
        rng.normal(size=(len(campaign), features))
        + effect * rng.normal(size=(20, features))[campaign]
    )
    y = (X[:, 0] - 1 + rng.logistic(size=len(X)) > 0).astype(float)
    bag = np.arange(len(X)) // k
    report = y.reshape(-1, k).mean(axis=1)
    return Bags(bag, report, X=X, stratum=campaign[::k] if stratum else None), y


def layout_of(bags):
    return BagLayout.of(bags.bag, bags.size, bags.stratum)


def test_the_f_statistic_is_scipys():
    bags, _ = campaigns(200, 10, 0.3, 0)
    layout = layout_of(bags)
    columns = ScaledColumns.of(bags.X, layout)
    found = analyse(columns, layout, chance(columns, layout))
    naive = [
        stats.f_oneway(*(bags.X[bags.bag == j, f] for j in range(20))).statistic for f in range(3)
    ]
    np.testing.assert_allclose(found.F, naive)


def test_the_variance_between_bags_has_the_naive_formula_for_unequal_sizes_in_strata():
    rng = np.random.default_rng(0)
    size, stratum = np.array([2, 5, 3, 4, 6, 1, 7]), np.array([0, 0, 0, 1, 1, 1, 1])
    bag = np.repeat(np.arange(7), size)
    x = rng.normal(size=(28, 1)) + stratum[bag][:, None] * 5
    layout = BagLayout.of(bag, size, stratum)
    columns = ScaledColumns.of(x, layout)
    found = analyse(columns, layout, chance(columns, layout))
    means = np.array([x[bag == j].mean() for j in range(7)])
    centre = np.array([x[stratum[bag] == s].mean() for s in (0, 1)])[stratum]
    msb = (size * (means - centre) ** 2).sum() / 5
    msw = ((x[:, 0] - means[bag]) ** 2).sum() / 21
    k0 = (28 - (size**2 / np.array([10, 18])[stratum]).sum()) / 5
    assert layout.k0 == pytest.approx(k0)
    assert found.F[0] == pytest.approx(msb / msw)
    assert found.between[0] * columns.spread[0] ** 2 == pytest.approx(max(msb - msw, 0) / k0)


def test_k0_makes_the_variance_between_bags_unbiased():
    rng = np.random.default_rng(0)
    size = rng.integers(1, 12, size=60)
    layout = BagLayout.of(np.repeat(np.arange(60), size), size, None)
    estimates = []
    for _ in range(400):
        x = rng.normal(size=(size.sum(), 1)) + 0.7 * rng.normal(size=60)[layout.bag][:, None]
        sums = layout.sums_by_bag(x)[:, 0]
        ssb = (sums**2 / size).sum() - x.sum() ** 2 / size.sum()
        msw = ((x[:, 0] - (sums / size)[layout.bag]) ** 2).sum() / layout.within
        estimates.append((ssb / layout.between - msw) / layout.k0)
    assert abs(np.mean(estimates) - 0.49) < 4 * np.std(estimates) / 20


def test_the_mean_over_all_exchanges_is_exact():
    size = np.array([1, 3, 2])
    layout = BagLayout.of(np.repeat(np.arange(3), size), size, None)
    columns = ScaledColumns.of(np.random.default_rng(0).exponential(size=(6, 2)), layout)
    values = np.array(
        [pairs(columns, layout, np.array(order)) for order in itertools.permutations(range(6))]
    )
    np.testing.assert_allclose(values.mean(axis=0), chance(columns, layout).mean)


def test_spread_and_skewness_over_exchanges_are_nearly_exact():
    rng = np.random.default_rng(0)
    size = np.tile([1, 3, 8], 40)
    layout = BagLayout.of(np.repeat(np.arange(120), size), size, np.arange(120) // 60)
    drawn = [rng.normal(size=480), rng.exponential(size=480), rng.random(480) < 0.1]
    columns = ScaledColumns.of(np.stack(drawn, axis=1), layout)
    values = np.array([pairs(columns, layout, layout.shuffled(rng)) for _ in range(3000)])
    expected = chance(columns, layout)
    np.testing.assert_allclose(values.std(axis=0), expected.deviation, rtol=0.08)
    np.testing.assert_allclose(stats.skew(values), expected.skewness, atol=0.25)


def test_exchanges_keep_rows_in_their_stratum():
    layout = BagLayout.of(np.array([2, 0, 1, 0, 1, 2]), np.array([2, 2, 2]), np.array([0, 1, 0]))
    rng, seen = np.random.default_rng(0), set()
    for _ in range(100):
        order = layout.shuffled(rng)
        assert set(order[2:4]) == {2, 4}
        seen.add(tuple(order[:2]))
    assert len(seen) == 12


RARE = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "one in a hundred": lambda rng, shape: (rng.random(shape) < 0.01).astype(float),
    "one in five hundred": lambda rng, shape: (rng.random(shape) < 0.002).astype(float),
    "heavy tails": lambda rng, shape: np.exp(2 * rng.normal(size=shape)),
}


@pytest.mark.parametrize("draw", RARE.values(), ids=RARE)
@pytest.mark.parametrize("uneven", [False, True], ids=["equal", "unequal"])
def test_p_values_are_honest_for_rare_features_and_small_bags(draw, uneven):
    rng = np.random.default_rng(1)
    size = rng.integers(1, 20, size=100) if uneven else np.full(100, 10)
    layout = BagLayout.of(np.repeat(np.arange(100), size), size, None)
    p = []
    for _ in range(40):
        columns = ScaledColumns.of(draw(rng, (size.sum(), 100)), layout)
        p.append(analyse(columns, layout, chance(columns, layout)).p)
    p = np.concatenate(p)
    for level in (0.01, 0.001):  # 4,000 features
        assert (p <= level).mean() < 1.5 * level + 4 * np.sqrt(level / len(p))


def test_exchange_gives_uniform_p_values():
    rng = np.random.default_rng(0)
    layout = BagLayout.of(np.arange(60) // 6, np.full(10, 6), None)
    p = []
    for _ in range(200):
        columns = ScaledColumns.of(rng.exponential(size=(60, 2)), layout)
        expected = chance(columns, layout)
        own = analyse(columns, layout, expected).p
        p.append(by_exchange(columns, layout, expected, own, exchanges=39, rng=rng).min())
    assert np.mean(np.array(p) <= 0.1) == pytest.approx(0.1, abs=4 * np.sqrt(0.09 / 200))


def test_holm_is_never_more_daring_than_bonferroni_by_more_than_its_rank():
    p = np.array([0.001, 0.5, 0.01, 0.04])
    np.testing.assert_allclose(holm(p), [0.004, 0.5, 0.03, 0.08])


def test_the_false_alarm_rate_stays_below_the_level():
    rng, alarms, repetitions = np.random.default_rng(0), 0, 400
    for _ in range(repetitions):
        X = np.hstack([rng.normal(size=(600, 4)), rng.random((600, 4)) < 0.02])
        y = X[:, 0] - 1 + rng.logistic(size=600) > 0
        alarms += not diagnose(
            random_bags(X, y, size=12, seed=int(rng.integers(1e9))), level=0.1
        ).random
    assert alarms / repetitions < 0.1 + 3 * np.sqrt(0.09 / repetitions)


def test_campaigns_are_caught_and_random_sub_bags_within_them_are_not():
    caught = [diagnose(campaigns(6400, 32, 0.3, seed)[0]).random for seed in range(20)]
    assert not any(caught)
    left_alone = [
        diagnose(campaigns(6400, 32, 0.3, seed, stratum=True)[0]).random for seed in range(20)
    ]
    assert sum(left_alone) >= 19


def test_a_feature_that_is_the_same_throughout_each_bag_is_no_trifle():
    rng = np.random.default_rng(1)
    bag = np.arange(1280) // 16
    y = rng.random(1280) < np.where(bag < 40, 0.05, 0.6)
    bags = Bags(bag, y.reshape(-1, 16).mean(axis=1), X=(bag < 40)[:, None].astype(float))
    found = diagnose(bags)
    assert not found.random
    assert found.expected_bias.limit >= found.expected_bias.bound > 1


def test_the_expected_bias_is_the_bias_of_the_unbiased_estimate():
    found, off = [], []
    for seed in range(40):
        bags, y = campaigns(12800, 64, 0.3, seed)
        score = bags.X[:, 0] - 1
        report, prior = bags.components()
        f = losses.log.components(score)
        off.append(
            (weights.upm(bags.size, report, prior)[bags.bag] * f).sum()
            - losses.log.value(score, y).mean()
        )
        found.append(diagnose(bags, score).expected_bias)
    direct = np.array([bias.direct for bias in found])
    difference = direct - np.array(off)
    assert np.mean(off) < -0.5  # of a loss of about 0.5
    assert abs(difference.mean()) < 4 * difference.std() / np.sqrt(40)
    assert np.mean([abs(o) < bias.limit for o, bias in zip(off, found, strict=True)]) > 0.9
    assert abs(np.mean([bias.anchored for bias in found])) < 0.1 * abs(np.mean(off))


def test_scores_may_come_as_one_column():
    bags, _ = campaigns(1600, 16, 0.5, 0)
    assert str(diagnose(bags, bags.X[:, :1])) == str(diagnose(bags, bags.X[:, 0]))


def test_a_trifle_is_not_called_a_bias():
    rng = np.random.default_rng(0)
    n, k = 200_000, 10
    X = rng.normal(size=(n, 1)) + 0.08 * np.repeat(rng.normal(size=n // k), k)[:, None]
    y = rng.random(n) < 0.3  # labels know nothing of the campaigns
    found = diagnose(Bags(np.arange(n) // k, y.reshape(-1, k).mean(axis=1), X=X), tolerance=0.05)
    assert found.features[0].p < 0.005
    assert found.random
    assert found.verdict.startswith(
        "The bags differ slightly: the only feature differs between bags"
    )
    assert not diagnose(campaigns(n, k, 0.05, 0)[0], tolerance=0).random


def test_labels_that_vary_between_bags_are_a_second_opinion():
    rng = np.random.default_rng(0)
    p = rng.beta(4, 8, size=200)
    report = rng.binomial(50, p) / 50
    found = diagnose(Bags(np.repeat(np.arange(200), 50), report, X=rng.normal(size=(10000, 2))))
    assert not found.random
    assert "the reports vary more than chance allows" in found.verdict
    assert found.labels.between[0] == pytest.approx(p.var(), rel=0.25)
    alone = diagnose(Bags(np.repeat(np.arange(200), 50), report))
    assert not alone.random
    assert alone.verdict.endswith("by their reports alone, which vary more than chance allows.")


def test_totals_are_not_called_random_by_reports_that_were_not_tested():
    bag, report = np.repeat(np.arange(100), 30), np.repeat([0.0, 20.0], 50)
    alone = diagnose(Bags(bag, report, "total"))
    assert not alone.random
    assert str(alone).startswith(
        "Whether the bags are random cannot be seen: no feature varies or was given, and the "
        "reports were not tested.\nRemedy: Give features X to the bags, or the scores of a "
        "model: they are what tells.\n"
    )
    X = np.random.default_rng(0).normal(size=(3000, 1))
    found = diagnose(Bags(bag, report, "total", X=X))
    assert found.random
    assert found.verdict == (
        "The bags look random: none of 1 features differs between bags beyond chance; the "
        "reports were not tested."
    )


@pytest.mark.parametrize("noise", [0.0, 9.0])
def test_the_second_opinion_knows_noise_and_keeps_its_level(noise):
    rng, p, between = np.random.default_rng(0), [], []
    for _ in range(400):
        count = rng.binomial(20, 0.1, size=100) + rng.laplace(
            scale=np.sqrt(noise / 2) + 1e-12, size=100
        )
        declared = np.full(100, noise) if noise else None
        found = label_dispersion(
            Bags(
                np.repeat(np.arange(100), 20),
                np.clip(count, -20, 20) / 20 if noise else np.round(count) / 20,
                noise=declared,
            )
        )
        p.append(found.p)
        between.append(found.ratio)
    assert np.mean(between) == pytest.approx(1, abs=0.05)
    assert np.mean(np.array(p) <= 0.05) < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 400)


def test_reports_that_are_pending_are_not_needed():
    bags, _ = campaigns(6400, 32, 0.5, 0)
    status = np.where(np.arange(len(bags)) % 2, "pending", "observed")
    found = diagnose(Bags(bags.bag, bags.report, X=bags.X, status=status), bags.X[:, 0])
    assert not found.random
    assert found.features == diagnose(bags, bags.X[:, 0]).features


def test_totals_assume_poisson_and_histograms_have_one_component_per_class():
    rng = np.random.default_rng(0)
    X, _ = people(4000, 0)
    counts = random_bags(X, rng.poisson(np.exp(X[:, 0])), size=20, seed=1, kind="total")
    found = diagnose(counts, X[counts.rows][:, 0])
    assert found.labels.p is None
    assert "not tested; assumed: Poisson counts" in str(found)
    label = np.digitize(X[:, 0] + rng.normal(size=4000), [-0.5, 0.5])
    shares = random_bags(X, label, size=20, seed=1, kind="histogram")
    found = diagnose(shares, X[shares.rows])
    assert found.random
    assert {"loss of class 0", "loss of class 1", "loss of class 2"} <= {
        f.name for f in found.features
    }
    order = np.argsort(X[:, 0])
    sorted_bags = unbag.from_rows(
        np.arange(4000) // 20, y=label[order], X=X[order], kind="histogram"
    )
    assert not diagnose(sorted_bags, X[order]).random


@pytest.mark.parametrize(
    "make",
    [sparse.csr_array, pd.DataFrame, pl.DataFrame, pa.table, np.asarray],
    ids=["sparse", "pandas", "polars", "arrow", "numpy"],
)
def test_tables_and_sparse_matrices_give_the_same_answer(make):
    bags, _ = campaigns(1600, 16, 0.5, 0)
    X = np.where(np.abs(bags.X) > 1, bags.X, 0.0)
    columns = {f"x{i}": X[:, i] for i in range(3)}
    table = make(columns) if make in (pd.DataFrame, pl.DataFrame, pa.table) else make(X)
    expected = diagnose(Bags(bags.bag, bags.report, X=X), X[:, 0])
    found = diagnose(Bags(bags.bag, bags.report, X=table), X[:, 0])
    for one, other in zip(found.features, expected.features, strict=True):
        assert one.name == other.name
        np.testing.assert_allclose(one[1:], other[1:], rtol=1e-6, atol=1e-12)


def test_words_become_levels_and_gaps_are_told():
    bags, _ = campaigns(1600, 16, 0.8, 0)
    words = np.where(bags.X[:, 0] > 0, "red", "blue")
    ids = np.array([f"u{i % 30}" for i in range(1600)])
    gaps = np.where(bags.X[:, 1] > 2, np.nan, bags.X[:, 1])
    found = diagnose(
        Bags(bags.bag, bags.report, X=pd.DataFrame({"colour": words, "user": ids, "size": gaps}))
    )
    assert {"colour=red", "size", "user=u0"} <= {f.name for f in found.features}
    assert "user has 10 rarer values, which were left out" in found.notes
    assert "1 columns have missing values, taken as the mean of their column" in found.notes
    objects = diagnose(Bags(bags.bag, bags.report, X=np.stack([words, words], axis=1)))
    assert objects.features[0].name.startswith("x0=")


def test_gaps_in_a_sparse_matrix_are_filled_and_told_as_in_a_dense_one():
    bags, _ = campaigns(1600, 16, 0.5, 0)
    X = np.where(np.abs(bags.X) > 1, bags.X, 0.0)
    X[::50, 0], X[7, 2] = np.nan, -np.inf
    stored = sparse.csr_array(X)
    dense, found = (diagnose(Bags(bags.bag, bags.report, X=table)) for table in (X, stored))
    assert (
        found.notes
        == dense.notes
        == ("2 columns have missing values, taken as the mean of their column",)
    )
    assert found.verdict == dense.verdict
    assert len(found.features) == 3
    np.testing.assert_array_equal(stored.toarray(), X)  # the caller's matrix is left as it was


def test_a_constant_feature_and_one_that_is_constant_in_each_stratum_say_nothing():
    bags, _ = campaigns(1600, 16, 0.5, 0, stratum=True)
    known = np.hstack([bags.X, bags.stratum[bags.bag][:, None], np.ones((1600, 1))])
    found = diagnose(Bags(bags.bag, bags.report, X=known, stratum=bags.stratum))
    assert {f.name for f in found.features} == {"x0", "x1", "x2"}
    nothing = diagnose(Bags(bags.bag, bags.report, X=np.ones((1600, 1))))
    assert nothing.features == ()


def test_very_many_features_and_very_many_rows_are_sampled():
    rng = np.random.default_rng(0)
    X = sparse.random_array((2000, 5000), density=0.01, rng=rng, format="csr")
    bags = Bags(np.arange(2000) // 20, rng.binomial(20, 0.5, 100) / 20, X=X)
    found = diagnose(bags)
    assert len(found.features) == 2000
    assert "of 5000 features the 2000 that are most often not zero were looked at" in found.notes
    caught, _ = campaigns(64000, 64, 0.5, 0)
    drawn = diagnose(caught, caught.X[:, 0], most=2e4)
    assert not drawn.random
    assert "105 of 1000 bags were looked at" in drawn.notes
    assert drawn.expected_bias.direct == pytest.approx(
        diagnose(caught, caught.X[:, 0]).expected_bias.direct, rel=0.5
    )


def test_one_report_for_each_campaign_is_said_to_be_too_few():
    bags = Bags(np.arange(40) // 10, np.full(4, 0.5), X=np.ones((40, 1)), stratum=np.arange(4))
    found = diagnose(bags)
    assert not found.random
    assert found.lone == 4
    assert found.verdict == (
        "Each of 4 strata has one report only: whether bags are random cannot be seen, and an "
        "unbiased evaluation is impossible."
    )
    assert "matching" in found.remedy
    assert "likelihood" in found.remedy
    some = diagnose(
        Bags(np.arange(40) // 10, np.full(4, 0.5), X=np.eye(40), stratum=np.array([0, 0, 0, 2]))
    )
    assert some.lone == 1
    assert (
        "one stratum has fewer than two reports, and an unbiased evaluation of such is impossible"
        in some.notes
    )


def test_bags_of_one_are_labels():
    X, y = people(100, 0)
    assert diagnose(random_bags(X, y, size=1, seed=1)).verdict.startswith(
        "Each bag is one instance"
    )


def test_reports_that_alone_scatter_are_looked_at_first():
    """Noise that nobody declared, or zeros for hidden counts: no stratum would mend it."""
    X, y = people(4000, 0)
    bags = random_bags(X, y, size=20, seed=1)
    hidden = replace(bags, report=np.where(bags.report * 20 >= 9, bags.report, 0.0))
    for found, first in (
        (diagnose(hidden), "Remedy: No feature differs between bags, so look at"),
        (diagnose(bags), "Bias to expect"),
    ):
        assert str(found).splitlines()[1].startswith(first)


def test_a_diagnosis_reads_well_and_draws_itself(tmp_path):
    bags, _ = campaigns(6400, 32, 0.5, 0)
    found = diagnose(bags, bags.X[:, 0])
    assert repr(found) == f"Diagnosis({found.verdict})"
    text = str(found)
    assert "Remedy: Name what the bags follow" in text
    assert "intraclass correlation" in text
    assert "Estimated directly" in text
    found.picture(tmp_path / "bags.png")
    assert (tmp_path / "bags.png").stat().st_size > 10_000
    bars, means = found.plot().axes
    assert [bar.get_width() for bar in bars.patches] == [feature.F for feature in found.features]
    assert f"mean of {found.features[0].name}" in means.get_xlabel()


def test_a_diagnosis_without_features_is_drawn_as_its_verdict():
    nothing = diagnose(Bags(np.array([0, 0]), np.array([0.5])))
    figure = nothing.plot()
    assert figure.axes == []
    assert figure.get_suptitle().split() == nothing.verdict.split()


def test_pictures_are_not_drawn_until_asked_for():
    code = "import sys, unbag; unbag.diagnose; print('matplotlib' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
        == "False\n"
    )


FAST = {"hidden": (), "epochs": 1, "held_out": 0}


def test_fit_warns_of_campaigns_with_the_remedy():
    bags, _ = campaigns(1600, 16, 0.7, 0)
    y = bags.report[bags.bag]
    with pytest.warns(
        BagsNotRandom, match=r"not random: 3 of 3 features.*stratum=.*diagnose=False"
    ):
        BagClassifier(**FAST).fit(bags.X, y, bag=bags.bag)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        BagClassifier(**FAST, diagnose=False).fit(bags.X, y, bag=bags.bag)
        order = np.random.default_rng(0).permutation(1600)
        BagClassifier(**FAST).fit(bags.X, (y > 0.3).astype(int))  # labels, sorted by campaign
        labels = (bags.X[:, 0] > 0).astype(float)[order]
        mixed = np.bincount(bags.bag, weights=labels)[bags.bag] / 16
        BagClassifier(**FAST).fit(bags.X[order], mixed, bag=bags.bag)


def reports_in_time(p, k, rng, *, noise=0.0):
    count = rng.binomial(k, p) + (
        rng.laplace(scale=np.sqrt(noise / 2), size=len(p)) if noise else 0
    )
    return Bags(
        np.repeat(np.arange(len(p)), k), count / k, noise=np.full(len(p), noise) if noise else None
    )


@pytest.mark.parametrize("noise", [0.0, 20.0])
@pytest.mark.parametrize("prior", [0.3, 0.01])
def test_the_drift_alarm_keeps_its_level_and_intervals_cover(noise, prior):
    rng, alarms, covered = np.random.default_rng(0), 0, []
    for _ in range(300):
        found = drift(
            reports_in_time(np.full(120, prior), 50, rng, noise=noise),
            np.arange(120),
            windows=6,
            level=0.05,
        )
        alarms += found.alarm
        covered += list((found.low <= prior) & (prior <= found.high))
    assert alarms / 300 < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 300)
    assert 0.93 < np.mean(covered) < 0.98


def test_campaigns_that_differ_do_not_raise_the_drift_alarm():
    rng, alarms = np.random.default_rng(0), 0
    for _ in range(200):
        found = drift(
            reports_in_time(rng.beta(6, 14, size=120), 50, rng),
            np.arange(120),
            windows=6,
            level=0.05,
        )
        alarms += found.alarm
        assert found.dispersion > 1.5
    assert alarms / 200 < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 200)


def rare_in(window, count):
    """12 windows of 20 bags of 100; so many positives, all in one window."""
    report = np.zeros(240)
    report[window * 20 : window * 20 + count] = 0.01
    return Bags(np.repeat(np.arange(240), 100), report)


def test_two_rare_outcomes_in_one_window_are_no_drift_and_eight_are():
    found = drift(rare_in(3, 2), np.arange(240), windows=12)
    assert not found.alarm
    one_sided = stats.fisher_exact([[2, 1998], [0, 22000]], alternative="greater").pvalue
    assert found.p[3] == pytest.approx(12 * 2 * one_sided)
    assert drift(rare_in(3, 8), np.arange(240), windows=12).alarm


def test_the_drift_of_rare_negatives_is_that_of_rare_positives_and_a_large_window_counts_alike():
    bags = rare_in(11, 4)
    turned = Bags(bags.bag, 1 - bags.report)
    last = [0, 220]  # the last window against all others
    for windows in (12, last):
        one, other = (drift(b, np.arange(240), windows=windows) for b in (bags, turned))
        np.testing.assert_allclose(one.p, other.p)
    assert one.p[0] == pytest.approx(one.p[1])


def test_windows_may_begin_between_whole_times():
    bags = Bags(np.repeat(np.arange(20), 10), np.repeat([0.0, 0.1], 10))
    found = drift(bags, np.arange(20), windows=[0, 9.5])
    assert (found.start.tolist(), found.bags.tolist()) == ([0, 9.5], [10, 10])
    days = np.datetime64("2024-01-01") + np.arange(20)
    found = drift(bags, days, windows=np.array(["2024-01-01T00", "2024-01-10T12"], "datetime64[h]"))
    assert found.bags.tolist() == [10, 10]
    assert drift(bags, days, windows=["2024-01-01", "2024-01-11"]).bags.tolist() == [10, 10]


def test_a_change_of_the_prior_raises_the_alarm_and_names_its_window(tmp_path):
    rng = np.random.default_rng(0)
    days = np.datetime64("2024-01-01") + np.arange(120)
    bags = reports_in_time(np.where(np.arange(120) < 100, 0.2, 0.26), 100, rng)
    found = drift(bags, days, windows=6)
    assert found.alarm
    assert found.verdict.startswith(
        "The prior drifts: the window from 2024-04-10 has a prior of 0.257"
    )
    assert found.start.dtype == days.dtype
    assert "2024-04-10" in str(found)
    found.picture(tmp_path / "drift.png")
    by_instance = drift(bags, days[bags.bag], windows=6)
    np.testing.assert_array_equal(by_instance.prior, found.prior)
    numbers = drift(bags, np.arange(120.0)[bags.bag], windows=[0, 60, 100])
    assert numbers.bags.tolist() == [60, 40, 20]
    assert numbers.prior[2] == pytest.approx(bags.report[100:].mean())


def test_drift_of_counts_and_of_classes(tmp_path):
    rng = np.random.default_rng(0)
    bag = np.repeat(np.arange(80), 25)
    rate = np.where(np.arange(80) < 60, 1.0, 1.3)
    assert drift(Bags(bag, rng.poisson(25 * rate) / 25, "total"), np.arange(80), windows=4).alarm
    assert not drift(
        Bags(bag, rng.poisson(25, size=80) / 25, "total"), np.arange(80), windows=4
    ).alarm
    shares = np.stack(
        [
            rng.multinomial(25, [0.5, 0.3, 0.2] if j < 60 else [0.3, 0.3, 0.4]) / 25
            for j in range(80)
        ]
    )
    found = drift(Bags(bag, shares, "histogram"), np.arange(80), windows=4)
    assert found.prior.shape == found.p.shape == (4, 3)
    assert "of class" in found.verdict
    found.picture(tmp_path / "classes.png")


PAGE = (Path(__file__).parents[2] / "docs" / "campaigns.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```\n\nprints\n\n(.*?)\n\n\S", PAGE, re.DOTALL)


@pytest.mark.parametrize("code, promised", BLOCKS, ids=["campaigns", "drift"])
def test_the_page_on_campaigns_prints_what_it_says(code, promised, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "campaigns.md", "exec"), {})
    for said, word in zip(promised.split(), capsys.readouterr().out.split(), strict=True):
        number = re.fullmatch(r"\[?([-+]?[0-9]*\.[0-9]+)[\],;)]*", said)
        if number is None:
            assert word == said
        else:
            assert float(word.strip("[],;)")) == pytest.approx(float(number.group(1)), abs=0.01)


def test_a_feature_that_is_the_same_in_all_rows_of_a_bag_is_called_so():
    bag = np.repeat(np.arange(40), 5)
    X = (bag[:, None] % 7).astype(float)
    report = np.random.default_rng(0).binomial(5, 0.4, 40) / 5
    text = str(unbag.diagnose(unbag.Bags(bag=bag, report=report, X=X)))
    assert "(the same in all rows of a bag: leave it out if it numbers the bags, or" in text
    assert "no spread" in text
    assert "e+" not in text
