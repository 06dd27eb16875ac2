"""A seed in, clicks of many campaigns out, whose conversions are reported by bag with noise.

The conversion probability of a click is known:

    score = level + campaign + publisher + device + country + (campaign, device) + wave(hour)
            + hump(price) - slope log(1 + minutes since the last visit), flat where that is missing

Effects of levels are normal. Bags are random within a campaign; their counts carry Laplace noise,
small bags are suppressed for their size, and some reports are still pending.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from scipy.optimize import brentq
from scipy.special import expit

from unbag._rules import refuse
from unbag.bags import Bags

RATE, NOISE = 0.036, 2.0
SMALLEST, LARGEST, SUPPRESSED_BELOW, PENDING = 10, 109, 20, 0.03
SPREADS = {"campaign": 0.6, "publisher": 0.4, "device": 0.4, "country": 0.4, "both": 0.25}
DEVICES = ("desktop", "phone", "tablet", "tv")


class Conversions(NamedTuple):
    """Clicks, their bags and reports, and the truth.

    Parameters
    ----------
    events : pyarrow.Table
        One row for each click, without bag and label.
    bag : numpy.ndarray
        The bag of each click.
    label, truth : numpy.ndarray
        Whether each click converted, and with which probability.
    report : numpy.ndarray
        The noisy share of conversions of each bag, NaN where it is not observed.
    status : numpy.ndarray
        Of each report: observed, suppressed_by_size or pending.
    test, test_truth : pyarrow.Table, numpy.ndarray
        Further clicks in no bag, and their conversion probabilities.
    """

    events: pa.Table
    bag: np.ndarray
    label: np.ndarray
    truth: np.ndarray
    report: np.ndarray
    status: np.ndarray
    test: pa.Table
    test_truth: np.ndarray

    def bags(self) -> Bags:
        """The clicks in their bags, with the declared noise."""
        noise = np.full(len(self.report), NOISE)
        return Bags(self.bag, self.report, X=self.events, noise=noise, status=self.status)


def make_conversions(
    rows: int = 300_000,
    test_rows: int = 100_000,
    *,
    seed: int,
    campaigns: int = 40,
    publishers: int = 2_000,
    rate: float = RATE,
) -> Conversions:
    """Make clicks of campaigns on publishers' pages, of which few convert, in random bags.

    Parameters
    ----------
    rows, test_rows : int
        Clicks in bags, and clicks to test on.
    seed : int
        Of everything that is drawn.
    campaigns, publishers : int
        How many there are; a few publishers have most of the clicks.
    rate : float
        Mean conversion probability.

    Examples
    --------
    >>> clicks = make_conversions(20_000, 1_000, seed=0)
    >>> clicks.events.num_rows, clicks.bags().kind, bool(abs(clicks.truth.mean() - 0.036) < 0.005)
    (20000, 'binary', True)
    """
    least = campaigns * LARGEST
    rule = f"Clicks must fill bags of every campaign, so be {least} or more"
    remedy = "Ask for more rows or fewer campaigns."
    refuse(rule, np.array([rows < least]), thing="table", given=[rows], remedy=remedy)
    rng = np.random.default_rng(seed)
    codes, numbers = _draw_columns(rng, rows + test_rows, campaigns, publishers)
    score = _score(rng, codes, numbers, campaigns, publishers)
    truth = expit(score + _level(score, rate))
    label = (rng.random(len(truth)) < truth).astype(float)
    events = _table(codes, numbers)
    bag = _bags_within(rng, codes["campaign"][:rows])
    report, status = _reports(rng, bag, label[:rows])
    return Conversions(
        events.slice(0, rows),
        bag,
        label[:rows],
        truth[:rows],
        report,
        status,
        events.slice(rows),
        truth[rows:],
    )


def _draw_columns(
    rng: np.random.Generator, n: int, campaigns: int, publishers: int
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    popular = 1 / np.arange(3, publishers + 3) ** 0.8
    wake = 1.2 + np.sin(2 * np.pi * (np.arange(24) - 9) / 24)
    codes = {
        "campaign": rng.choice(campaigns, size=n, p=rng.dirichlet(np.full(campaigns, 3.0))),
        "publisher": rng.choice(publishers, size=n, p=popular / popular.sum()),
        "device": rng.choice(4, size=n, p=[0.35, 0.5, 0.1, 0.05]),
        "country": rng.choice(20, size=n, p=rng.dirichlet(np.full(20, 1.0))),
        "hour": rng.choice(24, size=n, p=wake / wake.sum()),
    }
    minutes = np.exp(rng.normal(5, 2, size=n))
    numbers = {
        "price": np.round(np.exp(rng.normal(3, 0.8, size=n)), 2),
        "minutes since visit": np.where(rng.random(n) < 0.2, np.nan, np.round(minutes, 1)),
        "page views": rng.geometric(0.2, size=n).astype(float),  # says nothing
    }
    return codes, numbers


def _score(
    rng: np.random.Generator,
    codes: dict[str, np.ndarray],
    numbers: dict[str, np.ndarray],
    campaigns: int,
    publishers: int,
) -> np.ndarray:
    levels = {"campaign": campaigns, "publisher": publishers, "device": 4, "country": 20}
    score = np.zeros(len(codes["hour"]))
    for name, count in levels.items():
        score += _effect(rng.normal(size=count)[codes[name]], SPREADS[name])
    both = rng.normal(size=(campaigns, 4))
    score += _effect(both[codes["campaign"], codes["device"]], SPREADS["both"])
    score += 0.3 * np.sin(2 * np.pi * codes["hour"] / 24)
    score += 0.5 * np.exp(-((np.log(numbers["price"]) - 3) ** 2))
    return score - 0.15 * np.nan_to_num(np.log1p(numbers["minutes since visit"]), nan=5.0)


def _effect(drawn: np.ndarray, spread: float) -> np.ndarray:
    """Of this spread over the clicks: seeds differ in which levels matter, not in how much."""
    return spread * (drawn - drawn.mean()) / drawn.std()


def _level(score: np.ndarray, rate: float) -> float:
    def excess(level: float) -> float:
        return float(expit(score + level).mean() - rate)

    return float(brentq(excess, -20, 20))  # pyright: ignore[reportArgumentType]


def _table(codes: dict[str, np.ndarray], numbers: dict[str, np.ndarray]) -> pa.Table:
    text = {
        name: pa.DictionaryArray.from_arrays(
            pa.array(codes[name].astype(np.int32)), [f"{name} {i}" for i in range(count)]
        )
        for name, count in ((name, int(codes[name].max()) + 1) for name in codes)
        if name in ("campaign", "publisher", "country")
    }
    device = pa.DictionaryArray.from_arrays(pa.array(codes["device"].astype(np.int32)), DEVICES)
    start = np.datetime64("2026-03-02", "s")
    time = start + codes["hour"].astype("timedelta64[h]").astype("timedelta64[s]")
    values = {name: pa.array(x, from_pandas=True) for name, x in numbers.items()}
    return pa.table({**text, "device": device, "time": pa.array(time), **values})


def _bags_within(rng: np.random.Generator, campaign: np.ndarray) -> np.ndarray:
    """Bags of random size and membership, each within one campaign."""
    bag, made = np.empty(len(campaign), np.int64), 0
    for c in np.unique(campaign):
        rows = rng.permutation(np.flatnonzero(campaign == c))
        sizes = rng.integers(SMALLEST, LARGEST + 1, size=len(rows) // SMALLEST + 1)
        ends = np.cumsum(sizes)
        ends = ends[: np.searchsorted(ends, len(rows))]
        bag[rows] = made + np.searchsorted(ends, np.arange(len(rows)), side="right")
        made += len(ends) + 1
    return bag


def _reports(
    rng: np.random.Generator, bag: np.ndarray, label: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    size, count = np.bincount(bag), np.bincount(bag, weights=label)
    noise = rng.laplace(0, np.sqrt(NOISE / 2), size=len(size))
    waits = rng.random(len(size)) < PENDING
    status = np.where(waits, "pending", "observed")
    status = np.where(size < SUPPRESSED_BELOW, "suppressed_by_size", status)
    return np.where(status == "observed", (count + noise) / size, np.nan), status
