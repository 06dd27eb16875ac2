"""A TOML file or a mapping in, what the user wishes for each column out."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, get_args

from unbag._rules import broken
from unbag.tables._encode import FeatureKind
from unbag.tables._sources import nearest

MOST_BUCKETS = 2**24  # single precision holds whole numbers up to here exactly


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
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise broken(
            "A file of a plan must be TOML", f"{path.name} is not ({error})", "Mend it."
        ) from error
    if set(found) - {"columns"} or not isinstance(found.get("columns", {}), dict):
        strange = sorted(set(found) - {"columns"}) or ["columns"]
        raise broken(
            "A file of a plan must have tables [columns.<name>] only",
            f"{strange[0]!r} came in {path.name}",
            "Write [columns.shop] and below it kind = 'hash'.",
        )
    return found.get("columns", {})


def _wish(name: str, settings: Any) -> Wish:
    settings = {"kind": settings} if isinstance(settings, str) else settings
    known = isinstance(settings, Mapping)
    strange = sorted(map(str, set(settings) - set(Wish._fields))) if known else []
    if not known or strange or "kind" not in settings:
        came = strange[0] if strange else "no kind"
        raise ValueError(
            "A planned column must have a kind, and buckets, dimension or values: column "
            f"{name!r} has {came}.{nearest(came, Wish._fields) if strange else ''} Mend its "
            "settings."
        )
    if settings["kind"] not in get_args(FeatureKind):
        raise ValueError(
            f"A planned kind must be one of {', '.join(get_args(FeatureKind))}: "
            f"{settings['kind']!r} came for column "
            f"{name!r}.{nearest(str(settings['kind']), get_args(FeatureKind))} Choose one."
        )
    return _checked(
        name, Wish(**{**settings, "values": tuple(str(v) for v in settings.get("values", ()))})
    )


def _checked(name: str, wish: Wish) -> Wish:
    whole = all(
        isinstance(n, int) and not isinstance(n, bool) for n in (wish.buckets, wish.dimension)
    )
    if (
        not whole
        or wish.dimension < 0
        or not (wish.buckets == 0 or 2 <= wish.buckets <= MOST_BUCKETS)
    ):
        raise broken(
            f"Buckets must be a whole number from 2 to {MOST_BUCKETS}, a dimension one from 1",
            f"{wish.buckets} and {wish.dimension} came for column {name!r}",
            "Leave them out to have them chosen.",
        )
    return wish
