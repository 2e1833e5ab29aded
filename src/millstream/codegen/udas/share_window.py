"""Several aggregates over one window as one, so that the tuples of the window are kept once.

What each returns goes out in columns of its own, behind one that tells whose row it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from millstream.ir import typed_nodes
from millstream.ir.typed_nodes import INWINDOW
from millstream.types import INT, Field

_APART = 10_000
"""Scans of different aggregates have numbers that are so far apart."""


def can_share(body: typed_nodes.Body) -> bool:
    """Tell whether an aggregate does not change its window and does not use ``sqlcode``."""
    parts = typed_nodes.walk(tuple(body.statements()))
    return not body.deletes_from_window and not any(isinstance(part, typed_nodes.SqlCode) for part in parts)


def share_window(
    bodies: Sequence[typed_nodes.Body], places: Sequence[Sequence[int]], parameters: tuple[Field, ...]
) -> typed_nodes.Body:
    """Merge window versions; ``places`` has the position of each parameter among ``parameters``."""
    returns = [Field("which", INT)]
    for number, body in enumerate(bodies):
        returns += [Field(f"r{number}_{i}", field.type) for i, field in enumerate(body.returns)]
    tables = [typed_nodes.Table(INWINDOW, parameters)]
    parts = []
    first = 1
    for number, (body, own) in enumerate(zip(bodies, places, strict=True)):
        local = frozenset(table.name for table in body.tables)
        part = _Part(number, own, parameters, tuple(returns), first, _scans_of_window(body), local)
        parts.append((part, body))
        tables += [typed_nodes.Table(part.named(t.name), t.fields) for t in body.tables if t.name != INWINDOW]
        first += len(body.returns)

    def block(name: str) -> tuple[typed_nodes.Statement, ...]:
        return tuple(part.changed(s) for part, body in parts for s in body.blocks[name])

    return typed_nodes.Body(
        " and ".join(dict.fromkeys(body.name for body in bodies)),
        True,
        parameters,
        tuple(returns),
        tuple(tables),
        block("INITIALIZE"),
        block("ITERATE"),
        (),
        block("EXPIRE"),
        tuple(dict.fromkeys(table for body in bodies for table in body.given)),
    )


def _scans_of_window(body: typed_nodes.Body) -> frozenset[int]:
    parts = typed_nodes.walk(tuple(body.statements()))
    return frozenset(
        part.number for part in parts if isinstance(part, typed_nodes.Scan) and part.table == INWINDOW
    )


@dataclass(frozen=True)
class _Part:
    """One aggregate of a shared window, with the positions of its parameters and tables."""

    number: int
    places: Sequence[int]
    parameters: tuple[Field, ...]
    returns: tuple[Field, ...]
    first: int
    of_window: frozenset[int]
    local: frozenset[str]

    def named(self, table: str) -> str:
        """Return the name of a table in the shared body; the window and catalog tables are shared."""
        return f"{table} {self.number}" if table in self.local and table != INWINDOW else table

    def changed(self, part: Any) -> Any:
        """Return a part of the body as a part of the whole."""
        if isinstance(part, tuple):
            return tuple(map(self.changed, part))
        if not isinstance(part, typed_nodes.PARTS):
            return part
        part = replace(part, **{f.name: self.changed(getattr(part, f.name)) for f in fields(part)})
        match part:
            case typed_nodes.Parameter() | typed_nodes.Oldest():
                return replace(part, index=self.places[part.index])
            case typed_nodes.Column():
                index = self.places[part.index] if part.scan in self.of_window else part.index
                return replace(part, scan=self._scan(part.scan), index=index)
            case typed_nodes.Scan(table=str() as table):
                known = self.parameters if table == INWINDOW else part.fields
                return replace(part, number=self._scan(part.number), table=self.named(table), fields=known)
            case typed_nodes.Scan():
                return replace(part, number=self._scan(part.number))
            case typed_nodes.Insert(table=str() as table):
                return replace(part, table=self.named(table))
            case typed_nodes.Insert():
                rows = tuple(map(self._padded, part.rows))
                query = None if part.query is None else self._query(part.query)
                return replace(part, rows=rows, query=query)
        return part

    def _scan(self, number: int) -> int:
        return number + _APART * self.number

    def _padded(self, row: tuple[typed_nodes.Expr, ...]) -> tuple[typed_nodes.Expr, ...]:
        """Return a returned row among the columns of all."""
        padded: list[typed_nodes.Expr] = [typed_nodes.Constant(None, field.type) for field in self.returns]
        padded[0] = typed_nodes.Constant(self.number, INT)
        padded[self.first : self.first + len(row)] = row
        return tuple(padded)

    def _query(self, query: typed_nodes.Query) -> typed_nodes.Query:
        return replace(
            query,
            outputs=self._padded(query.outputs),
            names=tuple(field.name for field in self.returns),
            united=tuple(map(self._query, query.united)),
        )
