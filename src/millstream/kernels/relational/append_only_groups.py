"""Aggregates over an append-only relation, with one accumulator for each group.

Most accumulators are a few numbers, so the number of groups bounds the state, and not the number of tuples
(LANDMARK and UNBOUNDED windows, and relations derived from them). Tuples come in order. Those of an
incomplete instant, or before the next slide, are accumulated at once; the state holds the previous rows of
their groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.jit import njit
from millstream.kernels.aggregates.accumulator import Parts, some
from millstream.kernels.aggregates.accumulator_selection import (
    Aggregate,
    argument_types,
    drops_copies,
    needs_values,
    plan,
)
from millstream.kernels.aggregates.keyed_state import KeyedState
from millstream.kernels.column_names import KEY, KEY2
from millstream.kernels.core import arrow_buffers
from millstream.kernels.core.buffers import Array, Buffer, Codes, Integers, frozen
from millstream.kernels.core.kernel import Change, Frontier, Tuples
from millstream.kernels.core.key_table import KeyTable
from millstream.kernels.core.state_chunks import Ledger
from millstream.kernels.core.time_order import MOST, as_order
from millstream.kernels.core.tuple_batch import cut, frontier_as_data, frontier_from_data
from millstream.kernels.relational.append_only_values import AppendOnlyValues
from millstream.kernels.relational.complete_instants import CompleteInstants
from millstream.kernels.relational.group_rows import as_changes, differences, group_rows, results_of
from millstream.kernels.relational.lifetimes import Lifetime, SlideInstants, at_slides
from millstream.kernels.specs import AggregateSpec, GroupSpec

_SHOWN = "__ms_shown"


class AppendOnlyGroups(CompleteInstants):
    """The rows of groups (the keys): each replaces the one before, and none goes for good."""

    def __init__(
        self, spec: GroupSpec, lifetime: Lifetime | None, slides: Sequence[SlideInstants] = ()
    ) -> None:
        super().__init__((lifetime,), slides)
        self._spec = spec
        self._ledger = Ledger("held")
        self._totals = _Totals(spec.aggregates)
        self._values: list[AppendOnlyValues] = []
        self._valued: list[Aggregate] = []
        self._pending: int | None = None
        """The instant at which tuples enter that have been added already."""

        self._held: list[pa.Table] = []
        """Previous rows of their groups, with the keys, in order of first tuple."""

        self._saved = 0
        """The number of these tables that are in the checkpoint."""

        self._held_codes = Buffer(np.int32)

    # ------------------------------------------------------------ tuples

    def process(self, tuples: Tuples, frontier: Frontier) -> Tuples:
        self._frontier = frontier
        self._is_float = tuples.time.dtype == np.float64
        enter = self._enter(as_order(tuples.time))
        if len(enter) and enter[-1] == MOST:
            # Tuples after the last slide have no effect.
            seen = int(np.searchsorted(enter, MOST))
            tuples, enter = cut(tuples, 0, seen), enter[:seen]
        columns = arrow_buffers.plain(tuples.columns)
        tuples = Tuples(columns, tuples.time, tuples.origin, tuples.number)
        codes = self._totals.codes(tuples)
        self._plan()
        out, last = [], self._last
        waiting = 0 if self._pending is None else int(np.searchsorted(enter, self._pending, "right"))
        self._wait(cut(tuples, 0, waiting), codes[:waiting])
        if self._pending is not None and self._pending <= last:
            out.append(self._complete(self._pending))
        complete = max(waiting, int(np.searchsorted(enter, last, "right")))
        now = slice(waiting, complete)
        out.append(self._follow(cut(tuples, waiting, complete), enter[now], codes[now]))
        if complete < len(enter):
            self._pending = int(enter[complete])
            assert enter[-1] == self._pending, "tuples come in order, and none is ahead of the frontier"
            self._wait(cut(tuples, complete, len(enter)), codes[complete:])
        changes = {
            name: pa.chunked_array([chunk for one, _ in out for chunk in one[name].chunks], column.type)
            for name, column in out[0][0].items()
        }
        given = self._changes(changes, np.concatenate([instants for _, instants in out]))
        self._tidy()
        return given

    def _enter(self, order: Integers) -> Integers:
        stay = self._stays[0]
        if stay is None:
            return order
        began, ended = stay.of(order, self._is_float)
        return at_slides(began, ended, self._slides)[0]

    def _plan(self) -> None:
        """Plan the aggregates that need values, once argument types are known."""
        types = self._totals.types
        if types is None or self._values:
            return
        specs = [spec for spec in self._spec.aggregates if needs_values(spec)]
        measures, self._valued = plan(specs, types, in_order=True)
        for number, measure in enumerate(measures):
            mine = [one.spec for one in self._valued if number in one.measures]
            distinct = all(drops_copies(spec) for spec in mine)
            self._values.append(AppendOnlyValues(measure, number, distinct=distinct))

    def _follow(
        self, tuples: Tuples, enter: Integers, codes: Codes
    ) -> tuple[dict[str, pa.ChunkedArray], Integers]:
        """Return the changes by tuples of complete instants."""
        touched, firsts, places = np.unique(codes, return_index=True, return_inverse=True)
        old = self._rows(tuples.columns.take(pa.array(firsts)), self._results_now(touched), len(touched))
        events, groups = _changed(frozen(enter), frozen(places.astype(np.int32)), len(touched))
        results = self._results_after(tuples, codes, events, self._times(enter[events]))
        new = self._rows(tuples.columns.take(pa.array(events)), results, len(events))
        return self._replaced(old, new, touched.astype(np.int32), groups, enter[events])

    def _wait(self, tuples: Tuples, codes: Codes) -> None:
        """Accumulate tuples of an incomplete instant or slide; hold the previous rows of their groups."""
        if not len(codes):
            return
        touched, firsts = np.unique(codes, return_index=True)
        met = np.sort(firsts[~np.isin(touched, self._held_codes.view)])
        if len(met):
            groups = codes[met]
            columns = tuples.columns.take(pa.array(met))
            held = self._rows(columns, self._results_now(groups), len(met))
            for name in (KEY, KEY2):
                if name in columns.column_names:
                    held = held.append_column(name, columns[name])
            self._held.append(held)
            self._held_codes.extend(groups)
        self._results_after(tuples, codes, None, self._times(np.zeros(0, np.int64)))

    def _complete(self, instant: int) -> tuple[dict[str, pa.ChunkedArray], Integers]:
        """Return the changes of the groups held for an instant that is now complete."""
        codes = self._held_codes.view.copy()
        held = pa.concat_tables(self._held)
        new = self._rows(held, self._results_now(codes), len(codes))
        numbers = np.arange(len(codes), dtype=np.int32)
        instants = np.full(len(codes), instant)
        self._pending, self._held, self._saved = None, [], 0
        self._held_codes.size = 0
        return self._replaced(held.select(new.column_names), new, codes, numbers, instants)

    def _replaced(
        self, old: pa.Table, new: pa.Table, codes: Codes, groups: Codes, instants: Integers
    ) -> tuple[dict[str, pa.ChunkedArray], Integers]:
        """Return the changes from old to new rows; ``groups`` are positions in ``codes`` and in ``old``."""
        rows = pa.concat_tables([old, new])
        place = np.where(self._totals.shown()[codes] > 0, np.arange(len(codes)), -1).astype(np.int32)
        sizes = np.ones(len(groups), np.int64)
        at, places, signs = differences(self._spec, rows, old.num_rows, groups, sizes, place)
        self._totals.show(codes)
        shown, keys = rows.take(pa.array(places)), self._totals.keys
        columns, positions = as_changes(self._spec, shown, keys, codes[groups[at]], signs, at)
        return {name: _chunked(column) for name, column in columns.items()}, instants[at[positions]]

    # ------------------------------------------------------------ results

    def _results_now(self, codes: Codes) -> dict[str, pa.Array]:
        """Return the current results of distinct groups."""
        codes = codes.astype(np.int32)
        times = np.zeros(len(codes), np.int64)
        totals = self._totals
        results = totals.results(totals.now(codes), times)
        parts = [one.now(len(totals.keys), codes) for one in self._values]
        return results | self._valued_results(parts, times)

    def _results_after(
        self, tuples: Tuples, codes: Codes, rows: Array | None, times: Array
    ) -> dict[str, pa.Array]:
        """Add tuples; return the results of their groups after the tuples at ``rows``."""
        totals = self._totals
        parts = totals.add(codes, tuples)
        valued = [one.add(len(totals.keys), codes, tuples, rows) for one in self._values]
        if rows is None:
            return {}
        return totals.results([some(part, rows) for part in parts], times) | self._valued_results(
            valued, times
        )

    def _valued_results(self, parts: Sequence[Parts], times: Array) -> dict[str, pa.Array]:
        measures = [one.measure for one in self._values]
        results = results_of(measures, self._valued, parts, times)
        return {one.spec.result: result for one, result in zip(self._valued, results, strict=True)}

    def _rows(self, columns: pa.Table, results: Mapping[str, pa.Array], count: int) -> pa.Table:
        groups = columns.select(list(self._spec.group_by)).columns
        return group_rows(self._spec, count, groups, [results[one.result] for one in self._spec.aggregates])

    # ------------------------------------------------------------ state

    def _tidy(self) -> None:
        if self._frontier.is_end:
            self._totals.start_over()
            for values in self._values:
                values.start_over()
        else:
            self._totals.tidy()

    def snapshot(self) -> Change:
        kept = [self._totals.snapshot(), *(values.snapshot() for values in self._values)]
        dropped = [name for change in kept for name in change.dropped]
        added = {name: table for change in kept for name, table in change.added.items()}
        if not self._saved:
            dropped += self._ledger.drop_all()
        if len(self._held) > self._saved:
            added |= self._ledger.add(pa.concat_tables(self._held[self._saved :]), (0, 0))
            self._saved = len(self._held)
        meta = {name: value for change in kept for name, value in change.meta.items()}
        meta |= {
            "frontier": frontier_as_data(self._frontier),
            "float": self._is_float,
            "pending": self._pending,
            **self._ledger.meta(),
        }
        return Change(added, tuple(dropped), meta)

    def restore(self, meta: Mapping[str, Any], chunks: Mapping[str, pa.Table]) -> None:
        self._frontier = frontier_from_data(meta.get("frontier"))
        self._is_float = bool(meta.get("float"))
        self._pending = meta.get("pending")
        self._totals.restore(meta, chunks)
        self._plan()
        for values in self._values:
            values.restore(meta, chunks, self._totals.keys)
        held = self._ledger.restored(meta, chunks)
        self._ledger.marks = {name: (0, 0) for name, _ in held}
        self._held = [table for _, table in held]
        self._saved = len(self._held)
        for table in self._held:
            self._held_codes.extend(self._totals.keys.of(table))

    @property
    def rows(self) -> int:
        return self._totals.rows + len(self._held_codes) + sum(values.rows for values in self._values)


class _Totals(KeyedState):
    """The accumulators of each group, and whether a row of it has been emitted."""

    def __init__(self, specs: Sequence[AggregateSpec]) -> None:
        self._all = specs
        super().__init__([spec for spec in specs if not needs_values(spec)], "keys")

    def _start_over(self) -> None:
        super()._start_over()
        self._shown = Buffer(np.uint8, 0)

    def start_over(self) -> None:
        self._start_over()

    def tidy(self) -> None:
        self._tidy()

    @property
    def types(self) -> pa.Schema | None:
        """The argument types of all aggregates, once known."""
        return self._types

    @property
    def keys(self) -> KeyTable:
        return self._keys

    def codes(self, tuples: Tuples) -> Codes:
        if self._types is None:
            self._types = argument_types(self._all, tuples.columns.schema)
            self._start_over()
        return self._codes(tuples)

    def shown(self) -> Array:
        self._shown.resize(len(self._keys))
        return self._shown.view

    def show(self, codes: Codes) -> None:
        self.shown()[codes] = 1
        self._note(codes)

    def add(self, codes: Codes, tuples: Tuples) -> list[Parts]:
        """Add tuples; return the accumulators of their groups after each."""
        return [
            measure.fold(codes, measure.of_tuples(tuples), self._grown(number), running=True)
            for number, measure in enumerate(self._measures)
        ]

    def now(self, codes: Codes) -> list[Parts]:
        return [
            measure.fold(codes, measure.zeros(len(codes)), self._grown(number), running=True)
            for number, measure in enumerate(self._measures)
        ]

    def results(self, parts: Sequence[Parts], times: Array) -> dict[str, pa.Array]:
        results = results_of(self._measures, self._aggregates, parts, times)
        return {one.spec.result: result for one, result in zip(self._aggregates, results, strict=True)}

    def _columns(self, codes: Array) -> dict[str, pa.Array]:
        return {**super()._columns(codes), _SHOWN: pa.array(self.shown()[codes])}

    def _import(self, table: pa.Table) -> Codes:
        codes = super()._import(table)
        self.shown()[codes] = arrow_buffers.values(arrow_buffers.single(table[_SHOWN]), np.uint8)
        return codes


def _chunked(column: pa.Array | pa.ChunkedArray) -> pa.ChunkedArray:
    return column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])


@njit(cache=True)
def _changed(instants: Integers, groups: Codes, count: int) -> tuple[Integers, Codes]:
    """Return the last tuple of each group at each instant, in order of the first tuples, and its group."""
    place = np.full(count, -1, np.int64)
    events, found = np.empty(len(groups), np.int64), np.empty(len(groups), np.int32)
    size, first = 0, 0
    for i in range(len(groups)):
        if i and instants[i] != instants[i - 1]:
            first = size
        group = groups[i]
        if place[group] < first:
            place[group] = size
            found[size] = group
            size += 1
        events[place[group]] = i
    return events[:size], found[:size]
