"""Training and evaluation over several devices and several processes give what one device gives."""

import os
import pickle
import socket
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from parallel_training import BY_PROCESSES, METHODS

import unbag
from unbag.datasets import Chunk
from unbag.stream import StreamLearner
from unbag.training._loader import Shape, _grown
from unbag.training._sharding import Place, place_on

SCRIPT = str(Path(__file__).with_name("parallel_training.py"))


def run_processes(folder, devices, processes):
    """Start them all, wait for them, and read what they wrote."""
    env = {**os.environ, "JAX_PLATFORMS": "cpu"}
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    words = [[address, str(processes), str(n)] if processes > 1 else [] for n in range(processes)]
    started = [
        subprocess.Popen(
            [sys.executable, SCRIPT, str(folder), str(devices), *more],
            env=env,
            stderr=subprocess.PIPE,
            text=True,
        )
        for more in words
    ]
    try:
        for process in started:
            _, told = process.communicate(timeout=900)
            assert process.returncode == 0, told
    finally:
        for process in started:
            process.kill()
    return [dict(np.load(folder / f"{n}.npz")) for n in range(processes)]


@pytest.fixture(scope="module")
def four_devices(tmp_path_factory):
    """What one process makes on one device, and on four."""
    return run_processes(tmp_path_factory.mktemp("four"), devices=4, processes=1)


def check_same(found, alone, methods):
    """Everything made on all devices, by each process, is what one device made."""
    made = tuple(f"{method}-" for method in (*methods, "stream"))
    one = {k: v for k, v in alone.items() if k.startswith(made) and k.endswith("-one")}
    assert {f"{start}one" for start in made} <= one.keys()
    for name, expected in one.items():
        for part in found:
            np.testing.assert_allclose(
                part[f"{name[:-4]}-all"], expected, rtol=1e-5, atol=2e-6, err_msg=name
            )
    for method in methods:
        assert np.abs(one[f"{method}-one"] - found[0]["start"]).max() > 0.05  # it did learn
    for part in found:
        for name, values in part.items():
            if name.endswith("-all"):
                np.testing.assert_array_equal(values, found[0][name])


@pytest.mark.engines
def test_four_devices_make_the_parameters_of_one_also_in_microbatches(four_devices):
    check_same(four_devices, four_devices[0], METHODS)


@pytest.mark.engines
def test_two_processes_make_the_parameters_of_one_and_merge_their_evaluations(
    tmp_path, four_devices
):
    check_same(run_processes(tmp_path, devices=1, processes=2), four_devices[0], BY_PROCESSES)
    parts = [pickle.loads((tmp_path / f"evaluator-{n}").read_bytes()) for n in range(2)]
    merged, whole = parts[0][0].merge(parts[1][0]).compute(), parts[0][1].compute()
    assert merged.estimates.keys() == whole.estimates.keys()
    for name, estimate in whole.estimates.items():
        assert merged[name][:4] == pytest.approx(estimate[:4], rel=1e-9)


@pytest.mark.parametrize("rows", [5, 12, 13])
def test_microbatches_have_the_value_and_gradient_of_the_whole(rows):
    """A value that is not linear in the rows, as that of matching."""
    rng = np.random.default_rng(0)
    X, w = (
        jnp.asarray(rng.normal(size=(rows, 3)), jnp.float32),
        jnp.asarray(rng.normal(size=(3, 2)), jnp.float32),
    )

    def value(w, place):
        return jnp.sum(
            jnp.log(jnp.sum(jnp.exp(place.scores(lambda X, key: jnp.tanh(X @ w), X, None)), axis=0))
            ** 2
        )

    whole, slope = jax.value_and_grad(value)(w, Place())
    split, other = jax.jit(jax.value_and_grad(value), static_argnums=1)(w, place_on(None, 4))
    np.testing.assert_allclose(split, whole, rtol=1e-5)
    np.testing.assert_allclose(other, slope, rtol=1e-4, atol=1e-6)


def test_microbatches_keep_the_activations_of_one_block_only():
    X, w = jnp.zeros((4096, 8)), jnp.zeros((8, 512))

    def memory(place):
        step = jax.jit(
            jax.grad(
                lambda w: jnp.sum(
                    place.scores(lambda X, key: jnp.sum(jnp.tanh(X @ w), 1), X, None) ** 2
                )
            )
        )
        return step.lower(w).compile().memory_analysis().temp_size_in_bytes

    assert memory(place_on(None, 64)) < memory(Place()) / 8


def test_dropout_is_drawn_for_each_block():
    place = place_on(None, 4)
    score = place.scores(
        lambda X, key: jax.random.uniform(key, (len(X),)), jnp.zeros((8, 1)), jax.random.key(0)
    )
    assert len(np.unique(score)) == 8


@pytest.mark.parametrize("multiple", [1, 3, 4, 64])
@pytest.mark.parametrize("before", [None, Shape(12, 3), Shape(130, 8)])
def test_rows_are_padded_to_a_multiple_of_the_devices(multiple, before):
    for shapes in ({(12, 3)}, {(12, 3), (11, 4)}, {(13, 2)}):
        rows, bags = _grown(shapes, before, multiple)
        assert rows % multiple == 0
        assert (rows, bags) in shapes or all(bags > b and rows - r >= bags - b for r, b in shapes)
    assert _grown({(12, 3)}, None, 4) == (12, 3)


def test_a_mesh_of_one_device_keeps_the_features_on_the_host(tmp_path):
    """So that they may be a file that no memory holds."""
    rng = np.random.default_rng(0)
    X = np.memmap(tmp_path / "X", np.float64, "w+", shape=(60, 2))
    X[:] = rng.normal(size=(60, 2))
    bags = unbag.random_bags(None, rng.uniform(size=60) < 0.5, size=6, seed=0)
    model = unbag.models.linear(2, key=0)
    one, two = (
        unbag.train(model, bags, X=X, epochs=1, batch=20, devices=d).model for d in (None, 1)
    )
    np.testing.assert_allclose(one.layers[-1].weight, two.layers[-1].weight, rtol=1e-5)


def test_a_stream_goes_on_where_it_was_on_other_devices(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2, 90, 2))
    first, second = (
        Chunk(x, y=rng.uniform(size=90) < 1 / (1 + np.exp(-x[:, 0])), position=n)
        for n, x in enumerate(X)
    )
    model, options = unbag.models.linear(2, key=0), {"size": 7, "batch": 40, "rate": 0.1}
    whole = StreamLearner(model, **options)
    begun = StreamLearner(model, **options, folder=tmp_path)
    for learner in (whole, begun):
        learner.learn(first)
    begun.checkpoint()
    begun.close()
    resumed = StreamLearner(model, **options, folder=tmp_path, devices=1, microbatch=16)
    for learner in (whole, resumed):
        learner.learn(second)
    resumed.close()
    np.testing.assert_allclose(resumed.predict(X[0]), whole.predict(X[0]), rtol=1e-4, atol=1e-5)


def test_estimators_take_devices_and_microbatches():
    rng = np.random.default_rng(0)
    X, bag = rng.normal(size=(80, 2)), np.arange(80) // 4
    y = np.repeat(rng.integers(0, 5, 20) / 4, 4)
    options = {"hidden": (), "epochs": 2, "held_out": 0, "learning_rate": 0.01, "diagnose": False}
    one = unbag.BagClassifier(**options).fit(X, y, bag=bag)
    two = (
        unbag.BagClassifier(**options, devices=1, microbatch=16)
        .fit(X, y, bag=bag)
        .partial_fit(X, y, bag=bag)
    )
    found, expected = two.predict_proba(X), one.partial_fit(X, y, bag=bag).predict_proba(X)
    np.testing.assert_allclose(
        found, expected, atol=1e-3
    )  # Adam makes steps of roundings where the gradient is 0
    assert np.ptp(expected[:, 0]) > 0.02
