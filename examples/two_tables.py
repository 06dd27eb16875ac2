"""Two tables with noisy counts, from start to report: make them, check, train, predict, and write a
page to read.

    python examples/two_tables.py

Writes events.parquet, reports.parquet, model.unbag, scores.parquet and report.html where it is run.
Everything after the tables is what `unbag check`, `train` and `predict` do on the command line.
"""

import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import unbag
from unbag.cli import app

SHORT = "--short" in sys.argv


def make_tables(n: int, size: int) -> np.ndarray:
    """Write the two tables that a user would have; returns the true rates, which no user has."""
    rng = np.random.default_rng(0)
    age, device = rng.normal(40, 12, n), rng.choice(["phone", "desk"], n, p=[0.7, 0.3])
    rate = 1 / (1 + np.exp(2 - (device == "desk") - (age - 40) / 12))
    bag = unbag.design_bags(
        np.arange(n), size=size, salt="example"
    )  # chance decides who is counted together
    pq.write_table(
        pa.table({"event": np.arange(n), "bag": bag, "age": age, "device": device}),
        "events.parquet",
    )
    names, number = np.unique(bag, return_inverse=True)
    noise = unbag.noise.laplace(epsilon=2)
    sales = np.bincount(number, weights=rng.random(n) < rate) + noise.sample(len(names), seed=1)
    variance = np.full(len(names), noise.variance)
    pq.write_table(
        pa.table({"bag": names, "sales": sales, "variance": variance}), "reports.parquet"
    )
    return rate


def unbag_command(line: str) -> None:
    """Run a line of the command line here."""
    print(f"\n$ unbag {line}", flush=True)
    app(line.split(), standalone_mode=False)


def main() -> None:
    rate = make_tables(4_000 if SHORT else 40_000, size=10)
    columns = "--on bag --total sales --noise variance --id event"
    unbag_command(f"check events.parquet reports.parquet {columns}")
    epochs = 3 if SHORT else 60
    files = "--out model.unbag --page report.html --force"
    unbag_command(f"train events.parquet reports.parquet {columns} --epochs {epochs} {files}")
    unbag_command("predict model.unbag events.parquet --id event --out scores.parquet --force")
    probability = pq.read_table("scores.parquet")["probability"].to_numpy()
    print(
        "\nThe data were made: the correlation with the true rates is "
        f"{np.corrcoef(probability, rate)[0, 1]:.2f}."
    )
    print("Open report.html.")


if __name__ == "__main__":
    main()
