"""`FeaturePlan`: how the columns of a table become one matrix, at training and at prediction; and
what the user wishes for each column."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np
import pyarrow as pa

from unbag._rules import broken, nearest
from unbag.tables._encode import (
    MOST_BUCKETS,
    PERIODS,
    Column,
    FeatureKind,
    as_read,
    encode,
    feature_names,
    levels_of,
    narrow,
)
from unbag.tables._rules import count
from unbag.tables._sources import Table, open_table, rows_within

FORMAT = 1
CSV_TYPES = {
    "numeric": pa.float64(),
    "category": pa.string(),
    "hash": pa.string(),
    "boolean": pa.string(),
}


class Part(NamedTuple):
    """Some rows.

    Parameters
    ----------
    X : array
        Their features.
    kept : pyarrow.Table
        The columns that were to be kept beside them.
    """

    X: np.ndarray
    kept: pa.Table


def csv_types(columns: Mapping[str, Any]) -> dict[str, pa.DataType]:
    """Types of the columns of CSV files, from columns or wishes by name."""
    return {name: CSV_TYPES[c.kind] for name, c in columns.items() if c.kind in CSV_TYPES}


def planned(columns: Iterable[Column]) -> FeaturePlan:
    """The plan of these columns, at least one of which must be read."""
    plan = FeaturePlan(tuple(columns))
    if not plan.read:
        reasons = "; ".join(f"{column.name}: {column.why}" for column in plan.columns)
        raise broken(
            "A plan must have at least one feature",
            f"none is left ({reasons})",
            "Add columns to the events.",
        )
    return plan


@dataclass(frozen=True)
class FeaturePlan:
    """How the columns of a table become features; made by `plan_features`, stored with the model as
    JSON.

    `apply` gives one matrix in single precision: first the numbers, then, for the columns that are
    hashed, their bucket numbers (whole numbers below 2^24, which single precision holds exactly).
    `models.mixed_network(plan.numbers, plan.buckets, plan.dimensions, key=0)` takes it; where
    nothing is hashed, any model does.

    Parameters
    ----------
    columns : tuple of Column
        What is done with each column of the table.

    >>> age = Column("age", "numeric", mean=30, sd=10)
    >>> plan = FeaturePlan((age, Column("id", "drop", why="it looks like an id")))
    >>> plan
    FeaturePlan(1 number, 0 hashed; dropped: id, it looks like an id)
    >>> plan.apply(pa.table({"age": [20, 50]})).tolist()
    [[-1.0], [2.0]]
    """

    columns: tuple[Column, ...]

    def __repr__(self) -> str:
        text = f"{count(self.numbers, 'number')}, {len(self.buckets)} hashed"
        dropped = "; ".join(f"{c.name}, {c.why}" for c in self.columns if c.kind == "drop")
        if dropped:
            text += f"; dropped: {dropped}"
        return f"FeaturePlan({text})"

    @cached_property
    def used(self) -> tuple[Column, ...]:
        """The columns that are read: numbers first, then hashes."""
        read = [column for column in self.columns if column.kind != "drop"]
        return tuple(sorted(read, key=lambda column: column.kind == "hash"))

    @property
    def read(self) -> list[str]:
        """What the columns that are read are called."""
        return [column.name for column in self.used]

    def without(self, names: Iterable[str], why: str) -> FeaturePlan:
        """The plan in which these columns are dropped, at least one other being left.

        Parameters
        ----------
        names : iterable of str
            The columns.
        why : str
            The reason.
        """
        gone = dict.fromkeys(names, why)
        return planned(
            Column(c.name, "drop", why=gone[c.name]) if c.name in gone else c for c in self.columns
        )

    @property
    def levels(self) -> dict[str, tuple[str, ...] | None]:
        """What the arrays of `narrow_columns` are called, and what their codes mean; None for a
        number."""
        return {name: known for column in self.used for name, known in levels_of(column).items()}

    @property
    def names(self) -> tuple[str, ...]:
        """What each column of the matrix is called."""
        return tuple(name for column in self.used for name in feature_names(column))

    @property
    def buckets(self) -> tuple[int, ...]:
        """How many buckets each hashed column has, with bucket 0 for missing values."""
        return tuple(column.buckets for column in self.used if column.kind == "hash")

    @property
    def dimensions(self) -> tuple[int, ...]:
        """The dimension of each hashed column's embedding."""
        return tuple(column.dimension for column in self.used if column.kind == "hash")

    @property
    def numbers(self) -> int:
        """How many columns of the matrix are numbers; the bucket numbers come after them."""
        return len(self.names) - len(self.buckets)

    def batches(
        self, source: Any, *, rows: int | None = None, keep: Sequence[str] = ()
    ) -> Iterator[Part]:
        """Features of about `rows` rows at a time, with the columns to keep beside them.

        Parameters
        ----------
        source, rows, keep : optional
            See `tables`.

        >>> plan = FeaturePlan((Column("age", "numeric"),))
        >>> [part.X.shape for part in plan.batches(pa.table({"age": [1, 2, 3]}), rows=2)]
        [(2, 1), (1, 1)]
        """
        for batch in self.tables(source, rows=rows, keep=keep):
            yield Part(self.features(batch), batch.select(list(keep)))

    @property
    def csv_types(self) -> dict[str, pa.DataType]:
        """Types of the columns that are read, in CSV files."""
        return csv_types({column.name: column for column in self.used})

    def _open(self, source: Any, keep: Sequence[str] = ()) -> Table:
        return open_table(source, types=dict.fromkeys(keep, pa.string()) | self.csv_types)

    def narrow_columns(self, source: Any) -> Iterator[tuple[str, np.ndarray]]:
        """All rows in narrow form, numbers or codes of levels, one column after the other, so that
        one is in memory at a time; see `unbag.tables.narrow`.

        >>> plan = FeaturePlan((Column("shop", "category", values=("a", "b")),))
        >>> dict(plan.narrow_columns(pa.table({"shop": ["b", None]})))
        {'shop': array([1, 2])}
        """
        table = self._open(source)
        batch = table.read(table.need(self.read))
        for column in self.used:
            yield from narrow(column, batch[column.name]).items()

    def reads(self, source: Any) -> bool:
        """Whether a table has every column that the plan reads."""
        return set(self.read) <= set(open_table(source).schema.names)

    def columns_of(self, batch: pa.Table) -> pa.Table:
        """The columns of an Arrow table that are read, as learners of tables take them: text where
        the plan has levels, numbers where it has numbers, moments where it has dates.

        >>> FeaturePlan((Column("zip", "category"),)).columns_of(pa.table({"zip": [8001, 8002]}))
        pyarrow.Table
        zip: dictionary<values=string, indices=int32, ordered=0>
        ----
        zip: [  -- dictionary:
        ["8001","8002"]  -- indices:
        [0,1]]
        """
        return pa.table({column.name: as_read(column, batch[column.name]) for column in self.used})

    def tables(
        self, source: Any, *, rows: int | None = None, keep: Sequence[str] = ()
    ) -> Iterator[pa.Table]:
        """The columns that are read, and those to keep, about `rows` rows at a time.

        Parameters
        ----------
        source : frame, pyarrow.Table, DuckDB relation, str or Path
            Rows with every column of the plan.
        rows : int, optional
            About how many at a time; by default as many as are 4 million numbers, at most 65,536.
        keep : sequence of str
            Further columns; in CSV files they are read as text, so that the id 007 stays 007.
        """
        table = self._open(source, keep)
        names = table.need([*self.read, *keep])
        rows = rows or rows_within(max(len(names), len(self.names)))
        yield from table.batches(names, rows=rows)

    def features(self, batch: pa.Table) -> np.ndarray:
        """The matrix of an Arrow table that has the columns."""
        return np.concatenate([encode(column, batch[column.name]) for column in self.used], axis=1)

    def apply(self, source: Any) -> np.ndarray:
        """The matrix of all rows, from a frame, an Arrow table, a DuckDB relation or a path."""
        nothing = np.empty((0, len(self.names)), np.float32)
        return np.concatenate([nothing, *(part.X for part in self.batches(source))])

    def to_json(self) -> str:
        """The plan as text."""
        usual = {field.name: field.default for field in fields(Column)}
        short = [
            {k: v for k, v in asdict(column).items() if v != usual[k]} for column in self.columns
        ]
        return json.dumps({"format": FORMAT, "columns": short}, indent=1, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> FeaturePlan:
        """The plan that `to_json` wrote."""
        try:
            stored = json.loads(text)
            version, columns = stored["format"], stored["columns"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise broken(
                "A plan must be JSON that unbag wrote", "something else given", "Make it again."
            ) from error
        if version != FORMAT:
            raise broken(
                f"A plan must have format {FORMAT}",
                f"{version} given",
                "Use the unbag that wrote it.",
            )
        return cls(tuple(_column(column) for column in columns))


def _column(settings: Any) -> Column:
    """A column that `to_json` wrote, refused where `plan_features` could not have made it."""
    try:
        lists = {name: tuple(value) for name, value in settings.items() if isinstance(value, list)}
        column = Column(**settings | lists)
        if _is_sound(column):
            return column
    except (AttributeError, TypeError):
        pass  # no mapping, unknown fields, or no numbers to compare
    raise broken(
        "A planned column must be one that unbag planned",
        f"{str(settings)[:80]} given",
        "Make the plan again.",
    )


def _is_sound(c: Column) -> bool:
    """Whether types and ranges are those of planned columns."""
    texts = (c.name, c.kind, c.why, *c.values, *c.parts)
    numbers = [isinstance(x, int | float) and math.isfinite(x) for x in (c.mean, c.sd)]
    sizes = [type(n) is int and 0 <= n <= MOST_BUCKETS for n in (c.buckets, c.dimension)]
    return (
        all(isinstance(text, str) for text in texts)
        and c.kind in get_args(FeatureKind)
        and set(c.parts) <= set(PERIODS)
        and (c.kind != "hash" or (c.buckets > 1 and c.dimension > 0))
        and (c.kind != "date" or len(c.parts) > 0)
        and all(numbers + sizes)
        and c.sd > 0
        and type(c.missing) is bool
    )


class Wish(NamedTuple):
    """What the user says of a column."""

    kind: str
    buckets: int = 0
    dimension: int = 0
    values: tuple[str, ...] = ()


def as_wishes(override: Any) -> dict[str, Wish]:
    """Wishes from a mapping, or from a TOML file with a table `columns`.

    >>> as_wishes({"shop": {"kind": "hash", "buckets": 64}})["shop"].buckets
    64
    """
    if override is None:
        return {}
    columns = override if isinstance(override, Mapping) else _from_file(Path(override))
    return {str(name): _wish(str(name), settings) for name, settings in columns.items()}


def _from_file(path: Path) -> Mapping[str, Any]:
    if not path.exists():
        raise FileNotFoundError(f"A file of a plan must exist: {path} does not. Look at the path.")
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise broken(
            "A file of a plan must be TOML", f"{path.name} is not ({error})", "Correct the file."
        ) from error
    columns = content.pop("columns", {})
    if content or not isinstance(columns, dict):
        strange = sorted(content) or ["columns"]
        raise broken(
            "A file of a plan must have tables [columns.<name>] only",
            f"{strange[0]!r} given in {path.name}",
            "Write [columns.shop] and below it kind = 'hash'.",
        )
    return columns


def _wish(name: str, settings: Any) -> Wish:
    if isinstance(settings, str):
        settings = {"kind": settings}
    if not isinstance(settings, Mapping):
        settings = {}
    strange = sorted(map(str, set(settings) - set(Wish._fields)))
    if strange or "kind" not in settings:
        question = "".join(nearest(word, Wish._fields) for word in strange[:1])
        raise broken(
            "A planned column must have a kind, and buckets, dimension or values",
            f"column {name!r} has {(*strange, 'no kind')[0]}",
            f"{question}Correct its settings.",
        )
    kinds = get_args(FeatureKind)
    if settings["kind"] not in kinds:
        raise broken(
            f"A planned kind must be one of {', '.join(kinds)}",
            f"{settings['kind']!r} given for column {name!r}",
            f"{nearest(str(settings['kind']), kinds)}Choose one.",
        )
    values = tuple(str(value) for value in settings.get("values", ()))
    wish = Wish(**{**settings, "values": values})
    sizes = wish.buckets, wish.dimension
    whole = all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in sizes)
    if not whole or wish.buckets == 1 or wish.buckets > MOST_BUCKETS:
        raise broken(
            f"Buckets must be a whole number from 2 to {MOST_BUCKETS}, a dimension one from 1",
            f"{wish.buckets} and {wish.dimension} given for column {name!r}",
            "Leave them out to have them chosen.",
        )
    return wish
