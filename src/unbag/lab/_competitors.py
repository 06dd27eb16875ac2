"""Whoever takes part in a benchmark: methods, learners, estimators and modules, all as learners."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from inspect import signature
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit

import unbag.learners
from unbag._rules import broken
from unbag.bags import Bags, Kind
from unbag.lab._catalogue import METHODS as ADDED
from unbag.lab._catalogue import TITLES
from unbag.learners import LEARNERS, NetworkLearner
from unbag.likelihood import count_likelihood
from unbag.methods import FOR_NETWORKS
from unbag.methods import METHODS as KNOWN
from unbag.peers import PEERS, count_evidence, level_of

EDGE = 1e-4  # probabilities of an estimator are kept so far from 0 and 1
DEFAULT, LABELS = "unbag_fit", "labels"


class Budget(NamedTuple):
    """What every network gets, by whichever method it learns.

    Parameters
    ----------
    hidden : tuple of int
        Widths of the hidden layers.
    epochs : int
        At most.
    folds : int
        Of the bags that stop it.
    rates : tuple of float
        Learning rates, averaged by the likelihood of held-out counts.
    """

    hidden: tuple[int, ...] = (32,)
    epochs: int = 60
    folds: int = 5
    rates: tuple[float, ...] = (3e-3, 1e-2)

    def network(self, method: Any) -> NetworkLearner:
        """A network that learns by a method of the table, or by an objective."""
        return NetworkLearner(method=method, **self._asdict())


class Competitor(NamedTuple):
    """One row of a leaderboard.

    Parameters
    ----------
    title : str
        What tables call it.
    make : callable
        From a budget to a learner.
    kinds : tuple of str
        The kinds of report that it takes.
    """

    title: str
    make: Callable[[Budget], Any]
    kinds: tuple[Kind, ...] = ("binary", "total", "histogram")


class Default:
    """`unbag.fit` as a learner: whatever it combines."""

    name, needs_random_bags = DEFAULT, False

    def fit(self, bags: Bags, *, seed: int = 0, progress: Any = None) -> Any:
        """The fitted combination."""
        return unbag.learners.fit(bags, seed=seed, progress=progress)


@dataclass(frozen=True, eq=False)
class Scored:
    """A function of rows as a model, for what goes into no file."""

    scores: Callable[[Any], np.ndarray]
    kind: Kind = "binary"


@dataclass(frozen=True, eq=False)
class EstimatorLearner:
    """Anything with `fit` and `predict_proba`, such as a tree of scikit-learn.

    An estimator whose `fit` takes `bag=` gets each row's report as its label. Any other learns
    pseudo-labels: it is fitted to every row with both labels, weighted by their probabilities given
    the bag's count and its own last predictions (EM with a base learner of your choice).

    Parameters
    ----------
    estimator : object
        Cloned before it is fitted; its `fit` takes `sample_weight` unless it takes `bag`.
    rounds : int
        Of pseudo-labels.
    """

    estimator: Any
    rounds: int = 5
    name: str = "estimator"
    needs_random_bags: bool = False

    def fit(self, bags: Bags, *, seed: int = 0, progress: Any = None) -> Scored:
        """The fitted estimator."""
        made, X = deepcopy(self.estimator), np.asarray(bags.X).reshape(len(bags.bag), -1)
        if "random_state" in getattr(made, "get_params", dict)():
            made.set_params(random_state=seed)
        if "bag" in signature(made.fit).parameters:
            made.fit(X, bags.report[bags.bag], bag=bags.bag)
            return Scored(lambda rows: _logits(made, rows))
        q, positives = bags.report[bags.bag], np.round(bags.report * bags.size)
        twice, labels = np.concatenate([X, X]), np.repeat([1, 0], len(X))
        for _ in range(self.rounds):
            made.fit(twice, labels, sample_weight=np.concatenate([q, 1 - q]) + 1e-6)
            score = _logits(made, X)
            q = expit(score + count_evidence(score, bags.bag, positives))
        return Scored(lambda rows: _logits(made, rows))


def _logits(estimator: Any, rows: Any) -> np.ndarray:
    flat = np.asarray(rows).reshape(len(rows), -1)
    return logit(np.clip(estimator.predict_proba(flat)[:, 1], EDGE, 1 - EDGE))


@dataclass(frozen=True, eq=False)
class ModuleLearner:
    """A module of PyTorch that gives one logit for each row, trained by `unbag.pytorch.BagLoss`.

    It is stopped by the rule of the networks: a fifth of the bags is held out, and the epoch counts
    after which their counts are likeliest, at the level of the reports.

    Parameters
    ----------
    module : torch.nn.Module
        Copied before it is trained.
    method : str
        Of `BagLoss`.
    epochs : int
        At most.
    rate : float
        Of Adam.
    batch : int
        About how many rows a step sees.
    """

    module: Any
    method: Any = "anchored"
    epochs: int = 40
    rate: float = 1e-2
    batch: int = 1024
    name: str = "module"
    needs_random_bags: bool = True

    def fit(self, bags: Bags, *, seed: int = 0, progress: Any = None) -> Scored:
        """The module after its best epoch."""
        import torch

        from unbag.pytorch import BagLoss, bag_loader

        torch.manual_seed(seed)
        learn, held = bags.split(0.8, seed=seed)
        prior = float(np.clip(learn.prior, 1e-6, 1 - 1e-6))
        module, loss = deepcopy(self.module), BagLoss(learn.prior, method=self.method)
        optimizer = torch.optim.Adam(module.parameters(), lr=self.rate)
        loader = bag_loader(learn, batch=self.batch, seed=seed)
        best, kept, counted = np.inf, (module, 0.0), held.components().report
        for _ in range(self.epochs):
            for X, bag, report, size in loader:
                optimizer.zero_grad()
                loss(module(X.float()).reshape(len(X)), bag, report, size).backward()
                optimizer.step()
            level = level_of(_module_scores(module, learn.X), prior)
            score = _module_scores(module, held.X) + level
            value = count_likelihood(score, held.bag, held.size, counted, exact=1).sum()
            if value < best:
                best, kept = value, (deepcopy(module), level)
        chosen, level = kept
        return Scored(lambda rows: _module_scores(chosen, rows) + level)


def _module_scores(module: Any, rows: Any) -> np.ndarray:
    import torch

    with torch.no_grad():
        given = torch.as_tensor(np.asarray(rows), dtype=torch.float32)
        return module(given).reshape(len(given)).double().numpy()


def as_learner(thing: Any) -> Any:
    """A learner of what a user has: a learner, a module of PyTorch, or an estimator.

    Parameters
    ----------
    thing : object
        With `fit(bags, seed=)`, a `torch.nn.Module`, or with `fit` and `predict_proba`.
    """
    if hasattr(thing, "fit") and hasattr(thing, "needs_random_bags"):
        return thing
    if hasattr(thing, "parameters") and hasattr(thing, "state_dict"):
        return ModuleLearner(thing)
    if hasattr(thing, "fit") and hasattr(thing, "predict_proba"):
        return EstimatorLearner(thing)
    rule = "A learner to add must be a learner, a module of PyTorch, or have fit and predict_proba"
    raise broken(rule, f"{type(thing).__name__} given", "See docs/adding.md.")


OWN: dict[str, Competitor] = {}  # what users added


def add_learner(
    name: str, thing: Any, *, title: str | None = None, kinds: tuple[Kind, ...] = ("binary",)
) -> None:
    """Let something of your own take part in benchmarks.

    Parameters
    ----------
    name : str
        Of letters, digits and _; change it when you change the learner, because runs are kept.
    thing : object
        See `as_learner`.
    title : str, optional
        What tables call it; by default the name.
    kinds : tuple of str
        The kinds of report that it takes.
    """
    if not name.isidentifier() or name in shipped():
        rule = "A learner to add must have a new name of letters, digits and _"
        raise broken(rule, f"{name!r} given", "Choose another.")
    learner = as_learner(thing)
    OWN[name] = Competitor(title or name, lambda budget: learner, kinds)


def shipped() -> Mapping[str, Competitor]:
    """Everybody in this library, by name."""
    others = {name: LEARNERS[name] for name in ("additive", "trees")}
    return {
        DEFAULT: Competitor("unbag.fit", lambda budget: Default()),
        **{n: Competitor(n, lambda budget, e=e: e.make()) for n, e in others.items()},
        **{n: _by_network(n, KNOWN[n].title, KNOWN[n].kinds) for n in FOR_NETWORKS},
        **{p.name: Competitor(p.title, lambda budget, p=p: p(), ("binary",)) for p in PEERS},
        LABELS: _by_network("easy", "labels, network", ("binary", "total", "histogram")),
    }


def competitors() -> dict[str, Competitor]:
    """Everybody, with what users added: learners, and objectives by `add_method`."""
    objectives = {
        name: _by_network(method, TITLES[name], ("binary",))
        for name, method in ADDED.items()
        if callable(method)
    }
    return {**shipped(), **objectives, **OWN}


def _by_network(method: Any, title: str, kinds: tuple[Kind, ...]) -> Competitor:
    return Competitor(title, lambda budget: budget.network(method), kinds)
