"""DataFrames without Spark: what lowering asks of them, on rows in memory.

A column is the text of an expression, which the oracle evaluates and the analysis types. So plans are lowered
by the engine's own code, in milliseconds instead of seconds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import types as T  # noqa: N812 (Spark's own custom)
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from millstream.analysis.queries.resolved_expression import ColumnRef, Expr
from millstream.analysis.types.expression_types import Typer
from millstream.spark.lowering import frames, input_frames, translator
from millstream.spark.planning import (
    aggregate_columns,
    append_only_join_stage,
    change_columns,
    pattern_stage,
    relation_stages,
    stage_builder,
    uda_columns,
    window_stage,
)
from millstream.spark.session.spark_types import from_spark_type, to_spark_type
from millstream.spark.sources import hidden_columns, stream_sources
from millstream.syntax import parse_expression
from millstream.types import BIGINT, Type
from oracle.values import expressions
from oracle.values.expressions import compiled

Row = tuple[Any, ...]
_MODULES = (
    aggregate_columns,
    frames,
    hidden_columns,
    translator,
    relation_stages,
    pattern_stage,
    change_columns,
    input_frames,
    stream_sources,
    stage_builder,
    uda_columns,
    append_only_join_stage,
    window_stage,
)


@dataclass(frozen=True, eq=False)
class Column:
    """An expression, perhaps with a name; or several, as a struct; or a field, or a row each, of a column."""

    text: str
    name: str | None = None
    struct: tuple[Column, ...] = ()
    field: str | None = None
    exploded: bool = False

    def alias(self, name: str) -> Column:
        return replace(self, name=name)

    def __getitem__(self, field: str) -> Column:
        return Column(self.text, field=field)

    def cast(self, to: T.DataType | str) -> Column:
        if self.field is not None:
            return self  # fields of returned rows have their types already
        text = to if isinstance(to, str) else to.simpleString()
        return Column(f"CAST({self.text} AS {text})")

    def isNull(self) -> Column:  # noqa: N802 (as Spark calls it)
        return Column(f"({self.text} IS NULL)")

    def isNotNull(self) -> Column:  # noqa: N802
        return Column(f"({self.text} IS NOT NULL)")

    def when(self, condition: Column, value: Any) -> Column:
        text = self.text.removesuffix(" END")
        return Column(f"{text} WHEN {condition.text} THEN {_column(value).text} END")

    def otherwise(self, value: Any) -> Column:
        return Column(f"{self.text.removesuffix(' END')} ELSE {_column(value).text} END")

    def __and__(self, other: Column) -> Column:
        return Column(f"({self.text} AND {other.text})")

    def __or__(self, other: Column) -> Column:
        return Column(f"({self.text} OR {other.text})")

    def __invert__(self) -> Column:
        return Column(f"(NOT {self.text})")

    def __gt__(self, other: object) -> Column:
        return Column(f"({self.text} > {_column(other).text})")

    def __eq__(self, other: object) -> Column:  # type: ignore[override]
        return Column(f"({self.text} = {_column(other).text})")

    __hash__ = None  # type: ignore[assignment]


def _column(value: Any) -> Column:
    if isinstance(value, Column):
        return value
    if value is None or isinstance(value, bool):
        return Column({None: "NULL", True: "TRUE", False: "FALSE"}[value])
    if isinstance(value, str):
        return Column("'" + value.replace("'", "''") + "'")
    return Column(f"CAST('{value}' AS DOUBLE)" if isinstance(value, float) else str(value))


def _named(name: str) -> Column:
    return Column(name if name.startswith("`") else f"`{name}`")


FUNCTIONS = SimpleNamespace(
    expr=Column,
    col=_named,
    lit=_column,
    when=lambda condition, value: Column(f"CASE WHEN {condition.text} THEN {_column(value).text} END"),
    coalesce=lambda *columns: Column(f"coalesce({', '.join(c.text for c in columns)})"),
    struct=lambda *columns: Column("", struct=columns),
    xxhash64=lambda *columns: Column(f"xxhash64({', '.join(c.text for c in columns)})"),
    abs=lambda column: Column(f"abs({column.text})"),
    count=lambda column: column,
    count_if=lambda column: column,
    max=lambda column: column,
    min=lambda column: column,
    concat=lambda *columns: Column(f"concat({', '.join(c.text for c in columns)})"),
    substring=lambda column, start, length: Column(f"substring({column.text}, {start}, {length})"),
    isnan=lambda name: Column(f"({_column(_named(name)).text} = CAST('NaN' AS DOUBLE))"),
    to_json=lambda column: Column(f"CAST(xxhash64({', '.join(c.text for c in column.struct)}) AS STRING)"),
    size=lambda name: Column(f"size({_named(name).text})"),
    explode_outer=lambda name: Column(_named(name).text, exploded=True),
    date_format=lambda column, form: column,
    current_timestamp=lambda: Column("TIMESTAMP '2026-01-01 12:00:00'"),
)
"""Those of Spark's functions that lowering calls by itself."""


@dataclass(frozen=True)
class Frame:
    """Rows, and the columns that they have."""

    refs: tuple[ColumnRef, ...]
    rows: Sequence[Row] = ()
    isStreaming: bool = field(default=True, init=False)  # noqa: N815

    # ------------------------------------------------------------ as Spark has it

    @property
    def columns(self) -> list[str]:
        return [ref.name for ref in self.refs]

    @property
    def schema(self) -> T.StructType:
        return T.StructType([T.StructField(ref.name, to_spark_type(ref.type)) for ref in self.refs])

    @property
    def sparkSession(self) -> Session:  # noqa: N802
        return Session()

    def alias(self, name: str) -> Frame:
        return Frame(tuple(ColumnRef(name, ref.name, ref.type) for ref in self.refs), self.rows)

    def select(self, *columns: Column | str) -> Frame:
        refs: list[ColumnRef] = []
        values: list[Callable[[Row], Any]] = []
        for one in columns:
            if (one if isinstance(one, str) else one.text) in ("*", "`*`"):
                refs += self.refs
                values += [lambda row, i=i: row[i] for i in range(len(self.refs))]
                continue
            whole = _named(one) if isinstance(one, str) else one
            for relation, column in [(whole.name or "", part) for part in whole.struct] or [("", whole)]:
                type_, value = self._evaluated(column)
                refs.append(ColumnRef(relation, column.name or column.text.strip("`"), type_))
                values.append(value)
        # What was aliased is found by its alias until it is selected; lowering relies on no more than that.
        found = Frame(tuple(refs), [tuple(value(row) for value in values) for row in self.rows])
        exploded = [i for i, one in enumerate(columns) if isinstance(one, Column) and one.exploded]
        return found._exploded(exploded[0]) if exploded else found

    def _exploded(self, place: int) -> Frame:
        """A row for each element of a list, or one if there is none."""
        ref = self.refs[place]
        assert ref.type.element is not None
        refs = (
            *self.refs[:place],
            ColumnRef(ref.relation, ref.name, ref.type.element),
            *self.refs[place + 1 :],
        )
        parts = ((row, one) for row in self.rows for one in row[place] or [None])
        return Frame(refs, [(*row[:place], one, *row[place + 1 :]) for row, one in parts])

    def withColumn(self, name: str, column: Column) -> Frame:  # noqa: N802
        type_, value = self._evaluated(column)
        if name not in self.columns:
            return Frame((*self.refs, ColumnRef("", name, type_)), [(*row, value(row)) for row in self.rows])
        place = self.columns.index(name)
        refs = (*self.refs[:place], ColumnRef("", name, type_), *self.refs[place + 1 :])
        return Frame(refs, [(*row[:place], value(row), *row[place + 1 :]) for row in self.rows])

    def where(self, condition: Column) -> Frame:
        _, holds = self._evaluated(condition)
        return Frame(self.refs, [row for row in self.rows if holds(row) is True])

    def drop(self, *names: str) -> Frame:
        kept = [i for i, ref in enumerate(self.refs) if ref.name not in names]
        return Frame(tuple(self.refs[i] for i in kept), [tuple(row[i] for i in kept) for row in self.rows])

    def toDF(self, *names: str) -> Frame:  # noqa: N802
        pairs = zip(names, self.refs, strict=True)
        return Frame(tuple(ColumnRef("", name, ref.type) for name, ref in pairs), self.rows)

    def withColumnsRenamed(self, names: Mapping[str, str]) -> Frame:  # noqa: N802
        renamed = (ColumnRef(ref.relation, names.get(ref.name, ref.name), ref.type) for ref in self.refs)
        return Frame(tuple(renamed), self.rows)

    def observe(self, *_: Any) -> Frame:
        return self

    def agg(self, column: Column) -> Frame:
        return Frame((ColumnRef("", column.name or "", self._type(column.text)),))

    def unionByName(self, other: Frame, allowMissingColumns: bool = False) -> Frame:  # noqa: N802, N803
        refs = [*self.refs, *(ref for ref in other.refs if ref.name not in self.columns)]
        sides = [
            [tuple(row[side.columns.index(ref.name)] if ref.name in side.columns else None for ref in refs)
             for row in side.rows]
            for side in (self, other)
        ]  # fmt: skip
        return Frame(tuple(ColumnRef("", ref.name, ref.type) for ref in refs), [*sides[0], *sides[1]])

    def crossJoin(self, other: Frame) -> Frame:  # noqa: N802
        return self.join(other, Column("TRUE"), "inner")

    def join(self, other: Frame, condition: Column, how: str) -> Frame:
        both = Frame((*self.refs, *other.refs))
        _, holds = both._evaluated(condition)
        nothing = (None,) * len(other.refs)
        rows = []
        for row in self.rows:
            met = [mate for mate in other.rows if holds((*row, *mate)) is True]
            if how in ("left_semi", "left_anti"):
                rows += [row] if bool(met) == (how == "left_semi") else []
            else:
                rows += [(*row, *mate) for mate in met or ([nothing] if how == "left_outer" else [])]
        return Frame(self.refs if how in ("left_semi", "left_anti") else both.refs, rows)

    def toArrow(self) -> pa.Table:  # noqa: N802
        # By number first, because two columns may have the same name.
        fields = [T.StructField(f"c{i}", to_spark_type(ref.type)) for i, ref in enumerate(self.refs)]
        schema = to_arrow_schema(T.StructType(fields), timezone="UTC")
        columns = list(zip(*self.rows, strict=True)) or [()] * len(self.refs)
        arrays = [pa.array(column, one.type) for column, one in zip(columns, schema, strict=True)]
        return pa.table(arrays, names=self.columns)

    # ------------------------------------------------------------ expressions

    def _evaluated(self, column: Column) -> tuple[Type, Callable[[Row], Any]]:
        if column.field is not None:
            place = self.columns.index(column.text.strip("`"))
            type_ = next(one.type for one in self.refs[place].type.fields if one.name == column.field)
            return type_, lambda row: None if row[place] is None else row[place][column.field]
        known = (*self.refs, *(ColumnRef("", ref.name, ref.type) for ref in self.refs))
        value = compiled(Expr((column.text,), BIGINT), known)
        return self._type(column.text), lambda row: value((*row, *row))

    def _type(self, text: str) -> Type:
        def of_column(node: Any) -> Type:
            parts = [part.name.lower() for part in node.parts]
            return next(
                ref.type
                for ref in self.refs
                if ref.name.lower() == parts[-1] and (len(parts) == 1 or ref.relation.lower() == parts[0])
            )

        return Typer(column=of_column).type_of(parse_expression(text))


class Session:
    """The little that lowering asks of a session."""

    def range(self, count: int) -> Frame:
        return Frame((ColumnRef("", "id", BIGINT),), [(i,) for i in range(count)])


def from_arrow(table: pa.Table) -> Frame:
    fields = from_arrow_schema(table.schema).fields
    refs = tuple(ColumnRef("", one.name, from_spark_type(one.dataType)) for one in fields)
    return Frame(refs, list(zip(*(column.to_pylist() for column in table.columns), strict=True)))


@contextmanager
def instead_of_spark() -> Iterator[None]:
    """What is lowered meanwhile is made of these frames."""
    with pytest.MonkeyPatch.context() as patch:
        for module in _MODULES:
            patch.setattr(module, "F", FUNCTIONS)
        patch.setitem(expressions._CALLS, "xxhash64", _hashes)
        patch.setitem(expressions._CALLS, "size", _sizes)
        yield


def _hashes(compiler: Any, node: Any) -> Callable[[Row], int]:
    """Not Spark's numbers, but such that equal values have equal ones."""
    parts = [compiler.function(argument) for argument in node.expressions]

    def value(row: Row) -> int:
        text = "|".join(str(part(row)) for part in parts).encode()
        return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little", signed=True)

    return value


def _sizes(compiler: Any, node: Any) -> Callable[[Row], int]:
    rows = compiler.function(node.expressions[0])
    return lambda row: -1 if rows(row) is None else len(rows(row))
