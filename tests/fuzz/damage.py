"""Damage of files and values, drawn from a seed."""

import string

import numpy as np

EXTREMES = [
    None, True, False, 0, -1, 1, 7, 2**31, 2**63, -(2**63), 10**30, 0.0, -0.0, 1e-308, 1e308, -1e39,
    float("nan"), float("inf"), "", "nan", "x" * 300, "\x00", "\x1b[2J", "<script>", "é", [], {},
    [0], [-1], [500_000_000], ["a"], [[1]], {"a": 1},
]  # fmt: skip
WORDS = [
    "", "0", "-1", "-0.0", "1", "1.5", "nan", "inf", "-inf", "1e308", "1e-320", "99999999999999999999",
    "total", "binary", "bag", "x", "shop", "day", "n", "0.5", "upm", "1GB", "nowhere", "x" * 300, "\x1b[2J", "é", "a b", "--on", "2026-01-01",
    "2026-13-45", "1970", "[x]", "*", "%", "'", '"', ";", "{noise}", "null", "None",
]  # fmt: skip
CELLS = ["", "1", "-2.5", "1e300", "nan", "abc", "ü", "two words", "x,y", "q;r", 'say "hi"', "a\nb",
         "007", "true", "None", "0x1f", "1_000", "9007199254740993", " 3 ", "\t"]  # fmt: skip


def changed_bytes(content, rng):
    """The bytes with one thing wrong: a bit, a byte, a block, or the length."""
    content, place = bytearray(content), int(rng.integers(len(content)))
    block = slice(place, place + int(rng.integers(1, 64)))
    kind = rng.choice(["bit", "bit", "bit", "byte", "zeros", "cut", "gone", "twice", "noise"])
    if kind == "bit":
        content[place] ^= 1 << int(rng.integers(8))
    elif kind == "byte":
        content[place] = int(rng.integers(256))
    elif kind == "zeros":
        content[block] = bytes(len(content[block]))
    elif kind == "cut":
        del content[place:]
    elif kind == "gone":
        del content[block]
    elif kind == "twice":
        content[place:place] = content[block]
    else:
        content[block] = rng.bytes(len(content[block]))
    return bytes(content)


def paths_in(value, path=()):
    """The way to every value in nested lists and dictionaries."""
    yield path
    pairs = ()
    if isinstance(value, dict):
        pairs = value.items()
    if isinstance(value, list):
        pairs = enumerate(value[:50])
    for key, inner in pairs:
        yield from paths_in(inner, (*path, key))


def changed_settings(settings, rng):
    """The settings with one value replaced, taken away or added to."""
    ways = [path for path in paths_in(settings) if path]
    *outer, last = ways[int(rng.integers(len(ways)))]
    place = settings
    for key in outer:
        place = place[key]
    kind = rng.choice(["replaced", "replaced", "gone", "like"])
    if kind == "gone":
        del place[last]
    elif kind == "like" and isinstance(place[last], int | float):
        place[last] = place[last] * int(rng.choice([-1, 2, 1000, 10**9])) + 1
    else:
        place[last] = EXTREMES[int(rng.integers(len(EXTREMES)))]
    return settings


def changed_array(array, rng):
    """An array of another shape, of another type, or with values that are none."""
    kind = rng.choice(["shape", "type", "nan", "empty", "longer"])
    if kind == "shape":
        return array.reshape(-1)[None]
    if kind == "type":
        return array.astype(rng.choice(["float16", "int64", "uint8", "bool"]))
    if kind == "nan" and array.dtype.kind == "f" and array.size:
        return np.where(np.arange(array.size).reshape(array.shape) == 0, np.nan, array)
    if kind == "empty":
        return array[:0] if array.ndim else np.empty(0)
    return np.concatenate([array.reshape(-1), array.reshape(-1)])


def csv_text(rng):
    """A small CSV file of anything, and its separator."""
    separator = str(rng.choice(list(",;\t|")))
    columns = int(rng.integers(2, 5))
    names = [f"{letter}{i}" for i, letter in enumerate(string.ascii_lowercase[:columns])]
    rows = [names]
    kinds = rng.integers(3, size=columns)
    for _ in range(int(rng.integers(1, 12))):
        drawn = [str(rng.choice(CELLS)), f"{rng.normal():.5g}", str(rng.integers(-9, 99))]
        rows.append([drawn[kind] if kind else str(rng.choice(CELLS)) for kind in kinds])
    lines = [separator.join(_quoted(cell, separator) for cell in row) for row in rows]
    return "\n".join(lines) + str(rng.choice(["\n", "", "\r\n"])), separator


def _quoted(cell, separator):
    if any(mark in cell for mark in (separator, '"', "\n", "\r")):
        return '"' + cell.replace('"', '""') + '"'
    return cell
