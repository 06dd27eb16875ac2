"""The additive model from sums over parts: the same as of all bags at once, wherever parts are."""

import sys
from dataclasses import replace

import numpy as np
import pytest

import unbag
from cases.spark import spark_session
from cases.sums import parts_of, world
from unbag.additive._counts import Spread, counts_of
from unbag.additive._sums import LocalParts, SumsAt, SumsFit, added, fit_parts, narrow_part
from unbag.additive._terms import terms_of
from unbag.learners import Additive


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
    assert sums.rows == len(bags.bag)


@pytest.mark.parametrize("kind, classes", [("binary", 1), ("total", 1), ("histogram", 3)])
def test_pieces_of_a_part_add_up(kind, classes, monkeypatch):
    bags = world(kind)
    bags = replace(bags, offset=np.random.default_rng(2).normal(size=len(bags.bag)))
    terms, _ = terms_of(bags.X)
    b = np.random.default_rng(1).normal(0, 0.1, (len(terms.group), classes))
    (part,) = parts_of(bags, terms, 1, folds=3)
    at = SumsAt(terms, b, Spread(), without=1)
    whole = at(part)
    monkeypatch.setattr("unbag.additive._sums.AT_ONCE", 64 * len(b) * classes * max(classes - 1, 1))
    assert [len(piece.bags) for piece in part.pieces(64)] == [64] * 6 + [16]
    order = slice(None) if kind != "histogram" else slice(0)  # contrasts lie piece by piece
    for one, other in zip(at(part), whole, strict=True):
        if np.shape(one) == np.shape(whole.residual):
            one, other = one[order], other[order]
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


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
