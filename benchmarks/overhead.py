"""What does learning from bags cost? One GeneralUPM step against one ordinary weighted supervised
step.

Same network (4 hidden layers of 300), same 4096 instances, same optimizer, interleaved in one run.
The bag side includes all that bags add: the weights from the reports on the host, and their
expansion to the instances.

    python benchmarks/overhead.py [--rounds 60] [--out benchmarks/results/overhead.csv]
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
from rich.progress import track
from rich.table import Table

from unbag import losses, weights

INSTANCES, FEATURES, WIDTHS = 4096, 28, (300, 300, 300, 300, 1)
OPTIMIZER = optax.adam(1e-3)


def network(seed: int) -> list:
    rng = np.random.default_rng(seed)
    sizes = zip((FEATURES, *WIDTHS[:-1]), WIDTHS, strict=True)
    return [
        (jnp.asarray(rng.normal(size=s) / s[0] ** 0.5, jnp.float32), jnp.zeros(s[1])) for s in sizes
    ]


def scores(layers: list, X: jax.Array) -> jax.Array:
    for W, b in layers[:-1]:
        X = jax.nn.relu(X @ W + b)
    W, b = layers[-1]
    return (X @ W + b)[:, 0]


def update(loss, layers, state):
    updates, state = OPTIMIZER.update(jax.grad(loss)(layers), state)
    return optax.apply_updates(layers, updates), state


@jax.jit
def supervised_step(layers, state, X, y, sample_weight):
    ordinary = lambda m: jnp.sum(
        sample_weight * optax.sigmoid_binary_cross_entropy(scores(m, X), y)
    )
    return update(ordinary, layers, state)


@jax.jit
def bag_step(layers, state, X, bag, W):
    return update(lambda m: jnp.sum(W[bag] * losses.log.components(scores(m, X))), layers, state)


def ragged_sizes(rng: np.random.Generator) -> np.ndarray:
    ends = np.unique(np.append(np.cumsum(rng.geometric(1 / 64, size=400)), INSTANCES))
    return np.diff(ends[ends <= INSTANCES], prepend=0)


def measure(size: np.ndarray, rounds: int) -> tuple[np.ndarray, np.ndarray]:
    """Seconds of each supervised and each bag step, taken in turns."""
    rng = np.random.default_rng(0)
    X = jnp.asarray(rng.normal(size=(INSTANCES, FEATURES)), jnp.float32)
    y = (rng.uniform(size=INSTANCES) < 0.25).astype(np.float32)
    sample_weight = np.full(INSTANCES, 1 / INSTANCES, np.float32)
    bag = np.repeat(np.arange(len(size)), size)
    report = np.stack([np.ones(len(size)), np.bincount(bag, weights=y) / size], axis=1)
    prior = np.array([1.0, 0.25])
    layers = network(0)
    state = OPTIMIZER.init(layers)

    def supervised():
        jax.block_until_ready(supervised_step(layers, state, X, y, sample_weight))

    def from_bags():
        W = weights.upm(size, report, prior).astype(np.float32)
        jax.block_until_ready(bag_step(layers, state, X, bag, W))

    times = np.zeros((rounds, 2))
    for round in range(-3, rounds):
        order = (0, 1) if round % 2 else (1, 0)
        for side in order:
            start = time.perf_counter()
            (supervised, from_bags)[side]()
            if round >= 0:
                times[round, side] = time.perf_counter() - start
    return times[:, 0], times[:, 1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    cases = {
        str(k): np.full(INSTANCES // k, k)
        for k in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)
    }
    cases["ragged, mean 64"] = ragged_sizes(np.random.default_rng(1))
    rows = []
    for name, size in track(cases.items(), console=Console(stderr=True), transient=True):
        supervised, bags = measure(size, options.rounds)
        ratio = np.median(bags / supervised)
        rows.append((name, len(size), np.median(supervised) * 1e3, np.median(bags) * 1e3, ratio))
    table = Table(
        "bag size", "bags", "supervised, ms", "GeneralUPM, ms", "ratio", title="one training step"
    )
    for name, count, a, b, ratio in rows:
        table.add_row(name, str(count), f"{a:.1f}", f"{b:.1f}", f"{ratio:.3f}")
    table.caption = (
        f"medians of {options.rounds} interleaved rounds; ratio = median of paired ratios; "
        "goal 1.05"
    )
    Console().print(table)
    if options.out:
        with options.out.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["bag_size", "bags", "supervised_ms", "upm_ms", "ratio"])
            writer.writerows((n, c, f"{a:.2f}", f"{b:.2f}", f"{r:.4f}") for n, c, a, b, r in rows)


if __name__ == "__main__":
    main()
