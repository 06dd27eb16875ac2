"""The columns of a table or matrix in, a sparse design of an additive model out.

Each column becomes one term or a few: a level has a coefficient of its own; a number has a line and
steps at its quantiles. Coefficients of one term share a prior variance (a *group*). The design has
two factors, X = Z T. A row of Z has one entry for each term, so that it is as narrow as the table;
the small matrix T turns bins of a number into steps:

    score = Z (T b),     step k of a number is 1 when the value lies above edge k, less its mean
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import accumulate, chain, islice, pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse, special

from unbag._arrays import blocks
from unbag._model_file import Misfit
from unbag._rules import broken
from unbag.additive._pairs import cells_of, free_name, part_labels, places_of
from unbag.additive._slots import Slot, Slots, Sparse, as_places
from unbag.tables import FeaturePlan, is_matrix, plan_features

# more numeric columns than this are lines that share one variance: pixels, embeddings, counts of
# words
WIDE = 200
MOST_LEVELS, MOST_BUCKETS = 4096, 2**18
"""Text of at most so many values has a coefficient for each; text of more is hashed into so many
buckets."""


FLAGS = 3  # so many columns of zeros and ones that exclude each other are the levels of a category
SEVERAL = (
    "Some rows have several of the columns {columns} set, of which no row of training had more "
    "than one: they are read as one category, and of such a row the last column counts."
)
ROWS_EACH = 10  # a whole number may be a code where there are so many rows for each of its values
# so many levels in a row are months, hours or weeks; not weekdays: Saturday is not like Friday
CYCLES = (12, 24, 52, 53)
MONTHS = "janfebmaraprmayjunjulaugsepoctnovdec"
WAVES = 3  # how many waves a cycle has: one around it, two and three
# the kurtosis of the exponential law: beyond it a few rows would decide the slope of a line
LONG_TAIL = 9.0


class DataWarning(UserWarning):
    """Something about the columns or reports limits what could be learned from them."""


@dataclass(frozen=True)
class Term:
    """What one column, or a part of it, tells of a row.

    Parameters
    ----------
    name : str
        Of the column, or of its part ("time hour").
    levels : int
        How many codes there are; 0 for a number.
    mean, sd, low, high : float
        Of a number; beyond its range in training it is taken to be at the end.
    edges : tuple of float
        Where the steps of a number are.
    ranked : bool
        Whether the line of a number is one of its ranks, because it has a long tail.
    missing : bool
        Whether a number was missing in some rows, so that missing has a coefficient.
    values : tuple of float
        Of a whole number that may be a code, as those of shops and postal areas are.
    start, stop : int
        Columns of a matrix; columns of zeros and ones, and those of a sparse matrix, stay as they
        are.
    flags : tuple of str
        Names of the columns of zeros and ones that are its levels, of which a row has one at most.
    group : str
        Whose prior variance it shares; by default its own.
    pair : tuple of str
        Names of the two columns whose cells together are the levels, or of the one whose values
        are.
    cuts : tuple of tuple of int
        Of both columns the part of each level or bin; see `_pairs`. Of one the level of each value.
    cycle : tuple of int
        Codes of the levels that follow each other around a cycle, as the hours of a day do: beside
        a coefficient for each level there are waves, under which neighbours are alike.
    """

    name: str
    levels: int = 0
    mean: float = 0.0
    sd: float = 1.0
    low: float = -np.inf
    high: float = np.inf
    edges: tuple[float, ...] = ()
    ranked: bool = False
    missing: bool = False
    values: tuple[float, ...] = ()
    start: int = 0
    stop: int = 0
    flags: tuple[str, ...] = ()
    group: str = ""
    pair: tuple[str, ...] = ()
    cuts: tuple[tuple[int, ...], ...] = ()
    cycle: tuple[int, ...] = ()

    @property
    def raw(self) -> bool:
        """Whether the columns of a matrix are taken as they are."""
        return self.levels > 0 and self.stop > 0

    @property
    def parts(self) -> tuple[tuple[str, int, int], ...]:
        """Of each group: its name, how many columns of Z and how many coefficients it has."""
        name = self.group or self.name
        if self.levels:
            waves = ((f"{name} waves", 0, 2 * WAVES),) if self.cycle else ()
            return ((name, self.levels, self.levels), *waves)
        line = ((f"{name} line" if self.edges else name, 1, 1),)
        steps = ((f"{name} steps", len(self.edges) + 1, len(self.edges)),) if self.edges else ()
        gap = ((f"{name} missing", 1, 1),) if self.missing else ()
        return (*line, *steps, *gap)

    @property
    def width(self) -> int:
        """How many columns of Z it has."""
        return sum(levels for _, levels, _ in self.parts)

    @property
    def count(self) -> int:
        """How many coefficients it has."""
        return sum(count for _, _, count in self.parts)

    def slots(self, values: np.ndarray, start: int) -> list[Slot]:
        """The entries of rows in Z, whose columns for this term begin at `start`.

        Parameters
        ----------
        values : numpy.ndarray
            Of the column, one for each row: codes of levels, or numbers.
        start : int
            The first column of Z.
        """
        if self.levels:
            code = np.where(values < self.levels, values, -1)
            return [Slot(start, self.levels, as_places(code, self.levels))]
        steps = bool(self.edges or self.missing)
        line = np.empty(len(values), np.float32)
        place = np.empty(len(values) if steps else 0, as_places(np.zeros(0), self.width).dtype)
        for rows in blocks(len(values)):
            x = values[rows].astype(float)
            gap = ~np.isfinite(x)
            known = np.where(gap, self.mean, x)
            x = np.clip(known, self.low, self.high)
            line[rows] = self.on_line(x)
            if self.values:
                self._step_aside(line[rows], known, gap)
            if steps:
                bins = np.searchsorted(self.edges, x) if self.edges else -1
                place[rows] = np.where(gap, self.width - 2 if self.missing else -1, bins)
        slots = [Slot(start, 1, None, line)]
        if steps:
            slots.append(Slot(start + 1, self.width - 1, place))
        return slots

    def on_line(self, x: np.ndarray) -> np.ndarray:
        """The entries in Z of numbers that are known."""
        return ((x - self.mean) / self.sd).astype(np.float32)

    def _step_aside(self, line: np.ndarray, x: np.ndarray, gap: np.ndarray) -> None:
        """Take numbers that are none of the values off their places on the line: those that are
        missing, beyond the ends, or so close to one that they are rounded to it."""
        values = np.array(self.values)
        there = (values.take(np.searchsorted(values, x), mode="clip") == x) & ~gap
        other = np.flatnonzero(~there)
        places, own = self.on_line(values), line[other]
        # in single precision another number may round onto the place of a value, and pass for it
        taken = places.take(np.searchsorted(places, own), mode="clip") == own
        line[other[taken]] = np.nextafter(own[taken], np.float32(np.inf))


class Design(NamedTuple):
    """Rows in the form that the evidence takes: X = Z T, and the group of each coefficient."""

    Z: Slots
    T: Sparse
    group: np.ndarray
    """Number of the prior variance of each coefficient, -1 for the intercept, which has none."""


@dataclass(frozen=True)
class Terms:
    """How rows become a design; made by `terms_of`, the same at training and at prediction.

    Parameters
    ----------
    terms : tuple of Term
        In the order of the columns of Z, after the intercept.
    plan : FeaturePlan or None
        How columns of a table are read; None for a matrix.
    share : numpy.ndarray
        Mean of each column of Z over the rows of training.
    """

    terms: tuple[Term, ...]
    plan: FeaturePlan | None = None
    share: np.ndarray = field(default_factory=lambda: np.ones(1))

    @property
    def parts(self) -> list[tuple[str, int, int]]:
        """Name, columns of Z and coefficients of each part, without the intercept."""
        return [part for term in self.terms for part in term.parts]

    @cached_property
    def places(self) -> tuple[tuple[Term, slice, slice], ...]:
        """Each term with its columns of Z and with its coefficients; both after the intercept."""
        rows = pairwise(accumulate((term.width for term in self.terms), initial=1))
        columns = pairwise(accumulate((term.count for term in self.terms), initial=1))
        pairs = zip(self.terms, rows, columns, strict=True)
        return tuple((term, slice(*row), slice(*column)) for term, row, column in pairs)

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the prior variances."""
        return tuple(dict.fromkeys(name for name, _, _ in self.parts))

    @property
    def group(self) -> np.ndarray:
        """The prior variance of each coefficient, -1 for the intercept."""
        number = {name: i for i, name in enumerate(self.groups)}
        parts = [np.full(count, number[name]) for name, _, count in self.parts]
        return np.concatenate([np.array([-1]), *parts]).astype(np.int64)

    @cached_property
    def basis(self) -> Sparse:
        """The matrix T of the design: steps of numbers are centred, a line of ranks is made of the
        same bins, and all else is as it is in Z."""
        blocks, row, column = [(np.zeros(1, int), np.zeros(1, int), np.ones(1))], 1, 1
        parts = ((term, *part) for term in self.terms for part in enumerate(term.parts))
        for term, number, (_, levels, count) in parts:
            rows = columns = np.arange(levels)
            values = np.ones(levels)
            if term.ranked and number == 0:
                rows = 1 + np.arange(len(term.edges) + 1)  # the bins stand behind the line in Z
                columns, values = np.zeros_like(rows), _ranks(self.share[row + rows])
            elif count < levels:
                steps = _steps(self.share[row : row + levels])
                (rows, columns), values = np.indices(steps.shape).reshape(2, -1), steps.ravel()
            elif levels < count:
                waves = _waves(len(term.cycle))
                (rows, columns), values = np.indices(waves.shape).reshape(2, -1), waves.ravel()
                rows = np.array(term.cycle)[rows] - term.levels  # levels stand before in Z
            blocks.append((row + rows, column + columns, values))
            row, column = row + levels, column + count
        rows, columns, values = map(np.concatenate, zip(*blocks, strict=True))
        return sparse.csr_array((values, (rows, columns)), shape=(row, column))

    def matrix(self, X: Any) -> Slots:
        """The matrix Z of these rows, one column of X at a time."""
        of = {term.name: (term, rows.start) for term, rows, _ in self.places}
        rows, width = None, 1 + sum(term.width for term in self.terms if not term.pair)
        level = {flag: (t, i) for t in self.terms for i, flag in enumerate(t.flags)}
        codes: dict[str, np.ndarray] = {}
        several: dict[str, None] = {}
        slots = [Slot(0, 1)]
        for name, values in self._columns(X):
            rows = len(values)
            if name in level:
                term, number = level[name]
                code, one = codes.setdefault(term.name, np.full(rows, -1)), values == 1
                if (code[one] >= 0).any():
                    several[term.name] = None
                code[one] = number
            else:
                slots += of[name][0].slots(values, of[name][1])
        for name, code in codes.items():
            slots += of[name][0].slots(code, of[name][1])
        if several:
            warnings.warn(SEVERAL.format(columns=", ".join(several)), DataWarning, stacklevel=2)
        raw = self._raw_part(X, width) if any(term.raw for term in self.terms) else None
        Z = Slots((rows if rows is not None else _length(X), width), tuple(slots), raw)
        return self.completed(Z)

    def completed(self, Z: Slots) -> Slots:
        """The rows with the cells of pairs that they lack, from the places of both columns."""
        of = {term.name: (term, rows.start) for term, rows, _ in self.places}
        for term, rows, _ in self.places:
            if term.pair and rows.start >= Z.shape[1]:
                alone = len(term.pair) == 1
                places = [places_of(*of[name], Z, values=alone) for name in term.pair]
                cell = cells_of(term, places)
                Z = Z.with_levels(cell, term.levels)
        return Z

    def further(self, pairs: tuple[Term, ...]) -> Terms:
        """The terms with those of pairs behind them, whose shares are not yet known."""
        cells = sum(term.width for term in pairs)
        return Terms((*self.terms, *pairs), self.plan, np.append(self.share, np.zeros(cells)))

    def moments(self, Z: Slots, b: np.ndarray) -> np.ndarray:
        """Of each term the sum over rows and the sum of squares, (2, terms, classes).

        Parameters
        ----------
        Z : Slots
            The rows.
        b : numpy.ndarray
            Coefficients, (coefficients, classes).
        """
        level, sums = np.zeros((Z.shape[1], b.shape[1])), np.zeros((2, len(self.terms), b.shape[1]))
        level[: self.basis.shape[0]] = self.basis @ b  # after them come the strata
        for number, (_, columns, _) in enumerate(self.places):
            entries = Z.within(columns.start, columns.stop)
            for rows in blocks(Z.shape[0]):
                own = entries.take(rows) @ level
                sums[:, number] += own.sum(axis=0), (own**2).sum(axis=0)
        return sums

    def _raw_part(self, X: Any, width: int) -> Sparse:
        """Columns of a matrix that are taken as they are, at their places in Z."""
        chosen, scale, place = [], [], []
        for term, rows, _ in self.places:
            if term.raw:
                chosen += range(term.start, term.stop)
                scale += [1 / term.sd] * term.levels
                place += range(rows.start, rows.stop)
        part: Sparse = sparse.coo_array(X[:, chosen])
        data = np.nan_to_num(part.data) * np.asarray(scale)[part.col]  # 0 where one is missing
        where = (part.row, np.asarray(place)[part.col])
        return sparse.csr_array((data, where), shape=(part.shape[0], width))

    def _columns(self, X: Any) -> Iterator[tuple[str, np.ndarray]]:
        """Name and values of each column that is not raw: a number or a code for each row."""
        if self.plan is not None:
            return self.plan.narrow_columns(X)
        if not is_matrix(X):
            raise broken(
                "A model of a matrix must be given a matrix",
                f"{type(X).__name__} given",
                "Fit with unbag.fit(bags, learner=...), which learns from the columns of a table.",
            )
        numbers = (term for term in self.terms if not term.raw and not term.pair)
        if sparse.issparse(X):  # given to a model that learned from a dense matrix
            return ((term.name, X[:, [term.start]].toarray()[:, 0]) for term in numbers)
        return ((term.name, X[:, term.start]) for term in numbers)

    @property
    def trends(self) -> set[str]:
        """Names of the terms that are days since 1970."""
        used = getattr(self.plan, "used", ())
        return {f"{column.name} trend" for column in used if column.kind == "date"}

    def labels(self, term: Term) -> tuple[str, ...]:
        """What the levels of a term are called."""
        of = {other.name: other for other in self.terms}
        if len(term.pair) == 1:
            days = term.pair[0] in self.trends
            numbers = (round(value) for value in of[term.pair[0]].values)
            return tuple(str(np.datetime64(n, "D")) if days else str(n) for n in numbers)
        if term.pair:
            both, trends = [], self.trends
            for name, cuts in zip(term.pair, term.cuts, strict=True):
                own = part_labels(of[name], cuts, self.labels(of[name]), days=name in trends)
                both.append([f"{name} {part}" for part in own])
            return tuple(f"{a}, {b}" for a in both[0] for b in both[1])
        if term.flags:
            return term.flags
        named = getattr(self.plan, "levels", {}).get(term.name)
        return named if named is not None else tuple(str(i) for i in range(term.levels))

    def settings(self) -> dict[str, Any]:
        """The terms as JSON can hold them; `share` is an array and goes apart."""
        usual = asdict(Term(""))
        short = [{k: v for k, v in asdict(t).items() if v != usual[k]} for t in self.terms]
        return {"terms": short, "plan": self.plan and self.plan.to_json()}

    @classmethod
    def restore(cls, settings: dict[str, Any], share: np.ndarray) -> Terms:
        """The terms that `settings` described.

        Parameters
        ----------
        settings : dict
            What `settings` gave.
        share : numpy.ndarray
            Mean of each column of Z over the rows of training.
        """
        terms = tuple(Term(**{k: _tuple(v) for k, v in t.items()}) for t in settings["terms"])
        text = settings["plan"]
        plan = text and FeaturePlan.from_json(text)
        for term in terms:
            numbers = (term.mean, term.sd, term.low, term.high, *term.edges, *term.values)
            counts = (term.levels, term.start, term.stop)
            if not all(isinstance(x, int | float) for x in numbers) or not all(
                type(n) is int and n >= 0 for n in (*counts, *chain.from_iterable(term.cuts))
            ):
                raise Misfit("a term has something else than numbers")
            if term.ranked and not term.edges:
                raise Misfit("a line of ranks has no bins")
            if len(term.flags) not in (0, term.levels):
                raise Misfit("a term has other columns than levels")
            if not {*term.cycle} <= {*range(term.levels)}:
                raise Misfit("a cycle has other levels than its term")
            if not {*term.pair} <= {other.name for other in terms}:
                raise Misfit("a pair has columns that are not there")
            values = [other.values for other in terms if (other.name,) == term.pair]
            if any(len(known) != term.levels for known in values):
                raise Misfit("a number has other values than its codes")
        if 1 + sum(term.width for term in terms) != len(share):
            raise Misfit("the terms have other widths than their array")
        return cls(terms, plan, np.asarray(share))


def strengths(moments: np.ndarray, rows: int) -> np.ndarray:
    """The standard deviation of each term over so many rows; of classes the largest."""
    mean, square = moments / rows
    return np.sqrt(np.maximum(square - mean**2, 0)).max(axis=1, initial=0)


def terms_of(X: Any, *, steps: int = 20, plan: FeaturePlan | None = None) -> tuple[Terms, Design]:
    """The terms of a table or matrix, made from its rows, and their design.

    Parameters
    ----------
    X : frame, Arrow table, NumPy array or sparse matrix
        One row for each instance.
    steps : int
        How many steps a number has at most; 0 for lines only.
    plan : FeaturePlan, optional
        How to read the columns of a table; by default planned from them.
    """
    if X is None:
        terms = Terms(())
    elif is_matrix(X):
        terms = Terms(_matrix_terms(X, steps))
    else:
        terms = _table_terms(X, steps, plan)
    Z = terms.matrix(X)
    terms = replace(terms, share=Z.mean())
    return terms, Design(Z, terms.basis, terms.group)


def _table_terms(X: Any, steps: int, plan: FeaturePlan | None) -> Terms:
    plan = plan or plan_features(X, one_hot=MOST_LEVELS, most_buckets=MOST_BUCKETS)
    dropped = [
        f"{column.name!r} ({column.why})" for column in plan.columns if column.kind == "drop"
    ]
    if dropped:
        warnings.warn(f"Left out of the model: {', '.join(dropped)}.", DataWarning, stacklevel=2)
    levels = plan.levels
    made = {
        name: Term(name, len(known), cycle=_cycle(known[:-1]))  # the last is missing
        for name, known in levels.items()
        if known is not None
    }
    measured = FeaturePlan(tuple(c for c in plan.used if c.kind in ("numeric", "date", "boolean")))
    flags, taken = _Flags(tuple(levels)), set(levels)
    for name, values in measured.narrow_columns(X):
        flags.add(name, values)
    for run in (run for run in flags.runs if len(run) >= FLAGS):
        together = free_name(f"{run[0]} to {run[-1]}", taken)
        made |= dict.fromkeys(run, Term(together, len(run), flags=tuple(run), cycle=_cycle(run)))
    numbers = FeaturePlan(tuple(column for column in measured.used if column.name not in made))
    shared = len(levels) - len(made) > WIDE
    for name, values in numbers.narrow_columns(X):
        if name not in made:  # hours and weekdays of a date are
            made[name] = number_term(name, values, steps=steps, shared=shared)
    # a category comes once, where its first column is
    return Terms(tuple(dict.fromkeys(made[name] for name in levels)), plan)


def _cycle(labels: Sequence[str]) -> tuple[int, ...]:
    """The codes of levels in the order of the year or the day, where they are months, hours or
    weeks: as many whole numbers in a row, or names of months.

    >>> len(_cycle([f"hour_{hour}" for hour in range(24)])), _cycle(["1", "2", "3"])
    (24, ())
    """
    if len(labels) not in CYCLES:
        return ()
    months = [MONTHS.find(re.split(r"[\W_]", label)[-1][:3].lower()) // 3 for label in labels]
    numbers = [int(number) for label in labels for number in re.findall(r"\d+$", label)]
    for places in (months, numbers):
        first = min(places, default=0)
        if first in (0, 1) and sorted(places) == list(range(first, first + len(labels))):
            return tuple(np.argsort(places).tolist())
    return ()


class _Flags:
    """Finds runs of columns of zeros and ones of which a row has one at most: a category that
    somebody has turned into a column for each level.

    Parameters
    ----------
    names : tuple of str
        Of all columns, in order.
    """

    def __init__(self, names: tuple[str, ...]) -> None:
        self.before = dict(zip(names[1:], names, strict=False))
        self.runs: list[list[str]] = []
        self.taken = np.zeros(0, bool)

    def add(self, name: str, values: np.ndarray) -> None:
        """Look at one more column."""
        one = values == 1
        if not (one | (values == 0)).all():
            return
        after = bool(self.runs) and self.before.get(name) == self.runs[-1][-1]
        if after and not (self.taken & one).any():
            self.runs[-1].append(name)
            self.taken |= one
        else:
            self.runs.append([name])
            self.taken = one


def number_term(name: str, x: np.ndarray, *, steps: int, shared: bool = False) -> Term:
    """The term of a number: a line, and steps between its values.

    >>> number_term("age", np.array([20.0, 30.0, 30.0, 40.0]), steps=20).edges
    (25.0, 35.0)
    """
    known = x[np.isfinite(x)]
    if len(known) == 0:
        return Term(name, missing=True)
    mean = float(known.mean(dtype=float))
    sd, long_tail = spread_and_tail(known)
    ordered = np.sort(known) if not shared else known[:0]  # to sort it is most of the work
    edges = _edges(ordered, steps)
    term = Term(
        name,
        mean=mean,
        sd=sd if sd > 1e-12 * abs(mean) else 1.0,
        low=float(known.min()),
        high=float(known.max()),
        edges=edges,
        ranked=len(edges) > 1 and long_tail,
        missing=len(known) < len(x),
        group="numbers" if shared else "",
    )
    return replace(term, values=_codes(ordered, term)) if edges else term


def spread_and_tail(x: np.ndarray) -> tuple[float, bool]:
    """The standard deviation of a number, and whether its tail is long: its kurtosis is beyond that
    of the exponential law.

    >>> spread_and_tail(np.array([0.0, 2.0]))
    (1.0, False)
    """
    mean, second, fourth = float(x.mean(dtype=float)), 0.0, 0.0
    for rows in blocks(len(x)):
        squares = (x[rows].astype(float) - mean) ** 2
        second += float(squares.sum()) / len(x)
        fourth += float((squares**2).sum()) / len(x)  # `@` would wake BLAS's threads for this
    return float(np.sqrt(second)), fourth > LONG_TAIL * second**2


def _codes(ordered: np.ndarray, term: Term) -> tuple[float, ...]:
    """The values of a whole number that may be a code: several rows have each of them, the steps do
    not tell all of them apart, and the line of the number does.

    >>> shop = np.repeat(np.arange(100.0, 150.0), 10)
    >>> len(number_term("shop", shop, steps=20).values), number_term("x", shop / 3, steps=20).values
    (50, ())
    """
    most = min(MOST_LEVELS, len(ordered) // ROWS_EACH)
    values = ordered[[end - 1 for end in islice(_ends(ordered), most + 1)]].astype(float)
    whole = len(values) <= most and bool((values % 1 == 0).all())
    line = term.on_line(values)
    apart = bool((np.nextafter(line[:-1], np.float32(np.inf)) < line[1:]).all())  # room between
    several = len(values) > len(term.edges) + 1 and apart
    return tuple(values.tolist()) if whole and several else ()


def _edges(ordered: np.ndarray, steps: int) -> tuple[float, ...]:
    """Edges of about `steps` + 1 bins with as many rows each; a value that fills a bin has its own.

    A value as frequent as a bin (no capital gain at all) would swallow the quantiles; the other
    values share the bins that are left.
    """
    ends = list(islice(_ends(ordered), steps + 2))  # of the first values
    if len(ends) < 3 or steps < 1:
        return ()  # a line tells two values apart
    few = len(ends) < steps + 2  # each value has a bin
    last = np.array(ends[:-1]) if few else _last_of_bins(ordered, steps + 1)
    below, above = ordered[last - 1].astype(float), ordered[last].astype(float)
    return tuple(((below + above) / 2).tolist())


def _ends(ordered: np.ndarray) -> Iterator[int]:
    """Where the run of each value ends."""
    for rows in blocks(len(ordered)):
        part = ordered[rows.start : rows.stop + 1]
        yield from (rows.start + 1 + np.flatnonzero(part[1:] != part[:-1])).tolist()
    if len(ordered):
        yield len(ordered)


def _last_of_bins(ordered: np.ndarray, bins: int) -> np.ndarray:
    """Where bins of values that are in order end, without the last; there are more values than
    bins.

    Only the values near the ends are looked at: an array of a number for each value is as long as
    the column itself.
    """
    n = len(ordered)
    heavy = np.unique(ordered[:: n // bins])  # a value that fills a bin stands at one of these
    # such values have bins of their own, and the others share what is left of the bins evenly
    start, stop = (np.searchsorted(ordered, heavy, side) for side in ("left", "right"))
    fills = (stop - start) * bins > n
    start, stop = start[fills], stop[fills]
    taken = np.cumsum(stop - start)  # rows of these values and of those before
    before = np.append(0, taken)
    rest, bins = n - before[-1], max(bins - len(start), 1)
    ends = {int(end) for end in (*start, *stop)}
    for number in range(1, bins):
        light = min(number * rest // bins, rest - 1)  # among the other values
        place = light + before[np.searchsorted(start - before[:-1], light, "right")]
        first = int(np.searchsorted(ordered, ordered[place], "left"))
        end = int(np.searchsorted(ordered, ordered[place], "right"))
        middle = light - place + (first + end) / 2  # the value's rank, as its rows lie around it
        ends.add(first if int(middle / rest * bins) >= number else end)
    return np.array(sorted(ends - {0, n}))


def _matrix_terms(X: Any, steps: int) -> tuple[Term, ...]:
    """Blocks of zeros and ones that exclude each other are one term; the others are numbers."""
    blocks, numbers, constant = _blocks(X)
    if constant:
        warnings.warn(
            f"Left out of the model: {_listed(constant)} (one value only).",
            DataWarning,
            stacklevel=2,
        )
    terms = []
    for a, b in blocks:  # nameless columns, taken to be in order
        order = tuple(range(b - a)) if b - a in CYCLES else ()
        terms.append(Term(_name(a, b), levels=b - a, start=a, stop=b, cycle=order))
    shared = len(numbers) > WIDE
    for j in numbers:
        if sparse.issparse(X):
            entries = np.nan_to_num(X[:, [j]].data)
            rms = float(np.sqrt(np.mean(entries**2)))
            terms.append(Term(_name(j, j + 1), levels=1, sd=rms, start=j, stop=j + 1,
                              group="numbers" if shared else ""))  # fmt: skip
        else:
            # in the precision it has: to sort it is most of the work
            x = X[:, j] if X.dtype.kind == "f" else X[:, j].astype(float)
            term = number_term(_name(j, j + 1), x, steps=steps, shared=shared)
            terms.append(replace(term, start=j))
    return tuple(sorted(terms, key=lambda term: term.start))


def _blocks(X: Any) -> tuple[list[tuple[int, int]], list[int], list[int]]:
    """Runs of columns that are one-hot together, columns of numbers, and columns of one value."""
    columns = sparse.csc_array(X) if sparse.issparse(X) else X
    taken = np.zeros(X.shape[0], bool)
    blocks: list[tuple[int, int]] = []
    numbers, constant = [], []
    for j in range(X.shape[1]):
        where, values = _entries(columns, j)
        same = (values == values[:1]).all() or np.isnan(values).all()
        if len(where) in (0, X.shape[0]) and same:
            constant.append(j)
        elif not (values == 1).all():
            numbers.append(j)
        elif blocks and blocks[-1][1] == j and not taken[where].any():
            taken[where] = True
            blocks[-1] = (blocks[-1][0], j + 1)
        else:
            taken[:] = False
            taken[where] = True
            blocks.append((j, j + 1))
    return blocks, numbers, constant


def _entries(X: Any, j: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and values of the entries of a column that are not zero."""
    if sparse.issparse(X):
        here = slice(X.indptr[j], X.indptr[j + 1])
        stored = X.data[here] != 0
        return X.indices[here][stored], X.data[here][stored]
    where = np.flatnonzero(X[:, j])
    return where, X[where, j]


def _steps(share: np.ndarray) -> np.ndarray:
    """Bins in rows, steps in columns: bin m lies above the steps before it; less the mean over the
    rows.

    Steps add up along the line, so twenty of them would be a far bolder prior than one level. They
    are scaled so that, with coefficients of variance 1, the effect has variance 1 over the rows.
    """
    above = np.tri(len(share), len(share) - 1, -1)
    share = share / max(share.sum(), 1e-300)
    centred = above - share @ above
    return centred / np.sqrt(max(float(share @ (centred**2).sum(axis=1)), 1e-12))


def _waves(cycle: int) -> np.ndarray:
    """Levels in rows, sines and cosines of one to three waves around the cycle in columns.

    The shorter a wave, the smaller it is expected to be; with coefficients of variance 1 the effect
    has variance 1.
    """
    wave = np.arange(1, WAVES + 1)
    angle = 2 * np.pi * np.arange(cycle)[:, None] * wave / cycle
    return np.hstack([np.sin(angle) / wave, np.cos(angle) / wave]) / np.sqrt(np.sum(wave**-2.0))


def _ranks(share: np.ndarray) -> np.ndarray:
    """Of each bin the normal score of its mean rank, of mean 0 and variance 1 over the rows."""
    share = share / max(share.sum(), 1e-300)
    score = special.ndtri(np.clip(np.cumsum(share) - share / 2, 1e-9, 1 - 1e-9))
    score -= share @ score
    return score / np.sqrt(max(float(share @ score**2), 1e-12))


def _length(X: Any) -> int:
    return X.shape[0] if hasattr(X, "shape") else len(X)


def _name(start: int, stop: int) -> str:
    return f"column {start}" if stop == start + 1 else f"columns {start} to {stop - 1}"


def _listed(columns: Sequence[int]) -> str:
    shown = ", ".join(str(j) for j in columns[:5])
    more = f" and {len(columns) - 5} more" if len(columns) > 5 else ""
    return f"column{'s' if len(columns) > 1 else ''} {shown}{more}"


def _tuple(value: Any) -> Any:
    return tuple(map(_tuple, value)) if isinstance(value, list) else value
