"""A plan in, figures, tables and a verdict on claims out: the paper's batch experiments, and yours
beside them.

`methods` and `tasks` know what there is, `plans` says which runs to make, `running` makes them,
here or on `engines`, `store` keeps them, `reporting` reads them as the paper does, `plots` draws
and `claims` judges.
"""

from unbag.lab._engines import EngineError, RayEngine
from unbag.lab._methods import Way, add_method
from unbag.lab._plan import Plan, preset, read_plan
from unbag.lab._run import run_plan
from unbag.lab._store import RunStore
from unbag.lab._tasks import Task, add_model, add_task

__all__ = [
    "EngineError", "Plan", "RayEngine", "RunStore", "Task", "Way", "add_method", "add_model",
    "add_task", "preset", "read_plan", "run_plan",
]  # fmt: skip
