import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases.packages import needs
from unbag import losses, weights
from unbag.medians import group_count, median_objective, median_of_means, random_groups


@given(st.integers(1, 200), st.integers(1, 50), st.integers(0, 3))
def test_groups_have_the_size_that_the_paper_asks_for(count, groups, seed):
    if groups > count:
        return
    sizes = np.bincount(random_groups(count, groups, seed=seed), minlength=groups)
    assert sizes.sum() == count
    assert sizes.min() >= count // groups
    assert sizes.max() <= count // groups + 1


def test_the_number_of_groups_is_the_papers():
    assert [group_count(delta) for delta in (0.5, 0.1, 0.05, 0.01)] == [6, 19, 24, 37]


def test_it_is_the_median_of_the_group_means_with_the_middle_pair_averaged():
    v = np.random.default_rng(0).normal(size=23)
    for groups in (1, 2, 3, 4, 23):
        group = random_groups(23, groups, seed=7)
        means = sorted(v[group == g].mean() for g in range(groups))
        middle = (means[(groups - 1) // 2] + means[groups // 2]) / 2
        assert median_of_means(v, groups=groups, seed=7) == pytest.approx(middle, abs=1e-15)


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=20, max_size=60), st.integers(2, 20), st.integers(0, 5)
)
def test_it_is_antisymmetric_to_the_last_bit(values, groups, seed):
    v = np.array(values)
    assert median_of_means(-v, groups=groups, seed=seed) == -median_of_means(
        v, groups=groups, seed=seed
    )


def test_columns_share_their_groups():
    v = np.random.default_rng(1).normal(size=(50, 3, 2))
    all_at_once = median_of_means(v, delta=0.3, seed=4)
    assert all_at_once.shape == (3, 2)
    for column in np.ndindex(3, 2):
        assert all_at_once[column] == median_of_means(v[(slice(None), *column)], delta=0.3, seed=4)


def test_a_wild_value_does_not_move_it():
    v = np.random.default_rng(2).normal(size=1000)
    wild = v.copy()
    wild[17] = 1e12
    assert (
        abs(median_of_means(wild, delta=0.05, seed=0) - median_of_means(v, delta=0.05, seed=0))
        < 0.1
    )


@pytest.mark.slow
def test_it_is_within_the_theorems_distance_as_often_as_promised():
    """|MoM - mean| <= sigma sqrt(32 log(1/delta) / n) with probability 1 - delta, for heavy tails
    (Student, 3 d.f.)."""
    rng = np.random.default_rng(3)
    delta, n, runs = 0.2, 400, 2000
    v = rng.standard_t(3, size=(n, runs))
    bound = np.sqrt(3) * np.sqrt(32 * np.log(1 / delta) / n)
    misses = np.mean(np.abs(median_of_means(v, delta=delta, seed=0)) > bound)
    assert misses <= delta


@pytest.mark.parametrize("groups", [3, 4])
def test_the_objective_is_the_median_of_group_means_with_the_gradient_of_the_middle(groups):
    import jax
    import jax.numpy as jnp

    rng = np.random.default_rng(4)
    losses_of_bags, group = rng.normal(size=12), random_groups(12, groups, seed=0)
    means = np.array([losses_of_bags[group == g].mean() for g in range(groups)])
    assert float(median_objective(losses_of_bags, group, groups)) == pytest.approx(np.median(means))
    middle = np.argsort(means)[(groups - 1) // 2 : groups // 2 + 1]
    expected = np.where(np.isin(group, middle), 1 / np.bincount(group)[group] / len(middle), 0)
    with jax.enable_x64(True):
        objective = jax.jit(lambda v: median_objective(v, group, groups))
        np.testing.assert_allclose(jax.grad(objective)(jnp.asarray(losses_of_bags)), expected)


def test_pytorch_has_the_same_objective():
    torch = needs("torch")
    values, group = np.random.default_rng(5).normal(size=12), random_groups(12, 4, seed=1)
    tensor = torch.tensor(values, requires_grad=True)
    median_objective(tensor, group, 4).backward()
    assert median_objective(tensor, group, 4).item() == pytest.approx(
        median_objective(values, group, 4)
    )
    assert np.count_nonzero(tensor.grad.numpy()) == 6


def test_a_model_trained_with_medians_survives_a_wild_bag_and_one_with_means_does_not():
    """Gradient descent on the median of group means of per-bag losses: the paper's route to
    infinite classes."""
    import jax
    import jax.numpy as jnp

    rng = np.random.default_rng(6)
    x = rng.normal(size=6000)
    y = (rng.uniform(size=6000) < 1 / (1 + np.exp(-(x - 1)))).astype(float)
    bag, size = np.repeat(np.arange(1500), 4), np.full(1500, 4)
    report = np.stack([np.ones(1500), y.reshape(1500, 4).mean(axis=1)], axis=1)
    prior = report.mean(axis=0)
    report[0, 1] = -2000.0  # one export error, declared as nothing
    group = random_groups(1500, 15, seed=0)

    def bag_losses(theta):
        f = losses.log.components(theta[0] * x + theta[1])
        return weights.upm_by_bag(f, bag, size, report, prior)

    objectives = {
        "median": lambda t: median_objective(bag_losses(t), group, 15),
        "mean": lambda t: bag_losses(t).mean(),
    }
    found = {}
    with jax.enable_x64(True):
        for name, objective in objectives.items():
            gradient = jax.jit(jax.grad(objective))
            theta = jnp.zeros(2)
            for _ in range(150):
                theta = theta - 0.5 * gradient(theta)
            found[name] = np.asarray(theta)
    assert np.abs(found["median"] - [1, -1]).max() < 0.35
    assert np.abs(found["mean"] - [1, -1]).max() > 0.6
