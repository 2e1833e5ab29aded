"""Specifications of kernels: plain data that can be pickled and shipped to workers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from millstream.catalog.builtin_aggregates import Family, accumulator_functions, accumulator_row
from millstream.kernels.window_specs import AssignerSpec

if TYPE_CHECKING:
    from millstream.kernels.relational.lifetimes import Lifetime, SlideInstants
    from millstream.program.program import Program
    from millstream.program.python_program import PythonProgram

USER = "user"
"""The function of specs whose parameter is the program of a user-defined aggregate."""

ROWS = "rows"
"""The function of specs whose result is the list of all tuples, as structs of the arguments."""

_FUNCTIONS = accumulator_functions() | {USER, ROWS}


@dataclass(frozen=True)
class Order:
    descending: bool = False
    nulls_first: bool = True


@dataclass(frozen=True)
class OrderColumn:
    """A column by which rows are sorted."""

    name: str
    descending: bool = False
    nulls_first: bool = True


@dataclass(frozen=True)
class AggregateSpec:
    """An aggregate of a column, as Spark computes it.

    All aggregates ignore NULL arguments, except that first, last and collect_list do so only when told to.
    Over no value at all count is 0, what is collected is empty, and everything else is NULL.
    """

    function: str
    """A function of the table of built-in aggregates that has an accumulator, or USER, or ROWS."""

    argument: str | None
    """A column; None for count(*)."""

    result: str
    """The name of the output column."""

    type: pa.DataType
    ignore_nulls: bool = False
    text: str | None = None
    """The argument as it is written in the query, for errors."""

    others: tuple[str, ...] = ()
    """The columns of further arguments."""

    parameters: tuple[Any, ...] = ()
    """Arguments that are constants: percentages, a separator, how many are wanted; of the user's aggregates
    their program."""

    distinct: bool = False
    """Of equal values only the first counts."""

    order: tuple[Order, ...] = ()
    """WITHIN GROUP: how values (or, of a listagg, the last of the other arguments) are sorted."""

    condition: str | None = None
    """A boolean column that tells which tuples count; NULLs in it say no."""

    def __post_init__(self) -> None:
        if self.function not in _FUNCTIONS:
            raise ValueError(f"no such aggregate: {self.function}")
        if self.argument is None and self.function != "count":
            raise ValueError(f"{self.function} needs an argument")

    @property
    def arguments(self) -> tuple[str, ...]:
        """All columns that it needs."""
        return tuple(name for name in (self.argument, *self.others, self.condition) if name is not None)


def family_of(spec: AggregateSpec) -> Family:
    """The accumulator of an aggregate; of the first so many by another column, all values are needed."""
    if spec.function in (USER, ROWS):
        return Family.CONTENT
    family = accumulator_row(spec.function).family
    return Family.CONTENT if family is Family.MIN_MAX_BY and spec.parameters else family


def depends_on_order(spec: AggregateSpec) -> bool:
    """Tell whether an aggregate may depend on the order of its tuples."""
    return family_of(spec) in (Family.CONTENT, Family.FIRST_LAST, Family.MIN_MAX_BY)


@dataclass(frozen=True)
class OverSpec:
    """An aggregate over the tuple and those before it: so many rows, or so far back in time, or all.

    With ``rows_until`` or ``range_until`` the frame ends so far before the tuple, or after it if negative; a
    frame that begins after the tuple has negative ``rows`` or ``range``.
    """

    aggregate: AggregateSpec
    rows: int | None = None
    range: int | float | None = None
    rows_until: int = 0
    range_until: int | float = 0

    def __post_init__(self) -> None:
        if self.rows is not None and self.range is not None:
            raise ValueError("a window is measured in rows or in time, not both")
        if self.rows is not None and self.rows < self.rows_until:
            raise ValueError("a window cannot begin after its end")
        if self.range is not None and self.range < self.range_until:
            raise ValueError("a window cannot begin after its end")

    @property
    def is_unbounded(self) -> bool:
        return self.rows is None and self.range is None and not self.is_offset

    @property
    def is_offset(self) -> bool:
        """True if the frame does not end at the tuple."""
        return self.rows_until != 0 or self.range_until != 0

    @property
    def follows(self) -> bool:
        """True if the frame ends after the tuple."""
        return self.rows_until < 0 or self.range_until < 0

    @property
    def extent(self) -> Extent:
        return self.rows, self.range, self.rows_until, self.range_until


Extent = tuple[int | None, int | float | None, int, int | float]
"""Bounds of a frame: rows, range, rows_until, range_until."""


@dataclass(frozen=True)
class SlideSpec:
    """Slots whose last tuple has a result: so many tuples of a key, or so much time.

    ``emit`` is measured as the slide is: partial results come so often.
    """

    rows: int | None = None
    time: int | None = None
    emit: int | None = None
    complete: str | None = None
    """The name of a column that tells whole results from partial ones, if it is required."""

    def __post_init__(self) -> None:
        if (self.rows is None) == (self.time is None):
            raise ValueError("a slide is measured in rows or in time")
        if min(self.rows or self.time or 0, 1 if self.emit is None else self.emit) < 1:
            raise ValueError("SLIDE and EMIT EVERY must be positive")


@dataclass(frozen=True)
class WindowSpec:
    """Aggregates over bracket windows."""

    assigner: AssignerSpec
    """The kind of windows."""

    edge_type: pa.DataType
    """The type of window_start and window_end."""

    group_by: tuple[str, ...]
    """Columns of the output that are equal for all tuples of a key."""

    aggregates: tuple[AggregateSpec, ...]
    wid_type: pa.DataType = field(default_factory=pa.int64)
    stamp: int = 0
    """Distance of the timestamp of a report from the end of its window."""
    empty: bool = False
    """Whether windows without tuples are reported between others; then there is one key."""


@dataclass(frozen=True)
class UdaSpec:
    """An aggregate of the user's: its program, the columns of its arguments, and those of its results."""

    program: Program | PythonProgram
    arguments: tuple[str, ...]
    results: tuple[str, ...]
    whole: str = ""
    """The column of all rows that are returned for a tuple, where they stay together."""
    condition: str | None = None
    """A boolean column that tells which tuples it sees; NULLs in it say no."""


@dataclass(frozen=True)
class PaneSpec:
    """Panes of so many tuples: the program of their results, the number combined, and the slide."""

    program: Program
    size: int
    count: int
    every: int = 1


@dataclass(frozen=True)
class TimePaneSpec:
    """Panes of time of a call: two in each period, the second after ``cut``, or one if that is 0.

    A period begins at the origin; the first of two panes may not count. ``types`` are those of results of
    panes for the combining version; ``user.whole`` is the column that tells them from tuples.
    """

    user: UdaSpec
    period: int
    origin: int
    cut: int
    first_counts: bool
    types: tuple[pa.DataType, ...]


@dataclass(frozen=True)
class OverUdaSpec:
    """An aggregate of the user's over the tuple and those before it, as in OverSpec.

    Of windows of rows, only the last tuple of every ``slide`` of a partition has a result. With ``panes`` the
    program takes what these have as results. A program may also be several aggregates, its ``members``: the
    first of its results then says whose they are.
    """

    user: UdaSpec
    rows: int | None = None
    range: int | float | None = None
    slide: int = 1
    panes: PaneSpec | None = None
    members: tuple[UdaSpec, ...] = ()


@dataclass(frozen=True)
class PatternSpec:
    """A pattern: its program, the columns of tuples that it reads, and those of its results."""

    program: Program
    arguments: tuple[str, ...]
    results: tuple[str, ...]


@dataclass(frozen=True)
class AppendOnlyJoinSpec:
    """A join of two windows: how long tuples stay, and what a pair has of each of them.

    A tuple of the left (first) or right (second) stream is there for less than its ``reach``: None is for
    ever, and 0 is only for its own instant. ``results`` have the columns of tuples by the names that pairs
    give them.
    """

    reach: tuple[int | float | None, int | float | None]
    results: tuple[Mapping[str, str], Mapping[str, str]]


@dataclass(frozen=True)
class InnerJoinSpec:
    """A join of two relations that vary: how long rows stay, and what a pair has of each of them.

    ``stays`` are None for relations that come as changes. Pairs are ``signed`` if the end of some is not
    known when they enter, or if all ``ends`` are wanted; with ``parts`` the rows of both sides are given too.
    """

    stays: tuple[Lifetime | None, Lifetime | None]
    results: tuple[Mapping[str, str], Mapping[str, str]]
    slides: tuple[SlideInstants, ...] = ()
    signed: bool = False
    parts: bool = False
    ends: bool = False
    """Whether each pair is told to leave, also where its end was known when it entered."""

    def __post_init__(self) -> None:
        if self.ends and not self.signed:
            raise ValueError("a pair that is told to leave has a sign")


@dataclass(frozen=True)
class OuterJoinSpec:
    """Pairs and rows of a join that are results: rows in no pair (-1), in some pair (1), or none (0).

    It is ``lasting`` if no row and no pair ever leaves.
    """

    results: tuple[str, ...]
    pairs: bool
    left: int = 0
    right: int = 0
    lasting: bool = False
    ends: bool = False
    """Whether each pair is told to leave, also where its end was known when it entered."""


@dataclass(frozen=True)
class SemiAntiJoinSpec:
    """A semi or anti join on nothing but keys: how long rows of both sides stay, and what is wanted of them.

    ``stays`` are None for relations that come as changes.
    """

    stays: tuple[Lifetime | None, Lifetime | None]
    results: tuple[str, ...]
    anti: bool
    slides: tuple[SlideInstants, ...] = ()
    lasting: tuple[bool, bool] = (False, False)
    """Of which sides nothing ever leaves."""


Combination = Literal["UNION", "INTERSECT", "EXCEPT"]


@dataclass(frozen=True)
class SetOperationSpec:
    """A set operation by multiplicity; DISTINCT is the UNION of one relation."""

    kind: Combination
    all: bool
    columns: tuple[str, ...]
    lasting: tuple[bool, ...] = (False, False)
    """Of which relations nothing ever leaves."""


@dataclass(frozen=True)
class GroupSpec:
    """Aggregates over the content of groups: columns that are equal in a group, and what is computed."""

    group_by: tuple[str, ...]
    aggregates: tuple[AggregateSpec, ...]
    arranged: bool = False
    """Rows have no order: each aggregate takes them in the order of its arguments."""


@dataclass(frozen=True)
class RankSpec:
    """A ranking function over the rows of a report, or of a partition of it."""

    function: str
    result: str
    type: pa.DataType
    partition: tuple[str, ...] = ()
    order: tuple[OrderColumn, ...] = ()
    argument: str | None = None
    """The column of lag, lead, first_value, last_value and nth_value."""

    default: str | None = None
    """The column of values for rows without a row that far away."""

    number: int = 1
    """The distance of lag and lead, the place of nth_value, the buckets of ntile."""

    ignore_nulls: bool = False
    by_rows: bool = False
    """Whether the frame counts rows; otherwise 0 stands for the peers of a row."""

    start: int | None = None
    end: int | None = 0
    """Bounds of the frame relative to a row; None is unbounded."""

    text: str = ""


@dataclass(frozen=True)
class WindowRankSpec:
    """Ranking functions over reports, and the first rows of each report in an order."""

    report: tuple[str, ...]
    calls: tuple[RankSpec, ...]
    output: tuple[str, ...]
    order: tuple[OrderColumn, ...] = ()
    limit: int | None = None
    offset: int = 0
