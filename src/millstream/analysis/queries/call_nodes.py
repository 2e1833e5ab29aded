"""Calls of aggregates: plain, over a window, over a star of a pattern."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from millstream.analysis.queries.resolved_expression import ColumnRef, Expr
from millstream.catalog.entries import Aggregate
from millstream.errors import Span
from millstream.ir.python_aggregate import PythonBody
from millstream.ir.typed_nodes import Body
from millstream.quantity import Distance, Duration, Rows
from millstream.types import BOOLEAN, Type


@dataclass(frozen=True)
class SortKey:
    """Sort order of an argument."""

    descending: bool = False
    nulls_first: bool = True


@dataclass(frozen=True)
class Bodies:
    """The checked versions of an aggregate, or why there are none: something in it cannot be run yet."""

    base: Body | PythonBody | None = None
    window: Body | PythonBody | None = None
    unfit: str | None = None
    panes: Panes | None = None


@dataclass(frozen=True)
class Panes:
    """The aggregates of an ALGEBRAIC one that compute a pane and combine panes."""

    pane: Body
    combined: Bodies


@dataclass(frozen=True)
class AggregateCall:
    """``sum(price)``; the result goes on as a column of its own, ``result``.

    What stands in WITHIN GROUP (ORDER BY ...) is an argument too: the first one of percentile_cont and the
    like, the last ones of listagg.
    """

    name: str
    arguments: tuple[Expr, ...]
    type: Type
    result: ColumnRef
    distinct: bool = False
    filter: Expr | None = None
    user: Aggregate | None = None
    ignore_nulls: bool = False
    """True if first, last, collect_list and the like leave out NULLs."""
    within: tuple[SortKey, ...] = ()
    """The order in WITHIN GROUP."""
    bodies: Bodies | None = field(default=None, compare=False, repr=False)
    """Versions of an aggregate of the user's for arguments of these types."""
    text: str = field(default="", compare=False)
    span: Span | None = field(default=None, compare=False, repr=False)
    constants: tuple[Any, ...] | None = field(default=None, compare=False, repr=False)
    """Values of the constant arguments of a built-in aggregate, None if they are not constants."""

    def __str__(self) -> str:
        return f"{self.text} AS {self.result}"


def is_running(call: AggregateCall) -> bool:
    """Tell whether an aggregate speaks with every tuple: then what stands beside it is of that tuple."""
    return call.user is not None and not call.user.window and not call.user.blocking


COMPLETE = ColumnRef("", "complete", BOOLEAN)
"""Column that is true where a result of OVER with EMIT EVERY is that of a whole slot."""


@dataclass(frozen=True)
class Frame:
    """Extent of an OVER window: a number of rows, a distance along the timestamp, or None (unbounded)."""

    rows: bool
    preceding: Rows | Duration | Distance | None

    def __str__(self) -> str:
        reach = "UNBOUNDED" if self.preceding is None else self.preceding
        if isinstance(self.preceding, Rows):
            reach = str(self.preceding.count)
        return f"{'ROWS' if self.rows else 'RANGE'} {reach} PRECEDING"


@dataclass(frozen=True)
class OverCall:
    """``agg(...) OVER (...)``."""

    call: AggregateCall
    partition_by: tuple[Expr, ...]
    frame: Frame
    slide: Rows | Duration | None = None
    active_expiration: bool = False
    emit_every: Rows | Duration | None = None
    along: ColumnRef | None = None
    """On a table: the column that gives its order."""

    def __str__(self) -> str:
        parts = [f"PARTITION BY {', '.join(map(str, self.partition_by))}"] if self.partition_by else []
        parts += [f"ORDER BY {self.along.name}"] if self.along else []
        parts.append(str(self.frame))
        if self.slide:
            parts.append(f"SLIDE {self.slide}")
        if self.active_expiration:
            parts.append("ACTIVE EXPIRATION")
        if self.emit_every:
            parts.append(f"EMIT EVERY {self.emit_every}")
        return f"{self.call.text} OVER ({' '.join(parts)}) AS {self.call.result}"


@dataclass(frozen=True)
class OrderKey:
    """An expression of ORDER BY."""

    expr: Expr
    descending: bool = False
    nulls_first: bool = True

    def __str__(self) -> str:
        usual = self.nulls_first != self.descending
        nulls = "" if usual else f" NULLS {'FIRST' if self.nulls_first else 'LAST'}"
        return f"{self.expr}{' DESC' if self.descending else ''}{nulls}"


@dataclass(frozen=True)
class RankFrame:
    """Bounds of a frame relative to the current row; None is unbounded, and 0 by RANGE includes its peers."""

    rows: bool
    start: int | None
    end: int | None


@dataclass(frozen=True)
class RankCall:
    """A ranking function OVER the rows of a report."""

    name: str
    type: Type
    result: ColumnRef
    partition_by: tuple[Expr, ...] = ()
    order_by: tuple[OrderKey, ...] = ()
    argument: Expr | None = None
    default: Expr | None = None
    number: int = 1
    """The distance of lag and lead, the place of nth_value, the buckets of ntile."""
    ignore_nulls: bool = False
    frame: RankFrame = RankFrame(rows=False, start=None, end=0)
    text: str = field(default="", compare=False)
    span: Span | None = field(default=None, compare=False, repr=False)

    def expressions(self) -> tuple[Expr, ...]:
        values = (value for value in (self.argument, self.default) if value is not None)
        return (*values, *self.partition_by, *(key.expr for key in self.order_by))

    def __str__(self) -> str:
        return f"{self.text} AS {self.result}"
