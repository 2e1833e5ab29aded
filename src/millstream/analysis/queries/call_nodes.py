"""Calls of aggregates: plain, over a window, over a star of a pattern."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from millstream.analysis.queries.resolved_expression import ColumnRef, Expr
from millstream.catalog.entries import Aggregate
from millstream.errors import Span
from millstream.ir.python_aggregate import PythonBody
from millstream.ir.typed_nodes import Body
from millstream.quantity import Distance, Duration, Rows, negative, size
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


RANKS_ALONG = frozenset({"row_number", "rank", "dense_rank", "lag", "lead", "nth_value"})
"""Functions with OVER along the order of a stream that are no aggregates."""


def ranks_along(call: AggregateCall) -> bool:
    """Tell whether a call with OVER ranks tuples along the order of the stream, or looks at other ones."""
    return call.user is None and call.name in RANKS_ALONG


COMPLETE = ColumnRef("", "complete", BOOLEAN)
"""Column that is true where a result of OVER with EMIT EVERY is that of a whole slot."""


@dataclass(frozen=True)
class Frame:
    """Extent of an OVER window: from ``preceding`` before the current row to ``until`` before it.

    An amount is a number of rows, or a distance along the timestamp; a negative one is after the current row.
    ``preceding`` of None is unbounded, ``until`` of None is the current row itself.
    """

    rows: bool
    preceding: Rows | Duration | Distance | None
    until: Rows | Duration | Distance | None = None

    @property
    def follows(self) -> bool:
        """True if it has rows after the current row."""
        return self.until is not None and size(self.until) < 0

    def __str__(self) -> str:
        kind = "ROWS" if self.rows else "RANGE"
        start = "UNBOUNDED PRECEDING" if self.preceding is None else _bound(self.preceding)
        if self.until is None and (self.preceding is None or size(self.preceding) >= 0):
            return f"{kind} {start.replace('CURRENT ROW', '0 PRECEDING')}"
        return f"{kind} BETWEEN {start} AND {'CURRENT ROW' if self.until is None else _bound(self.until)}"


def _bound(distance: Rows | Duration | Distance) -> str:
    """Return a bound of a frame as it is written."""
    side = "PRECEDING"
    if size(distance) < 0:
        distance, side = negative(distance), "FOLLOWING"
    elif size(distance) == 0:
        return "CURRENT ROW"
    return f"{distance.count if isinstance(distance, Rows) else distance} {side}"


@dataclass(frozen=True)
class OverCall:
    """``agg(...) OVER (...)``."""

    call: AggregateCall
    partition_by: tuple[Expr, ...]
    frame: Frame
    slide: Rows | Duration | Distance | None = None
    active_expiration: bool = False
    emit_every: Rows | Duration | Distance | None = None
    along: ColumnRef | None = None
    """On a table: the column that gives its order."""

    def __str__(self) -> str:
        parts = [f"PARTITION BY {', '.join(map(str, self.partition_by))}"] if self.partition_by else []
        parts += [f"ORDER BY {self.along.name}"] if self.along else []
        parts += [] if ranks_along(self.call) and self.call.name != "nth_value" else [str(self.frame)]
        if self.slide:
            parts.append(f"SLIDE {_slide(self.slide)}")
        if self.active_expiration:
            parts.append("ACTIVE EXPIRATION")
        if self.emit_every:
            parts.append(f"EMIT EVERY {_slide(self.emit_every)}")
        return f"{self.call.text} OVER ({' '.join(parts)}) AS {self.call.result}"


def _slide(amount: Rows | Duration | Distance) -> str:
    return f"{'RANGE ' if isinstance(amount, Distance) else ''}{amount}"


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
