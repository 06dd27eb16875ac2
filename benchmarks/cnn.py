"""Does the paper's CNN train faster with the library's convolution or with patches times a matrix,
on this CPU?

One training step (gradient and Adam) of 4096 images by itself; the same in blocks of 16 images, as
the lab trains it (`microbatch`); and of 256 images mapped over seeds and learning rates, here one
of each. Both in one run, in turns; the ratio is the median of the paired ratios.

    python benchmarks/cnn.py [--rounds 3] [--out benchmarks/results/cnn.csv]
"""

import argparse
import csv
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
from rich.console import Console
from rich.table import Table

from unbag import models
from unbag.lab._run import MICROBATCH
from unbag.training._sharding import place_on

SHAPES = {"MNIST": (28, 28, 1), "CIFAR-10": (32, 32, 3)}
MODES = {"one step": (4096, 0), "in blocks": (4096, MICROBATCH["cnn"]), "in a sweep": (256, 0)}
OPTIMIZER = optax.adam(1e-3)


class Library(models.Convolutions):
    """The same network with the library's convolution and window."""

    def __call__(self, X, *, key=None):  # noqa: D102
        X = jax.nn.relu(convolve(X, self.first) + self.first_bias)
        X = jax.lax.reduce_window(X, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        X = jax.nn.relu(convolve(X, self.second) + self.second_bias)
        return self.head(models.drop(X.reshape(X.shape[0], -1), self.dropout, key))


def convolve(X, kernel):
    return jax.lax.conv_general_dilated(
        X, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def stepper(model, X, y, *, mapped: bool, block: int):
    """A function without arguments that makes one step."""

    place = place_on(None, block or None)

    def step(model, state, X, y):
        scores = lambda m: place.scores(lambda rows, key: m(rows, key=key), X, jax.random.key(0))
        loss = lambda m: jnp.mean(optax.sigmoid_binary_cross_entropy(scores(m), y))
        updates, state = OPTIMIZER.update(jax.grad(loss)(model), state)
        return optax.apply_updates(model, updates), state

    state = OPTIMIZER.init(model)
    if not mapped:
        run = jax.jit(step)
        return lambda: jax.block_until_ready(run(model, state, X, y))
    over_rates = jax.vmap(step, in_axes=(0, 0, None, None))
    run = jax.jit(lambda pair, X, y: jax.lax.map(lambda seed: over_rates(*seed, X, y), pair))
    pair = jax.tree.map(lambda leaf: leaf[None, None], (model, state))
    return lambda: jax.block_until_ready(run(pair, X, y))


def measure(shape, mode: str, rounds: int) -> np.ndarray:
    """Seconds of each round's library step and patches step."""
    rng = np.random.default_rng(0)
    images, block = MODES[mode]
    X = jnp.asarray(rng.uniform(size=(images, *shape)), jnp.float32)
    y = jnp.asarray(rng.integers(0, 2, size=len(X)), jnp.float32)
    patches = models.cnn(shape, key=0)
    library = Library(*(getattr(patches, name) for name in vars(patches)))
    steps = [
        stepper(model, X, y, mapped=mode == "in a sweep", block=block)
        for model in (library, patches)
    ]
    results = [step() for step in steps]  # compiles
    for a, b in zip(*map(jax.tree.leaves, results), strict=True):
        np.testing.assert_allclose(
            a, b, atol=3e-3
        )  # Adam's first step is the sign of the gradient times 1e-3
    times = np.zeros((rounds, 2))
    for round in range(rounds):
        for side in (0, 1) if round % 2 else (1, 0):
            start = time.perf_counter()
            steps[side]()
            times[round, side] = time.perf_counter() - start
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows = []
    for name, shape in SHAPES.items():
        for mode, (images, _) in MODES.items():
            times = measure(shape, mode, options.rounds)
            library, patches = np.median(times, axis=0)
            rows.append(
                (name, mode, images, library, patches, np.median(times[:, 1] / times[:, 0]))
            )
            Console(stderr=True).print(f"{name}, {mode}: {library:.2f} s, {patches:.2f} s")
    table = Table(
        "images",
        "step",
        "batch",
        "library, s",
        "patches, s",
        "ratio",
        title="one training step of the CNN",
    )
    for name, mode, images, a, b, ratio in rows:
        table.add_row(name, mode, str(images), f"{a:.2f}", f"{b:.2f}", f"{ratio:.3f}")
    table.caption = (
        f"medians of {options.rounds} rounds in turns; ratio = median of patches / library"
    )
    Console().print(table)
    if options.out:
        with options.out.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["images", "step", "batch", "library_s", "patches_s", "ratio"])
            writer.writerows(
                (n, m, i, f"{a:.3f}", f"{b:.3f}", f"{r:.4f}") for n, m, i, a, b, r in rows
            )


if __name__ == "__main__":
    main()
