"""References of an expression to a pattern: to tuples, to complete or growing stars.

An aggregate with a star in its argument (``count(*Y)``) and FIRST and LAST are final: they have a value when
the star is complete. ``ccount(Y)`` and its like, non-blocking aggregates of users and moving windows are
running: they have one with every tuple (semantics, section 8).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from sqlglot import exp

from millstream.analysis.error_collector import error_at
from millstream.analysis.patterns.pattern_names import (
    ENDS,
    PatternNames,
    Variable,
    is_aggregate,
    tuple_argument,
)
from millstream.analysis.patterns.star_aggregates import WrittenCall, written_call
from millstream.analysis.queries.name_resolver import aggregate_name
from millstream.catalog.builtin_aggregates import RUNNING_NAMES, TABLE, within
from millstream.catalog.functions import builtin, builtin_names
from millstream.errors import AnalysisError, UnknownNameError, did_you_mean
from millstream.syntax import nodes, to_sql
from millstream.syntax.spans import span_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.catalog import Catalog

_SORTED = [name for row in TABLE if row.within is not None for name in row.names]
"""Aggregates to which the order of values makes a difference."""


class ReferenceKind(Enum):
    """Kind of a reference to a variable."""

    TUPLE = "tuple"
    RUNNING = "running"
    FINAL = "final"


@dataclass(frozen=True)
class VariableReference:
    """A variable in an expression, or (None) a table beside the pattern."""

    variable: Variable | None
    how: ReferenceKind
    node: exp.Expr


class ReferenceFinder:
    """Finder of references in an expression, which refuses aggregates that a pattern cannot have."""

    def __init__(self, names: PatternNames, catalog: Catalog) -> None:
        self.names = names
        self.catalog = catalog

    def of(self, node: exp.Expr) -> Iterator[VariableReference]:
        if isinstance(node, exp.Query):
            return
        if is_aggregate(node, self.catalog):
            yield self._aggregate(node)
            return
        if isinstance(node, nodes.Starred):
            raise self._misplaced(node)
        if isinstance(node, exp.Column):
            variable = self.names.variable_of(node)
            if variable is not None:
                yield VariableReference(variable, ReferenceKind.TUPLE, node)
            elif self.names.table_of(node) is not None:
                yield VariableReference(None, ReferenceKind.TUPLE, node)
            return
        for child in node.iter_expressions():
            yield from self.of(child)

    def _misplaced(self, node: nodes.Starred) -> AnalysisError:
        """Return the error for a star outside aggregates, or in a call of an unknown one."""
        call = node.find_ancestor(exp.Anonymous)
        if call is None or builtin(call.name) is not None or self.catalog.function(call.name) is not None:
            return error_at(node, "a star belongs in an aggregate", hint="count(*Y)")
        names = [*self.catalog.function_names(), *sorted(builtin_names())]
        return UnknownNameError(
            "function", call.name, span=span_of(call), hint=did_you_mean(call.name, names)
        )

    # ------------------------------------------------------------ aggregates

    def _aggregate(self, node: exp.Expr) -> VariableReference:
        name = aggregate_name(node)
        written = written_call(node)
        if not isinstance(written.call, exp.Anonymous):
            raise error_at(node, f"'{name}' takes only arguments in a pattern")
        self._check_not_nested(node, name)
        self._check_sorted(node, name, written)
        starred = list(node.find_all(nodes.Starred))
        variable = self._variable(node, name)
        if name.lower() in ENDS and not self.catalog.has_aggregate(name):
            return self._end(node, name, variable, written)
        if not variable.star:
            raise error_at(
                node,
                f"'{variable.name}' is one tuple, and aggregates are for stars",
                hint=f"put a star before it in the pattern: *{variable.name}",
            )
        if isinstance(node, exp.Window):
            return self._moving(node, variable, starred)
        self._check_base_version(node, name)
        if starred:
            self._check_all_starred(written, variable)
            return VariableReference(variable, ReferenceKind.FINAL, node)
        if not self._is_running(name):
            raise self._needs_star(node, name, variable, written)
        return VariableReference(variable, ReferenceKind.RUNNING, node)

    def _check_not_nested(self, node: exp.Expr, name: str) -> None:
        calls = [p for p in node.walk() if isinstance(p, exp.Anonymous) and is_aggregate(p, self.catalog)]
        if len(calls) > 1:
            raise error_at(calls[1], f"aggregate '{calls[1].name}' inside '{name}'")

    def _check_sorted(self, node: exp.Expr, name: str, written: WrittenCall) -> None:
        if written.order and (within(name) is None or self.catalog.has_aggregate(name)):
            raise error_at(node, f"'{name}' takes no WITHIN GROUP", hint=f"{', '.join(_SORTED)} do")

    def _variable(self, node: exp.Expr, name: str) -> Variable:
        """Return the one variable that an aggregate is about."""
        found = [v for c in node.find_all(exp.Column) if (v := self.names.variable_of(c)) is not None]
        if not found:
            raise self._no_variable(node, name)
        if any(variable != found[0] for variable in found):
            raise error_at(node, f"'{name}' is about more than one variable of the pattern")
        return found[0]

    def _no_variable(self, node: exp.Expr, name: str) -> AnalysisError:
        column = next(node.find_all(exp.Column), None)
        head = column.parts[0].name if column is not None else ""
        unqualified = column is not None and len(column.parts) == 1 and self.names.relation.find(head)
        if column is not None and not unqualified and self.names.table_of(column) is None:
            variables = [v.name for v in self.names.variables]
            return error_at(
                column,
                f"unknown pattern variable '{head}'",
                hint=did_you_mean(head, variables) or f"there are {', '.join(variables)}",
            )
        star = next((v for v in self.names.variables if v.star), self.names.variables[0])
        return error_at(
            node,
            f"'{name}' is not about a variable of the pattern",
            hint=f"write {name}(*{star.name}{f'.{head}' if unqualified else ''})",
        )

    def _end(self, node: exp.Expr, name: str, variable: Variable, written: WrittenCall) -> VariableReference:
        if isinstance(node, exp.Window):
            raise error_at(node, f"{name.upper()} takes no OVER in a pattern")
        if written.has_more and tuple_argument(written.call, self.names) is not None:
            raise error_at(
                node,
                f"{name.upper()}({variable.name}) is about all tuples of the star",
                hint=f"name a column: {name}(*{variable.name}.c) FILTER (WHERE ...)",
            )
        if not variable.star:
            raise error_at(
                node,
                f"'{variable.name}' is one tuple, and {name.upper()} is for stars",
                hint=f"write {variable.name} and the column",
            )
        return VariableReference(variable, ReferenceKind.FINAL, node)

    def _moving(
        self, node: exp.Window, variable: Variable, starred: list[nodes.Starred]
    ) -> VariableReference:
        """Refer to a moving aggregate, ``avg(Y.v) OVER (ROWS 4 PRECEDING)``, of a growing star."""
        if starred:
            raise error_at(starred[0], "a moving window is about a star that grows: no *")
        spec = node.args.get("spec")
        if not isinstance(spec, nodes.OverSpec) or not _counts_back(node, spec):
            raise error_at(node, "a moving window of a pattern counts tuples", hint="OVER (ROWS n PRECEDING)")
        return VariableReference(variable, ReferenceKind.RUNNING, node)

    def _check_base_version(self, node: exp.Expr, name: str) -> None:
        if self.catalog.aggregate(name, window=True) is not None and self.catalog.aggregate(name) is None:
            raise error_at(
                node,
                f"'{name}' has only a window version",
                hint=f"over a star the base version is used: CREATE AGGREGATE {name}",
            )

    def _check_all_starred(self, written: WrittenCall, variable: Variable) -> None:
        """Check that all arguments have a star; sort keys need none."""
        columns = [c for c in written.call.find_all(exp.Column) if self.names.variable_of(c) is not None]
        if any(column.find_ancestor(nodes.Starred) is None for column in columns):
            raise error_at(written.call, f"'{variable.name}' has a star in one argument and none in another")

    def _is_running(self, name: str) -> bool:
        user = self.catalog.aggregate(name)
        return not user.blocking if user is not None else name.lower() in RUNNING_NAMES

    def _needs_star(
        self, node: exp.Expr, name: str, variable: Variable, written: WrittenCall
    ) -> AnalysisError:
        message = f"'{name}' has no value before '{variable.name}' is complete"
        column = next(written.call.find_all(exp.Column), None)
        if column is None and written.order:
            hint = f"put a star into WITHIN GROUP: ORDER BY *{to_sql(written.sorted_by[0])}"
            return error_at(node, message, hint=hint)
        if column is None:
            return error_at(node, message, hint=f"write {name}(*{variable.name})")
        argument = ".".join(part.name for part in column.parts)
        running = next((r for r, complete in RUNNING_NAMES.items() if complete == name.lower()), None)
        instead = f", or {running}({argument}) for its value with every tuple" if running else ""
        return error_at(node, message, hint=f"write {name}(*{argument}){instead}")


def _counts_back(node: exp.Window, spec: nodes.OverSpec) -> bool:
    """Tell whether a window is ROWS n PRECEDING and nothing else."""
    more = [node.args.get("partition_by"), node.args.get("order")]
    more += [spec.args.get(clause) for clause in ("slide", "active", "emit")]
    frame = [str(spec.args.get(part)).upper() for part in ("kind", "start_side", "end")]
    return not any(more) and frame == ["ROWS", "PRECEDING", "CURRENT ROW"]
