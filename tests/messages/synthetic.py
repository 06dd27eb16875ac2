"""Bad input of synthetic, and the whole message that it gets."""

from unbag.datasets import make_campaigns, make_counts, make_gaussian, make_heavy_tailed

MESSAGES = [
    (
        lambda: make_gaussian(0, 5, seed=0),
        (
            "Made data must have at least one row, test row and feature: 0, 5 and 10 given. Ask for "
            "more."
        ),
    ),
    (
        lambda: make_heavy_tailed(seed=0, freedom=0),
        "Degrees of freedom must be positive: 0 given. Use 2.5 for heavy tails.",
    ),
    (
        lambda: make_campaigns(seed=0, campaigns=0),
        "Data must have at least one campaign: 0 given. Use 1 for data without structure.",
    ),
    (
        lambda: make_counts(seed=0, least_exposure=0),
        "A least exposure must lie above 0 and be at most 1: 0 given. Use 1 for none.",
    ),
    (
        lambda: make_counts(seed=0, dispersion=-1),
        "A dispersion must not be negative: -1 given. Use 0 for Poisson counts.",
    ),
]
