"""Kinds of bracket windows, in the units of their attribute: plain data from which assigners are made."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from millstream.kernels.column_names import WHOLE, Columns


@dataclass(frozen=True)
class SlidingWindows:
    """Windows [origin+(w+1)*slide-range, origin+(w+1)*slide), with partial results every ``emit``."""

    range: int | Fraction
    slide: int | Fraction
    origin: int | Fraction = 0
    emit: int | Fraction | None = None
    is_float: bool = False
    """Whether times are doubles: then all amounts are exact, and bounds are rounded."""
    single: bool = False
    """Whether bounds are rounded to floats."""
    months: bool = False
    """Whether all amounts are months of the calendar, and the origin is one; nothing is emitted early."""

    def __post_init__(self) -> None:
        if self.range <= 0 or self.slide <= 0:
            raise ValueError("RANGE and SLIDE must be positive")


@dataclass(frozen=True)
class SubstreamWindows:
    """Windows as SlidingWindows has them, without partial results, that end with their sub-stream."""

    sliding: SlidingWindows


@dataclass(frozen=True)
class LandmarkWindows:
    """Windows [start, end) for all multiples of ``slide`` after ``start`` and before ``end``, and ``end``.

    Bounds that are None do not exist. Without a slide or an end the only window ends with the input. Instants
    are doubles where ``is_float``, and floats where they are ``single``. Where bounds are times ``of_day``,
    the day is the first tuple's; then tuples must come in order.
    """

    start: int | float | None = None
    end: int | float | None = None
    slide: int | Fraction | None = None
    emit: int | Fraction | None = None
    is_float: bool = False
    single: bool = False
    of_day: tuple[bool, bool] = (False, False)


@dataclass(frozen=True)
class NowWindows:
    """A window for each instant that has a tuple."""

    is_float: bool = False


@dataclass(frozen=True)
class RowWindows:
    """Window w has the tuples from (w+1)*slide-range, counted from 0, to (w+1)*slide.

    The end of the input completes the window that ends next; of windows that count arrivals, all with tuples.
    """

    range: int
    slide: int
    emit: int | None = None
    per: Columns = WHOLE
    by_arrival: bool = False


@dataclass(frozen=True)
class SessionOrPredicateWindows:
    """Sessions with a longest ``gap``; without one, windows between the tuples of STARTS and ENDS.

    Partitions are forgotten while they have no window, unless windows are to be ``numbered`` through.
    """

    gap: int | float | None = None
    emit: int | None = None
    per: Columns = WHOLE
    numbered: bool = True


@dataclass(frozen=True)
class TupleSlideWindows:
    """Every so many tuples a window of this range; by rank, or where the column ENDS says so."""

    range: int | float
    every: int
    by_rank: bool
    per: Columns = WHOLE


AssignerSpec = (
    SlidingWindows
    | SubstreamWindows
    | LandmarkWindows
    | NowWindows
    | RowWindows
    | SessionOrPredicateWindows
    | TupleSlideWindows
)
