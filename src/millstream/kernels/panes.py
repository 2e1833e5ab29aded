"""WindowAggregate: aggregates over bracket windows, RANGE and SLIDE, by panes.

Tuples are taken as they come and counted in panes, of which windows are made (semantics 3; panes and window
ids are those of Li et al.). A window's result comes out once, when punctuation reaches its end.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.kernels import arrow
from millstream.kernels.aggregates import Aggregate, arguments_of, check, plan, with_arguments
from millstream.kernels.arrays import Array, Integers
from millstream.kernels.base import LAST, Change, Frontier, Kernel, Tuples
from millstream.kernels.chunks import Ledger, is_wasteful
from millstream.kernels.grid import Grid
from millstream.kernels.keys import KeyTable, first_rows
from millstream.kernels.measures import Asked, Measure, Trail
from millstream.kernels.partials import PANE, WINDOW, to_panes
from millstream.kernels.passing import PaneLog, Passed
from millstream.kernels.results import result
from millstream.kernels.specs import PaneSpec
from millstream.kernels.times import LEAST, MOST
from millstream.kernels.waiting import Rows, Waiting


class WindowAggregate(Kernel):
    """One row for each window and key that has a tuple in it, with the columns of the group.

    Panes wait until the first window that has them is complete. Then they are rows of a log over which the
    windows pass, as windows of OVER pass over tuples. A chunk of state has the panes to which tuples were
    added between two snapshots; the same pane may be in several.
    """

    def __init__(self, spec: PaneSpec) -> None:
        check(spec.aggregates)
        self._spec = spec
        self._grid = Grid(spec.range, spec.slide, spec.origin)
        self._ledger = Ledger("panes")
        self._window = LEAST
        """The first window that is not complete."""

        self._number = 0
        self._fresh: list[pa.Table] = []
        self._schema: pa.Schema | None = None
        self._start_over()

    def _start_over(self) -> None:
        self._keys = KeyTable()
        self._groups: list[pa.Table] = []
        self._log = PaneLog()
        self._measures: list[Measure] = []
        self._aggregates: list[Aggregate] = []
        if self._schema is not None:
            types = arguments_of(self._schema)
            self._measures, self._aggregates = plan(self._spec.aggregates, types, in_order=False)
        self._trails: list[Trail] = [measure.trail(1) for measure in self._measures]
        self._waiting = Waiting(self._measures)

    def process(self, tuples: Tuples, frontier: Frontier) -> Tuples:
        return self.process_panes(to_panes(self._spec, tuples), frontier)

    def process_panes(self, panes: pa.Table, frontier: Frontier) -> Tuples:
        """The same for tuples that have been made panes already."""
        if self._schema is None:
            self._schema = panes.schema
            self._start_over()
        if panes.num_rows:
            self._fresh.append(panes)
            self._import(panes)
        out = self._advance(self._grid.last_closed(frontier))
        self._waiting.settle()
        if frontier.is_end:
            self._fresh = []
            self._start_over()
        elif self._is_wasteful:
            table = self._export()
            self._start_over()
            if table.num_rows:
                self._import(table)
        return out

    @property
    def _is_wasteful(self) -> bool:
        names = max(len(self._keys), *(measure.words for measure in self._measures), 0)
        return is_wasteful(len(self._log), self._log.live) or is_wasteful(names, self.rows)

    def passes(self, frontier: Frontier) -> Frontier:
        """Every window that ends at the frontier or before it is out."""
        return frontier if frontier.is_end else Frontier(frontier.time, LAST)

    def _import(self, panes: pa.Table) -> None:
        """Let panes wait, those of windows that are open already too: they enter the next window at once."""
        known = len(self._keys)
        codes = self._keys.of(panes)
        if len(self._keys) > known:
            rows = first_rows(np.maximum(codes, known - 1) - known + 1)
            rows = rows[codes[rows] >= known]
            self._add_groups(panes.select(self._spec.group_by).take(pa.array(rows)))
        windows = np.maximum(_integers(panes[WINDOW]), self._window)
        parts = [part for measure in self._measures for part in measure.of_table(panes)]
        self._waiting.add((windows, codes, _integers(panes[PANE]), *parts))

    def _add_groups(self, groups: pa.Table) -> None:
        """Keep the columns of new keys; tables of like size are made one, so that there are few."""
        self._groups.append(groups)
        while len(self._groups) > 1 and self._groups[-2].num_rows < 2 * self._groups[-1].num_rows:
            last = self._groups.pop()
            self._groups[-1] = pa.concat_tables([self._groups[-1], last]).combine_chunks()

    def _groups_of(self, codes: Array) -> dict[str, Any]:
        """The columns of the groups that keys are."""
        if not self._spec.group_by:
            return {}
        assert self._schema is not None, "there have been panes"
        groups = pa.concat_tables(self._groups or [self._schema.empty_table().select(self._spec.group_by)])
        groups = groups.take(pa.array(codes))
        return dict(zip(groups.column_names, groups.columns, strict=True))

    def _advance(self, last: int) -> Tuples:
        """Let windows pass up to the last, which is complete."""
        if last < self._window:
            return self._results(Passed.nothing())
        entering = self._waiting.take(last)
        if entering is None:
            entering = (np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int64))
            entering += tuple(part for measure in self._measures for part in measure.zeros(0))
        else:
            entering = self._waiting.merged(entering, self._keys.ranks(entering[1]))
        windows, codes, panes, *_ = entering
        untils = self._grid.last_windows(panes)
        passed = self._log.advance((windows, codes, panes, untils), self._keys, self._window, last)
        self._extend_trails(entering, passed)
        self._window = min(last, MOST - 1) + 1
        return self._results(passed)

    def _extend_trails(self, entering: Rows, passed: Passed) -> None:
        sources = passed.sources
        repeated = sources < 0
        is_plain = len(sources) == len(entering[0])
        for trail, parts in zip(self._trails, self._waiting.parts_of(entering), strict=True):
            rows = parts if is_plain else tuple(part[np.maximum(sources, 0)] for part in parts)
            if not is_plain:
                for part, again in zip(rows, trail.rows(~sources[repeated]), strict=True):
                    part[repeated] = again
            trail.append(rows, self._log.previous.view)

    def _results(self, passed: Passed) -> Tuples:
        windows = passed.windows
        heads = np.flatnonzero(np.diff(windows, prepend=windows[:1] - 1))
        each = np.diff(heads, append=len(windows))
        ends = np.repeat(self._grid.ends(windows[heads]), each)
        ids = windows - self._grid.shift

        def position(row: int) -> tuple[int | float, ...]:
            return int(ends[row]), int(ids[row])

        columns = self._groups_of(passed.codes)
        columns["window_start"] = self._edges(np.repeat(self._grid.starts(windows[heads]), each))
        columns["window_end"] = self._edges(ends)
        columns["wid"] = pa.array(ids)
        asked = Asked(
            len(self._keys), passed.codes, passed.starts, passed.ends, self._log.previous.view, passed.rebuild
        )
        measured = [trail.ask(0, asked) for trail in self._trails]
        for aggregate in self._aggregates:
            parts = [measured[number] for number in aggregate.measures]
            column = result(aggregate, self._measures[aggregate.measures[0]], parts, position)
            columns[aggregate.spec.result] = column
        numbers = np.arange(self._number, self._number + len(windows))
        self._number += len(windows)
        return Tuples(pa.table(columns), ends, np.zeros(len(windows), np.int32), numbers)

    def _edges(self, edges: Integers) -> pa.Array:
        """Instants in their own type, or the nearest that it has."""
        type_ = self._spec.edge_type
        if pa.types.is_timestamp(type_) or pa.types.is_duration(type_) or type_ == pa.int64():
            return arrow.build(type_, edges)
        if pa.types.is_integer(type_) or pa.types.is_date32(type_):
            limits = np.iinfo(f"int{type_.bit_width}")
            narrow = np.clip(edges, limits.min, limits.max).astype(limits.dtype)
            return arrow.build(type_, narrow)
        return pa.array(edges).cast(type_)

    def _table(self, windows: Integers, codes: Array, panes: Integers, parts: Any) -> pa.Table:
        columns: dict[str, Any] = self._keys.table(codes)
        columns |= self._groups_of(codes)
        columns |= {PANE: pa.array(panes), WINDOW: pa.array(windows)}
        for measure, part in zip(self._measures, parts, strict=True):
            columns |= measure.to_table(part)
        return pa.table(columns)

    def _export(self) -> pa.Table:
        """All panes that windows to come may have."""
        rows = self._log.live_rows()
        windows = np.full(len(rows), self._window)
        parts = [trail.rows(rows) for trail in self._trails]
        tables = [self._table(windows, self._log.codes.view[rows], self._log.panes.view[rows], parts)]
        waiting = self._waiting.everything()
        if waiting is not None:
            tables.append(self._table(waiting[0], waiting[1], waiting[2], self._waiting.parts_of(waiting)))
        assert self._schema is not None, "there have been panes"
        tables = [table for table in tables if table.num_rows] or tables[:1]
        return with_arguments(pa.concat_tables(tables), arguments_of(self._schema))

    def snapshot(self) -> Change:
        ledger = self._ledger
        dropped = ledger.drop_before((self._window, 0))
        fresh = [table for table in map(self._still_needed, self._fresh) if table.num_rows]
        self._fresh = []
        added: dict[str, pa.Table] = {}
        if self.rows == 0:
            dropped += ledger.drop_all()
        elif is_wasteful(ledger.total + sum(table.num_rows for table in fresh), self.rows):
            dropped += ledger.drop_all()
            added = self._written(self._export())
        elif fresh:
            added = self._written(pa.concat_tables(fresh))
        meta = {"window": self._window, "number": self._number}
        return Change(added, dropped, {**meta, **ledger.meta()})

    def _still_needed(self, panes: pa.Table) -> pa.Table:
        return panes.filter(pa.array(self._grid.last_windows(_integers(panes[PANE])) >= self._window))

    def _written(self, panes: pa.Table) -> dict[str, pa.Table]:
        return self._ledger.add(panes, self._mark(panes))

    def _mark(self, panes: pa.Table) -> tuple[int, int]:
        return int(self._grid.last_windows(_integers(panes[PANE])).max()), 0

    def restore(self, meta: Mapping[str, Any], chunks: Mapping[str, pa.Table]) -> None:
        self._window = int(meta.get("window", LEAST))
        self._number = int(meta.get("number", 0))
        self._fresh = []
        mine = self._ledger.restored(meta, chunks)
        self._schema = mine[0][1].schema if mine else None
        self._start_over()
        for name, table in mine:
            self._ledger.marks[name] = self._mark(table)
            needed = self._still_needed(table)
            if needed.num_rows:
                self._import(needed)

    @property
    def rows(self) -> int:
        return self._log.live + len(self._waiting)


def _integers(column: pa.ChunkedArray) -> Integers:
    return arrow.values(arrow.single(column), np.int64)
