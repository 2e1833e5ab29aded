"""State of a machine in chunks: the changes of a micro-batch, and deleted rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.kernels.column_names import KEY, KEY2
from millstream.kernels.core.buffers import Codes
from millstream.kernels.core.kernel import Change
from millstream.kernels.core.key_table import KeyTable
from millstream.kernels.core.state_chunks import Ledger, is_wasteful
from millstream.kernels.patterns.key_encoding import KeyEncoding
from millstream.kernels.udas.compiled_machine import Keys
from millstream.kernels.udas.local_tables import ID, LocalTableState
from millstream.kernels.udas.machine_protocol import machine_of
from millstream.program.program import Program
from millstream.program.python_program import PythonProgram

_NEVER = (2**63 - 1, 0)
"""Mark of chunks that no frontier makes superfluous."""

_NUMBER = "__ms_instance"

Needed = tuple[pa.Table, list[pa.Table], list[int]]
"""Instances, the rows of their tables, and the numbers of the next rows."""


class MachineState:
    """A machine, the keys of its instances, and what snapshots have written of both.

    A chunk of instances has those that changed, as they were then; of several the last counts. A chunk of a
    table has rows that changed, and one beside it the numbers of deleted rows. States of machines that take
    the same tuples may share a ``coding``, which is then rebuilt for all of them at once.
    """

    def __init__(
        self, program: Program | PythonProgram, prefix: str, coding: KeyEncoding | None = None
    ) -> None:
        self._program, self._prefix = program, prefix
        self.begin(coding or KeyEncoding())
        tables = len(self.machine.kept)
        self._instances = Ledger(f"{prefix}-instances")
        self._rows = [Ledger(f"{prefix}-rows{i}") for i in range(tables)]
        self._gone = [Ledger(f"{prefix}-gone{i}") for i in range(tables)]

    def begin(self, coding: KeyEncoding) -> None:
        """Start with no instances."""
        self._coding = coding
        self.machine = machine_of(self._program, coding.words)
        self._is_new = False
        """True if the changes are not known any more, so that everything is written."""

    @property
    def keys(self) -> KeyTable:
        return self._coding.keys

    def codes(self, table: pa.Table) -> Codes:
        """Return the instances of tuples, which then may change."""
        codes = self._coding.codes(table)
        self.machine.reserve(len(self.keys), table.num_rows)
        return codes

    def touch(self, codes: Codes) -> None:
        self._coding.touch(codes)

    @property
    def rows(self) -> int:
        return self.machine.rows

    def is_wasteful(self) -> bool:
        """Tell whether most of the memory is garbage."""
        rows = self.rows
        return is_wasteful(max(len(self.keys), self.machine.words), 2 * rows)

    def start_over(self) -> None:
        """Rebuild the state from the rows that are needed."""
        needed = self.needed()
        self.begin(KeyEncoding())
        self.keep(needed)

    def needed(self) -> Needed:
        instances, tables = self._everything()
        return instances, tables, [table.next_id for table in self.machine.kept]

    def keep(self, needed: Needed) -> None:
        """Load rows after a rebuild."""
        instances, tables, numbers = needed
        self._is_new = True
        self._load(instances, tables)
        for table, number in zip(self.machine.kept, numbers, strict=True):
            table.next_id = number

    # ------------------------------------------------------------ writing

    def _everything(self) -> tuple[pa.Table, list[pa.Table]]:
        codes = np.flatnonzero(self.machine.instances["alive"][: len(self.keys)]).astype(np.int32)
        instances = self.machine.instance_table(codes, self.keys.table)
        kept = enumerate(self.machine.kept)
        tables = [table.table(table.live, self._owners(i), self.machine.column) for i, table in kept]
        return instances, tables

    def _owners(self, _table: int) -> Keys:
        """Return the columns that identify the instances of a table."""
        return self.keys.table

    def _owned(self, _table: int, stored: pa.Table) -> tuple[Codes, int]:
        """Return the instances of the rows of a table, and the number of instances."""
        owners = self.keys.of(stored)
        return owners, len(self.keys)

    def snapshot(self) -> Change:
        return self.change(self._coding.touched())

    def change(self, touched: Codes) -> Change:
        """Return the changes to write if these instances may have changed."""
        changed = [table.changed() for table in self.machine.kept]
        added: dict[str, pa.Table] = {}
        dropped: tuple[str, ...] = ()
        fresh = len(touched) + sum(len(rows) + len(gone) for rows, gone in changed)
        ledgers = [self._instances, *self._rows, *self._gone]
        total = sum(ledger.total for ledger in ledgers)
        alive = self.rows
        if self._is_new or self._instances.should_be_rewritten(total - self._instances.total + fresh, alive):
            self._is_new = False
            for ledger in ledgers:
                dropped += ledger.drop_all()
            instances, tables = self._everything()
            added |= self._instances.add(instances, _NEVER)
            for ledger, table in zip(self._rows, tables, strict=True):
                added |= ledger.add(table, _NEVER)
        else:
            instances = self.machine.instance_table(touched, self.keys.table)
            added |= self._instances.add(instances, _NEVER)
            for i, (table_, (rows, gone)) in enumerate(zip(self.machine.kept, changed, strict=True)):
                table = table_.table(rows, self._owners(i), self.machine.column)
                added |= self._rows[i].add(table, _NEVER)
                added |= self._gone[i].add(pa.table({ID: pa.array(gone)}), _NEVER)
        meta: dict[str, Any] = {}
        for ledger in ledgers:
            meta |= ledger.meta()
        for i, table_ in enumerate(self.machine.kept):
            meta[f"{self._prefix}-next{i}"] = table_.next_id
        meta[f"{self._prefix}-keys"] = list(self.keys.columns)
        return Change(added, dropped, meta)

    # ------------------------------------------------------------ reading

    def restore(self, meta: Mapping[str, Any], chunks: Mapping[str, pa.Table]) -> None:
        self.begin(KeyEncoding())
        self.read(meta, chunks)

    def read(self, meta: Mapping[str, Any], chunks: Mapping[str, pa.Table]) -> None:
        """Load persisted chunks into an empty state."""
        found = []
        for ledger in [self._instances, *self._rows, *self._gone]:
            mine = ledger.restored(meta, chunks)
            ledger.marks = {name: _NEVER for name, _ in mine}
            found.append([table for _, table in mine])
        if not any(found):
            return
        count = len(self._rows)
        instances = _latest(pa.concat_tables(found[0])) if found[0] else None
        tables = []
        for rows, gone in zip(found[1 : 1 + count], found[1 + count :], strict=True):
            tables.append(_remaining(rows, gone))
        self._load(instances, tables)
        for i, table in enumerate(self.machine.kept):
            table.next_id = int(meta[f"{self._prefix}-next{i}"])

    def _load(self, instances: pa.Table | None, tables: list[pa.Table | None] | list[pa.Table]) -> None:
        if instances is not None and instances.num_rows:
            alive = np.asarray(instances["alive"]) != 0
            instances = instances.filter(pa.array(alive))
            codes = self.keys.of(instances)
            self.machine.reserve(len(self.keys), 0)
            self.machine.restore_instances(instances, codes)
        for i, (state, table) in enumerate(zip(self.machine.kept, tables, strict=True)):
            if table is None or not table.num_rows:
                continue
            owners, count = self._owned(i, table)
            rows = table
            self.machine.reserve(len(self.keys), 0)
            if isinstance(state, LocalTableState) and state.layout.queue:
                firsts = np.zeros(len(self.keys), np.int64)
                known = state.stored_firsts[: len(firsts)]
                firsts[: len(known)] = known
                stays = np.asarray(table[ID]) >= firsts[owners]
                stays &= self.machine.instances["alive"][owners] != 0
                rows, owners = table.filter(pa.array(stays)), owners[stays]
            next_id = state.next_id
            state.restore(rows, owners, count, self.machine.column)
            state.next_id = max(next_id, state.next_id)


def _latest(instances: pa.Table) -> pa.Table:
    """Return the last version of each instance."""
    keys = [name for name in (KEY, KEY2) if name in instances.column_names]
    numbered = instances.append_column(_NUMBER, pa.array(np.arange(instances.num_rows)))
    if not keys:
        return instances.slice(instances.num_rows - 1, 1)
    last = numbered.group_by(keys).aggregate([(_NUMBER, "max")])
    return instances.take(last[f"{_NUMBER}_max"].combine_chunks().sort())


def _remaining(rows: list[pa.Table], gone: list[pa.Table]) -> pa.Table | None:
    """Return the last versions of rows that are not deleted, in the order of their numbers."""
    if not rows:
        return None
    table = pa.concat_tables(rows)
    if gone:
        numbers = pa.concat_tables(gone)[ID].combine_chunks()
        table = table.filter(pc.invert(pc.is_in(table[ID], value_set=numbers)))
    ids = np.asarray(table[ID])
    _, last = np.unique(ids[::-1], return_index=True)
    return table.take(pa.array(len(ids) - 1 - last))
