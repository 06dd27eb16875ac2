"""Columns as ids, text, numbers or moments: the same for the same value from any source."""

# pyright: reportAttributeAccessIssue=false
# (the functions of pyarrow.compute are made when it is imported)

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unbag._rules import broken

LARGEST = 1e38  # of a number that features in single precision can hold
# numbers as other languages write them, and with separators of thousands: 1,5 or 1.234,5
OTHER_NUMBER = (
    r"^\s*[+-]?(\d*,\d+|[1-9]\d{0,2}((,\d{3})+(\.\d+)?|(\.\d{3})+,\d+|(\.\d{3}){2,}"
    "|([ '\u2019\u00a0\u202f]\\d{3})+([.,]\\d+)?))([eE][+-]?\\d+)?\\s*$"
)
AS_NUMBERS = "with a decimal point and without separators of thousands"
SECOND = 1_000_000  # moments are microseconds since 1970, in UTC


def plain(column: Any) -> pa.Array:
    """A column in one piece, dictionaries and the many forms of text undone, durations in
    seconds."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if is_text(array.type):
        return array.cast(pa.string())
    if pa.types.is_duration(array.type):
        scale = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}[array.type.unit]
        return pc.divide(array.cast(pa.int64()).cast(pa.float64(), safe=False), scale)
    return array


def is_text(kind: pa.DataType) -> bool:
    """Whether a type is text, or a dictionary of text."""
    if pa.types.is_dictionary(kind):
        return is_text(kind.value_type)
    return (
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def is_number(kind: pa.DataType) -> bool:
    """Whether a type is a number; truth values are not."""
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)


def is_amount(kind: pa.DataType) -> bool:
    """Whether a type is a number, or a duration, which is one of seconds."""
    return is_number(kind) or pa.types.is_duration(kind)


def is_date(kind: pa.DataType) -> bool:
    """Whether a type is a date or a moment."""
    return pa.types.is_date(kind) or pa.types.is_timestamp(kind)


def as_text(column: Any) -> pa.Array:
    """Values as text: whole numbers in decimal, days as 2026-11-16, moments as 2026-11-16 05:30:00;
    "" is missing.

    >>> as_text(pa.array([3.0, 2.5, None])).to_pylist(), as_text(pa.array(["", "a"])).to_pylist()
    (['3', '2.5', None], [None, 'a'])
    """
    array = plain(column)
    if pa.types.is_nested(array.type) or pa.types.is_binary(array.type):
        raise broken(
            "Ids, strata and levels must be text, numbers, dates or truth values",
            f"a column of type {array.type} given",
            "Write each as one text.",
        )
    if pa.types.is_timestamp(array.type):
        text = array.cast(pa.timestamp("us", array.type.tz)).cast(pa.string())
        for pattern in (r"\.0+(Z?)$", r" 00:00:00(Z?)$"):
            text = pc.replace_substring_regex(text, pattern, r"\1")
        return text
    text = array.cast(pa.string())
    if pa.types.is_floating(array.type) or pa.types.is_decimal(array.type):
        whole = pc.replace_substring_regex(text, r"\.0+$", "")
        text = pc.if_else(pc.equal(text, "nan"), pa.scalar(None, pa.string()), whole)
    return pc.if_else(pc.equal(text, ""), pa.scalar(None, pa.string()), text)


def as_codes(column: Any) -> tuple[pa.Array, np.ndarray]:
    """Texts, and of each value the number of its text (the last is a missing one).

    A dictionary stays one: only its texts are looked at, not all values.

    >>> texts, code = as_codes(pa.array(["b", None, "a", "b"]))
    >>> texts.to_pylist(), code
    (['b', 'a', None], array([0, 2, 1, 0], dtype=int32))
    """
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray) or not pa.types.is_dictionary(array.type):
        array = as_text(array).dictionary_encode()
    code = array.indices.cast(pa.int32()).fill_null(len(array.dictionary))
    texts = pa.concat_arrays([as_text(array.dictionary), pa.nulls(1, pa.string())])
    return texts, np.asarray(code)


def as_ids(batch: Any, keys: Sequence[str], *, text: bool) -> pa.Array:
    """The ids of bags as whole numbers, or as text; of several columns the texts, joined.

    Parameters
    ----------
    batch : pyarrow.Table
        Some rows.
    keys : sequence of str
        The columns with the ids.
    text : bool
        Whether they are text.

    >>> rows = pa.table({"shop": ["a", "b, c"], "week": [1, 2]})
    >>> as_ids(rows, ["shop", "week"], text=True).to_pylist()
    ['a, 1', 'b,, c, 2']
    """
    if not text:
        return plain(batch[keys[0]]).cast(pa.int64())
    texts = [as_text(batch[key]) for key in keys]
    if len(texts) == 1:
        return texts[0]
    # commas of the values are doubled, so that no two pairs give one text
    return pc.binary_join_element_wise(
        *(pc.replace_substring(each, ",", ",,") for each in texts), ", "
    )


def as_numbers(column: Any, *, name: str, thing: str = "events") -> np.ndarray:
    """Values as numbers, NaN where one is missing; text that is no number is refused.

    Parameters
    ----------
    column : pyarrow.Array or pyarrow.ChunkedArray
        The values.
    name, thing : str
        Of the column and of its table, for messages.

    >>> as_numbers(pa.array(["1.5", ""]), name="age")
    array([1.5, nan])
    """
    array = plain(column)
    numeric = is_number(array.type) or pa.types.is_boolean(array.type)
    if not (numeric or is_text(array.type) or pa.types.is_null(array.type)):
        raise broken(
            "A column of numbers must hold numbers",
            f"{name!r} of the {thing} has type {array.type}",
            "Choose another column, or another kind in the plan.",
        )
    try:
        if is_text(array.type):
            array = as_text(array)
        # not safe, or Arrow would refuse whole numbers above 2^53, which are rounded and mostly ids
        numbers = array.cast(pa.float64(), safe=False)
    except pa.ArrowInvalid as error:
        value = _quoted(error)
        remedy = "Correct it, or leave it empty where there is none."
        if thing == "reports":  # a report may be missing for more than one reason
            remedy = "Correct it, or leave it empty where there is none and say why with a status."
        if re.match(OTHER_NUMBER, value.strip("'")):  # 1,234 may be either number: never guessed
            remedy = f"Write numbers {AS_NUMBERS}: 1234.5, not 1,234.5 or 1.234,5."
        raise broken(
            "A column of numbers must hold numbers", f"{name!r} of the {thing} has {value}", remedy
        ) from error
    return np.asarray(numbers).astype(np.float64)


def is_known(x: np.ndarray) -> np.ndarray:
    """Which numbers are features: those that are missing, infinite or beyond 1e38 are not.

    Parameters
    ----------
    x : array
        Numbers.

    >>> is_known(np.array([1.0, np.nan, np.inf, 1e39]))
    array([ True, False, False, False])
    """
    return np.abs(x) <= LARGEST


def _quoted(error: Exception) -> str:
    quoted = re.search("'.*'", str(error))
    return quoted[0] if quoted else "something else"


def as_moments(column: Any, *, name: str, thing: str = "events") -> np.ndarray:
    """Times as numbers, NaN where one is missing: dates and moments in microseconds, numbers as
    they are.

    A moment without a time zone is taken to be in UTC; text must look like 2026-11-16 or 2026-11-16
    05:30.

    Parameters
    ----------
    column : pyarrow.Array or pyarrow.ChunkedArray
        The values.
    name, thing : str
        Of the column and of its table, for messages.

    >>> as_moments(pa.array(["1970-01-02", None]), name="day")
    array([8.64e+10,      nan])
    """
    array = plain(column)
    if is_number(array.type):
        return as_numbers(array, name=name, thing=thing)
    if is_text(array.type):
        array = _parsed(as_text(array), name, thing)
    if not (is_date(array.type) or pa.types.is_null(array.type)):
        raise broken(
            "A time must be a date, a moment or a number",
            f"{name!r} of the {thing} has type {array.type}",
            "Choose another column.",
        )
    zone = getattr(array.type, "tz", None)
    moments = array.cast(pa.timestamp("us", zone), safe=False).cast(pa.int64())
    return np.asarray(moments.cast(pa.float64(), safe=False)).astype(np.float64)


def _parsed(text: pa.Array, name: str, thing: str) -> pa.Array:
    """Text as moments, without a zone or all with one."""
    for kind in (pa.timestamp("us"), pa.timestamp("us", "UTC")):
        try:
            return text.cast(kind)
        except pa.ArrowInvalid as error:
            said = error
    raise broken(
        "A time must be written like 2026-11-16 or 2026-11-16 05:30",
        f"{name!r} of the {thing} has {_quoted(said)}",
        "Write it so.",
    )


def as_moment(value: Any) -> float:
    """The cut, as `as_moments` has times.

    >>> as_moment("1970-01-02"), as_moment(7)
    (86400000000.0, 7.0)
    """
    if isinstance(value, int | float | np.integer | np.floating):
        return float(value)
    if isinstance(value, np.datetime64):
        value = value.item()
    if not isinstance(value, date | datetime):
        value = str(value)
    return float(as_moments(pa.array([value]), name="cut", thing="arguments")[0])
