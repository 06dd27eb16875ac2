"""The trainer: its steps equal the formulas, its sweeps equal its single runs, its guards hold."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import unbag
from cases.training import model_for, world
from unbag import Bags, losses, models, random_bags, weights
from unbag.likelihood import count_likelihood
from unbag.methods import usual_loss
from unbag.training import TrainingConfig, _objective, sweep, train
from unbag.training._loader import Loader, Shape, epoch_batches
from unbag.training._objective import Setting

# one program each, where JAX would compile one for every operation
batch_loss = jax.jit(_objective.batch_loss, static_argnums=0)
predict_components = jax.jit(_objective.predict_components, static_argnums=0)
METHODS = ("anchored", "upm", "easy", "matching", "likelihood")


def ragged(kind="binary", seed=0):
    rng = np.random.default_rng(seed)
    bags, y = world(kind, seed=seed)
    sizes = rng.integers(1, 12, size=60)
    return random_bags(
        bags.X, y[bags.rows], size=sizes[np.cumsum(sizes) <= 480].tolist(), seed=seed, kind=kind
    )


def stratified(n=480, size=8):
    """Strata of other sizes, labels and features: a mean over all of them is that of none."""
    bags, y = world(n=n)
    X = bags.X[np.argsort(bags.rows)]
    return random_bags(X, y, size=size, seed=0, stratum=np.digitize(X[:, 0], [0.7, 1.2]))


def objective_by_hand(bags, method, score, loss, kind):
    """The objective of all bags as one batch, from the public functions."""
    report, prior = bags.components()
    f = loss.components(score, kind=kind)
    if method == "matching":
        return unbag.proportion_matching(
            score, bags.bag, bags.size, report, loss=loss, kind=kind
        ).mean()
    if method == "likelihood":
        return (
            count_likelihood(score, bags.bag, bags.size, report, kind=kind).mean()
            / bags.size.mean()
        )
    if method == "anchored":
        g = np.asarray(predict_components(Setting(method, loss, kind), score), float)
        return np.sum(weights.anchored(bags.bag, bags.size, report, prior, g) * f)
    return np.sum(getattr(weights, method)(bags.size, report, prior)[bags.bag] * f)


@pytest.mark.parametrize("kind", ["binary", "total", "histogram"])
@pytest.mark.parametrize("method", METHODS)
def test_the_objective_of_a_padded_batch_is_the_formula(method, kind):
    bags = ragged(kind)
    loss = usual_loss(method, kind)
    loader = Loader(bags, batch=10**6, seed=0)
    plan = loader.plan(1)
    rows, count = int(bags.size[plan[0]].sum()), len(plan[0])
    rng = np.random.default_rng(1)
    score = rng.normal(size=(len(bags.bag), 3) if kind == "histogram" else len(bags.bag)).astype(
        np.float32
    )
    expected = objective_by_hand(bags, method, score.astype(float), loss, kind)
    setting = Setting(method, loss, kind, largest=int(bags.size.max()))
    batch = loader.arrays(plan, 0, Shape(rows + 7, count + 3))

    def objective(z):
        return batch_loss(setting, z, batch, predict_components(setting, z), None, None)

    value, slope = jax.jit(jax.value_and_grad(objective))(score[batch.row])
    assert float(value) == pytest.approx(float(expected), rel=2e-4, abs=2e-5)
    assert np.isfinite(slope).all()
    np.testing.assert_array_equal(np.asarray(slope)[~np.asarray(batch.real)], 0)


def test_batches_of_all_runs_have_one_shape_and_hold_each_bag_once():
    sets = [ragged(seed=0), ragged(seed=1)]
    loaders = [Loader(bags, batch=64, seed=3) for bags in sets]
    shape = None
    for epoch in (1, 2, 3):
        batches, shape = epoch_batches(loaders, epoch, shape)
        rows = [[], []]
        for arrays, active in batches:
            assert arrays.row.shape == (2, shape.rows)
            for run in range(2):
                if active[run]:
                    rows[run].extend(arrays.row[run][arrays.real[run]])
                    counts = np.bincount(arrays.bag[run], minlength=shape.bags)
                    assert counts.min() >= 1
                    np.testing.assert_array_equal(
                        np.bincount(arrays.bag[run][arrays.real[run]], minlength=shape.bags),
                        arrays.size[run],
                    )
        for run, bags in enumerate(sets):
            assert sorted(rows[run]) == list(range(len(bags.bag)))


def test_a_step_is_adam_on_the_formula():
    bags, _ = world()
    model = models.linear(3, key=0)
    run = train(model, bags, "upm", learning_rate=0.1, epochs=1, batch=10**6)
    report, prior = bags.components()
    W = weights.upm(bags.size, report, prior)[bags.bag]
    slope = jax.jit(jax.grad(lambda m: jnp.sum(W * losses.log.components(m(bags.X)))))
    gradient = slope(model)
    adam = optax.adam(0.1)
    updates, _ = adam.update(gradient, adam.init(model))
    expected = optax.apply_updates(model, updates)
    for a, b in zip(jax.tree.leaves(run.model), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_a_sweep_is_its_runs_one_by_one(method):
    sets = [world(seed=s)[0] for s in (0, 1)]
    held_out = [world(seed=s + 10)[0] for s in (0, 1)]
    options = {"epochs": 3, "batch": 100}
    make = lambda seed: model_for("binary", seed)
    together = sweep(
        make, sets, method, learning_rates=(1e-3, 1e-2), seeds=(5, 6), held_out=held_out, **options
    )
    assert [[(run.seed, run.learning_rate) for run in runs] for runs in together] == [
        [(seed, pytest.approx(rate)) for rate in (1e-3, 1e-2)] for seed in (5, 6)
    ]
    for s, run in [(s, run) for s, runs in enumerate(together) for run in runs]:
        alone = train(
            make(run.seed),
            sets[s],
            method,
            learning_rate=run.learning_rate,
            seed=run.seed,
            held_out=held_out[s],
            **options,
        )
        assert run.epoch == alone.epoch
        for name in alone.history:
            np.testing.assert_allclose(run.history[name], alone.history[name], rtol=2e-4, atol=2e-5)
        for a, b in zip(jax.tree.leaves(run.model), jax.tree.leaves(alone.model), strict=True):
            np.testing.assert_allclose(a, b, atol=2e-5)


def test_the_same_seed_gives_the_same_run_and_another_seed_another():
    bags, _ = world()
    runs = [
        train(model_for("binary", 0), bags, seed=seed, epochs=2, batch=100) for seed in (1, 1, 2)
    ]
    first, again, other = (
        [np.asarray(leaf) for leaf in jax.tree.leaves(run.model)] for run in runs
    )
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(first, other, strict=True))


def test_bags_may_share_features_by_their_rows():
    bags, _ = world()
    bare = Bags(bags.bag, bags.report, rows=bags.rows)
    full = np.zeros((480, 3), np.float32)
    full[bags.rows] = bags.X
    one = train(model_for("binary"), bags, epochs=2)
    other = train(model_for("binary"), bare, epochs=2, X=full)
    for a, b in zip(jax.tree.leaves(one.model), jax.tree.leaves(other.model), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)


def test_held_out_bags_choose_the_epoch_and_patience_ends_the_training():
    bags, _ = world(n=160)
    held_out, _ = world(n=800, seed=9)
    run = train(
        models.mlp(3, (64,), key=0),
        bags,
        "upm",
        learning_rate=0.1,
        epochs=60,
        held_out=held_out,
        patience=5,
    )
    seen = run.history["choice"]
    assert run.epoch == int(np.argmin(seen)) + 1
    assert len(seen) == run.epoch + 5 < 60


def test_the_held_out_estimate_is_the_anchored_one_with_the_model_as_reference():
    bags, _ = world()
    held_out, _ = world(seed=5, size=4)
    run = train(model_for("binary"), bags, epochs=1, held_out=held_out)
    score = np.asarray(run.model(held_out.X), float)
    h = 1 / (1 + np.exp(-score))
    report, prior = held_out.components()
    W = weights.anchored(
        held_out.bag, held_out.size, report, prior, np.stack([np.ones_like(h), h], axis=1)
    )
    assert run.history["held_out"][0] == pytest.approx(
        np.sum(W * losses.log.components(score)), rel=1e-4
    )


def test_test_data_are_reported_and_never_used():
    bags, y = world()
    test = (bags.X, y[bags.rows])
    with_test = train(model_for("binary"), bags, epochs=3, test=test)
    without = train(model_for("binary"), bags, epochs=3)
    for a, b in zip(jax.tree.leaves(with_test.model), jax.tree.leaves(without.model), strict=True):
        np.testing.assert_array_equal(a, b)
    score = np.asarray(with_test.model(test[0]))
    assert with_test.history["test_loss"][-1] == pytest.approx(
        losses.log.value(score, test[1]).mean(), rel=1e-5
    )
    wins = (score[test[1] == 1][:, None] > score[test[1] == 0]).mean()
    assert with_test.history["test_auc"][-1] == pytest.approx(wins, abs=1e-5)


def test_labels_are_ordinary_supervision():
    _, y = world()
    bags, _ = world()
    ones = random_bags(bags.X, y[bags.rows], size=1, seed=0)
    run = train(models.linear(3, key=0), ones, "labels", learning_rate=0.1, epochs=1, batch=10**6)
    assert (run.method, run.loss) == ("labels", "log")
    mean_loss = lambda m: jnp.mean(losses.log.value(m(ones.X), ones.report[ones.bag]))
    gradient = jax.jit(jax.grad(mean_loss))
    adam, model = optax.adam(0.1), models.linear(3, key=0)
    updates, _ = adam.update(gradient(model), adam.init(model))
    for a, b in zip(
        jax.tree.leaves(run.model),
        jax.tree.leaves(optax.apply_updates(model, updates)),
        strict=True,
    ):
        np.testing.assert_allclose(a, b, atol=1e-5)


@pytest.mark.parametrize("kind", ["binary", "total", "histogram"])
@pytest.mark.parametrize("method", METHODS)
def test_every_method_learns_every_kind(method, kind):
    bags, _ = world(kind, n=4000, size=4)
    test, labels = world(kind, n=2000, seed=1, size=4)
    loss = usual_loss("any", kind)
    start = loss.trivial_score(bags.prior)
    model = models.mlp(3, (), key=0, outputs=3 if kind == "histogram" else 1, start=start)
    run = train(
        model, bags, method, learning_rate=0.03, epochs=25, test=(test.X, labels[test.rows])
    )
    trivial = loss.value(
        np.broadcast_to(start, (2000, *np.shape(start))), labels[test.rows], kind=kind
    ).mean()
    assert run.history["test_loss"][-1] < trivial - 0.02


def test_strata_are_learned_within():
    """Campaigns with different rates and features: pooled GeneralUPM is misled, within strata it is
    not."""
    rng = np.random.default_rng(3)
    campaign = np.arange(8000) // 1000
    x = rng.normal(size=8000) + np.linspace(-2, 2, 8)[campaign]
    y = rng.uniform(size=8000) < 1 / (
        1 + np.exp(-(0.5 * x - 0.6 * np.linspace(-2, 2, 8)[campaign] - 0.5))
    )
    X = np.stack([x, *(campaign == c for c in range(8))], axis=1).astype(np.float32)
    stratified = random_bags(X, y, size=20, seed=0, stratum=campaign)
    pooled = Bags(stratified.bag, stratified.report, X=stratified.X)
    truth = 0.5
    slopes = {}
    for name, bags in {"stratified": stratified, "pooled": pooled}.items():
        run = train(models.linear(9, key=0), bags, "upm", "square", learning_rate=0.03, epochs=60)
        slopes[name] = float(run.model.layers[-1].weight[0, 0])
    assert abs(slopes["stratified"] - truth) < 0.3 < abs(slopes["pooled"] - truth)


def first_batch(bags, loader, *, extra=0):
    """The first batch of an epoch, padded by some bags and rows, and a score for every row of the
    bags."""
    plan = loader.plan(1)
    rows, count = int(bags.size[plan[0]].sum()), len(plan[0])
    batch = loader.arrays(plan, 0, Shape(rows + 2 * extra, count + extra))
    score = np.random.default_rng(0).normal(size=(len(bags.bag), *bags.report.shape[1:]))
    return bags.take(plan[0]), batch, score.astype(np.float32)


def unlike_strata():
    """A stratum of 2 bags of 9, one of 20 bags of 3."""
    size, rng = np.repeat([9, 3], [2, 20]), np.random.default_rng(0)
    bag, stratum = np.repeat(np.arange(22), size), np.repeat([0, 1], [2, 20])
    return Bags(
        bag,
        rng.integers(0, size + 1) / size,
        X=rng.normal(size=(78, 3)).astype(np.float32),
        stratum=stratum,
    )


@pytest.mark.parametrize("method", ["matching", "likelihood"])
def test_strata_count_by_their_instances_in_matching_and_by_their_bags_in_the_likelihood(method):
    bags = unlike_strata()
    batch = Loader(bags, batch=10**6, seed=0).arrays([np.arange(22)], 0, Shape(90, 25))
    score = np.random.default_rng(1).normal(size=78)
    setting = Setting(method, losses.log, "binary", strata=True, largest=9)
    value = batch_loss(setting, score[batch.row], batch, None, None)
    given = score, bags.bag, bags.size, bags.components().report
    if method == "matching":
        by_bag = unbag.proportion_matching(*given, loss=losses.log, kind="binary")
        expected = 18 / 78 * by_bag[:2].mean() + 60 / 78 * by_bag[2:].mean()
    else:
        expected = count_likelihood(*given, kind="binary").sum() / 78
    assert float(value) == pytest.approx(float(expected), rel=1e-4)


@pytest.mark.parametrize("method", ["anchored", "upm", "easy"])
def test_a_padded_batch_may_lack_a_stratum(method):
    bags = stratified()
    setting = Setting(method, usual_loss(method, "binary"), "binary", strata=True)
    loader, last = Loader(bags, batch=10**6, seed=0), [np.flatnonzero(bags.stratum == 2)]
    values = []
    for extra in (0, 3):
        size = int(bags.size[last[0]].sum())
        batch = loader.arrays(last, 0, Shape(size + 2 * extra, len(last[0]) + extra))
        score = bags.X[batch.row, 0]
        values.append(
            float(batch_loss(setting, score, batch, predict_components(setting, score), None))
        )
    assert values[1] == pytest.approx(values[0], rel=1e-5)


def test_noisy_reports_get_less_weight():
    bags, _ = world()
    noise = np.where(np.arange(len(bags)) % 2, 40.0, 0.0)
    noisy = Bags(bags.bag, bags.report, X=bags.X, noise=noise)
    batch = Loader(noisy, batch=10**6, seed=0).arrays(
        [np.arange(len(bags))], 0, Shape(480, len(bags))
    )
    np.testing.assert_allclose(batch.weight[1] / batch.weight[0], 0.25 / (0.25 + 40 / 8), rtol=0.2)


def noised(kind="binary", seed=0):
    """Bags of many sizes; half of the reports carry noise, which brings some below 0."""
    bags, rng = ragged(kind, seed), np.random.default_rng(seed)
    noise = np.where(np.arange(len(bags)) % 2, rng.uniform(1, 30, size=len(bags)), 0.0)
    error = np.sqrt(noise) * rng.normal(size=(*bags.report.shape[1:], len(bags))) / bags.size
    noisy = Bags(bags.bag, bags.report + error.T, kind, X=bags.X, noise=noise)
    assert (noisy.report < 0).any()
    return noisy


@pytest.mark.parametrize("kind", ["binary", "total", "histogram"])
def test_the_likelihood_that_is_trained_has_the_noise_of_each_bag_in_it_and_weighs_bags_alike(kind):
    noisy = noised(kind)
    model = model_for(kind)
    run = train(model, noisy, "likelihood", epochs=1, batch=10**6)
    score, report = np.asarray(model(noisy.X), float), noisy.components().report
    by_bag = [
        count_likelihood(
            score[noisy.bag == j],
            np.zeros(k, int),
            np.array([k]),
            report[[j]],
            kind=kind,
            noise=noisy.noise[[j]],
        )
        for j, k in enumerate(noisy.size)
    ]
    assert run.history["train"][0] == pytest.approx(np.mean(by_bag) / noisy.size.mean(), rel=2e-5)


def test_a_sweep_may_hold_bags_with_and_without_noise():
    sets = [noised("total", seed=0), ragged("total", seed=1)]
    options, make = {"epochs": 2, "batch": 100}, lambda seed: model_for("total", seed)
    together = sweep(make, sets, "likelihood", learning_rates=(1e-2,), seeds=(0, 1), **options)
    alone = train(make(1), sets[1], "likelihood", learning_rate=1e-2, seed=1, **options)
    np.testing.assert_allclose(together[1][0].history["train"], alone.history["train"], rtol=2e-4)


def test_the_square_loss_matches_reports_outside_0_and_1():
    assert np.isfinite(
        train(model_for("binary"), noised(), "matching", "square", epochs=1).history["train"]
    ).all()


def test_a_diverging_run_is_stopped_and_reported_and_its_neighbours_go_on():
    bags, _ = world()
    broken = bags.X.copy()
    runs = sweep(
        lambda seed: model_for("binary", seed),
        bags,
        "upm",
        learning_rates=(1e-3, 1e30),
        seeds=(0,),
        epochs=4,
    )
    fine, wild = runs[0]
    assert fine.diverged is None
    assert wild.diverged is not None
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(wild.model))
    with pytest.warns(
        UserWarning, match="The training diverged in epoch 1: the model is the last good one"
    ):
        train(
            model_for("binary", 0),
            Bags(bags.bag, bags.report, X=broken * 1e30),
            "upm",
            learning_rate=1e30,
            epochs=3,
        )


@pytest.mark.parametrize("start", [0.0, 2000.0])
def test_the_square_loss_of_large_counts_is_no_divergence(start):
    bags, _ = world()
    large = Bags(bags.bag, 2000 + 100 * bags.report, "total", X=bags.X)
    model = models.linear(3, key=0, start=start)
    run = train(model, large, loss="square", learning_rate=300.0, epochs=12, batch=10**6)
    assert run.diverged is None
    assert run.history["train"].min() < -4e6


def test_progress_is_told_after_each_epoch():
    bags, _ = world()
    told = []
    train(
        model_for("binary"),
        bags,
        epochs=3,
        progress=lambda epoch, seen: told.append((epoch, sorted(seen))),
    )
    assert told == [(1, ["train"]), (2, ["train"]), (3, ["train"])]


def test_progress_shows_epochs_and_the_lowest_loss_on_stderr(capsys, monkeypatch):
    monkeypatch.setattr("unbag._progress.SILENCE", 0.0)
    bags, _ = world()
    run = train(model_for("binary"), bags, epochs=2, progress=True)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert f"network: epoch 2, loss {run.history['train'][1]:.4f} (2 of 2, " in shown.err


def test_dropout_weight_decay_and_clipping_do_something():
    bags, _ = world()
    base = train(model_for("binary", 0), bags, epochs=2)
    others = {
        "dropout": train(models.mlp(3, (5,), key=0, dropout=0.5), bags, epochs=2),
        "weight decay": train(model_for("binary", 0), bags, epochs=2, weight_decay=1.0),
        "smoothing": train(model_for("binary", 0), bags, "upm", epochs=2, smoothing=0.1),
        "clip": train(model_for("binary", 0), bags, epochs=2, clip=1e-6),
    }
    for name, run in others.items():
        assert not np.allclose(
            run.model.layers[0].weight, base.model.layers[0].weight, atol=1e-7
        ), name


@pytest.mark.parametrize("devices", [None, 1])
def test_whole_numbers_too_large_for_32_bits_become_floats(devices):
    moment = 1_700_000_000_000 + np.arange(16)[:, None]
    bags = Bags(np.repeat(np.arange(4), 4), [0.5, 0.25, 0.5, 0.25], X=moment)
    seen = []
    look = lambda model, X, key: (
        jax.debug.callback(lambda x: seen.append(x.max()), X) or X[:, 0] * model["slope"]
    )
    train({"slope": jnp.zeros(())}, bags, epochs=1, held_out=bags, apply=look, devices=devices)
    jax.effects_barrier()
    assert seen
    assert all(x == np.float32(1.7e12) for x in seen)


def test_any_pytree_with_an_apply_function_is_accepted():
    bags, _ = world()
    model = {"slope": jnp.zeros(3), "shift": jnp.zeros(())}
    run = train(
        model,
        bags,
        learning_rate=0.05,
        epochs=20,
        apply=lambda m, X, key: X @ m["slope"] + m["shift"],
    )
    assert float(run.model["slope"][0]) > 0.3


def test_options_are_those_of_the_config_and_may_replace_some_of_it():
    bags, _ = world(n=96)
    config = TrainingConfig(epochs=2, batch=40)
    options = {"learning_rates": (1e-2,), "seeds": (3,)}
    make = lambda seed: model_for("binary")
    given = sweep(make, bags, "upm", config=config, **options)[0][0]
    named = sweep(make, bags, "upm", epochs=2, batch=40, **options)[0][0]
    shorter = sweep(make, bags, "upm", config=config, epochs=1, **options)[0][0]
    np.testing.assert_array_equal(given.history["train"], named.history["train"])
    np.testing.assert_array_equal(shorter.history["train"], named.history["train"][:1])


def test_parameters_keep_their_precision_where_jax_counts_in_double():
    X = np.random.default_rng(0).normal(size=(60, 2)).astype(np.float32)
    bags = random_bags(X, X[:, 0] > 0, size=6, seed=0)
    with jax.enable_x64(True):
        model = jax.tree.map(lambda p: p.astype(np.float32), models.linear(2, key=0))
        trained = train(model, bags, "upm", epochs=1, batch=30).model
    assert {leaf.dtype for leaf in jax.tree.leaves(trained)} == {np.dtype(np.float32)}
