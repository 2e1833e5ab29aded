"""Whole queries on Spark: a sum in ESL beside the built-in, one in Python, and one in Python on Flink."""

from __future__ import annotations

import sys
from pathlib import Path

from rich.console import Console

from benchmarks.engine import chart, data
from benchmarks.engine.answers import expected
from benchmarks.engine.contestants import CONTESTANTS, flink
from benchmarks.engine.contract import QUERIES, Contestant
from benchmarks.engine.data import Shape
from benchmarks.engine.environment import cores, megabytes
from benchmarks.engine.results import Results
from benchmarks.engine.running import run
from benchmarks.experiments.section import Claim, Figures, Section, Size

ROWS, REPEATS = 1_000_000, 1
KEYS = 1_000
SHARE, FIRST_SHARE = 4, 40
"""Flink with an aggregate in Python gets one row of so many, and before that of so many."""
TIMEOUT = 900
QUERY = "rows"
ABOUT = f"""\
{QUERIES[QUERY]}, {KEYS:,} keys: the sum as it is built in, as a window aggregate in ESL with EXPIRE, as a
class in Python with `add` and `remove`, and on Flink as an aggregate in Python (vectorised, the only kind
that Flink runs over such windows). Each alone in a process of its own, once over a quarter of the rows, then
timed over all of them; results are compared with a recomputation in NumPy. Flink starts Python anew for each
job, which takes longer than many rows do. So it gets one row of {FIRST_SHARE} in a process, one of {SHARE}
in another, and its rate is that of the rows that the second has more, in the time that it takes longer."""


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
    all_rows = Results(size.rows)
    for contestant in [BUILT_IN, ESL, PYTHON] * size.repeats:
        _run(contestant, all_rows, warm=True)
    few_rows, some_rows = Results(size.rows // FIRST_SHARE), Results(size.rows // SHARE)
    _run(PYFLINK, few_rows, warm=False)
    _run(PYFLINK, some_rows, warm=False, answers=False)
    rates = {contestant: all_rows.rate(contestant, KEYS) for contestant in (BUILT_IN, ESL, PYTHON)}
    rates[PYFLINK] = _rate_once_started(few_rows, some_rows)
    table = [["", "rows/s", "the sum in ESL is faster by"]]
    for contestant, rate in rates.items():
        ratio = _ratio(rates, contestant)
        table.append(
            [
                f"{contestant.name}: {contestant.note}",
                f"{rate:,.0f}" if rate else "",
                f"{ratio:.2f}x" if ratio and contestant is not ESL else "",
            ]
        )
    tables = [Figures("", table)]
    if reasons := [*all_rows.reasons(), *few_rows.reasons(), *some_rows.reasons()]:
        tables.append(Figures("What is missing", [["reason"], *([reason] for reason in reasons)]))
    claims = [
        _claim(rates, BUILT_IN, "costs at most 1.3 times the built-in sum", 1 / 1.3),
        _claim(rates, PYTHON, "is faster than the same in Python", 1),
        _claim(rates, PYFLINK, "is at least 20 times as fast as Flink with an aggregate in Python", 20),
    ]
    picture = chart.draw(all_rows, directory / "whole.png")
    return Section("The same sum, end to end", ABOUT, claims, tables, [picture.name])


def _run(contestant: Contestant, results: Results, *, warm: bool, answers: bool = True) -> None:
    shape = Shape(results.rows, KEYS)
    small = Shape(max(results.rows // 4, min(results.rows, 50_000)), KEYS)
    arguments = [
        *("--data", str(data.make(shape, cores()))),
        *(("--warm-up", str(data.make(small, cores()))) if warm else ()),
        *("--batches", "8"),
        *("--parallelism", str(cores())),
        *("--memory", str(min(megabytes() // 2, 8192))),
        *(("--answers",) if answers else ()),
    ]
    results.expected[QUERY, KEYS] = expected(QUERY, shape)
    outcome = run(contestant, KEYS, arguments, TIMEOUT)
    results.outcomes.append(outcome)
    said = results.reason(outcome) or results.cell(contestant, KEYS)
    Console(highlight=False).print(f"{contestant.name}: {said}", markup=False, soft_wrap=True)


def _rate_once_started(few: Results, some: Results) -> float | None:
    """Return the rows a second of the difference of two runs, in rows and in time."""
    rates = few.rate(PYFLINK, KEYS), some.rate(PYFLINK, KEYS)
    if rates[0] is None or rates[1] is None:
        return None
    longer = some.rows / rates[1] - few.rows / rates[0]
    return (some.rows - few.rows) / longer if longer > 0 else None


def _ratio(rates: dict[Contestant, float | None], contestant: Contestant) -> float | None:
    own, other = rates[ESL], rates[contestant]
    return own / other if own and other else None


def _claim(rates: dict[Contestant, float | None], contestant: Contestant, text: str, wanted: float) -> Claim:
    ratio = _ratio(rates, contestant)
    measured = f"{ratio:.2f} times as fast" if ratio else "no figure"
    return Claim(f"the sum in ESL {text}", measured, ratio is not None and ratio >= wanted)
