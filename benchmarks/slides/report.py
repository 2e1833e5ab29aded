"""Measure slides, show and draw them, and write it all down."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import slides
from benchmarks.engine.contract import ROOT
from benchmarks.engine.environment import cores, environment, megabytes
from benchmarks.slides import kernel
from benchmarks.slides.figures import Point, draw

PARTS = ("kernel", "whole")
HEADING = ["SLIDE", "done by", "tuples/s", "rows of state", "bytes of state"]
CLAIM = (
    "The paper: with panes memory falls linearly as the slide grows, from 40,000 values to 4 + 1 at "
    "a slide of 10,000, and the rate rises; without them both stay as they are."
)


def main(argv: list[str]) -> int:
    options = _options(argv)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    points: list[Point] = []
    if "kernel" in options.only:
        points += kernel.measure(options.rows, options.repeats)
    if "whole" in options.only:
        points += end_to_end(options.rows, options.repeats)
    lines = [line_of(point) for point in points]
    console = Console(highlight=False)
    table = Table(title=slides.__doc__, title_justify="left")
    for place, text in enumerate(HEADING):
        table.add_column(text, justify="left" if place == 1 else "right")
    for line in lines:
        table.add_row(*line)
    console.print(table)
    options.out.mkdir(parents=True, exist_ok=True)
    picture = draw(points, options.out / "slides.png")
    page = options.out / "slides.md"
    page.write_text(_markdown(lines, picture.name, options.rows))
    console.print(f"wrote {page} and {picture}", soft_wrap=True)
    return 0


def end_to_end(rows: int, repeats: int) -> list[Point]:
    from benchmarks.engine.peers.spark import session
    from benchmarks.slides import whole

    memory = min(megabytes() // 2, 4096)
    with tempfile.TemporaryDirectory(prefix="slides-") as scratch:
        spark = session(argparse.Namespace(parallelism=cores(), memory=memory, scratch=Path(scratch)))
        points = whole.measure(spark, rows, repeats, cores())
        spark.stop()
    return points


def line_of(point: Point) -> list[str]:
    return [f"{point.slide:,}", point.way, f"{point.rate:,.0f}", f"{point.rows:,}", f"{point.size:,}"]


def _markdown(lines: Sequence[Sequence[str]], picture: str, rows: int) -> str:
    table = [HEADING, ["---:", "---", "---:", "---:", "---:"], *lines]
    parts = [
        "# Slides",
        f"{slides.__doc__} {rows:,} tuples, one partition, sum of doubles.",
        CLAIM,
        f"![memory and rate]({picture})",
        "\n".join(f"| {' | '.join(line)} |" for line in table),
        "## Environment",
        "\n".join(f"- {name}: {value}" for name, value in environment().items()),
    ]
    return "\n\n".join(parts) + "\n"


def _options(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks slides", description="Measure windows that slide."
    )
    add = parser.add_argument
    add("--only", nargs="+", choices=PARTS, default=list(PARTS), help="these parts (default: both)")
    add("--rows", type=int, default=4_000_000, help="tuples for each slide (default: 4,000,000)")
    add("--repeats", type=int, default=3, help="runs of each slide (default: 3)")
    add("--out", type=Path, default=ROOT / "artifacts" / "benchmarks", help="where the report goes")
    return parser.parse_args(argv)
