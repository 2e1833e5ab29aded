"""Figures 9 and 11: operators over windows of rows, of the whole stream and of each protocol."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pyarrow as pa

from benchmarks.experiments.lines import draw
from benchmarks.experiments.section import Claim, Section, Size
from benchmarks.relations import curves
from benchmarks.relations.curves import Costs
from benchmarks.relations.operators import MAINTAINED, Operator, Window, rows
from benchmarks.relations.traces import SESSIONS, first_sessions, most_frequent
from benchmarks.relations.waves import CYCLES, Batches, Cost, arrivals, cost, rate_of, sides_of

ROWS, REPEATS = SESSIONS, 1
TENTHS = (1, 2, 5, 10, 50, 100)
"""Sizes of windows, in tenths of the tuples of a cycle: 1,000 to 100,000 at the paper's size."""
PARTITIONS = 5
BATCHES = 5
ABOUT = f"""\
The same queries over windows of the latest tuples, where every tuple has an instant of its own and, once the
window is full, makes another one leave. A cycle brings a {CYCLES}th part of the trace (10,000 tuples at the
paper's size; to each side of the join); averages over {BATCHES} cycles after the window has been filled.
Results are changes, after every tuple. Partitioned windows are by protocol, of the {PARTITIONS} most
frequent ones; their size is that of all partitions together."""


def measure(size: Size, directory: Path) -> Section:
    rate = rate_of(size.rows)
    sizes = [max(rate * tenths // 10, PARTITIONS) for tenths in TENTHS]
    whole = {name: {n: _cost(name, n, rate, size.repeats) for n in sizes} for name in MAINTAINED}
    parts = {
        name: {n: _cost(name, n, rate, size.repeats, per_protocol=True) for n in sizes} for name in MAINTAINED
    }
    claims = [
        _most_for_max(whole),
        curves.linear("figure 9: costs grow at most linearly with the window", whole),
        Claim(
            "figure 9: DISTINCT and SUM need only look at what enters and leaves",
            ", ".join(f"{name} {curves.growth(whole[name])[1]:.1f} times" for name in ("distinct", "sum"))
            + f" for a window {curves.growth(whole['sum'])[0]:.0f} times as large",
            all(curves.growth(whole[name])[1] < 2 for name in ("distinct", "sum")),
        ),
        Claim(
            "figure 11: over partitions the cost of DISTINCT is almost stable",
            f"{curves.growth(parts['distinct'])[1]:.1f} times for a window "
            f"{curves.growth(parts['distinct'])[0]:.0f} times as large",
            curves.growth(parts["distinct"])[1] < 2,
        ),
        _cheaper_max(parts),
    ]
    tables = [
        curves.table("Figure 9: ms a cycle, windows of the whole stream", "tuples of the window", whole),
        curves.table("Figure 11: ms a cycle, windows of protocols", "tuples of all windows", parts),
    ]
    panels = [
        curves.panel("figure 9", "tuples of the window", "ms a cycle", whole),
        curves.panel("figure 11", "tuples of all partitions", "ms a cycle", parts),
    ]
    title = "Windows of rows and partitioned windows: cost against their size"
    return Section(title, ABOUT, claims, tables, [draw(panels, directory / "counted.png")])


def _cost(name: str, count: int, rate: int, repeats: int, *, per_protocol: bool = False) -> Cost:
    window = rows(count // PARTITIONS, per_protocol=True) if per_protocol else rows(count)
    make = partial(MAINTAINED[name], window)
    sides = make().sides
    # Partitions that are less frequent fill more slowly.
    fill = -(-count // rate) * (3 if per_protocol else 1)
    needed = rate * sides * (fill + BATCHES)
    trace = (
        most_frequent(first_sessions(needed * 3 // 2), PARTITIONS) if per_protocol else first_sessions(needed)
    )

    def batches(operator: Operator) -> Batches:
        return arrivals(sides_of(operator, trace), rate)

    _compile(name, window, trace)
    return cost(make, batches, fill * rate * sides, BATCHES, repeats)


def _compile(name: str, window: Window, trace: pa.Table) -> None:
    """Compile the kernels before the measurement."""
    operator = MAINTAINED[name](window)
    few = sides_of(operator, trace.slice(0, 40))
    for batch in arrivals(few, 10):
        operator.feed(*batch)


def _most_for_max(costs: Costs) -> Claim:
    claim = curves.dearest("figure 9: MAX is the most expensive, since groups are scanned", costs, "max")
    return Claim(claim.text, f"at the largest window: {claim.measured}", claim.holds)


def _cheaper_max(costs: Costs) -> Claim:
    last = {name: list(of_operator.values())[-1].operator for name, of_operator in costs.items()}
    return Claim(
        "figure 11: over partitions MAX costs less than the join",
        curves.listed(last),
        last["max"] < last["join"],
    )
