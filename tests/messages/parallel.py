"""Bad input of parallel, and the whole message that it gets."""

import jax
import numpy as np

import unbag
from unbag.training._sharding import place_on

BAGS = unbag.random_bags(np.ones((8, 1)), np.tile([0, 1], 4), size=2, seed=0)

LINEAR = unbag.models.linear(1, key=0)

MESSAGES = [
    (
        lambda: place_on(None, 0),
        "A microbatch must hold at least one row: 0 given. Leave it out for whole batches.",
    ),
    (
        lambda: place_on(1000),
        "There must be as many devices as are asked for: 1000 given and JAX has "
        f"{len(jax.devices())}. Ask for fewer, or for 'all'.",
    ),
    (
        lambda: place_on("both"),
        "Devices must be a number, 'all' or devices of JAX: 'both' given. Use 'all'.",
    ),
]
