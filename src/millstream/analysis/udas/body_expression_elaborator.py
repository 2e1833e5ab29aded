"""Expressions of an aggregate's body in their checked form: columns of scans, parameters, ``oldest()``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from millstream.analysis.types.elaborator import Elaborator, shown
from millstream.analysis.types.implicit_casts import converted, together
from millstream.analysis.udas.body_expressions import OLDEST, SQLCODE, BodyTyper
from millstream.errors import AnalysisError
from millstream.ir import typed_nodes
from millstream.ir.typed_nodes import Constant, Expr
from millstream.syntax.spans import span_of
from millstream.types import BIGINT, Type

if TYPE_CHECKING:
    from millstream.analysis.queries.scope import Scope

Found = Callable[[exp.Expr], Expr | None]
"""Somebody who is asked about every node first: who groups knows keys and aggregates."""


def no_value(node: exp.Expr) -> Expr | None:
    return None


@dataclass
class Scans:
    """The scans of a SELECT, by the names under which it knows them, and those of the queries around it."""

    scope: Scope
    numbers: dict[str, typed_nodes.Scan] = field(default_factory=dict)
    outer: Scans | None = None

    def column(self, relation: str, name: str) -> typed_nodes.Column | None:
        scan = self.numbers.get(relation.lower())
        if scan is None:
            return None if self.outer is None else self.outer.column(relation, name)
        for index, column in enumerate(scan.fields):
            if column.name.lower() == name.lower():
                return typed_nodes.Column(scan.number, index, column.type)
        return None


class BodyExpressionElaborator(Elaborator):
    """Makes checked expressions of the trees of one statement or SELECT.

    ``query`` makes the checked form of a subquery.
    """

    where = "in an aggregate"

    def __init__(
        self,
        typer: BodyTyper,
        scans: Scans,
        query: Callable[[exp.Expr, Scans], typed_nodes.Query],
        found: Found = no_value,
    ) -> None:
        super().__init__(typer.settled_type, typer.names.catalog)
        self._typer = typer
        self._scans = scans
        self._query = query
        self._found = found

    def found(self, node: exp.Expr) -> Expr | None:
        return self._found(node)

    # ------------------------------------------------------------ names

    def column(self, node: exp.Column) -> Expr:
        names = self._typer.names
        head = node.parts[0].name
        if not self._typer._is_column(head, qualified=len(node.parts) > 1):
            parameter = names.parameter(head)
            if parameter is not None:
                if len(node.parts) > 1:
                    raise self.refused(node, "a part of a struct")
                position = [p.name.lower() for p in names.parameters].index(head.lower())
                return typed_nodes.Parameter(
                    position, self._known(names.open_types.settled(parameter.type), node)
                )
            if len(node.parts) == 1 and head.lower() == SQLCODE:
                return typed_nodes.SqlCode()
        named = self._typer.scope.resolve(node)
        if named is None:
            return self.called(head.lower(), node, ())
        if named.fields:
            raise self.refused(node, "a part of a struct")
        column = self._scans.column(named.column.relation, named.column.name)
        if column is None:
            raise self.refused(node, f"'{shown(node)}'")
        self._known(column.type, node)
        return column

    def _known(self, type_: Type, node: exp.Expr) -> Type:
        if not type_.is_known:
            raise AnalysisError(
                f"the type of '{shown(node)}' cannot be told", span=span_of(node), hint="declare it"
            )
        return type_

    def dot(self, node: exp.Dot) -> Expr:
        inner = node.this
        if isinstance(inner, exp.Anonymous) and inner.name.lower() == OLDEST:
            return self._oldest(inner, node.expression.name)
        raise self.refused(node, "a part of a struct")

    def call(self, node: exp.Anonymous) -> Expr:
        return self._oldest(node, None) if node.name.lower() == OLDEST else super().call(node)

    def _oldest(self, node: exp.Anonymous, name: str | None) -> Expr:
        table = self._typer.names.table(typed_nodes.INWINDOW)
        assert table is not None, "the checker has seen to it"
        fields = self._typer.names.settled(table.fields)
        index = 0 if name is None else [f.name.lower() for f in fields].index(name.lower())
        position: Expr = Constant(1, BIGINT)
        if node.expressions:
            position = self.as_(node.expressions[0], BIGINT)
        return typed_nodes.Oldest(position, index, self._known(fields[index].type, node))

    # ------------------------------------------------------------ queries

    def among(self, node: exp.In) -> Expr:
        given = node.this.expressions if isinstance(node.this, exp.Tuple) else [node.this]
        values = tuple(self.of(value) for value in given)
        inner = self._query(node.args["query"].unnest(), self._scans)
        pairs = [together(value, output) for value, output in zip(values, inner.outputs, strict=True)]
        inner = with_outputs(inner, [pair[1] for pair in pairs])
        return typed_nodes.InQuery(tuple(pair[0] for pair in pairs), inner)

    def exists(self, node: exp.Exists) -> Expr:
        return typed_nodes.Exists(self._query(node.this.unnest(), self._scans))

    def subquery(self, node: exp.Expr) -> Expr:
        inner = self._query(node.unnest(), self._scans)
        return typed_nodes.Scalar(inner, inner.outputs[0].type)


def with_outputs(query: typed_nodes.Query, outputs: Sequence[Expr]) -> typed_nodes.Query:
    """The same query with its outputs converted, those of united queries too."""
    united = tuple(
        with_outputs(
            other, [converted(own, new.type) for own, new in zip(other.outputs, outputs, strict=True)]
        )
        for other in query.united
    )
    return replace(query, outputs=tuple(outputs), united=united)
