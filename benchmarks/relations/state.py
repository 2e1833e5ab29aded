"""State of joins and DISTINCT after ten minutes of stream time, and after an hour."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.experiments.lines import Panel, draw
from benchmarks.experiments.section import Claim, Figures, Section, Size
from benchmarks.relations.operators import Operator, Window, distinct, join, rows, sliding
from benchmarks.relations.traces import first_sessions
from benchmarks.relations.waves import Part
from millstream.kernels.relational.lifetimes import Lifetime

ROWS, REPEATS = 1_800_000, 1
MINUTES, EARLY = 60, 10
STEP = 10
"""Seconds of a batch."""
RANGE = 60
MOVES = 50
"""Hosts move on by so many numbers in a minute: there are always new ones, and others are not seen again."""
MORE = 1.1
ABOUT = f"""\
An hour of stream time, in batches of {STEP} seconds, at a steady rate; hosts are those of the made trace,
and every minute {MOVES} more numbers are new ones while as many are not used any more. Rows are those of the
operator's state and of the windows before it. Durable bytes are those of the chunks that a checkpoint has,
as they are in memory: chunks are written with every batch, and cleared away when much in them is dead, so
they go up and down. Bytes in memory are those of the kernels between two batches, pickled. What is compared
is the most in the first {EARLY} minutes and the most after them; a tenth more is allowed for hosts that are
drawn at random."""

CASES: dict[str, Callable[[int], Operator]] = {
    f"join, RANGE {RANGE} s": lambda _: join(Window(Lifetime(RANGE))),
    f"join, RANGE {RANGE} s SLIDE 10 s": lambda _: join(sliding(RANGE, 10)),
    f"join, ROWS of {RANGE} s": lambda rate: join(rows(RANGE * rate)),
    f"DISTINCT, RANGE {RANGE} s": lambda _: distinct(Window(Lifetime(RANGE))),
    f"DISTINCT, ROWS of {RANGE} s": lambda rate: distinct(rows(RANGE * rate)),
}


@dataclass(frozen=True)
class Point:
    """The state after so many minutes: the most of it in the minute before."""

    minute: int
    rows: int
    durable: int
    memory: int


WHAT = {"rows": "rows", "durable": "durable bytes", "memory": "bytes in memory"}


def measure(size: Size, directory: Path) -> Section:
    found = {name: _along(make, size.rows) for name, make in CASES.items()}
    heading = [f"{what}, {when}" for what in WHAT.values() for when in (f"{EARLY} min", f"{MINUTES} min")]
    table = [["", *heading]]
    for name, points in found.items():
        pairs = [(getattr(points[EARLY - 1], what), getattr(points[-1], what)) for what in WHAT]
        table.append([name, *(f"{number:,}" for pair in pairs for number in pair)])
    panels = [
        Panel(
            title,
            "minutes",
            title,
            {
                name: [(point.minute, getattr(point, what)) for point in points]
                for name, points in found.items()
            },
        )
        for what, title in WHAT.items()
    ]
    claims = [_claim(name, points) for name, points in found.items()]
    title = "State of joins and DISTINCT along an hour"
    return Section(title, ABOUT, claims, [Figures("", table)], [draw(panels, directory / "state.png")])


def _claim(name: str, points: list[Point]) -> Claim:
    parts, flat = [], True
    for what, title in WHAT.items():
        before = max(getattr(point, what) for point in points[:EARLY])
        after = max(getattr(point, what) for point in points[EARLY:])
        parts.append(f"{after / before:.2f} times the {title}")
        flat &= after <= before * MORE
    return Claim(f"state is no larger after an hour than after ten minutes: {name}", ", ".join(parts), flat)


def _along(make: Callable[[int], Operator], count: int) -> list[Point]:
    """Seconds are instants of windows of time; tuples of windows of rows have instants of their own."""
    rate = max(count // (MINUTES * 60), 1)
    operator = make(rate)
    kernels = operator.everything
    durable: list[dict[str, int]] = [{} for _ in kernels]
    points: list[Point] = []
    most = np.zeros(2, np.int64)
    operator.clock.watch = lambda kernel, change: _note(durable[kernels.index(kernel)], change)
    for number, (parts, until) in enumerate(_batches(operator, rate), 1):
        operator.feed(parts, until)
        state = sum(kernel.rows for kernel in kernels), sum(sum(chunks.values()) for chunks in durable)
        most = np.maximum(most, state)
        if number * STEP % 60 == 0:
            memory = sum(len(pickle.dumps(kernel)) for kernel in kernels)
            points.append(Point(number * STEP // 60, *most.tolist(), memory))
            most[:] = 0
    return points


def _note(chunks: dict[str, int], change) -> None:  # type: ignore[no-untyped-def]
    for name in change.dropped:
        chunks.pop(name, None)
    chunks.update({name: table.nbytes for name, table in change.added.items()})


def _batches(operator: Operator, rate: int) -> Iterator[tuple[list[Part], int]]:
    some = first_sessions(rate * STEP * operator.sides * 30)
    by_rows = operator.window.rows is not None
    for start in range(0, MINUTES * 60, STEP):
        parts = []
        for side in range(operator.sides):
            at = (start // STEP % 30 * operator.sides + side) * rate * STEP
            table = _moved(some.slice(at, rate * STEP), start // 60 * MOVES)
            numbers = np.arange(start * rate, (start + STEP) * rate)
            times = numbers * operator.sides + side if by_rows else numbers // rate
            parts.append((table, times))
        yield parts, (start + STEP) * (rate * operator.sides if by_rows else 1)


def _moved(table: pa.Table, by: int) -> pa.Table:
    for name in ("local_host", "remote_host"):
        hosts = np.asarray(table[name]) + np.int32(by)
        table = table.set_column(table.column_names.index(name), name, pa.array(hosts))
    return table
