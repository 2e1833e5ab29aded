"""Patterns beside peers over the same rows: Flink's MATCH_RECOGNIZE, and a search by hand on Spark."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from benchmarks.engine import answers, chart, data
from benchmarks.engine.contestants import CONTESTANTS
from benchmarks.engine.contract import QUERIES, Contestant
from benchmarks.engine.data import Shape
from benchmarks.engine.environment import cores, megabytes
from benchmarks.engine.results import Results
from benchmarks.engine.running import Outcome, run
from benchmarks.experiments.section import Claim, Figures, Section, Size

ROWS, REPEATS = 16_000_000, 1
"""In micro-batches of four million rows; left to itself, Millstream reads files in larger portions."""
KEYS = 1_000
SHARE = 8
"""Peers get one row of so many: they would take many minutes for all of them."""
BATCHES = 4
TIMEOUT = 600
WANTED = 8
PEERS = {
    "recovery": ("flink_recovery", "spark_recovery"),
    "double_bottom": ("flink_double_bottom", "spark_double_bottom"),
}
ABOUT = f"""\
Each contestant alone in a process of its own, once over a quarter of its rows, then timed over all of them,
as in `python -m benchmarks engine`, which tells how they are set up: results into nothing, Spark and
Millstream in {BATCHES} micro-batches with their state in RocksDB and checkpoints; Flink with its state on
the heap and none. {KEYS:,} keys. Peers get one row of {SHARE}, so that they are done in
minutes; what a start costs weighs more on them for it.

The patterns have the same meaning everywhere. A star is followed by what cannot be one of its rows, so that
it does not matter that Flink's would give rows back. None begins with a star, which only here is maximal on
the left, and none ends with one, which Flink does not allow. Flink goes on after the last row of a match. It
has no PREV, so a condition says whether it is about the first row of its variable or a later one. What all
matches come to (how many, the sum of how much higher each ends than it began, and of the squares of that) is
compared with a recomputation by plain loops, attempt after attempt."""


@dataclass
class Shared(Results):
    """Results of which peers have fewer rows."""

    peers: Results = field(default_factory=lambda: Results(0))

    def of(self, contestant: Contestant) -> Results:
        """Return the results that a contestant is compared by."""
        return self if contestant.name.startswith("millstream") else self.peers

    def reason(self, outcome: Outcome) -> str:
        judge = self.of(outcome.contestant)
        return super().reason(outcome) if judge is self else judge.reason(outcome)


def measure(size: Size, directory: Path) -> Section:
    results = Shared(size.rows, peers=Results(size.rows // SHARE))
    by_name = {contestant.name: contestant for contestant in CONTESTANTS}
    for query, peers in PEERS.items():
        for name in [f"millstream_{query}", *peers] * size.repeats:
            contestant = by_name[name]
            results.outcomes.append(run_one(contestant, results.of(contestant), KEYS))
    tables = [Figures(f"**{query}**: {QUERIES[query]}", _table(query, results)) for query in PEERS]
    if reasons := list(results.reasons()):
        tables.append(Figures("What is missing", [["reason"], *([reason] for reason in reasons)]))
    picture = chart.draw(results, directory / "peer.png")
    title = "Peers: rows per second with the same pattern"
    return Section(title, ABOUT, _claims(results), tables, [picture.name])


def run_one(contestant: Contestant, judge: Results, keys: int) -> Outcome:
    """Run it over the requested number of rows, and return the outcome."""
    shape = Shape(judge.rows, keys)
    small = Shape(max(judge.rows // 4, min(judge.rows, 50_000)), keys)
    partitions = cores() if contestant.name.startswith("flink") else 0
    arguments = [
        *("--data", str(data.make(shape, partitions))),
        *("--warm-up", str(data.make(small, partitions))),
        *("--batches", str(BATCHES)),
        *("--parallelism", str(cores())),
        *("--memory", str(min(megabytes() // 2, 8192))),
        "--answers",
    ]
    judge.expected[contestant.query, keys] = answers.expected(contestant.query, shape)
    outcome = run(contestant, keys, arguments, TIMEOUT)
    said = judge.reason(outcome) or f"{outcome.rate:,.0f} rows/s"
    Console(highlight=False).print(f"{contestant.name}: {said}", markup=False, soft_wrap=True)
    return outcome


def _table(query: str, results: Shared) -> list[list[str]]:
    rows = [["", "rows", "rows/s", "Millstream is faster by", "seconds", "matches"]]
    for contestant in results.contestants(query):
        outcome = next(o for o in results.outcomes if o.contestant == contestant)
        rate, ratio = results.rate(contestant, KEYS), results.ratio(contestant, KEYS)
        rows.append(
            [
                f"{contestant.name}: {contestant.note}",
                f"{results.of(contestant).rows:,}",
                f"{rate:,.0f}" if rate else results.cell(contestant, KEYS),
                f"{ratio:.1f}x" if ratio else "",
                f"{outcome.line['seconds']:,.1f}" if outcome.line else "",
                f"{outcome.totals.results:,}" if outcome.totals else "",
            ]
        )
    return rows


def _claims(results: Shared) -> list[Claim]:
    wrong = [reason for reason in results.reasons() if "wrong" in reason]
    counted = [outcome for outcome in results.outcomes if outcome.totals]
    claims = [
        Claim(
            "all find the same matches",
            f"{len(counted)} of {len(results.outcomes)} runs counted, {len(wrong)} wrong",
            not wrong and len(counted) == len(results.outcomes),
        )
    ]
    for query in PEERS:
        for contestant in results.contestants(query)[1:]:
            ratio = results.ratio(contestant, KEYS)
            wanted = WANTED if contestant.name.startswith("flink") else 1
            than = f"at least {wanted} times as fast as" if wanted > 1 else "no slower than"
            measured = f"{ratio:.1f} times as fast" if ratio else "no figure"
            holds = ratio is not None and ratio >= wanted
            claims.append(Claim(f"{query} is {than} {contestant.name}", measured, holds))
    return claims
