"""All contestants, in the order in which they run and are shown: Millstream's, then its peers."""

from __future__ import annotations

import sys

from benchmarks.engine import flink_environment, millstream
from benchmarks.engine.contract import LEAST, Contestant


def _spark(name: str, query: str, module: str, *own: str, note: str) -> Contestant:
    argv = (sys.executable, "-m", f"benchmarks.engine.peers.{module}", *own)
    return Contestant(name, query, argv, note=note)


def flink(query: str, note: str, *, durable: bool = False, in_python: bool = False) -> Contestant:
    argv = (str(flink_environment.PYTHON), "-m", "benchmarks.engine.peers.flink", "--query", query)
    name = f"flink_{query}"
    if durable:
        name, argv = f"{name}_durable", (*argv, "--state", "durable")
    if in_python:
        name, argv = f"{name}_in_python", (*argv, "--in-python")
    return Contestant(name, query, argv, prepare=flink_environment.prepare, note=note)


_LEGS = " ".join(f"{name}{{{LEAST},}}" for name in "WXYZ")
_DURABLE = "the same with its state in RocksDB and incremental checkpoints every 10 s"


PEERS = (
    _spark(
        "spark_window_rocksdb",
        "sliding",
        "spark_window",
        note="groupBy(k, window(ts, '60 seconds', '1 second')).sum, append mode, state in RocksDB",
    ),
    _spark(
        "spark_window_default",
        "sliding",
        "spark_window",
        "--provider=default",
        note="the same with Spark's default state store, which is in memory",
    ),
    _spark(
        "spark_panes",
        "sliding",
        "spark_window",
        "--way=panes",
        note="windows of one second first, then the sliding window over their sums; state in RocksDB",
    ),
    flink("sliding", note="HOP, with the planner's choice of one or two phases"),
    flink("sliding", note=_DURABLE, durable=True),
    _spark(
        "spark_hand_written_range",
        "range",
        "spark_hand_written",
        "--query=range",
        note="groupBy(k).applyInPandasWithState with NumPy, state in RocksDB",
    ),
    flink("range", note="OVER (... RANGE BETWEEN INTERVAL '60' SECOND PRECEDING AND CURRENT ROW)"),
    flink("range", note=_DURABLE, durable=True),
    _spark(
        "spark_hand_written_rows",
        "rows",
        "spark_hand_written",
        "--query=rows",
        note="groupBy(k).applyInPandasWithState with NumPy, state in RocksDB",
    ),
    flink("rows", note="OVER (... ROWS BETWEEN 100 PRECEDING AND CURRENT ROW)"),
    flink("rows", note=_DURABLE, durable=True),
    _spark(
        "spark_tumbling",
        "tumbling",
        "spark_window",
        "--way=tumbling",
        note="groupBy(k, window(ts, '10 seconds')).sum, append mode, state in RocksDB",
    ),
    flink("tumbling", note="TUMBLE"),
    flink("cumulate", note="CUMULATE, from 1 to 60 s"),
    _spark(
        "spark_session",
        "session",
        "spark_window",
        "--way=session",
        note="groupBy(k, session_window(ts, '3 seconds')).sum, append mode, state in RocksDB",
    ),
    flink("session", note="SESSION, PARTITION BY k"),
    flink("recovery", note="MATCH_RECOGNIZE, PATTERN (A B+ C D)"),
    _spark(
        "spark_recovery",
        "recovery",
        "spark_pattern",
        "--query=recovery",
        note="groupBy(k).applyInPandasWithState with a search in Python, state in RocksDB",
    ),
    flink("double_bottom", note=f"MATCH_RECOGNIZE, PATTERN (A {_LEGS} E)"),
    _spark(
        "spark_double_bottom",
        "double_bottom",
        "spark_pattern",
        "--query=double_bottom",
        note="groupBy(k).applyInPandasWithState with a search in Python, state in RocksDB",
    ),
    _spark(
        "spark_join",
        "join",
        "spark_join",
        note="join of two streams with watermarks, by k and a condition on both timestamps, state in RocksDB",
    ),
    flink("join", note="interval join, by k and a condition on both timestamps"),
    flink("join", note=_DURABLE, durable=True),
    _spark("map_in_arrow", "scan", "map_in_arrow", note="rows from Spark into Python, counted there"),
    flink("scan", note="csv into the blackhole: what of Flink's times is reading"),
    _spark(
        "spark_micro_batch_count",
        "micro_batch_count",
        "spark_micro_batch",
        "--way=count",
        note="groupBy(k).count() in update mode, state in RocksDB",
    ),
    _spark(
        "spark_micro_batch_window",
        "micro_batch_window",
        "spark_micro_batch",
        "--way=window",
        note="groupBy(k, window(ts, '1 second')).count() in append mode, state in RocksDB",
    ),
)

CONTESTANTS = (*millstream.CONTESTANTS, *PEERS)
