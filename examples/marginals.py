"""Learn from marginal tables: made clicks with known truth, and Adult beside random bags.

    python examples/marginals.py

Nobody reports single sales. There are three tables of totals with noise; every event is counted in
each of them, and no bag is random.
"""

import sys
from dataclasses import replace

import numpy as np
import pyarrow as pa
from scipy.special import logit

import unbag
from unbag.datasets import make_conversions, read_adult
from unbag.learners import Additive, identifiable

SHORT, NOISE = "--short" in sys.argv, 2.0


def tabulated(events: pa.Table, keys: list[str], label: np.ndarray, seed: int, noise=NOISE):
    """Totals by these keys, with Laplace noise: what a clean room would export."""
    table = events.select(keys).append_column("sales", pa.array(label.astype(float)))
    table = table.group_by(keys).aggregate([("sales", "sum")])
    drawn = np.random.default_rng(seed).laplace(0, np.sqrt(noise / 2), table.num_rows)
    noisy = np.asarray(table["sales_sum"]) + drawn
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
    print("what the tables can tell:", *(f"{c.column} {c.share:.2f}" for c in identifiable(cells)))
    fitted = unbag.fit(cells, folds=2)
    score, truth = fitted.scores(made.test), made.test_truth
    print(*fitted.verdict, sep="\n")
    trivial = log_loss(np.full(len(truth), logit(made.label.mean())), truth)
    way = (trivial - log_loss(score, truth)) / (trivial - log_loss(logit(truth), truth))
    print(f"clicks: {way:.0%} of the way from the mean rate to the true probabilities")


def adult() -> None:
    (people, rich), (others, truth) = read_adult(), read_adult("test")
    X, test = pa.table(people), pa.table(others)
    events = X.append_column("age band", pa.array(np.minimum(people["age"] // 10 * 10, 70)))
    keys = [["education", "sex"], ["occupation"], ["age band", "marital-status"]]

    def tables(noise: float) -> unbag.tables.Marginals:
        counted = [tabulated(events, key, rich, i, noise) for i, key in enumerate(keys)]
        said = {"total": "sales", "noise": noise, "features": X.schema.names}
        return unbag.join_marginals(events, counted, **said)

    cells = tables(NOISE)
    bags = unbag.random_bags(X, rich, size=len(rich) // len(cells), seed=0)
    noisy = bags.report + np.random.default_rng(9).laplace(0, 1, len(bags)) / bags.size
    bags = replace(bags, report=noisy, noise=np.full(len(bags), NOISE))
    reports = {
        f"{len(cells)} totals of three tables, noise variance 2": cells,
        f"{len(cells)} totals of three tables, budget of one bag (variance 18)": tables(9 * NOISE),
        f"{len(bags)} random bags, noise variance 2": bags,
        f"{len(rich)} labels": unbag.Bags(np.arange(len(rich)), rich, X=X),
    }
    for name, known in list(reports.items())[: 1 if SHORT else 4]:
        loss = log_loss(Additive().fit(known).scores(test), truth)
        print(f"Adult, {name}: test log loss {loss:.3f}")


if __name__ == "__main__":
    clicks()
    adult()
