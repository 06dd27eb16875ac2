"""How many bags is an old model worth, and how many 1,000 labels? Adult in bags of 64.

    python benchmarks/worth.py [--out benchmarks/results/worth.csv] [--seeds 2]

Test log loss of the additive model from bags alone, from bags beside 1,000 labelled people
(`with_labels`), and from bags that correct an old model (`offset`): one that learned from 1,000
labels, and that is stale: its level is off by half a logit. `worth` is how many further bags alone
would reach the same loss, by interpolation in the logarithm of the bags; empty beyond the table.
"""

import argparse
import csv
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
from rich.console import Console

import unbag
from unbag.datasets import read_adult
from unbag.learners import Additive, with_labels

BAGS, SIZE, LABELLED, STALE = (16, 32, 64, 128, 256, 480), 64, 1000, 0.5
HEADER = ("bags", "from", "log_loss", "standard_error", "worth")


def losses(seed: int) -> dict[tuple[int, str], float]:
    """Test log loss by number of bags and by what was learned from."""
    people, rich = read_adult()
    table, rng = pa.table(people), np.random.default_rng(seed)
    order = rng.permutation(len(rich))
    own, rest = order[:LABELLED], order[LABELLED:]
    test, test_rich = read_adult("test")
    test = pa.table(test)
    old = Additive().fit(unbag.from_rows(np.arange(LABELLED), y=rich[own], X=table.take(own)))
    result = {}
    for count in BAGS:
        rows = rest[: count * SIZE]
        X, y = table.take(rows), rich[rows]
        bag = np.arange(len(rows)) // SIZE
        alone = unbag.from_rows(bag, y=y, X=X)
        before = old.scores(X) + STALE
        corrected = unbag.from_rows(bag, y=y, X=X, offset=before)
        added = old.scores(test) + STALE
        scores = {
            "bags": Additive().fit(alone).scores(test),
            "bags and labels": Additive()
            .fit(with_labels(alone, table.take(own), rich[own]))
            .scores(test),
            "bags and old model": Additive().fit(corrected).scores(test) + added,
        }
        for name, score in scores.items():
            result[count, name] = float(unbag.losses.log.value(score, test_rich).mean())
    result[0, "old model"] = float(unbag.losses.log.value(added, test_rich).mean())
    result[0, "labels"] = float(unbag.losses.log.value(added - STALE, test_rich).mean())
    return result


def worth(curve: list[float], count: int, loss: float) -> str:
    """How many further bags alone reach a loss."""
    falling = np.minimum.accumulate(curve)
    if loss < falling[-1] or loss > falling[0]:
        return ""
    needed = np.exp(np.interp(-loss, -falling, np.log(BAGS)))
    return f"{needed - count:.0f}"


def main() -> None:
    """Run, print and write the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/worth.csv"))
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    runs = [losses(seed) for seed in range(options.seeds)]
    mean = {key: float(np.mean([run[key] for run in runs])) for key in runs[0]}
    curve = [mean[count, "bags"] for count in BAGS]
    rows = []
    for (count, name), value in sorted(mean.items()):
        spread = np.std([run[count, name] for run in runs], ddof=1) / np.sqrt(len(runs))
        further = worth(curve, count, value) if name != "bags" else ""
        rows.append((count, name, f"{value:.4f}", f"{spread:.4f}", further))
    with options.out.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([HEADER, *rows])
    console = Console()
    for row in [HEADER, *rows]:
        console.print("  ".join(f"{cell!s:>18}" for cell in row))


if __name__ == "__main__":
    main()
