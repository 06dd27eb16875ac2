"""The paper's CNN with PyTorch's convolutions, where PyTorch is installed.

Loss, Adam, batches and evaluation are the same JAX code as for any other model; it asks for scores
and gradients through callbacks. On a CPU a step takes less than half the time of ours in JAX (see
benchmarks/cnn.py). Scores and gradients are those of `models.cnn` to rounding; only dropout draws
other numbers.
"""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from unbag import models

BLOCK = 128  # images whose activations stay in the cache of a core


def cnn(shape: tuple[int, int, int], *, key: Any, outputs: int = 1, start: Any = None) -> Any:
    """`models.cnn`, trained by PyTorch's convolutions on a CPU where that is possible."""
    model = models.cnn(shape, key=key, outputs=outputs, start=start)
    if outputs > 1 or not in_torch():
        return model
    return TorchConvolutions(*(getattr(model, name) for name in vars(model)))


def in_torch() -> bool:
    """Whether PyTorch's convolutions are there and faster."""
    return find_spec("torch") is not None and jax.default_backend() == "cpu"


@jax.tree_util.register_dataclass
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
    of_weights = _call(_backward, like, weights, X, seed, dropout, number, slope)
    # Images and seed take no gradient; zeros of this size cost nothing as XLA drops them.
    return of_weights, jnp.zeros_like(X), np.zeros(seed.shape, jax.dtypes.float0)


_scores.defvjp(_scores_kept, _gradients)


def _call(function: Any, like: Any, weights: tuple, X: Any, seed: Any, dropout: float, *more: Any):
    given = partial(function, dropout=dropout)
    return jax.pure_callback(given, like, weights, X, seed, *more, vmap_method="sequential")


def _like(X: Any) -> tuple:
    score = jax.ShapeDtypeStruct((X.shape[0],), jnp.float32)
    return score, jax.ShapeDtypeStruct((), jnp.int32)


# From here on the host, in PyTorch. A method may ask for all scores before any gradient, so the
# graph of the last scores is kept; the gradient then needs no second pass forward.

_LAST: dict[int, tuple] = {}  # of the last call that may be asked for its gradient


def _forward(weights: Any, X: Any, seed: Any, *, dropout: float, keep: bool = False) -> tuple:
    number, kept = 0, _passed(weights, X, seed, dropout, keep)
    if keep:
        number = max(_LAST, default=0) % (2**31 - 1) + 1
        _LAST.clear()  # memory for one batch; what is no longer here is made again
        _LAST[number] = kept
    return kept[1].detach().numpy(), np.int32(number)


def _backward(
    weights: Any, X: Any, seed: Any, number: Any, slope: Any, *, dropout: float
) -> tuple[np.ndarray, ...]:
    import torch

    kept = _LAST.pop(int(number), None) or _passed(weights, X, seed, dropout, True)
    slopes = torch.autograd.grad(kept[1], kept[0], torch.from_numpy(np.array(slope)))
    return tuple(each.numpy() for each in slopes)


def _passed(weights: Any, X: Any, seed: Any, dropout: float, keep: bool) -> tuple[list[Any], Any]:
    """The weights as tensors, and the scores of the images, with their graph if it is kept."""
    import torch

    tensors = [torch.from_numpy(np.array(w)).requires_grad_(keep) for w in weights]
    images, seed, scores = torch.from_numpy(np.array(X)).permute(0, 3, 1, 2), np.asarray(seed), []
    with torch.set_grad_enabled(keep):
        first, first_bias, second, second_bias, head, bias = tensors
        first, second = (  # outputs and inputs first, channels last in memory
            kernel.permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)
            for kernel in (first, second)
        )
        rng = np.random.Generator(np.random.SFC64(seed.tolist()))
        for block in images.split(BLOCK):
            pooled = torch.max_pool2d(torch.conv2d(block, first, padding=1), 2)
            hidden = torch.relu(pooled + first_bias[:, None, None])
            hidden = torch.relu(torch.conv2d(hidden, second, second_bias, padding=1))
            hidden = hidden.permute(0, 2, 3, 1).reshape(len(block), -1)
            if seed.size:
                hidden = hidden * torch.from_numpy(_mask(rng, hidden.shape, dropout))
            scores.append(hidden @ head[:, 0] + bias)
    return tensors, torch.cat(scores)


def _mask(rng: np.random.Generator, shape: Any, rate: float) -> np.ndarray:
    """0, or how much an activation grows that is not dropped. A half takes one random bit each,
    because numbers for dropout were a third of PyTorch's step."""
    count = int(np.prod(shape))
    if rate == 0.5:
        bits = np.frombuffer(rng.bytes(-(-count // 8)), np.uint8)
        return 2 * np.unpackbits(bits, count=count).reshape(shape)
    return (rng.random(shape, np.float32) >= rate).astype(np.float32) / (1 - rate)
