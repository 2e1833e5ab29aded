"""From a bracket window to what kernels need for it: how tuples are placed, and what is shipped for that."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import partial

import pyarrow as pa
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own custom)
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.pandas.types import to_arrow_schema

from millstream.analysis.queries.resolved_expression import ColumnRef, Expr
from millstream.catalog.entries import OrderedPerPromise, Promise, PunctuationPromise, Stream
from millstream.kernels.core.kernel import Kernel
from millstream.kernels.core.partition_state import BY_KEY, BY_PART, WHOLE, Columns
from millstream.kernels.windows.window_assigner import WindowAssigner
from millstream.plan import nodes
from millstream.plan.time_attributes import arrives, sources_of
from millstream.quantity import Distance, Quantity, Rows
from millstream.spark.planning.stream_disorder import units
from millstream.spark.session.spark_types import from_spark_type, to_spark_type
from millstream.types import Kind, bound_type
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

_TIME_OF_DAY = re.compile(r"'\s*\d{1,2}:\d{2}(:\d{2}(\.\d*)?)?\s*'")


@dataclass(frozen=True)
class WindowPlacement:
    """How the windows of a bracket are placed.

    ``before`` are the kernels that tuples pass on their way to the windows. ``shipped`` are columns that only
    this needs. ``generous`` windows can count late tuples.
    """

    placing: Callable[[], WindowAssigner]
    edge_type: pa.DataType
    wid_type: pa.DataType = field(default_factory=pa.int64)
    before: tuple[Callable[[], Kernel], ...] = ()
    shipped: dict[str, Column] = field(default_factory=dict)
    generous: bool = False


def is_contextual(window: Window) -> bool:
    """Whether the windows of a tuple depend on the other tuples of the stream, unwanted ones included."""
    if isinstance(window, LandmarkWindow):
        return any(is_time_of_day(bound) for bound in (window.start, window.end))
    return isinstance(window, RowWindow | TupleSlideWindow | SessionWindow | PredicateWindow)


def ends_with_the_input(window: Window) -> bool:
    """Whether windows that only the end of the input completes end with the newest tuple of the stream."""
    return isinstance(window, RowWindow | PredicateWindow | LandmarkWindow)


def counts_arrivals(window: Window) -> bool:
    """Whether every so many tuples by arrival end a window: then those count too that are in none."""
    return isinstance(window, TupleSlideWindow) and not window.by_rank


def is_time_of_day(constant: str | None) -> bool:
    """A time without a date, in quotes: it is meant on the day of the first tuple."""
    return constant is not None and _TIME_OF_DAY.fullmatch(constant) is not None


def partitioning(window: Window, group_by: Sequence[str]) -> Columns:
    """What tells apart the partitions in which the windows of a bracket are counted."""
    if not is_contextual(window) or not window.partition_by:
        return WHOLE
    groups = {name.lower() for name in group_by}
    return BY_KEY if groups <= {name.lower() for name in window.partition_by} else BY_PART


def is_apart(stream: Stream | None, windowed: nodes.Windowed, keys: Iterable[ColumnRef]) -> bool:
    """Whether groups belong to sub-streams that make promises of their own, so that each can go by its own.

    They do if what tells sub-streams apart is among what tells groups apart.
    """
    window = windowed.window
    if stream is None or not isinstance(window, RangeWindow) or window.emit_every is not None:
        return False
    own = {c.name.lower(): c for c in windowed.input.schema}
    if not arrives(windowed.input):
        return False
    grouped = {
        sources_of(windowed.input, own[key.name.lower()])[0] for key in keys if key.name.lower() in own
    }
    # Two zeros are one group and two sub-streams.
    plain = {f.name.lower() for f in stream.schema if f.type.kind not in (Kind.FLOAT, Kind.DOUBLE)}
    return any(per and per <= grouped & plain for per in map(_told_apart, stream.promises))


def _told_apart(promise: Promise) -> set[str]:
    """What tells apart the sub-streams of a promise about the timestamp."""
    match promise:
        case OrderedPerPromise(columns=columns, on=None) | PunctuationPromise(per=columns, on=None):
            return {name.lower() for name in columns}
    return set()


@dataclass(frozen=True)
class WindowPlanner:
    """Finds the placement of windows over an attribute of a type."""

    spark: SparkSession
    time_type: T.DataType

    def of(self, window: Window, per: Columns, *, numbered: bool, apart: bool = False) -> WindowPlacement:
        """``numbered`` says whether somebody wants to see the ids of windows.

        With ``apart``, groups need only wait for their own sub-stream.
        """
        from millstream.kernels.core.reorder import Reorder
        from millstream.kernels.windows.arrival_numbers import ArrivalNumbers
        from millstream.kernels.windows.landmark_assigner import LandmarkWindows, NowWindows
        from millstream.kernels.windows.row_assigner import RowWindows
        from millstream.kernels.windows.session_predicate_assigner import (
            ENDS,
            STARTS,
            SessionPredicateWindows,
        )
        from millstream.kernels.windows.sliding_assigner import SlidingWindows
        from millstream.kernels.windows.substream_assigner import SubstreamWindows
        from millstream.kernels.windows.tuple_slide_assigner import TupleSlideWindows

        in_order = (partial(Reorder),)
        match window:
            case RangeWindow(range=range_, slide=slide, origin=origin):
                assert slide is not None
                begin = 0 if origin is None else self._exact_instant(origin)
                sizes = self._exact(range_), self._exact(slide), begin, self._emit(window)
                sliding = SlidingWindows(*sizes, self._is_float, self._is_single)
                whole = SubstreamWindows(sliding) if apart else sliding
                return WindowPlacement(whole, self._edge_type, generous=True)
            case RowWindow(range=Rows(count), slide=Rows(slide_)):
                emit = window.emit_every.count if isinstance(window.emit_every, Rows) else None
                before = () if window.by_arrival else in_order
                return WindowPlacement(RowWindows(count, slide_, emit, per), pa.int64(), before=before)
            case TupleSlideWindow(range=range_, every=Rows(every), by_rank=by_rank):
                is_marked = not by_rank and every > 1  # if every tuple ends a window, none need be marked
                placing = TupleSlideWindows(self._units(range_), every, not is_marked, per)
                marks = (partial(ArrivalNumbers, every, per),) if is_marked else ()
                return WindowPlacement(placing, self._edge_type, self._edge_type, marks)
            case NowWindow():
                return WindowPlacement(NowWindows(self._is_float), self._edge_type, self._edge_type)
            case LandmarkWindow(start=start, end=end, slide=slide):
                of_day = is_time_of_day(start), is_time_of_day(end)
                landmark = LandmarkWindows(
                    None if start is None else self.instant(start),
                    None if end is None else self.instant(end),
                    None if slide is None else self._exact(slide),
                    self._emit(window),
                    self._is_float,
                    self._is_single,
                    of_day,
                )
                before = in_order if any(of_day) else ()
                return WindowPlacement(landmark, self._edge_type, before=before, generous=not before)
            case SessionWindow(gap=gap):
                often = self._emit(window)
                runs = SessionPredicateWindows(
                    self._units(gap), None if often is None else int(often), per, numbered
                )
                return WindowPlacement(runs, self._edge_type, before=in_order)
            case PredicateWindow(start_when=Expr() as start_when, end_when=Expr() as end_when):
                often = self._emit(window)
                runs = SessionPredicateWindows(None, None if often is None else int(often), per, numbered)
                flags = {STARTS: F.expr(start_when.sql), ENDS: F.expr(end_when.sql)}
                return WindowPlacement(runs, self._edge_type, before=in_order, shipped=flags)
        raise AssertionError(f"{window} has passed the list of what can be run")

    @property
    def _is_float(self) -> bool:
        return isinstance(self.time_type, T.DoubleType | T.FloatType)

    @property
    def _is_single(self) -> bool:
        return isinstance(self.time_type, T.FloatType)

    @property
    def _edge_type(self) -> pa.DataType:
        return bound_type_of(self.time_type)

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

    def _exact_instant(self, constant: str) -> int | Fraction:
        return _number(constant) if self._is_float else int(self.instant(constant))

    def instant(self, constant: str) -> int | float:
        """A constant as the attribute has it. It is a literal as we write it, texts with their quotes."""
        from millstream.kernels.windows.double_slide_arithmetic import nearest
        from millstream.stage.time_codec import instants

        if self._is_float:
            return nearest(_number(constant), self._is_single)
        if isinstance(self.time_type, T.NumericType):
            return int(_number(constant) * 10 ** getattr(self.time_type, "scale", 0))
        if is_time_of_day(constant):
            constant = f"'1970-01-01 {constant.strip()[1:].lstrip()}"
        value = self.spark.range(1).select(F.expr(constant).cast(self.time_type).alias("t")).toArrow()
        return int(instants(value.column(0))[0].item())


def bound_type_of(time_type: T.DataType) -> pa.DataType:
    """The type of bounds and stamps of windows on an attribute, for Arrow."""
    wide = to_spark_type(bound_type(from_spark_type(time_type)))
    return to_arrow_schema(T.StructType([T.StructField("t", wide)]), timezone="UTC").field(0).type


def _number(constant: str) -> Fraction:
    """A numeric literal, perhaps with a sign before it."""
    return Fraction(Decimal(constant.replace(" ", "")))
