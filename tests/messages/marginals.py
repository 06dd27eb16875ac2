"""Bad input of marginal tables, and the whole message that it gets."""

from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pyarrow as pa

import unbag
from unbag.cli._marginals import BAGS_ONLY, ranked, train_cells
from unbag.cli._options import said_of_cells
from unbag.learners import Additive, identifiable
from unbag.tables import join_marginals

EVENTS = pa.table({"shop": ["a", "a", "b", "b"] * 20, "day": [1, 2, 2, 3] * 20})
BY_SHOP = pa.table({"shop": ["a", "b"], "n": [20, 10]})
BY_DAY = pa.table({"day": [1, 2, 3], "n": [10, 15, 5]})
CELLS = join_marginals(EVENTS, [BY_SHOP, BY_DAY], total="n")
NOTHING_SAID = {"reports": None, "below": None}


def joined(table, **options):
    return join_marginals(EVENTS, {"one": table}, total="n", **options)


def limited(module, entries):
    with mock.patch(f"unbag.additive.{module}.LARGEST", entries):
        Additive().fit(CELLS)


def trained(**settings):
    train_cells(SimpleNamespace(params=dict.fromkeys(BAGS_ONLY) | settings), {}, {})


MESSAGES = [
    (
        lambda: joined(BY_SHOP, kind="histogram"),
        "Marginal tables must hold totals of labels or of counts: kind 'histogram' given. Say "
        "kind='binary' or kind='total'; give one table for each class.",
    ),
    (
        lambda: join_marginals(EVENTS, [], total="n"),
        "Marginals must have at least one table: none given. Give a list of them.",
    ),
    (
        lambda: joined(BY_SHOP, noise=[1.0, 2.0]),
        "A noise variance must be given for all tables, or for each: 2 given for 1 tables. Give "
        "one number in noise= for each table, or a single one.",
    ),
    (
        lambda: join_marginals(EVENTS, [BY_SHOP, BY_SHOP], total="n"),
        "A table must have a name of its own: 'by_shop' appears twice. Give the tables as a mapping "
        "of names, and each set of keys once.",
    ),
    (
        lambda: joined(pa.table({"shop": ["z"], "n": [1]})),
        "A marginal table must count some of the events: no event is in a cell of one. Its "
        "first cell is shop=z, and the first event would be in shop=a. Write the keys in the same way in the table and in the events.",
    ),
    (
        lambda: joined(pa.table({"n": [30]})),
        "A marginal table must have keys: one has none. Add the columns by which it counts; a "
        "grand total alone is known from other tables.",
    ),
    (
        lambda: joined(pa.table({"shops": ["a"], "n": [1]})),
        "A key of a marginal table must be a column of the events: 'shops' of one is none. Did you "
        "mean 'shop'? Their columns are shop, day. Rename it, add it to the events, or drop it "
        "from the table.",
    ),
    (
        lambda: joined(pa.table({"shop": ["a", "a"], "n": [1, 2]})),
        "A cell must appear once in its table: cell one: shop=a has 2 lines (1 such cell). Add the "
        "lines up, or keep the key that tells them apart.",
    ),
    (
        lambda: joined(BY_SHOP.append_column("k", pa.array([40, 41])), size="k"),
        "A reported size must be the number of events of the cell: cell one: shop=b has 41 "
        "reported and 40 events (1 such cell). Find the missing or doubled events, or leave size= "
        "out.",
    ),
    (
        lambda: joined(pa.table({"shop": ["a", "b"], "n": [20.0, None]})),
        "A report must be finite: bag one: shop=b has nan (1 such bag). Say with status= which "
        "bags are suppressed or pending, or fix the export; never write 0 for them.",
    ),
    (
        lambda: join_marginals(
            EVENTS, [BY_SHOP, pa.table({"day": [1, 2, 3], "n": [1, 15, 5]})], total="n"
        ),
        "Tables that count the same events must have the same sums up to their noise: by_shop has "
        "30 and by_day has 21 for all events, with a standard deviation of 0 (1 such sum). Export "
        "them for the same events and days, or declare the noise with noise=.",
    ),
    (
        lambda: limited("_cells", 10),
        "Cells times coefficients must be at most 10: 5 cells and 7 coefficients given, which makes "
        "35. Make keys coarser, or leave out columns with many levels with features=.",
    ),
    (
        lambda: limited("_overlap", 5),
        "Cells that overlap must have a dense covariance of at most 5 entries: 2 of 5 cells "
        "overlap with others, which makes 10. Leave out the table with the most small cells, make "
        "its keys coarser, or keep one large table: the cells of the largest cost little.",
    ),
    (
        lambda: identifiable(EVENTS, ["shop"]),
        "Tables that are not there yet must have an expected rate: none given. Give the share of "
        "label 1 that you expect with rate=.",
    ),
    (
        lambda: identifiable(EVENTS, ["shop"], rate=1.5),
        "A rate must lie between 0 and 1: 1.5 given. Give it with rate=.",
    ),
    (
        lambda: unbag.fit(CELLS, learner="trees"),
        "Marginal tables must be learned by the additive model: 'trees' given. Leave learner= out.",
    ),
    (
        lambda: unbag.fit(CELLS, test=0.2),
        "Marginal tables must be judged by folds of their own cells: test=0.2 given. Leave test= "
        "out; `Fitted.evaluate` takes cells of further tables.",
    ),
    (
        lambda: unbag.BagClassifier("upm").fit_bags(CELLS),
        "Marginal tables must be learned by the additive model: method given, which train one "
        "network. Leave them out.",
    ),
    (
        lambda: unbag.fit(
            unbag.random_bags(np.arange(40.0)[:, None], np.arange(40) > 20, size=2, seed=0),
            learner="trees",
        ).evaluate(CELLS),
        "Cells of marginal tables must judge the additive model alone: trees given. Learn with "
        "learner='additive', or evaluate by bags.",
    ),
    (
        lambda: said_of_cells({"on": "bag", "total": "n"}, NOTHING_SAID),
        "Marginal tables must come without what belongs to bags: --on given too. Leave it out, or "
        "marginal=; the keys of each table are its other columns.",
    ),
    (
        lambda: said_of_cells({"noise": "2"}, NOTHING_SAID),
        "Marginal tables must have a column of totals: none was named. Name it with total=; it has "
        "the same name in every table.",
    ),
    (
        lambda: trained(test=0.2),
        "Marginal tables must be learned and judged by their own cells: test given. Leave out "
        "test=.",
    ),
    (
        lambda: ranked(Path("events.csv"), [], [], 0.1, 0.0),
        "A plan of marginal tables must have candidates: none given. Name the keys of each with "
        "table=, with commas between them.",
    ),
]
