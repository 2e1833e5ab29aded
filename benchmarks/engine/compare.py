"""Run contestants one after the other, never two at a time, and compare them."""

from __future__ import annotations

import argparse
import fnmatch
import signal
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.engine import answers, data
from benchmarks.engine.contestants import CONTESTANTS
from benchmarks.engine.contract import FILES, IF_ASKED, ROOT, SIDES, Contestant, Totals
from benchmarks.engine.data import Shape
from benchmarks.engine.environment import cores, environment, megabytes
from benchmarks.engine.results import Results, described
from benchmarks.engine.running import Outcome, run
from benchmarks.engine.writing import show, write

ROWS, KEYS = 4_000_000, (10, 1_000, 100_000)

CHECK = Shape(rows=20_000, keys=100, seconds=300)
"""Small, but five windows long, and with twice as many rows to a key as the windows of rows have."""


def main(argv: list[str]) -> int:
    options = _options(argv)
    if options.list:
        for contestant in CONTESTANTS:
            print(f"{contestant.name:<26} {contestant.query:<19} {contestant.note}")
        return 0
    # After Ctrl-C, started processes are ended first: contestants are not in the process group of this one.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    console = Console(highlight=False)
    chosen = _chosen(options.only)
    return check(chosen, options, console) if options.check else compare(chosen, options, console)


def compare(chosen: list[Contestant], options: argparse.Namespace, console: Console) -> int:
    """Measure, show and write; return 1 if a result is wrong, since the figures are then meaningless."""
    about = environment()
    for name, value in about.items():
        console.print(f"{name:<9} {value}", markup=False, soft_wrap=True)
    results = Results(options.rows)
    settings = _settings(options)
    try:
        for keys in options.keys:
            shape = Shape(options.rows, keys, options.seconds)
            small = Shape(min(options.rows, max(50_000, options.rows // 4)), keys)
            for _ in range(options.repeats):
                _round(chosen, shape, small, options, results, console)
                write(results, about, settings, options.out)
    except KeyboardInterrupt:
        console.print("interrupted: what follows is what there was until then")
    show(results, console)
    if results.outcomes:
        console.print()
        for path in write(results, about, settings, options.out):
            console.print(f"wrote {path}", soft_wrap=True)
    return int(any(reason.startswith("wrong") for reason in map(results.reason, results.outcomes)))


def _settings(options: argparse.Namespace) -> dict[str, int]:
    settings = vars(options)
    names = ("rows", "repeats", "batches", "parallelism", "memory")
    seconds = Shape(options.rows, max(options.keys), options.seconds).seconds
    return {name: settings[name] for name in names} | {"seconds": seconds}


def _round(
    chosen: list[Contestant],
    shape: Shape,
    small: Shape,
    options: argparse.Namespace,
    results: Results,
    console: Console,
) -> None:
    """Every contestant once, over the data of one shape."""
    sides = _sides(chosen)
    arguments = [
        *("--data", str(data.make(shape, options.parallelism, sides))),
        *("--warm-up", str(data.make(small, options.parallelism, sides))),
        *_common(options),
        *([] if options.skip_answers else ["--answers"]),
    ]
    for contestant in chosen:
        keys = shape.keys
        if contestant.is_micro_batch:
            # Keys make no difference to ten rows.
            if shape.keys != options.keys[0]:
                continue
            keys = 0
        if (contestant.query, keys) not in results.expected:
            results.expected[contestant.query, keys] = answers.expected(contestant.query, shape)
        outcome = run(contestant, keys, arguments, options.timeout)
        results.outcomes.append(outcome)
        reason = results.reason(outcome)
        said = reason or f"{results.cell(contestant, keys)}, process {outcome.line['process_seconds']:,.0f} s"
        console.print(f"{contestant.name}, {described(keys)}: {said}", markup=False, soft_wrap=True)


def check(chosen: list[Contestant], options: argparse.Namespace, console: Console) -> int:
    """Run all over little data and compare their answers with a recomputation; 1 if one is not right."""
    directory = data.make(CHECK, options.parallelism, _sides(chosen))
    arguments = ["--data", str(directory), *_common(options), "--answers"]
    table = Table("", "results", "sum", "sum of squares", "")
    failures = 0
    for contestant in chosen:
        outcome = run(contestant, CHECK.keys, arguments, options.timeout)
        right = answers.expected(contestant.query, CHECK)
        verdict = _verdict(outcome, right)
        failures += verdict != "right"
        found = outcome.totals
        numbers = [""] * 3
        if found:
            numbers = [f"{found.results:,}", f"{found.total:,.2f}", f"{found.squares:.6e}"]
        table.add_row(contestant.name, *numbers, verdict.partition(":")[0])
        console.print(f"{contestant.name}: {verdict}", markup=False, soft_wrap=True)
    console.print(table)
    return int(failures > 0)


def _verdict(outcome: Outcome, right: Totals) -> str:
    if outcome.reason:
        return outcome.reason
    if outcome.totals is None:
        return "no answer: it printed a line without results"
    return "right" if outcome.totals.agrees(right) else f"wrong: {outcome.totals} and not {right}"


def _sides(chosen: list[Contestant]) -> int:
    """Return the number of streams that the contestants read."""
    return max((SIDES.get(contestant.query, 1) for contestant in chosen), default=1)


def _common(options: argparse.Namespace) -> list[str]:
    return [
        *("--batches", str(options.batches)),
        *("--parallelism", str(options.parallelism)),
        *("--memory", str(options.memory)),
    ]


def _chosen(patterns: list[str]) -> list[Contestant]:
    if not patterns:
        return [c for c in CONTESTANTS if c.query not in IF_ASKED]
    for pattern in patterns:
        if not any(fnmatch.fnmatch(c.name, pattern) for c in CONTESTANTS):
            names = ", ".join(c.name for c in CONTESTANTS)
            sys.exit(f"no contestant is called {pattern}; there are {names}")
    return [c for c in CONTESTANTS if any(fnmatch.fnmatch(c.name, pattern) for pattern in patterns)]


def _options(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks engine",
        description="Compare the engine with its peers, one after the other.",
    )
    add = parser.add_argument
    add("--rows", type=int, default=ROWS, help=f"rows of the stream (default: {ROWS:,})")
    add("--keys", type=int, nargs="+", default=list(KEYS), help="numbers of keys (default: 10 1000 100000)")
    add("--seconds", type=int, default=0, help="stream time of the rows (default: 1 hour for 4,000,000 rows)")
    add("--only", nargs="+", default=[], metavar="NAME", help="these contestants, or patterns: 'flink_*'")
    add("--repeats", type=int, default=1, help="run each so often, in turn, and take the median (default: 1)")
    add("--batches", type=int, default=8, help=f"micro-batches of a run, a divisor of {FILES} (default: 8)")
    add("--parallelism", type=int, default=cores(), help="cores to use (default: all)")
    memory = min(megabytes() // 2, 8192)
    add("--memory", type=int, default=memory, help=f"heap of a JVM in MB (default: {memory})")
    add("--timeout", type=float, default=1800, help="seconds until a contestant is stopped (default: 1800)")
    add("--skip-answers", action="store_true", help="no second run of Flink, untimed, to count its results")
    add("--check", action="store_true", help="only see that all answers are right, over little data")
    add("--list", action="store_true", help="list the contestants")
    add("--out", type=Path, default=ROOT / "artifacts" / "benchmarks", help="where the report goes")
    options = parser.parse_args(argv)
    if options.batches < 1 or FILES % options.batches:
        parser.error(f"--batches must be a divisor of {FILES}")
    try:
        for keys in options.keys:
            Shape(options.rows, keys, options.seconds)
    except ValueError as error:
        parser.error(str(error))
    return options
