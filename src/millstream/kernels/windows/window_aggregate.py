"""WindowAggregate: aggregates over bracket windows of every kind.

Tuples are aggregated as they come into panes, of which windows are made (semantics, section 6; Li et al. call
them panes and bins). The result of a window is emitted once, when the watermark has passed its end.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.kernels.aggregates.accumulator import Accumulator, AccumulatorLog, WindowBatch
from millstream.kernels.aggregates.accumulator_selection import (
    Aggregate,
    arguments_of,
    check,
    plan,
    with_arguments,
)
from millstream.kernels.aggregates.finalize import result
from millstream.kernels.core import arrow_buffers
from millstream.kernels.core.buffers import Array, Buffer, Codes, Integers
from millstream.kernels.core.kernel import Change, Frontier, Kernel, Tuples
from millstream.kernels.core.key_table import KeyTable, first_rows
from millstream.kernels.core.radix_sort import ordering
from millstream.kernels.core.state_chunks import Ledger, is_wasteful
from millstream.kernels.core.time_order import as_order, shifted
from millstream.kernels.specs import WindowSpec
from millstream.kernels.windows.assigner_selection import assigner_of
from millstream.kernels.windows.empty_windows import EmptyWindows
from millstream.kernels.windows.pane_sweep import DueWindows, PaneLog, SweepResult
from millstream.kernels.windows.panes import ENTER, UNTIL, to_panes
from millstream.kernels.windows.pending_panes import PendingPanes, Rows
from millstream.kernels.windows.window_assigner import WindowAssigner, WindowEdges


class WindowAggregate(Kernel):
    """A kernel with one row for each window and key that has a tuple in it, with the columns of the group.

    Panes wait until the first window that has them is visited. Then they are rows of a log over which the
    windows slide, as windows of OVER slide over tuples. A chunk of state has the panes to which tuples were
    added between two snapshots; a pane may be in several.
    """

    def __init__(self, spec: WindowSpec) -> None:
        check(spec.aggregates)
        self._spec = spec
        self._placing: WindowAssigner = assigner_of(spec.assigner)
        self._ledger = Ledger("cells")
        self._number = 0
        self._fresh: list[pa.Table] = []
        self._schema: pa.Schema | None = None
        self._empty = EmptyWindows(spec, self._placing) if spec.empty else None
        self._start_over()

    def _start_over(self) -> None:
        self._keys = KeyTable()
        self._partitions = Buffer(np.int32)
        """Partition of each key."""

        self._groups: list[pa.Table] = []
        self._log = PaneLog()
        self._measures: list[Accumulator] = []
        self._aggregates: list[Aggregate] = []
        if self._schema is not None:
            types = arguments_of(self._schema)
            self._measures, self._aggregates = plan(self._spec.aggregates, types, in_order=False)
        self._trails: list[AccumulatorLog] = [measure.trail(1) for measure in self._measures]
        self._waiting = PendingPanes(self._measures)

    def process(self, tuples: Tuples, frontier: Frontier) -> Tuples:
        placed = self._placing.place(tuples, frontier)
        spec = self._spec
        panes = to_panes(tuples, placed, spec.group_by, spec.aggregates)
        if self._schema is None:
            self._schema = panes.schema
            self._start_over()
        if panes.num_rows:
            self._fresh.append(panes)
            self._import(panes)
        out = self._advance(frontier)
        self._waiting.settle()
        if frontier.is_end:
            self._fresh = []
            self._start_over()
        elif self._is_wasteful:
            table = self._export()
            self._placing.forget()
            self._start_over()
            if table.num_rows:
                self._import(table)
        return out

    @property
    def _is_wasteful(self) -> bool:
        names = max(len(self._keys), *(measure.words for measure in self._measures), 0)
        return is_wasteful(len(self._log), self._live) or is_wasteful(names, self._cells)

    @property
    def _live(self) -> int:
        return self._log.active if self._placing.merges else self._log.live

    def passes(self, frontier: Frontier) -> Frontier:
        """Return the frontier of results: every window that ends up to the frontier has been emitted.

        Reports with the last instants of their windows may still have the instant of the frontier.
        """
        passed = self._placing.passes(frontier)
        return passed if self._spec.stamp >= 0 or passed.is_end else Frontier(passed.time, -1)

    def _import(self, panes: pa.Table) -> None:
        """Add panes, also of windows that are open already: those enter the next visit at once."""
        known = len(self._keys)
        codes = self._keys.of(panes)
        partitions = self._placing.partitions(panes)
        if len(self._keys) > known:
            rows = first_rows(np.maximum(codes, known - 1) - known + 1)
            rows = rows[codes[rows] >= known]
            self._add_groups(panes.select(self._spec.group_by).take(pa.array(rows)))
            self._partitions.extend(partitions[rows])
        enters = np.maximum(_integers(panes[ENTER]), self._placing.first_open(partitions))
        parts = [part for measure in self._measures for part in measure.of_table(panes)]
        self._waiting.add((enters, codes, _integers(panes[UNTIL]), *parts))

    def _add_groups(self, groups: pa.Table) -> None:
        """Add the columns of new keys; tables of like size are joined, so that there are few."""
        self._groups.append(groups)
        while len(self._groups) > 1 and self._groups[-2].num_rows < 2 * self._groups[-1].num_rows:
            last = self._groups.pop()
            self._groups[-1] = pa.concat_tables([self._groups[-1], last]).combine_chunks()

    def _groups_of(self, codes: Array) -> dict[str, Any]:
        """Return the columns of the groups that keys are."""
        if not self._spec.group_by:
            return {}
        assert self._schema is not None, "there have been panes"
        groups = pa.concat_tables(self._groups or [self._schema.empty_table().select(self._spec.group_by)])
        groups = groups.take(pa.array(codes))
        return dict(zip(groups.column_names, groups.columns, strict=True))

    def _advance(self, frontier: Frontier) -> Tuples:
        """Make the visits that are due."""
        due = self._placing.due(frontier)
        partitions = self._partitions.view
        entering = self._waiting.take(partitions, due)
        if entering is None:
            entering = (np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int64))
            entering += tuple(part for measure in self._measures for part in measure.zeros(0))
        else:
            entering = self._waiting.merged(entering, by_key=True)
        enters, codes, untils, *_ = entering
        swept = self._log.sweep((codes, enters, untils), self._keys, partitions, due)
        self._extend_trails(entering, swept)
        swept, edges = self._in_order(swept, partitions, due)
        self._placing.finish()
        if edges.keep is not None:
            kept = np.flatnonzero(edges.keep)
            swept, edges = swept.ordered(kept), edges.ordered(kept)
        number = self._number
        found = self._results(swept, edges)
        if self._empty is not None:
            found = self._empty.among(found, swept.visits, due, number)
            self._number = number + len(found)
        return found

    def _in_order(
        self, sweep: SweepResult, partitions: Codes, due: DueWindows
    ) -> tuple[SweepResult, WindowEdges]:
        """Sort results by time, window and key, with their edges; they come by keys."""
        same = np.zeros(len(sweep.visits), np.int64)
        if len(due.last) > 1:
            edges = self._placing.edges(sweep.visits, partitions[sweep.codes])
            # Windows that end at values have no numbers that would not depend on how batches are cut.
            windows = same if due.enters_at_points else sweep.visits
            order = ordering(as_order(edges.stamp), windows, same)
            return sweep.ordered(order), edges.ordered(order)
        # Visits of one partition are in the order of time, and there are far fewer of them than results.
        sweep = sweep.ordered(ordering(sweep.visits, same, same))
        heads = np.flatnonzero(np.diff(sweep.visits, prepend=sweep.visits[:1] - 1))
        edges = self._placing.edges(sweep.visits[heads], np.zeros(len(heads), np.int32))
        each = np.diff(heads, append=len(sweep.visits))
        return sweep, edges.ordered(np.repeat(np.arange(len(heads)), each))

    def _extend_trails(self, entering: Rows, sweep: SweepResult) -> None:
        sources = sweep.sources
        repeated = sources < 0
        is_plain = not repeated.any() and len(sources) == len(entering[0])
        for trail, parts in zip(self._trails, self._waiting.parts_of(entering), strict=True):
            rows = tuple(part[np.maximum(sources, 0)] if len(part) else part for part in parts)
            if not is_plain:
                for part, again in zip(rows, trail.rows(~sources[repeated]), strict=True):
                    if len(part):
                        part[repeated] = again
            trail.append(rows, self._log.previous.view)

    def _results(self, sweep: SweepResult, edges: WindowEdges) -> Tuples:
        def position(row: int) -> tuple[int | float, ...]:
            return edges.stamp[row].item(), edges.wid[row].item()

        columns = self._groups_of(sweep.codes)
        columns |= edges.columns(self._spec.edge_type, self._spec.wid_type)
        asked = WindowBatch(
            len(self._keys), sweep.codes, sweep.starts, sweep.ends, self._log.previous.view, sweep.rebuild
        )
        measured = [trail.ask(0, asked) for trail in self._trails]
        for aggregate in self._aggregates:
            parts = [measured[number] for number in aggregate.measures]
            column = result(aggregate, self._measures[aggregate.measures[0]], parts, position)
            columns[aggregate.spec.result] = column
        count = len(sweep.visits)
        stamps = shifted(edges.stamp, self._spec.stamp) if self._spec.stamp else edges.stamp
        numbers = np.arange(self._number, self._number + count)
        self._number += count
        return Tuples(pa.table(columns), stamps, np.zeros(count, np.int32), numbers)

    def _table(self, enters: Integers, codes: Codes, untils: Integers, parts: Any) -> pa.Table:
        columns: dict[str, Any] = self._keys.table(codes)
        columns |= self._groups_of(codes)
        columns |= self._placing.partition_columns(self._partitions.view[codes])
        columns |= {ENTER: pa.array(enters), UNTIL: pa.array(untils)}
        for measure, part in zip(self._measures, parts, strict=True):
            columns |= measure.to_table(part)
        return pa.table(columns)

    def _export(self) -> pa.Table:
        """Return all panes that windows to come may have, each once."""
        live = self._log.live_rows()
        codes = self._log.codes.view[live]
        enters = self._placing.first_open(self._partitions.view[codes])
        columns = [part for trail in self._trails for part in trail.rows(live)]
        rows: Rows = (enters, codes, self._log.untils.view[live], *columns)
        waiting = self._waiting.everything()
        if waiting is not None:
            rows = tuple(np.concatenate(both) for both in zip(rows, waiting, strict=True))
        assert self._schema is not None, "there have been panes"
        if not len(rows[0]):
            return self._schema.empty_table()
        rows = self._waiting.merged(rows)
        table = self._table(rows[0], rows[1], rows[2], self._waiting.parts_of(rows))
        return with_arguments(table, arguments_of(self._schema)).select(self._schema.names)

    def snapshot(self) -> Change:
        ledger = self._ledger
        dropped = ledger.drop_before((self._placing.horizon(), 0))
        fresh = [table for table in map(self._still_needed, self._fresh) if table.num_rows]
        self._fresh = []
        added: dict[str, pa.Table] = {}
        if self._cells == 0:
            dropped += ledger.drop_all()
        elif is_wasteful(
            ledger.total + sum(table.num_rows for table in fresh), self._live + len(self._waiting)
        ):
            dropped += ledger.drop_all()
            added = self._written(self._export())
        elif fresh:
            added = self._written(pa.concat_tables(fresh))
        placing = self._placing.snapshot()
        beside = {} if self._empty is None else self._empty.meta
        meta = {"number": self._number, **beside, **ledger.meta(), **placing.meta}
        return Change({**added, **placing.added}, (*dropped, *placing.dropped), meta)

    def _still_needed(self, panes: pa.Table) -> pa.Table:
        needed = self._placing.is_alive(_integers(panes[UNTIL]), self._placing.partitions(panes))
        return panes if needed.all() else panes.filter(pa.array(needed))

    def _written(self, panes: pa.Table) -> dict[str, pa.Table]:
        return self._ledger.add(panes, _mark(panes))

    def restore(self, meta: Mapping[str, Any], chunks: Mapping[str, pa.Table]) -> None:
        self._placing.restore(meta, chunks)
        self._number = int(meta.get("number", 0))
        if self._empty is not None:
            self._empty.restore(meta)
        self._fresh = []
        mine = self._ledger.restored(meta, chunks)
        self._schema = mine[0][1].schema if mine else None
        self._start_over()
        for name, table in mine:
            self._ledger.marks[name] = _mark(table)
            needed = self._still_needed(table)
            if needed.num_rows:
                self._import(needed)

    @property
    def _cells(self) -> int:
        return self._log.live + len(self._waiting)

    @property
    def rows(self) -> int:
        return self._cells + self._placing.rows


def _mark(panes: pa.Table) -> tuple[int, int]:
    return int(_integers(panes[UNTIL]).max()), 0


def _integers(column: pa.ChunkedArray) -> Integers:
    return arrow_buffers.values(arrow_buffers.single(column), np.int64)
