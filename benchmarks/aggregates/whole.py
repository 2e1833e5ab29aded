"""Whole queries on Spark: a sum in ESL beside the built-in, one in Python, and one in Python on Flink."""

from __future__ import annotations

import sys
from pathlib import Path

from rich.console import Console

from benchmarks.engine import answers, chart, data
from benchmarks.engine.contestants import CONTESTANTS, flink
from benchmarks.engine.contract import QUERIES, Contestant
from benchmarks.engine.data import Shape
from benchmarks.engine.environment import cores, megabytes
from benchmarks.engine.results import Results
from benchmarks.engine.running import run
from benchmarks.experiments.section import Claim, Figures, Section, Size

ROWS, REPEATS = 1_000_000, 1
KEYS = 1_000
TIMEOUT = 900
QUERY = "rows"
ABOUT = f"""\
{QUERIES[QUERY]}, {KEYS:,} keys: the sum as it is built in, as a window aggregate in ESL with EXPIRE, as a
class in Python with `add` and `remove`, and on Flink as an aggregate in Python (vectorised, the only kind
that Flink runs over such windows). Each alone in a process of its own, once over a quarter of the rows,
then timed over all of them; results are compared with a recomputation in NumPy."""


def _own(aggregate: str, note: str) -> Contestant:
    argv = (
        sys.executable,
        "-m",
        "benchmarks.engine.own.queries",
        f"--query={QUERY}",
        f"--aggregate={aggregate}",
    )
    return Contestant(f"millstream_{aggregate}", QUERY, argv, note=note)


BUILT_IN = next(contestant for contestant in CONTESTANTS if contestant.name == f"millstream_{QUERY}")
ESL = _own("esl", "a window aggregate with EXPIRE, in ESL")
PYTHON = _own("python", "a class with add and remove, in Python")
PYFLINK = flink(QUERY, "a vectorised aggregate in Python, on Flink", in_python=True)


def measure(size: Size, directory: Path) -> Section:
    results = _run_all(size)
    table = [["", "rows/s", "the sum in ESL is faster by"]]
    for contestant in results.contestants(QUERY):
        rate = results.rate(contestant, KEYS)
        ratio = _ratio(results, contestant)
        table.append(
            [
                f"{contestant.name}: {contestant.note}",
                f"{rate:,.0f}" if rate else results.cell(contestant, KEYS),
                f"{ratio:.2f}x" if ratio and contestant is not ESL else "",
            ]
        )
    tables = [Figures("", table)]
    if reasons := list(results.reasons()):
        tables.append(Figures("What is missing", [["reason"], *([reason] for reason in reasons)]))
    claims = [
        _claim(results, BUILT_IN, "costs at most 1.3 times the built-in sum", 1 / 1.3),
        _claim(results, PYTHON, "is at least 20 times as fast as the same in Python", 20),
        _claim(results, PYFLINK, "is at least 20 times as fast as Flink with an aggregate in Python", 20),
    ]
    picture = chart.draw(results, directory / "whole.png")
    return Section("The same sum, end to end", ABOUT, claims, tables, [picture.name])


def _run_all(size: Size) -> Results:
    shape, small = Shape(size.rows, KEYS), Shape(max(size.rows // 4, min(size.rows, 50_000)), KEYS)
    arguments = [
        *("--data", str(data.make(shape, cores()))),
        *("--warm-up", str(data.make(small, cores()))),
        *("--batches", "8"),
        *("--parallelism", str(cores())),
        *("--memory", str(min(megabytes() // 2, 8192))),
        "--answers",
    ]
    results = Results(size.rows)
    results.expected[QUERY, KEYS] = answers.expected(QUERY, shape)
    console = Console(highlight=False)
    for contestant in [BUILT_IN, ESL, PYTHON, PYFLINK] * size.repeats:
        outcome = run(contestant, KEYS, arguments, TIMEOUT)
        results.outcomes.append(outcome)
        said = results.reason(outcome) or results.cell(contestant, KEYS)
        console.print(f"{contestant.name}: {said}", markup=False, soft_wrap=True)
    return results


def _ratio(results: Results, contestant: Contestant) -> float | None:
    own, other = results.rate(ESL, KEYS), results.rate(contestant, KEYS)
    return own / other if own and other else None


def _claim(results: Results, contestant: Contestant, text: str, wanted: float) -> Claim:
    ratio = _ratio(results, contestant)
    measured = f"{ratio:.2f} times as fast" if ratio else "no figure"
    return Claim(f"the sum in ESL {text}", measured, ratio is not None and ratio >= wanted)
