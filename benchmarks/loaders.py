"""What do the loaders give? A line for each data set whose files are there (`UNBAG_DATA`), and for
the synthetic ones.

UNBAG_DATA=... python benchmarks/loaders.py [--out benchmarks/results/loaders.csv]
"""

import argparse
import csv
from functools import partial
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from unbag import datasets as d

LOADERS = (
    d.load_adult,
    d.load_mnist,
    partial(d.load_mnist, "digits"),
    d.load_cifar10,
    partial(d.load_cifar10, "cat_rest"),
    d.load_higgs,
    partial(d.load_higgs, high_level=True),
    d.load_bike_sharing,
    d.load_fremtpl2,
    *(
        partial(make, seed=0)
        for make in (d.make_gaussian, d.make_heavy_tailed, d.make_campaigns, d.make_counts)
    ),
)
HEAD = (
    "name",
    "kind",
    "rows",
    "test_rows",
    "features",
    "mean_label",
    "mean_test_label",
    "official",
    "note",
)


def line(data: d.Dataset) -> tuple:
    means = (
        f"{np.mean(y, dtype=float):.4f}" if data.kind != "histogram" else ""
        for y in (data.y, data.y_test)
    )
    return (
        data.name,
        data.kind,
        len(data.y),
        len(data.y_test),
        data.X.shape[1],
        *means,
        data.official,
        data.note,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    lines = []
    for load in LOADERS:
        try:
            lines.append(line(load()))
        except FileNotFoundError as error:
            Console(stderr=True).print(str(error))
    table = Table(*HEAD)
    for row in lines:
        table.add_row(*map(str, row))
    Console(width=200).print(table)
    if options.out:
        with options.out.open("w", newline="") as file:
            csv.writer(file).writerows([HEAD, *lines])


if __name__ == "__main__":
    main()
