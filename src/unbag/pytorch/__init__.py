"""Bags in, batches of whole bags as PyTorch tensors out; scores and reports in, a loss to call
`backward` on out.

    loss = BagLoss(bags.prior)
    for X, bag, report, size in bag_loader(bags):
        loss(model(X), bag, report, size).backward()

The signed weights of `unbag.weights` are made outside the gradient: the rest is an ordinary
weighted loss. `_loader` brings the bags, `_loss` is the loss and says what it refuses.
"""

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError(
        "unbag.pytorch must have PyTorch, which cannot be imported here. Install it: pip install "
        "'unbag[torch]'"
    ) from error

from unbag.methods import Method
from unbag.pytorch._loader import BagBatchSampler, BagDataset, bag_loader, collate
from unbag.pytorch._loss import BagLoss

__all__ = ["BagBatchSampler", "BagDataset", "BagLoss", "Method", "bag_loader", "collate"]
