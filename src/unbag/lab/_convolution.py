"""The paper's CNN with PyTorch's convolutions, where PyTorch is installed.

Loss, Adam, batches and evaluation are the same JAX code as for any other model; it asks for scores
and gradients through callbacks. On a CPU a step takes less than half the time of ours in JAX (see
benchmarks/cnn.py). Scores and gradients are those of `models.cnn` to rounding; only dropout draws
other numbers. `cnn_bfloat16` takes its steps with products in bfloat16, in six tenths of that time;
a plan names it, so that runs of both kinds are never mixed.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from unbag import models
from unbag._rules import broken

BLOCK = 128  # images whose activations stay in the cache of a core


def cnn(shape: tuple[int, int, int], *, key: Any, outputs: int = 1, start: Any = None) -> Any:
    """`models.cnn`, trained by PyTorch's convolutions on a CPU where that is possible."""
    model = models.cnn(shape, key=key, outputs=outputs, start=start)
    if outputs > 1 or not in_torch():
        return model
    return TorchConvolutions(*(getattr(model, name) for name in vars(model)))


def cnn_bfloat16(
    shape: tuple[int, int, int], *, key: Any, outputs: int = 1, start: Any = None
) -> Any:
    """The same with steps in bfloat16; weights, sums of products and all evaluation are float32."""
    model = cnn(shape, key=key, outputs=outputs, start=start)
    if not isinstance(model, TorchConvolutions):
        rule = "The model cnn-bfloat16 must have PyTorch's convolutions on a CPU, and one output"
        raise broken(rule, "they are not there", "Take the model cnn, or pip install torch.")
    return replace(model, bfloat16=True)


def in_torch() -> bool:
    """Whether PyTorch's convolutions are there and faster; JAX needs a second thread beside the one
    that waits for them."""
    cores = getattr(os, "sched_getaffinity", lambda _: range(os.cpu_count() or 1))
    threads = int(os.environ.get("NPROC") or len(cores(0)))  # as XLA counts them
    return threads > 1 and find_spec("torch") is not None and jax.default_backend() == "cpu"


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class TorchConvolutions(models.Convolutions):
    """The same parameters, start and scores.

    `bfloat16` : whether the products of a training step are.
    """

    bfloat16: bool = field(metadata={"static": True}, default=False)

    def __call__(self, X: jax.Array, *, key: Any = None) -> jax.Array:
        """One score for each image."""
        seed = jnp.zeros(0, jnp.uint32)  # none: no dropout
        if key is not None:
            seed = jax.random.bits(key, (2,))
        head = self.head.layers[-1]
        weights = (self.first, self.first_bias, self.second, self.second_bias)
        X = jnp.asarray(X, jnp.float32)
        how = Pass(self.dropout, self.bfloat16 and key is not None)
        return _scores((*weights, head.weight, head.bias), X, seed, how)


class Pass(NamedTuple):
    """How images pass through the network: what is dropped, and whether products are bfloat16."""

    dropout: float
    bfloat16: bool


@partial(jax.custom_vjp, nondiff_argnums=(3,))
def _scores(weights: tuple, X: Any, seed: Any, how: Pass) -> Any:
    return _call(_forward, _like(X), weights, X, seed, how)[0]


def _scores_kept(weights: tuple, X: Any, seed: Any, how: Pass) -> Any:
    score, number = _call(partial(_forward, keep=True), _like(X), weights, X, seed, how)
    return score, (weights, X, seed, number)


def _gradients(how: Pass, given: tuple, slope: Any) -> tuple:
    weights, X, seed, number = given
    like = tuple(jax.ShapeDtypeStruct(w.shape, jnp.float32) for w in weights)
    of_weights = _call(_backward, like, weights, X, seed, how, number, slope)
    # Images and seed take no gradient; zeros of this size cost nothing as XLA drops them.
    return of_weights, jnp.zeros_like(X), np.zeros(seed.shape, jax.dtypes.float0)


_scores.defvjp(_scores_kept, _gradients)


def _call(function: Any, like: Any, weights: tuple, X: Any, seed: Any, how: Pass, *more: Any):
    given = partial(function, how=how)
    return jax.pure_callback(given, like, weights, X, seed, *more, vmap_method="sequential")


def _like(X: Any) -> tuple:
    score = jax.ShapeDtypeStruct((X.shape[0],), jnp.float32)
    return score, jax.ShapeDtypeStruct((), jnp.int32)


# From here on the host, in PyTorch. A method may ask for all scores before any gradient, so the
# graph of the last scores is kept; the gradient then needs no second pass forward.

_LAST: dict[int, tuple] = {}  # of the last call that may be asked for its gradient


def _forward(weights: Any, X: Any, seed: Any, *, how: Pass, keep: bool = False) -> tuple:
    number, kept = 0, _passed(weights, X, seed, how, keep)
    if keep:
        number = max(_LAST, default=0) % (2**31 - 1) + 1
        _LAST.clear()  # memory for one batch; what is no longer here is made again
        _LAST[number] = kept
    return kept[1].detach().numpy(), np.int32(number)


def _backward(
    weights: Any, X: Any, seed: Any, number: Any, slope: Any, *, how: Pass
) -> tuple[np.ndarray, ...]:
    import torch

    kept = _LAST.pop(int(number), None) or _passed(weights, X, seed, how, True)
    slopes = torch.autograd.grad(kept[1], kept[0], torch.from_numpy(np.array(slope)))
    return tuple(each.numpy() for each in slopes)


def _passed(weights: Any, X: Any, seed: Any, how: Pass, keep: bool) -> tuple[list[Any], Any]:
    """The weights as tensors, and the scores of the images, with their graph if it is kept."""
    import torch

    tensors = [torch.from_numpy(np.array(w)).requires_grad_(keep) for w in weights]
    images, seed, scores = torch.from_numpy(np.array(X)).permute(0, 3, 1, 2), np.asarray(seed), []
    precision = torch.bfloat16 if how.bfloat16 else torch.float32
    with torch.set_grad_enabled(keep):
        *parts, bias = tensors
        rng = np.random.Generator(np.random.SFC64(seed.tolist()))
        for block in images.split(BLOCK):
            # Rounded here, so that gradients of blocks are added in float32.
            block, *rounded = (tensor.to(precision) for tensor in (block, *parts))
            first, first_bias, second, second_bias, head = rounded
            pooled = torch.max_pool2d(torch.conv2d(block, _channels_last(first), padding=1), 2)
            hidden = torch.relu(pooled + first_bias[:, None, None])
            hidden = torch.conv2d(hidden, _channels_last(second), second_bias, padding=1)
            hidden = torch.relu(hidden).permute(0, 2, 3, 1).reshape(len(block), -1)
            if seed.size:
                mask = torch.from_numpy(_mask(rng, hidden.shape, how.dropout))
                hidden = hidden * mask.to(precision)
            scores.append((hidden @ head[:, 0]).float() + bias)
    return tensors, torch.cat(scores)


def _channels_last(kernel: Any) -> Any:
    """A kernel as PyTorch has it, outputs and inputs first, with the channels last in memory."""
    import torch

    return kernel.permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)


def _mask(rng: np.random.Generator, shape: Any, rate: float) -> np.ndarray:
    """0, or how much an activation grows that is not dropped. A half takes one random bit each,
    because numbers for dropout were a third of PyTorch's step."""
    count = int(np.prod(shape))
    if rate == 0.5:
        bits = np.frombuffer(rng.bytes(-(-count // 8)), np.uint8)
        return 2 * np.unpackbits(bits, count=count).reshape(shape)
    return (rng.random(shape, np.float32) >= rate).astype(np.float32) / (1 - rate)
