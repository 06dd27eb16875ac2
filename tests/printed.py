"""What a page promises and what its code printed in, nothing or a failed assertion out."""

import re

import pytest

NUMBER = re.compile(r"([\[(]*)([-+]?[0-9][0-9,]*(?:\.[0-9]+)?)([\]),.;:%]*)")


def assert_same(promised: str, printed: str) -> None:
    """Word for word; numbers that training ends in may differ a little from machine to machine."""
    for said, word in zip(promised.split(), printed.split(), strict=True):
        first, second = NUMBER.fullmatch(said), NUMBER.fullmatch(word)
        if first is None or second is None:
            assert word == said
            continue
        assert (first[1], first[3]) == (second[1], second[3]), (said, word)
        expected, value = (float(found[2].replace(",", "")) for found in (first, second))
        if "." in first[2]:
            assert value == pytest.approx(expected, abs=0.02), (said, word)
        # large counts, such as what bags are worth in labels, follow from numbers like those above
        else:
            assert value == pytest.approx(expected, rel=0.15 if expected >= 100 else 0), (
                said,
                word,
            )
