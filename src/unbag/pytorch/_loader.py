"""Batches of whole bags as tensors, in a new order each epoch."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, Sampler

from unbag._rules import broken, one_of
from unbag.bags import Bags, batch_plan

Tensors = tuple[torch.Tensor, ...]
Extra = Literal["stratum", "noise", "rows"]
OWN = ("batch_size", "shuffle", "sampler", "batch_sampler", "drop_last")  # what a loader decides


class BagDataset(Dataset[Tensors]):
    """Bags as a data set for `DataLoader`: an item is a whole bag, (X, bag, report, size) of a
    batch of one.

    Several items at once come gathered as one. Nothing here is random, so workers may be forked or
    spawned.

    Parameters
    ----------
    bags : Bags
        With features; only those whose report is observed are items, numbered as in
        `bags.reported()`.
    transform : callable, optional
        From the rows of `bags.X` of a batch to a tensor. By default floats (and booleans) get the
        type `dtype`, whole numbers stay as they are. With workers that are spawned it must be a
        named function.
    extra : sequence of {"stratum", "noise", "rows"}
        What each batch holds beside (X, bag, report, size); "rows" are row numbers.
    dtype : torch.dtype, optional
        Of features and reports; by default PyTorch's.

    >>> bags = Bags(np.array([0, 1, 0]), np.array([0.5, 1.0]), X=np.array([[1.0], [2.0], [3.0]]))
    >>> BagDataset(bags)[0]
    (tensor([[1.],
            [3.]]), tensor([0, 0]), tensor([0.5000]), tensor([2]))
    """

    def __init__(
        self,
        bags: Bags,
        *,
        transform: Callable[[Any], torch.Tensor] | None = None,
        extra: Sequence[Extra] = (),
        dtype: torch.dtype | None = None,
    ):
        for name in extra:
            one_of("A further part of a batch", name, get_args(Extra))
        missing = [name for name in ("X", *extra) if name != "rows" and getattr(bags, name) is None]
        if missing:
            rule = f"Bags to load must have {missing[0]}"
            raise broken(rule, "these have none", f"Make the bags with {missing[0]}=.")
        bags = bags.reported()
        bags.take([0])  # sorts the rows by bag once, before workers copy the bags
        self.bags, self.transform, self.extra = bags, transform, tuple(extra)
        self.dtype = dtype or torch.get_default_dtype()

    def __len__(self) -> int:
        return len(self.bags)

    def __getitem__(self, number: int) -> Tensors:
        return self.__getitems__([number])[0]

    def __getitems__(self, numbers: Sequence[int]) -> list[Tensors]:
        b = self.bags.take(numbers)
        X = (self.transform or self._tensor)(b.X)
        names = ("bag", "report", "size", *self.extra)
        return [(X, *(self._tensor(getattr(b, name)) for name in names))]

    def _tensor(self, values: Any) -> torch.Tensor:
        """Rows of a tensor, an array, a data frame or a sparse matrix as a tensor."""
        if hasattr(values, "toarray"):
            values = values.toarray()
        if not isinstance(values, torch.Tensor):
            values = torch.from_numpy(np.require(values, requirements="W"))
        if values.is_floating_point() or values.dtype == torch.bool:
            return values.to(self.dtype)
        return values


def collate(items: Sequence[Tensors]) -> Tensors:
    """Batches of whole bags as one: their bags are numbered on.

    >>> part = torch.ones(2, 1), torch.tensor([0, 0]), torch.tensor([0.5]), torch.tensor([2])
    >>> collate([part, part])[1]
    tensor([0, 0, 1, 1])
    """
    if len(items) == 1:
        return items[0]
    X, bag, report, *rest = zip(*items, strict=True)
    before = np.cumsum([0, *map(len, report)])
    bag = [numbers + int(start) for numbers, start in zip(bag, before, strict=False)]
    return tuple(torch.cat(tuple(parts)) for parts in (X, bag, report, *rest))


class BagBatchSampler(Sampler[list[int]]):
    """Bag numbers of each batch of a pass: every bag once, about `batch` instances, in a new order
    each pass.

    The order depends on seed and epoch alone; who is in which bag never changes. Every pass raises
    `epoch` by one; `set_epoch` says which comes next, to go on after an interruption. `len` is that
    of the pass to come.

    Parameters
    ----------
    bags : Bags
        Of which those are visited whose report is observed.
    batch : int
        About how many instances a batch holds.
    seed : int
        Of the orders.

    >>> sampler = BagBatchSampler(Bags(np.repeat(np.arange(5), 2), np.full(5, 0.5)), batch=4)
    >>> list(sampler), list(sampler)
    ([[2, 4], [3, 0, 1]], [[1, 4], [3, 0, 2]])
    """

    def __init__(self, bags: Bags, *, batch: int = 4096, seed: int = 0):
        bags = bags.reported()
        self.size, self.stratum = bags.size, bags.stratum
        self.batch, self.seed, self.epoch = batch, seed, 0
        self._plan()  # refuses here what no batch could be made of

    def __iter__(self) -> Iterator[list[int]]:
        plan = self._plan()
        self.epoch += 1  # inside the generator: DataLoader makes iterators that it never uses
        for numbers in plan:
            yield numbers.tolist()

    def __len__(self) -> int:
        return len(self._plan())

    def set_epoch(self, epoch: int) -> None:
        """Which epoch the next pass is."""
        self.epoch = epoch

    def _plan(self) -> list[np.ndarray]:
        return batch_plan(
            self.size, self.batch, stratum=self.stratum, seed=self.seed, epoch=self.epoch
        )


def bag_loader(
    bags: Bags,
    *,
    batch: int = 4096,
    seed: int = 0,
    transform: Callable[[Any], torch.Tensor] | None = None,
    extra: Sequence[Extra] = (),
    dtype: torch.dtype | None = None,
    **options: Any,
) -> DataLoader[Tensors]:
    """A `DataLoader` of whole bags: each pass is an epoch of batches (X, bag, report, size) in a
    new order.

    Parameters
    ----------
    bags : Bags
        With features.
    batch : int
        About how many instances a batch holds; it holds at least two bags (of each stratum in it).
    seed : int
        Decides the orders, together with the number of the epoch, which
        `loader.batch_sampler.set_epoch(n)` sets.
    transform : callable, optional
        As in `BagDataset`.
    extra : sequence of {"stratum", "noise", "rows"}
        As in `BagDataset`. Bags with noise or strata need extra=("noise",) or extra=("stratum",),
        which `BagLoss` takes under these names.
    dtype : torch.dtype, optional
        As in `BagDataset`.
    **options : Any
        Of `DataLoader`, such as num_workers and pin_memory.

    >>> bags = Bags(np.repeat([0, 1, 2, 3], 2), np.full(4, 0.5), X=np.ones((8, 3)))
    >>> [tuple(X.shape) for X, bag, report, size in bag_loader(bags, batch=4)]
    [(4, 3), (4, 3)]
    """
    own = [name for name in OWN if name in options]
    if own:
        rule = "A loader of bags must choose its batches itself, whole bags in a new order"
        raise broken(rule, f"{own[0]}= given", "Use batch=, the number of instances, and seed=.")
    left_out = bags.noise is not None and "noise" not in extra
    if left_out and len(np.unique(bags.noise / bags.size)) > 1:
        warnings.warn(
            "The noise of these bags is left out, so noisier bags weigh as much as others. Load "
            "it with extra=('noise',), and give it to BagLoss as noise=.",
            stacklevel=2,
        )
    data = BagDataset(bags, transform=transform, extra=extra, dtype=dtype)
    sampler = BagBatchSampler(bags, batch=batch, seed=seed)
    return DataLoader(data, batch_sampler=sampler, **{"collate_fn": collate, **options})
