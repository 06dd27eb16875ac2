"""A table in, a `FeaturePlan` made from it out, in one or two passes over batches of rows."""

# pyright: reportAttributeAccessIssue=false
# (the functions of pyarrow.compute are made when it is imported)

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unbag._rules import broken
from unbag.tables._duckdb import plain_duckdb
from unbag.tables._encode import DAY, Column
from unbag.tables._overrides import MOST_BUCKETS, Wish, as_wishes
from unbag.tables._plan import CSV_TYPES, FeaturePlan
from unbag.tables._sources import Table, empty, open_table
from unbag.tables._values import as_moments, as_numbers, as_text, is_date, is_number, is_text

MOST_VALUES = 1000  # of a column that is to be one-hot by the user's word
LIKE_AN_ID = 0.9  # so many distinct values for each row are an id
FEW_ROWS = 100  # in which whole numbers may differ by chance


def plan_features(
    events: Any,
    *,
    features: Sequence[str] | None = None,
    leave_out: Sequence[str] = (),
    override: Any = None,
    one_hot: int = 32,
    most_buckets: int = 2**14,
) -> FeaturePlan:
    """Look at the columns of a table, and plan how each becomes features.

    Numbers are scaled to mean 0 and standard deviation 1; text of at most `one_hot` values becomes
    one column for each; text of more values is hashed into buckets, twice as many as there are
    values (counted approximately) up to `most_buckets`, each with an embedding; of dates remain the
    hour, the weekday and (from a year on) the season; missing values get an indicator. What is
    constant, empty, of an unknown type or looks like an id is dropped, with a word; whole numbers
    look like one when no two rows of more than 100 share one. The rows pass in batches, so that
    files may be larger than memory. No label is looked at.

    Parameters
    ----------
    events : a frame of pandas or polars, an Arrow table, a DuckDB relation, or a path of Parquet or
        CSV files.
    features : the columns to take; by default all. Whole numbers that you name are never taken for
        an id.
    leave_out : columns that are no features: bag, time, stratum, id.
    override : what you know better: the path of a TOML file with `[columns.<name>]` and in it
        `kind`, and `buckets`, `dimension` or `values`; or the same as a mapping from column to such
        settings.
    one_hot, most_buckets : see above.

    >>> plan_features(pa.table({"age": [20, 40, None], "shop": ["a", "b", "a"], "country": ["de"] * 3}))
    FeaturePlan(4 numbers, 0 hashed; dropped: country, it has one value only)
    """
    if isinstance(features, str):
        raise broken(
            "Features must be a list of columns",
            f"{features!r} came",
            f"Write [{features!r}] for one.",
        )
    wishes = as_wishes(override)
    types = {name: CSV_TYPES[wish.kind] for name, wish in wishes.items() if wish.kind in CSV_TYPES}
    table = open_table(events, types=types)
    names = table.need(features if features is not None else table.schema.names)
    names = [name for name in names if name not in leave_out]
    table.need(wishes)
    kinds = {name: _kind(table.schema.field(name).type, wishes.get(name)) for name in names}
    read = [name for name in names if kinds[name] not in ("drop", "unknown")]
    most = {name: MOST_VALUES if name in wishes else one_hot for name in read}
    seen = _survey(table, {name: kinds[name] for name in read}, most)
    many = [
        n
        for n in read
        if kinds[n] in ("text", "hash") and seen[n].values is None and not _buckets(wishes, n)
    ]
    many += [
        n
        for n in read
        if seen[n].apart and features is None and n not in wishes and seen[n].rows > FEW_ROWS
    ]
    distinct = _count_distinct(table, many)
    decide = lambda n: _decide(
        n, kinds[n], seen.get(n, Seen()), distinct.get(n, 0), wishes.get(n), most_buckets
    )
    columns = tuple(decide(name) for name in names)
    if all(column.kind == "drop" for column in columns):
        words = "; ".join(f"{column.name}: {column.why}" for column in columns)
        raise broken(
            "A plan must have at least one feature",
            f"none is left ({words})",
            "Add columns to the events.",
        )
    return FeaturePlan(columns)


class Seen(NamedTuple):
    """What was seen of a column so far: `squares` of deviations from the mean, `values` None once
    they are too many, `apart` whether it has whole numbers of which no batch had one twice."""

    rows: int = 0
    missing: int = 0
    mean: float = 0.0
    squares: float = 0.0
    low: float = np.inf
    high: float = -np.inf
    values: frozenset[str] | None = frozenset()
    clock: bool = False
    apart: bool = False


def _kind(kind: pa.DataType, wish: Wish | None) -> str:
    """How to look at a column; text, and a frame's categories of any type, become category or hash
    later."""
    if wish is not None:
        return wish.kind
    if is_text(kind) or pa.types.is_dictionary(kind) or pa.types.is_null(kind):
        return "text"
    of_type = {"numeric": is_number, "date": is_date, "boolean": pa.types.is_boolean}
    return next((name for name, test in of_type.items() if test(kind)), f"unknown:{kind}").split(
        ":"
    )[0]


def _buckets(wishes: dict[str, Wish], name: str) -> int:
    return wishes[name].buckets if name in wishes else 0


def _survey(table: Table, kinds: dict[str, str], most: dict[str, int]) -> dict[str, Seen]:
    seen, rows = {name: Seen() for name in kinds}, 0
    for batch in table.batches(list(kinds)) if kinds else ():
        rows += batch.num_rows
        seen = {
            name: _look(seen[name], batch[name], name, kind, most[name], typed=table.typed)
            for name, kind in kinds.items()
        }
    if kinds and rows == 0:
        raise ValueError(empty(table.thing))
    return seen


def _look(seen: Seen, column: Any, name: str, kind: str, most: int, *, typed: bool) -> Seen:
    """What is known of a column after one more batch."""
    if kind == "numeric":
        apart = (seen.apart or seen.rows == 0) and _are_apart(column, typed=typed)
        return _look_at_numbers(seen, as_numbers(column, name=name))._replace(apart=apart)
    if kind == "date":
        moment = as_moments(column, name=name)
        seen = _look_at_numbers(seen, moment)
        return seen._replace(clock=seen.clock or bool(np.any(np.nan_to_num(moment) % DAY != 0)))
    text = as_text(column)
    values = (
        None if seen.values is None else seen.values | set(text.drop_null().unique().to_pylist())
    )
    values = None if values is None or kind == "hash" or len(values) > most else values
    return seen._replace(
        rows=seen.rows + len(text), missing=seen.missing + text.null_count, values=values
    )


def _are_apart(column: Any, *, typed: bool) -> bool:
    """Whether no two rows share a whole number; CSV files have theirs in a column of any
    numbers."""
    whole = pa.types.is_integer(column.type) or (
        not typed and pc.all(pc.equal(column, pc.floor(column))).as_py()
    )
    return bool(whole) and len(column.unique()) == len(column)


def _look_at_numbers(seen: Seen, x: np.ndarray) -> Seen:
    """Mean and squares of two parts together: M = M1 + M2 + d^2 n1 n2 / n, with d the difference of
    their means."""
    good = x[np.isfinite(x)]
    seen = seen._replace(rows=seen.rows + len(x), missing=seen.missing + len(x) - len(good))
    if len(good) == 0:
        return seen
    before, n = seen.rows - len(x) - (seen.missing - (len(x) - len(good))), len(good)
    d, mean = good.mean() - seen.mean, seen.mean + (good.mean() - seen.mean) * n / (before + n)
    squares = (
        seen.squares + float(((good - good.mean()) ** 2).sum()) + d**2 * before * n / (before + n)
    )
    low, high = min(seen.low, float(good.min())), max(seen.high, float(good.max()))
    return seen._replace(mean=float(mean), squares=float(squares), low=low, high=high)


def _count_distinct(table: Table, names: list[str]) -> dict[str, int]:
    """About how many values each column has: DuckDB's HyperLogLog, in memory that does not grow
    with them."""
    if not names:
        return {}
    import duckdb

    schema = pa.schema([(f"c{i}", pa.string()) for i in range(len(names))])
    texts = lambda batch: pa.RecordBatch.from_arrays(
        [as_text(batch[name]) for name in names], schema=schema
    )
    reader = pa.RecordBatchReader.from_batches(
        schema, (texts(batch) for batch in table.batches(names))
    )
    with plain_duckdb(), duckdb.connect() as connection:
        connection.register("seen", reader)
        wanted = ", ".join(f"approx_count_distinct(c{i})" for i in range(len(names)))
        found = connection.execute(f"select {wanted} from seen").fetchone()
    return dict(zip(names, found or (), strict=True))


def _decide(
    name: str, kind: str, seen: Seen, distinct: int, wish: Wish | None, most_buckets: int
) -> Column:
    if kind in ("drop", "unknown"):
        return Column(
            name, "drop", why="as you said" if kind == "drop" else "its type is not known"
        )
    if wish is None and (why := _why_drop(kind, seen, distinct)):
        return Column(name, "drop", why=why)
    missing, wish = seen.missing > 0, wish or Wish(kind)
    if kind == "numeric":
        sd = float(np.sqrt(seen.squares / max(seen.rows - seen.missing, 1)))
        return Column(
            name,
            "numeric",
            mean=seen.mean,
            sd=sd if sd > 1e-12 * abs(seen.mean) else 1.0,
            missing=missing,
        )
    if kind == "date":
        return Column(name, "date", parts=_parts(seen), missing=missing)
    if kind == "boolean":
        return Column(name, "boolean", missing=missing)
    if kind == "hash" or (kind == "text" and seen.values is None):
        buckets = wish.buckets or min(most_buckets, _power_of_two(2 * distinct))
        return Column(
            name, "hash", buckets=buckets, dimension=wish.dimension or int(np.ceil(buckets**0.25))
        )
    if seen.values is None and not wish.values:
        raise broken(
            f"A category must have at most {MOST_VALUES} values",
            f"column {name!r} has more",
            "Give its values, or plan it as a hash.",
        )
    return Column(
        name, "category", values=wish.values or tuple(sorted(seen.values or ())), missing=missing
    )


def _why_drop(kind: str, seen: Seen, distinct: int) -> str:
    known = seen.rows - seen.missing
    if known == 0:
        return "it has no values"
    few = (
        seen.low == seen.high
        if kind in ("numeric", "date")
        else seen.values is not None and len(seen.values) == 1
    )
    if few and seen.missing == 0:
        return "it has one value only"
    if kind == "text" and seen.values is not None and known > FEW_ROWS:
        distinct = len(seen.values)
    if kind in ("text", "numeric") and distinct > LIKE_AN_ID * known:
        keep = "" if kind == "text" else " (name it among the features if it is none)"
        return f"nearly every row has its own value, as an id has{keep}"
    return ""


def _parts(seen: Seen) -> tuple[str, ...]:
    """The parts of dates that vary: the season only when it came more than once, else it is a
    trend."""
    there = {"hour": seen.clock, "weekday": True, "season": seen.high - seen.low >= 366 * DAY}
    return tuple(part for part, varies in there.items() if varies)


def _power_of_two(count: int) -> int:
    return int(min(MOST_BUCKETS, 2 ** int(np.ceil(np.log2(max(count, 2))))))
