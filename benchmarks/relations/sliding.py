"""Figures 6, 7 and 10: operators over windows of time, against the slide, the window and the rate."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from benchmarks.experiments.lines import draw
from benchmarks.experiments.section import Claim, Section, Size
from benchmarks.relations import curves
from benchmarks.relations.curves import Costs
from benchmarks.relations.operators import IN_TIME, Make, Operator, distinct, sliding
from benchmarks.relations.traces import SESSIONS, first_sessions
from benchmarks.relations.waves import CYCLES, Batches, Cost, cost, rate_of, sides_of, waves

ROWS, REPEATS = SESSIONS, 3
EXTENT = 10
SLIDES = (1, 2, 4, 6, 8, 10)
EXTENTS = (5, 10, 15, 20, 25)
RATES = (1, 2, 5, 10)
BATCHES = 10
ABOUT = f"""\
Queries Q4 (DISTINCT of protocol and hosts), Q5 (sum and max of the duration by local host) and Q6 (join of
TraceA's local hosts with TraceB's remote ones) over a trace that is made with the shape of the paper's.
Every timestamp brings as many tuples as make {CYCLES} timestamps of the whole (10,000 at the paper's size;
for the join in each of two halves). Kernels alone, a slide at a time, with what a stage does after a batch
(it asks what of the state has changed); averages over at most {BATCHES} slides after the window has been
filled. Windows have their own line, as the paper leaves them out. At a slide of {EXTENT} the window tumbles.
Aggregates are computed in two ways: all groups at every slide, which is what a query with SLIDE gives, and
as changes (`SELECT ISTREAM`), which is what the paper maintains."""


def measure(size: Size, directory: Path) -> Section:
    rate = rate_of(size.rows)
    by_slide = {name: _along("slide", name, SLIDES, rate, size) for name in IN_TIME}
    by_extent = {name: _along("extent", name, EXTENTS, rate, size) for name in IN_TIME}
    by_rate = {
        f"distinct, {extent} timestamps": {
            rate * times: _cost(distinct, extent, 1, rate * times, size.repeats) for times in RATES
        }
        for extent in EXTENTS[1:4:2]
    }
    claims = [
        curves.linear("figure 6: the cost of a slide grows linearly with the slide", by_slide),
        curves.dearest("figure 6: the join is by far the most expensive", by_slide, "join"),
        _aggregates_are_cheap(by_slide),
        curves.linear("figure 7: the cost grows about linearly with the extent", by_extent),
        curves.linear("figure 10: the cost of DISTINCT grows about linearly with the rate", by_rate),
    ]
    tables = [
        curves.table(f"Figure 6: ms for a slide, extent {EXTENT} timestamps", "slide, timestamps", by_slide),
        curves.table("Figure 7: ms for a slide of one timestamp", "extent, timestamps", by_extent),
        curves.table("Figure 10: ms for a slide of one timestamp", "tuples a timestamp", by_rate),
    ]
    panels = [
        curves.panel("figure 6", "slide, timestamps", "ms a slide", by_slide),
        curves.panel("figure 7", "extent, timestamps", "ms a slide", by_extent),
        curves.panel("figure 10", "tuples a timestamp", "ms a slide", by_rate),
    ]
    title = "Sliding and tumbling windows of time: cost against slide, extent and rate"
    return Section(title, ABOUT, claims, tables, [draw(panels, directory / "sliding.png")])


def _along(what: str, name: str, points: tuple[int, ...], rate: int, size: Size) -> dict[int, Cost]:
    make = IN_TIME[name]
    _cost(make, 2, 1, max(rate // 10, 1), 1)  # compile before the measurement
    if what == "slide":
        return {slide: _cost(make, EXTENT, slide, rate, size.repeats) for slide in points}
    return {extent: _cost(make, extent, 1, rate, size.repeats) for extent in points}


def _cost(make: Make, extent: int, slide: int, rate: int, repeats: int) -> Cost:
    """Over a trace that is as long as it has to be."""
    fill = -(-extent // slide) * slide
    sides = make(sliding(extent, slide)).sides
    trace = first_sessions(rate * sides * (fill + BATCHES * slide))

    def batches(operator: Operator) -> Batches:
        return waves(sides_of(operator, trace), rate, slide)

    return cost(partial(make, sliding(extent, slide)), batches, fill, BATCHES, repeats)


def _aggregates_are_cheap(costs: Costs) -> Claim:
    last = {name: list(of_operator.values())[-1].operator for name, of_operator in costs.items()}
    aggregates = [name for name in last if name.startswith(("sum", "max"))]
    holds = [last[name] < last["distinct"] for name in aggregates]
    return Claim(
        "figure 6: aggregation costs next to nothing, and less than eliminating duplicates",
        curves.listed({name: last[name] for name in (*aggregates, "distinct")}),
        True if all(holds) else None if any(holds) else False,
    )
