"""Contract of a contestant: its command, its arguments, and its answer.

A contestant is a name and a command. Its process gets the arguments of `arguments()` after its own, runs its
query once over the small data of --warm-up (if there is any), then over --data, and ends by printing the line
that `answer()` makes. What is timed is the second run alone, from the start of the query to its end.

Standard library only: Flink's contestants run in a Python environment of their own.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

FILES = 32
"""In how many parquet files the data is."""

WINDOW_SECONDS, SLIDE_SECONDS, ROWS_PRECEDING = 60, 1, 100
TUMBLE_SECONDS, GAP_SECONDS = 10, 3
HIGH, MIDDLE, LEAST = 200, 125, 2
"""Parameters of patterns: a high value, a middle value, and the least number of rows of a leg."""

TINY_ROWS, TINY_WARM_UP, TINY_FILES = 10, 10, 40
"""Of the micro-batches: rows in each file, and how many files there are, the first of which only warm up."""

QUERIES = {
    "sliding": f"sum(v) by k over the last {WINDOW_SECONDS} s, every {SLIDE_SECONDS} s",
    "range": f"for each row, sum(v) OVER (PARTITION BY k RANGE {WINDOW_SECONDS} s PRECEDING)",
    "rows": f"for each row, sum(v) OVER (PARTITION BY k ROWS {ROWS_PRECEDING} PRECEDING)",
    "tumbling": f"sum(v) by k for every {TUMBLE_SECONDS} s",
    "cumulate": f"sum(v) by k since the last {WINDOW_SECONDS} s began, every {SLIDE_SECONDS} s",
    "session": f"sum(v) by k for each session, which a gap of more than {GAP_SECONDS} s ends",
    "recovery": "a high value, some that fall, one that does not, one above the first: (A, *B, C, D)",
    "double_bottom": f"falls, rises, falls and rises, {LEAST} rows or more each: (A, *W, *X, *Y, *Z, E)",
    "six_stars": f"three falls and rises in turn, {LEAST} rows or more each: (*A, *B, *C, *D, *E, *F)",
    "join": f"pairs of two streams with the same k, less than {WINDOW_SECONDS} s apart; rows/s of each",
    "scan": "only read the rows and count them: the upper limit for all contestants",
    "micro_batch_count": f"how long a micro-batch of {TINY_ROWS} rows takes: running count by k",
    "micro_batch_window": f"how long a micro-batch of {TINY_ROWS} rows takes: count by k and ended second",
}

IF_ASKED = ("tumbling", "cumulate", "session", "recovery", "double_bottom", "six_stars", "join")
"""Queries that run only on request, as by `windows`, `patterns` and `relations`."""

OTHER = "other"
"""In the data of a query of two streams, the directory with the second one's."""

SIDES = {"join": 2}
"""Queries of more than one stream, and of how many."""

_STARTED = time.perf_counter()


@dataclass(frozen=True)
class Contestant:
    """A name, the query that it runs (of QUERIES), and the command.

    `prepare` is called before, in the process of the benchmark; it raises MissingError if the contestant
    cannot be had. `note` tells the reader of the report how the contestant was set up.
    """

    name: str
    query: str
    argv: tuple[str, ...]
    prepare: Callable[[], object] = lambda: None
    note: str = ""

    @property
    def is_micro_batch(self) -> bool:
        """Return whether durations are measured."""
        return self.query.startswith("micro_batch")


class MissingError(Exception):
    """The contestant is not here, and why."""


@dataclass(frozen=True)
class Totals:
    """The answer in three numbers: how many results, their sum, and the sum of their squares."""

    results: int
    total: float
    squares: float

    def agrees(self, other: Totals) -> bool:
        """Sums are exact (data.py), squares are not."""
        return (
            self.results == other.results
            and abs(self.total - other.total) < 0.01
            and abs(self.squares - other.squares) <= 1e-9 * abs(other.squares)
        )


def arguments() -> argparse.ArgumentParser:
    """Return the parser of the common arguments; a contestant can add its own."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True, help="a directory as data.py makes it")
    parser.add_argument("--warm-up", type=Path, help="such a directory, but small (default: no warm-up)")
    parser.add_argument(
        "--batches", type=int, default=8, help="in how many micro-batches, a divisor of FILES"
    )
    parser.add_argument("--parallelism", type=int, default=2, help="how many cores to use")
    parser.add_argument("--memory", type=int, default=4096, help="megabytes for the heap of a JVM")
    parser.add_argument(
        "--scratch", type=Path, required=True, help="for checkpoints and logs; removed afterwards"
    )
    parser.add_argument(
        "--answers", action="store_true", help="count, even if that takes another run, untimed"
    )
    return parser


def answer(rows: int, seconds: float, totals: Totals | None, **more: float) -> None:
    """Print the result line; `totals` is None if they were not requested."""
    line: dict[str, float | None] = {"rows": rows, "seconds": round(seconds, 3)}
    for field in ("results", "total", "squares"):
        line[field] = getattr(totals, field) if totals else None
    line |= {name: round(value, 3) for name, value in more.items()}
    line["process_seconds"] = round(time.perf_counter() - _STARTED, 3)
    print(json.dumps(line), flush=True)
