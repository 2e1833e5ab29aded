"""Millstream's own contestants: put them into CONTESTANTS, and nothing else has to change.

Each runs one of contract.QUERIES, in a module of its own, as those in peers/ do:

    Contestant("millstream_sliding", "sliding", (sys.executable, "-m", "benchmarks.engine.own.sliding"))

Its process is started with the options of contract.arguments() after its own. It runs once over the small
data of --warm-up and then over that of --data, in both cases the directory parquet/ in it, which has exactly
the rows that count, and prints the line of contract.answer(). The first contestant here that runs a query is
what all others that run it are compared with.
"""

from __future__ import annotations

import sys

from benchmarks.engine.contract import Contestant


def _own(query: str, module: str, argument: str, note: str) -> Contestant:
    argv = (sys.executable, "-m", f"benchmarks.engine.own.{module}", argument)
    return Contestant(f"millstream_{query}", query, argv, note=note)


CONTESTANTS: tuple[Contestant, ...] = (
    _own("sliding", "queries", "--query=sliding", note="FROM s [RANGE 60 SECONDS SLIDE 1 SECOND] GROUP BY k"),
    _own(
        "range", "queries", "--query=range", note="OVER (PARTITION BY k RANGE INTERVAL 60 SECONDS PRECEDING)"
    ),
    _own("rows", "queries", "--query=rows", note="OVER (PARTITION BY k ROWS 100 PRECEDING)"),
    _own("tumbling", "queries", "--query=tumbling", note="FROM s [TUMBLE 10 SECONDS] GROUP BY k"),
    _own(
        "cumulate",
        "queries",
        "--query=cumulate",
        note="FROM s [TUMBLE 60 SECONDS EMIT EVERY 1 SECOND] GROUP BY k",
    ),
    _own("session", "queries", "--query=session", note="FROM s [SESSION GAP 3 SECONDS PATTR k] GROUP BY k"),
    _own("recovery", "queries", "--query=recovery", note="FROM s PARTITION BY k AS (A, *B, C, D)"),
    _own(
        "double_bottom",
        "queries",
        "--query=double_bottom",
        note="FROM s PARTITION BY k AS (A, *W, *X, *Y, *Z, E)",
    ),
    _own(
        "six_stars",
        "queries",
        "--query=six_stars",
        note="FROM s PARTITION BY k AS (*A, *B, *C, *D, *E, *F)",
    ),
    _own(
        "join",
        "queries",
        "--query=join",
        note="FROM s [RANGE 60 SECONDS] AS a JOIN t [RANGE 60 SECONDS] AS b ON a.k = b.k",
    ),
    _own(
        "micro_batch_count",
        "micro_batch",
        "--way=count",
        note="OVER (PARTITION BY k ROWS UNBOUNDED PRECEDING)",
    ),
    _own(
        "micro_batch_window",
        "micro_batch",
        "--way=window",
        note="FROM s [RANGE 1 SECOND SLIDE 1 SECOND] GROUP BY k",
    ),
)
