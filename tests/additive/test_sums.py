"""The additive model from sums over parts: the same as of all bags at once, wherever parts are."""

import importlib.util
import os
import sys
import time

import numpy as np
import pyarrow as pa
import pytest
from scipy import special

import unbag
from cases.spark import spark_session
from unbag.additive._counts import Spread, counts_of
from unbag.additive._sums import LocalParts, SumsAt, SumsFit, added, fit_parts, narrow_part
from unbag.additive._terms import terms_of
from unbag.learners import Additive

ROWS, BAG = 4000, 10


def world(kind="binary", seed=0):
    """Bags with a column of levels and a number with gaps."""
    rng = np.random.default_rng(seed)
    code, x = rng.integers(0, 6, ROWS), rng.normal(size=ROWS)
    score = -0.5 + rng.normal(0, 0.7, 6)[code] + 0.8 * x
    x[:40] = np.nan
    X = pa.table({"shop": [f"s{i}" for i in code], "x": pa.array(x, from_pandas=True)})
    y = {
        "binary": rng.random(ROWS) < special.expit(score),
        "total": rng.poisson(np.exp(score)),
        "histogram": np.searchsorted([0.3, 1.2], score + rng.logistic(size=ROWS)),
    }[kind]
    return unbag.random_bags(X, y, size=BAG, seed=0, kind=kind)


def parts_of(bags, terms, number=4, **options):
    pieces = np.array_split(np.arange(len(bags)), number)
    return [narrow_part(bags.take(piece), terms, **options) for piece in pieces]


@pytest.fixture(scope="module")
def binary():
    bags = world()
    terms, _ = terms_of(bags.X)
    return bags, terms, parts_of(bags, terms)


@pytest.mark.parametrize("kind, classes", [("binary", 1), ("total", 1), ("histogram", 3)])
def test_sums_of_parts_are_those_of_dense_matrices(kind, classes):
    bags = world(kind)
    terms, design = terms_of(bags.X)
    rng = np.random.default_rng(1)
    b = rng.normal(0, 0.1, (len(terms.group), classes))
    sums = added(map(SumsAt(terms, b, Spread()), parts_of(bags, terms)))
    counts = counts_of(bags)
    moments = counts.moments(design.Z @ (design.T @ b))
    W = counts.whitener(moments.h, Spread())
    X = design.Z.csr() @ design.T
    S, slopes = counts.S.toarray(), counts.slopes(moments.h)
    J = W(np.block([[S * slope @ X for slope in row] for row in slopes]))
    np.testing.assert_allclose(sums.gram, J.T @ J, rtol=2e-4, atol=1e-4)
    gradient = J.T @ W(counts.observed - moments.mean)
    np.testing.assert_allclose(sums.gradient, gradient, rtol=2e-3, atol=1e-3)
    assert sums.value == pytest.approx(counts.log_likelihood(moments, W, Spread()), rel=1e-5)
    assert sums.rows == ROWS


def test_rows_are_kept_as_small_codes_and_single_precision(binary):
    _, _, parts = binary
    for slot in parts[0].Z.slots[1:]:
        kept = slot.place if slot.value is None else slot.value
        assert kept.dtype in (np.int8, np.float32)


@pytest.mark.parametrize("kind, classes", [("binary", 1), ("total", 1), ("histogram", 3)])
def test_the_model_of_parts_is_that_of_all_bags(kind, classes):
    bags = world(kind)
    if kind == "histogram":  # takes longer
        bags = bags.take(range(150))
    terms, _ = terms_of(bags.X)
    ours = fit_parts(LocalParts(parts_of(bags, terms)), terms, kind, classes=classes)
    whole = Additive().fit(bags)
    assert np.abs(ours.scores(bags.X) - whole.scores(bags.X)).max() < 0.1
    assert ours.log_evidence == pytest.approx(whole.log_evidence, abs=0.1)
    np.testing.assert_allclose(ours.errors(bags.X), whole.errors(bags.X), rtol=0.05, atol=1e-3)
    np.testing.assert_allclose(ours.strength, whole.strength, atol=0.02)


def test_the_number_of_parts_does_not_matter(binary):
    bags, terms, parts = binary
    one, four = (
        fit_parts(LocalParts(some), terms, "binary") for some in (parts_of(bags, terms, 1), parts)
    )
    np.testing.assert_allclose(four.b, one.b, rtol=1e-8, atol=1e-10)


def test_a_fold_that_is_left_out_has_no_part_in_the_model(binary):
    bags, terms, _ = binary
    parts = parts_of(bags, terms, folds=2, seed=3)
    fold = np.concatenate([part.fold for part in parts])
    kept = bags.take(np.flatnonzero(fold != 0))
    without = SumsFit(LocalParts(parts), terms, "binary", without=0)
    state = without.maximise()
    assert len(state.linear.place.sums.own) == len(kept)
    alone = fit_parts(LocalParts([narrow_part(kept, terms)]), terms, "binary")
    np.testing.assert_allclose(state.b, alone.b, atol=1e-6)


def test_too_many_coefficients_and_no_parts_are_refused(binary, monkeypatch):
    _, terms, _ = binary
    monkeypatch.setattr("unbag.additive._sums.MOST", 5)
    with pytest.raises(unbag.Refused, match="at most 5 coefficients"):
        SumsFit(LocalParts([]), terms, "binary")
    with pytest.raises(unbag.Refused, match="at least one part"):
        added([])


@pytest.mark.engines
@pytest.mark.skipif(not importlib.util.find_spec("ray"), reason="Ray is not installed")
@pytest.mark.filterwarnings("ignore:os.fork")  # Ray starts its processes by a fork of this one
def test_sums_on_two_ray_workers_are_those_of_one_process(binary, monkeypatch):
    # the niceness that Ray gives its workers lets them starve on a busy machine
    quiet = {
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_AUTH_MODE": "disabled",
        "RAY_worker_niceness": "0",
    }
    for name, value in quiet.items():
        monkeypatch.setenv(name, value)
    import ray

    from unbag.additive._sums import RayParts

    _, terms, parts = binary
    store = 80 * 2**20
    ray.init(num_cpus=2, include_dashboard=False, object_store_memory=store, log_to_driver=False)
    try:
        far = RayParts.of(parts)
        ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers lack the tests
        workers = set(far.map(process_of))
        model = fit_parts(far, terms, "binary")
    finally:
        ray.shutdown()
    assert os.getpid() not in workers
    assert len(workers) == 2
    here = fit_parts(LocalParts(parts), terms, "binary")
    np.testing.assert_allclose(model.b, here.b, rtol=1e-9, atol=1e-12)


def process_of(part):
    """The process that works on a part."""
    time.sleep(0.3)  # long enough for a second worker to take the next part
    return os.getpid()


@pytest.mark.engines
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning", "ignore:os.fork")
def test_sums_on_two_spark_executors_are_those_of_one_process(binary, monkeypatch, tmp_path):
    from unbag.additive._sums import SparkParts

    _, terms, parts = binary
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    with spark_session(tmp_path, threads=2) as spark:
        far = SparkParts.of(spark.sparkContext, parts, partitions=2)
        model = fit_parts(far, terms, "binary")
    here = fit_parts(LocalParts(parts), terms, "binary")
    np.testing.assert_allclose(model.b, here.b, rtol=1e-9, atol=1e-12)
