"""Measure costs that should not grow, and report them."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.engine.contract import ROOT
from benchmarks.engine.environment import cores, environment, megabytes
from benchmarks.engine.peers.spark import session
from benchmarks.growth import length, precision, windows

PARTS = ("windows", "length", "precision")


def main(argv: list[str]) -> int:
    options = _options(argv)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    console = Console(highlight=False)
    about = environment()
    tables: dict[str, list[list[str]]] = {}
    with tempfile.TemporaryDirectory(prefix="growth-") as scratch:
        if "precision" in options.only:
            tables[f"{precision.__doc__}"] = precision.measure(options.slides)
        if {"windows", "length"} & set(options.only):
            memory = min(megabytes() // 2, 4096)
            spark = session(argparse.Namespace(parallelism=cores(), memory=memory, scratch=Path(scratch)))
            if "windows" in options.only:
                measured = windows.measure(spark, options.rows, options.repeats, cores())
                tables[f"{windows.__doc__} {options.rows:,} rows, {windows.KEYS} keys."] = measured
            if "length" in options.only:
                tables[f"{length.__doc__} {length.KEYS:,} keys."] = length.measure(spark, options.long)
            spark.stop()
    for title, (heading, *rows) in tables.items():
        table = Table(title=title, title_justify="left")
        for place, text in enumerate(heading):
            table.add_column(text, justify="right" if place else "left")
        for row in rows:
            table.add_row(*row)
        console.print(table)
    options.out.mkdir(parents=True, exist_ok=True)
    page = options.out / "growth.md"
    page.write_text(_markdown(tables, about))
    console.print(f"wrote {page}", soft_wrap=True)
    return 0


def _markdown(tables: dict[str, list[list[str]]], about: dict[str, str]) -> str:
    parts = ["# What does not grow"]
    for title, (heading, *rows) in tables.items():
        lines = [heading, ["---:"] * len(heading), *rows]
        parts += [title, "\n".join(f"| {' | '.join(line)} |" for line in lines)]
    parts += ["## Environment", "\n".join(f"- {name}: {value}" for name, value in about.items())]
    return "\n\n".join(parts) + "\n"


def _options(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks growth", description="Measure what should not grow."
    )
    add = parser.add_argument
    add("--only", nargs="+", choices=PARTS, default=list(PARTS), help="these parts (default: all)")
    add("--rows", type=int, default=4_000_000, help="rows for each window (default: 4,000,000)")
    add("--repeats", type=int, default=3, help="runs of each window, in turn (default: 3)")
    add("--long", type=int, default=50_000_000, help="rows of the long stream (default: 50,000,000)")
    add("--slides", type=int, default=10_000_000, help="slides of a window of doubles (default: 10,000,000)")
    add("--out", type=Path, default=ROOT / "artifacts" / "benchmarks", help="where the report goes")
    return parser.parse_args(argv)
