"""Bags in, batches of whole bags as tensors out, in a new order each epoch."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, Sampler

from unbag._rules import broken
from unbag.bags import Bags, batch_plan
from unbag.pytorch._rules import one_of

Tensors = tuple[torch.Tensor, ...]
Extra = Literal["stratum", "noise", "rows"]


class BagDataset(Dataset[Tensors]):
    """Bags as a data set for `DataLoader`: an item is a whole bag, (X, bag, report, size) of a
    batch of one.

    Several items at once come gathered as one. Nothing here is random, so workers may be forked or
    spawned.

    Parameters
    ----------
    bags : with features; only those whose report is observed are items, numbered as in
        `bags.reported()`.
    transform : from the rows of `bags.X` of a batch to a tensor, or None: floats (and booleans) of
        type `dtype`, whole numbers as they are. With workers that are spawned it must be a named
        function.
    extra : what each batch holds beside (X, bag, report, size): "stratum", "noise" or "rows" (row
        numbers).
    dtype : of features and reports; by default PyTorch's.

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
            one_of(name, get_args(Extra), "further part of a batch")
        missing = [name for name in ("X", *extra) if name != "rows" and getattr(bags, name) is None]
        if missing:
            raise broken(
                f"Bags to load must have {missing[0]}",
                "these have none",
                f"Make the bags with {missing[0]}=.",
            )
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
        X = self._tensor(b.X) if self.transform is None else self.transform(b.X)
        per_bag = (
            self._tensor(getattr(b, name)) for name in ("bag", "report", "size", *self.extra)
        )
        return [(X, *per_bag)]

    def _tensor(self, values: Any) -> torch.Tensor:
        """Rows of a tensor, an array, a data frame or a sparse matrix as a tensor."""
        values = values.toarray() if hasattr(values, "toarray") else values
        tensor = (
            values
            if isinstance(values, torch.Tensor)
            else torch.from_numpy(np.require(values, requirements="W"))
        )
        return (
            tensor.to(self.dtype)
            if tensor.is_floating_point() or tensor.dtype == torch.bool
            else tensor
        )


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

    >>> sampler = BagBatchSampler(Bags(np.repeat(np.arange(5), 2), np.full(5, 0.5)), batch=4)
    >>> list(sampler), list(sampler)
    ([[2, 4], [3, 0, 1]], [[1, 4], [3, 0, 2]])
    """

    def __init__(self, bags: Bags, *, batch: int = 4096, seed: int = 0):
        bags = bags.reported()
        self.size, self.stratum, self.batch, self.seed, self.epoch = (
            bags.size,
            bags.stratum,
            batch,
            seed,
            0,
        )
        self._plan()

    def __iter__(self) -> Iterator[list[int]]:
        plan = self._plan()
        self.epoch += (
            1  # here, not outside a generator: DataLoader makes iterators that it never uses
        )
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
    batch : about how many instances a batch holds; it holds at least two bags (of each stratum in
        it).
    seed : decides the orders, together with the number of the epoch;
        `loader.batch_sampler.set_epoch(n)` sets that.
    transform, extra, dtype : see `BagDataset`. Bags with noise or strata need extra=("noise",) or
        extra=("stratum",), which `BagLoss` takes under these names.
    options : of `DataLoader`, such as num_workers and pin_memory.

    >>> bags = Bags(np.repeat([0, 1, 2, 3], 2), np.full(4, 0.5), X=np.ones((8, 3)))
    >>> [tuple(X.shape) for X, bag, report, size in bag_loader(bags, batch=4)]
    [(4, 3), (4, 3)]
    """
    own = [
        name
        for name in ("batch_size", "shuffle", "sampler", "batch_sampler", "drop_last")
        if name in options
    ]
    if own:
        raise broken(
            "A loader of bags must choose its batches itself, whole bags in a new order",
            f"{own[0]}= came",
            "Use batch=, the number of instances, and seed=.",
        )
    if (
        bags.noise is not None
        and "noise" not in extra
        and len(np.unique(bags.noise / bags.size)) > 1
    ):
        warnings.warn(
            "The noise of these bags is left out, so noisier bags weigh as much as others. Load "
            "it with extra=('noise',), and give it to BagLoss as noise=.",
            stacklevel=2,
        )
    data = BagDataset(bags, transform=transform, extra=extra, dtype=dtype)
    sampler = BagBatchSampler(bags, batch=batch, seed=seed)
    return DataLoader(data, batch_sampler=sampler, **{"collate_fn": collate, **options})
