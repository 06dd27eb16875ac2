"""The paper's experiments, and yours beside them: a plan in, figures, tables and a verdict on each
claim out.

A `Plan` says which runs to make, `run_plan` makes them here or on a `RayEngine`, a `RunStore` keeps
them, and `write_report` reads them as the paper does. The online experiment has an `OnlinePlan`,
`run_online`, an `OnlineStore` and `write_online_report`.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unbag.lab._benchmark import Benchmark as Benchmark
    from unbag.lab._benchmark import BenchmarkRun as BenchmarkRun
    from unbag.lab._benchmark import Leaderboard as Leaderboard
    from unbag.lab._benchmark import Standing as Standing
    from unbag.lab._benchmark import benchmark_preset as benchmark_preset
    from unbag.lab._benchmark import by_kind as by_kind
    from unbag.lab._benchmark import critical_difference as critical_difference
    from unbag.lab._benchmark import finished as finished
    from unbag.lab._benchmark import leaderboard as leaderboard
    from unbag.lab._benchmark import of_blocks as of_blocks
    from unbag.lab._benchmark import read_benchmark as read_benchmark
    from unbag.lab._benchmark import run_benchmark as run_benchmark
    from unbag.lab._benchmark import write_leaderboard as write_leaderboard
    from unbag.lab._catalogue import Way as Way
    from unbag.lab._catalogue import add_method as add_method
    from unbag.lab._catalogue import add_model as add_model
    from unbag.lab._catalogue import add_task as add_task
    from unbag.lab._catalogue import data_of as data_of
    from unbag.lab._catalogue import download as download
    from unbag.lab._competitors import Budget as Budget
    from unbag.lab._competitors import add_learner as add_learner
    from unbag.lab._competitors import as_learner as as_learner
    from unbag.lab._engines import EngineError as EngineError
    from unbag.lab._engines import RayEngine as RayEngine
    from unbag.lab._markup import as_latex as as_latex
    from unbag.lab._online import OnlineRun as OnlineRun
    from unbag.lab._online import OnlineStore as OnlineStore
    from unbag.lab._online import online_preset as online_preset
    from unbag.lab._online import run_online as run_online
    from unbag.lab._online import write_online_report as write_online_report
    from unbag.lab._plan import Plan as Plan
    from unbag.lab._plan import preset as preset
    from unbag.lab._plan import read_plan as read_plan
    from unbag.lab._report import plan_table as plan_table
    from unbag.lab._report import write_report as write_report
    from unbag.lab._results import best_on_test as best_on_test
    from unbag.lab._results import read_runs as read_runs
    from unbag.lab._run import run_plan as run_plan
    from unbag.lab._store import RunStore as RunStore
else:
    from unbag._lazy import attach

    __getattr__, __dir__, __all__ = attach(__name__)
