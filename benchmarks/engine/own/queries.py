"""Millstream on the same data, files and settings as its peers; results are counted and forgotten."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.readwriter import DataStreamWriter

import millstream as ms
from benchmarks.engine.contract import (
    FILES,
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
    answer,
    arguments,
)
from benchmarks.engine.peers.spark import counted, session, totals_of
from millstream.catalog.entries import Sink
from millstream.runtime.queries import query_starter
from millstream.runtime.queries.query_progress import Progress

STREAM = """
    CREATE STREAM s (k INT, ts TIMESTAMP, v DOUBLE) ORDER BY ts
    USING parquet OPTIONS (path '{path}', maxFilesPerTrigger '{files}');
    CREATE SINK nowhere USING noop;
"""

SECOND = """
    CREATE STREAM t (k INT, ts TIMESTAMP, v DOUBLE) ORDER BY ts
    USING parquet OPTIONS (path '{path}', maxFilesPerTrigger '{files}');
"""

OVER = "SELECT k, ts, v, sum(v) OVER (PARTITION BY k {}) AS total FROM s"
WINDOWS = "SELECT k, window_end AS ts, sum(v) AS total FROM s [{}] GROUP BY k"
PATTERN = "SELECT k, {2}.ts AS ts, {2}.v - {1}.v AS total FROM s PARTITION BY k AS ({0}) WHERE {3}"


def _legs(names: str) -> str:
    """Stars that fall and rise in turn, each of enough rows."""
    legs = ((name, ">=" if number % 2 else "<") for number, name in enumerate(names))
    return " AND ".join(f"{n}.v {than} {n}.previous.v AND count(*{n}) >= {LEAST}" for n, than in legs)


QUERIES = {
    "sliding": WINDOWS.format(f"RANGE {WINDOW_SECONDS} SECONDS SLIDE {SLIDE_SECONDS} SECOND"),
    "tumbling": WINDOWS.format(f"TUMBLE {TUMBLE_SECONDS} SECONDS"),
    "cumulate": WINDOWS.format(f"TUMBLE {WINDOW_SECONDS} SECONDS EMIT EVERY {SLIDE_SECONDS} SECOND"),
    "session": WINDOWS.format(f"SESSION GAP {GAP_SECONDS} SECONDS PATTR k"),
    "range": OVER.format(f"RANGE INTERVAL {WINDOW_SECONDS} SECONDS PRECEDING"),
    "rows": OVER.format(f"ROWS {ROWS_PRECEDING} PRECEDING"),
    "recovery": PATTERN.format(
        *("A, *B, C, D", "A", "D"),
        f"A.v > {HIGH} AND B.v < B.previous.v AND C.v >= C.previous.v AND D.v > A.v",
    ),
    "double_bottom": PATTERN.format(
        *("A, *W, *X, *Y, *Z, E", "A", "E"),
        f"A.v > {MIDDLE} AND {_legs('WXYZ')} AND E.v < E.previous.v",
    ),
    "six_stars": PATTERN.format(
        *("*A, *B, *C, *D, *E, *F", "FIRST(A)", "LAST(F)"),
        _legs("ABCDEF"),
    ),
    "join": "SELECT a.k, a.v * b.v AS total FROM s [{0}] AS a JOIN t [{0}] AS b ON a.k = b.k".format(
        f"RANGE {WINDOW_SECONDS} SECONDS"
    ),
}

AGGREGATES = {
    "built-in": ("sum", ""),
    "esl": (
        "esl_sum",
        """
        CREATE WINDOW AGGREGATE esl_sum(Next DOUBLE) : DOUBLE {
            TABLE state(total DOUBLE);
            TABLE inwindow(wnext DOUBLE);
            INITIALIZE : { INSERT INTO state VALUES (Next); INSERT INTO RETURN VALUES (Next); }
            ITERATE    : { UPDATE state SET total = total + Next;
                           INSERT INTO RETURN SELECT total FROM state; }
            EXPIRE     : { UPDATE state SET total = total - oldest().wnext; }
        };
        """,
    ),
    "python": (
        "python_sum",
        (
            "CREATE AGGREGATE python_sum(x DOUBLE) : DOUBLE LANGUAGE PYTHON "
            "AS 'benchmarks.aggregates.in_python:Sum';"
        ),
    ),
}
"""The same sum, and what defines it."""


def counting_writer(frame: DataFrame, sink: Sink) -> DataStreamWriter:
    """Spark's sink that forgets everything, behind a counter."""
    return counted(frame).writeStream.format(sink.format)


def run(
    spark: SparkSession, query: str, directory: Path, batches: int, aggregate: str = "built-in"
) -> tuple[float, Progress, list[StreamingQueryProgress]]:
    """Run a query over the data to its end; the reported state is the largest of the run."""
    mill = ms.connect(spark)
    mill.execute(STREAM.format(path=directory / "parquet", files=FILES // batches))
    if (directory / OTHER).exists():
        mill.execute(SECOND.format(path=directory / OTHER / "parquet", files=FILES // batches))
    name, definition = AGGREGATES[aggregate]
    mill.execute(definition)
    query = query.replace("sum(v)", f"{name}(v)")
    start = time.perf_counter()
    [started] = mill.execute(f"INSERT INTO nowhere {query}")
    seen = []
    while started.is_active:
        started.wait(0.5)
        seen.append(started.progress)
    seconds = time.perf_counter() - start
    assert started.streaming is not None
    most = max(seen, key=lambda progress: progress.state_rows)
    known = replace(started.progress, state_rows=most.state_rows, state_bytes=most.state_bytes)
    ended = started.streaming.recentProgress
    mill.stop()
    return seconds, known, ended


def main() -> None:
    parser = arguments()
    parser.add_argument("--query", choices=QUERIES, required=True)
    parser.add_argument("--aggregate", choices=AGGREGATES, default="built-in")
    parser.add_argument("--verbose", action="store_true", help="show where the time of each batch goes")
    options = parser.parse_args()
    query_starter.stream_writer = counting_writer  # type: ignore[assignment]
    spark = session(options)
    query = QUERIES[options.query]
    warm_up_seconds = 0.0
    if options.warm_up:
        warm_up_seconds = run(spark, query, options.warm_up, 8, options.aggregate)[0]
    seconds, known, progress = run(spark, query, options.data, options.batches, options.aggregate)
    if options.verbose:
        for batch in progress:
            print(batch.batchId, batch.numInputRows, batch.durationMs, batch.observedMetrics)
    answer(
        known.rows_in // SIDES.get(options.query, 1),
        seconds,
        totals_of(progress),
        warm_up_seconds=warm_up_seconds,
        most_state_rows=known.state_rows,
        most_state_bytes=known.state_bytes,
    )
    spark.stop()


if __name__ == "__main__":
    main()
