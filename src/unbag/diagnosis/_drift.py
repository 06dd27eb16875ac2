"""The prior of each window of time with its interval, and an alarm where it changes."""

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
from unbag.diagnosis._bias import counts_of
from unbag.diagnosis._variance import check_alarm_level, holm
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
    verdict : str
        The answer in one sentence.
    alarm : bool
        Whether the prior changed; raised with a chance of at most `level` when it did not.
    start : array (windows,)
        The first moment of each window.
    prior, low, high : array (windows,) or (windows, classes)
        The prior of each window with a 95% interval.
    p : array (windows,) or (windows, classes)
        Chance of such a distance from the other windows, corrected for their number.
    bags : array (windows,)
        How many reports each window has.
    overall : array () or (classes,)
        The prior of all windows together.
    dispersion : array () or (classes,)
        How many times as much as random bags allow the reports of one window vary; intervals have
        it in them.
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
        head = ("window from", "bags", "prior", "95% interval", "corrected p")
        rows = [
            (str(start), str(bags), _show(prior), f"{_show(low)} to {_show(high)}", _show(p))
            for start, bags, prior, low, high, p in zip(
                self.start, self.bags, self.prior, self.low, self.high, self.p, strict=True
            )
        ]
        lines = [f"{a:<28} {b:>6} {c:>10} {d:>24} {e:>12}" for a, b, c, d, e in (head, *rows)]
        return "\n".join([self.verdict, *lines])

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


def _show(value: np.ndarray) -> str:
    return np.array2string(np.asarray(value), precision=4, separator=", ")


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
    bags : Bags
        Bags with reports.
    time : array
        Of each bag, or of each instance (a bag then has the mean): numbers or datetime64.
    windows : int or sequence
        Into how many windows of about equally many reports, or the moments at which windows begin.
    level : float
        Chance of a false alarm.

    >>> rng = np.random.default_rng(0)
    >>> from unbag import random_bags
    >>> bags = random_bags(None, rng.random(20000) < 0.2, size=100, seed=0)
    >>> print(drift(bags, np.arange(200), windows=4).verdict)
    No drift: no window's prior differs from the others beyond chance (4 windows, 200 reports).
    """
    check_alarm_level(level)
    start, window = _windows(_time_of_bags(bags, time)[bags.observed], windows)
    sums = _sum_windows(bags, window, len(start))
    freedom = len(window) - len(start)
    phi = _dispersion(bags, sums, freedom)
    low, high = _interval(sums, phi, freedom, binary=bags.kind != "total")
    p = _distance_p(sums, phi, freedom)
    if bags.kind != "total" and not sums.v.any():
        p = np.maximum(p, _exact_p(sums))
    p = holm(p.ravel()).reshape(p.shape)
    classes = bags.report.shape[1:]
    prior, low, high, p = (v.reshape(len(start), *classes) for v in (sums.p, low, high, p))
    return Drift(
        verdict=_verdict(p, prior, start, len(window), level),
        alarm=bool(p.min() <= level),
        start=start,
        prior=prior,
        low=low,
        high=high,
        p=p,
        bags=np.bincount(window, minlength=len(start)),
        overall=sums.pooled.reshape(classes),
        dispersion=phi.reshape(classes),
    )


class _WindowSums(NamedTuple):
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


def _time_of_bags(bags: Bags, time: Any) -> np.ndarray:
    time = np.asarray(time)
    if time.shape not in ((len(bags),), (len(bags.bag),)):
        raise broken(
            f"A time must be given for each of {len(bags)} bags or each of {len(bags.bag)} "
            "instances",
            f"an array of shape {time.shape} given",
            "Give them in the order of the bags or of the instances.",
        )
    unknown = ~np.isfinite(time.astype({"M": time.dtype}.get(time.dtype.kind, float)))
    remedy = "Leave such bags out."
    refuse("A time must be known", unknown, thing="entry", given=time, remedy=remedy)
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
                f"{windows} given for {len(when)} reports",
                "Use fewer, or wait for more reports.",
            )
        start = np.unique(np.sort(when)[np.arange(windows) * len(when) // windows])
    else:
        start, finer = np.asarray(windows), when.dtype  # dates may be text
        if start.dtype.kind in "iufM":
            finer = np.result_type(start, when)
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


def _sum_windows(bags: Bags, window: np.ndarray, count: int) -> _WindowSums:
    k, a, noise = counts_of(bags)
    n = sum_by(window, k, count)
    p, pooled = sum_by(window, a * k, count) / n, (a * k).sum(axis=0) / k.sum()
    each = np.maximum(label_variance(pooled, bags.kind), 0)
    of_window = sum_by(window, noise, count) / n**2
    return _WindowSums(n, p, of_window, pooled, each, a, k, noise / k**2, window)


def _dispersion(bags: Bags, s: _WindowSums, freedom: int) -> np.ndarray:
    """phi: the spread of the reports of one window, in units of chance."""
    allowed = s.each / s.k + s.v
    spread = np.divide(
        (s.a - s.p[s.window]) ** 2, allowed, out=np.zeros_like(s.a), where=allowed > 0
    )
    # counts need not be Poisson, so that those of totals may vary less than assumed
    least = {"total": 1e-12}.get(bags.kind, 1.0)
    return np.maximum(spread.sum(axis=0) / freedom, least)


def _distance_p(s: _WindowSums, phi: np.ndarray, freedom: int) -> np.ndarray:
    """Chance of each window's distance from the others."""
    from scipy.special import stdtr

    total = s.n.sum()
    others = total - s.n
    p_others = (s.pooled * total - s.p * s.n) / others
    noise_others = (np.sum(s.noise * s.n**2, axis=0) - s.noise * s.n**2) / others**2
    variance = phi * (s.each * (1 / s.n + 1 / others) + s.noise + noise_others)
    z = np.divide(
        np.abs(s.p - p_others), np.sqrt(variance), out=np.zeros_like(s.p), where=variance > 0
    )
    return 2 * stdtr(freedom, -z)


def _exact_p(s: _WindowSums) -> np.ndarray:
    """Fisher's exact test of each window against the others: the smaller side's count of the rarer
    label, given that of all. 0 where so much is expected that it would add nothing."""
    N, small = s.n.sum(), s.n <= s.n.sum() / 2
    n = np.where(small, s.n, N - s.n)
    positives = np.where(small, s.p * s.n, N * s.pooled - s.p * s.n)
    rare = s.pooled <= 0.5
    count, T = np.where(rare, positives, n - positives), np.where(rare, s.pooled, 1 - s.pooled) * N
    n, T, few = np.broadcast_to(n, count.shape), np.broadcast_to(T, count.shape), n * T / N < RARE
    p = np.zeros(count.shape)
    if not few.any():  # spares the start of a program half a second
        return p
    from scipy.stats import hypergeom

    below, above = (
        hypergeom.cdf(np.rint(c[few]), N, np.rint(T[few]), n[few]) for c in (count, count - 1)
    )
    p[few] = np.clip(2 * np.minimum(below, 1 - above), 0, 1)
    return p


def _interval(
    s: _WindowSums, phi: np.ndarray, freedom: int, *, binary: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Wilson's interval with noise: all q with (p_w - q)^2 <= t^2 phi (q (1 - q) / n + noise); q /
    n for totals."""
    from scipy.special import stdtrit

    c = stdtrit(freedom, 0.975) ** 2 * phi
    square = 1 + binary * c / s.n
    middle = (s.p + c / s.n / 2) / square
    root = np.sqrt(np.maximum(middle**2 - (s.p**2 - c * s.noise) / square, 0))
    return middle - root, middle + root


def _verdict(
    p: np.ndarray, prior: np.ndarray, start: np.ndarray, reports: int, level: float
) -> str:
    counts = f"{len(start)} windows, {reports} reports"
    if p.min() > level:
        return f"No drift: no window's prior differs from the others beyond chance ({counts})."
    worst = np.unravel_index(np.argmin(p), p.shape)
    which = "".join(f" of class {number}" for number in worst[1:])
    return (
        f"The prior drifts: the window from {start[worst[0]]} has a prior{which} of "
        f"{prior[worst]:.4g}, which differs from the others beyond chance (corrected p "
        f"{p[worst]:.2g}; {counts})."
    )
