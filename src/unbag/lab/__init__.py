"""The paper's experiments, and yours beside them: a plan in, figures, tables and a verdict on each
claim out.

A `Plan` says which runs to make, `run_plan` makes them here or on a `RayEngine`, a `RunStore` keeps
them, and `write_report` reads them as the paper does. The online experiment has an `OnlinePlan`,
`run_online`, an `OnlineStore` and `write_online_report`.
"""

from unbag.lab._benchmark import (
    Benchmark,
    BenchmarkRun,
    benchmark_preset,
    of_blocks,
    read_benchmark,
    run_benchmark,
)
from unbag.lab._competitors import Budget, add_learner, as_learner
from unbag.lab._engines import EngineError, RayEngine
from unbag.lab._guide import by_kind, finished, guide
from unbag.lab._leaderboard import (
    Leaderboard,
    Standing,
    critical_difference,
    leaderboard,
    write_leaderboard,
)
from unbag.lab._methods import Way, add_method
from unbag.lab._online_plan import NETWORKS, OnlinePlan, OnlineRun, online_preset
from unbag.lab._online_report import write_online_report
from unbag.lab._online_run import run_online
from unbag.lab._online_store import OnlineStore
from unbag.lab._plan import Plan, preset, read_plan
from unbag.lab._report import plan_table, write_report
from unbag.lab._results import best_on_test, read_runs
from unbag.lab._run import run_plan
from unbag.lab._store import RunStore
from unbag.lab._tables import as_latex
from unbag.lab._tasks import Task, add_model, add_task, data_of, download

__all__ = [
    "NETWORKS", "Benchmark", "BenchmarkRun", "Budget", "EngineError", "Leaderboard", "OnlinePlan",
    "OnlineRun", "OnlineStore", "Plan", "RayEngine", "RunStore", "Standing", "Task", "Way",
    "add_learner", "add_method", "add_model", "add_task", "as_latex", "as_learner",
    "benchmark_preset", "best_on_test", "by_kind", "critical_difference", "data_of", "download",
    "finished", "guide", "leaderboard", "of_blocks", "online_preset", "plan_table", "preset",
    "read_benchmark", "read_plan", "read_runs", "run_benchmark", "run_online", "run_plan",
    "write_leaderboard", "write_online_report", "write_report",
]  # fmt: skip
