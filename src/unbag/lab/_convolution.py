"""The paper's CNN with PyTorch's convolutions, where PyTorch is installed.

Loss, Adam, batches and evaluation are the same JAX code as for any other model; it asks for scores
and gradients through callbacks. On a CPU a step takes less than half the time of ours in JAX (see
benchmarks/cnn.py). Scores and gradients are those of `models.cnn` to rounding; only dropout draws
other numbers.
"""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from unbag import models

BLOCK = 128  # images whose activations stay in the cache of a core


class Kept(NamedTuple):
    """What a block of images leaves for its gradient; rows by height, width, channels in memory.

    Parameters
    ----------
    images, convolved, place, pooled, hidden : Tensor
        The input, after the first convolution, where its maxima were, after ReLU, and after the
        second convolution with ReLU and dropout.
    """

    images: Any
    convolved: Any
    place: Any
    pooled: Any
    hidden: Any


def cnn(shape: tuple[int, int, int], *, key: Any, outputs: int = 1, start: Any = None) -> Any:
    """`models.cnn`, trained by PyTorch's convolutions on a CPU where that is possible."""
    model = models.cnn(shape, key=key, outputs=outputs, start=start)
    if outputs > 1 or not in_torch():
        return model
    return TorchConvolutions(*(getattr(model, name) for name in vars(model)))


def in_torch() -> bool:
    """Whether PyTorch's convolutions are there and faster."""
    return find_spec("torch") is not None and jax.default_backend() == "cpu"


class TorchConvolutions(models.Convolutions):
    """The same parameters, start and scores."""

    def __call__(self, X: jax.Array, *, key: Any = None) -> jax.Array:
        """One score for each image."""
        seed = jnp.zeros(0, jnp.uint32)  # none: no dropout
        if key is not None:
            seed = jax.random.bits(key, (2,))
        head = self.head.layers[-1]
        weights = (self.first, self.first_bias, self.second, self.second_bias)
        X = jnp.asarray(X, jnp.float32)
        return _scores((*weights, head.weight, head.bias), X, seed, self.dropout)


@partial(jax.custom_vjp, nondiff_argnums=(3,))
def _scores(weights: tuple, X: Any, seed: Any, dropout: float) -> Any:
    return _call(_forward, _like(X), weights, X, seed, dropout)[0]


def _scores_kept(weights: tuple, X: Any, seed: Any, dropout: float) -> Any:
    score, number = _call(partial(_forward, keep=True), _like(X), weights, X, seed, dropout)
    return score, (weights, X, seed, number)


def _gradients(dropout: float, given: tuple, slope: Any) -> tuple:
    weights, X, seed, number = given
    like = tuple(jax.ShapeDtypeStruct(w.shape, jnp.float32) for w in weights)
    found = _call(_backward, like, weights, X, seed, dropout, number, slope)
    # Images and seed take no gradient; zeros of this size cost nothing as XLA drops them.
    return found, jnp.zeros_like(X), np.zeros(seed.shape, jax.dtypes.float0)


_scores.defvjp(_scores_kept, _gradients)


def _call(function: Any, like: Any, weights: tuple, X: Any, seed: Any, dropout: float, *more: Any):
    given = partial(function, dropout=dropout)
    return jax.pure_callback(given, like, weights, X, seed, *more, vmap_method="sequential")


def _like(X: Any) -> tuple:
    score = jax.ShapeDtypeStruct((X.shape[0],), jnp.float32)
    return score, jax.ShapeDtypeStruct((), jnp.int32)


# On the host, in PyTorch, without its automatic gradients: those of six layers are short, keep less
# and need no second pass, although a method may ask for all scores before any gradient.

_LAST: dict[int, list[Kept]] = {}  # of the last call that may be asked for its gradient


def _forward(weights: Any, X: Any, seed: Any, *, dropout: float, keep: bool = False) -> tuple:
    number, (score, kept) = 0, _passed(weights, X, seed, dropout, keep)
    if keep:
        number = max(_LAST, default=0) % (2**31 - 1) + 1
        _LAST.clear()  # memory for one batch; what is no longer here is made again
        _LAST[number] = kept
    return score, np.int32(number)


def _passed(weights: Any, X: Any, seed: Any, dropout: float, keep: bool) -> tuple:
    import torch

    first, first_bias, second, second_bias, head, bias = _tensors(weights)
    seed = np.asarray(seed)
    rng = np.random.Generator(np.random.SFC64(seed.tolist())) if seed.size else None
    images = torch.from_numpy(np.array(X)).permute(0, 3, 1, 2)
    scores, kept = [], []
    with torch.no_grad():
        for block in images.split(BLOCK):
            convolved = torch.conv2d(block, first, padding=1)
            pooled, place = torch.ops.aten.max_pool2d_with_indices(convolved, [2, 2], [2, 2])
            pooled.add_(first_bias[:, None, None]).clamp_min_(0)
            hidden = torch.conv2d(pooled, second, second_bias, padding=1)
            hidden = hidden.permute(0, 2, 3, 1).reshape(len(block), -1).clamp_min_(0)
            if rng is not None:
                hidden.mul_(torch.from_numpy(_mask(rng, hidden.shape, dropout)))
            scores.append(hidden @ head[:, 0] + bias)
            if keep:
                kept.append(Kept(block, convolved, place, pooled, hidden))
    return torch.cat(scores).numpy(), kept


def _mask(rng: np.random.Generator, shape: Any, rate: float) -> np.ndarray:
    """0, or how much an activation grows that is not dropped. A half takes one random bit each,
    because numbers for dropout were a third of PyTorch's step."""
    count = int(np.prod(shape))
    if rate == 0.5:
        bits = np.frombuffer(rng.bytes(-(-count // 8)), np.uint8)
        return 2 * np.unpackbits(bits, count=count).reshape(shape)
    return (rng.random(shape, np.float32) >= rate).astype(np.float32) / (1 - rate)


def _backward(
    weights: Any, X: Any, seed: Any, number: Any, slope: Any, *, dropout: float
) -> tuple[np.ndarray, ...]:
    import torch

    kept = _LAST.pop(int(number), None)
    if kept is None:
        kept = _passed(weights, X, seed, dropout, True)[1]
    first, _, second, _, head, _ = _tensors(weights)
    grow = 1 / (1 - dropout) if np.asarray(seed).size else 1.0
    slopes = torch.from_numpy(np.array(slope)).split(BLOCK)
    convolution_backward = torch.ops.aten.convolution_backward
    pool_backward = torch.ops.aten.max_pool2d_with_indices_backward
    ones, rest = [1, 1], ([1, 1], [1, 1], [1, 1], False, [0, 0], 1)  # stride, padding, dilation
    sums = [torch.zeros(np.shape(w)) for w in weights]
    with torch.no_grad():
        for block, g in zip(kept, slopes, strict=True):
            size, _, height, width = block.pooled.shape
            # an activation that is not zero was neither dropped nor below zero
            d_hidden = torch.outer(grow * g, head[:, 0]).mul_(block.hidden > 0)
            d_second = d_hidden.view(size, height, width, -1).permute(0, 3, 1, 2)
            d_pooled, d_kernel, d_bias = convolution_backward(
                d_second, block.pooled, second, [second.shape[0]], *rest, [True] * 3
            )
            d_pooled.mul_(block.pooled > 0)
            d_first = pool_backward(
                d_pooled, block.convolved, [2, 2], [2, 2], [0, 0], ones, False, block.place
            )
            needed = [False, True, False]
            d_image = convolution_backward(d_first, block.images, first, None, *rest, needed)[1]
            parts = (d_image.permute(2, 3, 1, 0), d_pooled.sum((0, 2, 3)))
            parts += (d_kernel.permute(2, 3, 1, 0), d_bias, (g @ block.hidden)[:, None])
            for total, part in zip(sums, (*parts, g.sum()[None]), strict=True):
                total += part
    return tuple(total.numpy() for total in sums)


def _tensors(weights: Any) -> list[Any]:
    """Kernels with outputs and inputs first, channels last in memory."""
    import torch

    made = [torch.from_numpy(np.array(w)) for w in weights]
    for i in (0, 2):
        made[i] = made[i].permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)
    return made
