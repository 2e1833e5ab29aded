"""A program: all that kernels need to run a UDA. Plain data, so that it can be sent to workers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from millstream.ir.value_kinds import DOUBLE, kind_of
from millstream.program.row_layout import CHAIN, ENDS, NODE
from millstream.types import Field, Type


@dataclass(frozen=True)
class Array:
    """An array of a table: its name without the table's, its type, and the unit that has an element."""

    name: str
    dtype: str
    per: str
    """``row``, ``instance``, ``bucket`` or ``meta``."""
    fill: int = 0
    width: int = 1
    """Number of consecutive elements for each unit."""


@dataclass(frozen=True)
class TableLayout:
    """Layout of a local table.

    A table of at most one ``single`` row is a value for each instance. Others are rows linked in the order in
    which they were inserted, with ``hashes`` (the columns of each index), ``ordered`` columns with a tree and
    columns whose values are ``counted``. ``bound`` is the number of rows that a tuple can add, None if
    unknown.

    Rows of a window have a ``place``: their time, or their number. They are a ``queue`` where they only leave
    in the order in which they came, and of those a ``ring`` where one leaves for each that comes, once it is
    full. A ``passing`` table lives only while a statement runs. A ``given`` one is a table of the catalog:
    the same for all instances, and never changed. ``certain`` columns never have a NULL.
    """

    name: str
    prefix: str
    fields: tuple[Field, ...]
    single: bool
    hashes: tuple[tuple[int, ...], ...] = ()
    ordered: tuple[int, ...] = ()
    counted: tuple[int, ...] = ()
    bound: int | None = None
    placed: bool = False
    passing: bool = False
    given: bool = False
    queue: bool = False
    ring: bool = False
    certain: tuple[int, ...] = ()

    def arrays(self) -> Iterator[Array]:
        per = "instance" if self.single else "row"
        if self.single:
            yield Array("rows", "uint8", "instance")
        else:
            yield Array("meta", "int64", "meta")
            for name in ("next", "owner") if self.queue else ("next", "prev", "owner", "touched"):
                yield Array(name, "int32", "row", -1)
            yield Array("id", "int64", "row")
            if not self.queue:
                yield Array("mark", "uint8", "row")
                yield Array("gone", "int64", "row")
            yield Array("head", "int32", "instance", -1)
            yield Array("tail", "int32", "instance", -1)
            if not self.ring:
                yield Array("count", "int64", "instance")
                if self.placed:
                    yield Array("place", "int64", "row")
        for i, column in enumerate(self.fields):
            yield Array(f"c{i}", dtype_of(column.type), per)
            if i not in self.certain:
                yield Array(f"n{i}", "uint8", per)
        for i in range(len(self.hashes)):
            yield Array(f"heads{i}", "int32", "bucket", -1)
            yield Array(f"tails{i}", "int32", "bucket", -1)
            yield Array(f"chain{i}", "int32", "row", -1, len(CHAIN))
        for i in range(len(self.ordered)):
            yield Array(f"ends{i}", "int32", "instance", -1, len(ENDS))
            yield Array(f"nodes{i}", "int32", "row", -1, len(NODE))
        for i in self.counted:
            yield Array(f"known{i}", "int64", "instance")


@dataclass(frozen=True)
class InterpretedCall:
    """A call of an interpreted function.

    With a ``content`` (``program.content_aggregate``) it takes a list: the arguments of many tuples.
    """

    name: str
    arguments: tuple[Type, ...]
    result: Type
    content: Any = None


@dataclass(eq=False)
class CatalogRows:
    """A table of the catalog that a program reads, with its rows as an Arrow table once a query starts."""

    name: str
    fields: tuple[Field, ...]
    rows: Any = field(default=None, repr=False)


@dataclass(frozen=True)
class Program:
    """A UDA, ready to be run in one mode.

    ``texts`` are its statements, by the numbers that failures have. ``words`` are constants to be looked up
    in dictionaries.
    """

    name: str
    mode: str
    parameters: tuple[Field, ...]
    returns: tuple[Field, ...]
    tables: tuple[TableLayout, ...]
    source: str
    texts: tuple[str, ...] = ()
    words: tuple[tuple[object, Type], ...] = ()
    labelled: tuple[Type, ...] = ()
    """Types of words whose order it needs."""
    hashed: tuple[tuple[str, Type], ...] = ()
    """Hash functions, and types of words whose hashes it needs."""
    outside: tuple[InterpretedCall, ...] = ()
    arrays: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Arrays that its functions take, in order, with their types."""
    grows: bool = False
    """True if it may request larger arrays while it runs."""
    returned: int | None = None
    """Largest number of rows that a tuple can return, None if unknown."""
    given: tuple[CatalogRows, ...] = ()
    """Tables of the catalog that it reads, in the order of their layouts."""

    @property
    def is_compiled(self) -> bool:
        return not self.outside

    @property
    def digest(self) -> str:
        tables = " ".join(given.name for given in self.given)
        return hashlib.sha256(f"{self.source} {tables}".encode()).hexdigest()[:20]


def dtype_of(type_: Type) -> str:
    return "float64" if kind_of(type_) == DOUBLE else "int64"
