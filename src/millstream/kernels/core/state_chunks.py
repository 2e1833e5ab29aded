"""A ledger of written state chunks: their names, rows, and when they can be dropped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

SPARE = 4096
"""Number of superfluous rows that is never worth a rewrite."""

MANY = 16
"""Number of chunks that is too many for few rows: reading and dropping one costs as much as many rows do."""

Mark = tuple[int, int]


def is_wasteful(rows: int, needed: int) -> bool:
    """Tell whether more than half of the rows are dead: then dropping them pays for rewriting the others."""
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
        """Tell whether most rows would be dead, or few rows are scattered over many chunks."""
        return is_wasteful(self.total + fresh, needed) or (len(self.rows) >= MANY and needed <= SPARE)

    def add(self, table: pa.Table, mark: Mark) -> dict[str, pa.Table]:
        """Return the chunk to write: the table under a new name, or none if it is empty."""
        if not table.num_rows:
            return {}
        name = f"{self.prefix}-{self.serial:09d}"
        self.serial += 1
        self.rows[name] = table.num_rows
        self.marks[name] = mark
        return {name: table}

    def drop_before(self, mark: Mark) -> tuple[str, ...]:
        """Return the names of chunks all of whose rows come before a mark."""
        return self._drop([name for name, last in self.marks.items() if last < mark])

    def drop_all(self) -> tuple[str, ...]:
        return self._drop(list(self.rows))

    def _drop(self, names: Iterable[str]) -> tuple[str, ...]:
        for name in names:
            del self.rows[name], self.marks[name]
        return tuple(names)

    def restored(self, meta: Mapping[str, Any], chunks: Mapping[str, pa.Table]) -> list[tuple[str, pa.Table]]:
        """Restore the ledger; return its chunks, oldest first, whose marks the caller sets."""
        self.serial = int(meta.get(f"{self.prefix}-serial", 0))
        mine = sorted((name, table) for name, table in chunks.items() if name.startswith(f"{self.prefix}-"))
        self.rows = {name: table.num_rows for name, table in mine}
        self.marks = {}
        return mine

    def meta(self) -> dict[str, int]:
        return {f"{self.prefix}-serial": self.serial}
