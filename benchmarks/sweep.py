"""Sweeps are vmap: 16 learning rates x 10 seeds together, against one compiled run at a time,
against a PyTorch loop; and 5 folds and all bags x 2 rates on shared batches, against one at a time.

    python benchmarks/sweep.py [--out benchmarks/results/sweep.csv]

The Adult network (one hidden layer of 32) and bags of 64. Sweeps: GeneralUPM with the log loss,
batches of 4096. Folds: the anchored method, batches of 2048, as the network learner has them; alone
a fold is trained on its own bags, which are fewer. Milliseconds of CPU per run and epoch on one
core, which say the same on a busy machine, after compilation, the least of some rounds, interleaved
in one run. The PyTorch loop is what a user would write by hand: a gather, the network, the weighted
loss, Adam.
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
from rich.table import Table

import unbag
from unbag import losses, models, weights
from unbag.datasets import load_adult
from unbag.training import Lanes, TrainingConfig, sweep

RATES, SEEDS, EPOCHS, ROUNDS = np.logspace(-4, -1, 16), tuple(range(10)), 3, 5
FOLDS, FOLD_RATES, FOLD_BATCH = 5, (3e-3, 1e-2), 2048


def make(seed):
    return models.adult_network(key=seed)


def together(bags):
    sweep(make, bags, "upm", learning_rates=RATES, seeds=SEEDS, epochs=EPOCHS)
    return len(RATES) * len(SEEDS)


def one_at_a_time(bags):
    for seed in SEEDS[:4]:
        sweep(make, bags[seed], "upm", learning_rates=RATES[:1], seeds=(seed,), epochs=EPOCHS)
    return 4


def in_pytorch(bags):
    import torch

    torch.set_num_threads(1)
    for seed in SEEDS[:4]:
        torch.manual_seed(seed)
        model = torch.nn.Sequential(
            torch.nn.Linear(108, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1)
        )
        adam = torch.optim.Adam(model.parameters(), lr=1e-3)
        for epoch in range(EPOCHS):
            for batch in bags[seed].batches(4096, seed=seed, epoch=epoch):
                W = weights.upm(batch.size, *batch.components())[batch.bag]
                score = model(torch.as_tensor(batch.X))[:, 0]
                value = (
                    torch.as_tensor(W, dtype=torch.float32) * losses.log.components(score)
                ).sum()
                adam.zero_grad()
                value.backward()
                adam.step()
    return 4


def learned_bags(bags):
    """Which bags each fold learns from; the last one learns from all."""
    return np.arange(len(bags)) % FOLDS != np.arange(FOLDS + 1)[:, None]


def folds_together(bags):
    learns = np.repeat(learned_bags(bags[0]), len(FOLD_RATES), axis=0)
    starts = [make(number) for number in range(len(learns))]
    config = TrainingConfig(batch=FOLD_BATCH)
    lanes = Lanes(starts, bags[0], learns, FOLD_RATES * (FOLDS + 1), config=config)
    lanes.advance(EPOCHS * len(lanes.loader.plan(1)))
    jax.block_until_ready(lanes.average)
    return len(learns)


def folds_one_at_a_time(bags):
    own = [bags[0].take(np.flatnonzero(learns)) for learns in learned_bags(bags[0])]
    for each in own:
        for rate in FOLD_RATES:
            sweep(make, each, learning_rates=[rate], epochs=EPOCHS, batch=FOLD_BATCH)
    return len(own) * len(FOLD_RATES)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    adult = load_adult()
    bags = [unbag.random_bags(adult.X, adult.y, size=64, seed=seed) for seed in SEEDS]
    ways = {
        "160 runs together": together,
        "one compiled run at a time": one_at_a_time,
        "plain PyTorch loop": in_pytorch,
        "folds x rates together": folds_together,
        "folds x rates one at a time": folds_one_at_a_time,
    }
    least = dict.fromkeys(ways, np.inf)
    for round in range(ROUNDS + 1):
        for name, way in ways.items():
            start = time.process_time()
            runs = way(bags)
            spent = (time.process_time() - start) / runs / EPOCHS * 1e3
            if round:
                least[name] = min(least[name], spent)
    table = Table("way", "ms of CPU per run and epoch", "times as fast together")
    lines = []
    for name, value in least.items():
        beside = "folds x rates together" if name.startswith("folds") else "160 runs together"
        lines.append((name, f"{value:.2f}", f"{value / least[beside]:.1f}"))
        table.add_row(*lines[-1])
    Console().print(table)
    if options.out:
        with options.out.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["way", "cpu_ms_per_run_and_epoch", "times_as_fast_together"])
            writer.writerows(lines)


if __name__ == "__main__":
    main()
