"""A pattern of six stars in ten million rows and ten thousand partitions, from files to results on Spark."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.engine.contestants import CONTESTANTS
from benchmarks.engine.contract import QUERIES
from benchmarks.engine.results import Results
from benchmarks.experiments.section import Claim, Figures, Section, Size
from benchmarks.patterns.peer import BATCHES, run_one

ROWS, REPEATS = 10_000_000, 1
KEYS = 10_000
QUERY = "six_stars"
ABOUT = f"""\
{QUERIES[QUERY]}, over {KEYS:,} keys, as `python -m benchmarks engine` runs queries: parquet in {BATCHES}
micro-batches, state in RocksDB with checkpoints, results counted and forgotten; once over a quarter of the
rows, then timed over all. The state is looked at twice a second: rows are those of partitions and open
attempts, bytes those that Spark has in its store. What all matches come to is compared with plain loops,
attempt after attempt, over the same rows sorted by key."""


def measure(size: Size, directory: Path) -> Section:
    results = Results(size.rows)
    [contestant] = [contestant for contestant in CONTESTANTS if contestant.query == QUERY]
    results.outcomes += [run_one(contestant, results, KEYS) for _ in range(size.repeats)]
    rate, reasons = results.rate(contestant, KEYS), list(results.reasons())
    lines = [outcome.line for outcome in results.outcomes if outcome.line]
    table = [["rows", "partitions", "rows/s", "seconds", "matches", "rows of state", "bytes of state"]]
    for line in lines:
        numbers = [line["results"], line["most_state_rows"], line["most_state_bytes"]]
        table.append(
            [
                f"{size.rows:,}",
                f"{KEYS:,}",
                f"{line['rows'] / line['seconds']:,.0f}",
                f"{line['seconds']:,.1f}",
                *(f"{number:,.0f}" for number in numbers),
            ]
        )
    most = max((line["most_state_rows"] for line in lines), default=np.inf)
    claims = [
        Claim(
            "six stars are searched for end to end, and the matches are right",
            f"{results.expected[QUERY, KEYS].results:,} matches, {rate:,.0f} rows/s"
            if rate
            else "; ".join(reasons),
            rate is not None and not reasons,
        ),
        Claim(
            "the state is a few rows for each partition",
            f"{most:,.0f} rows for {KEYS:,} partitions",
            most <= 8 * KEYS,
        ),
    ]
    return Section("Large: six stars, end to end", ABOUT, claims, [Figures("", table)])
