"""Flows: DataFrames on their way from sources to a stage, and what must be known of them.

Whether a tuple is late depends on all tuples before it, those included that a query does not want. So nothing
may drop rows of a source before they have been judged: conditions are noted in a column, and expressions are
evaluated only where they hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 (Spark's own custom)
from pyspark.sql import types as T  # noqa: N812

from millstream.analysis.queries.resolved_expression import ColumnRef, Expr
from millstream.analysis.queries.resolved_query import Output
from millstream.catalog.entries import Stream
from millstream.plan import nodes
from millstream.spark.session.spark_types import to_spark_type
from millstream.spark.sources.hidden_columns import COUNTED, KEEP, MARK, SORT, TIME, column, hidden

Step = Callable[["InputFrame"], "InputFrame"]


@dataclass(frozen=True)
class WindowAttribute:
    """An attribute other than the timestamp along which a window is measured.

    ``attribute`` is what it is in the stream that is read, if that promises anything about it. In a union it
    may be the timestamp of one stream (``is_time``) and not of another.
    """

    column: ColumnRef
    attribute: str | None
    is_time: bool = False


@dataclass(frozen=True)
class InputFrame:
    """One of the DataFrames of a flow.

    Unjudged, with ``stream``, it has all tuples of that source; otherwise it comes from a stage, with
    reports among its rows if ``marked``, or is as good as that: a table, or a stream that cannot be late.
    """

    frame: DataFrame
    stream: Stream | None = None
    marked: bool = False
    staged: bool = False
    steps: tuple[Step, ...] = ()
    """How it was made of what was read, so that others can be made beside it from one reading."""
    read: DataFrame | None = None
    """What was read; unjudged legs only."""
    untimed: bool = False
    """Rows without a time are among the others, and are no tuples."""
    changes: bool = False
    """Whether rows are changes of a relation, and not tuples of a stream."""
    axis: WindowAttribute | None = None
    """What counts as the time of its tuples, if not their timestamp. A stage has made it their time."""

    def guarded(self, expr: Column) -> Column:
        """An expression, where there is a tuple to evaluate it on."""
        if self.stream is not None and KEEP in self.frame.columns:
            return F.when(F.col(KEEP), expr)
        if self.untimed:
            return F.when(F.col(TIME).isNotNull(), expr)
        return F.when(F.col(MARK).isNull(), expr) if self.marked else expr

    def apply(self, step: Step) -> InputFrame:
        """Take a step, and remember it."""
        after = step(self)
        return replace(after, steps=(*self.steps, step)) if self.stream is not None else after

    def where(self, conditions: Iterable[Expr]) -> InputFrame:
        frame = self.frame
        for condition in conditions:
            holds = F.expr(condition.sql)
            if self.stream is not None:
                kept = replace(self, frame=frame).guarded(holds)
                frame = frame.withColumn(KEEP, F.coalesce(kept, F.lit(False)))
            else:
                frame = frame.where(
                    F.when(F.col(MARK).isNull(), holds).otherwise(True) if self.marked else holds
                )
        return replace(self, frame=frame)

    def counted(self) -> InputFrame:
        """Tell the tuples that there are by now from those that were read, before more are left out."""
        if self.stream is None or KEEP not in self.frame.columns:
            return self
        return replace(self, frame=self.frame.withColumn(COUNTED, F.coalesce(F.col(KEEP), F.lit(False))))

    def project(self, outputs: Iterable[Output]) -> InputFrame:
        selected = [self.guarded(F.expr(o.expr.sql)).alias(o.name) for o in outputs]
        return replace(self, frame=self.frame.select(*selected, *hidden(self.frame.columns)))


@dataclass(frozen=True)
class StreamFrames:
    """A relation or stream: one DataFrame, or several that are united, all with the same columns."""

    legs: tuple[InputFrame, ...]
    window: nodes.Windowed | None = None
    inside: tuple[Expr, ...] = ()
    """Conditions on what is in the window, where all tuples count for the window itself."""

    @property
    def judged(self) -> bool:
        return all(leg.stream is None for leg in self.legs)

    def map(self, change: Step) -> StreamFrames:
        return replace(self, legs=tuple(leg.apply(change) for leg in self.legs))

    def alias(self, name: str) -> StreamFrames:
        return self.map(lambda leg: replace(leg, frame=leg.frame.alias(name)))


def united(
    left: StreamFrames, right: StreamFrames, node: nodes.StreamUnion, *, ties: bool = False
) -> StreamFrames:
    """Both flows with the columns of their union; with ``ties`` those with the same time keep their order."""
    legs = (*left.legs, *right.legs)
    if node.latent:
        return StreamFrames(legs).map(lambda leg: _aligned(leg, node, T.TimestampType()))
    kinds = [leg.frame.schema[TIME].dataType.simpleString() for leg in legs]
    common = F.coalesce(*(F.lit(None).cast(kind) for kind in dict.fromkeys(kinds)))
    time_type = legs[0].frame.sparkSession.range(0).select(common.alias(TIME)).schema[TIME].dataType
    sorting = _sorting(left, right) if ties else ((), ())
    one, other = (
        flow.map(partial(_aligned, node=node, time_type=time_type, sorting=own))
        for flow, own in zip((left, right), sorting, strict=True)
    )
    return StreamFrames((*one.legs, *other.legs))


def _sorting(left: StreamFrames, right: StreamFrames) -> tuple[tuple[Column, ...], tuple[Column, ...]]:
    """Columns that sort the tuples of a union with the same time: by side, then as each side sorts its own.

    Each side has the columns of both, because a stage takes inputs with the same columns. Numbers in front of
    their names keep the columns of the sides apart, and in this order.
    """
    found: list[dict[str, str]] = []
    for flow in (left, right):
        fields = flow.legs[0].frame.schema.fields
        found.append({f.name: f.dataType.simpleString() for f in fields if f.name.startswith(SORT)})
    if not any(found):
        return (), ()
    sides: list[tuple[Column, ...]] = []
    for mine in (0, 1):
        columns = [F.lit(mine).alias(f"{SORT}0")]
        for side, kinds in enumerate(found):
            for name, kind in kinds.items():
                value = F.col(name) if side == mine else F.lit(None).cast(kind)
                columns.append(value.alias(f"{SORT}{side + 1}{name.removeprefix(SORT)}"))
        sides.append(tuple(columns))
    return sides[0], sides[1]


def _aligned(
    leg: InputFrame, node: nodes.StreamUnion, time_type: T.DataType, sorting: tuple[Column, ...] = ()
) -> InputFrame:
    """The columns of a leg under the names and types of the union."""
    frame = leg.frame
    unseen = hidden(frame.columns)
    shown = len(frame.columns) - len(unseen)
    # By number, because two columns may have the same name.
    frame = frame.toDF(*(f"c{i}" if i < shown else name for i, name in enumerate(_shown_first(leg.frame))))
    outputs = [
        (F.col(f"c{i}").cast(to_spark_type(field.type)) if field.type.is_known else F.col(f"c{i}")).alias(
            field.name
        )
        for i, field in enumerate(node.fields)
    ]
    latent = node.latent and leg.stream is None
    time = F.lit(None).cast("timestamp") if latent else F.col(TIME).cast(time_type)
    travelling = [
        time.alias(TIME) if name == TIME else F.col(name) for name in unseen if not name.startswith(SORT)
    ]
    return replace(leg, frame=frame.select(*outputs, *travelling, *sorting))


def _shown_first(frame: DataFrame) -> list[str]:
    unseen = hidden(frame.columns)
    assert frame.columns[len(frame.columns) - len(unseen) :] == unseen, "hidden columns come last"
    return frame.columns


def concatenated(flow: StreamFrames) -> DataFrame:
    """The legs of a flow one after the other, with all the hidden columns that any of them has."""
    if len(flow.legs) == 1:
        return flow.legs[0].frame
    result: DataFrame | None = None
    for leg in flow.legs:
        result = leg.frame if result is None else result.unionByName(leg.frame, allowMissingColumns=True)
    assert result is not None
    return result


def named(frame: DataFrame, columns: Iterable[tuple[ColumnRef, str]]) -> DataFrame:
    """Columns of a stage under the names that expressions use: those of a relation become a struct."""
    relations: dict[str, list[Column]] = {}
    plain: list[Column] = []
    for ref, name in columns:
        if ref.relation:
            relations.setdefault(ref.relation, []).append(F.col(name).alias(ref.name))
        else:
            plain.append(F.col(name).alias(ref.name))
    structs = [F.struct(*fields).alias(relation) for relation, fields in relations.items()]
    return frame.select(*structs, *plain, *(column(name) for name in hidden(frame.columns)))
