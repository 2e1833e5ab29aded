"""What the expressions of a pattern query may name, and the types of what they say.

``Y.price`` is a column of a tuple, ``Y.previous.price`` of the tuple before it, ``FIRST(Y).price`` and
``LAST(Y).price`` of the first and last tuple of a star. Without a qualifier there are only the columns by
which the stream is partitioned.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from sqlglot import exp

from millstream.analysis.patterns.star_aggregate_calls import written_call
from millstream.analysis.queries.call_arguments import check_arguments
from millstream.analysis.queries.name_resolver import aggregate_name, is_aggregate_call, result_type
from millstream.analysis.types.expression_types import Typer, field_type
from millstream.analysis.udas.body_elaborator import bodies_of
from millstream.errors import AnalysisError, did_you_mean
from millstream.syntax import nodes
from millstream.syntax.spans import span_of
from millstream.types import UNKNOWN, Field, Type, struct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.analysis.queries.name_resolver import Resolver
    from millstream.analysis.queries.scope import Scope, ScopeRelation
    from millstream.catalog import Catalog

PREVIOUS = "previous"
_BEFORE = frozenset({"prev", "prior", "before", "lag", "preceding"})
"""Words of other languages for the tuple before."""
ENDS = ("first", "last")
RUNNING = {"ccount": "count", "csum": "sum", "cavg": "avg", "cmin": "min", "cmax": "max"}
"""Aggregates that have a value with every tuple of a star, and what they are when the star is complete."""


@dataclass(frozen=True)
class Variable:
    """A variable of the pattern and its place in it."""

    name: str
    star: bool
    position: int


@dataclass(frozen=True)
class PatternNames:
    """The variables of a pattern over one relation, and the tables beside it."""

    variables: tuple[Variable, ...]
    relation: ScopeRelation
    partition_by: tuple[str, ...]
    tables: Scope

    def variable(self, name: str) -> Variable | None:
        return next((v for v in self.variables if v.name.lower() == name.lower()), None)

    def variable_of(self, node: exp.Column) -> Variable | None:
        return self.variable(node.parts[0].name)

    def table_of(self, node: exp.Column) -> ScopeRelation | None:
        return self.tables.relation(node.parts[0].name) if len(node.parts) > 1 else None

    def is_partition_column(self, name: str) -> bool:
        return name.lower() in map(str.lower, self.partition_by)

    @property
    def tuple_type(self) -> Type:
        return struct(*self.relation.fields) if self.relation.fields is not None else UNKNOWN


class PatternTyper:
    """Types the expressions of a pattern query."""

    def __init__(self, names: PatternNames, resolver: Resolver) -> None:
        self.names = names
        self.catalog = resolver.catalog
        self._typer = Typer(
            column=self._column,
            call=self._call,
            node=self._starred,
            query=resolver.type_of,
            names=[*self.catalog.function_names(), *RUNNING],
        )

    def type_of(self, node: exp.Expr) -> Type:
        return self._typer.type_of(node)

    def settled_type(self, node: exp.Expr) -> Type:
        """The type of an expression in a pattern that has been checked; types are kept from now on."""
        self._typer.remember()
        return self._typer.type_of(node)

    # ------------------------------------------------------------ names

    def _column(self, node: exp.Column) -> Type | None:
        if self.names.variable_of(node) is not None:
            return self._of_variable(node)
        if len(node.parts) == 1:
            return self._partition_column(node)
        if self.names.table_of(node) is None:
            raise self._unknown_qualifier(node)
        found = self.names.tables.resolve(node)
        return _part(found.column.type, found.fields, node) if found is not None else None

    def _of_variable(self, node: exp.Column) -> Type:
        path = [part.name for part in node.parts[1:]]
        while path and path[0].lower() == PREVIOUS and not (len(path) == 1 and self._has_column(PREVIOUS)):
            path = path[1:]
        if not path:
            self._check_tuple(node)
            return self._tuple_type(node)
        column = self.names.relation.find(path[0])
        if column is None:
            raise AnalysisError(
                f"unknown column '{path[0]}' in '{self.names.relation.alias}'",
                span=span_of(node),
                hint=self._instead_of(path, node),
            )
        return _part(column.type, path[1:], node)

    def _instead_of(self, path: list[str], node: exp.Column) -> str | None:
        """A hint about an unknown column of a tuple; before another name it may have been a tuple."""
        before = path[0].lower() in _BEFORE or did_you_mean(path[0], [PREVIOUS]) is not None
        if len(path) > 1 and before:
            tuple_ = f"{node.parts[0].name}.{PREVIOUS}"
            return f"the tuple before {node.parts[0].name} is {tuple_}: write {tuple_}.{'.'.join(path[1:])}"
        return did_you_mean(path[0], self._columns())

    def _tuple_type(self, node: exp.Expr) -> Type:
        """A tuple; sqlglot cuts ``Y.previous.previous.previous.previous.c`` in the middle, at a tuple."""
        type_ = one = self.names.tuple_type
        while one.is_known and isinstance(node.parent, exp.Dot) and node.parent.name.lower() == PREVIOUS:
            type_ = struct(*one.fields, Field(PREVIOUS, type_))
            node = node.parent
        return type_

    def _check_tuple(self, node: exp.Column) -> None:
        """A whole tuple can be counted, or be the one of which a column is taken."""
        within = node.parent
        if isinstance(within, exp.Dot) and len(node.parts) > 1:
            return
        if within is not None and (isinstance(within, nodes.Starred) or is_aggregate(within, self.catalog)):
            return
        raise self._whole_tuple(".".join(part.name for part in node.parts), node)

    def _partition_column(self, node: exp.Column) -> Type:
        column = self.names.relation.find(node.name)
        if column is not None and self.names.is_partition_column(column.name):
            return column.type
        if column is not None and self._has_column(node.name):
            choices = " or ".join(f"{v.name}.{column.name}" for v in self.names.variables[:2])
            raise AnalysisError(
                f"'{node.name}' does not say of which tuple", span=span_of(node), hint=f"write {choices}"
            )
        owner = next((r for r in self.names.tables.relations if r.fields and r.find(node.name)), None)
        if owner is not None:
            raise AnalysisError(
                f"'{node.name}' needs its table", span=span_of(node), hint=f"write {owner.alias}.{node.name}"
            )
        raise AnalysisError(
            f"unknown column '{node.name}'", span=span_of(node), hint=did_you_mean(node.name, self._columns())
        )

    def _unknown_qualifier(self, node: exp.Column) -> AnalysisError:
        head = node.parts[0]
        variables = [v.name for v in self.names.variables]
        if head.name.lower() == self.names.relation.alias.lower():
            return AnalysisError(
                f"'{head.name}' is searched for a pattern, so a column needs a variable of the pattern",
                span=span_of(node),
                hint=f"write {variables[0]}.{node.name}",
            )
        known = [*variables, *(r.alias for r in self.names.tables.relations)]
        return AnalysisError(
            f"unknown pattern variable or table '{head.name}'",
            span=span_of(head),
            hint=did_you_mean(head.name, known) or f"there are {', '.join(known)}",
        )

    def _columns(self) -> list[str]:
        return [f.name for f in self.names.relation.fields or ()]

    def _has_column(self, name: str) -> bool:
        return any(name.lower() == column.lower() for column in self._columns())

    # ------------------------------------------------------------ calls

    def _starred(self, node: exp.Expr) -> Type | None:
        return self.type_of(node.this) if isinstance(node, nodes.Starred) else None

    def _call(self, name: str, node: exp.Expr, given: list[Type]) -> Type | None:
        function = self.catalog.function(name)
        if function is not None:
            check_arguments(function, node, given)
            return function.returns
        aggregate = self.catalog.aggregate(name) or self.catalog.aggregate(name, window=True)
        if aggregate is not None:
            check_arguments(aggregate, node, given)
            type_ = result_type(aggregate)
            return type_ if type_.is_known else self._returned(name, given)
        whole = tuple_argument(node, self.names)
        if name.lower() in ENDS and whole is not None:
            self._check_end(f"{name}({whole.name})", node)
            return self.names.tuple_type
        if name.lower() in RUNNING:
            complete = exp.Anonymous(
                this=RUNNING[name.lower()], expressions=[a.copy() for a in node.expressions]
            )
            return self.type_of(complete)
        return None

    def _returned(self, name: str, given: list[Type]) -> Type:
        """The type of an aggregate that declares none, for arguments of these types."""
        bodies = bodies_of(name, given, self.catalog)
        body = bodies.base or bodies.window
        return UNKNOWN if body is None else body.returns[0].type

    def _check_end(self, written: str, node: exp.Expr) -> None:
        if not isinstance(node.parent, exp.Dot):
            raise self._whole_tuple(written, node)

    def _whole_tuple(self, written: str, node: exp.Expr) -> AnalysisError:
        column = next(iter(self._columns()), "c")
        return AnalysisError(
            f"'{written}' is a whole tuple", span=span_of(node), hint=f"name a column: {written}.{column}"
        )


def is_aggregate(node: exp.Expr, catalog: Catalog) -> bool:
    """Whether this node is a whole call of an aggregate, those that only patterns have included."""
    call = written_call(node).call
    running = isinstance(call, exp.Anonymous) and call.name.lower() in RUNNING
    return running or is_aggregate_call(node, catalog)


def is_part_of_row(node: exp.Expr, catalog: Catalog) -> bool:
    """Whether this node is a column of the row that an aggregate of the user's returns."""
    is_dot = isinstance(node, exp.Dot) and is_aggregate(node.this, catalog)
    return is_dot and catalog.has_aggregate(aggregate_name(node.this))


def tuple_argument(call: exp.Expr, names: PatternNames) -> Variable | None:
    """The variable that is the only argument of a call, by itself, with or without a star."""
    if len(call.expressions) != 1:
        return None
    argument = call.expressions[0]
    column = argument.this if isinstance(argument, nodes.Starred) else argument
    whole = isinstance(column, exp.Column) and len(column.parts) == 1
    return names.variable_of(column) if whole else None


def _part(type_: Type, path: Sequence[str], node: exp.Expr) -> Type:
    return reduce(lambda whole, name: field_type(whole, name, node), path, type_)
