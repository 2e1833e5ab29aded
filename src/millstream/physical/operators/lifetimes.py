"""Lifetimes of tuples in windows that are maintained, in the units of the timestamp."""

from __future__ import annotations

import sys

from millstream.analysis.types.instants import MICROSECONDS_PER_DAY
from millstream.kernels.kernel_specs import BoundsOfDaySpec
from millstream.kernels.relational.lifetimes import Lifetime, RowLifetime, SlideInstants
from millstream.physical.operators.window_assigners import AssignerPlanner
from millstream.physical.promise_units import units
from millstream.plan import nodes
from millstream.quantity import Quantity
from millstream.types import Kind, Type
from millstream.windows.window_properties import is_time_of_day
from millstream.windows.window_spec import LandmarkWindow, NowWindow, RangeWindow, RowWindow

_FIRST_DAY = -62_135_596_800_000_000
"""The first day of the year 1, in microseconds."""


def lifetime_of(side: nodes.Windowed, zone: str) -> Lifetime:
    """Return the lifetime of tuples in a window of time."""
    slides = slide_instants(side, zone)
    match side.window:
        case RangeWindow(range=size):
            return Lifetime(_length(side, size), slides)
        case NowWindow(lag=lag):
            # The next instant of a date is the next day.
            reach = MICROSECONDS_PER_DAY if _type(side).kind is Kind.DATE else 0
            return Lifetime(reach, lag=0 if lag is None else int(_length(side, lag)))
        case LandmarkWindow():
            return Lifetime(None, slides)
    raise AssertionError(f"{side.window} has passed the list of what can be maintained")


def bounds_of_day(side: nodes.Windowed, zone: str) -> BoundsOfDaySpec:
    """Return the bounds of a landmark window, of which some are times of day."""
    window = side.window
    assert isinstance(window, LandmarkWindow)
    planner = AssignerPlanner(_type(side), zone)
    start, end = None if window.start is None else int(planner.instant(window.start)), planner.end(window)
    of_day = is_time_of_day(window.start), is_time_of_day(window.end)
    return BoundsOfDaySpec(start, None if end is None else int(end), of_day)


def row_lifetime(window: RowWindow) -> RowLifetime:
    return RowLifetime(window.range.count, window.slide.count)


def slide_instants(side: nodes.Windowed, zone: str) -> SlideInstants | None:
    """Return the instants at which a window of time slides, if it does."""
    planner = AssignerPlanner(_type(side), zone)
    match side.window:
        case RangeWindow(slide=slide, origin=origin) if slide is not None:
            return SlideInstants(
                int(_length(side, slide)), 0 if origin is None else int(planner.instant(origin))
            )
        case LandmarkWindow(slide=slide, start=start) as landmark if slide is not None:
            begin, end = None if start is None else int(planner.instant(start)), planner.end(landmark)
            return SlideInstants(int(_length(side, slide)), 0, begin, None if end is None else int(end))
    return None


def first_instant(type_: Type) -> int | float:
    """Return the instant of what is there before all tuples, in the units of a timestamp."""
    match type_.kind:
        case Kind.TIMESTAMP | Kind.TIMESTAMP_NTZ | Kind.DATE:
            return _FIRST_DAY  # with the range of Spark
        case Kind.DOUBLE | Kind.FLOAT:
            return -sys.float_info.max
        case Kind.DECIMAL:
            return 1 - 10**18
    return 1 - 2**63


def _type(side: nodes.Windowed) -> Type:
    return side.edge.type


def _length(side: nodes.Windowed, amount: Quantity) -> int | float:
    return units(amount, _type(side))
