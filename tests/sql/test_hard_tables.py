"""Random tables with faults of every kind: `join` in memory and SQL say the same of them."""

import numpy as np
import pyarrow as pa
import pytest

from cases.sql import checks_of
from unbag import check_tables, sql
from unbag.tables import RULES

ODD = [None, np.nan, np.inf, -1.0, 0.5, 2.5, 1e6, 1e19]
WORDS = ["observed", None, "pending", "suppressed_by_size", "suppressed_by_value", "strange"]
OF_WEIGHTS = {
    RULES[name].rule for name in ("stratum_without_report", "lone_bag", "negative_weight")
}


def hard(seed):
    """Events, reports and what is said of them, each part of which may be missing or wrong."""
    rng = np.random.default_rng(seed)
    bags, often = int(rng.integers(2, 12)), lambda share: rng.random() < share
    bag = rng.integers(0, bags, rng.integers(6, 60))
    reported = np.flatnonzero(rng.random(bags + 2) < 0.85)
    size = np.bincount(bag, minlength=bags + 2)[reported]
    text = often(0.5)

    def ids(numbers):
        return [f"b{i}" for i in numbers] if text else numbers.tolist()

    def column(values):
        spoiled = [ODD[rng.integers(len(ODD))] if often(0.08) else float(v) for v in values]
        return pa.array(spoiled, pa.float64())

    events, reports, said = {"bag": ids(bag)}, {"bag": ids(reported)}, {"on": "bag"}
    ones = rng.binomial(size, 0.4)
    form = rng.choice(["total", "proportion", "counts"])
    reports["n"], said[form] = column(ones), "n"
    if form == "proportion":
        reports["n"] = column(rng.random(len(size)))
    if form == "counts":
        reports["m"], said["counts"] = column(size - ones), ["n", "m"]
    elif often(0.3):
        said |= {"kind": "total", "cap": float(rng.integers(1, 4))}
    if often(0.4):
        reports["size"] = column(size)
        said |= {"size": "size", "wrong_sizes": str(rng.choice(["refuse", "leave_out"]))}
    if often(0.4):
        reports["noise"], said["noise"] = column(rng.integers(0, 3, len(size))), "noise"
    if often(0.5):
        chosen = rng.choice(len(WORDS), len(size), p=[0.5, 0.2, 0.1, 0.1, 0.05, 0.05])
        reports["status"], said["status"] = [WORDS[i] for i in chosen], "status"
    if often(0.3):
        events["part"], said["stratum"] = [f"s{b % 2}" for b in bag], "part"
    if often(0.3):
        events["time"] = rng.integers(0, 100, len(bag))
        said |= {"time": "time", "cut": int(rng.integers(40, 130))}
    return pa.table(events), pa.table(reports), said | {"accept_bias": bool(often(0.3))}


@pytest.mark.parametrize("seed", range(8))
def test_join_and_sql_say_the_same_of_hard_tables(seed):
    events, reports, said = hard(seed)
    database = sql.confirm(checks_of(events, reports, **said), refuse=False)
    known = tuple(one for one in database.refused if one.rule not in OF_WEIGHTS)
    assert str(check_tables(events, reports, **said)) == str(database._replace(refused=known))
