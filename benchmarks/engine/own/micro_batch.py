"""The smallest micro-batch of Millstream: the same tiny files as its peers get, one at a time."""

from __future__ import annotations

import millstream as ms
from benchmarks.engine.contract import arguments
from benchmarks.engine.own.queries import counting_writer
from benchmarks.engine.peers.spark import session
from benchmarks.engine.peers.spark_micro_batch import measure
from millstream.runtime.queries import query_starter

STREAM = """
    CREATE STREAM s (k INT, ts TIMESTAMP, v DOUBLE) ORDER BY ts
    USING parquet OPTIONS (path '{path}', follow 'true');
    CREATE SINK nowhere USING noop;
"""

QUERIES = {
    "count": "SELECT k, count(*) OVER (PARTITION BY k ROWS UNBOUNDED PRECEDING) AS total FROM s",
    "window": "SELECT k, count(*) AS total FROM s [RANGE 1 SECOND SLIDE 1 SECOND] GROUP BY k",
}


def main() -> None:
    parser = arguments()
    parser.add_argument("--way", choices=QUERIES, required=True)
    options = parser.parse_args()
    query_starter.stream_writer = counting_writer  # type: ignore[assignment]
    spark = session(options)
    incoming = options.scratch / "incoming"
    incoming.mkdir()
    mill = ms.connect(spark)
    mill.execute(STREAM.format(path=incoming))
    [query] = mill.execute(f"INSERT INTO nowhere {QUERIES[options.way]}")
    assert query.streaming is not None
    measure(query.streaming, incoming, options.scratch)
    mill.stop()
    spark.stop()


if __name__ == "__main__":
    main()
