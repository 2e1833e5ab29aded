"""Patterns over the same tuples: the columns that any of them reads, each once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from millstream.analysis.queries.resolved_expression import Expr
from millstream.kernels.specs import PatternSpec
from millstream.physical.nodes import SearchedPattern
from millstream.types import Type


@dataclass(frozen=True)
class PatternGroup:
    """The columns shipped for all patterns, and the specification of each pattern."""

    values: dict[str, tuple[Expr, Type]]
    specs: tuple[PatternSpec, ...]


def group_patterns(searches: Sequence[tuple[SearchedPattern, PatternSpec]]) -> PatternGroup:
    """Name the columns of all patterns anew, so that equal expressions have one name."""
    names: dict[tuple[str, str], str] = {}
    values: dict[str, tuple[Expr, Type]] = {}
    specs = []
    for search, spec in searches:
        arguments = []
        for value, type_ in search.values.values():
            name = names.setdefault((value.sql, str(type_)), f"a{len(names)}")
            values.setdefault(name, (value, type_))
            arguments.append(name)
        specs.append(replace(spec, arguments=tuple(arguments)))
    return PatternGroup(values, tuple(specs))
