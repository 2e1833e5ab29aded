"""Names of a pattern query: variables, tuples, columns, and their types.

``Y.price`` is a column of a tuple, ``Y.previous.price`` of the tuple before it, ``FIRST(Y).price`` and
``LAST(Y).price`` of the first and last tuple of a star. Without a qualifier there are only the columns by
which the stream is partitioned.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from millstream.analysis.error_collector import error_at
from millstream.analysis.patterns.star_aggregates import written_call
from millstream.analysis.queries.name_resolver import (
    aggregate_name,
    check_arguments,
    is_aggregate_call,
    result_type,
)
from millstream.analysis.queries.resolved_expression import ColumnRef
from millstream.analysis.types.elaborator import Elaborator
from millstream.analysis.types.literal_types import path_type
from millstream.analysis.udas.aggregate_versions import bodies_of
from millstream.catalog.builtin_aggregates import RUNNING_NAMES
from millstream.errors import AnalysisError, did_you_mean
from millstream.ir.pattern import End, Place
from millstream.syntax import nodes
from millstream.types import UNKNOWN, Field, Type, struct

if TYPE_CHECKING:
    from millstream.analysis.queries.name_resolver import Resolver
    from millstream.analysis.queries.scope import Scope, ScopeRelation
    from millstream.catalog import Catalog
    from millstream.types import Field


PREVIOUS = "previous"
_BEFORE = frozenset({"prev", "prior", "before", "lag", "preceding"})
"""Words of other languages for the tuple before."""
ENDS = ("first", "last")


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


class PatternTyper(Elaborator):
    """Types of the expressions of a pattern query; a subclass makes their form."""

    where = "in a pattern"

    def __init__(self, names: PatternNames, resolver: Resolver) -> None:
        super().__init__(
            resolver.catalog,
            column=self._column,
            call=self._call,
            node=self._starred,
            query=resolver.type_of,
            names=lambda: [*resolver.catalog.function_names(), *RUNNING_NAMES],
        )
        self.names = names

    # ------------------------------------------------------------ names

    def _column(self, node: exp.Column) -> Type | None:
        if self.names.variable_of(node) is not None:
            return self._of_variable(node)
        if len(node.parts) == 1:
            return self._partition_column(node)
        if self.names.table_of(node) is None:
            raise self._unknown_qualifier(node)
        found = self.names.tables.resolve(node)
        return path_type(found.column.type, found.fields, node) if found is not None else None

    def _of_variable(self, node: exp.Column) -> Type:
        path = [part.name for part in node.parts[1:]]
        while path and path[0].lower() == PREVIOUS and not (len(path) == 1 and self._has_column(PREVIOUS)):
            path = path[1:]
        if not path:
            self._check_tuple(node)
            return self._tuple_type(node)
        column = self.names.relation.find(path[0])
        if column is None:
            raise error_at(
                node,
                f"unknown column '{path[0]}' in '{self.names.relation.shown}'",
                hint=self._instead_of(path, node),
            )
        return path_type(column.type, path[1:], node)

    def _instead_of(self, path: list[str], node: exp.Column) -> str | None:
        """Return a hint about an unknown column of a tuple; before another name it may have been a tuple."""
        before = path[0].lower() in _BEFORE or did_you_mean(path[0], [PREVIOUS]) is not None
        if len(path) > 1 and before:
            tuple_ = f"{node.parts[0].name}.{PREVIOUS}"
            return f"the tuple before {node.parts[0].name} is {tuple_}: write {tuple_}.{'.'.join(path[1:])}"
        return did_you_mean(path[0], self._columns())

    def _tuple_type(self, node: exp.Expr) -> Type:
        """Return the type of a tuple; sqlglot cuts ``Y.previous.previous.previous.previous.c`` at a tuple."""
        type_ = one = self.names.tuple_type
        while one.is_known and isinstance(node.parent, exp.Dot) and node.parent.name.lower() == PREVIOUS:
            type_ = struct(*one.fields, Field(PREVIOUS, type_))
            node = node.parent
        return type_

    def _check_tuple(self, node: exp.Column) -> None:
        """Check that a whole tuple is counted, or that a column is taken from it."""
        within = node.parent
        if isinstance(within, exp.Dot) and len(node.parts) > 1:
            return
        if within is not None and (isinstance(within, nodes.Starred) or is_aggregate(within, self._catalog)):
            return
        raise self._whole_tuple(".".join(part.name for part in node.parts), node)

    def _partition_column(self, node: exp.Column) -> Type:
        column = self.names.relation.find(node.name)
        if column is not None and self.names.is_partition_column(column.name):
            return column.type
        if column is not None and self._has_column(node.name):
            choices = " or ".join(f"{v.name}.{column.name}" for v in self.names.variables[:2])
            raise error_at(node, f"'{node.name}' does not say of which tuple", hint=f"write {choices}")
        owner = next((r for r in self.names.tables.relations if r.fields and r.find(node.name)), None)
        if owner is not None:
            raise error_at(node, f"'{node.name}' needs its table", hint=f"write {owner.alias}.{node.name}")
        raise error_at(node, f"unknown column '{node.name}'", hint=did_you_mean(node.name, self._columns()))

    def _unknown_qualifier(self, node: exp.Column) -> AnalysisError:
        head = node.parts[0]
        variables = [v.name for v in self.names.variables]
        if head.name.lower() == self.names.relation.alias.lower():
            return error_at(
                node,
                f"'{head.name}' is searched for a pattern, so a column needs a variable of the pattern",
                hint=f"write {variables[0]}.{node.name}",
            )
        known = [*variables, *(r.alias for r in self.names.tables.relations)]
        return error_at(
            head,
            f"unknown pattern variable or table '{head.name}'",
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
        function = self._catalog.function(name)
        if function is not None:
            check_arguments(function, node, given)
            return function.returns
        aggregate = self._catalog.aggregate(name) or self._catalog.aggregate(name, window=True)
        if aggregate is not None:
            check_arguments(aggregate, node, given)
            type_ = result_type(aggregate)
            return type_ if type_.is_known else self._returned(name, given)
        whole = tuple_argument(node, self.names)
        if name.lower() in ENDS and whole is not None:
            self._check_end(f"{name}({whole.name})", node)
            return self.names.tuple_type
        if name.lower() in RUNNING_NAMES:
            complete = exp.Anonymous(
                this=RUNNING_NAMES[name.lower()], expressions=[a.copy() for a in node.expressions]
            )
            return self.type_of(complete)
        return None

    def _returned(self, name: str, given: list[Type]) -> Type:
        """Return the type of an aggregate that declares none, for arguments of these types."""
        bodies = bodies_of(name, given, self._catalog)
        body = bodies.base or bodies.window
        return UNKNOWN if body is None else body.returns[0].type

    def _check_end(self, written: str, node: exp.Expr) -> None:
        if not isinstance(node.parent, exp.Dot):
            raise self._whole_tuple(written, node)

    def _whole_tuple(self, written: str, node: exp.Expr) -> AnalysisError:
        column = next(iter(self._columns()), "c")
        return error_at(node, f"'{written}' is a whole tuple", hint=f"name a column: {written}.{column}")


def is_aggregate(node: exp.Expr, catalog: Catalog) -> bool:
    """Tell whether this node is a whole call of an aggregate, those that only patterns have included."""
    call = written_call(node).call
    running = isinstance(call, exp.Anonymous) and call.name.lower() in RUNNING_NAMES
    return running or is_aggregate_call(node, catalog)


def is_part_of_row(node: exp.Expr, catalog: Catalog) -> bool:
    """Tell whether this node is a column of the row that an aggregate of the user's returns."""
    is_dot = isinstance(node, exp.Dot) and is_aggregate(node.this, catalog)
    return is_dot and catalog.has_aggregate(aggregate_name(node.this))


def tuple_argument(call: exp.Expr, names: PatternNames) -> Variable | None:
    """Return the variable that is the only argument of a call, by itself, with or without a star."""
    if len(call.expressions) != 1:
        return None
    argument = call.expressions[0]
    column = argument.this if isinstance(argument, nodes.Starred) else argument
    whole = isinstance(column, exp.Column) and len(column.parts) == 1
    return names.variable_of(column) if whole else None


_ENDS = dict(zip(ENDS, (End.FIRST, End.LAST), strict=True))


@dataclass(frozen=True)
class TupleColumn:
    """``Y.previous.pos.x``: a column of a tuple of the pattern, and the fields of a struct taken from it."""

    variable: Variable
    end: End
    back: int
    column: Field
    fields: tuple[str, ...] = ()

    @property
    def place(self) -> Place:
        return Place(self.variable.position, self.end, self.back)

    @property
    def ref(self) -> ColumnRef:
        """The column by which a match has it, whatever the spelling."""
        name, type_ = self.column.name, self.column.type
        if self.end is End.NOW and not self.back:
            return ColumnRef(self.variable.name, name, type_)
        whole = self.variable.name
        if self.end is not End.NOW:
            whole = f"{self.end.value.upper()}({whole})"
        return ColumnRef("", ".".join([whole, *[PREVIOUS] * self.back, name]), type_)


def tuple_column(node: exp.Expr, names: PatternNames) -> TupleColumn | None:
    """Return the column of a tuple that a name means, or None.

    sqlglot cuts long names: the first four parts are a column, the rest are dots around it.
    """
    path: list[str] = []
    while isinstance(node, exp.Dot):
        path.insert(0, node.expression.name)
        node = node.this
    variable, end = None, End.NOW
    if isinstance(node, exp.Column):
        variable = names.variable_of(node)
        path = [*(part.name for part in node.parts[1:]), *path]
    elif isinstance(node, exp.Anonymous) and node.name.lower() in ENDS:
        variable, end = tuple_argument(node, names), _ENDS[node.name.lower()]
    columns = {field.name.lower(): field for field in names.relation.fields or ()}
    back = 0
    while path and path[0].lower() == PREVIOUS and not (len(path) == 1 and PREVIOUS in columns):
        path, back = path[1:], back + 1
    if variable is None or not path or path[0].lower() not in columns:
        return None
    return TupleColumn(variable, end, back, columns[path[0].lower()], tuple(path[1:]))
