"""Bad input of engines, and the whole message that it gets."""

from unbag.cli._reproduce import engine_of
from unbag.lab import RayEngine

MESSAGES = [
    (lambda: RayEngine(cpus=-1), "A task's cpus must not be negative: -1 given. Leave it out."),
    (
        lambda: engine_of("spark"),
        "An engine must be one of here, ray: 'spark' given. Leave it out to work in this process.",
    ),
    (
        lambda: engine_of("here", cpus=2, address="auto"),
        "Only the engine ray takes cpus, address: the engine is here. Add --engine ray.",
    ),
]
