"""The windows that peers have too, over the same rows: Spark's window functions and Flink's."""

from __future__ import annotations

import math
from pathlib import Path

from rich.console import Console

from benchmarks.engine import answers, chart, data
from benchmarks.engine.contestants import CONTESTANTS
from benchmarks.engine.contract import QUERIES, WINDOW_SECONDS
from benchmarks.engine.data import ROWS_PER_HOUR, Shape
from benchmarks.engine.environment import cores, megabytes
from benchmarks.engine.results import Results
from benchmarks.engine.running import run
from benchmarks.experiments.section import Claim, Figures, Section, Size

ROWS, REPEATS = 1_000_000, 1
KEYS = 1_000
BATCHES = 8
TIMEOUT = 300
PEERS = {
    "sliding": ("spark_window_rocksdb", "spark_window_default", "flink_sliding"),
    "tumbling": ("spark_tumbling", "flink_tumbling"),
    "cumulate": ("flink_cumulate",),
    "range": ("flink_range",),
    "rows": ("flink_rows",),
    "session": ("spark_session", "flink_session"),
}
ABOUT = f"""\
Each contestant alone in a process of its own, once over a quarter of the rows, then timed over all of
them, as in `python -m benchmarks engine`, which tells how they are set up. {KEYS:,} keys, results into
nothing, Spark and Millstream in {BATCHES} micro-batches with their state in RocksDB and checkpoints;
Flink with its state on the heap and none. In parentheses: how many times as fast Millstream is, in this
run. What each query comes to (how many results, their sum, and the sum of their squares) is compared
with a recomputation in NumPy.

CUMULATE(step, size) of Flink is `[TUMBLE size EMIT EVERY step]`: at every step the window that ends next
is reported as it stands, and whole at its end. `[LANDMARK START AT x SLIDE step]` is the same with a
single window that has no end."""


def measure(size: Size, directory: Path) -> Section:
    results = run_all(size)
    heading = ["", "rows/s", "Millstream is faster by", "seconds", "results"]
    tables = []
    for query in results.queries():
        rows = [heading]
        for contestant in results.contestants(query):
            outcome = next(o for o in results.outcomes if o.contestant == contestant)
            rate, ratio = results.rate(contestant, KEYS), results.ratio(contestant, KEYS)
            figures = [f"{rate:,.0f}"] if rate else [results.cell(contestant, KEYS)]
            figures.append(f"{ratio:.2f}x" if ratio else "")
            counted = f"{outcome.totals.results:,}" if outcome.totals else ""
            figures += [f"{outcome.line['seconds']:,.1f}" if outcome.line else "", counted]
            rows.append([f"{contestant.name}: {contestant.note}", *figures])
        tables.append(Figures(f"**{query}**: {QUERIES[query]}", rows))
    if reasons := list(results.reasons()):
        tables.append(Figures("What is missing", [["reason"], *([reason] for reason in reasons)]))
    picture = chart.draw(results, directory / "peers.png")
    return Section("Peers that have the window", ABOUT, _claims(results), tables, [picture.name])


def run_all(size: Size) -> Results:
    """All contestants one after the other, query by query."""
    shape = _shape(size.rows)
    small = _shape(max(size.rows // 4, min(size.rows, 50_000)))
    arguments = [
        *("--data", str(data.make(shape, cores()))),
        *("--warm-up", str(data.make(small, cores()))),
        *("--batches", str(BATCHES)),
        *("--parallelism", str(cores())),
        *("--memory", str(min(megabytes() // 2, 8192))),
        "--answers",
    ]
    results = Results(size.rows)
    console = Console(highlight=False)
    by_name = {contestant.name: contestant for contestant in CONTESTANTS}
    for query, peers in PEERS.items():
        results.expected[query, KEYS] = answers.expected(query, shape)
        for name in [f"millstream_{query}", *peers] * size.repeats:
            outcome = run(by_name[name], KEYS, arguments, TIMEOUT)
            results.outcomes.append(outcome)
            said = results.reason(outcome) or results.cell(outcome.contestant, KEYS)
            console.print(f"{name}: {said}", markup=False, soft_wrap=True)
    return results


def _shape(rows: int) -> Shape:
    """Return the engine benchmark's rate, over whole windows: peers differ on one that the end cuts off."""
    seconds = math.ceil(rows * 3600 / ROWS_PER_HOUR / WINDOW_SECONDS) * WINDOW_SECONDS
    return Shape(rows, KEYS, seconds)


def _claims(results: Results) -> list[Claim]:
    wrong = [reason for reason in results.reasons() if "wrong" in reason]
    counted = [outcome for outcome in results.outcomes if outcome.totals]
    claims = [
        Claim(
            "all give the same results",
            f"{len(counted)} of {len(results.outcomes)} runs counted, {len(wrong)} wrong",
            not wrong and bool(counted),
        )
    ]
    for query in results.queries():
        for contestant in results.contestants(query)[1:]:
            ratio = results.ratio(contestant, KEYS)
            text = f"{query} is no slower than {contestant.name}"
            claims.append(
                Claim(
                    text,
                    f"{ratio:.2f} times as fast" if ratio else "no figure",
                    ratio is not None and ratio >= 1,
                )
            )
    return claims
