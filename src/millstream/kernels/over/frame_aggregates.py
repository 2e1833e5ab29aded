"""Aggregates over frames of ROWS or RANGE: the last tuples of a key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.kernels.aggregates.accumulator import Accumulator, AccumulatorLog, Parts, WindowBatch
from millstream.kernels.aggregates.accumulator_selection import (
    Aggregate,
    argument_types,
    arguments_of,
    plan,
    with_arguments,
)
from millstream.kernels.core import arrow_buffers
from millstream.kernels.core.buffers import NO_BYTES, Array, Codes, Integers
from millstream.kernels.core.kernel import BEGINNING, Change, Frontier, Tuples
from millstream.kernels.core.key_table import KeyTable
from millstream.kernels.core.state_chunks import Ledger, is_wasteful
from millstream.kernels.core.time_order import as_order, earlier, from_order, order_of
from millstream.kernels.core.tuple_batch import TIME, frontier_as_data, frontier_from_data
from millstream.kernels.over.requested_results import RequestedResults
from millstream.kernels.over.tuple_log import RangeWindow, RowsWindow, TupleLog, Window, newest
from millstream.kernels.specs import OverSpec
from millstream.windows.slot_panes import Panes


class FrameAggregates:
    """Calls of a SELECT with bounded frames: they share one log, which reaches as far back as the largest.

    A row is dead when no window to come can have it, and is removed when most rows are dead: then the log is
    rebuilt from the live rows, as it is from state chunks after a failure. A key without rows is deleted.
    With panes, the rows of the log are panes instead of tuples.
    """

    def __init__(self, calls: Sequence[OverSpec], name: str, panes: Panes | None = None) -> None:
        self._calls = calls
        self._panes = panes
        self._name = name
        self._spans = list(dict.fromkeys(call.extent for call in calls))
        self._ledger = Ledger(name)
        self._types: pa.Schema | None = None
        self._is_float = False
        self._frontier = BEGINNING
        self._start_over()

    def _start_over(self) -> None:
        self._keys = KeyTable()
        self._log = TupleLog()
        self._windows: list[Window] = [
            RangeWindow(range_ or 0) if rows is None else RowsWindow(self._rows(rows))
            for rows, range_, *_ in self._spans
        ]
        self._saved = 0
        """Number of rows of the log that snapshots have written."""

        self._measures: list[Accumulator] = []
        self._aggregates: list[Aggregate] = []
        if self._types is not None:
            specs = [call.aggregate for call in self._calls]
            self._measures, self._aggregates = plan(specs, self._types, in_order=True)
        self._trails: list[AccumulatorLog] = [measure.trail(len(self._spans)) for measure in self._measures]

    def _rows(self, preceding: int) -> int:
        """Return the number of rows of a window before its last one."""
        return preceding if self._panes is None else self._panes.count(preceding + 1) - 1

    def results(
        self, requested: RequestedResults, frontier: Frontier, panes: pa.Table | None = None
    ) -> list[pa.Array]:
        """Return the results of all calls for some of the tuples, which come in order.

        With panes the tuples are their last ones.
        """
        tuples = requested.tuples
        self._prepare(tuples, frontier)
        codes = self._keys.of(tuples.columns)
        order = as_order(tuples.time)
        parts = [
            measure.of_tuples(tuples) if panes is None else measure.of_table(panes)
            for measure in self._measures
        ]
        rows, starts = self._append(order, codes, parts)
        if not requested.are_all:
            chosen = requested.rows
            codes, rows, starts = codes[chosen], rows[chosen], [begin[chosen] for begin in starts]
        results = self._ask(requested, codes, rows, starts)
        self._expire()
        return results

    def _prepare(self, tuples: Tuples, frontier: Frontier) -> None:
        """Note the types of arguments and of the time, and the frontier."""
        if self._types is None:
            self._types = argument_types((call.aggregate for call in self._calls), tuples.columns.schema)
            self._start_over()
        self._frontier = frontier
        self._is_float = tuples.time.dtype == np.float64

    def _append(self, order: Integers, codes: Codes, parts: Sequence[Parts]) -> tuple[Codes, list[Codes]]:
        """Add rows to the log; return their numbers, and for each window the starts of the rows' windows."""
        first, keys = len(self._log), len(self._keys)
        rows = self._log.append(order, codes, keys)
        for trail, part in zip(self._trails, parts, strict=True):
            trail.append(part, self._log.previous.view)
        starts = []
        for window in self._windows:
            bounds = order
            if isinstance(window, RangeWindow):
                bounds = earlier(order, self._is_float, window.distance)
            starts.append(window.starts(self._log, first, keys, bounds))
        return rows, starts

    def _ask(
        self, requested: RequestedResults, codes: Codes, rows: Codes, starts: Sequence[Codes]
    ) -> list[pa.Array]:
        measured: dict[tuple[int, int], Parts] = {}
        results = []
        for call, aggregate in zip(self._calls, self._aggregates, strict=True):
            window = self._spans.index(call.extent)
            asked = WindowBatch(
                len(self._keys), codes, starts[window], rows, self._log.previous.view, NO_BYTES
            )
            for number in aggregate.measures:
                if (window, number) not in measured:
                    measured[window, number] = self._trails[number].ask(window, asked)
            parts = [measured[window, number] for number in aggregate.measures]
            results.append(requested.answer(aggregate, self._measures[aggregate.measures[0]], parts))
        return results

    def _expire(self) -> None:
        """Remove rows that no window to come can have."""
        if self._frontier.is_end:
            self._start_over()
            return
        instant = np.array([order_of(self._frontier.time, self._is_float)])
        for window in self._windows:
            if isinstance(window, RangeWindow):
                window.expire(self._log, int(earlier(instant, self._is_float, window.distance)[0]))
        if is_wasteful(len(self._log), self._live):
            rows = np.flatnonzero(self._is_live(0))
            saved = int(np.searchsorted(rows, self._saved))
            table = self._export(rows)
            self._start_over()
            self._import(table)
            self._saved = saved

    @property
    def _live(self) -> int:
        """Number of live rows, perhaps a few too many where there are windows of rows and of time."""
        rows = [window.live(self._log) for window in self._windows if isinstance(window, RowsWindow)]
        times = [window.live(self._log) for window in self._windows if isinstance(window, RangeWindow)]
        return min(max(rows, default=0) + max(times, default=0), len(self._log))

    def _is_live(self, first: int) -> Array:
        """Tell which rows of the log from some row on are live."""
        codes = self._log.codes.view[first:]
        live = np.zeros(len(codes), np.bool_)
        most = max((window.rows for window in self._windows if isinstance(window, RowsWindow)), default=0)
        if most:
            live = newest(codes, len(self._keys), most)
        passed = [window.passed for window in self._windows if isinstance(window, RangeWindow)]
        if passed:
            live[max(min(passed) - first, 0) :] = True
        return live

    def _export(self, rows: Array) -> pa.Table:
        columns = self._keys.table(self._log.codes.view[rows])
        columns[TIME] = pa.array(from_order(self._log.times.view[rows], self._is_float))
        for measure, trail in zip(self._measures, self._trails, strict=True):
            columns |= measure.to_table(trail.rows(rows))
        assert self._types is not None, "there are no rows before types are known"
        return with_arguments(pa.table(columns), self._types)

    def _import(self, table: pa.Table) -> None:
        time = arrow_buffers.single(table[TIME]).to_numpy()
        self._is_float = time.dtype == np.float64
        parts = [measure.of_table(table) for measure in self._measures]
        self._append(as_order(time), self._keys.of(table), parts)

    def snapshot(self) -> Change:
        ledger = self._ledger
        added: dict[str, pa.Table] = {}
        fresh = self._saved + np.flatnonzero(self._is_live(self._saved))
        self._saved = len(self._log)
        live = self._live
        dropped = self._passed_chunks(live)
        if live == 0:
            dropped += ledger.drop_all()
        elif ledger.should_be_rewritten(len(fresh), live):
            dropped += ledger.drop_all()
            added = self._written(np.flatnonzero(self._is_live(0)))
        elif len(fresh):
            added = self._written(fresh)
        meta = {f"{self._name}-frontier": frontier_as_data(self._frontier), **ledger.meta()}
        return Change(added, dropped, meta)

    def _passed_chunks(self, live: int) -> tuple[str, ...]:
        """Return the names of chunks that have no row that is live."""
        if not all(isinstance(window, RangeWindow) for window in self._windows) or not len(self._log):
            return ()
        return self._ledger.drop_before((int(self._log.times.view[-max(live, 1)]), 0))

    def _written(self, rows: Array) -> dict[str, pa.Table]:
        return self._ledger.add(self._export(rows), (int(self._log.times.view[rows[-1]]), 0))

    def restore(self, meta: Mapping[str, Any], chunks: Mapping[str, pa.Table]) -> None:
        self._frontier = frontier_from_data(meta.get(f"{self._name}-frontier"))
        mine = self._ledger.restored(meta, chunks)
        self._types = arguments_of(mine[0][1].schema) if mine else None
        self._start_over()
        for name, table in mine:
            self._ledger.marks[name] = (int(as_order(arrow_buffers.single(table[TIME]).to_numpy()).max()), 0)
        if mine:
            self._import(pa.concat_tables([table for _, table in mine]))
            self._saved = len(self._log)
            self._expire()

    @property
    def rows(self) -> int:
        return self._live
