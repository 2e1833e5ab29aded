"""From a physical plan to a DataFrame: each node as Spark runs it, and nothing is decided."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import singledispatch

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own custom)

from millstream.catalog.entries import Registered, Stream, Table, View
from millstream.errors import ExecutionError
from millstream.kernels.column_names import OP
from millstream.physical import nodes
from millstream.physical.node import Guard, PhysicalNode
from millstream.spark.errors.error_chain import FAILURES, translate
from millstream.spark.lowering.columns import computed, expression, guarded, with_hidden
from millstream.spark.lowering.input_frames import input_frame
from millstream.spark.lowering.stage_runner import StageRunner
from millstream.spark.session.spark_types import to_spark_type
from millstream.spark.sources.hidden_columns import KEEP, MARK, TIME, column, hidden, shown, sort_keys
from millstream.spark.sources.stream_sources import ReadPort, SourceFrames, classify, read_stream, read_table

_HOW = {
    "inner": "inner",
    "cross": "cross",
    "left": "left_outer",
    "right": "right_outer",
    "full": "full_outer",
    "semi": "left_semi",
    "anti": "left_anti",
}
_MATCHED = "__ms_matched"
_REPORT = "__ms_report"


@dataclass
class Sources:
    """Streams and tables of the catalog as DataFrames, each read once.

    ``frames`` are those that the caller registered; ``live`` tables and views are read anew by every
    micro-batch. What is read is counted under the names in ``metrics``.
    """

    spark: SparkSession
    read_port: ReadPort
    frames: Mapping[str, DataFrame]
    live: Mapping[str, DataFrame] = field(default_factory=dict)
    metrics: dict[str, Stream] = field(default_factory=dict)
    _read: dict[str, SourceFrames] = field(default_factory=dict)

    def stream(self, stream: Stream) -> SourceFrames:
        """Return the tuples and the bad records of a stream."""
        key = stream.name.lower()
        if key not in self._read:
            # Reading it twice in one query (a self join with a table between) must not count twice.
            name = f"millstream.{stream.name}"
            self.metrics[name] = stream
            with _at(stream):
                if (
                    isinstance(stream.origin, Registered)
                    and (read := stream.read.name.lower()) in self.frames
                ):
                    self._read[key] = classify(self.frames[read], stream, name)
                else:
                    self._read[key] = read_stream(stream, self.spark, self.read_port, name)
        return self._read[key]

    def table(self, table: Table) -> DataFrame:
        """Return a table that is no derived one."""
        if not isinstance(table.origin, Registered):
            return read_table(table, self.spark)
        if table.name.lower() in self.frames:
            return self.frames[table.name.lower()]
        raise ExecutionError(
            f"table '{table.name}' was declared without a source",
            hint="add USING format OPTIONS (...) to its CREATE TABLE",
        )


@dataclass
class Translation:
    """The surroundings of a translation: sources, and the runner of stages.

    Where queries share a scan, ``read`` stands for it, and ``batch`` has the rows of their stages.
    """

    sources: Sources
    stages: StageRunner
    read: DataFrame | None = None
    batch: DataFrame | None = None

    def frame(self, node: PhysicalNode) -> DataFrame:
        """Return the rows of a node, with their hidden columns."""
        return to_frame(node, self)


@singledispatch
def to_frame(node: PhysicalNode, to: Translation) -> DataFrame:
    """Return the rows of a node, with their hidden columns."""
    raise AssertionError(f"{type(node).__name__} is no node of a plan that is run")


# ------------------------------------------------------------ leaves


@to_frame.register
def _scan(node: nodes.Scan, to: Translation) -> DataFrame:
    if to.read is not None:
        return to.read.alias(node.alias)
    frames = to.sources.stream(node.stream)
    frame = frames.good if node.bad is None else frames.bad
    return frame.alias(node.alias) if node.alias else frame


@to_frame.register
def _table_scan(node: nodes.TableScan, to: Translation) -> DataFrame:
    table = node.table
    frame = to.sources.live.get(table.name.lower())
    if frame is None and node.definition is not None:
        with _at(table) if isinstance(table, Table) else nullcontext():
            frame = shown(to.frame(node.definition))
    if frame is None and isinstance(table, View):
        # Views that a query reads have been registered before it is translated, as they are now.
        frame = to.sources.spark.table(table.name)
    if frame is None:
        assert isinstance(table, Table)
        with _at(table):
            frame = to.sources.table(table)
    return frame.alias(node.alias)


@to_frame.register
def _spark_query(node: nodes.SparkQuery, to: Translation) -> DataFrame:
    return to.sources.spark.sql(node.text)


# ------------------------------------------------------------ without a state


@to_frame.register
def _rename(node: nodes.Rename, to: Translation) -> DataFrame:
    return to.frame(node.input).alias(node.alias)


@to_frame.register
def _compute(node: nodes.Compute, to: Translation) -> DataFrame:
    frame, guard = to.frame(node.input), node.guard
    for condition in node.conditions:
        holds = expression(condition)
        if node.late_pending:
            frame = frame.withColumn(KEEP, F.coalesce(guarded(guard, holds), F.lit(False)))
            guard = Guard.KEPT
        else:
            frame = frame.where(holds if guard is Guard.NONE else guarded(guard, holds).otherwise(True))
    unseen = hidden(frame.columns)
    if node.columns is None:
        frame = with_hidden(frame, [] if nodes.ALL in node.drops else node.hidden)
        frame = frame.drop(*(name for name in unseen if node.is_dropped(name)))
        return with_hidden(frame, node.hidden if nodes.ALL in node.drops else [])
    kept = [column(name) for name in unseen if not node.is_dropped(name)]
    return with_hidden(frame.select(*computed(node.columns, guard), *kept), node.hidden)


@to_frame.register
def _align(node: nodes.Align, to: Translation) -> DataFrame:
    given = to.frame(node.input)
    unseen = hidden(given.columns)
    count = len(given.columns) - len(unseen)
    assert given.columns[count:] == unseen, "hidden columns come last"
    # By number, because two columns may have the same name.
    frame = given.toDF(*(f"c{i}" if i < count else name for i, name in enumerate(given.columns)))
    columns = [
        (F.col(f"c{i}").cast(to_spark_type(f.type)) if f.type.is_known else F.col(f"c{i}")).alias(f.name)
        for i, f in enumerate(node.fields_)
    ]
    made = {c.name: expression(c.expr).alias(c.name) for c in node.hidden}
    drops = node.drops or ("\0",)
    passed = [made.pop(name, column(name)) for name in unseen if name in made or not name.startswith(drops)]
    return frame.select(*columns, *passed, *made.values())


@to_frame.register
def _merge(node: nodes.Merge, to: Translation) -> DataFrame:
    # By number, because two columns may have the same name.
    frames = [to.frame(branch) for branch in node.branches]
    shown = [name for name in frames[0].columns if name not in hidden(frames[0].columns)]
    first, *others = (
        frame.toDF(*(f"c{i}" for i in range(len(shown))), *frame.columns[len(shown) :]) for frame in frames
    )
    for other in others:
        first = first.unionByName(other, allowMissingColumns=True)
    return first.toDF(*shown, *first.columns[len(shown) :])


@to_frame.register
def _lookup(node: nodes.Lookup, to: Translation) -> DataFrame:
    left, right = to.frame(node.left), to.frame(node.right)
    if node.marked:
        return _marked_lookup(node, left, right)
    if node.condition is not None:
        how = "inner" if node.kind == "cross" else _HOW[node.kind]
        return _hidden_last(left.join(right, expression(node.condition), how))
    if node.kind in ("inner", "cross"):
        return _hidden_last(left.crossJoin(right))
    return _hidden_last(left.join(right, how=_HOW[node.kind]))


def _marked_lookup(node: nodes.Lookup, left: DataFrame, right: DataFrame) -> DataFrame:
    """Join so that reports of a stage and retractions come through."""
    rows, table = (left, right) if node.stream_is_left else (right, left)
    if node.kind == "semi":
        # Reports match a row without values, so that they pass even if the table is empty.
        report = table.sparkSession.range(1).select(F.lit(True).alias(_REPORT))
        table = table.join(report, F.lit(False), "full_outer")
    table = table.withColumn(_MATCHED, F.lit(True))
    condition = F.lit(True) if node.condition is None else expression(node.condition)
    exempt = F.col(MARK).isNotNull()
    if node.signed:
        exempt = exempt | (F.coalesce(F.col(OP), F.lit(0)) < 0)
    met = ~exempt & condition
    if node.kind == "anti":
        return _hidden_last(rows.join(table, met, "left_anti"))
    if node.kind == "semi":
        passes = exempt & F.col(_REPORT).isNotNull()
        matches = met & F.col(_REPORT).isNull()
        return _hidden_last(rows.join(table, passes | matches, "left_semi"))
    frame = rows.join(table, met, "left_outer")
    if node.kind not in ("left", "right"):
        frame = frame.where(exempt | F.col(_MATCHED))
    return _hidden_last(frame.drop(_MATCHED))


def _hidden_last(frame: DataFrame) -> DataFrame:
    """Put hidden columns at the end, also behind the columns of a table that was joined."""
    unseen = hidden(frame.columns)
    return (
        frame.select(F.col("*"), *(column(name).alias(f"{name}_") for name in unseen))
        .drop(*unseen)
        .withColumnsRenamed({f"{name}_": name for name in unseen})
    )


# ------------------------------------------------------------ tables only


@to_frame.register
def _sequence(node: nodes.Sequence, to: Translation) -> DataFrame:
    # A number of the row is its time, as SEQUENCE BY may have several columns of any type.
    frame = to.frame(node.input).orderBy(*map(expression, node.keys), F.monotonically_increasing_id())
    return shown(frame).withColumn(TIME, F.monotonically_increasing_id())


@to_frame.register
def _arrange(node: nodes.Arrange, to: Translation) -> DataFrame:
    result = shown(to.frame(node.input))
    names, wanted = result.columns, node.arrangement
    result = result.toDF(*(f"c{i}" for i in range(len(names))))  # two columns may have the same name
    keys: list[Column] = []
    for key in wanted.keys:
        own = F.col(f"c{key.column}")
        if key.descending:
            keys.append(own.desc_nulls_first() if key.nulls_first else own.desc_nulls_last())
        else:
            keys.append(own.asc_nulls_first() if key.nulls_first else own.asc_nulls_last())
    result = result.orderBy(*keys) if keys else result
    result = result.offset(wanted.offset) if wanted.offset else result
    result = result.limit(wanted.limit) if wanted.limit is not None else result
    return result.toDF(*names)


@to_frame.register
def _distinct(node: nodes.Distinct, to: Translation) -> DataFrame:
    return shown(to.frame(node.input)).distinct()


@to_frame.register
def _set_operation(node: nodes.TableSetOperation, to: Translation) -> DataFrame:
    one, other = to.frame(node.left), to.frame(node.right)
    match node.kind, node.all:
        case "UNION", every:
            united = one.union(other)
            return united if every else united.distinct()
        case "INTERSECT", every:
            return one.intersectAll(other) if every else one.intersect(other)
        case _, every:
            return one.exceptAll(other) if every else one.subtract(other)


@to_frame.register
def _groups(node: nodes.TableGroups, to: Translation) -> DataFrame:
    frame = to.frame(node.input)
    keys = [expression(key.expr).alias(f"g{i}") for i, key in enumerate(node.group_by)]
    calls = [F.expr(call.text).alias(f"r{i}") for i, call in enumerate(node.aggregates)]
    return frame.groupBy(*keys).agg(*calls) if calls else frame.select(*keys).distinct()


# ------------------------------------------------------------ stages


@to_frame.register
def _stage(node: nodes.Stage, to: Translation) -> DataFrame:
    return to.stages.run(node, [input_frame(one, to.frame(one.node)) for one in node.sources])


@to_frame.register
def _explode(node: nodes.Explode, to: Translation) -> DataFrame:
    frame = to.frame(node.input)
    if not node.outer:
        marks = F.col(MARK).isNotNull() if node.marked else F.lit(False)
        frame = frame.where(marks | (F.size(node.column) > 0))
    names = (node.column,) if node.position is None else (node.position, node.column)
    items = F.explode_outer(node.column) if node.position is None else F.posexplode_outer(node.column)
    others = [F.col(name) for name in frame.columns if name != node.column]
    return frame.select(*others, items.alias(*names))


@to_frame.register
def _branch(node: nodes.Branch, to: Translation) -> DataFrame:
    rows = to.batch
    assert rows is not None, "it is translated over the rows of a micro-batch"
    mine = [F.col(name) == number for name, number in filter(None, (node.tag, node.branch))]
    if mine:
        rows = rows.where(functools.reduce(lambda one, other: one & other, mine))
    return rows.select(*(F.col(inner).alias(name) for inner, name in node.columns))


@to_frame.register
def _output(node: nodes.Output, to: Translation) -> DataFrame:
    frame = to.frame(node.input)
    return frame.orderBy(*map(column, sort_keys(frame.columns))) if node.stored else frame


@contextmanager
def _at(entry: Stream | Table) -> Iterator[None]:
    """Show an error of a source where the source was defined."""
    try:
        yield
    except FAILURES as error:
        translated = translate(error)
        translated.place = translated.place or entry.place
        raise translated from None
