"""The base of physical plans: nodes with the columns of their output and the choices behind them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from enum import Enum
from functools import cached_property
from typing import Self

import pyarrow as pa

from millstream.analysis.queries.resolved_expression import ColumnRef, Expr
from millstream.kernels.core.arrow_types import arrow_type
from millstream.stage.pipeline import KEEP, MARK, TIME
from millstream.types import TIMESTAMP, UNKNOWN, Type


class Role(Enum):
    """The use of a column."""

    DATA = "data"
    KEY = "key"
    ARGUMENT = "argument"
    RESULT = "result"
    TIME = "time"
    SORT = "sort"
    MARK = "mark"

    @property
    def is_hidden(self) -> bool:
        return self in (Role.TIME, Role.SORT, Role.MARK)


@dataclass(frozen=True)
class Column:
    """A column of a layout: its name, its type and, where it is computed, the expression."""

    name: str
    type: Type
    expr: Expr | None = None
    role: Role = Role.DATA
    relation: str = ""

    @property
    def ref(self) -> ColumnRef:
        return ColumnRef(self.relation, self.name, self.type)


Layout = tuple[Column, ...]


@dataclass(frozen=True)
class Choice:
    """A decision of the planner, with its reason and its cost, as EXPLAIN prints it."""

    what: str
    chosen: str
    why: str = ""
    cost: str = ""

    def __str__(self) -> str:
        cost = f", {self.cost}" if self.cost else ""
        why = f" ({self.why})" if self.why else ""
        return f"{self.what}: {self.chosen}{cost}{why}"


class Guard(Enum):
    """The rows on which expressions are evaluated: tuples only, and those that are wanted."""

    NONE = ""
    KEPT = f"`{KEEP}`"
    TIMED = f"`{TIME}` IS NOT NULL"
    UNMARKED = f"`{MARK}` IS NULL"


class PhysicalNode(ABC):
    """An operator of a physical plan."""

    @property
    @abstractmethod
    def layout(self) -> Layout:
        """The columns of the output, with the hidden ones that are known before the query runs."""

    @property
    def choices(self) -> tuple[Choice, ...]:
        return ()

    @cached_property
    def inputs(self) -> tuple[PhysicalNode, ...]:
        return tuple(value for f in fields(self) if isinstance(value := getattr(self, f.name), PhysicalNode))  # type: ignore[arg-type]

    def map_inputs(self, change: Callable[[PhysicalNode], PhysicalNode]) -> Self:
        """Return the same node over changed inputs."""
        changed = {
            f.name: change(value)
            for f in fields(self)  # type: ignore[arg-type]
            if isinstance(value := getattr(self, f.name), PhysicalNode)
        }
        return replace(self, **changed) if changed else self  # type: ignore[type-var]

    @cached_property
    def streaming(self) -> bool:
        """Whether the output is a stream."""
        return any(node.streaming for node in self.inputs)

    def walk(self) -> Iterator[PhysicalNode]:
        """Yield this node and all below it, each before its inputs."""
        waiting: list[PhysicalNode] = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += reversed(node.inputs)

    @property
    def shown(self) -> Layout:
        """The columns that are no hidden ones."""
        return tuple(one for one in self.layout if not one.role.is_hidden)

    def has(self, name: str) -> bool:
        """Tell whether there is a hidden column of this name."""
        return any(one.name == name and one.role.is_hidden for one in self.layout)

    @property
    def time_type(self) -> Type:
        """The type of the timestamps that travel along."""
        return next((one.type for one in self.layout if one.name == TIME), TIMESTAMP)

    @property
    def sorting(self) -> Layout:
        """The columns that sort rows with the same timestamp."""
        return tuple(one for one in self.layout if one.role is Role.SORT)


def schema_of(layout: Layout) -> pa.Schema:
    """Return the columns of a layout as Arrow has them."""
    return pa.schema([pa.field(c.name, arrow_of(c.type)) for c in layout])


def arrow_of(type_: Type) -> pa.DataType:
    """Return the Arrow type of a type; that of a column that only Spark knows is null until it is bound."""
    return pa.null() if type_ == UNKNOWN else arrow_type(type_)
