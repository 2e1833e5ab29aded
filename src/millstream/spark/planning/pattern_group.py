"""Searches in the same tuples: the columns that any of them looks at, once, and what they ask in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from millstream.analysis.queries.resolved_expression import Expr
from millstream.codegen.patterns.pattern_compiler import compile_shared_pattern
from millstream.codegen.patterns.shared_conditions import renumbered, shared_conditions
from millstream.kernels.specs import PatternSpec
from millstream.spark.planning.pattern_stage import PatternStage
from millstream.types import Type


@dataclass(frozen=True)
class PatternGroup:
    """What is shipped for all of them, and what the kernel is told of each."""

    values: dict[str, tuple[Expr, Type]]
    specs: tuple[PatternSpec, ...]


def group_patterns(searches: Sequence[PatternStage]) -> PatternGroup:
    names: dict[tuple[str, str], str] = {}
    values: dict[str, tuple[Expr, Type]] = {}
    columns = []
    for search in searches:
        own = {}
        for parameter, (value, type_) in zip(
            search.spec.program.parameters, search.values.values(), strict=True
        ):
            name = names.setdefault((value.sql, str(type_)), f"a{len(names)}")
            values.setdefault(name, (value, type_))
            own[search.form.fields.index(parameter)] = name
        columns.append(own)
    return PatternGroup(values, tuple(_specs(searches, columns, list(values))))


def _specs(
    searches: Sequence[PatternStage], columns: Sequence[dict[int, str]], names: Sequence[str]
) -> list[PatternSpec]:
    """``columns`` are those of each pattern's form by the names that are shipped."""
    sharing = [compile_shared_pattern(search.form) for search in searches]
    questions = [
        renumbered(one.questions, {index: names.index(name) for index, name in own.items()})
        for one, own in zip(sharing, columns, strict=True)
    ]
    specs = []
    for search, one, own, place in zip(searches, sharing, columns, shared_conditions(questions), strict=True):
        program = search.spec.program
        if place is not None:
            # Tables that aggregates read have been read for the program of the search by itself.
            given = {table.name: table for table in program.given}
            program = replace(one.program, given=tuple(given[table.name] for table in one.program.given))
        arguments = tuple(own[search.form.fields.index(parameter)] for parameter in program.parameters)
        specs.append(PatternSpec(program, arguments, search.spec.results, place))
    return specs
