"""Reports that vary less than chance allows are something else than reports of random bags."""

import numpy as np
import pyarrow as pa
import pytest

import unbag
from unbag import check_tables, diagnose
from unbag.bags import Reports, reports_too_even

SIZE, BAGS = 20, 60
EVENTS = pa.table({"bag": np.repeat(np.arange(BAGS), SIZE), "x": np.arange(BAGS * SIZE) % 7})
COUNT = np.random.default_rng(0).binomial(SIZE, 0.3, BAGS)
EVEN = "Reports of bags must vary at least as much as chance makes them"
PART = "A total must be a number of events, and all of these lie between 0 and 1, as proportions do"


def refused(values, **said):
    """What `join` refuses; SQL must say the same."""
    reports = pa.table({"bag": np.arange(BAGS), "n": values})
    said = {"on": "bag", "total": "n"} | said
    ours = check_tables(EVENTS, reports, **said).refused
    assert [r.rule for r in _by_sql(reports, said)] == [r.rule for r in ours]
    return [refusal.rule for refusal in ours]


def _by_sql(reports, said):
    sql, cases = pytest.importorskip("unbag.sql"), pytest.importorskip("cases.sql")
    return sql.confirm(cases.checks_of(EVENTS, reports, **said), refuse=False).refused


@pytest.mark.parametrize(
    ("values", "said", "rules"),
    [
        (COUNT, {}, []),
        (COUNT / SIZE, {"total": None, "proportion": "n"}, []),
        (COUNT / SIZE, {}, [PART]),
        (COUNT / SIZE, {"kind": "total"}, []),
        (COUNT / SIZE, {"noise": 2.0}, [PART, EVEN]),
        (COUNT / SIZE + 3, {"noise": 2.0}, [EVEN]),
        (np.full(BAGS, 6), {}, [EVEN]),
        (np.full(BAGS, 6), {"accept_bias": True}, []),
        (np.full(BAGS, 0.3), {"total": None, "proportion": "n"}, [EVEN]),
        (np.zeros(BAGS), {}, []),
        (COUNT, {"kind": "total"}, []),
        (np.full(BAGS, 6), {"kind": "total"}, [EVEN]),
        (np.full(BAGS, SIZE), {"kind": "total"}, [EVEN]),
        (np.full(BAGS, 7.3), {"kind": "total"}, [EVEN]),
        (np.full(BAGS, 7.3), {"kind": "total", "accept_bias": True}, []),
        (np.zeros(BAGS), {"kind": "total"}, []),
        (COUNT * 0.37, {"kind": "total"}, []),
        (COUNT / SIZE + 3, {"kind": "total", "noise": 2.0}, [EVEN]),
        (COUNT + np.sqrt(2) * np.sin(COUNT), {"kind": "total", "noise": 2.0}, []),
    ],
)
def test_reports_that_are_none_are_refused_alike_by_join_and_sql(values, said, rules):
    assert refused(values, **said) == rules


@pytest.mark.parametrize(
    ("classes", "rules"),
    [
        ({"a": COUNT, "b": SIZE - COUNT}, []),
        ({"a": COUNT // 2, "b": COUNT - COUNT // 2, "c": SIZE - COUNT}, []),
        ({"a": np.full(BAGS, 6), "b": COUNT, "c": SIZE - 6 - COUNT}, [EVEN]),
        ({"a": np.full(BAGS, 5), "b": np.full(BAGS, 15)}, [EVEN]),
        ({"a": np.full(BAGS, 20), "b": np.zeros(BAGS)}, []),
    ],
)
def test_histograms_are_looked_at_class_by_class(classes, rules):
    reports = pa.table({"bag": np.arange(BAGS), **classes})
    said = {"on": "bag", "counts": list(classes)}
    ours = check_tables(EVENTS, reports, **said).refused
    assert [r.rule for r in ours] == [r.rule for r in _by_sql(reports, said)] == rules


def test_a_diagnosis_does_not_call_equal_reports_random():
    bags = unbag.Bags(np.repeat(np.arange(BAGS), SIZE), np.full(BAGS, 0.3))
    diagnosis = diagnose(bags)
    assert not diagnosis.random
    assert "vary less than one in a million sets of random bags" in diagnosis.verdict


@pytest.mark.parametrize("size", [1, 2, 8, 64])
@pytest.mark.parametrize("rate", [0.005, 0.1, 0.5])
def test_random_bags_are_not_called_too_even(size, rate):
    """400 sets of bags for each case; the chance of a false alarm in any is below 1 in 200."""
    rng = np.random.default_rng(1)
    for bags in (2, 5, 20, 200):
        sizes = rng.integers(max(size // 2, 1), size + 1, bags)
        for _ in range(100):
            count, noise = rng.binomial(sizes, rate), rng.laplace(size=bags)
            noisy = {"noise": np.full(bags, 2.0), "kind": "total"}
            poisson = {"kind": "total"}
            assert not reports_too_even(Reports(sizes, count / sizes))
            assert not reports_too_even(Reports(sizes, (count + noise) / sizes, **noisy))
            # counts that are all equal are refused whatever chance says: nothing can be learned
            if count.any():
                assert not reports_too_even(Reports(sizes, 3 + count / sizes, **poisson))
            assert not reports_too_even(
                Reports(sizes, rng.poisson(sizes * rate) / sizes, **poisson)
            )
