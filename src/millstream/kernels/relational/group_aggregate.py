"""Aggregates over a relation that varies with time: a row for each group, which changes with its content."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from millstream.jit import njit
from millstream.kernels.aggregates.accumulator import Accumulator, Parts, WindowBatch, some
from millstream.kernels.aggregates.accumulator_selection import Aggregate, argument_types, plan
from millstream.kernels.aggregates.bitwise import Bits
from millstream.kernels.aggregates.count import Count
from millstream.kernels.aggregates.double_sum import DoubleSum
from millstream.kernels.aggregates.integer_sum import IntegerSum
from millstream.kernels.aggregates.min_max import Extreme
from millstream.kernels.aggregates.moments import Moments
from millstream.kernels.aggregates.percentiles import OrderStatistics
from millstream.kernels.core.buffers import NO_BYTES, Array, Buffer, Codes, Integers, frozen
from millstream.kernels.core.kernel import Tuples
from millstream.kernels.core.time_order import MOST
from millstream.kernels.relational.fifo_groups import FifoGroups, fifo_groups
from millstream.kernels.relational.group_rows import as_changes, differences, group_rows, results_of
from millstream.kernels.relational.incremental_relation import IncrementalRelation
from millstream.kernels.relational.lifetimes import Lifetime, SlideInstants
from millstream.kernels.specs import GroupSpec

_FOLLOW = (Count, IntegerSum)
"""What can be taken back when a row leaves."""

_QUEUE = (*_FOLLOW, DoubleSum, Extreme, Moments, Bits, OrderStatistics)
"""What can follow windows of a log, whatever the order in it."""

_AT_ONCE = 1 << 20
"""So many rows of groups are laid out at a time."""


class GroupAggregate(IncrementalRelation):
    """The rows of groups (the keys), as they enter and leave; a group without content has none.

    Counts and exact sums follow what enters and leaves. Where rows leave in the order in which they came,
    measures follow as they follow windows of OVER. Everything else is computed anew from the content of a
    group at every instant at which that changes. (Where nothing ever leaves, see ``append_only_groups.py``.)
    """

    def __init__(
        self, spec: GroupSpec, lifetime: Lifetime | None, slides: Sequence[SlideInstants] = ()
    ) -> None:
        self._spec = spec
        self._shown: pa.Table | None = None
        super().__init__((lifetime,), slides)

    def _start_over(self) -> None:
        self._following = Buffer(np.int32, -1)
        self._preceding = Buffer(np.int32, -1)
        self._heads = Buffer(np.int32, -1)
        self._sizes = Buffer(np.int64, 0)
        self._totals: list[list[Buffer]] = []
        """Of measures that follow what enters and leaves: what they are of each group."""

        self._place = Buffer(np.int32, -1)
        """Where the row of each group is in ``shown``."""

        self._shown = None

    # ------------------------------------------------------------ what is done with rows

    def _resume(self, rows: Array) -> None:
        count = len(rows)
        self._show(np.zeros(count, np.int64), np.ones(count, np.int8), rows)

    def _apply(self, instants: Integers, ops: Array, rows: Array) -> Tuples:
        events, places, signs = self._show(instants, ops, rows)
        assert self._shown is not None
        shown = self._shown.take(pa.array(places))
        codes = self._codes.view[rows[events]]
        columns, told = as_changes(self._spec, shown, self._keys, codes, signs, events)
        out = self._changes(columns, instants[events[told]])
        self._tidy()
        return out

    def _show(self, instants: Integers, ops: Array, rows: Array) -> tuple[Codes, Codes, Array]:
        """Rows of groups that enter and leave: by which event, where in ``shown``, and 1 or -1."""
        for per_key in (self._heads, self._sizes, self._place):
            per_key.resize(len(self._keys))
        for per_row in (self._following, self._preceding):
            per_row.resize(len(self._enter))
        evaluated, evaluations = self._evaluate(instants, ops, rows)
        old = self._shown
        first = 0 if old is None else old.num_rows
        self._shown = evaluations if old is None else pa.concat_tables([old, evaluations])
        codes, sizes = evaluated[1], evaluated[2]
        events, places, signs = differences(self._spec, self._shown, first, codes, sizes, self._place.data)
        return evaluated[0][events], places, signs

    def _tidy(self) -> None:
        """Only the rows that are shown are kept."""
        assert self._shown is not None
        groups = np.flatnonzero(self._place.view >= 0)
        self._shown = self._shown.take(pa.array(self._place.view[groups])).combine_chunks()
        self._place.view[groups] = np.arange(len(groups))

    # ------------------------------------------------------------ aggregates

    def _evaluate(self, instants: Integers, ops: Array, rows: Array) -> tuple[tuple[Array, ...], pa.Table]:
        """Groups when they have changed, an instant after the other: by which event, which, how large.

        And their rows; that of a group without content means nothing.
        """
        measures, aggregates = self._plan()
        given = frozen(instants), frozen(ops), frozen(rows), self._codes.view
        lists = self._following.data, self._preceding.data, self._heads.data, self._sizes.data
        if all(isinstance(measure, _FOLLOW) for measure in measures):
            events, codes, sizes, _, _ = _change(*given, lists, 0, False, MOST)
            parts = [some(part, events) for part in self._followed(measures, ops, rows)]
            results = results_of(measures, aggregates, parts, self._times(instants[events]))
            return (events, codes, sizes), self._beside_groups(results, rows[events])
        in_order = all(isinstance(measure, _QUEUE) for measure in measures)
        queue = fifo_groups(*given, lists) if in_order else None
        if queue is not None:
            events, codes, sizes, _, _ = _change(*given, lists, 0, False, MOST)
            results = self._of_queue(queue, instants[events])
            return (events, codes, sizes), self._beside_groups(results, rows[events])
        done, found, tables = 0, [], []
        while True:
            events, codes, sizes, laid, done = _change(*given, lists, done, True, _AT_ONCE)
            found.append((events, codes, sizes))
            results = self._of_contents(laid, sizes, instants[events])
            tables.append(self._beside_groups(results, rows[events]))
            if done == len(rows):
                break
        together = tuple(np.concatenate(part) for part in zip(*found, strict=True))
        return together, pa.concat_tables(tables)

    def _followed(self, measures: Sequence[Accumulator], ops: Array, rows: Array) -> list[Parts]:
        """What measures are after each event."""
        if not self._totals:
            self._totals = [[Buffer(dtype, 0) for dtype in m.parts.values()] for m in measures]
        tuples = self._tuples(rows)
        codes = self._codes.view[rows]
        out = []
        for measure, kept in zip(measures, self._totals, strict=True):
            for buffer in kept:
                buffer.resize(len(self._keys))
            into = tuple(buffer.view for buffer in kept)
            parts = _signed(measure.of_tuples(tuples), ops)
            out.append(measure.fold(codes, parts, into, running=True))
        return out

    def _of_queue(self, queue: FifoGroups, instants: Integers) -> list[pa.Array]:
        """Results of groups whose contents are windows of a log; NULLs of those without any."""
        there = np.flatnonzero(queue.starts >= 0)
        there = there[np.argsort(queue.ends[there], kind="stable")]
        asked = WindowBatch(
            queue.groups,
            queue.codes[there],
            queue.starts[there],
            queue.ends[there],
            queue.previous,
            NO_BYTES,
        )
        return self._asked(queue.log, asked, there, len(queue.starts), instants)

    def _asked(
        self, log: Codes, batch: WindowBatch, there: Array, count: int, instants: Integers
    ) -> list[pa.Array]:
        """Results of windows of a log, among so many of which only those ``there`` have content."""
        measures, aggregates = self._plan()
        tuples = self._tuples(log)
        parts = []
        for measure in measures:
            trail = measure.trail(1)
            trail.append(measure.of_tuples(tuples), batch.previous)
            parts.append(trail.ask(0, batch))
        places = np.full(count, -1)
        places[there] = np.arange(len(there))
        indices = pa.array(places, mask=places < 0)
        return [
            one.take(indices) for one in results_of(measures, aggregates, parts, self._times(instants[there]))
        ]

    def _of_contents(self, laid: Codes, sizes: Integers, instants: Integers) -> list[pa.Array]:
        """Results of groups whose rows are laid one after the other; NULLs of those without any."""
        there = np.flatnonzero(sizes)
        ends = np.cumsum(sizes)
        starts, lasts = (ends - sizes)[there].astype(np.int32), (ends - 1)[there].astype(np.int32)
        previous = np.arange(-1, len(laid) - 1, dtype=np.int32)
        previous[starts] = -1
        codes = np.arange(len(there), dtype=np.int32)
        asked = WindowBatch(len(there), codes, starts, lasts, previous, NO_BYTES)
        return self._asked(laid, asked, there, len(sizes), instants)

    def _beside_groups(self, results: Sequence[pa.Array], rows: Array) -> pa.Table:
        return group_rows(self._spec, len(rows), self._taken(self._spec.group_by, rows), results)

    def _plan(self) -> tuple[list[Accumulator], list[Aggregate]]:
        """Anew every time: some number the values that they have met, also of those that have left."""
        assert self._columns is not None
        types = argument_types(self._spec.aggregates, self._columns.schema)
        return plan(self._spec.aggregates, types, in_order=True)

    def _tuples(self, rows: Array) -> Tuples:
        assert self._columns is not None
        count = len(rows)
        columns = self._columns.take(pa.array(rows))
        return Tuples(columns, np.zeros(count, np.int64), np.zeros(count, np.int32), np.arange(count))


def _signed(parts: Parts, ops: Array) -> Parts:
    """Parts of counts and sums, with the sign of what happens."""
    leaves = ops < 0
    first, *rest = parts
    if not rest:
        return (np.where(leaves, -first, first),)
    # The negative of an integer of 64 bits may need one more.
    low = np.where(leaves, -first, first)
    return low, np.where(leaves, np.where(first > 0, -1, 0), first >> 63)


@njit(cache=True)
def _change(
    instants: Integers,
    ops: Array,
    rows: Array,
    codes: Codes,
    lists: tuple[Codes, Codes, Codes, Integers],
    start: int,
    lays: bool,
    most: int,
) -> tuple[Array, Array, Integers, Array, int]:
    """Takes events from ``start`` on, until enough is laid out.

    Gives the groups that have changed at each instant: by which event (the last one of it at that instant),
    which group, how large it is, and their rows in the order in which they entered; and where to go on.
    """
    following, preceding, heads, sizes = lists
    room = len(rows) - start
    events, groups, counts = np.empty(room, np.int64), np.empty(room, np.int32), np.empty(room, np.int64)
    laid = np.empty(max(16, room), np.int32)
    found, size = 0, 0
    i = start
    while i < len(rows) and size <= most:
        first, now = i, instants[i]
        while i < len(rows) and instants[i] == now:
            row = rows[i]
            code = codes[row]
            if ops[i] > 0:
                following[row] = heads[code]
                preceding[row] = -1
                if heads[code] >= 0:
                    preceding[heads[code]] = row
                heads[code] = row
                sizes[code] += 1
            else:
                before, after = preceding[row], following[row]
                if before < 0:
                    heads[code] = after
                else:
                    following[before] = after
                if after >= 0:
                    preceding[after] = before
                sizes[code] -= 1
            i += 1
        for event in range(i - 1, first - 1, -1):
            code = codes[rows[event]]
            if sizes[code] < 0:
                continue
            events[found], groups[found], counts[found] = event, code, sizes[code]
            found += 1
            if lays:
                end = size + sizes[code]
                if end > len(laid):
                    more = np.empty(2 * end, np.int32)
                    more[:size] = laid[:size]
                    laid = more
                row = heads[code]
                for place in range(end - 1, size - 1, -1):  # the newest is the head
                    laid[place] = row
                    row = following[row]
                size = end
            sizes[code] = -1 - sizes[code]  # it has been seen at this instant
        for event in range(first, i):
            code = codes[rows[event]]
            if sizes[code] < 0:
                sizes[code] = -1 - sizes[code]
    return events[:found], groups[:found], counts[:found], laid[:size], i
