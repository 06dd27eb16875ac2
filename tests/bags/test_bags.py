import gc
import weakref

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from unbag import Bags, from_rows, random_bags
from unbag.bags import batch_plan


def labelled(n=100, seed=0):
    rng = np.random.default_rng(seed)
    X = np.arange(n, dtype=float)[:, None]
    return X, rng.integers(0, 2, size=n)


def arrow(columns):
    return pa.table({str(i): column for i, column in enumerate(columns.T)})


def test_random_bags_report_the_mean_label_of_their_rows():
    X, y = labelled(103)
    bags = random_bags(X, y, size=10, seed=1)
    assert (len(bags), bags.dropped, len(bags.bag)) == (10, 3, 100)
    np.testing.assert_array_equal(bags.X[:, 0], bags.rows)
    for j in range(10):
        assert bags.report[j] == pytest.approx(y[bags.rows[bags.bag == j]].mean())
    assert bags.prior == pytest.approx(y[bags.rows].mean())


def test_random_bags_keep_the_order_of_the_rows_and_shuffle_who_is_together():
    X, y = labelled()
    bags = random_bags(X, y, size=10, seed=1)
    assert (np.diff(bags.rows) > 0).all()
    assert len(set(bags.bag[:10])) > 3
    assert not np.array_equal(bags.bag, random_bags(X, y, size=10, seed=2).bag)
    np.testing.assert_array_equal(bags.bag, random_bags(X, y, size=10, seed=1).bag)


def test_random_bags_may_have_given_sizes():
    X, y = labelled(20)
    bags = random_bags(X, y, size=[3, 1, 7], seed=0)
    assert bags.size.tolist() == [3, 1, 7]
    assert bags.dropped == 9


def test_random_bags_stay_within_their_stratum():
    X, y = labelled(50)
    campaign = np.array(["a", "b"])[(np.arange(50) >= 23).astype(int)]
    bags = random_bags(X, y, size=4, seed=0, stratum=campaign)
    assert bags.dropped == 23 % 4 + 27 % 4
    for j in range(len(bags)):
        assert set(campaign[bags.rows[bags.bag == j]]) == {"ab"[bags.stratum[j]]}
    first = bags.stratum[bags.bag] == 0
    assert bags.prior[0] == pytest.approx(y[bags.rows[first]].mean())
    assert bags.components().prior.shape == (2, 2)


def test_histograms_and_counts_are_averaged_too():
    y = np.array([0, 2, 2, 1])
    histogram = random_bags(None, y, size=4, seed=0, kind="histogram")
    np.testing.assert_allclose(histogram.report, [[0.25, 0.25, 0.5]])
    np.testing.assert_allclose(histogram.components().report, histogram.report)
    wider = random_bags(None, y, size=4, seed=0, kind="histogram", classes=5)
    assert wider.report.shape == (1, 5)
    total = random_bags(None, y, size=2, seed=0, kind="total")
    assert total.prior == pytest.approx(1.25)
    np.testing.assert_allclose(total.components().prior, [1, 1.25])


@pytest.mark.parametrize("ids", [[7, 3, 7, 3, 9], ["x", "b", "x", "b", "y"]])
def test_from_rows_takes_any_ids_in_any_order(ids):
    bags = from_rows(ids, [0.5, 0.0, 0.5, 0.0, 1.0], X=np.arange(5.0))
    assert bags.names.tolist() == sorted(set(ids))
    assert [bags.names[b] for b in bags.bag] == ids
    by_name = dict(zip(bags.names.tolist(), bags.report, strict=True))
    assert by_name == {ids[0]: 0.5, ids[1]: 0.0, ids[4]: 1.0}
    np.testing.assert_array_equal(bags.X, np.arange(5.0))


def test_from_rows_takes_mappings_labels_sizes_noise_and_strata():
    ids = ["u", "v", "u", "w", "w", "z"]
    bags = from_rows(
        ids,
        {"u": 0.5, "v": 1.3, "w": -0.2, "z": 1.0},
        size={"u": 2, "v": 1, "w": 2, "z": 1},
        noise={"u": 1, "v": 2, "w": 3, "z": 4},
        stratum={"u": "north", "v": "south", "w": "south", "z": "north"},
    )
    assert bags.noise.tolist() == [1, 2, 3, 4]
    assert bags.stratum.tolist() == [0, 1, 1, 0]
    np.testing.assert_allclose(bags.prior, [2 / 3, (1.3 - 0.4) / 3])
    from_labels = from_rows(ids, y=[1, 0, 0, 1, 1, 0])
    assert from_labels.report.tolist() == [0.5, 0, 1, 0]


def test_the_prior_is_the_size_weighted_mean_report_unless_it_is_known():
    bag, report = np.array([0, 0, 0, 1]), np.array([1 / 3, 1.0])
    assert Bags(bag, report).prior == pytest.approx(0.5)
    assert Bags(bag, report, known_prior=0.4).prior == 0.4
    np.testing.assert_allclose(Bags(bag, report, known_prior=0.4).components().prior, [1, 0.4])


@given(
    sizes=st.lists(st.integers(1, 40), min_size=2, max_size=30),
    instances=st.integers(1, 100),
    seed=st.integers(0, 5),
    strata=st.integers(1, 3),
)
@settings(max_examples=200)
def test_an_epoch_visits_each_bag_once_in_batches_of_two_or_more(sizes, instances, seed, strata):
    size = np.array(sizes)
    stratum = np.arange(len(size)) % strata
    stratum = None if strata == 1 or np.bincount(stratum).min() < 2 else stratum
    plan = batch_plan(size, instances, stratum=stratum, seed=seed)
    assert sorted(np.concatenate(plan)) == list(range(len(size)))
    assert min(map(len, plan)) >= 2
    if stratum is not None:
        for batch in plan:
            counts = np.bincount(stratum[batch])
            assert counts[counts > 0].min() >= 2


@pytest.mark.parametrize("k", [1, 3, 64, 1024])
def test_batches_hold_about_as_many_instances_as_asked(k):
    plan = batch_plan(np.full(40000 // k, k), 4096, seed=0)
    counts = [len(batch) * k for batch in plan[:-1]]
    assert all(abs(count - 4096) <= k for count in counts)
    assert len(plan[-1]) >= 2


def test_bags_larger_than_half_a_batch_come_in_twos_and_a_last_single_bag_joins_the_one_before():
    assert sorted(map(len, batch_plan(np.full(5, 4096), 4096, seed=0))) == [2, 3]


def test_the_order_depends_on_seed_and_epoch_and_membership_on_neither():
    X, y = labelled()
    bags = random_bags(X, y, size=5, seed=0)
    orders = {}
    for seed, epoch in [(0, 0), (0, 1), (1, 0)]:
        batches = list(bags.batches(20, seed=seed, epoch=epoch))
        orders[seed, epoch] = np.concatenate([batch.rows for batch in batches]).tolist()
        for batch in batches:
            for j in range(len(batch)):
                own = batch.rows[batch.bag == j]
                original = bags.bag[np.isin(bags.rows, own)]
                assert len(set(original)) == 1
                assert batch.report[j] == bags.report[original[0]]
                np.testing.assert_array_equal(batch.X[batch.bag == j, 0], own)
    assert len(set(map(tuple, orders.values()))) == 3
    again = np.concatenate([batch.rows for batch in bags.batches(20, seed=0, epoch=1)])
    assert again.tolist() == orders[0, 1]


def test_batches_keep_the_prior_of_all_bags_and_splits_take_their_own():
    X, y = labelled()
    bags = random_bags(X, y, size=5, seed=0)
    assert all(batch.prior == bags.prior for batch in bags.batches(20, seed=0))
    train, held_out = bags.split(0.75, seed=3)
    assert (len(train), len(held_out)) == (15, 5)
    assert train.prior == pytest.approx(y[train.rows].mean())
    assert held_out.prior == pytest.approx(y[held_out.rows].mean())
    assert not set(train.rows) & set(held_out.rows)
    assert len(train.rows) + len(held_out.rows) == 100


def test_the_offset_of_an_instance_goes_with_it_through_parts_and_batches():
    X, y = labelled(60)
    bags = random_bags(X, y, size=5, seed=0, offset=X[:, 0] / 7)
    parts = [bags, bags.take([3, 1]), *bags.split(0.5, seed=0), *bags.batches(20, seed=0)]
    for part in parts:
        np.testing.assert_array_equal(part.offset, part.X[:, 0] / 7)
    ids = np.arange(60) // 5
    np.testing.assert_array_equal(from_rows(ids, y=y, X=X, offset=X[:, 0]).offset, X[:, 0])
    with pytest.raises(ValueError, match="offset must have one entry for each instance"):
        Bags(bags.bag, bags.report, offset=np.zeros(3))
    with pytest.raises(ValueError, match="An offset must be finite"):
        Bags(bags.bag, bags.report, offset=np.full(60, np.nan))


def test_a_split_gives_each_part_two_bags_of_each_stratum():
    X, y = labelled()
    bags = random_bags(X, y, size=5, seed=0, stratum=np.arange(100) // 25)
    for fraction in (0.1, 0.5, 0.9):
        for part in bags.split(fraction, seed=0):
            assert np.bincount(part.stratum, minlength=4).min() >= 2


@pytest.mark.parametrize(
    "make", [pd.DataFrame, pl.from_numpy, sparse.csr_array, arrow], ids=lambda m: m.__name__
)
def test_data_frames_sparse_matrices_and_arrow_tables_are_taken_by_row(make):
    X = make(np.arange(1.0, 9.0)[:, None])
    batch = next(random_bags(X, np.tile([0, 1], 4), size=2, seed=0).batches(4, seed=0))
    values = batch.X.toarray() if make is sparse.csr_array else np.asarray(batch.X)
    np.testing.assert_array_equal(values[:, 0], batch.rows + 1)


def test_bags_say_what_they_are():
    bags = random_bags(None, np.tile([0, 1], 52), size=10, seed=0, stratum=np.arange(104) // 52)
    assert repr(bags) == (
        "Bags(10 bags of 10; 100 instances; binary, prior [0.48, 0.48]; 2 strata; 4 leftover "
        "rows dropped)"
    )


def test_reports_outside_their_range_are_normal_once_noise_is_declared():
    bag = [0, 0, 1, 1]
    assert Bags(bag, [1.4, -0.2], noise=[4, 4]).prior == pytest.approx(0.6)
    assert Bags(bag, [[1.2, -0.1], [0.3, 0.3]], "histogram", noise=[4, 4]).noise.tolist() == [4, 4]


def test_bags_are_freed_with_their_last_name():
    bags = Bags(np.array([0, 0, 1]), np.array([0.5, 1.0]), X=np.ones((3, 1)))
    assert bags.reported() is bags
    alive = weakref.ref(bags)
    gc.disable()  # a cycle would wait for the collector, and its table with it
    try:
        del bags
        assert alive() is None
    finally:
        gc.enable()
