"""An equi-join over windows of a minute, from files to results: Millstream, Spark and Flink."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from benchmarks.engine import answers, chart, data
from benchmarks.engine.contestants import CONTESTANTS
from benchmarks.engine.contract import QUERIES, SIDES, WINDOW_SECONDS, Contestant
from benchmarks.engine.data import Shape
from benchmarks.engine.environment import cores, megabytes
from benchmarks.engine.results import Results
from benchmarks.engine.running import Outcome, run
from benchmarks.experiments.section import Claim, Figures, Section, Size

ROWS, REPEATS = 2_000_000, 1
KEYS = 50_000
QUERY = "join"
NAMES = ("millstream_join", "spark_join", "flink_join")
WANTED = {"spark_join": 3, "flink_join": 2}
BATCHES = 8
TIMEOUT = 1200
ABOUT = f"""\
`FROM s [RANGE {WINDOW_SECONDS} SECONDS] AS a JOIN t [RANGE {WINDOW_SECONDS} SECONDS] AS b ON a.k = b.k`, two
streams of as many rows each, {KEYS:,} keys, so that a row meets two or three of the other stream. As in
`python -m benchmarks engine`, which tells how contestants are set up: each alone in a process of its own,
once over a quarter of the rows, then timed over all; results into nothing; Spark and Millstream in {BATCHES}
micro-batches with their state in RocksDB and checkpoints, Flink with its state on the heap and none. Windows
are half open, so that two rows meet if they are less than {WINDOW_SECONDS} s apart, whichever came first:
peers ask for just that. What all pairs come to (how many, the sum of the products of their values, and of
the squares of that) is compared with a recomputation. Rows a second are those of each stream."""


def measure(size: Size, directory: Path) -> Section:
    results = Results(size.rows)
    by_name = {contestant.name: contestant for contestant in CONTESTANTS}
    for name in NAMES * size.repeats:
        results.outcomes.append(_run(by_name[name], results))
    tables = [Figures(f"**{QUERY}**: {QUERIES[QUERY]}", _table(results))]
    if reasons := list(results.reasons()):
        tables.append(Figures("What is missing", [["reason"], *([reason] for reason in reasons)]))
    picture = chart.draw(results, directory / "peers.png")
    title = "Peers: an equi-join over windows of a minute, end to end"
    return Section(title, ABOUT, _claims(results), tables, [picture.name])


def _run(contestant: Contestant, results: Results) -> Outcome:
    shape = Shape(results.rows, KEYS)
    small = Shape(max(results.rows // 4, min(results.rows, 50_000)), KEYS)
    partitions = cores() if contestant.name.startswith("flink") else 0
    arguments = [
        *("--data", str(data.make(shape, partitions, SIDES[QUERY]))),
        *("--warm-up", str(data.make(small, partitions, SIDES[QUERY]))),
        *("--batches", str(BATCHES)),
        *("--parallelism", str(cores())),
        *("--memory", str(min(megabytes() // 2, 8192))),
        "--answers",
    ]
    results.expected[QUERY, KEYS] = answers.expected(QUERY, shape)
    outcome = run(contestant, KEYS, arguments, TIMEOUT)
    said = results.reason(outcome) or f"{outcome.rate:,.0f} rows/s"
    Console(highlight=False).print(f"{contestant.name}: {said}", markup=False, soft_wrap=True)
    return outcome


def _table(results: Results) -> list[list[str]]:
    rows = [["", "rows/s", "Millstream is faster by", "seconds", "pairs", "most rows of state"]]
    for contestant in results.contestants(QUERY):
        outcome = next(o for o in results.outcomes if o.contestant == contestant)
        rate, ratio = results.rate(contestant, KEYS), results.ratio(contestant, KEYS)
        state = outcome.line.get("most_state_rows")
        rows.append(
            [
                f"{contestant.name}: {contestant.note}",
                f"{rate:,.0f}" if rate else results.cell(contestant, KEYS),
                f"{ratio:.1f}x" if ratio else "",
                f"{outcome.line['seconds']:,.1f}" if outcome.line else "",
                f"{outcome.totals.results:,}" if outcome.totals else "",
                f"{state:,.0f}" if state else "",
            ]
        )
    return rows


def _claims(results: Results) -> list[Claim]:
    wrong = [reason for reason in results.reasons() if "wrong" in reason]
    counted = [outcome for outcome in results.outcomes if outcome.totals]
    claims = [
        Claim(
            "all find the same pairs",
            f"{len(counted)} of {len(results.outcomes)} runs counted, {len(wrong)} wrong",
            not wrong and len(counted) == len(results.outcomes),
        )
    ]
    for contestant in results.contestants(QUERY)[1:]:
        ratio, wanted = results.ratio(contestant, KEYS), WANTED[contestant.name]
        measured = f"{ratio:.1f} times as fast" if ratio else "no figure"
        holds = ratio is not None and ratio >= wanted
        text = f"the join is at least {wanted} times as fast as {contestant.name}"
        claims.append(Claim(text, measured, holds))
    return claims
