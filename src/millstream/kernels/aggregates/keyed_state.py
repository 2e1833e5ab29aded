"""One row of state for each key: accumulators and additional columns. Keys are never deleted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.jit import njit
from millstream.kernels.aggregates.accumulator import Accumulator, Parts
from millstream.kernels.aggregates.accumulator_selection import (
    Aggregate,
    argument_types,
    arguments_of,
    plan,
    with_arguments,
)
from millstream.kernels.core.buffers import Array, Buffer, Bytes, Codes, frozen
from millstream.kernels.core.kernel import Change, Tuples
from millstream.kernels.core.key_table import KeyTable
from millstream.kernels.core.state_chunks import Ledger, is_wasteful
from millstream.kernels.specs import AggregateSpec


class KeyedState:
    """Rows of keys. A snapshot writes those that have had tuples since the last one."""

    def __init__(self, specs: Sequence[AggregateSpec], name: str) -> None:
        self._specs = specs
        self._ledger = Ledger(name)
        self._types: pa.Schema | None = None
        self._start_over()

    def _start_over(self) -> None:
        self._keys = KeyTable()
        self._measures: list[Accumulator] = []
        self._aggregates: list[Aggregate] = []
        if self._types is not None:
            self._measures, self._aggregates = plan(self._specs, self._types, in_order=True)
        self._kept = [[Buffer(dtype, 0) for dtype in measure.parts.values()] for measure in self._measures]
        self._changed = Buffer(np.int32)
        """Keys that have had tuples since the last snapshot."""

        self._is_changed = Buffer(np.uint8, 0)

    def _codes(self, tuples: Tuples) -> Codes:
        """Return the codes of the keys of tuples, adding rows for new keys."""
        if self._types is None:
            self._types = argument_types(self._specs, tuples.columns.schema)
            self._start_over()
        codes = self._keys.of(tuples.columns)
        self._note(codes)
        return codes

    def _grown(self, number: int) -> Parts:
        """Return the parts of an accumulator, with room for all keys."""
        for buffer, part in zip(self._kept[number], self._measures[number].zeros(1), strict=True):
            buffer.resize(len(self._keys) if len(part) else 0)
        return tuple(buffer.view for buffer in self._kept[number])

    def _note(self, codes: Codes) -> None:
        keys = len(self._keys)
        count = len(self._changed)
        self._changed.size = _note(
            frozen(codes), self._is_changed.resize(keys), self._changed.reserve(keys), count
        )

    def _tidy(self) -> None:
        """Rebuild dictionaries, which hold all values ever seen, from the values that are still needed."""
        if any(is_wasteful(measure.words, len(self._keys)) for measure in self._measures):
            changed = self._changed.view.copy()
            table = self._export(np.arange(len(self._keys)))
            self._start_over()
            self._import(table)
            self._note(changed)

    def _columns(self, codes: Array) -> dict[str, pa.Array]:
        """Return the rows of keys as columns of state."""
        columns = self._keys.table(codes)
        for number, measure in enumerate(self._measures):
            parts = tuple(part[codes] if len(part) else part for part in self._grown(number))
            columns |= measure.to_table(parts)
        return columns

    def _export(self, codes: Array) -> pa.Table:
        assert self._types is not None, "there are no keys before types are known"
        return with_arguments(pa.table(self._columns(codes)), self._types)

    def _import(self, table: pa.Table) -> Codes:
        """Add rows of a table; later rows replace earlier ones of the same key."""
        codes = self._keys.of(table)
        for number, measure in enumerate(self._measures):
            for kept, part in zip(self._grown(number), measure.of_table(table), strict=True):
                if len(part):
                    kept[codes] = part
        return codes

    def snapshot(self) -> Change:
        ledger, keys = self._ledger, len(self._keys)
        changed = self._changed.view
        dropped: tuple[str, ...] = ()
        added: dict[str, pa.Table] = {}
        if keys == 0:
            dropped = ledger.drop_all()
        elif ledger.should_be_rewritten(len(changed), keys):
            dropped = ledger.drop_all()
            added = ledger.add(self._export(np.arange(keys)), (0, 0))
        elif len(changed):
            added = ledger.add(self._export(changed.copy()), (0, 0))
        self._is_changed.data[changed] = 0
        self._changed.size = 0
        return Change(added, dropped, ledger.meta())

    def restore(self, meta: Mapping[str, Any], chunks: Mapping[str, pa.Table]) -> None:
        mine = self._ledger.restored(meta, chunks)
        self._ledger.marks = {name: (0, 0) for name, _ in mine}
        self._types = arguments_of(mine[0][1].schema) if mine else None
        self._start_over()
        if mine:
            self._import(pa.concat_tables([table for _, table in mine]))

    @property
    def rows(self) -> int:
        return len(self._keys)


@njit(cache=True)
def _note(codes: Codes, is_changed: Bytes, changed: Codes, count: int) -> int:
    for code in codes:
        if not is_changed[code]:
            is_changed[code] = 1
            changed[count] = code
            count += 1
    return count
