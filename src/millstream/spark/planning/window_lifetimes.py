"""From windows that are maintained to how long tuples stay in them, in the units of the timestamp."""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql import types as T  # noqa: N812 (Spark's own custom)

from millstream.kernels.relational.lifetimes import Lifetime, RowLifetime, SlideInstants
from millstream.plan import nodes
from millstream.quantity import Quantity
from millstream.spark.planning.stream_disorder import units
from millstream.spark.planning.window_stage import WindowPlanner
from millstream.spark.session.spark_types import to_spark_type
from millstream.stage.time_codec import MICROSECONDS_PER_DAY
from millstream.windows.window_spec import LandmarkWindow, NowWindow, RangeWindow, RowWindow


def lifetime_of(side: nodes.Windowed, spark: SparkSession) -> Lifetime:
    """Of a window of time."""
    slides = slide_instants(side, spark)
    match side.window:
        case RangeWindow(range=size):
            return Lifetime(_length(side, size), slides)
        case NowWindow():
            # The next instant of a date is the next day.
            return Lifetime(MICROSECONDS_PER_DAY if isinstance(_type(side), T.DateType) else 0)
        case LandmarkWindow():
            return Lifetime(None, slides)
    raise AssertionError(f"{side.window} has passed the list of what can be maintained")


def row_lifetime(window: RowWindow) -> RowLifetime:
    return RowLifetime(window.range.count, window.slide.count)


def slide_instants(side: nodes.Windowed, spark: SparkSession) -> SlideInstants | None:
    """When a window of time slides, if it does."""
    placer = WindowPlanner(spark, _type(side))
    match side.window:
        case RangeWindow(slide=slide, origin=origin) if slide is not None:
            return SlideInstants(
                int(_length(side, slide)), 0 if origin is None else int(placer.instant(origin))
            )
        case LandmarkWindow(slide=slide, start=start, end=end) if slide is not None:
            bounds = [None if bound is None else int(placer.instant(bound)) for bound in (start, end)]
            return SlideInstants(int(_length(side, slide)), 0, *bounds)
    return None


def _type(side: nodes.Windowed) -> T.DataType:
    return to_spark_type(side.edge.type)


def _length(side: nodes.Windowed, amount: Quantity) -> int | float:
    return units(amount, _type(side))
