"""The report: tables for the terminal, and engine.md, engine.json and engine.png for later."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.engine.contract import QUERIES
from benchmarks.engine.results import Results

HOW = """\
Each contestant runs alone, in a process of its own: once over a small part of such data, then over all of it.
The second run is timed, from the start of the query to its end; for Flink that is the job by its own clock,
without planning and the start of its cluster. Results go nowhere: Spark's `noop`, Flink's `blackhole`. In
parentheses: how many times as fast Millstream is, in this very run.
"""

FAIRNESS = """\
Spark: `local[{parallelism}]`, as many shuffle partitions, {memory:,} MB of heap, RocksDB with changelog
checkpoints and the checkpoint file manager that Millstream uses too, {batches} micro-batches from parquet.
Like Millstream, it writes what changed in its state to disk with every batch.

Flink: streaming mode, parallelism {parallelism}, {memory:,} MB of heap and 1 GB of managed memory, object
reuse, csv in {parallelism} ordered partitions. State on the heap and no checkpoints, so that it does less
than the others; as `durable` it keeps its state as they do.
"""


def show(results: Results, console: Console) -> None:
    for query in results.queries():
        heading, *rows = results.table(query)
        table = Table()
        for place, text in enumerate(heading):
            table.add_column(text, justify="right" if place else "left", no_wrap=True)
        for row in rows:
            table.add_row(*row)
        console.print(f"\n{query}: {QUERIES[query]}", style="bold", markup=False, soft_wrap=True)
        console.print(table)
    for reason in results.reasons():
        console.print(reason, style="red", markup=False, soft_wrap=True)


def write(results: Results, about: dict[str, str], settings: dict[str, int], directory: Path) -> list[Path]:
    """Write the results, and return the files."""
    directory.mkdir(parents=True, exist_ok=True)
    record = directory / "engine.json"
    runs = [
        {"contestant": run.contestant.name, "keys": run.keys, **run.line, "reason": results.reason(run)}
        for run in results.outcomes
    ]
    everything = {"environment": about, "settings": settings, "runs": runs}
    record.write_text(json.dumps(everything, indent=1) + "\n")
    page = directory / "engine.md"
    written = [record, page]
    if importlib.util.find_spec("matplotlib"):
        from benchmarks.engine import chart

        written.append(chart.draw(results, directory / "engine.png"))
    page.write_text(_markdown(results, about, settings, has_chart=len(written) == 3))
    return written


def _markdown(results: Results, about: dict[str, str], settings: dict[str, int], *, has_chart: bool) -> str:
    parts = ["# The engine and its peers", HOW.strip()]
    size, seconds, repeats = settings["rows"], settings["seconds"], settings["repeats"]
    shape = f"{size:,} rows (k INT, ts TIMESTAMP, v DOUBLE) over {seconds:,} s of stream time"
    parts.append(f"{shape}; " + (f"medians of {repeats} runs." if repeats > 1 else "one run each."))
    if has_chart:
        parts.append("![rows per second](engine.png)")
    for query in results.queries():
        heading, *rows = results.table(query)
        ruler = ["---", *("---:" for _ in heading[1:])]
        table = "\n".join(f"| {' | '.join(row)} |" for row in (heading, ruler, *rows))
        parts += [f"## {query}", f"{QUERIES[query]}.", table]
        parts.append("\n".join(f"- {c.name}: {c.note}" for c in results.contestants(query) if c.note))
    if reasons := list(results.reasons()):
        parts += ["## What is missing", "\n".join(f"- {reason}" for reason in reasons)]
    parts += ["## Every run", _every_run(results)]
    parts += ["## How they were set up", FAIRNESS.format(**settings).strip()]
    parts += ["## Environment", "\n".join(f"- {name}: {value}" for name, value in about.items())]
    return "\n\n".join(part for part in parts if part) + "\n"


def _every_run(results: Results) -> str:
    """Whole processes too: with the start of Python and of the JVM, and the warm-up."""
    rows = [["", "keys", "seconds", "of the whole process", "results"], ["---", *["---:"] * 4]]
    for run in results.outcomes:
        if run.line:
            keys = f"{run.keys:,}" if run.keys else ""
            times = (f"{run.line['seconds']:,.1f}", f"{run.line['process_seconds']:,.1f}")
            counted = f"{run.totals.results:,}" if run.totals else ""
            rows.append([run.contestant.name, keys, *times, counted])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
