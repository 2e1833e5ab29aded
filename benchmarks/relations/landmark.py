"""Figures 12 and 13: cost and state of operators over landmark windows, as the window grows."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from benchmarks.experiments.lines import Panel, draw
from benchmarks.experiments.section import Claim, Figures, Section, Size
from benchmarks.relations.operators import IN_TIME, landmark
from benchmarks.relations.traces import SESSIONS, first_sessions
from benchmarks.relations.waves import CYCLES, rate_of, sides_of, waves

ROWS, REPEATS = SESSIONS, 1
SNAPSHOTS = 6
ABOUT = f"""\
The same queries over windows that begin with the stream and let nothing go; a timestamp at a time, {CYCLES}
of them (half as many for the join, of two halves of the trace). Times are cumulated. Bytes are those of the
operator's kernel between two batches, pickled. The paper's operators keep their results: a join its pairs,
of which the last column has the bytes. Millstream's join gives pairs away, and keeps the tuples of the two
windows. Aggregates are computed in two ways: all groups at every timestamp, and as changes (ISTREAM); the
latter keeps tuples, as it does over windows that let them go."""


@dataclass(frozen=True)
class Snapshot:
    """The operator after so many tuples, of all its windows: seconds so far, rows and bytes."""

    tuples: int
    seconds: float
    rows: int
    bytes: int
    results: int
    result_bytes: int


def measure(size: Size, directory: Path) -> Section:
    rate = rate_of(size.rows)
    trace = first_sessions(rate * CYCLES)
    found = {}
    for name in IN_TIME:
        _grow(name, first_sessions(40), 5)  # compile before the measurement
        found[name] = _grow(name, trace, rate)
    table = [["", "tuples", "seconds", "rows of state", "bytes of state", "results", "bytes of results"]]
    for name, snapshots in found.items():
        for one in (snapshots[0], snapshots[-1]):
            numbers = (one.rows, one.bytes, one.results, one.result_bytes)
            table.append([name, f"{one.tuples:,}", f"{one.seconds:.3f}", *(f"{n:,}" for n in numbers)])
    panels = [
        Panel("figure 12: cumulated time", "tuples of the window", "s", _curves(found, "seconds")),
        Panel("figure 13: memory", "tuples of the window", "bytes", _curves(found, "bytes"), log_y=True),
    ]
    title = "Landmark windows: cumulated cost, and memory of operators"
    picture = draw(panels, directory / "landmark.png")
    return Section(title, ABOUT, _claims(found), [Figures("Figures 12 and 13", table)], [picture])


def _grow(name: str, trace: pa.Table, rate: int) -> list[Snapshot]:
    operator = IN_TIME[name](landmark())
    sides = sides_of(operator, trace)
    batches = list(waves(sides, rate, 1))
    snapshots: list[Snapshot] = []
    for done, batch in enumerate(batches, 1):
        operator.feed(*batch)
        if done * SNAPSHOTS // len(batches) > len(snapshots):
            kernels, clock = operator.kernels, operator.clock
            snapshots.append(
                Snapshot(
                    done * rate * len(sides),
                    clock.operator,
                    sum(kernel.rows for kernel in kernels),
                    sum(len(pickle.dumps(kernel)) for kernel in kernels),
                    clock.results,
                    clock.result_bytes,
                )
            )
    return snapshots


def _curves(found: dict[str, list[Snapshot]], what: str) -> dict[str, list[tuple[float, float]]]:
    return {name: [(one.tuples, getattr(one, what)) for one in ones] for name, ones in found.items()}


def _claims(found: dict[str, list[Snapshot]]) -> list[Claim]:
    last = {name: snapshots[-1] for name, snapshots in found.items()}
    each = {name: one.seconds / one.tuples * 1e9 for name, one in last.items()}
    grown = {name: _later(found[name]) for name in found}
    kept = {name: one.bytes + (one.result_bytes if name == "join" else 0) for name, one in last.items()}
    cheap = [name for name in each if name != "join"]
    return [
        Claim(
            "figure 12: DISTINCT and aggregates cost next to nothing beside the join",
            ", ".join(f"{name} {ns:,.0f}" for name, ns in each.items()) + " ns a tuple",
            all(each[name] < each["join"] for name in cheap),
        ),
        Claim(
            "figure 12: the join gets more and more expensive, the others do not",
            "a tuple of the last part costs, beside one of the first: "
            + ", ".join(f"{name} {times:.1f}" for name, times in grown.items())
            + " times",
            grown["join"] > max(grown[name] for name in cheap),
        ),
        Claim(
            "figure 13: the join with its result needs most, and what is kept of aggregates is negligible",
            ", ".join(f"{name} {size / 1e6:,.1f}" for name, size in kept.items()) + " MB",
            max(kept, key=lambda name: kept[name]) == "join"
            and 20 * max(kept["sum"], kept["max"]) < kept["join"],
        ),
        Claim(
            "figure 13: DISTINCT keeps distinct values and no duplicates",
            f"{last['distinct'].rows:,} rows for {last['distinct'].results:,} distinct values",
            last["distinct"].rows <= last["distinct"].results,
        ),
    ]


def _later(snapshots: list[Snapshot]) -> float:
    """Return the ratio of the cost of a tuple between the last two snapshots to that before the first."""
    (before, last), first = snapshots[-2:], snapshots[0]
    late = (last.seconds - before.seconds) / (last.tuples - before.tuples)
    return late / (first.seconds / first.tuples)
