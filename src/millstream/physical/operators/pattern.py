"""Sequence patterns: the columns that a search looks at, its program, and the columns of matches."""

from __future__ import annotations

from collections.abc import Iterator

from millstream.analysis.queries.resolved_expression import ColumnRef, Expr, of_column
from millstream.codegen.patterns.measure_programs import with_programs
from millstream.codegen.udas.uda_compiler import CONTENT
from millstream.kernels.kernel_specs import ReorderSpec
from millstream.kernels.specs import PatternSpec
from millstream.physical import expressions as ex
from millstream.physical.flow import Flow, named, passed
from millstream.physical.node import Choice
from millstream.physical.nodes import SearchedPattern
from millstream.physical.operators.udas import returned_columns
from millstream.physical.programs import Programs
from millstream.physical.stage_builder import StageBuilder, StageDraft
from millstream.plan.pattern_parts import PatternSearch


def plan_pattern(stages: StageBuilder, flow: Flow, node: PatternSearch, *, marked: bool) -> Flow:
    """Plan the search for a sequence pattern."""
    searched, spec = pattern_spec(node, stages.programs)
    stage = stages.build(
        flow,
        StageDraft(
            {},
            {name: ex.cast(value, type_) for name, (value, type_) in searched.values.items()},
            keys=searched.keys,
            kernels=(ReorderSpec(), spec),
            added=returned_columns(spec.program, spec.results),
            marked=marked,
            anew=True,
            pattern=searched,
            notes=(Choice("pattern", _elements(node)),),
        ),
    )
    columns = zip(node.schema, spec.results, strict=True)
    return Flow((passed(flow, named(stage, columns), marked=marked),))


def pattern_spec(node: PatternSearch, programs: Programs) -> tuple[SearchedPattern, PatternSpec]:
    """Return what a search looks at, and its specification."""
    clause = node.pattern
    assert clause.form is not None, "it has passed the list of what can be run"
    form = with_programs(clause.form, lambda body: programs.program(body, CONTENT))
    program = programs.pattern(form)
    values = dict(zip((field.name for field in form.fields), values_of(node), strict=True))
    arguments = tuple(f"a{i}" for i in range(len(program.parameters)))
    looked_at = {
        name: (values[parameter.name], parameter.type)
        for name, parameter in zip(arguments, program.parameters, strict=True)
    }
    results = tuple(f"r{i}" for i in range(len(program.returns)))
    keys = tuple(of_column(_column(node, name)) for name in clause.partition_by)
    return SearchedPattern(looked_at, keys), PatternSpec(program, arguments, results)


def values_of(node: PatternSearch) -> list[Expr]:
    """Return the fields of the pattern's tuples: columns, and what is computed before the search."""
    return [*map(of_column, node.input.schema), *(output.expr for output in node.pattern.computed)]


def _column(node: PatternSearch, name: str) -> ColumnRef:
    return next(column for column in node.input.schema if column.name.lower() == name.lower())


def _elements(node: PatternSearch) -> str:
    return f"({', '.join(_names(node))})"


def _names(node: PatternSearch) -> Iterator[str]:
    for element in node.pattern.elements:
        yield f"{'*' if element.star else ''}{element.name}"
