"""Sweeps are vmap: 16 learning rates x 10 seeds together, against one compiled run at a time,
against a PyTorch loop.

    python benchmarks/sweep.py [--out benchmarks/results/sweep.csv]

The Adult network (one hidden layer of 32), GeneralUPM with the log loss, bags of 64, batches of
4096; seconds per run and epoch, after compilation, interleaved in one run. The PyTorch loop is what
a user would write by hand: a gather, the network, the weighted loss, Adam.
"""

import argparse
import csv
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import unbag
from unbag import losses, models, weights
from unbag.datasets import load_adult
from unbag.training import sweep

RATES, SEEDS, EPOCHS, ROUNDS = np.logspace(-4, -1, 16), tuple(range(10)), 3, 3


def together(adult, bags):
    sweep(
        lambda seed: models.adult_network(key=seed),
        bags,
        "upm",
        learning_rates=RATES,
        seeds=SEEDS,
        epochs=EPOCHS,
    )
    return len(RATES) * len(SEEDS)


def one_at_a_time(adult, bags):
    for seed in SEEDS[:4]:
        make = lambda s: models.adult_network(key=s)
        sweep(make, bags[seed], "upm", learning_rates=RATES[:1], seeds=(seed,), epochs=EPOCHS)
    return 4


def in_pytorch(adult, bags):
    import torch

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
    }
    times = {name: [] for name in ways}
    for round in range(ROUNDS + 1):
        for name, way in ways.items():
            start = time.perf_counter()
            runs = way(adult, bags)
            if round:
                times[name].append((time.perf_counter() - start) / runs / EPOCHS * 1e3)
    median = {name: float(np.median(values)) for name, values in times.items()}
    table = Table(
        "way",
        "ms per run and epoch",
        "times as fast together",
        title="Adult network, GeneralUPM, bags of 64",
    )
    for name, value in median.items():
        table.add_row(name, f"{value:.1f}", f"{value / median['160 runs together']:.1f}")
    Console().print(table)
    if options.out:
        with options.out.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["way", "ms_per_run_and_epoch"])
            writer.writerows((name, f"{value:.2f}") for name, value in median.items())


if __name__ == "__main__":
    main()
