"""The text of a LightGBM model, checked before LightGBM reads it.

LightGBM trusts the numbers in it: wrong ones make it read other memory, or go round in a circle.
"""

from __future__ import annotations

import re

from unbag._model_file import Misfit

LENGTHS = {  # of a tree with n leaves: how many numbers each line has
    "split_feature": -1,
    "threshold": -1,
    "decision_type": -1,
    "left_child": -1,
    "right_child": -1,
    "leaf_value": 0,
}


def check_booster(text: str, features: int | None) -> None:
    """Raise `Misfit` unless a text describes whole trees of so many features.

    Parameters
    ----------
    text : str
        What LightGBM wrote.
    features : int or None
        How many columns the rows have that will be predicted; None for as many as it says.
    """
    head, *trees = re.split(r"\n(?=Tree=)", text.partition("\nend of trees")[0])
    known = _lines(head)
    sizes = [int(size) for size in known.get("tree_sizes", "").split()]
    # LightGBM cuts the text by these sizes, of which each counts the end of line after its tree
    if sizes != [len(tree.encode()) + 1 for tree in trees]:
        raise Misfit("a booster's trees have other lengths than it says")
    own = int(known["max_feature_idx"]) + 1
    if own != (features or own) or int(known["num_tree_per_iteration"]) < 1:
        raise Misfit("a booster has another number of features")
    for tree in trees:
        _check_tree(_lines(tree), own)


def _lines(part: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in part.splitlines() if "=" in line)


def _check_tree(tree: dict[str, str], features: int) -> None:
    n = int(tree["num_leaves"])
    if n < 1 or int(tree["num_cat"]) < 0 or int(tree.get("is_linear", 0)):
        raise Misfit("a tree has no leaves")
    numbers = {name: tree.get(name, "").split() for name in LENGTHS}
    if n > 1 and any(len(numbers[name]) != n + less for name, less in LENGTHS.items()):
        raise Misfit("a tree has other numbers than its leaves need")
    if n == 1:
        return
    # every node but the first, and every leaf, is the child of one node: no way goes in a circle
    children = sorted(int(c) for side in ("left_child", "right_child") for c in numbers[side])
    if children != [*range(-n, 0), *range(1, n - 1)]:
        raise Misfit("the nodes of a tree are no tree")
    if not all(0 <= int(feature) < features for feature in numbers["split_feature"]):
        raise Misfit("a tree asks for a column that is not there")
    _check_categories(tree, numbers, int(tree["num_cat"]))


def _check_categories(tree: dict[str, str], numbers: dict[str, list[str]], count: int) -> None:
    """The sets of categories that nodes ask for lie within the words that hold them."""
    asks = [int(float(at)) for at, kind in zip(numbers["threshold"], numbers["decision_type"],
                                               strict=True) if int(kind) & 1]  # fmt: skip
    bounds = [int(bound) for bound in tree.get("cat_boundaries", "0").split()]
    words = tree.get("cat_threshold", "").split()
    inside = not asks or (min(asks) >= 0 and max(asks) < count)
    if not inside or (count and (len(bounds) != count + 1 or bounds != sorted(bounds))):
        raise Misfit("the categories of a tree are not there")
    if bounds[0] != 0 or bounds[-1] != len(words):
        raise Misfit("the categories of a tree are not there")
