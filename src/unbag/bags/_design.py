"""Which bag an instance shall be in: random bags within strata, by a hash that databases repeat."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import md5
from typing import Any

import numpy as np

from unbag._rules import broken, refuse, rows
from unbag.bags._build import as_ids


def design_bags(
    ids: Any, *, size: int, stratum: Any = None, salt: str = "", expected: Any = None
) -> np.ndarray:
    """Assign instances to random bags of about `size` within each stratum, repeatably.

    The same ids get the same bags today, tomorrow and in SQL. The specification is fixed:

        text      salt | stratum | id, joined by "|"; the stratum is empty when there is none;
                  integers in decimal
        hash      the first 15 hexadecimal digits of the MD5 of the text in UTF-8, as an integer
                  (below 2^60)
        closed    n = count // size,            number = (rank * n) // count,
                  rank by (hash, id as text) from 0
        arriving  n = round(expected / size),   number = hash mod n      (round half to even)
        bag       stratum/number, or the number alone without strata, as text

    A closed set of ids, all of them at hand, is cut into n bags whose sizes differ by one at most
    (`size` or a little more). While ids arrive, `expected` says how many will come, and each id has
    its bag at once; sizes then vary, about as a Poisson variable does, and an id that comes again
    falls into the same bag. Take ids of events rather than of persons where you can: a person's
    events in one bag are alike, and bags are then less random than they look. Change the salt to
    draw anew. In DuckDB the hash is

        ('0x' || substr(md5(concat_ws('|', salt, stratum, id)), 1, 15))::BIGINT

    and in Spark `cast(conv(substr(md5(concat_ws('|', salt, stratum, id)), 1, 15), 16, 10) as
    bigint)`.

    Parameters
    ----------
    ids : array of int or str
        Of the instances; in a closed set unique within each stratum.
    size : int
        Of a bag, about. Reports of strata that are too small for two bags cannot be used, and are
        refused here.
    stratum : array, optional
        Of each instance, e.g. its campaign.
    salt : str
        Any text without "|".
    expected : int or mapping, optional
        How many ids will come; with strata a mapping from each stratum to its number. By default
        the ids are a closed set.

    Returns
    -------
    array of str
        The name of each instance's bag, for `from_rows` and for whoever adds up the reports.

    >>> design_bags([7, 8, 9, 10, 11], size=2, salt="spring")
    array(['0', '0', '1', '1', '0'], dtype='<U1')
    """
    text, strata, number = _texts(ids, stratum, salt)
    hashed = stable_hash(text, np.asarray(strata)[number], salt=salt)
    if not (isinstance(size, int | np.integer) and 1 <= size < 2**53):
        raise broken(
            "A size of bags must be a positive whole number below 2^53",
            f"{size} given",
            "Say how many instances.",
        )
    if expected is None:
        count = np.bincount(number, minlength=len(strata))
        bags = _checked_bags(strata, count, count // size, size)
        place = _ranks(text, number, hashed) * bags[number] // count[number]
    else:
        count = _expected(expected, strata, stratified=stratum is not None)
        bags = _checked_bags(strata, count, np.round(count / size).astype(np.int64), size)
        place = hashed % bags[number]
    if stratum is None:
        return np.array([str(p) for p in place.tolist()])
    return np.array([f"{strata[s]}/{p}" for s, p in zip(number, place.tolist(), strict=True)])


def stable_hash(ids: Any, stratum: Any = None, *, salt: str = "") -> np.ndarray:
    """The hash of `design_bags`: 15 hexadecimal digits of the MD5 of "salt|stratum|id".

    Parameters
    ----------
    ids : sequence
        Of the instances.
    stratum : sequence, optional
        Of each instance.
    salt : str
        Any text without "|".

    >>> stable_hash([7], ["brand"], salt="spring")
    array([398769544051890896])
    """
    if stratum is None:
        stratum = [""] * len(ids)
    joined = (f"{salt}|{s}|{i}".encode() for s, i in zip(stratum, ids, strict=True))
    digits = (md5(text, usedforsecurity=False).hexdigest()[:15] for text in joined)
    return np.array([int(first, 16) for first in digits], np.int64)


def _texts(ids: Any, stratum: Any, salt: str) -> tuple[list[str], list[str], np.ndarray]:
    """Ids as text, the names of the strata as text, and the stratum number of each id."""
    if "|" in salt:
        raise broken(
            'A salt must not contain "|", which joins the parts of the text',
            f"{salt!r} given",
            "Use another.",
        )
    text = _text(ids, "row id")
    if stratum is None:
        return text, [""], np.zeros(len(text), np.int64)
    named = _text(stratum, "stratum")
    rows(len(named), len(text), thing="stratum", of="id")
    strata, number = np.unique(np.array(named, dtype=object), return_inverse=True)
    return text, strata.tolist(), number


def _text(values: Any, thing: str) -> list[str]:
    array = as_ids(values, thing)
    if len(array) == 0:
        raise broken(
            f"There must be at least one {thing}", "none given", "Give one for each instance."
        )
    if not isinstance(array[0], int | np.integer | str) or isinstance(array[0], bool):
        raise broken(
            f"A {thing} to hash must be an integer or a string",
            f"{type(array[0]).__name__} given",
            "Write it as text, in the same way in all places.",
        )
    return [str(value) for value in array.tolist()]


def _ranks(text: list[str], number: np.ndarray, hashed: np.ndarray) -> np.ndarray:
    """The rank of each id in its stratum by (hash, text), from 0."""
    names = np.array(text, dtype=object)
    order = np.lexsort((np.unique(names, return_inverse=True)[1], hashed, number))
    same = (np.diff(number[order]) == 0) & (names[order][1:] == names[order][:-1])
    doubled = np.zeros(len(text), bool)
    doubled[order[1:]] = same
    refuse(
        "An id of a closed set must be unique in its stratum",
        doubled,
        thing="row",
        given=names,
        remedy="Hash ids of events, or give {expected}, which puts the rows of an id into one bag.",
    )
    count = np.bincount(number)
    rank = np.empty(len(text), np.int64)
    rank[order] = np.arange(len(text)) - (np.cumsum(count) - count)[number[order]]
    return rank


def _checked_bags(strata: list[str], count: np.ndarray, bags: np.ndarray, size: int) -> np.ndarray:
    refuse(
        f"A stratum must have instances for two bags of {size}, because each bag is centred by "
        "the mean of the others",
        bags < 2,
        thing="stratum",
        given=[f"{n} ({name!r})" for name, n in zip(strata, count, strict=True)],
        remedy="Make the bags smaller, or merge small strata.",
    )
    return bags


def _expected(expected: Any, strata: list[str], *, stratified: bool) -> np.ndarray:
    """The number of ids that will come in each stratum."""
    if stratified != isinstance(expected, Mapping):
        form = ("a number without strata", "a mapping from strata")[stratified]
        raise broken(
            f"An expected count must be {form}",
            f"{type(expected).__name__} given",
            "Give one count for each stratum, or one for all without strata.",
        )
    counts = {"": expected}
    if stratified:
        counts = {str(name): count for name, count in expected.items()}
    missing = [name for name in strata if name not in counts]
    if missing:
        raise broken(
            "Every stratum must have an expected count",
            f"{missing[0]} has none ({len(missing)} such)",
            "Add it, so that its number of bags is fixed before the first id comes.",
        )
    return np.array([counts[name] for name in strata])
