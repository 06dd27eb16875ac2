"""Models and held-out bags in, the pool of models that nothing speaks against out: the paper's main
algorithm.

`splitting` says which bags estimate what, `summing` makes one pass over the predictions, `deciding`
plays all pairs.
"""

from unbag.tournaments._tournament import Tournament, tournament

__all__ = ["Tournament", "tournament"]
