"""Figures 6 and 7 of the ESL paper, as `python -m benchmarks slides` makes them."""

from __future__ import annotations

from pathlib import Path

from benchmarks import slides
from benchmarks.experiments.section import Claim, Figures, Section, Size
from benchmarks.slides import kernel, report
from benchmarks.slides.figures import Point, draw

ROWS, REPEATS = 1_000_000, 1


def measure(size: Size, directory: Path) -> Section:
    points = kernel.measure(size.rows, size.repeats) + report.end_to_end(size.rows, size.repeats)
    picture = draw(points, directory / "slides.png")
    about = f"{slides.__doc__} One partition, sum of doubles. {report.CLAIM}"
    table = [report.HEADING, *map(report.line_of, points)]
    title = "Figures 6 and 7 of the ESL paper: memory and rate against the slide"
    return Section(title, about, _claims(points), [Figures("", table)], [picture.name])


def _claims(points: list[Point]) -> list[Claim]:
    paned = [point for point in points if point.way == "panes"]
    whole = [point for point in points if point.way == "end to end"]
    ten_thousand = next(point for point in paned if point.slide == 10_000)
    return [
        Claim(
            "figure 6: memory falls linearly with the slide, to about 4 values at 10,000",
            f"{paned[0].rows:,} rows at SLIDE 1, {ten_thousand.rows:,} at 10,000",
            ten_thousand.rows * 1_000 <= paned[0].rows,
        ),
        Claim(
            "figure 7: the rate rises with the slide",
            f"kernel {paned[0].rate:,.0f} to {paned[-1].rate:,.0f} tuples/s, "
            f"end to end {whole[0].rate:,.0f} to {whole[-1].rate:,.0f}",
            paned[-1].rate > paned[0].rate and whole[-1].rate > whole[0].rate,
        ),
    ]
