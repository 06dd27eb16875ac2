"""Bad input of the objectives of other papers, and the whole message that it gets."""

import jax.numpy as jnp
import numpy as np

from unbag import models, random_bags, train
from unbag.objectives import OBJECTIVES, Ask

MESSAGES = [
    (
        lambda: train(
            models.linear(1, key=0),
            random_bags(np.ones((8, 1)), [0, 3] * 4, size=2, seed=0, kind="total"),
            "llp_fc",
            epochs=1,
        ),
        "The method llp_fc must have reports of the kind binary: total given. Use anchored, which "
        "takes every kind.",
    ),
    (
        lambda: OBJECTIVES["llp_vat"](None, None, Ask(len, jnp.zeros((3, 2), int), None)),
        "The method llp_vat must have features that can be moved a little: features of type int32 "
        "given. Give them in floating point, or use another method.",
    ),
]
