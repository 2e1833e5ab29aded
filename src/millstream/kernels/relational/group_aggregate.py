"""Aggregates over a time-varying relation: one row for each group, which changes with its content."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.jit import njit
from millstream.kernels.aggregates.accumulator import Accumulator, Parts, WindowBatch, some
from millstream.kernels.aggregates.accumulator_selection import Aggregate, argument_types, plan
from millstream.kernels.aggregates.count import Count
from millstream.kernels.aggregates.double_sum import DoubleSum
from millstream.kernels.aggregates.integer_sum import IntegerSum
from millstream.kernels.aggregates.min_max_bitwise import MinMaxBitwise
from millstream.kernels.aggregates.moments import Moments
from millstream.kernels.aggregates.percentiles import OrderStatistics
from millstream.kernels.core.buffers import NO_BYTES, Array, Buffer, Codes, Integers, frozen
from millstream.kernels.core.kernel import Tuples
from millstream.kernels.core.sort_keys import sort_key
from millstream.kernels.core.time_order import MOST
from millstream.kernels.relational.fifo_groups import FifoGroups, fifo_groups
from millstream.kernels.relational.group_rows import as_changes, differences, group_rows, results_of
from millstream.kernels.relational.incremental_relation import IncrementalRelation
from millstream.kernels.relational.lifetimes import Lifetime, SlideInstants
from millstream.kernels.relational.linked_rows import LinkedRows, Links, append_row, remove_row
from millstream.kernels.specs import GroupSpec

_FOLLOW = (Count, IntegerSum)
"""Accumulators from which a row can be subtracted."""

_QUEUE = (*_FOLLOW, DoubleSum, MinMaxBitwise, Moments, OrderStatistics)
"""Accumulators that follow windows of a log in any order."""

_AT_ONCE = 1 << 20
"""The number of rows of groups that are laid out at a time."""


class GroupAggregate(IncrementalRelation):
    """The rows of groups (the keys), as they enter and leave; a group without content has none.

    Counts and exact sums add rows that enter and subtract rows that leave. Where rows leave in order of
    arrival, accumulators work as for OVER windows. Everything else is computed from the content of a group at
    every instant at which it changes. Where rows have no order, an aggregate that depends on one takes them
    in the order of its arguments. (For append-only relations see ``append_only_groups.py``.)
    """

    def __init__(
        self, spec: GroupSpec, lifetime: Lifetime | None, slides: Sequence[SlideInstants] = ()
    ) -> None:
        self._spec = spec
        self._shown: pa.Table | None = None
        super().__init__((lifetime,), slides)

    def _start_over(self) -> None:
        self._contents = LinkedRows()
        self._sizes = Buffer(np.int64, 0)
        self._totals: list[list[Buffer]] = []
        """Accumulators of each group, for counts and exact sums."""

        self._place = Buffer(np.int32, -1)
        """The place of the row of each group in ``shown``."""

        self._shown = None

    # ------------------------------------------------------------ changes

    def _resume(self, rows: Array) -> None:
        count = len(rows)
        self._show(np.zeros(count, np.int64), np.ones(count, np.int8), rows)

    def _apply(self, instants: Integers, ops: Array, rows: Array) -> Tuples:
        events, places, signs = self._show(instants, ops, rows)
        assert self._shown is not None
        shown = self._shown.take(pa.array(places))
        codes = self._codes.view[rows[events]]
        columns, positions = as_changes(self._spec, shown, self._keys, codes, signs, events)
        out = self._changes(columns, instants[events[positions]])
        self._tidy()
        return out

    def _show(self, instants: Integers, ops: Array, rows: Array) -> tuple[Codes, Codes, Array]:
        """Return the rows of groups that enter and leave: the event, the place in ``shown``, and 1 or -1."""
        self._place.resize(len(self._keys))
        evaluated, evaluations = self._evaluate(instants, ops, rows)
        old = self._shown
        first = 0 if old is None else old.num_rows
        self._shown = evaluations if old is None else pa.concat_tables([old, evaluations])
        codes, sizes = evaluated[1], evaluated[2]
        events, places, signs = differences(self._spec, self._shown, first, codes, sizes, self._place.data)
        return evaluated[0][events], places, signs

    def _tidy(self) -> None:
        """Drop the rows that have left the result."""
        assert self._shown is not None
        groups = np.flatnonzero(self._place.view >= 0)
        self._shown = self._shown.take(pa.array(self._place.view[groups])).combine_chunks()
        self._place.view[groups] = np.arange(len(groups))

    # ------------------------------------------------------------ aggregates

    def _evaluate(self, instants: Integers, ops: Array, rows: Array) -> tuple[tuple[Array, ...], pa.Table]:
        """Return the changed groups of each instant (event, group, size), and their rows.

        The row of an empty group has no meaning.
        """
        measures, aggregates = self._plan()
        given = frozen(instants), frozen(ops), frozen(rows), self._codes.view
        count = len(self._keys)
        groups = self._contents.links(len(self._enter), count), self._sizes.resize(count)
        if all(isinstance(measure, _FOLLOW) for measure in measures):
            events, codes, sizes, _, _ = _change(*given, *groups, 0, False, MOST)
            parts = [some(part, events) for part in self._followed(measures, ops, rows)]
            results = results_of(measures, aggregates, parts, self._times(instants[events]))
            return (events, codes, sizes), self._beside_groups(results, rows[events])
        in_order = all(isinstance(measure, _QUEUE) for measure in measures)
        queue = fifo_groups(*given, *groups) if in_order else None
        if queue is not None:
            events, codes, sizes, _, _ = _change(*given, *groups, 0, False, MOST)
            results = self._results_of_log(queue, instants[events])
            return (events, codes, sizes), self._beside_groups(results, rows[events])
        done, found, tables = 0, [], []
        while True:
            events, codes, sizes, laid, done = _change(*given, *groups, done, True, _AT_ONCE)
            found.append((events, codes, sizes))
            results = self._of_contents(laid, sizes, instants[events])
            tables.append(self._beside_groups(results, rows[events]))
            if done == len(rows):
                break
        together = tuple(np.concatenate(part) for part in zip(*found, strict=True))
        return together, pa.concat_tables(tables)

    def _followed(self, measures: Sequence[Accumulator], ops: Array, rows: Array) -> list[Parts]:
        """Return the accumulators after each event."""
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

    def _results_of_log(self, queue: FifoGroups, instants: Integers) -> list[pa.Array]:
        """Return the results of groups whose contents are windows of a log; NULLs for empty groups."""
        there = np.flatnonzero(queue.starts >= 0)
        there = there[np.argsort(queue.ends[there], kind="stable")]
        batch = WindowBatch(
            queue.groups,
            queue.codes[there],
            queue.starts[there],
            queue.ends[there],
            queue.previous,
            NO_BYTES,
        )
        return self._results_of_windows(queue.log, batch, there, len(queue.starts), instants)

    def _results_of_windows(
        self, log: Codes, batch: WindowBatch, there: Array, count: int, instants: Integers
    ) -> list[pa.Array]:
        """Return ``count`` results, of windows of a log at the places ``there`` and NULLs elsewhere."""
        measures, aggregates = self._plan()
        parts = []
        for number, measure in enumerate(measures):
            rows = log
            if self._spec.arranged and not isinstance(measure, _QUEUE):
                names = [name for one in aggregates if number in one.measures for name in one.spec.arguments]
                rows = self._arranged(log, batch, names)
            trail = measure.trail(1)
            trail.append(measure.of_tuples(self._tuples(rows)), batch.previous)
            parts.append(trail.ask(0, batch))
        places = np.full(count, -1)
        places[there] = np.arange(len(there))
        indices = pa.array(places, mask=places < 0)
        return [
            one.take(indices) for one in results_of(measures, aggregates, parts, self._times(instants[there]))
        ]

    def _of_contents(self, laid: Codes, sizes: Integers, instants: Integers) -> list[pa.Array]:
        """Return the results of groups whose rows are laid out in sequence; NULLs for empty groups."""
        there = np.flatnonzero(sizes)
        ends = np.cumsum(sizes)
        starts, lasts = (ends - sizes)[there].astype(np.int32), (ends - 1)[there].astype(np.int32)
        previous = np.arange(-1, len(laid) - 1, dtype=np.int32)
        previous[starts] = -1
        codes = np.arange(len(there), dtype=np.int32)
        batch = WindowBatch(len(there), codes, starts, lasts, previous, NO_BYTES)
        return self._results_of_windows(laid, batch, there, len(sizes), instants)

    def _arranged(self, log: Codes, batch: WindowBatch, names: Sequence[str]) -> Codes:
        """Sort the rows of each window of a log by columns; windows follow one another."""
        sizes = batch.ends - batch.starts + 1
        keys = {
            f"{i}": sort_key(column) for i, column in enumerate(self._taken(list(dict.fromkeys(names)), log))
        }
        table = pa.table({"window": np.repeat(np.arange(len(sizes)), sizes), **keys})
        order = [(name, "ascending", "at_start") for name in table.column_names]
        rows: Codes = log[pc.sort_indices(table, sort_keys=order).to_numpy()]
        return rows

    def _beside_groups(self, results: Sequence[pa.Array], rows: Array) -> pa.Table:
        return group_rows(self._spec, len(rows), self._taken(self._spec.group_by, rows), results)

    def _plan(self) -> tuple[list[Accumulator], list[Aggregate]]:
        """Create new accumulators: some of them number all values, including those of rows that have left."""
        assert self._columns is not None
        types = argument_types(self._spec.aggregates, self._columns.schema)
        return plan(self._spec.aggregates, types, in_order=True)

    def _tuples(self, rows: Array) -> Tuples:
        assert self._columns is not None
        count = len(rows)
        columns = self._columns.take(pa.array(rows))
        return Tuples(columns, np.zeros(count, np.int64), np.zeros(count, np.int32), np.arange(count))


def _signed(parts: Parts, ops: Array) -> Parts:
    """Return parts of counts and sums, negative for rows that leave."""
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
    links: Links,
    sizes: Integers,
    start: int,
    lays: bool,
    most: int,
) -> tuple[Array, Array, Integers, Array, int]:
    """Apply events from ``start`` on, until ``most`` rows are laid out.

    Returns the changed groups of each instant: the last event of the group at that instant, its code, its
    size, and its rows in order of entry; and the next event.
    """
    _, preceding, _, tails = links
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
                append_row(row, code, links)
                sizes[code] += 1
            else:
                remove_row(row, code, links)
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
                row = tails[code]
                for place in range(end - 1, size - 1, -1):
                    laid[place] = row
                    row = preceding[row]
                size = end
            sizes[code] = -1 - sizes[code]  # it has been seen at this instant
        for event in range(first, i):
            code = codes[rows[event]]
            if sizes[code] < 0:
                sizes[code] = -1 - sizes[code]
    return events[:found], groups[:found], counts[:found], laid[:size], i
