"""The caller's Spark sessions: checks on connecting, and settings for queries."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from millstream.errors import ExecutionError
from millstream.spark.session.session import query_settings

_PROBE = """
import importlib.util, sys
needed = "millstream", "pyarrow", "numba"
print("%d.%d" % sys.version_info[:2], *(name for name in needed if not importlib.util.find_spec(name)))
"""
"""Prints the version of a Python, and the modules that it lacks."""


def check_session(spark: SparkSession) -> None:
    """Refuse a session whose Python workers cannot run Millstream, before the first query fails on it.

    Only workers on this machine can be checked without running a job.
    """
    context = spark.sparkContext
    if not (context.master or "").startswith("local"):
        return
    workers = context.pythonExec
    python = shutil.which(workers)
    # Links are not resolved: the Python of a virtual environment is a link to one with other packages.
    if python is not None and Path(python).absolute() == Path(sys.executable).absolute():
        return
    hint = f"set PYSPARK_PYTHON={sys.executable} before the session is made"
    if python is None:
        raise ExecutionError(
            f"the session's Python workers are '{workers}', which cannot be found", hint=hint
        )
    probe = subprocess.run([python, "-c", _PROBE], capture_output=True, text=True, timeout=30, check=False)
    version, *missing = probe.stdout.split() or ["?"]
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    if version != here:
        raise ExecutionError(
            f"the session's Python workers are '{workers}', Python {version}, and this is Python {here}",
            hint=hint,
        )
    if missing:
        raise ExecutionError(
            f"the session's Python workers are '{workers}', which has no {', '.join(missing)}", hint=hint
        )


def with_settings(frame: DataFrame) -> DataFrame:
    """Move a DataFrame to a copy of its session that has the settings of Millstream's queries.

    A query that is started from it has the state store that stages need, and as many shuffle partitions as
    there are cores. Settings that the caller has chosen stay.
    """
    session = frame.sparkSession
    chosen = session.conf.getAll
    missing = {key: value for key, value in query_settings(session).items() if key not in chosen}
    if not missing:
        return frame
    jvm = session._jvm
    assert jvm is not None
    copied = SparkSession(session.sparkContext, session._jsparkSession.cloneSession())
    for key, value in missing.items():
        copied.conf.set(key, value)
    plan = frame._jdf.queryExecution().logical()
    return DataFrame(jvm.org.apache.spark.sql.classic.Dataset.ofRows(copied._jsparkSession, plan), copied)
