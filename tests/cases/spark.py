"""A real Spark for tests: the Java that it needs, and a session that starts and works cheaply."""

import re
import shutil
import subprocess
from contextlib import contextmanager

import pytest

from cases.packages import needs

SETTINGS = {
    "ui.enabled": "false",
    "ui.showConsoleProgress": "false",
    "sql.shuffle.partitions": "1",
    "driver.host": "127.0.0.1",
    "driver.bindAddress": "127.0.0.1",
    "sql.session.timeZone": "UTC",
    "sql.codegen.wholeStage": "false",  # six rows are sooner looked at than compiled for
    "sql.codegen.factoryMode": "NO_CODEGEN",
    "sql.adaptive.enabled": "false",
    # the first session of a process starts its Java, and others share it
    "driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


def java_version(words=("java", "-version")):
    """The number of Java's release, 0 where there is none."""
    if shutil.which(words[0]) is None:
        return 0
    done = subprocess.run(words, capture_output=True, text=True)
    found = re.search(
        r'version "(?:1\.)?(\d+)', done.stdout + done.stderr
    )  # Java 8 calls itself 1.8
    return int(found[1]) if done.returncode == 0 and found else 0


@contextmanager
def spark_session(folder, *, threads=1):
    pyspark = needs("pyspark.sql")
    if java_version() < 17:
        pytest.skip(f"Spark needs Java 17 or newer; installed is {java_version() or 'none'}")
    builder = pyspark.SparkSession.builder.master(f"local[{threads}]")
    for name, value in SETTINGS.items():
        builder = builder.config(f"spark.{name}", value)
    spark = builder.config("spark.sql.warehouse.dir", str(folder)).getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()
