"""Time and memory of check, plan and prediction for a Parquet file with ten million categories,
streamed.

python benchmarks/tables.py [rows]
"""

import resource
import sys
import tempfile
import time
from pathlib import Path

import duckdb

from unbag.tables import check_tables, plan_features


def write(folder, rows):
    """Events in bags of 1000, with a text column of rows / 2 possible values; and their reports."""
    events, reports = folder / "events.parquet", folder / "reports.parquet"
    with duckdb.connect(
        config={"threads": 1, "memory_limit": "2GB", "temp_directory": str(folder)}
    ) as connection:
        connection.execute(
            "copy (select i as id, i // 1000 as bag, random() as x, 'user ' || floor(random() * "
            f"{rows // 2})::BIGINT as person from range({rows}) t(i)) to '{events}' "
            "(row_group_size 100000)"
        )
        connection.execute(
            f"copy (select i as bag, 5 as sales from range({rows // 1000}) t(i)) to '{reports}'"
        )
    return events, reports


def measure(name, work):
    began = time.perf_counter()
    found = work()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(
        f"{name:10s} {time.perf_counter() - began:6.1f} s   peak so far {peak:5.2f} GB   {found}",
        flush=True,
    )
    return found


def main():
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000_000
    with tempfile.TemporaryDirectory() as folder:
        events, reports = measure("write", lambda: write(Path(folder), rows))
        print(f"events: {rows:,} rows, {events.stat().st_size / 1e9:.2f} GB")
        plan = measure("plan", lambda: plan_features(events, leave_out=["id", "bag"]))
        print(f"buckets {plan.buckets}, plan of {len(plan.to_json())} characters")
        measure("predict", lambda: sum(len(part.X) for part in plan.batches(events)))
        told = measure(
            "check", lambda: check_tables(events, reports, on="bag", total="sales").usable
        )
        measure(
            "check ids",
            lambda: told and check_tables(events, reports, on="bag", total="sales", id="id").usable,
        )


if __name__ == "__main__":
    main()
