"""The checked form of an aggregate's body: what its statements do, with every name and type settled.

Conversions that SQL makes unasked are explicit here, conditions are taken apart at their ANDs, and a column
is known by the scan that reads it. The compiler and EXPLAIN read nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, get_args

from millstream.errors import Span
from millstream.types import BOOLEAN, INT, Field, Type

# ---------------------------------------------------------------- expressions


@dataclass(frozen=True)
class Constant:
    """A value as Python has it: instants, dates and intervals as integers, decimals without their point."""

    value: Any
    type: Type


@dataclass(frozen=True)
class Parameter:
    """An argument of the tuple that the block is about."""

    index: int
    type: Type


@dataclass(frozen=True)
class Column:
    """A column of the row that a scan is at."""

    scan: int
    index: int
    type: Type


@dataclass(frozen=True)
class SqlCode:
    """0 if the statement before changed or returned a row, else 100."""

    type: Type = INT


@dataclass(frozen=True)
class Oldest:
    """A column of the n-th oldest tuple in the window; NULL if there are fewer."""

    position: Expr
    index: int
    type: Type


@dataclass(frozen=True)
class Call:
    """An operator or a function of values; arguments have the types that it wants."""

    name: str
    arguments: tuple[Expr, ...]
    type: Type


@dataclass(frozen=True)
class Cast:
    """A conversion; ``gently`` gives NULL where it fails."""

    argument: Expr
    type: Type
    gently: bool = False


@dataclass(frozen=True)
class Case:
    """The value of the first branch whose condition holds."""

    branches: tuple[tuple[Expr, Expr], ...]
    otherwise: Expr | None
    type: Type


@dataclass(frozen=True)
class Scalar:
    """The only value of a query, NULL if it has no row."""

    query: Query
    type: Type


@dataclass(frozen=True)
class Exists:
    """Condition that a query has a row."""

    query: Query
    type: Type = BOOLEAN


@dataclass(frozen=True)
class InQuery:
    """IN: whether some row of a query equals the values."""

    values: tuple[Expr, ...]
    query: Query
    type: Type = BOOLEAN


@dataclass(frozen=True)
class GroupColumn:
    """After grouping, a key of the group or (with an index behind those) an aggregate over it."""

    index: int
    type: Type


Expr = (
    Constant
    | Parameter
    | Column
    | SqlCode
    | Oldest
    | Call
    | Cast
    | Case
    | Scalar
    | Exists
    | InQuery
    | GroupColumn
)

# ---------------------------------------------------------------- queries


@dataclass(frozen=True)
class Scan:
    """Rows read by a query, under a number of their own in the whole body.

    They are those of a local table, of a table of the catalog, or of another query. The rows of a ``left``
    join that find no partner come once, with NULLs.
    """

    number: int
    table: str | None = None
    query: Query | None = None
    fields: tuple[Field, ...] = ()
    left: bool = False
    on: tuple[Expr, ...] = ()


@dataclass(frozen=True)
class Aggregation:
    """A call of an aggregate in a query, built-in or (``user``) the user's own."""

    name: str
    arguments: tuple[Expr, ...]
    type: Type
    distinct: bool = False
    filter: Expr | None = None
    user: Body | None = None
    column: int = 0
    """Column of the row that the user's aggregate returns."""
    every: bool = False
    """True if the query has a row for each that the user's aggregate returns, and not one value."""


@dataclass(frozen=True)
class Sorting:
    """A key of ORDER BY."""

    expr: Expr
    descending: bool = False
    nulls_first: bool = True


@dataclass(frozen=True)
class Query:
    """A SELECT. With ``keys`` or ``aggregates`` everything after WHERE is about groups.

    ``united`` queries follow with UNION ALL; each has as many outputs of the same types.
    """

    scans: tuple[Scan, ...]
    where: tuple[Expr, ...]
    outputs: tuple[Expr, ...]
    names: tuple[str, ...]
    is_grouped: bool = False
    keys: tuple[Expr, ...] = ()
    aggregates: tuple[Aggregation, ...] = ()
    having: Expr | None = None
    distinct: bool = False
    order: tuple[Sorting, ...] = ()
    limit: Expr | None = None
    united: tuple[Query, ...] = ()


# ---------------------------------------------------------------- statements


@dataclass(frozen=True)
class Insert:
    """INSERT INTO a local table, or (None) into RETURN: rows if the condition holds, or those of a query."""

    table: str | None
    rows: tuple[tuple[Expr, ...], ...] = ()
    where: Expr | None = None
    query: Query | None = None
    text: str = field(default="", compare=False)
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Update:
    """UPDATE of the rows of a scan; ``assigned`` are the numbers of columns and their new values."""

    scan: Scan
    assigned: tuple[tuple[int, Expr], ...]
    where: tuple[Expr, ...] = ()
    text: str = field(default="", compare=False)
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Delete:
    """DELETE of rows of a scan."""

    scan: Scan
    where: tuple[Expr, ...] = ()
    text: str = field(default="", compare=False)
    span: Span | None = field(default=None, compare=False)


Statement = Insert | Update | Delete

# ---------------------------------------------------------------- bodies


@dataclass(frozen=True)
class Table:
    """A local table, or one of the catalog."""

    name: str
    fields: tuple[Field, ...]


@dataclass(frozen=True)
class Body:
    """An aggregate for arguments of certain types."""

    name: str
    window: bool
    parameters: tuple[Field, ...]
    returns: tuple[Field, ...]
    tables: tuple[Table, ...]
    initialize: tuple[Statement, ...]
    iterate: tuple[Statement, ...]
    terminate: tuple[Statement, ...] = ()
    expire: tuple[Statement, ...] = ()
    given: tuple[Table, ...] = ()
    """The tables of the catalog that it reads."""

    def table(self, name: str) -> Table:
        return next(table for table in self.tables if table.name == name)

    @property
    def blocks(self) -> dict[str, tuple[Statement, ...]]:
        return {
            "INITIALIZE": self.initialize,
            "ITERATE": self.iterate,
            "TERMINATE": self.terminate,
            "EXPIRE": self.expire,
        }

    def statements(self) -> Iterator[Statement]:
        for block in self.blocks.values():
            yield from block

    @property
    def deletes_from_window(self) -> bool:
        return any(isinstance(s, Delete) and s.scan.table == INWINDOW for s in self.statements())


INWINDOW = "inwindow"
"""The table that the system keeps for a window aggregate."""


def walk(part: object) -> Iterator[object]:
    """Yield a part of a body and everything inside it, except the bodies of other aggregates.

    >>> from millstream.types import INT
    >>> [type(part).__name__ for part in walk(Call("+", (Parameter(0, INT), Constant(1, INT)), INT))]
    ['Call', 'Parameter', 'Constant']
    """
    waiting = [part]
    while waiting:
        part = waiting.pop()
        if isinstance(part, tuple):
            waiting += reversed(part)
        elif isinstance(part, PARTS):
            yield part
            values = [getattr(part, name) for name in part.__dataclass_fields__]
            waiting += [value for value in reversed(values) if isinstance(value, (tuple, *PARTS))]


PARTS = (*get_args(Expr), Scan, Aggregation, Sorting, Query, *get_args(Statement))
"""Classes of the parts of bodies."""
