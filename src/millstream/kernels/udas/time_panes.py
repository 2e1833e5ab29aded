"""TimePanes: UDAs that are restarted for each pane of time, of which only the result goes on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.kernels.column_names import INSIDE, KEY, KEY2, TUPLE
from millstream.kernels.core.buffers import Array, Codes, Integers, frozen
from millstream.kernels.core.kernel import Change, Frontier, Kernel, Tuples
from millstream.kernels.core.state_chunks import Ledger
from millstream.kernels.core.tuple_batch import TIME, joined
from millstream.kernels.specs import TimePaneSpec
from millstream.kernels.udas.compiled_machine import Returned, UserAggregateError
from millstream.kernels.udas.machine_state import MachineState
from millstream.kernels.udas.returned_rows import converted, counted, located, merged


class TimePanes(Kernel):
    """A kernel that takes tuples in order and gives the rows that UDAs return for each pane of a key.

    A row has the time of the last tuple of its pane. With ``keeps_tuples`` tuples pass before these rows,
    for aggregates that are computed from tuples.
    """

    def __init__(self, calls: Sequence[TimePaneSpec], group_by: Sequence[str], *, keeps_tuples: bool) -> None:
        self._calls = [_PaneCall(spec, group_by, f"pane{i}") for i, spec in enumerate(calls)]
        self._keeps_tuples = keeps_tuples

    def process(self, tuples: Tuples, frontier: Frontier) -> Tuples:
        if INSIDE in tuples.columns.column_names:
            inside = pc.fill_null(tuples.columns[INSIDE], False).to_numpy()
            tuples = tuples.take(np.flatnonzero(inside))
            tuples = _with(tuples, tuples.columns.drop_columns([INSIDE]))
        parts = [call.process(tuples, frontier) for call in self._calls]
        if self._keeps_tuples:
            is_tuple = pa.array(np.ones(len(tuples), np.bool_))
            parts.insert(0, _with(tuples, tuples.columns.append_column(TUPLE, is_tuple)))
        schema = pa.unify_schemas([part.columns.schema for part in parts])
        return joined([_with(part, _filled(part.columns, schema)) for part in parts])

    def snapshot(self) -> Change:
        return merged(call.snapshot() for call in self._calls)

    def restore(self, meta: Mapping[str, Any], chunks: Mapping[str, pa.Table]) -> None:
        for call in self._calls:
            call.restore(meta, chunks)

    @property
    def rows(self) -> int:
        return sum(call.rows for call in self._calls)


class _PaneCall:
    """One call: the instances of open panes, and the last tuple of each, which may be the last of its pane.

    What a tuple returns counts only if it is the last of its pane, so the last one waits for the next.
    """

    def __init__(self, spec: TimePaneSpec, group_by: Sequence[str], prefix: str) -> None:
        self._spec, self._group_by = spec, tuple(group_by)
        self._state = MachineState(spec.user.program, prefix)
        self._origin = spec.origin % spec.period
        self._waiting: pa.Table | None = None
        self._fresh: list[pa.Table] = []
        """Waiting tuples that came since the last snapshot."""

        self._passed: int | None = None
        """Number of the first pane that has not ended."""

        self._ledger = Ledger(f"{prefix}-waiting")

    def process(self, tuples: Tuples, frontier: Frontier) -> Tuples:
        new = self._taken(tuples)
        every = new if self._waiting is None else pa.concat_tables([self._waiting, new])
        known = every.num_rows - new.num_rows
        codes, panes = self._state.keys.of(every), self._panes(_times(every))
        order = np.argsort(codes, kind="stable")
        is_newest = np.append(codes[order][1:] != codes[order][:-1], True)[: len(order)]
        ended = self._ended(panes, frontier)
        is_last = np.append(panes[order][1:] != panes[order][:-1], True)[: len(order)]
        is_last = np.where(is_newest, ended[order], is_last)
        waits = is_newest & ~is_last
        staying = np.sort(order[waits])
        self._waiting = every.take(pa.array(staying))
        fresh = staying[staying >= known]
        if len(fresh):
            self._fresh.append(every.take(pa.array(fresh)))
        run = order[~waits]
        results = self._run(every.take(pa.array(run)), codes[run], is_last[~waits])
        if not frontier.is_end and self._state.is_wasteful():
            self._state.start_over()
        return results

    def _taken(self, tuples: Tuples) -> pa.Table:
        """Return what is needed of the tuples that count."""
        seen, _ = counted(tuples, self._spec.user.condition)
        spec = self._spec
        if not spec.first_counts:
            seen = seen.take(np.flatnonzero(self._places(seen.time) >= spec.cut))
        present = seen.columns.column_names
        names = [name for name in (KEY, KEY2) if name in present]
        names = list(dict.fromkeys((*names, *self._group_by, *spec.user.arguments)))
        return seen.columns.select(names).append_column(TIME, pa.array(seen.time, pa.int64()))

    def _panes(self, times: Integers) -> Integers:
        """Return the numbers of the panes of times; nothing overflows."""
        period, cut = self._spec.period, self._spec.cut
        periods = times // period - (times % period < self._origin)
        return 2 * periods + (self._places(times) >= cut) if cut else periods

    def _places(self, times: Array) -> Array:
        """Return the places of times in their periods."""
        return (times % self._spec.period - self._origin) % self._spec.period

    def _ended(self, panes: Integers, frontier: Frontier) -> Array:
        if frontier.is_end:
            return np.ones(len(panes), np.bool_)
        if frontier.time == -np.inf:
            return np.zeros(len(panes), np.bool_)
        self._passed = int(self._panes(np.array([frontier.time], np.int64))[0])
        return panes < self._passed

    def _run(self, table: pa.Table, codes: Codes, lasts: Array) -> Tuples:
        """Run the program, and return its rows as tuples."""
        user, machine = self._spec.user, self._state.machine
        self._state.touch(codes)
        machine.reserve(len(self._state.keys), table.num_rows)
        parameters = machine.encoded(table, user.arguments)
        arguments = np.ascontiguousarray(codes), frozen(lasts.astype(np.uint8))
        times = _times(table)
        try:
            returned = machine.call("run", table.num_rows, arguments, parameters)
        except UserAggregateError as failure:
            numbers = np.zeros(len(times), np.int32)
            tuples = Tuples(table, times, numbers, times)
            raise located(failure, tuples, user.arguments) from None
        return self._rows(table, times, returned)

    def _rows(self, table: pa.Table, times: Integers, returned: Returned) -> Tuples:
        # Keys come one after the other; the rows of a pane stay in their order.
        order = np.argsort(times[returned.sources], kind="stable")
        sources = returned.sources[order]
        kept = [name for name in table.column_names if name in (KEY, KEY2, *self._group_by)]
        columns: dict[str, Any] = {name: table[name].take(pa.array(sources)) for name in kept}
        user, count = self._spec.user, len(order)
        for name, type_, column in zip(user.results, self._spec.types, returned.columns, strict=True):
            columns[name] = converted(user.program.name, column, type_, sources).take(pa.array(order))
        columns[user.whole] = pa.array(np.ones(count, np.bool_))
        return Tuples(pa.table(columns), times[sources], np.zeros(count, np.int32), np.arange(count))

    # ------------------------------------------------------------ state

    def snapshot(self) -> Change:
        ledger, waiting = self._ledger, self._waiting
        count = 0 if waiting is None else waiting.num_rows
        fresh, self._fresh = self._fresh, []
        dropped = () if self._passed is None else ledger.drop_before((self._passed, 0))
        added: dict[str, pa.Table] = {}
        if waiting is None or not count:
            dropped += ledger.drop_all()
        elif ledger.should_be_rewritten(sum(table.num_rows for table in fresh), count):
            dropped += ledger.drop_all()
            added = ledger.add(waiting, self._mark(waiting))
        elif fresh:
            table = pa.concat_tables(fresh)
            added = ledger.add(table, self._mark(table))
        meta = {f"{ledger.prefix}-passed": self._passed, **ledger.meta()}
        return merged([self._state.snapshot(), Change(added, dropped, meta)])

    def _mark(self, table: pa.Table) -> tuple[int, int]:
        return int(self._panes(_times(table)).max()), 0

    def restore(self, meta: Mapping[str, Any], chunks: Mapping[str, pa.Table]) -> None:
        self._state.restore(meta, chunks)
        self._passed = meta.get(f"{self._ledger.prefix}-passed")
        self._fresh = []
        mine = self._ledger.restored(meta, chunks)
        for name, table in mine:
            self._ledger.marks[name] = self._mark(table)
        self._waiting = self._latest([table for _, table in mine])

    def _latest(self, tables: Sequence[pa.Table]) -> pa.Table | None:
        """Return the last tuple of each key whose pane has not ended."""
        if not tables:
            return None
        table = pa.concat_tables(tables)
        if self._passed is not None:
            table = table.filter(pa.array(self._panes(_times(table)) >= self._passed))
        codes = self._state.keys.of(table)[::-1]
        _, last = np.unique(codes, return_index=True)
        return table.take(pa.array(np.sort(len(codes) - 1 - last)))

    @property
    def rows(self) -> int:
        return self._state.rows + (0 if self._waiting is None else self._waiting.num_rows)


def _times(table: pa.Table) -> Integers:
    times: Integers = table[TIME].to_numpy()
    return times


def _with(tuples: Tuples, columns: pa.Table) -> Tuples:
    return Tuples(columns, tuples.time, tuples.origin, tuples.number)


def _filled(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return a table with all columns of a schema, NULL where it has none."""
    columns = [
        table[field.name] if field.name in table.column_names else pa.nulls(table.num_rows, field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)
