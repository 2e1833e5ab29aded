"""What kernels are told to compute: plain data that can be pickled and sent to where the kernel runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import pyarrow as pa

Function = Literal["count", "sum", "avg", "min", "max", "first", "last"]


@dataclass(frozen=True)
class AggregateSpec:
    """An aggregate of a column, as Spark computes it.

    All aggregates ignore NULL arguments, except that first and last do so only when told to. Over no value at
    all count is 0 and everything else NULL.
    """

    function: Function
    argument: str | None
    """A column; None for count(*)."""

    result: str
    """The name of the output column."""

    type: pa.DataType
    ignore_nulls: bool = False
    text: str | None = None
    """The argument as somebody wrote it, for errors."""

    def __post_init__(self) -> None:
        if self.function not in get_args(Function):
            raise ValueError(f"no such aggregate: {self.function}")
        if self.argument is None and self.function != "count":
            raise ValueError(f"{self.function} needs an argument")


@dataclass(frozen=True)
class OverSpec:
    """An aggregate over the tuple and those before it: so many rows, or so far back in time, or all."""

    aggregate: AggregateSpec
    rows: int | None = None
    range: int | float | None = None

    def __post_init__(self) -> None:
        if self.rows is not None and self.range is not None:
            raise ValueError("a window is measured in rows or in time, not both")
        if (self.rows or 0) < 0 or (self.range or 0) < 0:
            raise ValueError("a window cannot begin after its tuple")

    @property
    def is_unbounded(self) -> bool:
        return self.rows is None and self.range is None


@dataclass(frozen=True)
class SlideSpec:
    """Which tuples give a result: the last of every slot of so many tuples of a key, or of so much time.

    ``emit`` is measured as the slide is: partial results come so often.
    """

    rows: int | None = None
    time: int | None = None
    emit: int | None = None
    complete: str | None = None
    """The name of a column that tells whole results from partial ones, if somebody wants it."""

    def __post_init__(self) -> None:
        if (self.rows is None) == (self.time is None):
            raise ValueError("a slide is measured in rows or in time")
        if min(self.rows or self.time or 0, 1 if self.emit is None else self.emit) < 1:
            raise ValueError("SLIDE and EMIT EVERY must be positive")


@dataclass(frozen=True)
class PaneSpec:
    """Aggregates over bracket windows: window w is [origin+(w+1)*slide-range, origin+(w+1)*slide)."""

    range: int
    slide: int
    origin: int
    edge_type: pa.DataType
    """The type of window_start and window_end."""

    group_by: tuple[str, ...]
    """Columns of the output that are equal for all tuples of a key."""

    aggregates: tuple[AggregateSpec, ...]

    def __post_init__(self) -> None:
        if self.range <= 0 or self.slide <= 0:
            raise ValueError("RANGE and SLIDE must be positive")
