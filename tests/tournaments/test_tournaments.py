"""The tournament: equal to the paper's algorithm pair by pair, its plug-in bias exact, its promises
kept."""

from itertools import pairwise

import numpy as np
import pytest
from pair_by_pair import all_pairs

import unbag
from cases.losses import sigmoid
from cases.tournaments import binary_problem, problem_of
from unbag import Bags, losses, random_bags, tournament
from unbag.tournaments._groups import (
    GroupMeans,
    GroupPlan,
    Parts,
    estimate_prior,
    plan_groups,
    split_bags,
)
from unbag.tournaments._tournament import play
from worlds import outcomes, random_world

CASES = {
    "binary": ("binary", False, losses.log),
    "binary, square": ("binary", False, losses.square),
    "binary, variable": ("binary", True, losses.log),
    "total": ("total", False, losses.poisson),
    "total, variable": ("total", True, losses.square),
    "histogram": ("histogram", False, losses.cross_entropy),
    "histogram, variable": ("histogram", True, losses.brier),
}


@pytest.mark.parametrize("case", CASES)
def test_all_pairs_at_once_equal_pair_by_pair(case):
    kind, ragged, loss = CASES[case]
    bags, models = problem_of(kind, ragged=ragged)
    result = tournament(models, bags, beta=0.1, groups=20, loss=loss, seed=3, chunk=501)
    layout, _ = plan_groups(bags, 20, seed=3)
    components = np.stack([loss.components(score, kind=kind) for score in models])
    np.testing.assert_allclose(result.Q, all_pairs(components, bags, layout), atol=1e-9)
    assert np.array_equal(result.Q, -result.Q.T)


@pytest.mark.parametrize("ragged", [False, True])
def test_the_split_is_the_papers(ragged):
    bags, _ = problem_of("binary", ragged=ragged)
    layout, parts = plan_groups(bags, 20, seed=0)
    in_estimator = np.flatnonzero(layout.bag_group >= 0)
    in_means = np.unique(bags.bag[layout.mean_group >= 0])
    np.testing.assert_array_equal(np.sort(parts.estimator), in_estimator)
    np.testing.assert_array_equal(np.sort(parts.means), in_means)
    assert not set(in_estimator) & set(in_means)
    if ragged:
        assert len(in_estimator) == len(bags) // 2
        assert bags.size[in_estimator].max() <= bags.size[in_means].min()
        assert layout.prior[1] == pytest.approx(
            np.average(bags.report[in_means], weights=bags.size[in_means])
        )
    else:
        assert len(in_estimator) == len(parts.prior) == len(bags) // 3
        assert not set(parts.prior) & (set(in_means) | set(in_estimator))
        assert layout.prior[1] == pytest.approx(bags.report[parts.prior].mean())


def test_bags_that_are_left_over_go_to_the_means():
    bags = Bags(np.arange(11), np.zeros(11))
    parts = split_bags(bags, np.random.default_rng(0))
    assert [len(part) for part in parts] == [5, 3, 3]
    assert sorted(np.concatenate(parts)) == list(range(11))


@pytest.mark.parametrize("noise", [None, 1e12])
def test_one_wild_report_moves_the_prior_unless_noise_is_declared(noise):
    report = np.where(np.arange(30) == 7, 1.0, 0.0)
    bags = Bags(np.arange(30), report)
    if noise is not None:
        bags = Bags(np.arange(30), 1e6 * report, noise=np.full(30, noise))
    everyone = Parts(*[np.arange(30)] * 3)
    prior = estimate_prior(bags, everyone, 5, np.random.default_rng(0))
    assert prior.tolist() == [1, 1 / 30 if noise is None else 0]


def test_arrays_files_functions_and_chunks_give_the_same(tmp_path):
    bags, models = binary_problem()
    slopes = np.linspace(-1, 2, len(models))
    paths = []
    for number, score in enumerate(models):
        paths.append(tmp_path / f"{number}.npy")
        np.save(paths[-1], score)
    functions = [lambda X, slope=slope: slope * X - 1 for slope in slopes]
    expected = tournament(models, bags, beta=0.1, groups=9)
    for other in (np.stack(models), paths, [str(path) for path in paths], functions):
        for chunk in (100, 10**6):
            result = tournament(other, bags, beta=0.1, groups=9, chunk=chunk)
            np.testing.assert_allclose(result.Q, expected.Q, atol=1e-12)


def test_progress_is_told():
    bags, models = binary_problem()
    told = []
    tournament(
        models,
        bags,
        beta=0.1,
        groups=9,
        chunk=1000,
        progress=lambda done, total: told.append((done, total)),
    )
    assert told[-1][0] == told[-1][1]
    assert all(a[0] <= b[0] for a, b in pairwise(told))


def test_the_pool_is_the_papers_algorithm_and_the_choice_is_documented():
    bags, models = binary_problem(n=12000)
    result = tournament(dict(zip("abcde", models, strict=True)), bags, beta=0.3, groups=15)
    pool = set("abcde")
    for i, first in enumerate("abcde"):
        for j, second in enumerate("abcde"):
            if i != j and result.Q[i, j] > 0.15:
                pool.discard(first)
                assert second in result.beaten_by[first]
            if i != j and result.Q[i, j] < -0.15:
                pool.discard(second)
    assert set(result.pool) == pool == set("abcde") - set(result.beaten_by)
    assert 1 <= len(pool) < 5
    worst = {name: result.Q["abcde".index(name)].max() for name in pool}
    assert result.chosen == min(worst, key=worst.get)


def test_delta_is_for_the_whole_tournament_and_groups_override_it():
    bags, models = binary_problem(n=12000)
    result = tournament(models, bags, beta=0.1, delta=0.05)
    events = 10 * 3 + 1
    assert result.groups == int(np.ceil(8 * np.log(events / 0.05)))
    assert 0.95 <= result.confidence < 1
    fewer = tournament(models, bags, beta=0.1, groups=30)
    assert fewer.confidence == pytest.approx(1 - events * np.exp(-30 / 8))
    assert tournament(models, bags, beta=0.1, groups=3).confidence == 0


def test_what_it_says_of_its_own_trust():
    bags, models = binary_problem(n=12000)
    models = [models[3], 0.98 * models[3], models[0]]
    result = tournament(models, bags, beta=0.2, loss=losses.square)
    assert str(result).startswith(
        "2 of 3 models are left at beta = 0.2; chosen: "
    ) or "3 of 3" in str(result)
    assert "Planning supports only beta" in str(result)
    assert result.bags_needed > len(bags)
    assert unbag.planning.regret_supported(int(result.bags_needed), result.problem) <= 0.2 * (
        1 + 1e-6
    )
    chosen = result.names.index(result.chosen)
    assert result.regret_estimate == pytest.approx((result.Q + result.C)[chosen].max())
    others = np.delete(result.Q[chosen], chosen).max()
    bounds, share = unbag.planning.bounded_spread(losses.square), np.exp(-result.groups / 8)
    known = result.problem.deviations(bounds, len(bags) // 3, share=share)
    assert result.regret_bound == pytest.approx(others + known)


def test_the_two_way_split_is_planned_as_the_paper_does():
    """Theorem B.2: the larger half of the bags estimates the means, and there are two parts."""
    rng = np.random.default_rng(0)
    sizes = [2] * 150 + [200] * 150
    x = rng.normal(size=sum(sizes))
    bags = random_bags(x, rng.uniform(size=len(x)) < sigmoid(x), size=sizes, seed=0)
    models = [bags.X, 0 * bags.X]
    problem = tournament(models, bags, beta=0.2, loss=losses.square).problem
    assert (problem.parts, problem.size, problem.means_size) == (2, 2, 200)
    equal = tournament(*binary_problem(n=1200, models=2)[::-1], beta=0.2, groups=9).problem
    assert (equal.parts, equal.means_size) == (3, None)


def heavy_tailed_world(seed, bags=1500):
    """Log loss; model B is the truth but on an atom of probability 2e-5, where it scores -1e6: its
    true regret is 10. As in 9 of 10 such samples, no row lies on the atom."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=4 * bags)
    made = random_bags(x, rng.uniform(size=4 * bags) < sigmoid(x), size=4, seed=seed)
    return made, {"A": 0.9 * made.X, "B": made.X}


def test_a_variance_that_is_measured_gives_an_estimate_and_no_guarantee():
    bags, models = heavy_tailed_world(seed=1)
    result = tournament(models, bags, beta=0.05)
    assert result.chosen == "B"
    assert result.regret_estimate < 0.1
    assert result.regret_bound == np.inf
    assert str(result).endswith(
        "of the best model's, by the variances measured on these bags: an estimate. Nothing is "
        "guaranteed, because nothing bounds its variance. Planning supports only beta = "
        f"{result.regret_supported:.3g} with 1500 bags; beta = 0.05 would need "
        f"{result.bags_needed:,.0f}."
    )


def test_clipped_scores_or_a_known_spread_make_it_a_guarantee():
    bags, models = heavy_tailed_world(seed=1)
    clipped = tournament(models, bags, beta=0.5, clip=3.0)
    assert clipped.regret_bound < np.inf
    assert "With confidence 95.6% it is within" in str(clipped)
    known = unbag.planning.ModelSpread(0.01, 0.01, 0.001)
    given = tournament(models, bags, beta=0.5, spread=known)
    assert given.regret_bound < clipped.regret_bound


def test_probabilities_play_as_their_scores_do():
    bags, models = binary_problem(n=2400, models=3)
    expected = tournament(models, bags, beta=0.1, groups=9)
    chances = [sigmoid(score) for score in models]
    pairs = [np.stack([1 - chance, chance], axis=1) for chance in chances]
    for given in (chances, pairs):
        result = tournament(given, bags, beta=0.1, groups=9, scale="probability")
        np.testing.assert_allclose(result.Q, expected.Q, atol=1e-9)


def test_the_largest_moment_of_histograms_is_bounded_by_the_sum_over_the_classes():
    """Group means know E d_r^2 of each class, and E max_r d_r^2 only as at most their sum: max_r
    E d_r^2 is smaller than both."""
    difference = np.array([[1.0, 3.0], [2.0, 2.0], [0.0, 4.0]])  # of 3 classes in 2 groups
    sums = GroupMeans(np.stack([0 * difference, difference]), np.zeros((2, 2)))
    fours, nothing = np.full(2, 4), np.zeros(0, int)
    plan = GroupPlan(
        nothing, nothing, np.zeros((0, 3)), np.zeros(3), 2, fours, fours, np.zeros((2, 3))
    )
    _, spread = play(sums, plan, histogram=True)
    variance = 4 * np.array([2.0, 0.0, 8.0])  # of one row: group means of 4 vary by a quarter
    assert spread.total[0, 1] == variance.sum()
    assert spread.largest[0, 1] == (variance + 2.0**2).sum()


def test_a_beta_beyond_all_planning_has_a_result_all_the_same():
    bags, models = binary_problem(n=6000, models=2)
    result = tournament(models, bags, beta=1e-7)
    assert result.bags_needed == np.inf
    assert str(result).endswith("beta = 1e-07 would need more than can be counted.")


def test_one_group_promises_nothing():
    bags, models = binary_problem(models=2)
    result = tournament(models, bags, beta=0.1, groups=1)
    assert (result.confidence, result.regret_bound, result.regret_supported) == (0, np.inf, np.inf)
    assert result.C.tolist() == [[0, np.inf], [np.inf, 0]]
    assert str(result).endswith(
        "Nothing is promised of its loss: one group has no variance to measure."
    )


def test_an_empty_pool_is_reported_with_the_bags_that_planning_asks_for():
    """Three models in a circle, each beaten by the next: too few bags for so small a beta."""
    for seed in range(200):
        rng = np.random.default_rng(seed)
        y = rng.integers(0, 2, size=120)
        bags = random_bags(None, y, size=4, seed=seed)
        models = [rng.normal(size=120) * 3 for _ in range(3)]
        result = tournament(models, bags, beta=1e-3, groups=5)
        if not result.pool:
            break
    assert result.pool == ()
    assert result.chosen is None
    assert str(result).startswith(
        "No model is left of 3: every one is beaten by another, so 30 bags are too few for beta "
        f"= 0.001. Planning asks for {result.bags_needed:,.0f} bags, or for a beta of "
    )


def test_the_plug_in_bias_is_exactly_the_papers():
    """E = E1^ - E1 + p^ E2^ - p E2 + k (E2 - E2^)(p - p^), with means and prior of other splits
    held fixed."""
    world, f = random_world("binary", seed=5), losses.log.components(np.array([0.7, -1.3]))
    g = losses.log.components(np.array([-0.2, 0.4]))
    difference = f - g
    truth = world.loss(f) - world.loss(g)
    E = world.q @ difference
    E_hat, p, p_hat = E + np.array([0.3, -0.2]), world.prior[1], world.prior[1] + 0.15
    for k in (1, 2, 4):
        expected = 0.0
        for x, y, chance in zip(*outcomes([world] * k), strict=True):
            total = difference[x, 1].sum()
            expected += chance * (
                E_hat[0] + p_hat * E_hat[1] + (y.mean() - p_hat) * (total - k * E_hat[1])
            )
        bias = E_hat[0] - E[0] + p_hat * E_hat[1] - p * E[1] + k * (E[1] - E_hat[1]) * (p - p_hat)
        assert expected - truth == pytest.approx(bias, abs=1e-12)


def test_the_plug_in_bias_of_our_code_is_the_same():
    """The same, through `play`: all outcomes of one bag as the bags of the estimator, one group,
    weighted by chance."""
    from unbag.tournaments._groups import GroupMeans, GroupPlan
    from unbag.tournaments._tournament import play

    world, k = random_world("binary", seed=6), 3
    f = np.stack([losses.log.components(np.array(z)) for z in ([0.7, -1.3], [-0.2, 0.4])])
    means_hat = f.transpose(0, 2, 1) @ world.q + np.array([[0.3, -0.2], [0.1, 0.05]])
    prior = np.array([1, world.prior[1] + 0.15])
    x, y, chance = outcomes([world] * k)
    centred = np.stack([np.zeros(len(y)), y.mean(axis=1) - prior[1]], axis=1)
    said = np.einsum("o,oc,hoc->h", chance, centred, f[:, x].sum(axis=2))
    layout = GroupPlan(
        None, None, None, prior, 1, np.ones(1), np.ones(1), chance @ (centred * k)[None]
    )
    Q, _ = play(GroupMeans(means_hat[..., None], said[:, None]), layout, histogram=False)
    E, E_hat = (f[0] - f[1]).T @ world.q, means_hat[0] - means_hat[1]
    p, p_hat = world.prior[1], prior[1]
    bias = E_hat[0] - E[0] + p_hat * E_hat[1] - p * E[1] + k * (E[1] - E_hat[1]) * (p - p_hat)
    assert Q[0, 1] - (world.loss(f[0]) - world.loss(f[1])) == pytest.approx(bias, abs=1e-12)


def wild_bags(case, rng, m=900):
    """Bags whose reports stray far from their mean, two constant models, and the true difference of
    their losses."""
    if case == "counts without a cap":
        y, scores = np.where(rng.uniform(size=(m, 200)) < 1e-3, 1000.0, 0.0), (0.0, np.log(1.5))
        return (
            Bags(np.repeat(np.arange(m), 200), y.mean(axis=1), "total"),
            scores,
            1 - (1.5 - np.log(1.5)),
        )
    bag, loud = np.repeat(np.arange(m), 8), np.full(m, 200.0)  # Laplace noise at epsilon 0.1
    if case == "noisy proportions":
        report = rng.binomial(8, 0.2, size=m) / 8 + rng.laplace(scale=10, size=m) / 8
        value = lambda z: np.log1p(np.exp(z)) - 0.2 * z
        return Bags(bag, report, noise=loud), (-1.0, -2.0), value(-1.0) - value(-2.0)
    p = np.array([0.2, 0.3, 0.5])
    report = rng.multinomial(8, p, size=m) / 8 + rng.laplace(scale=100, size=(m, 3)) / 8
    scores = np.array([2.0, 0.0, -1.0]), np.array([-1.0, 0.0, 2.0])
    value = lambda z: np.log(np.exp(z).sum()) - p @ z
    return (
        Bags(bag, report, "histogram", noise=100 * loud),
        scores,
        value(scores[0]) - value(scores[1]),
    )


@pytest.mark.parametrize("case, loss", [
    ("noisy proportions", losses.log),
    ("noisy histograms", losses.cross_entropy),
    ("counts without a cap", losses.poisson),
])  # fmt: skip
def test_the_bound_holds_where_the_error_of_the_prior_is_that_of_noise_or_of_rare_large_counts(
    case, loss
):
    """With Hoeffding's bound for exact labels in [0, 1], half of these runs and more were
    outside."""
    for seed in range(15):
        bags, scores, truth = wild_bags(case, np.random.default_rng(seed))
        models = [np.broadcast_to(score, (len(bags.bag), *np.shape(score))) for score in scores]
        result = tournament(models, bags, beta=0.5, loss=loss)
        assert abs(result.Q[0, 1] - truth) < result.C[0, 1]


def test_exact_labels_with_a_cap_keep_hoeffdings_bound_of_the_prior():
    bags, models = problem_of("total", n=3000)
    capped = Bags(bags.bag, bags.report, "total", cap=20)
    for exact in (binary_problem(n=3000)[0], capped):
        result = tournament(models[:2], exact, beta=0.1, groups=20, loss=losses.square)
        assert result.problem.report is None
        part = np.random.default_rng(0).permutation(len(exact))[: len(exact) // 3]
        assert result.prior[1] == pytest.approx(exact.report[part].mean())
    open_ended = tournament(models[:2], bags, beta=0.1, groups=20, loss=losses.square)
    assert open_ended.problem.report == pytest.approx(bags.report.var(ddof=1))
