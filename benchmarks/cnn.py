"""How fast can the paper's CNN be trained on this CPU? JAX's convolution, patches times a matrix
(ours), ours in blocks, PyTorch's network in float32 and bfloat16, and what the lab trains: JAX's
step with PyTorch's convolutions, in float32 (`cnn`) and bfloat16 (`cnn-bfloat16`).

One training step (gradient and Adam) of a batch of images, all in one run and in turns; a ratio is
the median over the rounds of the paired ratio to the first. In bfloat16 only the products are:
weights and Adam stay float32, as autocast does it.

    python benchmarks/cnn.py [--images 4096] [--rounds 3] [--out benchmarks/results/cnn.csv]
"""

import argparse
import csv
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import torch
from rich.console import Console
from rich.table import Table

from unbag import models
from unbag.lab._convolution import cnn, cnn_bfloat16
from unbag.lab._run import MICROBATCH
from unbag.training._sharding import place_on

SHAPES = {"MNIST": (28, 28, 1), "CIFAR-10": (32, 32, 3)}
OPTIMIZER = optax.adam(1e-3)


@jax.tree_util.register_dataclass
class Library(models.Convolutions):
    """The same network with JAX's convolution and window."""

    def __call__(self, X, *, key=None):  # noqa: D102
        X = jax.nn.relu(convolve(X, self.first) + self.first_bias)
        X = jax.lax.reduce_window(X, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        X = jax.nn.relu(convolve(X, self.second) + self.second_bias)
        return self.head(models.drop(X.reshape(X.shape[0], -1), self.dropout, key))


def convolve(X, kernel):
    return jax.lax.conv_general_dilated(
        X, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def jax_step(model, X, y, block: int):
    """A function without arguments that makes one step."""
    place = place_on(None, block or None)

    def step(model, state, X, y):
        scores = lambda m: place.scores(lambda rows, key: m(rows, key=key), X, jax.random.key(0))
        loss = lambda m: jnp.mean(optax.sigmoid_binary_cross_entropy(scores(m), y))
        updates, state = OPTIMIZER.update(jax.grad(loss)(model), state)
        return optax.apply_updates(model, updates), state

    state, run = OPTIMIZER.init(model), jax.jit(step)
    return lambda: jax.block_until_ready(run(model, state, X, y))


def torch_step(shape, X, y, half: bool):
    """The same network and step in PyTorch, channels last."""
    height, width, colours = shape
    network = torch.nn.Sequential(
        torch.nn.Conv2d(colours, 32, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(32, 64, 3, padding=1), torch.nn.ReLU(), torch.nn.Flatten(),
        torch.nn.Dropout(0.5), torch.nn.Linear(height // 2 * (width // 2) * 64, 1),
    ).to(memory_format=torch.channels_last)  # fmt: skip
    adam = torch.optim.Adam(network.parameters(), 1e-3)
    images = torch.tensor(np.asarray(X)).permute(0, 3, 1, 2)
    images, label = images.to(memory_format=torch.channels_last), torch.tensor(np.asarray(y))

    def step():
        adam.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=half):
            score = network(images)[:, 0]
        torch.nn.functional.binary_cross_entropy_with_logits(score.float(), label).backward()
        adam.step()

    return step


def steps_of(shape, images: int):
    rng = np.random.default_rng(0)
    X = jnp.asarray(rng.uniform(size=(images, *shape)), jnp.float32)
    y = jnp.asarray(rng.integers(0, 2, size=len(X)), jnp.float32)
    patches = models.cnn(shape, key=0)
    library = Library(*(getattr(patches, name) for name in vars(patches)))
    return {
        "JAX's convolution": jax_step(library, X, y, 0),
        "patches": jax_step(patches, X, y, 0),
        "patches in blocks": jax_step(patches, X, y, MICROBATCH["cnn"]),
        "JAX's step, PyTorch's convolutions": jax_step(cnn(shape, key=0), X, y, 0),
        "JAX's step, PyTorch's convolutions, bfloat16": jax_step(
            cnn_bfloat16(shape, key=0), X, y, 0
        ),
        "PyTorch": torch_step(shape, X, y, half=False),
        "PyTorch, bfloat16": torch_step(shape, X, y, half=True),
    }


def seconds(step) -> float:
    """Of the processors, not of the clock, so that other work on the machine does not count."""
    start = time.process_time()
    step()
    return time.process_time() - start


def measure(shape, images: int, rounds: int) -> dict[str, list[float]]:
    """Seconds of each way in each round, the order turned round by round."""
    steps = steps_of(shape, images)
    for step in steps.values():
        step()  # compiles
    times = {name: [] for name in steps}
    for turn in range(rounds):
        for name in list(steps)[:: (1, -1)[turn % 2]]:
            times[name].append(seconds(steps[name]))
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=4096)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows = []
    for name, shape in SHAPES.items():
        times = measure(shape, options.images, options.rounds)
        first = np.array(next(iter(times.values())))
        for way, mine in times.items():
            ratio = np.median(np.array(mine) / first)
            rows.append((name, way, options.images, f"{np.median(mine):.3f}", f"{ratio:.3f}"))
    header = ["images", "way", "batch", "seconds", "ratio"]
    table = Table(*header, title="one training step of the paper's CNN")
    for row in rows:
        table.add_row(*map(str, row))
    Console().print(table)
    if options.out:
        with options.out.open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(header)
            writer.writerows(rows)


if __name__ == "__main__":
    main()
