"""From a logical plan to a DataFrame: everything stateless is Catalyst's work."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own custom)

from millstream.analysis.expressions import Expr
from millstream.catalog.entries import Derived, Registered, Rejected, Stream, Table
from millstream.errors import ExecutionError
from millstream.plan import nodes
from millstream.plan.builder import build
from millstream.spark.sources import HIDDEN, TIME, ReadPort, StreamFrames, classify, read_stream, read_table
from millstream.spark.translate import FAILURES, translate
from millstream.spark.types import to_spark_type

_HOW = {
    "inner": "inner",
    "cross": "cross",
    "left": "left_outer",
    "right": "right_outer",
    "full": "full_outer",
    "semi": "left_semi",
    "anti": "left_anti",
}


@dataclass
class Lowerer:
    """Lowers the plan of one query.

    ``frames`` are the DataFrames that the caller registered; ``streams`` finds the stream that rejected some
    records. What the query reads is counted under the names in ``metrics``.
    """

    spark: SparkSession
    read_port: ReadPort
    frames: Mapping[str, DataFrame]
    streams: Callable[[str], Stream | None]
    metrics: dict[str, Stream] = field(default_factory=dict)
    _read: dict[str, StreamFrames] = field(default_factory=dict)

    def lower(self, plan: nodes.Node) -> DataFrame:
        """The result with its hidden columns."""
        return self._lower(plan)

    def _lower(self, node: nodes.Node) -> DataFrame:
        match node:
            case nodes.StreamScan():
                return self._stream(node.stream).alias(node.alias)
            case nodes.TableScan():
                assert isinstance(node.table, Table)
                return self.table(node.table).alias(node.alias)
            case nodes.SparkQuery():
                return self.spark.sql(node.text)
            case nodes.Rename():
                return self._lower(node.input).alias(node.alias)
            case nodes.Filter():
                frame = self._lower(node.input)
                for condition in node.conditions:
                    frame = frame.where(_column(condition))
                return frame
            case nodes.Project():
                frame = self._lower(node.input)
                outputs = [_column(output.expr).alias(output.name) for output in node.outputs]
                return frame.select(*outputs, *(name for name in HIDDEN if name in frame.columns))
            case nodes.TableJoin():
                return self._join(node)
            case nodes.StreamUnion():
                return self._union(node)
            case _:
                raise AssertionError(f"{type(node).__name__} has passed the list of what can be run")

    def table(self, table: Table) -> DataFrame:
        """A table of the catalog."""
        with _at(table):
            return self._table(table)

    def _table(self, table: Table) -> DataFrame:
        match table.origin:
            case Derived(definition):
                return self._lower(build(definition))  # type: ignore[arg-type]
            case Registered():
                if table.name.lower() in self.frames:
                    return self.frames[table.name.lower()]
                raise ExecutionError(
                    f"table '{table.name}' was declared without a source",
                    hint="add USING format OPTIONS (...) to its CREATE TABLE",
                )
            case _:
                return read_table(table, self.spark)

    def _stream(self, stream: Stream) -> DataFrame:
        if isinstance(stream.origin, Rejected):
            rejecting = self.streams(stream.origin.stream)
            if rejecting is None:
                raise ExecutionError(f"stream '{stream.origin.stream}' is gone")
            return self._frames(rejecting).bad
        return self._frames(stream).good

    def _frames(self, stream: Stream) -> StreamFrames:
        key = stream.name.lower()
        if key not in self._read:
            # Reading it twice in one query (a self join with a table between) must not count twice.
            name = f"millstream.{stream.name}"
            self.metrics[name] = stream
            with _at(stream):
                if isinstance(stream.origin, Registered) and key in self.frames:
                    self._read[key] = classify(self.frames[key], stream, name)
                else:
                    self._read[key] = read_stream(stream, self.spark, self.read_port, name)
        return self._read[key]

    def _union(self, node: nodes.StreamUnion) -> DataFrame:
        """Both inputs with the same columns; the timestamps that travel along make one order of them.

        What follows is stateless and does not care in which order tuples come; the results are sorted.
        """
        left, right = self._lower(node.left), self._lower(node.right)
        hidden = [name for name in HIDDEN if name in left.columns or name in right.columns]
        return _aligned(left, right, node, hidden).union(_aligned(right, left, node, hidden))

    def _join(self, node: nodes.TableJoin) -> DataFrame:
        left, right = self._lower(node.left), self._lower(node.right)
        if node.condition is None:
            return (
                left.crossJoin(right)
                if node.kind in ("inner", "cross")
                else left.join(right, how=_HOW[node.kind])
            )
        how = "inner" if node.kind == "cross" else _HOW[node.kind]
        return left.join(right, _column(node.condition), how)


def _aligned(frame: DataFrame, other: DataFrame, node: nodes.StreamUnion, hidden: list[str]) -> DataFrame:
    """The columns of an input under the names and types of the union, and all hidden columns of both."""
    names = [f"c{i}" if name not in HIDDEN else name for i, name in enumerate(frame.columns)]
    shown = [name for name in names if name not in HIDDEN]
    outputs = [
        (F.col(name).cast(to_spark_type(field.type)) if field.type.is_known else F.col(name)).alias(
            field.name
        )
        for name, field in zip(shown, node.fields, strict=True)
    ]
    travelling = [
        F.col(name)
        if name in names and not (name == TIME and node.latent)
        else F.lit(None).cast("timestamp" if name == TIME else other.schema[name].dataType).alias(name)
        for name in hidden
    ]
    return frame.toDF(*names).select(*outputs, *travelling)


@contextmanager
def _at(entry: Stream | Table) -> Iterator[None]:
    """What goes wrong with a source is shown where the source was defined."""
    try:
        yield
    except FAILURES as error:
        translated = translate(error)
        translated.place = translated.place or entry.place
        raise translated from None


def _column(expr: Expr) -> Column:
    return F.expr(expr.sql)
