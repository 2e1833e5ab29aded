"""From a bracket window to the specification of its assigner, in the units of its attribute."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction

from millstream.analysis.queries.resolved_expression import Expr
from millstream.analysis.types.instants import instant, literal_text
from millstream.kernels.column_names import ENDS, STARTS, Columns
from millstream.kernels.kernel_specs import ArrivalNumbersSpec, KernelSpec, ReorderSpec
from millstream.kernels.window_specs import (
    AssignerSpec,
    LandmarkWindows,
    NowWindows,
    RowWindows,
    SessionOrPredicateWindows,
    SlidingWindows,
    SubstreamWindows,
    TupleSlideWindows,
)
from millstream.kernels.windows.double_slide_arithmetic import nearest
from millstream.physical.expressions import is_double
from millstream.physical.promise_units import units
from millstream.quantity import MICROSECONDS, Distance, Duration, Quantity, Rows
from millstream.types import BIGINT, Kind, Type, bound_type
from millstream.windows.months import month_of
from millstream.windows.window_properties import is_of_months, is_time_of_day
from millstream.windows.window_spec import (
    LandmarkWindow,
    NowWindow,
    PredicateWindow,
    RangeWindow,
    RowWindow,
    SessionWindow,
    TupleSlideWindow,
    Window,
)


@dataclass(frozen=True)
class WindowPlacement:
    """The assigner of a bracket's windows.

    ``before`` are the kernels that tuples pass on their way to the windows. ``shipped`` are columns that only
    the assigner needs. ``generous`` windows can count late tuples.
    """

    assigner: AssignerSpec
    edge: Type
    wid: Type = BIGINT
    before: tuple[KernelSpec, ...] = ()
    shipped: dict[str, Expr] = field(default_factory=dict)
    generous: bool = False
    stamp: int = 0


@dataclass(frozen=True)
class AssignerPlanner:
    """Plans windows on an attribute of a type; times without a zone are in ``zone``."""

    time_type: Type
    zone: str = "UTC"

    def of(
        self, window: Window, per: Columns, *, numbered: bool = True, apart: bool = False
    ) -> WindowPlacement:
        """Plan a bracket's windows; they are ``numbered`` if their ids are wanted.

        With ``apart``, groups need only wait for their own sub-stream.
        """
        in_order = (ReorderSpec(),)
        edge = bound_type(self.time_type)
        match window:
            case RangeWindow() if is_of_months(window):
                return self._months(window, apart=apart)
            case RangeWindow(range=range_, slide=slide, origin=origin):
                assert slide is not None
                begin = 0 if origin is None else self._exact_instant(origin)
                lag = 0 if window.lag is None else int(self._exact(window.lag))
                begin -= lag
                sizes = self._exact(range_), self._exact(slide), begin, self._emit(window)
                sliding = SlidingWindows(*sizes, self._is_float, self._is_single)
                stamp = lag - (self._instant if window.stamp_last else 0)
                assigner = SubstreamWindows(sliding) if apart else sliding
                return WindowPlacement(assigner, edge, generous=True, stamp=stamp)
            case RowWindow(range=Rows(count), slide=Rows(slide_)):
                emit = window.emit_every.count if isinstance(window.emit_every, Rows) else None
                before = () if window.by_arrival else in_order
                rows = RowWindows(count, slide_, emit, per, window.by_arrival)
                return WindowPlacement(rows, BIGINT, before=before)
            case TupleSlideWindow(range=range_, every=Rows(every), by_rank=by_rank):
                is_marked = not by_rank and every > 1  # if every tuple ends a window, none need be marked
                tuples = TupleSlideWindows(self._units(range_), every, not is_marked, per)
                marks = (ArrivalNumbersSpec(every, per),) if is_marked else ()
                return WindowPlacement(tuples, edge, edge, marks)
            case NowWindow():
                return WindowPlacement(NowWindows(self._is_float), edge, edge)
            case LandmarkWindow():
                return self._landmark(window)
            case SessionWindow(gap=gap):
                runs = SessionOrPredicateWindows(self._units(gap), self._often(window), per, numbered)
                return WindowPlacement(runs, edge, before=in_order)
            case PredicateWindow(start_when=Expr() as start_when, end_when=Expr() as end_when):
                runs = SessionOrPredicateWindows(None, self._often(window), per, numbered)
                return WindowPlacement(
                    runs, edge, before=in_order, shipped={STARTS: start_when, ENDS: end_when}
                )
        raise AssertionError(f"{window} has passed the list of what can be run")

    def _months(self, window: RangeWindow, *, apart: bool) -> WindowPlacement:
        reach, slide = window.range, window.slide
        assert isinstance(reach, Duration)
        assert isinstance(slide, Duration)
        origin = 0 if window.origin is None else month_of(int(self.instant(window.origin)))
        sliding = SlidingWindows(reach.months, slide.months, origin, months=True)
        stamp = -self._instant if window.stamp_last else 0
        assigner = SubstreamWindows(sliding) if apart else sliding
        return WindowPlacement(assigner, bound_type(self.time_type), generous=True, stamp=stamp)

    def _landmark(self, window: LandmarkWindow) -> WindowPlacement:
        of_day = is_time_of_day(window.start), is_time_of_day(window.end)
        landmark = LandmarkWindows(
            None if window.start is None else self.instant(window.start),
            self.end(window),
            None if window.slide is None else self._exact(window.slide),
            self._emit(window),
            self._is_float,
            self._is_single,
            of_day,
        )
        before = (ReorderSpec(),) if any(of_day) else ()
        return WindowPlacement(landmark, bound_type(self.time_type), before=before, generous=not before)

    def end(self, window: LandmarkWindow) -> int | float | None:
        """Return the end of a landmark window: the instant after one that is included."""
        if window.end is None:
            return None
        end = self.instant(window.end)
        if not window.inclusive:
            return end
        return math.nextafter(end, math.inf) if self._is_float else end + self._instant

    @property
    def _instant(self) -> int:
        """The distance between two instants."""
        return MICROSECONDS["DAY"] if self.time_type.kind is Kind.DATE else 1

    @property
    def _is_float(self) -> bool:
        return is_double(self.time_type)

    @property
    def _is_single(self) -> bool:
        return self.time_type.kind is Kind.FLOAT

    def _units(self, amount: Quantity) -> int | float:
        """An amount in the units of the attribute: from a tuple so far."""
        number = units(amount, self.time_type)
        return float(number) if self._is_float else int(number)

    def _exact(self, amount: Quantity) -> int | Fraction:
        """An amount as it is written, for windows that lie on a grid."""
        if self._is_float and isinstance(amount, Distance):
            return Fraction(amount.value)
        return int(units(amount, self.time_type))

    def _emit(self, window: Window) -> int | Fraction | None:
        return None if window.emit_every is None else self._exact(window.emit_every)

    def _often(self, window: Window) -> int | None:
        often = self._emit(window)
        return None if often is None else int(often)

    def _exact_instant(self, text: str) -> int | Fraction:
        return _number(text) if self._is_float else int(self.instant(text))

    def instant(self, text: str) -> int | float:
        """Return a constant as the attribute has it. It is a literal as it is written, texts with quotes."""
        if self._is_float:
            return nearest(_number(text), self._is_single)
        if self.time_type.is_numeric:
            return int(_number(text) * 10**self.time_type.scale)
        if is_time_of_day(text):
            text = f"'1970-01-01 {text.strip()[1:].lstrip()}"
        return instant(literal_text(text), self.time_type, self.zone)


def _number(text: str) -> Fraction:
    """A numeric literal, perhaps with a sign before it."""
    return Fraction(Decimal(text.replace(" ", "")))
