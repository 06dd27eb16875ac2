"""Bags with their times in, the prior of each time window with its interval and an alarm out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from unbag._arrays import mean_by, sum_by
from unbag._rules import broken, refuse
from unbag.bags import Bags, label_variance
from unbag.diagnosis._variance import holm
from unbag.plots import draw_drift, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# from so many expected positives and negatives on, the normal approximation is near enough
RARE = 1000


@dataclass(frozen=True, eq=False, repr=False)
class Drift:
    """The prior through time.

    Parameters
    ----------
    verdict : the answer in one sentence.
    alarm : whether the prior changed; false with a chance of at most `level` when it did not.
    start : the first moment of each window.
    prior, low, high : of each window (and class), with a 95% interval.
    p : of each window (and class), chance of such a distance from the other windows, corrected for
        their number.
    bags : how many reports each window has.
    overall : the prior of all windows together.
    dispersion : how many times as much as random bags allow the reports of one window vary;
        intervals have it in them.
    """

    verdict: str
    alarm: bool
    start: np.ndarray
    prior: np.ndarray
    low: np.ndarray
    high: np.ndarray
    p: np.ndarray
    bags: np.ndarray
    overall: np.ndarray
    dispersion: np.ndarray

    def __repr__(self) -> str:
        return f"Drift({self.verdict})"

    def __str__(self) -> str:
        show = lambda v: np.array2string(np.asarray(v), precision=4, separator=", ")
        lines = [
            self.verdict,
            (
                f"{'window from':<28} {'bags':>6} {'prior':>10} {'95% interval':>24} "
                f"{'corrected p':>12}"
            ),
        ]
        for row in zip(self.start, self.bags, self.prior, self.low, self.high, self.p, strict=True):
            start, bags, prior, low, high, p = row
            lines.append(
                f"{start!s:<28} {bags:>6} {show(prior):>10} {f'{show(low)} to {show(high)}':>24} "
                f"{show(p):>12}"
            )
        return "\n".join(lines)

    def draw(self, axes: Axes) -> None:
        """Draw the prior of each window with its interval on an Axes."""
        draw_drift(axes, self.start, self.prior, self.low, self.high, self.overall)

    def plot(self) -> Figure:
        """The prior of each window with its interval, as a figure."""
        figure = new_figure(8, 4)
        axes = figure.subplots()
        self.draw(axes)
        axes.set_title(fill(self.verdict, 100), fontsize=9)
        return figure

    def picture(self, path: str | Path) -> None:
        """Write the figure to a file."""
        self.plot().savefig(path)


def drift(
    bags: Bags, time: Any, *, windows: int | Sequence[Any] = 12, level: float = 0.01
) -> Drift:
    """Does the prior change with time? From reports alone, aware of their noise.

    Each window is compared with all others by the difference of their priors in units of its
    standard error,

        (p_w - p_others) / sqrt(phi (p (1 - p) (1/n_w + 1/n_others) + noise)),

    a Student variable with as many degrees of freedom as there are reports beyond the windows. phi,
    at least 1, is how much more than random bags the reports of one window vary, so that campaigns
    do not raise the alarm. Where reports are exact, a window must stand out by Fisher's exact test
    too, which knows rare outcomes. Holm's correction over windows (and classes) keeps the chance of
    a false alarm at `level`. For totals p (1 - p) becomes p, and phi may be below 1. A change in
    the mixture of strata is a change of the prior too. Totals and noisy reports have no exact test:
    events so rare that a window counts a few only raise more false alarms there than `level` says.

    Parameters
    ----------
    time : of each bag, or of each instance (a bag then has the mean): numbers or datetime64.
    windows : into how many windows of about equally many reports, or the moments at which windows
        begin.
    level : chance of a false alarm.

    >>> rng = np.random.default_rng(0)
    >>> from unbag import random_bags
    >>> bags = random_bags(None, rng.random(20000) < 0.2, size=100, seed=0)
    >>> drift(bags, np.arange(200), windows=4)
    Drift(No drift: no window's prior differs from the others beyond chance (4 windows, 200
    reports).)
    """
    _check_level(level)
    when = _time_of_bags(bags, time)
    seen = np.flatnonzero(bags.observed)
    start, window = _windows(when[seen], windows)
    sums = _sum_windows(bags, seen, window, len(start))
    freedom = len(seen) - len(start)
    phi = _dispersion(bags, sums, freedom)
    low, high = _interval(sums, phi, freedom, binary=bags.kind != "total")
    p = _distance_p(sums, phi, freedom)
    if bags.kind != "total" and not sums.v.any():
        p = np.maximum(p, _exact_p(sums))
    p = holm(p.ravel()).reshape(p.shape)
    shape = (len(start), *bags.report.shape[1:])
    fit = lambda v: np.asarray(v).reshape(shape)
    count = np.bincount(window, minlength=len(start))
    alarm = bool(p.min() <= level)
    verdict = _tell(fit(p), fit(sums.p), start, len(seen), alarm)
    overall = sums.pooled.reshape(shape[1:])
    return Drift(
        verdict,
        alarm,
        start,
        fit(sums.p),
        fit(low),
        fit(high),
        fit(p),
        count,
        overall,
        phi.reshape(shape[1:]),
    )


class _Sums(NamedTuple):
    """Of each window: instances, prior and noise of the prior (per class); and of all together."""

    n: np.ndarray
    p: np.ndarray
    noise: np.ndarray
    pooled: np.ndarray
    each: np.ndarray  # Var y
    a: np.ndarray
    k: np.ndarray
    v: np.ndarray  # noise variance of each report
    window: np.ndarray


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise broken(
            "A level must lie between 0 and 1",
            f"{level} came",
            "It is the chance of a false alarm, say 0.01.",
        )


def _time_of_bags(bags: Bags, time: Any) -> np.ndarray:
    time = np.asarray(time)
    if time.shape not in ((len(bags),), (len(bags.bag),)):
        raise broken(
            (
                f"A time must be given for each of {len(bags)} bags or each of {len(bags.bag)} "
                "instances"
            ),
            f"an array of shape {time.shape} came",
            "Give them in the order of the bags or of the instances.",
        )
    missing = np.isnat(time) if time.dtype.kind == "M" else ~np.isfinite(time.astype(float))
    refuse(
        "A time must be known", missing, thing="entry", given=time, remedy="Leave such bags out."
    )
    if len(time) == len(bags):
        return time
    if time.dtype.kind != "M":
        return mean_by(bags.bag, time.astype(float), bags.size)
    ticks = time.astype("datetime64[ns]").astype(np.int64)
    first = ticks.min()
    mean = mean_by(bags.bag, (ticks - first).astype(float), bags.size)
    return (first + mean.astype(np.int64)).astype("datetime64[ns]").astype(time.dtype)


def _windows(when: np.ndarray, windows: int | Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Where each window begins, and the window of each report; windows without a report are left
    out."""
    if isinstance(windows, int | np.integer):
        if windows < 2 or len(when) < 2 * windows:
            raise broken(
                "Windows must be at least two, with two reports each",
                f"{windows} came for {len(when)} reports",
                "Use fewer, or wait for more reports.",
            )
        start = np.unique(np.sort(when)[np.arange(windows) * len(when) // windows])
    else:
        start = np.asarray(windows)
        finer = (
            np.result_type(start, when) if start.dtype.kind in "iufM" else when.dtype
        )  # dates may come as text
        start = np.unique(start.astype(finer))
    window = np.searchsorted(start, when, side="right") - 1
    if (window < 0).any():
        raise broken(
            "The first window must begin before the first report",
            f"{start[0]} is later",
            "Begin earlier.",
        )
    used, window = np.unique(window, return_inverse=True)
    if len(used) < 2 or len(when) <= len(used):
        raise broken(
            "Windows must be at least two, and fewer than the reports",
            f"{len(used)} hold the {len(when)} reports",
            "Choose other windows.",
        )
    return start[used], window


def _sum_windows(bags: Bags, seen: np.ndarray, window: np.ndarray, count: int) -> _Sums:
    k, a = bags.size[seen][:, None].astype(float), bags.report[seen].reshape(len(seen), -1)
    noise = np.zeros((len(seen), 1)) if bags.noise is None else bags.noise[seen][:, None]
    n = sum_by(window, k, count)
    p, pooled = sum_by(window, a * k, count) / n, (a * k).sum(axis=0) / k.sum()
    each = np.maximum(label_variance(pooled, bags.kind), 0)
    return _Sums(
        n, p, sum_by(window, noise, count) / n**2, pooled, each, a, k, noise / k**2, window
    )


def _dispersion(bags: Bags, s: _Sums, freedom: int) -> np.ndarray:
    """phi: the spread of the reports of one window, in units of chance."""
    allowed = s.each / s.k + s.v
    spread = np.divide(
        (s.a - s.p[s.window]) ** 2, allowed, out=np.zeros_like(s.a), where=allowed > 0
    )
    phi = spread.sum(axis=0) / freedom
    return np.maximum(phi, 1e-12 if bags.kind == "total" else 1.0)


def _distance_p(s: _Sums, phi: np.ndarray, freedom: int) -> np.ndarray:
    """Chance of each window's distance from the others."""
    from scipy.stats import t

    total = s.n.sum()
    others = total - s.n
    p_others = (s.pooled * total - s.p * s.n) / others
    noise_others = (np.sum(s.noise * s.n**2, axis=0) - s.noise * s.n**2) / others**2
    variance = phi * (s.each * (1 / s.n + 1 / others) + s.noise + noise_others)
    z = np.divide(
        np.abs(s.p - p_others), np.sqrt(variance), out=np.zeros_like(s.p), where=variance > 0
    )
    return 2 * t.sf(z, freedom)


def _exact_p(s: _Sums) -> np.ndarray:
    """Fisher's exact test of each window against the others: the smaller side's count of the rarer
    label, given that of all. 0 where so much is expected that it would add nothing."""
    from scipy.stats import hypergeom

    N, small = s.n.sum(), s.n <= s.n.sum() / 2
    n, positives = (
        np.where(small, s.n, N - s.n),
        np.where(small, s.p * s.n, N * s.pooled - s.p * s.n),
    )
    rare = s.pooled <= 0.5
    count, T = np.where(rare, positives, n - positives), np.where(rare, s.pooled, 1 - s.pooled) * N
    n, T, few = np.broadcast_to(n, count.shape), np.broadcast_to(T, count.shape), n * T / N < RARE
    below = lambda count: hypergeom.cdf(np.rint(count[few]), N, np.rint(T[few]), n[few])
    p = np.zeros(count.shape)
    p[few] = np.clip(2 * np.minimum(below(count), 1 - below(count - 1)), 0, 1)
    return p


def _interval(
    s: _Sums, phi: np.ndarray, freedom: int, *, binary: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Wilson's interval with noise: all q with (p_w - q)^2 <= t^2 phi (q (1 - q) / n + noise); q /
    n for totals."""
    from scipy.stats import t

    c = t.ppf(0.975, freedom) ** 2 * phi
    square = 1 + binary * c / s.n
    middle = (s.p + c / s.n / 2) / square
    root = np.sqrt(np.maximum(middle**2 - (s.p**2 - c * s.noise) / square, 0))
    return middle - root, middle + root


def _tell(p: np.ndarray, prior: np.ndarray, start: np.ndarray, reports: int, alarm: bool) -> str:
    told = f"{len(start)} windows, {reports} reports"
    if not alarm:
        return f"No drift: no window's prior differs from the others beyond chance ({told})."
    worst = np.unravel_index(np.argmin(p), p.shape)
    which = f" of class {worst[1]}" if p.ndim == 2 else ""
    return (
        f"The prior drifts: the window from {start[worst[0]]} has a prior{which} of "
        f"{prior[worst]:.4g}, which differs from the others beyond chance (corrected p "
        f"{p[worst]:.2g}; {told})."
    )
