"""What is the floor of a sweep? The parts of a run's epoch, on one core, in CPU time.

    python benchmarks/sweep_floor.py [--out benchmarks/results/sweep_floor.csv]

The network and the data of sweep.py: sixteen rates of one seed together, and one rate alone; then
what such an epoch must at least do, as programs of their own: the products of matrices of the first
layer (forwards, and backwards for its weights); the gradients, which have these products in them,
as the network is written and with a hidden unit in each row; and the gathering of the rows.
Milliseconds for each run and epoch, and billions of operations a second, counting the two products
only.
"""

import argparse
import csv
import os
import time
from pathlib import Path

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import jax
import numpy as np
from rich.console import Console
from threadpoolctl import threadpool_limits

import unbag
from unbag import models
from unbag.datasets import load_adult
from unbag.training import sweep

RATES, BATCH, WIDTH, HIDDEN = np.logspace(-4, -1, 16), 4096, 108, 32
HEADER = ("part", "ms_per_run_and_epoch", "billion_operations_a_second")


def seconds(call, repeats):
    """The least CPU time of some calls, after one that compiles."""
    call()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


def of_epoch(bags, rates, repeats):
    """Of one run and epoch: five epochs less one, which begin in the same way."""

    def trained(epochs):
        def call():
            make = lambda seed: models.adult_network(key=seed)
            sweep(make, bags, "upm", learning_rates=rates, seeds=(0,), epochs=epochs)

        return seconds(call, repeats)

    return (trained(5) - trained(1)) / 4 / len(rates)


def products(X, W, G):
    return X @ W, X.T @ G


def loss(score, y):
    return (jax.nn.softplus(score) - y * score).sum()


def by_rows(weights, X, y):
    """A network as it is written: rows times weights."""
    W, last = weights
    return loss(jax.nn.relu(X @ W) @ last, y)


def by_units(weights, X, y):
    """The same turned round, a hidden unit in each row: rates side by side need no transposes."""
    W, last = weights
    return loss(last @ jax.nn.relu(jax.lax.dot_general(W, X, (((0,), (1,)), ((), ())))), y)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    threadpool_limits(1)
    adult, rng = load_adult(), np.random.default_rng(0)
    bags = unbag.random_bags(adult.X, adult.y, size=64, seed=0)
    rows, runs = len(bags.bag), len(RATES)
    wide = runs * HIDDEN
    shapes = (BATCH, WIDTH), (WIDTH, wide), (BATCH, wide), (BATCH,)
    X, W, G, y = (rng.normal(size=shape).astype(np.float32) for shape in shapes)
    shapes = (runs, WIDTH, HIDDEN), (runs, HIDDEN)
    weights = tuple(rng.normal(size=shape).astype(np.float32) for shape in shapes)
    index, whole = rng.integers(0, rows, BATCH), adult.X.astype(np.float32)

    def done(program, *arguments):
        program, given = jax.jit(program), jax.device_put(arguments)
        return lambda: jax.block_until_ready(program(*given))

    def gradients(network):
        return done(jax.vmap(jax.grad(network), (0, None, None)), weights, X, y)

    def of_step(call, times=4):
        many = lambda: [call() for _ in range(times)]
        return seconds(many, options.repeats) / times * rows / BATCH / runs

    parts = {
        "one run alone": of_epoch(bags, RATES[:1], options.repeats),
        "sixteen rates together": of_epoch(bags, RATES, options.repeats),
        "two products, NumPy": of_step(lambda: products(X, W, G)),
        "two products, XLA": of_step(done(products, X, W, G)),
        "gradients, XLA": of_step(gradients(by_rows)),
        "gradients, a unit in each row": of_step(gradients(by_units)),
        "gathering the rows, XLA": of_step(done(lambda A, i: A[i], whole, index)),
    }
    work = 2 * 2 * rows * WIDTH * HIDDEN / 1e9
    lines = [HEADER]
    for part, value in parts.items():
        speed = "" if part.startswith("gathering") else f"{work / value:.0f}"
        lines.append((part, f"{1e3 * value:.2f}", speed))
        Console().print(*lines[-1])
    if options.out:
        with options.out.open("w", newline="") as file:
            csv.writer(file).writerows(lines)


if __name__ == "__main__":
    main()
