"""Learn from marginal tables: made clicks with known truth, and Adult beside random bags.

    python examples/marginals.py

Nobody reports single sales. There are three tables of totals with noise; every event is counted in
each of them, and no bag is random.
"""

import sys

import numpy as np
import pyarrow as pa
from scipy.special import logit

import unbag
from unbag.datasets import make_conversions, read_adult
from unbag.learners import Additive, identifiable

SHORT = "--short" in sys.argv
NOISE = 2.0


def tabulated(events: pa.Table, keys: list[str], label: np.ndarray, seed: int) -> pa.Table:
    """Totals by these keys, with Laplace noise: what a clean room would export."""
    table = events.select(keys).append_column("sales", pa.array(label.astype(float)))
    table = table.group_by(keys).aggregate([("sales", "sum")])
    noise = np.random.default_rng(seed).laplace(0, np.sqrt(NOISE / 2), table.num_rows)
    noisy = np.asarray(table["sales_sum"]) + noise
    return table.select(keys).append_column("sales", pa.array(noisy))


def log_loss(score: np.ndarray, truth: np.ndarray) -> float:
    return float(np.mean(np.logaddexp(0, score) - truth * score))


def clicks() -> None:
    rows = 20_000 if SHORT else 100_000
    made = make_conversions(rows, 20_000, seed=0, publishers=200)
    keys = [["campaign"], ["country", "device"], ["publisher"]]
    tables = [tabulated(made.events, key, made.label, i) for i, key in enumerate(keys)]
    cells = unbag.join_marginals(made.events, tables, total="sales", noise=NOISE)
    print(cells)
    told = [f"{one.column} {one.share:.2f}" for one in identifiable(cells)]
    print("what the tables can tell:", ", ".join(told))
    score = Additive().fit(cells).scores(made.test)
    truth = made.test_truth
    trivial = log_loss(np.full(len(truth), logit(made.label.mean())), truth)
    way = (trivial - log_loss(score, truth)) / (trivial - log_loss(logit(truth), truth))
    print(f"clicks: {way:.0%} of the way from the mean rate to the true probabilities")


def adult() -> None:
    (people, rich), (others, truth) = read_adult(), read_adult("test")
    X = pa.table(people)
    band = np.minimum(people["age"] // 10 * 10, 70)
    events = X.append_column("age band", pa.array(band))
    keys = [["education", "sex"], ["occupation"], ["age band", "marital-status"]]
    tables = [tabulated(events, key, rich, i) for i, key in enumerate(keys)]
    cells = unbag.join_marginals(
        events, tables, total="sales", noise=NOISE, features=X.schema.names
    )
    bags = unbag.random_bags(X, rich, size=len(rich) // len(cells), seed=0)
    for name, reports in (("tables", cells), ("random bags, no noise", bags)):
        loss = log_loss(Additive().fit(reports).scores(pa.table(others)), truth)
        print(f"Adult, {len(cells)} numbers from {name}: test log loss {loss:.3f}")


if __name__ == "__main__":
    clicks()
    adult()
