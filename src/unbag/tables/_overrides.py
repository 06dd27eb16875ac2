"""What the user wishes for each column, from a TOML file or a mapping."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, get_args

from unbag._rules import broken, nearest
from unbag.tables._encode import MOST_BUCKETS, FeatureKind


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
    return _checked(name, Wish(**{**settings, "values": values}))


def _checked(name: str, wish: Wish) -> Wish:
    sizes = wish.buckets, wish.dimension
    whole = all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in sizes)
    if not whole or wish.buckets == 1 or wish.buckets > MOST_BUCKETS:
        raise broken(
            f"Buckets must be a whole number from 2 to {MOST_BUCKETS}, a dimension one from 1",
            f"{wish.buckets} and {wish.dimension} given for column {name!r}",
            "Leave them out to have them chosen.",
        )
    return wish
