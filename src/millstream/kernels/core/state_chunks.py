"""The chunks of state that have been written: which are there, how many rows they have, when they can go."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

SPARE = 4096
"""So many rows more than needed are never worth tidying up."""

MANY = 16
"""So many chunks are too many for few rows: each costs as much to read and to drop as many rows do."""

Mark = tuple[int, int]


def is_wasteful(rows: int, needed: int) -> bool:
    """Whether more than half of the rows are dead: rewriting those needed is paid for by those that go."""
    return rows > 2 * needed + SPARE


@dataclass
class Ledger:
    """Chunks by name, oldest first, each with its rows and with the mark of its last row.

    A chunk whose mark is passed is not needed any more. Names are never used twice.
    """

    prefix: str
    serial: int = 0
    rows: dict[str, int] = field(default_factory=dict)
    marks: dict[str, Mark] = field(default_factory=dict)

    @property
    def total(self) -> int:
        return sum(self.rows.values())

    def should_be_rewritten(self, fresh: int, needed: int) -> bool:
        """Whether most rows would be dead, or few rows are scattered over many chunks."""
        return is_wasteful(self.total + fresh, needed) or (len(self.rows) >= MANY and needed <= SPARE)

    def add(self, table: pa.Table, mark: Mark) -> dict[str, pa.Table]:
        """What to write: the table under a name of its own, or nothing if it is empty."""
        if not table.num_rows:
            return {}
        name = f"{self.prefix}-{self.serial:09d}"
        self.serial += 1
        self.rows[name] = table.num_rows
        self.marks[name] = mark
        return {name: table}

    def drop_before(self, mark: Mark) -> tuple[str, ...]:
        """The names of chunks all of whose rows come before a mark."""
        return self._drop([name for name, last in self.marks.items() if last < mark])

    def drop_all(self) -> tuple[str, ...]:
        return self._drop(list(self.rows))

    def _drop(self, names: Iterable[str]) -> tuple[str, ...]:
        for name in names:
            del self.rows[name], self.marks[name]
        return tuple(names)

    def restored(self, meta: Mapping[str, Any], chunks: Mapping[str, pa.Table]) -> list[tuple[str, pa.Table]]:
        """Take note of what was written; gives the chunks of this ledger, oldest first, to be given marks."""
        self.serial = int(meta.get(f"{self.prefix}-serial", 0))
        mine = sorted((name, table) for name, table in chunks.items() if name.startswith(f"{self.prefix}-"))
        self.rows = {name: table.num_rows for name, table in mine}
        self.marks = {}
        return mine

    def meta(self) -> dict[str, int]:
        return {f"{self.prefix}-serial": self.serial}
