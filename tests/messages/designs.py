"""Bad input of designs, and the whole message that it gets."""

from unbag import design_bags

MESSAGES = [
    (
        lambda: design_bags([1, 2], size=1, salt="a|b"),
        (
            "A salt must not contain \"|\", which joins the parts of the text: 'a|b' given. Use "
            "another."
        ),
    ),
    (
        lambda: design_bags([], size=1),
        "There must be at least one row id: none given. Give one for each instance.",
    ),
    (
        lambda: design_bags([1.5, 2.5], size=1),
        "A row id to hash must be an integer or a string: float64 given. Write it as text, in "
        "the same way in all places.",
    ),
    (
        lambda: design_bags([True, False], size=1),
        (
            "A row id to hash must be an integer or a string: bool given. Write it as text, in the "
            "same way in all places."
        ),
    ),
    (
        lambda: design_bags([1, 2, 3], size=1, stratum=["a", "a"]),
        (
            "stratum must have one entry for each id: 2 given for 3 ids. Give them in the order of "
            "the ids."
        ),
    ),
    (
        lambda: design_bags(["x", "y", "x", "z"], size=2),
        "An id of a closed set must be unique in its stratum: row 2 has x (1 such row). Hash "
        "ids of events, or give expected=, which puts the rows of an id into one bag.",
    ),
    (
        lambda: design_bags([1, 2], size=0),
        "A size of bags must be a positive whole number below 2^53: 0 given. Say how many instances.",
    ),
    (
        lambda: design_bags([1, 2, 3, 4, 5], size=2, stratum=list("aaaab")),
        "A stratum must have instances for two bags of 2, because each bag is centred by the "
        "mean of the others: stratum 1 has 1 ('b') (1 such stratum). Make the bags smaller, or "
        "merge small strata.",
    ),
    (
        lambda: design_bags([1, 2], size=1, expected={"a": 10}),
        "An expected count must be a number without strata: dict given. Give one count for each "
        "stratum, or one for all without strata.",
    ),
    (
        lambda: design_bags([1, 2], size=1, stratum=["a", "b"], expected={"a": 10}),
        "Every stratum must have an expected count: b has none (1 such). Add it, so that its "
        "number of bags is fixed before the first id comes.",
    ),
]
