"""From a sequence pattern to what its search is shipped of tuples, and what it gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 (Spark's own custom)

from millstream.analysis.queries.resolved_expression import ColumnRef, Expr, of_column
from millstream.codegen.patterns.measure_programs import with_programs
from millstream.codegen.patterns.pattern_compiler import compile_pattern
from millstream.codegen.udas.uda_compiler import CONTENT
from millstream.ir.pattern import Pattern
from millstream.kernels.core.kernel import Kernel
from millstream.kernels.specs import PatternSpec
from millstream.kernels.udas.compiled_machine import returned_fields
from millstream.plan.nodes import Node
from millstream.plan.pattern_parts import PatternSearch
from millstream.spark.planning.over_stage import program_of
from millstream.types import Type


@dataclass(frozen=True)
class PatternStage:
    """What a search is made of: columns to ship, partitions, what the kernel is told, and its results."""

    form: Pattern
    values: dict[str, tuple[Expr, Type]]
    keys: tuple[Expr, ...]
    spec: PatternSpec
    results: tuple[pa.Field, ...]


@dataclass(frozen=True)
class PatternInput:
    """What a stage searches in: patterns that are searched for in the same can be searched for together."""

    input: Node
    search: PatternStage
    before: tuple[Callable[[], Kernel], ...]
    """What is done with tuples before the search."""


def pattern_stage(node: PatternSearch) -> PatternStage:
    clause = node.pattern
    form = clause.form
    assert form is not None, "it has passed the list of what can be run"
    form = with_programs(form, lambda body: program_of(body, CONTENT))
    program = compile_pattern(form)
    values = dict(zip((field.name for field in form.fields), _values(node), strict=True))
    arguments = tuple(f"a{i}" for i in range(len(program.parameters)))
    wanted = {
        name: (values[parameter.name], parameter.type)
        for name, parameter in zip(arguments, program.parameters, strict=True)
    }
    results = tuple(f"r{i}" for i in range(len(program.returns)))
    keys = tuple(of_column(_column(node, name)) for name in clause.partition_by)
    spec = PatternSpec(program, arguments, results)
    return PatternStage(form, wanted, keys, spec, tuple(returned_fields(program, results)))


def as_columns(values: Mapping[str, tuple[Expr, Type]]) -> dict[str, Column]:
    """What searches look at, as Spark computes it."""
    return {name: F.expr(value.sql).cast(str(type_)) for name, (value, type_) in values.items()}


def needed_by(node: PatternSearch) -> Iterator[Expr]:
    """What a search may look at."""
    yield from _values(node)


def _values(node: PatternSearch) -> list[Expr]:
    """What the fields of the pattern's tuples are: columns, and what is computed before the search."""
    return [*map(of_column, node.input.schema), *(output.expr for output in node.pattern.computed)]


def _column(node: PatternSearch, name: str) -> ColumnRef:
    return next(column for column in node.input.schema if column.name.lower() == name.lower())
