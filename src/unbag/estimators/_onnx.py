"""A fitted model as an ONNX graph in double precision, which serves without unbag and without
Python.

Tables have one input for each column, of shape (rows, 1): text for categories and truth values (""
is missing), numbers (NaN is missing), and whole microseconds since 1970 for dates (`MISSING` where
there is none). A matrix is one input. What the additive model adds for a level is looked up in a
table; trees become one tree ensemble for each booster.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from unbag._io import whole
from unbag._rules import broken
from unbag.learners import AdditiveModel, Fitted, TreesModel
from unbag.tables import Column, FeaturePlan, levels_of

OPSET, ML_OPSET = 17, 5
MISSING = -(2**63)
HOUR, DAY = 3_600_000_000, 86_400_000_000
TRUTH = {"false": ("false", "0", "no"), "true": ("true", "1", "yes")}
LEQ, EQ, SUM = 0, 4, 1
"""Codes of ONNX's tree ensembles: two ways to branch, and how trees are put together."""


def to_onnx(model: Any, path: str | Path) -> Path:
    """Write a model of `unbag.fit` or of an estimator as ONNX, for serving elsewhere.

    The outputs are `scores`, and `probabilities` (one column for each class) or `count`. Offsets of
    rows are not part of the graph: add them to the scores. The extra `unbag[onnx]` is needed to
    write the file.

    Parameters
    ----------
    model : Fitted, BagClassifier or BagRegressor
        Of the additive model and trees.
    path : str or Path
        Where to.

    Returns
    -------
    Path
        The file.
    """
    fitted = getattr(model, "fitted_", model)
    if not isinstance(fitted, Fitted) or not set(fitted.weights) <= {"additive", "trees"}:
        raise broken(
            "A model for ONNX must be made of the additive model and trees",
            f"{_made_of(fitted)} given",
            "Fit with {learner:additive}, trees or both, or serve one network with export().",
        )
    _refuse_hashed(fitted)
    graph = _Graph()
    scores = graph.fitted(fitted)
    classes = getattr(model, "classes_", None)
    text = graph.file(scores, fitted.kind, None if classes is None else classes.tolist())
    path = Path(path)
    with whole(path) as temporary:
        temporary.write_bytes(text)
    return path


def _made_of(fitted: Any) -> str:
    if isinstance(fitted, Fitted):
        return " and ".join(fitted.weights)
    return "one network" if fitted is None else type(fitted).__name__


def _refuse_hashed(fitted: Fitted) -> None:
    """Refuse columns that are hashed: ONNX has no MD5."""
    models: list[Any] = list(fitted.models.values())
    plans = [(one.terms if hasattr(one, "terms") else one.columns).plan for one in models]
    hashed = [c.name for plan in plans if plan is not None for c in plan.used if c.kind == "hash"]
    if hashed:
        raise broken(
            "A column for ONNX must have at most 4,096 values",
            f"{hashed[0]!r} has more and is hashed",
            "Leave it out, or group its rare values.",
        )


def _load_onnx() -> Any:
    try:
        import onnx
    except ImportError as error:
        raise ImportError("Writing ONNX needs onnx: pip install 'unbag[onnx]'.") from error
    return onnx


class _Graph:
    """Nodes so far; every method adds some and returns the name of their result."""

    def __init__(self) -> None:
        self.onnx = _load_onnx()
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: dict[str, Any] = {}
        self.read: dict[str, dict[str, str]] = {}

    def add(self, kind: str, *names: str, domain: str = "", **how: Any) -> str:
        """One node."""
        name = f"v{len(self.nodes)}"
        self.nodes.append(
            self.onnx.helper.make_node(kind, list(names), [name], domain=domain, **how)
        )
        return name

    def value(self, array: Any) -> str:
        """A constant, in double precision unless it is whole."""
        array = np.asarray(array)
        name = f"c{len(self.constants)}"
        if array.dtype.kind == "f":
            array = array.astype(np.float64)
        self.constants.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def number(self, value: float) -> str:
        return self.value(np.float64(value))

    def fitted(self, fitted: Fitted) -> str:
        """The combined score, of shape (rows, classes)."""
        combination = fitted.combination
        centre = np.asarray(combination.centre, float).reshape(len(combination.names), -1)
        total = self.value(np.reshape(np.asarray(combination.level, float), (1, -1)))
        for i, name in enumerate(combination.names):
            away = self.add("Sub", self.model(fitted.models[name]), self.value(centre[i : i + 1]))
            part = self.add("Mul", away, self.number(combination.weights[i]))
            total = self.add("Add", total, part)
        return total

    def model(self, model: Any) -> str:
        if isinstance(model, AdditiveModel):
            return self.additive(model)
        return self.trees(model)

    def additive(self, model: AdditiveModel) -> str:
        """The sum of the terms: tables of levels, lines and steps."""
        terms = model.terms
        level, start = np.asarray(terms.basis @ model.b, float), 1
        total = self.value(level[:1])
        columns = self.columns(terms.plan)
        columns |= {term.name: self.flags(term, columns) for term in terms.terms if term.flags}
        of = {term.name: term for term in terms.terms}
        for term in terms.terms:
            own = level[start : start + term.width]
            start += term.width
            if len(term.pair) == 1:
                number = of[term.pair[0]]
                part = self.table(self.code(number, columns.get(number.name)), own)
            elif term.pair:
                places = [self.place(of[name], columns.get(name)) for name in term.pair]
                part = self.table(self.cell(term, places), own)
            elif term.raw:
                part = self.raw(term, own)
            elif term.levels:
                part = self.table(columns[term.name], own)
            else:
                x = columns.get(term.name) or self.finite(self.matrix_column(term.start))
                part = self.curve(term, x, own)
            total = self.add("Add", total, part)
        return total

    def raw(self, term: Any, own: np.ndarray) -> str:
        """Columns of a matrix as they are, times their coefficients; missing counts nothing."""
        return self.add("MatMul", self.block(term), self.value(own / term.sd))

    def block(self, term: Any) -> str:
        """The columns of a matrix that a term takes as they are, 0 where one is missing."""
        X = self.add("Gather", self.matrix(), self.value(np.arange(term.start, term.stop)), axis=1)
        return self.add("Where", self.add("IsNaN", X), self.number(0), X)

    def place(self, term: Any, x: str | None) -> str:
        """The level or bin of a column of a pair, -1 for none; see `unbag.additive._pairs`."""
        if term.raw:
            there = self.add("Not", self.add("Equal", self.block(term), self.number(0)))
            numbers = self.value(np.arange(1.0, term.levels + 1)[None])
            each = self.add("Where", there, numbers, self.number(0))
            last = self.add("ReduceMax", each, axes=[1], keepdims=1)
            none = self.add("Equal", last, self.number(0))
            place = self.add("Sub", last, self.number(1))
            return self.add("Where", none, self.number(term.levels), place)
        if term.levels:
            assert x is not None
            return x
        gap, known = self.known(term, x or self.finite(self.matrix_column(term.start)))
        if not term.edges:
            return self.above(known, (term.mean,))
        missing = self.number(len(term.edges) + 1 if term.missing else -1)
        return self.add("Where", gap, missing, self.above(known, term.edges))

    def flags(self, term: Any, columns: dict[str, str]) -> str:
        """The last of its columns that is one, -1 for none."""
        codes = [self.number(-1)]
        for number, flag in enumerate(term.flags):
            one = self.add("Equal", columns[flag], self.number(1))
            codes.append(self.add("Where", one, self.number(number), self.number(-1)))
        return self.add("Max", *codes)

    def code(self, term: Any, x: str | None) -> str:
        """Which of its values a whole number has, -1 for none."""
        x = x or self.finite(self.matrix_column(term.start))
        values = np.array(term.values)
        place = self.above(x, (values[1:] + values[:-1]) / 2)
        same = self.add("Equal", self.look_up(self.value(values[:, None]), place), x)
        return self.add("Where", same, place, self.number(-1))

    def cell(self, term: Any, places: list[str]) -> str:
        """The cell of a pair, -1 for none."""
        first, second = (
            self.table(place, np.array(cuts, float)[:, None], unknown=-1)
            for place, cuts in zip(places, term.cuts, strict=True)
        )
        cell = self.add("Mul", first, self.number(max(term.cuts[1]) + 1))
        none = self.add("Less", self.add("Min", first, second), self.number(0))
        return self.add("Where", none, self.number(-1), self.add("Add", cell, second))

    def table(self, code: str, own: np.ndarray, *, unknown: float = 0) -> str:
        """The coefficient of each code; a code that is not known, -1, has none."""
        rows = self.value(np.concatenate([own, np.full((1, own.shape[1]), float(unknown))]))
        below = self.add("Less", code, self.number(0))
        place = self.add("Where", below, self.number(len(own)), code)
        return self.look_up(rows, place)

    def look_up(self, rows: str, place: str) -> str:
        flat = self.add("Reshape", self.whole(place), self.value(np.array([-1])))
        return self.add("Gather", rows, flat, axis=0)

    def whole(self, values: str) -> str:
        return self.add("Cast", values, to=self.onnx.TensorProto.INT64)

    def curve(self, term: Any, x: str, own: np.ndarray) -> str:
        """A line, steps at the edges, and a coefficient for missing."""
        gap, known = self.known(term, x)
        away = self.add("Sub", known, self.number(term.mean))
        line = self.add("Div", away, self.number(term.sd))
        total = self.add("MatMul", line, self.value(own[:1]))
        if term.edges:
            place = self.above(known, term.edges)
            steps = self.look_up(self.value(own[1 : len(term.edges) + 2]), place)
            total = self.add("Add", total, self.add("Where", gap, self.number(0), steps))
        if term.missing:
            missing = self.add("Where", gap, self.value(own[-1:]), self.number(0))
            total = self.add("Add", total, missing)
        return total

    def known(self, term: Any, x: str) -> tuple[str, str]:
        """Whether a number is missing, and the number within its range in training."""
        gap = self.add("IsNaN", x)
        known = self.add("Where", gap, self.number(term.mean), x)
        low, high = self.number(term.low), self.number(term.high)
        return gap, self.add("Min", self.add("Max", known, low), high)

    def above(self, x: str, edges: Sequence[float] | np.ndarray) -> str:
        """How many edges a number lies above."""
        above = self.add("Greater", x, self.value(np.array(edges, float)[None]))
        counted = self.add("Cast", above, to=self.onnx.TensorProto.DOUBLE)
        return self.add("ReduceSum", counted, self.value(np.array([1])), keepdims=1)

    def finite(self, x: str) -> str:
        """Numbers with NaN for what is infinite."""
        infinite = self.add("Equal", self.add("Abs", x), self.number(np.inf))
        return self.add("Where", infinite, self.number(np.nan), x)

    def trees(self, model: TreesModel) -> str:
        """The mean of the boosters."""
        total = self.value(np.reshape(model.levels.sum(axis=0), (1, -1)))
        X = self.tree_matrix(model)
        for dump in model.dumps():
            total = self.add("Add", total, self.ensemble(X, dump, model.levels[0].size))
        return self.add("Div", total, self.number(len(model.levels)))

    def tree_matrix(self, model: TreesModel) -> str:
        if model.columns.plan is None:
            return self.matrix()
        columns = self.columns(model.columns.plan)
        categorical = set(model.columns.categorical_names)
        parts = [self.unknown(x) if name in categorical else x for name, x in columns.items()]
        return self.add("Concat", *parts, axis=1)

    def unknown(self, code: str) -> str:
        """Codes for trees, which take NaN for a level that they do not know."""
        return self.add("Where", self.add("Less", code, self.number(0)), self.number(np.nan), code)

    def ensemble(self, X: str, dump: dict[str, Any], classes: int) -> str:
        """The trees of one booster."""
        nodes, leaves, roots = _Nodes([]), [], []
        for number, tree in enumerate(dump["tree_info"]):
            roots.append(len(nodes))
            nodes.tree(tree["tree_structure"], leaves, number % classes)
        tensor = self.onnx.numpy_helper.from_array
        columns = [list(column) for column in zip(*nodes, strict=True)]
        feature, mode, split, default, true, true_leaf, false, false_leaf = columns
        weights, targets = zip(*leaves, strict=True)
        return self.add(
            "TreeEnsemble",
            X,
            domain="ai.onnx.ml",
            aggregate_function=SUM,
            post_transform=0,
            n_targets=classes,
            tree_roots=roots,
            nodes_featureids=feature,
            nodes_modes=tensor(np.array(mode, np.uint8)),
            nodes_splits=tensor(np.array(split, np.float64)),
            nodes_missing_value_tracks_true=default,
            nodes_truenodeids=true,
            nodes_trueleafs=true_leaf,
            nodes_falsenodeids=false,
            nodes_falseleafs=false_leaf,
            leaf_weights=tensor(np.array(weights, np.float64)),
            leaf_targetids=list(targets),
        )

    def matrix(self) -> str:
        return self.input("X", self.onnx.TensorProto.DOUBLE, None)

    def matrix_column(self, number: int) -> str:
        return self.add("Gather", self.matrix(), self.value(np.array([number])), axis=1)

    def input(self, name: str, kind: int, width: int | None = 1) -> str:
        columns = "columns" if width is None else width
        self.inputs[name] = self.onnx.helper.make_tensor_value_info(name, kind, ["rows", columns])
        return name

    def columns(self, plan: FeaturePlan | None) -> dict[str, str]:
        """What each column of a table tells: numbers, or codes of levels with -1 for unknown."""
        if plan is None:
            return {}
        for column in plan.used:
            if column.name not in self.read:
                self.read[column.name] = dict(self.reading(column))
        return {name: x for c in plan.used for name, x in self.read[c.name].items()}

    def reading(self, column: Column) -> Iterator[tuple[str, str]]:
        kinds = self.onnx.TensorProto
        if column.kind == "numeric":
            yield column.name, self.finite(self.input(column.name, kinds.DOUBLE))
        elif column.kind == "date":
            yield from self.date(column, self.input(column.name, kinds.INT64))
        else:
            yield column.name, self.codes(column, self.input(column.name, kinds.STRING))

    def codes(self, column: Column, text: str) -> str:
        (levels,) = levels_of(column).values()
        keys = {value: i for i, value in enumerate(levels or ())}
        if column.kind == "boolean":
            ways = (str.lower, str.upper, str.capitalize)
            words = {way(w): key for key, own in TRUTH.items() for w in own for way in ways}
            keys = {word: keys[key] for word, key in words.items()} | {"missing": keys["missing"]}
        keys[""] = keys.pop("missing")
        code = self.add(
            "LabelEncoder",
            text,
            domain="ai.onnx.ml",
            keys_strings=list(keys),
            values_int64s=list(keys.values()),
            default_int64=-1,
        )
        return self.add("Cast", code, to=self.onnx.TensorProto.DOUBLE)

    def date(self, column: Column, moment: str) -> Iterator[tuple[str, str]]:
        """Hour, weekday and month as codes, and days since 1970."""
        gap = self.add("Equal", moment, self.value(np.int64(MISSING)))
        t = self.add("Cast", moment, to=self.onnx.TensorProto.DOUBLE)
        t = self.add("Where", gap, self.number(0), t)
        day = self.add("Div", t, self.number(DAY))
        whole_day = self.add("Floor", day)
        codes = {
            "hour": self.floor_of(self.remainder(t, DAY), HOUR),
            "weekday": self.remainder(self.add("Add", whole_day, self.number(3)), 7),
            "season": self.month(whole_day),
        }
        names = levels_of(column)
        for part in column.parts:
            levels = names[f"{column.name} {part}"] or ()
            missing = self.number(len(levels) - 1)
            yield f"{column.name} {part}", self.add("Where", gap, missing, codes[part])
        yield f"{column.name} trend", self.add("Where", gap, self.number(np.nan), day)

    def floor_of(self, x: str, unit: float) -> str:
        return self.add("Floor", self.add("Div", x, self.number(unit)))

    def remainder(self, x: str, unit: float) -> str:
        return self.add("Sub", x, self.add("Mul", self.floor_of(x, unit), self.number(unit)))

    def month(self, day: str) -> str:
        """The month of a day since 1970, January 0: years are counted from March, so that a leap
        day is the last one."""
        of_era = self.remainder(self.add("Add", day, self.number(719_468)), 146_097)
        leap = self.floor_of(of_era, 1460)
        century, era = self.floor_of(of_era, 36_524), self.floor_of(of_era, 146_096)
        days = self.add("Sub", self.add("Add", self.add("Sub", of_era, leap), century), era)
        year = self.floor_of(days, 365)
        before = self.add("Mul", year, self.number(365))
        before = self.add("Add", before, self.floor_of(year, 4))
        before = self.add("Sub", before, self.floor_of(year, 100))
        fifths = self.add("Mul", self.add("Sub", of_era, before), self.number(5))
        march = self.floor_of(self.add("Add", fifths, self.number(2)), 153)
        return self.remainder(self.add("Add", march, self.number(2)), 12)

    def file(self, scores: str, kind: str, classes: Any) -> bytes:
        """The graph, its outputs and its opsets."""
        outputs = {"scores": scores} | self.predictions(scores, kind)
        for name, made in outputs.items():
            self.nodes.append(self.onnx.helper.make_node("Identity", [made], [name]))
        double = self.onnx.TensorProto.DOUBLE
        info = [
            self.onnx.helper.make_tensor_value_info(name, double, ["rows", None])
            for name in outputs
        ]
        graph = self.onnx.helper.make_graph(
            self.nodes, "unbag", list(self.inputs.values()), info, self.constants
        )
        make = self.onnx.helper.make_opsetid
        versions = [make("", OPSET), make("ai.onnx.ml", ML_OPSET)]
        model = self.onnx.helper.make_model(graph, opset_imports=versions, producer_name="unbag")
        model.ir_version = 10
        if classes is not None:
            self.onnx.helper.set_model_props(model, {"classes": json.dumps(classes)})
        self.onnx.checker.check_model(model)
        return model.SerializeToString()

    def predictions(self, scores: str, kind: str) -> dict[str, str]:
        if kind == "total":
            return {"count": self.add("Exp", scores)}
        if kind == "histogram":
            return {"probabilities": self.add("Softmax", scores, axis=1)}
        h = self.add("Sigmoid", scores)
        rest = self.add("Sigmoid", self.add("Neg", scores))
        return {"probabilities": self.add("Concat", rest, h, axis=1)}


class _Nodes(list):
    """Nodes of trees in the order of ONNX: feature, mode, split, default, true and false branch."""

    def tree(self, node: dict[str, Any], leaves: list[tuple[float, int]], target: int) -> None:
        """All nodes of one tree, its root first; a tree that is one leaf gets a split in name."""
        if "leaf_value" in node:
            leaves.append((node["leaf_value"], target))
            place = len(leaves) - 1
            self.append([0, LEQ, 0.0, 0, place, 1, place, 1])
            return
        self.branch(node, leaves, target)

    def branch(self, node: dict[str, Any], leaves: list[tuple[float, int]], target: int) -> int:
        here, threshold = len(self), float(node["threshold"])
        equal = node["decision_type"] == "=="
        # LightGBM takes a missing number for 0 where no number was missing in training
        default = not equal and threshold >= 0.0
        if node["missing_type"] == "NaN" and not equal:
            default = bool(node["default_left"])
        mode = {True: EQ, False: LEQ}[equal]
        self.append([node["split_feature"], mode, threshold, int(default), 0, 0, 0, 0])
        for at, child in ((4, node["left_child"]), (6, node["right_child"])):
            leaf = "leaf_value" in child
            if leaf:
                leaves.append((child["leaf_value"], target))
                self[here][at : at + 2] = [len(leaves) - 1, 1]
            else:
                self[here][at : at + 2] = [self.branch(child, leaves, target), 0]
        return here
