"""The queries of the paper as chains of kernels, as a query has them on Spark, without Spark around them.

    Q4: SELECT DISTINCT protocol, local_host, remote_host FROM NetTrace [window]
    Q5: SELECT local_host, sum(duration) FROM NetTrace [window] GROUP BY local_host; and max(duration)
    Q6: SELECT * FROM TraceA [window] AS a JOIN TraceB [window] AS b ON a.local_host = b.remote_host

The paper leaves out what it costs to maintain windows, which operators have in common. So what comes before
an operator (tuples in order and, of windows of rows, who leaves) has a clock of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.relations.traces import PROTOCOLS, SCHEMA, Integers
from millstream.kernels.column_names import KEY, SIDE
from millstream.kernels.core.kernel import Change, Frontier, Kernel, Tuples
from millstream.kernels.core.reorder import Reorder
from millstream.kernels.relational.append_only_groups import AppendOnlyGroups
from millstream.kernels.relational.append_only_join import AppendOnlyJoin
from millstream.kernels.relational.changelog import RowChangelog
from millstream.kernels.relational.distinct_and_set_operations import SetOperation
from millstream.kernels.relational.group_aggregate import GroupAggregate
from millstream.kernels.relational.inner_join import InnerJoin
from millstream.kernels.relational.lifetimes import Lifetime, RowLifetime, SlideInstants
from millstream.kernels.specs import (
    AggregateSpec,
    AppendOnlyJoinSpec,
    GroupSpec,
    InnerJoinSpec,
    SetOperationSpec,
    WindowSpec,
)
from millstream.kernels.window_specs import LandmarkWindows, SlidingWindows
from millstream.kernels.windows.window_aggregate import WindowAggregate

HOSTS = ("protocol", "local_host", "remote_host")
AGGREGATES = {
    name: AggregateSpec(name, "duration", "result", pa.int64())  # type: ignore[arg-type]
    for name in ("sum", "max")
}


@dataclass(frozen=True)
class Window:
    """A window of time, or one of rows, of the whole stream or of each protocol."""

    stay: Lifetime | None = None
    rows: RowLifetime | None = None
    per_protocol: bool = False
    columns: tuple[str, ...] = tuple(SCHEMA.names)

    @property
    def slides(self) -> tuple[SlideInstants, ...]:
        return (self.stay.slides,) if self.stay is not None and self.stay.slides is not None else ()

    def front(self) -> list[Kernel]:
        """Return the kernels before an operator."""
        if self.rows is None:
            return [Reorder()]
        return [Reorder(), RowChangelog(self.rows, self.columns)]


def sliding(size: int, slide: int) -> Window:
    return Window(Lifetime(size, SlideInstants(slide)))


def landmark() -> Window:
    return Window(Lifetime(None))


def rows(count: int, *, per_protocol: bool = False) -> Window:
    return Window(None, RowLifetime(count), per_protocol)


@dataclass
class Clock:
    """Seconds of windows and of the operator, and the rows that it has given."""

    window: float = 0.0
    operator: float = 0.0
    results: int = 0
    result_bytes: int = 0
    watch: Callable[[Kernel, Change], None] = lambda kernel, change: None
    """Receives the changed state of a kernel."""

    def run(self, kernels: Sequence[Kernel], tuples: Tuples, frontier: Frontier, which: str) -> Tuples:
        """Process a batch as a stage does, including the snapshot of changed state."""
        begun = time.perf_counter()
        for kernel in kernels:
            tuples = kernel.process(tuples, frontier)
            frontier = kernel.passes(frontier)
        changes = [kernel.snapshot() for kernel in kernels]
        setattr(self, which, getattr(self, which) + time.perf_counter() - begun)
        for kernel, change in zip(kernels, changes, strict=True):
            self.watch(kernel, change)
        return tuples


@dataclass
class Operator:
    """Processes batches of one or two traces, and measures the time."""

    window: Window
    kernels: list[Kernel]
    keys: tuple[Callable[[pa.Table], Integers], ...]
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self._fronts = [self.window.front() for _ in self.keys]
        self._numbers = [0 for _ in self.keys]
        self._merge: list[Kernel] = [Reorder()] if len(self.keys) > 1 else []

    @property
    def sides(self) -> int:
        return len(self.keys)

    @property
    def everything(self) -> list[Kernel]:
        """The kernels of the operator and of its windows."""
        return [*(kernel for front in self._fronts for kernel in front), *self._merge, *self.kernels]

    def feed(self, parts: Sequence[tuple[pa.Table, Integers]], until: int) -> Tuples:
        """A batch of each trace, with the times of its tuples: all of those before ``until`` are there."""
        frontier = Frontier(until, -1)
        found = [self._before(side, *part, frontier) for side, part in enumerate(parts)]
        tuples = found[0] if len(found) == 1 else _together(found)
        tuples = self.clock.run(self._merge, tuples, frontier, "window")
        out = self.clock.run(self.kernels, tuples, frontier, "operator")
        self.clock.results += len(out)
        self.clock.result_bytes += out.columns.nbytes
        return out

    def _before(self, side: int, table: pa.Table, times: Integers, frontier: Frontier) -> Tuples:
        count, first = len(times), self._numbers[side]
        self._numbers[side] += count
        if self.window.per_protocol:
            table = table.append_column(KEY, pa.array(protocols(table)))
        given = Tuples(table, times, np.full(count, side, np.int32), np.arange(first, first + count))
        taken = self.clock.run(self._fronts[side], given, frontier, "window")
        columns = taken.columns.append_column(KEY, pa.array(self.keys[side](taken.columns)))
        if self.sides > 1:
            columns = columns.append_column(SIDE, pa.array(np.full(len(taken), side, np.int8)))
        origin = np.full(len(taken), side, np.int32)
        return Tuples(columns, taken.time, origin, taken.number)


def _together(sides: Sequence[Tuples]) -> Tuples:
    tables = [side.columns for side in sides]
    parts = (np.concatenate([getattr(side, name) for side in sides]) for name in ("time", "origin", "number"))
    return Tuples(pa.concat_tables(tables), *parts)


# ------------------------------------------------------------ the queries


def protocols(table: pa.Table) -> Integers:
    found = pc.index_in(table["protocol"], value_set=pa.array(list(PROTOCOLS)))
    return found.to_numpy().astype(np.int64)


def _conversation(table: pa.Table) -> Integers:
    """One number for protocol and hosts, which has room for all of them."""
    local, remote = _host("local_host")(table), _host("remote_host")(table)
    return (protocols(table) << 48) | (local << 24) | remote


def _host(name: str) -> Callable[[pa.Table], Integers]:
    return lambda table: table[name].to_numpy().astype(np.int64)


def distinct(window: Window) -> Operator:
    kernel = SetOperation(SetOperationSpec("UNION", False, HOSTS), (window.stay,), window.slides)
    return Operator(window, [kernel], (_conversation,))


def aggregate(function: str, window: Window) -> Operator:
    """Return an aggregate as changes: a row for each group that has changed (SELECT ISTREAM)."""
    lasts = window.stay is not None and window.stay.reach is None
    kind = AppendOnlyGroups if lasts else GroupAggregate
    kernel = kind(GroupSpec(("local_host",), (AGGREGATES[function],)), window.stay, window.slides)
    return Operator(window, [kernel], (_host("local_host"),))


def whole(function: str, window: Window) -> Operator:
    """Return all groups at every slide, the default of a query with SLIDE."""
    assert window.stay is not None
    slide = window.stay.slides.step if window.stay.slides else 1
    reach = window.stay.reach
    placing = LandmarkWindows(start=0, slide=slide) if reach is None else SlidingWindows(reach, slide)
    kernel = WindowAggregate(WindowSpec(placing, pa.int64(), ("local_host",), (AGGREGATES[function],)))
    return Operator(window, [kernel], (_host("local_host"),))


def join(window: Window) -> Operator:
    """Pairs; of windows of time that do not slide, without a word when they leave."""
    stay = window.stay
    results = {f"a_{name}": name for name in window.columns}, {f"b_{name}": name for name in window.columns}
    keys = _host("local_host"), _host("remote_host")
    if stay is not None and not window.slides:
        return Operator(window, [AppendOnlyJoin(AppendOnlyJoinSpec((stay.reach, stay.reach), results))], keys)
    pairs = InnerJoin(InnerJoinSpec((stay, stay), results, window.slides, signed=stay is None))
    return Operator(window, [pairs], keys)


Make = Callable[[Window], Operator]

MAINTAINED: dict[str, Make] = {
    "distinct": distinct,
    "sum": lambda window: aggregate("sum", window),
    "max": lambda window: aggregate("max", window),
    "join": join,
}
"""What is maintained as changes, over every kind of window."""

IN_TIME: dict[str, Make] = {
    "distinct": distinct,
    "sum": lambda window: whole("sum", window),
    "max": lambda window: whole("max", window),
    "sum, ISTREAM": MAINTAINED["sum"],
    "max, ISTREAM": MAINTAINED["max"],
    "join": join,
}
"""Over windows of time, aggregates also without ISTREAM: all groups whenever the window slides."""
