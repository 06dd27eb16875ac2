"""How the columns of a table become features: a `FeaturePlan` inferred in one pass over batches."""

# pyright: reportAttributeAccessIssue=false
# (the functions of pyarrow.compute are made when it is imported)

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unbag._arrays import mix
from unbag._rules import broken
from unbag.tables._encode import DAY, MOST_BUCKETS, Column
from unbag.tables._errors import no_rows
from unbag.tables._plan import FeaturePlan, Wish, as_wishes, csv_types, planned
from unbag.tables._range import beyond_note
from unbag.tables._sources import Table, open_table
from unbag.tables._values import (
    AS_NUMBERS,
    LARGEST,
    OTHER_NUMBER,
    as_codes,
    as_moments,
    as_numbers,
    is_amount,
    is_date,
    is_known,
    is_number,
    is_text,
)

MOST_VALUES = 1000  # of a column that is to be one-hot by the user's word
LIKE_AN_ID = 0.9  # so many distinct values for each row are an id
FEW_ROWS = 100  # in which whole numbers may differ by chance
NUMBER = r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$"
OTHER_DATE = r"^\s*\d{1,2}[./-]\d{1,2}[./-](\d{2}|\d{4})\b"
MOSTLY = 0.9  # of the texts of a column that was meant to hold numbers
NAMES = r"(^|[\W_]|(?<=[a-z])(?=[A-Z]))(?i:id|uid|guid|key|code|zip|zip_?code|post_?code|plz|sku)$"
SOME = 1000  # texts of a batch that are looked at for numbers
SMALLEST = 4096  # hashes kept to count distinct values, exactly up to here, beyond to about 1.6%
OF_TYPE = {"numeric": is_amount, "date": is_date, "boolean": pa.types.is_boolean}

Overrides = Mapping[str, Any] | str | Path | None


def plan_features(
    events: Any,
    *,
    features: Sequence[str] | None = None,
    leave_out: Sequence[str] = (),
    override: Overrides = None,
    one_hot: int = 32,
    most_buckets: int = 2**14,
) -> FeaturePlan:
    """Look at the columns of a table, and plan how each becomes features.

    Numbers are scaled to mean 0 and standard deviation 1; text of at most `one_hot` values becomes
    one column for each; text of more values is hashed into buckets, twice as many as there are
    values (counted approximately) up to `most_buckets`, each with an embedding; of dates remain the
    hour, the weekday and (from a year on) the season; missing values get an indicator. What is
    constant, empty, of an unknown type or looks like an id is dropped, with the reason; whole
    numbers look like one when no two rows of more than 100 share one. The rows pass once, in
    batches, so that files may be larger than memory. No label is looked at.

    Parameters
    ----------
    events : frame, pyarrow.Table, DuckDB relation, str or Path
        A frame of pandas or polars, an Arrow table, a DuckDB relation, or a path of Parquet or CSV
        files.
    features : sequence of str, optional
        The columns to take; by default all. Whole numbers that you name are never taken for an id.
    leave_out : sequence of str
        Columns that are no features: bag, time, stratum, id.
    override : mapping, str or Path, optional
        What you know better: the path of a TOML file with `[columns.<name>]` and in it `kind`, and
        `buckets`, `dimension` or `values`; or the same as a mapping from column to such settings.
    one_hot, most_buckets : int
        See above.

    >>> events = pa.table({"age": [20, 40, None], "shop": ["a", "b", "a"], "country": ["de"] * 3})
    >>> plan_features(events)
    FeaturePlan(4 numbers, 0 hashed; dropped: country, it has one value only)
    """
    table = open_table(events, types=csv_types(as_wishes(override)))
    survey = Survey(
        table,
        features=features,
        leave_out=leave_out,
        override=override,
        one_hot=one_hot,
        most_buckets=most_buckets,
    )
    if survey.columns:
        for batch in table.batches(survey.columns):
            survey.add(batch)
    return survey.plan()


NOT_READ = ("drop", "unknown", "reported")  # kinds of columns whose values need not be looked at


class Survey:
    """Looks at the columns of a table: `add` batches that have `columns`, then ask for the `plan`.

    Parameters
    ----------
    table : Table
        The events; only names and types of its columns are read here.
    features, leave_out, override, one_hot, most_buckets
        See `plan_features`.
    ids : sequence of str
        Columns that name bags or strata, whose numbers are names: CSV files have them as text.
    types : pyarrow.Schema, optional
        What the columns hold, where the table reads ids as text; by default its own.
    reported : sequence of str
        Columns of the reports. One of the same name in the events is the answer itself, and left
        out unless `override` names it.
    """

    def __init__(
        self,
        table: Table,
        *,
        features: Sequence[str] | None = None,
        leave_out: Sequence[str] = (),
        override: Overrides = None,
        one_hot: int = 32,
        most_buckets: int = 2**14,
        ids: Sequence[str] = (),
        types: pa.Schema | None = None,
        reported: Sequence[str] = (),
    ) -> None:
        if isinstance(features, str):
            raise broken(
                "Features must be a list of columns",
                f"{features!r} given",
                f"Write [{features!r}] for one.",
            )
        self.table, self.most_buckets, self.wishes = table, most_buckets, as_wishes(override)
        table.need(self.wishes)
        self.may_be_ids, self.ids, self.types = features is None, ids, types or table.schema
        self.reported = reported
        wanted = table.columns
        if features is not None:
            wanted = features
        names = [name for name in table.need(wanted) if name not in leave_out]
        self.summaries = {name: self._start(name, one_hot) for name in names}
        self.rows = 0

    def _start(self, name: str, one_hot: int) -> Summary:
        kind, wish = self.types.field(name).type, self.wishes.get(name)
        if wish is not None:
            return Summary(name, wish.kind, most=MOST_VALUES)
        if name in self.reported:
            return Summary(name, "reported", most=one_hot)
        # 1017 is the name of a shop in a column shop_id, not a quantity with a mean
        named = is_number(kind) and (name in self.ids or re.search(NAMES, name) is not None)
        if named or is_text(kind) or pa.types.is_dictionary(kind) or pa.types.is_null(kind):
            return Summary(name, "text", most=one_hot)
        known = [name for name, test in OF_TYPE.items() if test(kind)]
        return Summary(name, (*known, "unknown")[0], most=one_hot)

    @property
    def columns(self) -> list[str]:
        """The columns to read."""
        return [s.name for s in self.summaries.values() if s.kind not in NOT_READ]

    def add(self, batch: pa.Table) -> None:
        """Look at one more batch."""
        self.rows += batch.num_rows
        for name in self.columns:
            self.summaries[name].add(batch[name], typed=self.table.typed)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user should know of the values."""
        beyond = [
            beyond_note(s.name, s.beyond, s.first) for s in self.summaries.values() if s.beyond
        ]
        own = [s for s in self.summaries.values() if s.kind == "text" and s.name not in self.wishes]
        why = {s.name: s.why_drop(may_be_id=False) for s in own}
        meant = [s for s in own if s.like_numbers and not is_number(self.types.field(s.name).type)]
        dropped = [s.name for s in meant if why[s.name]]
        return (
            *beyond,
            *(f"Column {name} is left out: {why[name]}." for name in dropped),
            *(s.text_note for s in own if s.text_note and not why[s.name]),
        )

    def plan(self) -> FeaturePlan:
        """The plan for what the batches had."""
        if self.columns and self.rows == 0:
            raise no_rows(self.table.thing)
        return planned(self._decide(summary) for summary in self.summaries.values())

    def _decide(self, summary: Summary) -> Column:
        name, kind, wish = summary.name, summary.kind, self.wishes.get(summary.name)
        other = f"its type, {self.types.field(name).type}, is no number, text or date"
        same = "the reports have it too, so it is what is to be learned"
        why = {"drop": "as you said", "unknown": other, "reported": same}.get(kind, "")
        if wish is None and not why:
            why = summary.why_drop(may_be_id=self.may_be_ids)
        if why:
            return Column(name, "drop", why=why)
        wish, missing = wish or Wish(kind), summary.missing > 0
        if kind == "numeric":
            return Column(name, "numeric", mean=summary.mean, sd=summary.sd, missing=missing)
        if kind == "date":
            return Column(name, "date", parts=summary.parts, missing=missing)
        if kind == "boolean":
            return Column(name, "boolean", missing=missing)
        if kind == "hash" or (kind == "text" and summary.values is None):
            power = int(np.ceil(np.log2(max(2 * summary.distinct, 2))))
            buckets = wish.buckets or min(self.most_buckets, MOST_BUCKETS, 2**power)
            dimension = wish.dimension or int(np.ceil(buckets**0.25))
            return Column(name, "hash", buckets=buckets, dimension=dimension)
        if summary.values is None and not wish.values:
            raise broken(
                f"A category must have at most {MOST_VALUES} values",
                f"column {name!r} has more",
                "Give its values, or plan it as a hash.",
            )
        values = wish.values or tuple(sorted(summary.values or ()))
        return Column(name, "category", values=values, missing=missing)


@dataclass
class Summary:
    """What is known of a column after some batches.

    `squares` are those of deviations from the mean; `values` is None once they are too many;
    `apart` says whether it has whole numbers of which no batch had one twice; `smallest` are the
    least hashes of its values, from which distinct ones are counted; `beyond` counts numbers that
    no feature can hold, the first of them in row `first`; `numbers` of all `texts` look like
    numbers, and `odd` is the first that does not; `dates` look like days, as 31.12.2026.
    """

    name: str
    kind: str
    most: int
    rows: int = 0
    missing: int = 0
    mean: float = 0.0
    squares: float = 0.0
    low: float = np.inf
    high: float = -np.inf
    values: set[str] | None = field(default_factory=set)
    clock: bool = False
    beyond: int = 0
    first: int = 0
    texts: int = 0
    numbers: int = 0
    odd: str = ""
    dates: int = 0
    apart: bool = True
    smallest: np.ndarray = field(default_factory=lambda: np.empty(0, np.uint64))

    def add(self, column: Any, *, typed: bool) -> None:
        """Look at one more batch of the column."""
        if self.kind == "numeric":
            self._add_numbers(as_numbers(column, name=self.name))
            self._add_apart(column, typed=typed)
        elif self.kind == "date":
            moment = as_moments(column, name=self.name)
            self._add_numbers(moment)
            self.clock = self.clock or bool(np.any(np.nan_to_num(moment) % DAY != 0))
        else:
            self._add_text(*as_codes(column))

    def _add_numbers(self, x: np.ndarray) -> None:
        """Mean and squares of two parts: M = M1 + M2 + d^2 n1 n2 / n, d the difference of means."""
        good, beyond = x[is_known(x)], np.flatnonzero(np.abs(x) > LARGEST)
        if len(beyond) and not self.beyond:
            self.first = self.rows + int(beyond[0])
        self.beyond += len(beyond)
        before, n = self.rows - self.missing, len(good)
        self.rows, self.missing = self.rows + len(x), self.missing + len(x) - n
        if n == 0:
            return
        d = float(good.mean()) - self.mean
        self.squares += float(((good - good.mean()) ** 2).sum()) + d**2 * before * n / (before + n)
        self.mean += d * n / (before + n)
        self.low, self.high = min(self.low, float(good.min())), max(self.high, float(good.max()))

    def _add_apart(self, column: Any, *, typed: bool) -> None:
        """CSV files have whole numbers in a column of any numbers."""
        whole = pa.types.is_integer(column.type)
        if not whole and not typed:
            whole = bool(pc.all(pc.equal(column, pc.floor(column))).as_py())
        self.apart = self.apart and whole
        if not self.apart:
            return  # a look at all values is worth it only while they may be ids
        unique = column.unique()
        self.apart = len(unique) == len(column)
        if self.apart:
            self._keep(mix(unique.drop_null().cast(pa.int64()).to_numpy().view(np.uint64)))

    def _add_text(self, texts: pa.Array, code: np.ndarray) -> None:
        times = np.bincount(code, minlength=len(texts))
        gap = np.asarray(texts.is_null())
        self.rows, self.missing = self.rows + len(code), self.missing + int(times[gap].sum())
        unique = texts.filter(pa.array((times > 0) & ~gap)).unique()
        if self.kind == "text":
            self._note_numbers(unique)
        self._keep(_hashes(unique))
        if self.values is not None and self.kind != "hash":
            self.values |= set(unique.to_pylist())
        if self.kind == "hash" or len(self.values or ()) > self.most:
            self.values = None

    def _note_numbers(self, unique: pa.Array) -> None:
        """One stray value turns a column of numbers into text, which would pass for ids."""
        some = unique.slice(0, SOME)
        number, other = (
            pc.match_substring_regex(some, pattern) for pattern in (NUMBER, OTHER_NUMBER)
        )
        self.texts += len(some)
        self.numbers += pc.sum(pc.or_(number, other)).as_py() or 0
        self.dates += pc.sum(pc.match_substring_regex(some, OTHER_DATE)).as_py() or 0
        if self.like_numbers and not self.odd:
            strange = unique.filter(pc.invert(pc.match_substring_regex(unique, NUMBER)))
            self.odd = "".join(strange.slice(0, 1).to_pylist())

    @property
    def like_numbers(self) -> bool:
        """Whether most texts are numbers, some of them as 1,5 or 1.234,5."""
        return self.numbers > MOSTLY * self.texts

    @property
    def text_note(self) -> str:
        """What a user should know of a text column that was meant to hold something else."""
        said = f"Column {self.name} is read as text"
        if self.texts and self.dates > MOSTLY * self.texts:
            return f"{said}, but holds days: write them as 2026-11-16."
        if self.texts and self.like_numbers and re.match(OTHER_NUMBER, self.odd):
            return f"{said}, but holds numbers, as {self.odd!r}: write them {AS_NUMBERS}."
        return ""

    def _keep(self, hashes: np.ndarray) -> None:
        self.smallest = np.unique(np.concatenate([self.smallest, hashes]))[:SMALLEST]

    @property
    def distinct(self) -> int:
        """About how many values there are: k hashes below a share s of all are of k / s values."""
        if len(self.smallest) < SMALLEST:
            return len(self.smallest)
        return round((SMALLEST - 1) * 2.0**64 / float(self.smallest[-1]))

    @property
    def sd(self) -> float:
        """The standard deviation; 1 where it is nothing but rounding."""
        sd = float(np.sqrt(self.squares / max(self.rows - self.missing, 1)))
        if sd > 1e-12 * abs(self.mean):
            return sd
        return 1.0

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of dates that vary: the season only when it comes again, else it is a trend."""
        year = self.high - self.low >= 366 * DAY
        varies = {"hour": self.clock, "weekday": True, "season": year}
        return tuple(part for part, does in varies.items() if does)

    def why_drop(self, *, may_be_id: bool) -> str:
        """Why the column is no feature; empty when it is one."""
        known = self.rows - self.missing
        if known == 0:
            return "it has no values"
        one_value = self.values is not None and len(self.values) == 1
        if self.kind in ("numeric", "date"):
            one_value = self.low == self.high
        if one_value and self.missing == 0:
            return "it has one value only"
        like_an_id = self.distinct > LIKE_AN_ID * known
        many = self.values is None or known > FEW_ROWS
        if self.kind == "text" and many and like_an_id:
            if self.like_numbers and self.odd:
                return (
                    f"most values are numbers and some are not, as {self.odd!r}; write all as "
                    f"numbers, {AS_NUMBERS}"
                )
            if self.like_numbers:
                return (
                    "nearly every row has a different number, as ids do; if it is a quantity, plan "
                    "it as numeric"
                )
            return "nearly every row has a different value, as ids do"
        whole = self.kind == "numeric" and self.apart and self.rows > FEW_ROWS
        if whole and may_be_id and like_an_id:
            return (
                "nearly every row has a different whole number, as ids do; name it as a feature to "
                "use it"
            )
        return ""


def _hashes(text: pa.Array) -> np.ndarray:
    """A hash of each text without gaps: its bytes times powers of an odd number, mixed."""
    if len(text) == 0:
        return np.empty(0, np.uint64)
    text = pa.concat_arrays([text])  # copied, so that it starts at the start of its buffers
    _, offsets, data = text.buffers()
    start = np.frombuffer(offsets, np.int32)[text.offset : text.offset + len(text) + 1]
    length = np.diff(start)
    byte = np.frombuffer(data, np.uint8)[start[0] : start[-1]].astype(np.uint64) + np.uint64(1)
    place = np.arange(len(byte)) - np.repeat(start[:-1] - start[0], length)
    power = np.cumprod(np.full(length.max(), 0x9E3779B97F4A7C15, np.uint64))
    return mix(np.add.reduceat(byte * power[place], start[:-1] - start[0]))
