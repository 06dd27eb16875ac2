"""Made clicks with a known truth: string ids, times, missing values, noisy and hidden reports."""

import numpy as np
import pandas as pd

CAMPAIGNS, SIZE, FEWEST = 12, 24, 12


def clicks(count=6000, *, seed=0):
    """Events in random bags within campaigns, and of each its true probability and label."""
    rng = np.random.default_rng(seed)
    campaign = rng.integers(CAMPAIGNS, size=count)
    age, desk = rng.normal(40, 12, count), rng.random(count) < 0.3
    effect = np.random.default_rng(99).normal(0, 0.4, CAMPAIGNS)  # the same on every day
    score = -1.2 + effect[campaign] + (age - 40) / 12 + 1.2 * desk
    truth = 1 / (1 + np.exp(-score))
    place = pd.Series(rng.permutation(count)).groupby(campaign).rank().astype(int) - 1
    frame = pd.DataFrame({
        "event_id": [f"e{seed}-{i:06d}" for i in range(count)],
        "campaign": [f"cmp_{c:03d}" for c in campaign],
        "ts": pd.Timestamp("2026-10-01") + pd.to_timedelta(rng.uniform(0, 14, count).round(4), "D"),
        "age": np.where(rng.random(count) < 0.05, np.nan, age.round(1)),
        "device": np.where(desk, "desk", "phone"),
    })  # fmt: skip
    frame["bag"] = [
        f"{c}-{seed}-{p // SIZE:04d}" for c, p in zip(frame.campaign, place, strict=True)
    ]
    return frame, truth, rng.random(count) < truth


def reports_of(events, label, *, epsilon=1.0, seed=0):
    """What a privacy system tells of each bag: a noisy count, or nothing of a bag that is small."""
    rng = np.random.default_rng(seed)
    reports = events.assign(sold=label).groupby("bag", as_index=False)
    reports = reports.agg(conversions=("sold", "sum"), clicks=("sold", "size"))
    noisy = reports.conversions + rng.laplace(scale=1 / epsilon, size=len(reports))
    small = reports.clicks < FEWEST
    return reports.assign(
        conversions=noisy.round(3).mask(small),
        state=np.where(small, "too few", "ok"),
        made="2026-10-16",
    )
