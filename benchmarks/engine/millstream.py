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

CONTESTANTS: tuple[Contestant, ...] = tuple(
    Contestant(
        f"millstream_{query}",
        query,
        (sys.executable, "-m", "benchmarks.engine.own.queries", f"--query={query}"),
    )
    for query in ("sliding", "range", "rows")
)
