"""Flink SQL, started through PyFlink, in the Python environment that flink_environment.py makes.

The timed run writes into the blackhole connector. Flink has nothing like Spark's observe(), which counts
results at next to no cost: so the answer comes from a second run, untimed, that aggregates the results.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from pyflink.common import Configuration
from pyflink.table import DataTypes, EnvironmentSettings, TableEnvironment
from pyflink.table.udf import udaf

from benchmarks.engine.contract import (
    GAP_SECONDS,
    HIGH,
    LEAST,
    MIDDLE,
    OTHER,
    ROWS_PRECEDING,
    SIDES,
    SLIDE_SECONDS,
    TUMBLE_SECONDS,
    WINDOW_SECONDS,
    Totals,
    answer,
    arguments,
)

SETTINGS = {
    # Rows are handed on within a chain of operators without a copy.
    "pipeline.object-reuse": "true",
    "table.local-time-zone": "UTC",
    # Within a single process Flink would give itself only 128 and 64 MB.
    "taskmanager.memory.managed.size": "1g",
    "taskmanager.memory.network.min": "256m",
    "taskmanager.memory.network.max": "256m",
}

STATE = {
    # On the heap, without checkpoints: Flink's fastest mode, but its state is lost when it stops.
    "heap": {"state.backend.type": "hashmap"},
    # As safe as the others: in RocksDB, and what has changed goes to disk now and then, if not as often as
    # theirs does with every micro-batch.
    "durable": {
        "state.backend.type": "rocksdb",
        "execution.checkpointing.interval": "10s",
        "execution.checkpointing.incremental": "true",
        "execution.checkpointing.storage": "filesystem",
        # With checkpoints Flink would start a job that fails again for ever, without a word.
        "restart-strategy.type": "none",
    },
}

SOURCE = """
    CREATE TABLE {name} (k INT, ms BIGINT, v DOUBLE, ts AS TO_TIMESTAMP_LTZ(ms, 3), WATERMARK FOR ts AS ts)
    WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv')
"""

OVER = """
    SELECT k, ts, SUM(v) OVER (PARTITION BY k ORDER BY ts {frame} PRECEDING AND CURRENT ROW) AS total FROM s
"""

WINDOWS = """
    SELECT k, window_time AS ts, SUM(v) AS total FROM TABLE({windows})
    GROUP BY k, window_start, window_end, window_time
"""
SLIDE, WINDOW = (f"INTERVAL '{seconds}' SECOND" for seconds in (SLIDE_SECONDS, WINDOW_SECONDS))
TUMBLE, GAP = (f"INTERVAL '{seconds}' SECOND" for seconds in (TUMBLE_SECONDS, GAP_SECONDS))

MATCHES = """
    SELECT k, ts, total FROM s MATCH_RECOGNIZE (
        PARTITION BY k ORDER BY ts MEASURES MATCH_ROWTIME() AS ts, {last}.v - {first}.v AS total
        ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW PATTERN ({pattern}) DEFINE {conditions}
    )
"""


def _leg(name: str, than: str, before: str) -> str:
    """Return the condition of a leg without PREV: on the last row of this variable, or of the one before."""
    first = f"LAST({name}.v, 1) IS NULL AND {name}.v {than} LAST({before}.v)"
    return f"{name} AS ({first}) OR {name}.v {than} LAST({name}.v, 1)"


QUERIES = {
    "sliding": WINDOWS.format(windows=f"HOP(TABLE s, DESCRIPTOR(ts), {SLIDE}, {WINDOW})"),
    "tumbling": WINDOWS.format(windows=f"TUMBLE(TABLE s, DESCRIPTOR(ts), {TUMBLE})"),
    "cumulate": WINDOWS.format(windows=f"CUMULATE(TABLE s, DESCRIPTOR(ts), {SLIDE}, {WINDOW})"),
    "session": WINDOWS.format(windows=f"SESSION(TABLE s PARTITION BY k, DESCRIPTOR(ts), {GAP})"),
    "range": OVER.format(frame=f"RANGE BETWEEN {WINDOW}"),
    "rows": OVER.format(frame=f"ROWS BETWEEN {ROWS_PRECEDING}"),
    "recovery": MATCHES.format(
        pattern="A B+ C D",
        first="A",
        last="D",
        conditions=f"A AS A.v > {HIGH}, {_leg('B', '<', 'A')}, C AS C.v >= LAST(B.v), D AS D.v > A.v",
    ),
    "double_bottom": MATCHES.format(
        pattern=f"A {' '.join(f'{name}{{{LEAST},}}' for name in 'WXYZ')} E",
        first="A",
        last="E",
        conditions=", ".join(
            [
                f"A AS A.v > {MIDDLE}",
                *(
                    _leg(*leg)
                    for leg in (("W", "<", "A"), ("X", ">=", "W"), ("Y", "<", "X"), ("Z", ">=", "Y"))
                ),
                "E AS E.v < LAST(Z.v)",
            ]
        ),
    ),
    "join": f"""
        SELECT a.k, a.ts, a.v * b.v AS total FROM s AS a JOIN t AS b
        ON a.k = b.k AND a.ts > b.ts - {WINDOW} AND a.ts < b.ts + {WINDOW}
    """,
    "scan": "SELECT k, ts, v AS total FROM s",
}

COUNTS = """
    SELECT count(*), sum(total), sum(total * total)
    FROM TABLE(TUMBLE(TABLE results, DESCRIPTOR(ts), INTERVAL '10' MINUTE)) GROUP BY window_start, window_end
"""


def tables(options: argparse.Namespace, data: Path) -> TableEnvironment:
    """The source, the view `results` of the query, and a sink that takes and forgets them."""
    configuration = Configuration()
    settings = {
        **SETTINGS,
        **STATE[options.state],
        "parallelism.default": str(options.parallelism),
        "io.tmp.dirs": str(options.scratch),
        "python.executable": sys.executable,
        "python.client.executable": sys.executable,
    }
    if options.state == "durable":
        settings["execution.checkpointing.dir"] = (options.scratch / "checkpoints").as_uri()
    for name, value in settings.items():
        configuration.set_string(name, value)
    streaming = EnvironmentSettings.new_instance().in_streaming_mode()
    environment = TableEnvironment.create(streaming.with_configuration(configuration).build())
    files = f"csv-{options.parallelism}"
    for name, directory in zip(("s", "t")[: SIDES.get(options.query, 1)], (data, data / OTHER), strict=False):
        environment.execute_sql(SOURCE.format(name=name, path=(directory / files).as_uri()))
    query = QUERIES[options.query]
    if options.in_python:
        in_python = udaf(lambda values: values.sum(), result_type=DataTypes.DOUBLE(), func_type="pandas")
        environment.create_temporary_function("python_sum", in_python)
        query = query.replace("SUM(v)", "python_sum(v)")
    environment.execute_sql(f"CREATE TEMPORARY VIEW results AS {query}")
    columns = "k INT, ts TIMESTAMP_LTZ(3), total DOUBLE"
    environment.execute_sql(f"CREATE TABLE nowhere ({columns}) WITH ('connector' = 'blackhole')")
    return environment


def run(options: argparse.Namespace, data: Path) -> tuple[float, float]:
    """Seconds of the job by Flink's own clock, and seconds with planning and the start of its cluster."""
    environment = tables(options, data)
    start = time.perf_counter()
    job = environment.execute_sql("INSERT INTO nowhere SELECT k, ts, total FROM results")
    job.wait()
    whole = time.perf_counter() - start
    return job.get_job_client().get_job_execution_result().result().get_net_runtime() / 1000, whole


def totals_of(options: argparse.Namespace) -> Totals:
    with tables(options, options.data).execute_sql(COUNTS).collect() as parts:
        results, total, squares = (sum(column) for column in zip(*parts, strict=True))
    return Totals(results, total, squares)


def main() -> None:
    parser = arguments()
    parser.add_argument("--query", choices=QUERIES, required=True)
    parser.add_argument("--state", choices=STATE, default="heap")
    parser.add_argument("--in-python", action="store_true", help="the sum as an aggregate in Python")
    options = parser.parse_args()
    # What the JVM takes from environment variables; it starts with the first table environment.
    os.environ["JVM_ARGS"] = f"-Xmx{options.memory}m"
    os.environ["FLINK_LOG_DIR"] = str(options.scratch)
    warm_up_seconds = run(options, options.warm_up)[1] if options.warm_up else 0.0
    seconds, whole = run(options, options.data)
    totals = totals_of(options) if options.answers else None
    rows = sum(
        path.read_bytes().count(b"\n") for path in (options.data / f"csv-{options.parallelism}").iterdir()
    )
    answer(rows, seconds, totals, warm_up_seconds=warm_up_seconds, seconds_with_planning=whole)


if __name__ == "__main__":
    main()
