"""Who shall be in which bag: the same in every engine and at any time, and random all the same."""

import duckdb
import numpy as np
import pytest
from scipy.stats import chi2

import unbag
from unbag import Bags, design_bags, from_rows, losses, weights
from unbag.bags import stable_hash


def test_the_hash_is_the_one_that_was_written_down():
    """The numbers come from `printf "s|a|1" | md5sum | cut -c1-15`, read as hexadecimal."""
    assert stable_hash([1]).tolist() == [158543097672458280]
    assert stable_hash(["1"], ["a"], salt="s").tolist() == [503076124082963820]
    assert stable_hash(["1"], ["x"], salt="é").tolist() == [873916200771551761]


def test_the_bags_are_the_ones_that_were_written_down():
    campaign = np.repeat(["brand", "shop"], 5)
    made = design_bags(np.arange(10), size=2, stratum=campaign, salt="spring").tolist()
    assert made[:5] == ["brand/0", "brand/1", "brand/0", "brand/0", "brand/1"]
    assert made[5:] == ["shop/0", "shop/0", "shop/1", "shop/0", "shop/1"]
    assert design_bags(np.arange(5), size=2, expected=1000).tolist() == [
        "235",
        "280",
        "213",
        "477",
        "192",
    ]


IDS = [f"click-{i}-ü" for i in range(1000)]
CAMPAIGN = np.array(["brand", "shop", "søk"])[np.arange(1000) % 7 % 3]
HASH = "('0x' || substr(md5(concat_ws('|', 'spring', campaign, id)), 1, 15))::BIGINT"


def in_duckdb(select):
    """What DuckDB makes of the same thousand ids, in their order."""
    with duckdb.connect() as connection:
        connection.execute("create table events (position integer, id varchar, campaign varchar)")
        rows = [[i, *pair] for i, pair in enumerate(zip(IDS, CAMPAIGN.tolist(), strict=True))]
        connection.executemany("insert into events values (?, ?, ?)", rows)
        found = connection.sql(
            f"with hashed as (select *, {HASH} as hash from events) {select} order by position"
        )
        return [row[0] for row in found.fetchall()]


def test_duckdb_makes_the_same_bags_of_a_closed_set():
    rank = "row_number() over (partition by campaign order by hash, id) - 1"
    count = "count(*) over (partition by campaign)"
    select = f"select campaign || '/' || (({rank}) * ({count} // 30)) // {count} from hashed"
    assert in_duckdb(select) == design_bags(IDS, size=30, stratum=CAMPAIGN, salt="spring").tolist()


def test_duckdb_makes_the_same_bags_while_ids_arrive():
    expected = {"brand": 400, "shop": 3000, "søk": 90}
    count = "case campaign when 'brand' then 20 when 'shop' then 150 else 4 end"
    select = f"select campaign || '/' || hash % ({count}) from hashed"
    made = design_bags(IDS, size=20, stratum=CAMPAIGN, salt="spring", expected=expected)
    assert in_duckdb(select) == made.tolist()


def test_a_closed_set_is_cut_into_bags_that_differ_by_one_at_most():
    bags = from_rows(design_bags(np.arange(1037), size=50), y=np.zeros(1037))
    assert (len(bags), bags.size.min(), bags.size.max()) == (20, 51, 52)
    names = design_bags(IDS, size=30, stratum=CAMPAIGN)
    bags = from_rows(names, y=np.zeros(1000), stratum=CAMPAIGN)
    assert all(30 <= size < 33 for size in bags.size)
    assert all(
        name.startswith(campaign + "/") for name, campaign in zip(names, CAMPAIGN, strict=True)
    )


def test_the_order_of_the_rows_and_the_type_of_the_ids_do_not_matter():
    order = np.random.default_rng(0).permutation(500)
    ids = np.arange(500)
    for options in ({}, {"expected": 600}):
        made = design_bags(ids, size=20, **options)
        np.testing.assert_array_equal(design_bags(ids[order], size=20, **options), made[order])
        np.testing.assert_array_equal(design_bags([str(i) for i in ids], size=20, **options), made)
        np.testing.assert_array_equal(design_bags(ids.tolist(), size=20, **options), made)


def test_an_id_that_arrives_keeps_its_bag_whoever_comes_later():
    whole = design_bags(np.arange(300), size=10, expected=300)
    np.testing.assert_array_equal(design_bags(np.arange(100), size=10, expected=300), whole[:100])
    np.testing.assert_array_equal(design_bags([5, 5, 6], size=10, expected=300), whole[[5, 5, 6]])


def test_another_salt_draws_anew():
    ids = np.arange(2000)
    one, other = (design_bags(ids, size=100, salt=salt).astype(int) for salt in ("a", "b"))
    table = np.zeros((20, 20))
    np.add.at(table, (one, other), 1)
    assert ((table - 5) ** 2 / 5).sum() < chi2.ppf(1 - 1e-4, 19 * 19)


def test_bags_do_not_follow_the_ids():
    """Counts of consecutive ids by bag are those of chance, 19 degrees of freedom for each
    block."""
    made = design_bags(np.arange(20_000), size=1000, expected=20_000).astype(int)
    table = np.zeros((20, 20))
    np.add.at(table, (made, np.arange(20_000) // 1000), 1)
    statistic = ((table - 50) ** 2 / 50).sum()
    assert chi2.ppf(1e-4, 20 * 19) < statistic < chi2.ppf(1 - 1e-4, 20 * 19)


def campaigns(count, size, seed):
    """Events of campaigns that differ in whom they reach, while the same model holds in all: x, y
    and campaign."""
    rng = np.random.default_rng(seed)
    campaign = np.repeat(np.arange(count), size)
    x = rng.normal(size=count)[campaign] + rng.normal(size=len(campaign))
    return x, (rng.uniform(size=len(x)) < 1 / (1 + np.exp(1 - x))).astype(float), campaign


def loss_from(names, x, y, stratum):
    bags = from_rows(names, y=y, stratum=stratum)
    W = weights.upm(bags.size, *bags.components(), stratum=bags.stratum)
    return np.sum(W[bags.bag] * losses.log.components(x - 1))


def test_sub_bags_within_campaigns_repair_what_one_bag_per_campaign_biases():
    """Mean error of the estimated loss in standard errors, over 40 draws."""
    errors = np.zeros((40, 2))
    for seed in range(40):
        x, y, campaign = campaigns(24, 64, seed)
        names = design_bags(np.arange(len(x)), size=16, stratum=campaign, salt=str(seed))
        truth = losses.log.value(x - 1, y).mean()
        errors[seed] = (
            loss_from(campaign, x, y, None) - truth,
            loss_from(names, x, y, campaign) - truth,
        )
    z = errors.mean(axis=0) / (errors.std(axis=0, ddof=1) / np.sqrt(40))
    assert abs(z[0]) > 10
    assert abs(z[1]) < 4


@pytest.mark.parametrize("method", ["matching", "likelihood"])
def test_one_report_per_campaign_still_teaches_by_matching_or_likelihood(method):
    """The slope is 1; its standard error from 400 campaigns of 8 is about 0.06."""
    x, y, campaign = campaigns(400, 8, 0)
    bags = Bags(campaign, y.reshape(400, 8).mean(axis=1), X=x[:, None].astype(np.float32))
    run = unbag.train(unbag.models.linear(1, key=0), bags, method, learning_rate=0.05, epochs=60)
    assert float(run.model.layers[-1].weight[0, 0]) == pytest.approx(1, abs=0.25)
