"""A fitted model as an ONNX graph in double precision, which serves without unbag and without
Python.

Tables have one input for each column, of shape (rows, 1): text for categories and truth values (""
is missing), numbers (NaN is missing), and whole microseconds since 1970 for dates (`MISSING` where
there is none). A matrix is one input. What the additive model adds for a level is looked up in a
table; trees become one tree ensemble for each booster.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
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
# codes of ONNX's tree ensembles: two ways to branch, and how trees are put together
LEQ, EQ, SUM = 0, 4, 1


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
        made_of = "one network" if fitted is None else type(fitted).__name__
        if isinstance(fitted, Fitted):
            made_of = " and ".join(fitted.weights)
        rule = "A model for ONNX must be made of the additive model and trees"
        remedy = "Fit with {learner:additive}, trees or both, or serve one network with export()."
        raise broken(rule, f"{made_of} given", remedy)
    models: list[Any] = list(fitted.models.values())
    plans = [(one.terms if hasattr(one, "terms") else one.columns).plan for one in models]
    hashed = [c.name for plan in plans if plan is not None for c in plan.used if c.kind == "hash"]
    if hashed:  # ONNX has no MD5
        rule = "A column for ONNX must have at most 4,096 values"
        remedy = "Leave it out, or group its rare values."
        raise broken(rule, f"{hashed[0]!r} has more and is hashed", remedy)
    graph, classes = _Graph(), getattr(model, "classes_", None)
    known = None if classes is None else classes.tolist()
    text = graph.file(graph.fitted(fitted), fitted.kind, known)
    with whole(Path(path)) as temporary:
        temporary.write_bytes(text)
    return Path(path)


class _Value:
    """The result of a node, or a constant; arithmetic with it adds nodes to its graph."""

    def __init__(self, graph: _Graph, name: str) -> None:
        self.graph, self.name = graph, name

    def __add__(self, other: Any) -> _Value:
        return self.graph.add("Add", self, other)

    def __sub__(self, other: Any) -> _Value:
        return self.graph.add("Sub", self, other)

    def __mul__(self, other: Any) -> _Value:
        return self.graph.add("Mul", self, other)

    def __truediv__(self, other: Any) -> _Value:
        return self.graph.add("Div", self, other)

    def __matmul__(self, other: Any) -> _Value:
        return self.graph.add("MatMul", self, other)

    def __lt__(self, other: Any) -> _Value:
        return self.graph.add("Less", self, other)

    def __floordiv__(self, unit: float) -> _Value:
        return self.graph.add("Floor", self / unit)

    def __mod__(self, unit: float) -> _Value:
        return self - (self // unit) * unit


class _Graph:
    """Nodes so far; every method adds some and returns their result."""

    def __init__(self) -> None:
        try:
            import onnx
        except ImportError as error:
            raise ImportError("Writing ONNX needs onnx: pip install 'unbag[onnx]'.") from error
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: dict[str, Any] = {}
        self.read: dict[str, dict[str, _Value]] = {}

    def add(self, kind: str, *inputs: Any, domain: str = "", **how: Any) -> _Value:
        """One node; numbers and arrays among its inputs become constants."""
        given = [x if isinstance(x, _Value) else self.value(x) for x in inputs]
        names, name = [x.name for x in given], f"v{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(kind, names, [name], domain=domain, **how))
        return _Value(self, name)

    def value(self, given: Any) -> _Value:
        """A constant, in double precision unless it is an array of whole numbers."""
        array, name = np.asarray(given), f"c{len(self.constants)}"
        if array.dtype.kind == "f" or isinstance(given, int):
            array = array.astype(np.float64)
        self.constants.append(self.onnx.numpy_helper.from_array(array, name))
        return _Value(self, name)

    def where(self, condition: _Value, yes: Any, no: Any) -> _Value:
        return self.add("Where", condition, yes, no)

    def double(self, x: _Value) -> _Value:
        return self.add("Cast", x, to=self.onnx.TensorProto.DOUBLE)

    def fitted(self, fitted: Fitted) -> _Value:
        """The combined score, of shape (rows, classes)."""
        combination = fitted.combination
        centre = np.asarray(combination.centre, float).reshape(len(combination.names), -1)
        total = self.value(np.reshape(np.asarray(combination.level, float), (1, -1)))
        for i, name in enumerate(combination.names):
            model: Any = fitted.models[name]
            score = {AdditiveModel: self.additive}.get(type(model), self.trees)(model)
            total = total + (score - centre[i : i + 1]) * float(combination.weights[i])
        return total

    def additive(self, model: AdditiveModel) -> _Value:
        """The sum of the terms: tables of levels, lines and steps."""
        terms = model.terms
        level, start = np.asarray(terms.basis @ model.b, float), 1
        total, columns = self.value(level[:1]), self.columns(terms.plan)
        columns |= {term.name: self.flags(term, columns) for term in terms.terms if term.flags}
        of = {term.name: term for term in terms.terms}
        for term in terms.terms:
            own = level[start : start + term.width]
            start += term.width
            if len(term.pair) == 1:
                part = self.table(self.code(of[term.pair[0]], columns), own)
            elif term.pair:
                places = [self.place(of[name], columns) for name in term.pair]
                part = self.table(self.cell(term, places), own)
            elif term.raw:
                part = self.block(term) @ (own / term.sd)
            elif term.levels:
                part = self.table(columns[term.name], own)
            else:
                part = self.curve(term, self.numbers(term, columns), own)
            total = total + part
        return total

    def block(self, term: Any) -> _Value:
        """The columns of a matrix that a term takes as they are, 0 where one is missing."""
        X = self.add("Gather", self.matrix(), np.arange(term.start, term.stop), axis=1)
        return self.where(self.add("IsNaN", X), 0, X)

    def numbers(self, term: Any, columns: dict[str, _Value]) -> _Value:
        """The column of a term, of a table or of a matrix, with NaN for what is not finite."""
        if term.name in columns:
            return columns[term.name]
        return self.finite(self.add("Gather", self.matrix(), np.array([term.start]), axis=1))

    def place(self, term: Any, columns: dict[str, _Value]) -> _Value:
        """The level or bin of a column of a pair, -1 for none; see `unbag.additive._pairs`."""
        if term.raw:
            there = self.add("Not", self.add("Equal", self.block(term), 0))
            each = self.where(there, np.arange(1.0, term.levels + 1)[None], 0)
            last = self.add("ReduceMax", each, axes=[1], keepdims=1)
            return self.where(self.add("Equal", last, 0), term.levels, last - 1)
        if term.levels:
            return columns[term.name]
        gap, known = self.known(term, self.numbers(term, columns))
        if not term.edges:
            return self.above(known, (term.mean,))
        missing = len(term.edges) + 1 if term.missing else -1
        return self.where(gap, missing, self.above(known, term.edges))

    def flags(self, term: Any, columns: dict[str, _Value]) -> _Value:
        """The last of its columns that is one, -1 for none."""
        ones = [self.add("Equal", columns[flag], 1) for flag in term.flags]
        return self.add("Max", -1, *(self.where(one, i, -1) for i, one in enumerate(ones)))

    def code(self, term: Any, columns: dict[str, _Value]) -> _Value:
        """Which of its values a whole number has, -1 for none."""
        x, values = self.numbers(term, columns), np.array(term.values)
        place = self.above(x, (values[1:] + values[:-1]) / 2)
        same = self.add("Equal", self.look_up(values[:, None], place), x)
        return self.where(same, place, -1)

    def cell(self, term: Any, places: list[_Value]) -> _Value:
        """The cell of a pair, -1 for none."""
        first, second = (
            self.table(place, np.array(cuts, float)[:, None], unknown=-1)
            for place, cuts in zip(places, term.cuts, strict=True)
        )
        cell = first * (int(max(term.cuts[1])) + 1) + second
        return self.where(self.add("Min", first, second) < 0, -1, cell)

    def table(self, code: _Value, own: np.ndarray, *, unknown: float = 0) -> _Value:
        """The coefficient of each code; a code that is not known, -1, has none."""
        rows = np.concatenate([own, np.full((1, own.shape[1]), float(unknown))])
        return self.look_up(rows, self.where(code < 0, len(own), code))

    def look_up(self, rows: np.ndarray, place: _Value) -> _Value:
        whole = self.add("Cast", place, to=self.onnx.TensorProto.INT64)
        return self.add("Gather", rows, self.add("Reshape", whole, np.array([-1])), axis=0)

    def curve(self, term: Any, x: _Value, own: np.ndarray) -> _Value:
        """A line, steps at the edges, and a coefficient for missing."""
        gap, known = self.known(term, x)
        total = ((known - term.mean) / term.sd) @ own[:1]
        if term.edges:
            steps = self.look_up(own[1 : len(term.edges) + 2], self.above(known, term.edges))
            total = total + self.where(gap, 0, steps)
        if term.missing:
            total = total + self.where(gap, own[-1:], 0)
        return total

    def known(self, term: Any, x: _Value) -> tuple[_Value, _Value]:
        """Whether a number is missing, and the number within its range in training."""
        gap = self.add("IsNaN", x)
        known = self.add("Max", self.where(gap, term.mean, x), term.low)
        return gap, self.add("Min", known, term.high)

    def above(self, x: _Value, edges: Sequence[float] | np.ndarray) -> _Value:
        """How many edges a number lies above."""
        above = self.add("Greater", x, np.array(edges, float)[None])
        return self.add("ReduceSum", self.double(above), np.array([1]), keepdims=1)

    def finite(self, x: _Value) -> _Value:
        """Numbers with NaN for what is infinite."""
        return self.where(self.add("Equal", self.add("Abs", x), np.inf), np.nan, x)

    def trees(self, model: TreesModel) -> _Value:
        """The mean of the boosters."""
        total = self.value(np.reshape(model.levels.sum(axis=0), (1, -1)))
        if model.columns.plan is None:
            X = self.matrix()
        else:  # trees take NaN for a level that they do not know
            columns = self.columns(model.columns.plan)
            for name in model.columns.categorical_names:
                columns[name] = self.where(columns[name] < 0, np.nan, columns[name])
            X = self.add("Concat", *columns.values(), axis=1)
        for dump in model.dumps():
            total = total + self.ensemble(X, dump, model.levels[0].size)
        return total / len(model.levels)

    def ensemble(self, X: _Value, dump: dict[str, Any], classes: int) -> _Value:
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

    def matrix(self) -> _Value:
        return self.input("X", "DOUBLE", "columns")

    def input(self, name: str, kind: str, width: int | str = 1) -> _Value:
        of = getattr(self.onnx.TensorProto, kind)
        self.inputs[name] = self.onnx.helper.make_tensor_value_info(name, of, ["rows", width])
        return _Value(self, name)

    def columns(self, plan: FeaturePlan | None) -> dict[str, _Value]:
        """What each column of a table tells: numbers, or codes of levels with -1 for unknown."""
        used = getattr(plan, "used", ())
        for column in used:
            if column.name not in self.read:
                self.read[column.name] = self.reading(column)
        return {name: x for column in used for name, x in self.read[column.name].items()}

    def reading(self, column: Column) -> dict[str, _Value]:
        if column.kind == "date":
            return self.date(column, self.input(column.name, "INT64"))
        if column.kind == "numeric":
            return {column.name: self.finite(self.input(column.name, "DOUBLE"))}
        (levels,) = levels_of(column).values()
        keys = {value: i for i, value in enumerate(levels or ())}
        if column.kind == "boolean":
            ways = (str.lower, str.upper, str.capitalize)
            words = {way(w): key for key, own in TRUTH.items() for w in own for way in ways}
            keys = {word: keys[key] for word, key in words.items()} | {"missing": keys["missing"]}
        keys[""] = keys.pop("missing")
        known = {"keys_strings": list(keys), "values_int64s": list(keys.values())}
        text = self.input(column.name, "STRING")
        code = self.add("LabelEncoder", text, domain="ai.onnx.ml", **known, default_int64=-1)
        return {column.name: self.double(code)}

    def date(self, column: Column, moment: _Value) -> dict[str, _Value]:
        """Hour, weekday and month as codes, and days since 1970."""
        gap = self.add("Equal", moment, np.int64(MISSING))
        t = self.where(gap, 0, self.double(moment))
        day, whole_day = t / DAY, t // DAY
        # The month, January 0: years are counted from March, so that a leap day is the last one.
        of_era = (whole_day + 719_468) % 146_097
        year = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
        of_year = of_era - (year * 365 + year // 4 - year // 100)
        month = ((of_year * 5 + 2) // 153 + 2) % 12
        codes = {"hour": (t % DAY) // HOUR, "weekday": (whole_day + 3) % 7, "season": month}
        read, names = {}, levels_of(column)
        for part in column.parts:
            name = f"{column.name} {part}"
            read[name] = self.where(gap, len(names[name] or ()) - 1, codes[part])
        return read | {f"{column.name} trend": self.where(gap, np.nan, day)}

    def file(self, scores: _Value, kind: str, classes: Any) -> bytes:
        """The graph, its outputs and its opsets."""
        outputs = {"scores": scores}
        if kind == "total":
            outputs["count"] = self.add("Exp", scores)
        elif kind == "histogram":
            outputs["probabilities"] = self.add("Softmax", scores, axis=1)
        else:
            h = [self.add("Sigmoid", z) for z in (self.add("Neg", scores), scores)]
            outputs["probabilities"] = self.add("Concat", *h, axis=1)
        helper, info = self.onnx.helper, []
        for name, made in outputs.items():
            self.nodes.append(helper.make_node("Identity", [made.name], [name]))
            shape = (self.onnx.TensorProto.DOUBLE, ["rows", None])
            info.append(helper.make_tensor_value_info(name, *shape))
        given = (list(self.inputs.values()), info, self.constants)
        graph = helper.make_graph(self.nodes, "unbag", *given)
        versions = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ML_OPSET)]
        model = helper.make_model(graph, opset_imports=versions, producer_name="unbag")
        model.ir_version = 10
        if classes is not None:
            helper.set_model_props(model, {"classes": json.dumps(classes)})
        self.onnx.checker.check_model(model)
        return model.SerializeToString()


class _Nodes(list):
    """Nodes of trees in the order of ONNX: feature, mode, split, default, true and false branch."""

    def tree(self, node: dict[str, Any], leaves: list[tuple[float, int]], target: int) -> None:
        """All nodes of one tree, its root first; a tree that is one leaf gets a split in name."""
        if "leaf_value" in node:
            leaves.append((node["leaf_value"], target))
            place = len(leaves) - 1
            self.append([0, LEQ, 0.0, 0, place, 1, place, 1])
        else:
            self.branch(node, leaves, target)

    def branch(self, node: dict[str, Any], leaves: list[tuple[float, int]], target: int) -> int:
        here, threshold = len(self), float(node["threshold"])
        mode = {"==": EQ}.get(node["decision_type"], LEQ)
        # LightGBM takes a missing number for 0 where no number was missing in training
        default = threshold >= 0.0
        if node["missing_type"] == "NaN":
            default = bool(node["default_left"])
        default = default and mode == LEQ
        self.append([node["split_feature"], mode, threshold, int(default), 0, 0, 0, 0])
        for at, child in ((4, node["left_child"]), (6, node["right_child"])):
            if "leaf_value" in child:
                leaves.append((child["leaf_value"], target))
                self[here][at : at + 2] = [len(leaves) - 1, 1]
            else:
                self[here][at : at + 2] = [self.branch(child, leaves, target), 0]
        return here
