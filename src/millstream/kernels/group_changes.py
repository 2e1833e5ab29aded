"""Aggregates over a relation that varies with time: a row for each group, which changes with its content."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit

from millstream.kernels import arrow
from millstream.kernels.aggregates import Aggregate, argument_types, plan
from millstream.kernels.arrays import NO_BYTES, Array, Buffer, Codes, Integers, frozen
from millstream.kernels.base import Tuples
from millstream.kernels.bits import Bits
from millstream.kernels.counts import Count
from millstream.kernels.doubles import DoubleSum
from millstream.kernels.extremes import Extreme
from millstream.kernels.integers import IntegerSum
from millstream.kernels.maintained import ID, ID2, OP, UNTIL, Maintained, mixed
from millstream.kernels.measures import Asked, Measure, Parts, some
from millstream.kernels.moments import Moments
from millstream.kernels.order import OrderStatistics
from millstream.kernels.queued import Queued, queued
from millstream.kernels.results import result
from millstream.kernels.specs import GroupSpec
from millstream.kernels.stays import Slides, Stay
from millstream.kernels.times import MOST

_FOLLOW = (Count, IntegerSum)
"""What can be taken back when a row leaves."""

_GROW = (*_FOLLOW, DoubleSum, Extreme, Moments, Bits)
"""What can be added to, whatever the order."""

_QUEUE = (*_GROW, OrderStatistics)
"""What can follow windows of a log, whatever the order in it."""

_AT_ONCE = 1 << 20
"""So many rows of groups are laid out at a time."""


class GroupChanges(Maintained):
    """The rows of groups (the keys), as they enter and leave; a group without content has none.

    Counts and exact sums follow what enters and leaves. So do other measures that can be added to, where
    nothing ever leaves; and where rows leave in the order in which they came, measures follow as they follow
    windows of OVER. Everything else is computed anew from the content of a group at every instant at which
    that changes.
    """

    def __init__(self, spec: GroupSpec, stay: Stay | None, slides: Sequence[Slides] = ()) -> None:
        self._spec = spec
        self._shown: pa.Table | None = None
        self._follows = _FOLLOW if stay is None or stay.reach is not None else _GROW
        self._planned: tuple[list[Measure], list[Aggregate]] | None = None
        super().__init__((stay,), slides)

    def _start_over(self) -> None:
        self._following = Buffer(np.int32, -1)
        self._preceding = Buffer(np.int32, -1)
        self._heads = Buffer(np.int32, -1)
        self._sizes = Buffer(np.int64, 0)
        self._totals: list[list[Buffer]] = []
        """Of measures that follow what enters and leaves: what they are of each group."""

        self._planned = None

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
        names = [*self._spec.group_by, *(spec.result for spec in self._spec.aggregates)]
        columns = dict(zip(names, shown.columns, strict=True))
        codes = self._codes.view[rows[events]]
        one, two = self._keys.first.view[codes], self._keys.second.view[codes]
        is_null = (codes == self._keys.absent).astype(np.int64)
        columns[OP] = pa.array(signs)
        columns[UNTIL] = pa.array(np.full(len(signs), MOST))
        columns[ID] = pa.array(mixed(one, two))
        columns[ID2] = pa.array(mixed(two, one, is_null))
        out = self._changes(columns, instants[events])
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
        numbers = _numbers(self._shown.select([spec.result for spec in self._spec.aggregates]))
        codes, sizes = evaluated[1], evaluated[2]
        events, places, signs = _differences(
            frozen(codes), frozen(sizes), first, frozen(numbers), self._place.data
        )
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
        if all(isinstance(measure, self._follows) for measure in measures):
            events, codes, sizes, _, _ = _change(*given, lists, 0, False, MOST)
            parts = [some(part, events) for part in self._followed(measures, ops, rows)]
            results = self._results(measures, aggregates, parts, instants[events])
            return (events, codes, sizes), self._beside_groups(results, rows[events])
        in_order = all(isinstance(measure, _QUEUE) for measure in measures)
        queue = queued(*given, lists) if in_order else None
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

    def _followed(self, measures: Sequence[Measure], ops: Array, rows: Array) -> list[Parts]:
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
            parts = measure.of_tuples(tuples)
            if isinstance(measure, _FOLLOW):
                parts = _signed(parts, ops)
            out.append(measure.fold(codes, parts, into, running=True))
        return out

    def _of_queue(self, queue: Queued, instants: Integers) -> list[pa.Array]:
        """Results of groups whose contents are windows of a log; NULLs of those without any."""
        there = np.flatnonzero(queue.starts >= 0)
        there = there[np.argsort(queue.ends[there], kind="stable")]
        asked = Asked(
            queue.groups,
            queue.codes[there],
            queue.starts[there],
            queue.ends[there],
            queue.previous,
            NO_BYTES,
        )
        return self._asked(queue.log, asked, there, len(queue.starts), instants)

    def _asked(
        self, log: Codes, asked: Asked, there: Array, count: int, instants: Integers
    ) -> list[pa.Array]:
        """Results of windows of a log, among so many of which only those ``there`` have content."""
        measures, aggregates = self._plan()
        tuples = self._tuples(log)
        parts = []
        for measure in measures:
            trail = measure.trail(1)
            trail.append(measure.of_tuples(tuples), asked.previous)
            parts.append(trail.ask(0, asked))
        places = np.full(count, -1)
        places[there] = np.arange(len(there))
        indices = pa.array(places, mask=places < 0)
        return [one.take(indices) for one in self._results(measures, aggregates, parts, instants[there])]

    def _of_contents(self, laid: Codes, sizes: Integers, instants: Integers) -> list[pa.Array]:
        """Results of groups whose rows are laid one after the other; NULLs of those without any."""
        there = np.flatnonzero(sizes)
        ends = np.cumsum(sizes)
        starts, lasts = (ends - sizes)[there].astype(np.int32), (ends - 1)[there].astype(np.int32)
        previous = np.arange(-1, len(laid) - 1, dtype=np.int32)
        previous[starts] = -1
        codes = np.arange(len(there), dtype=np.int32)
        asked = Asked(len(there), codes, starts, lasts, previous, NO_BYTES)
        return self._asked(laid, asked, there, len(sizes), instants)

    def _results(
        self,
        measures: Sequence[Measure],
        aggregates: Sequence[Aggregate],
        parts: Sequence[Parts],
        instants: Integers,
    ) -> list[pa.Array]:
        def position(row: int) -> tuple[int | float, ...]:
            return (self._times(instants[row : row + 1])[0].item(), 0, row)

        return [
            result(one, measures[one.measures[0]], [parts[number] for number in one.measures], position)
            for one in aggregates
        ]

    def _beside_groups(self, results: Sequence[pa.Array], rows: Array) -> pa.Table:
        groups = self._taken(self._spec.group_by, rows)
        names = [*self._spec.group_by, *(spec.result for spec in self._spec.aggregates)]
        if not names:
            return pa.table({_NOTHING: pa.nulls(len(rows), pa.bool_())})
        return pa.table(dict(zip(names, [*groups, *results], strict=True)))

    def _plan(self) -> tuple[list[Measure], list[Aggregate]]:
        if self._planned is not None:
            return self._planned
        assert self._columns is not None
        types = argument_types(self._spec.aggregates, self._columns.schema)
        planned = plan(self._spec.aggregates, types, in_order=True)
        if self._follows is _GROW:
            # Some number the values that they have met. Where values leave, that must be forgotten again.
            self._planned = planned
        return planned

    def _tuples(self, rows: Array) -> Tuples:
        assert self._columns is not None
        count = len(rows)
        columns = self._columns.take(pa.array(rows))
        return Tuples(columns, np.zeros(count, np.int64), np.zeros(count, np.int32), np.arange(count))


_NOTHING = "__ms_nothing"


def _signed(parts: Parts, ops: Array) -> Parts:
    """Parts of counts and sums, with the sign of what happens."""
    leaves = ops < 0
    first, *rest = parts
    if not rest:
        return (np.where(leaves, -first, first),)
    # The negative of an integer of 64 bits may need one more.
    low = np.where(leaves, -first, first)
    return low, np.where(leaves, np.where(first > 0, -1, 0), first >> 63)


def _numbers(table: pa.Table) -> Array:
    """A number for each value of each column, such that equal values have equal numbers."""
    columns = [_numbered(arrow.single(column)) for column in table.columns]
    return np.stack(columns, axis=1) if columns else np.zeros((table.num_rows, 0), np.int32)


def _numbered(column: pa.Array) -> Array:
    if pa.types.is_floating(column.type):
        column = pc.add(column, pa.scalar(0.0, column.type))  # there are two zeros
    try:
        codes = pc.dictionary_encode(column, null_encoding="encode").indices
    except pa.ArrowNotImplementedError:
        known: dict[str, int] = {}
        return np.array([known.setdefault(repr(value), len(known)) for value in column.to_pylist()], np.int32)
    numbers: Array = codes.to_numpy(zero_copy_only=False).astype(np.int32)
    return numbers


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
    which group, how large it is, and their rows one after the other; and where to go on.
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
                row = heads[code]
                while row >= 0:
                    if size == len(laid):
                        more = np.empty(2 * size, np.int32)
                        more[:size] = laid
                        laid = more
                    laid[size] = row
                    size += 1
                    row = following[row]
            sizes[code] = -1 - sizes[code]  # it has been seen at this instant
        for event in range(first, i):
            code = codes[rows[event]]
            if sizes[code] < 0:
                sizes[code] = -1 - sizes[code]
    return events[:found], groups[:found], counts[:found], laid[:size], i


@njit(cache=True)
def _differences(
    groups: Codes, sizes: Integers, first: int, numbers: Array, place: Codes
) -> tuple[Codes, Codes, Array]:
    """Rows of groups that leave because there is another one, or none, and rows that enter."""
    room = 2 * len(groups)
    at, places, signs = np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.int8)
    count = 0
    for i in range(len(groups)):
        group = groups[i]
        old, new = place[group], first + i
        if old >= 0 and sizes[i] > 0:
            same = True
            for column in range(numbers.shape[1]):
                same &= numbers[old, column] == numbers[new, column]
            if same:
                continue
        if old >= 0:
            at[count], places[count], signs[count] = i, old, -1
            count += 1
        place[group] = -1
        if sizes[i] > 0:
            at[count], places[count], signs[count] = i, new, 1
            count += 1
            place[group] = new
    return at[:count], places[:count], signs[:count]
