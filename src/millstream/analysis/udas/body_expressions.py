"""Expressions of a body: local columns, parameters, ``sqlcode``, ``oldest()`` and subqueries."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from millstream.analysis.error_collector import error_at
from millstream.analysis.queries.name_resolver import (
    aggregate_name,
    check_arguments,
    check_clear,
    is_aggregate_call,
    result_type,
)
from millstream.analysis.types.elaborator import Elaborator, shown
from millstream.analysis.types.implicit_casts import converted, together
from millstream.analysis.types.literal_types import path_type
from millstream.analysis.types.operator_types import check_condition_type
from millstream.analysis.udas.body_names import NO_RECURSION, is_literal, walk
from millstream.catalog.functions import builtin
from millstream.errors import AnalysisError, did_you_mean
from millstream.ir import typed_nodes
from millstream.ir.typed_nodes import INWINDOW, Constant, Expr
from millstream.types import BIGINT, INT, UNKNOWN, Field, Type, struct

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from millstream.analysis.queries.scope import NamedColumn, Scope, ScopeRelation
    from millstream.analysis.udas.body_names import Attempt, BodyNames, Fields, Scans

_OLDEST = "oldest"
_SQLCODE = "sqlcode"

_WITHOUT_PARAMETERS = {
    "EXPIRE": "EXPIRE is about the tuple that leaves: oldest()",
    "TERMINATE": "TERMINATE comes after the last tuple; keep the value in a table in INITIALIZE and ITERATE",
}
"""Blocks that no tuple belongs to, and what to do there instead."""
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ)


class BodyExpressions(Elaborator):
    """Expressions of one statement or SELECT: their types, what they tell about open types, their form.

    ``query`` analyses a subquery: its columns, None where only Spark knows them, and its form.
    """

    where = "in an aggregate"

    def __init__(
        self,
        names: BodyNames,
        scans: Scans,
        query: Callable[[exp.Query, Scans], tuple[Fields | None, Attempt[typed_nodes.Query]]],
    ) -> None:
        super().__init__(
            names.catalog,
            column=self._column,
            call=self._call,
            query=self._scalar,
            names=names.catalog.function_names,
            remember=names.is_typed,
        )
        self.names = names
        self._scans = scans
        self._query = query
        self._meanings: dict[int, Field | NamedColumn | None] = {}
        self._queries: dict[int, Attempt[typed_nodes.Query]] = {}
        self._in_group: Callable[[exp.Expr], Expr | None] = lambda node: None

    def grouped(self, in_group: Callable[[exp.Expr], Expr | None]) -> BodyExpressions:
        """Return a twin for expressions after grouping; ``in_group`` makes keys and aggregates."""
        twin = copy(self)
        twin._in_group = in_group
        return twin

    # ------------------------------------------------------------ whole expressions

    def check(self, node: exp.Expr) -> Type:
        """Return the type of an expression, and learn from it about open types."""
        type_ = self.type_of(node)
        for part in walk(node):
            self._check_unseen_query(part)
            if not self.names.open_types.all_settled:
                self._learn(part)
        return type_

    def check_plain(self, node: exp.Expr, where: str) -> Type:
        """Return the type of an expression that may have no aggregates in it."""
        for part in walk(node):
            if is_aggregate_call(part, self.names.catalog):
                name = aggregate_name(part)
                raise error_at(
                    part,
                    f"aggregate '{name}' cannot be used {where}",
                    hint=f"aggregates belong in SELECT: (SELECT {name}(...) FROM t)",
                )
        return self.check(node)

    def check_condition(self, node: exp.Expr | None, what: str, *, aggregates: bool = False) -> None:
        if node is None:
            return
        type_ = self.check(node) if aggregates else self.check_plain(node, f"in {what}")
        check_condition_type(type_, node, what)

    def found(self, node: exp.Expr) -> Expr | None:
        return self._in_group(node)

    # ------------------------------------------------------------ names

    def _column(self, node: exp.Column) -> Type | None:
        meaning = self._meanings[id(node)] = self._meaning(node)
        if meaning is None:
            return None
        if isinstance(meaning, Field):
            return path_type(meaning.type, [part.name for part in node.parts[1:]], node)
        return path_type(meaning.column.type, meaning.fields, node)

    def _meaning(self, node: exp.Column) -> Field | NamedColumn | None:
        """Resolve a name to a parameter or ``sqlcode`` (a field), or to a column."""
        head = node.parts[0].name
        if not self._is_column(head, qualified=len(node.parts) > 1):
            parameter = self.names.parameter(head)
            if parameter is not None:
                self._check_parameter(parameter, node)
                return Field(parameter.name, self.names.open_types.settled(parameter.type))
            if len(node.parts) == 1 and head.lower() == _SQLCODE:
                return Field(_SQLCODE, INT)
            if len(node.parts) == 1 and all(r.fields is not None for r in self._relations()):
                raise self._unknown(node)
        return self._scans.scope.resolve(node)

    def column(self, node: exp.Column) -> Expr:
        meaning = self._meanings.get(id(node))
        if meaning is None:
            return self.called(node.parts[0].name.lower(), node, ())
        if isinstance(meaning, Field):
            return self._parameter(meaning, node)
        if meaning.fields:
            raise self.refused(node, "a part of a struct")
        column = self._scans.column(meaning.column.relation, meaning.column.name)
        if column is None:
            raise self.refused(node, f"'{shown(node)}'")
        self._known(column.type, node)
        return column

    def _parameter(self, meaning: Field, node: exp.Column) -> Expr:
        names = [parameter.name for parameter in self.names.parameters]
        if meaning.name not in names:
            return typed_nodes.SqlCode()
        if len(node.parts) > 1:
            raise self.refused(node, "a part of a struct")
        return typed_nodes.Parameter(names.index(meaning.name), self._known(meaning.type, node))

    def _known(self, type_: Type, node: exp.Expr) -> Type:
        if not type_.is_known:
            raise error_at(node, f"the type of '{shown(node)}' cannot be told", hint="declare it")
        return type_

    def _is_column(self, name: str, qualified: bool) -> bool:
        """Tell whether a name is surely a column, or a table before a column: they hide parameters."""
        return any(
            (qualified and relation.alias.lower() == name.lower())
            or (relation.fields is not None and relation.find(name))
            for relation in self._relations()
        )

    def _relations(self) -> Iterator[ScopeRelation]:
        scope: Scope | None = self._scans.scope
        while scope is not None:
            yield from scope.relations
            scope = scope.outer

    def _check_parameter(self, parameter: Field, node: exp.Column) -> None:
        hint = _WITHOUT_PARAMETERS.get(self.names.block)
        if hint is not None:
            raise error_at(node, f"parameter '{parameter.name}' is unknown in {self.names.block}", hint=hint)

    def _unknown(self, node: exp.Column) -> AnalysisError:
        columns = [f.name for relation in self._relations() for f in relation.fields or ()]
        parameters = [p.name for p in self.names.parameters]
        return error_at(
            node,
            f"unknown column or parameter '{node.name}'",
            hint=did_you_mean(node.name, [*columns, *parameters]),
        )

    # ------------------------------------------------------------ calls

    def _call(self, name: str, node: exp.Expr, given: list[Type]) -> Type | None:
        catalog = self.names.catalog
        check_clear(catalog, name, node)
        if name.lower() == _OLDEST:
            return self._oldest_type(node, given)
        function = catalog.function(name)
        if function is not None:
            check_arguments(function, node, given)
            return function.returns
        own = name.lower() == self.names.aggregate.lower()
        if own and not self.names.window:
            raise error_at(
                node,
                f"aggregate '{name}' calls itself",
                hint=NO_RECURSION,
            )
        base = catalog.aggregate(name)
        if base is not None:
            check_arguments(base, node, given)
            for parameter, type_ in zip(base.parameters, given, strict=True):
                self.names.open_types.meet(type_, parameter.type)
            return result_type(base)
        if builtin(name) is None and (own or catalog.has_aggregate(name)):
            raise error_at(
                node,
                f"'{name}' has only a window version",
                hint=f"an aggregate calls base aggregates: CREATE AGGREGATE {name}",
            )
        return None

    def _oldest_type(self, node: exp.Expr, given: list[Type]) -> Type:
        inwindow = self.names.table(INWINDOW)
        if not self.names.window:
            raise error_at(node, "oldest() is for window aggregates")
        if inwindow is None:
            raise error_at(
                node,
                "oldest() needs the table inwindow",
                hint="TABLE inwindow(...), with a column for each parameter",
            )
        whole = all(type_.is_integral or not type_.is_known for type_ in given)
        # A position is mostly written as a number, and what is written can be checked.
        positive = all(n.name != "0" and not isinstance(n, exp.Neg) for n in node.expressions)
        if len(given) > 1 or not whole or not positive:
            raise error_at(node, "oldest() takes at most a position: 1 is the oldest tuple, 2 the next")
        fields = self.names.settled(inwindow.fields)
        if isinstance(node.parent, exp.Dot):
            return struct(*fields)
        if len(fields) > 1:
            raise error_at(
                node,
                "oldest() is a row of several columns",
                hint=f"name one of them: oldest().{fields[0].name}",
            )
        return fields[0].type

    def dot(self, node: exp.Dot) -> Expr:
        inner = node.this
        if isinstance(inner, exp.Anonymous) and inner.name.lower() == _OLDEST:
            return self._oldest(inner, node.expression.name)
        raise self.refused(node, "a part of a struct")

    def function(self, node: exp.Anonymous) -> Expr:
        return self._oldest(node, None) if node.name.lower() == _OLDEST else super().function(node)

    def _oldest(self, node: exp.Anonymous, name: str | None) -> Expr:
        table = self.names.table(INWINDOW)
        assert table is not None, "the type was found"
        fields = self.names.settled(table.fields)
        index = 0 if name is None else [f.name.lower() for f in fields].index(name.lower())
        position: Expr = Constant(1, BIGINT)
        if node.expressions:
            position = self.as_(node.expressions[0], BIGINT)
        return typed_nodes.Oldest(position, index, self._known(fields[index].type, node))

    # ------------------------------------------------------------ subqueries

    def _fields(self, node: exp.Query) -> Fields | None:
        fields, self._queries[id(node.unnest())] = self._query(node, self._scans)
        return fields

    def _made(self, node: exp.Expr) -> typed_nodes.Query:
        return self._queries[id(node.unnest())].get()

    def _scalar(self, node: exp.Query) -> Type:
        fields = self._fields(node)
        if fields is None:
            return UNKNOWN
        self._check_width(node, fields, 1)
        return fields[0].type

    def _check_unseen_query(self, node: exp.Expr) -> None:
        """Analyse the queries of EXISTS, and of IN with several values, which have no type."""
        if isinstance(node, exp.All | exp.Any) and isinstance(node.this.unnest(), exp.Query):
            raise error_at(
                node, f"{node.key.upper()} takes no query", hint="compare with (SELECT max(a) FROM t)"
            )
        if isinstance(node, exp.Exists) and isinstance(node.this, exp.Query):
            self._fields(node.this)
        if isinstance(node, exp.In) and isinstance(node.this, exp.Tuple) and node.args.get("query"):
            query = node.args["query"].unnest()
            fields = self._fields(query)
            if fields is not None:
                self._check_width(query, fields, len(node.this.expressions))

    def _check_width(self, node: exp.Query, fields: Fields, wanted: int) -> None:
        if len(fields) != wanted:
            columns = f"{wanted} column{'' if wanted == 1 else 's'}"
            raise error_at(node, f"this query must have {columns}, not {len(fields)}")

    def among(self, node: exp.In) -> Expr:
        given = node.this.expressions if isinstance(node.this, exp.Tuple) else [node.this]
        values = tuple(self.of(value) for value in given)
        inner = self._made(node.args["query"])
        pairs = [together(value, output) for value, output in zip(values, inner.outputs, strict=True)]
        inner = with_outputs(inner, [pair[1] for pair in pairs])
        return typed_nodes.InQuery(tuple(pair[0] for pair in pairs), inner)

    def exists(self, node: exp.Exists) -> Expr:
        return typed_nodes.Exists(self._made(node.this))

    def subquery(self, node: exp.Expr) -> Expr:
        inner = self._made(node)
        return typed_nodes.Scalar(inner, inner.outputs[0].type)

    # ------------------------------------------------------------ learning

    def _learn(self, node: exp.Expr) -> None:
        pairs: list[tuple[exp.Expr, exp.Expr]] = []
        if isinstance(node, _COMPARISONS):
            pairs = [(node.this, node.expression)]
        elif isinstance(node, exp.Between):
            pairs = [(node.this, node.args["low"]), (node.this, node.args["high"])]
        elif isinstance(node, exp.In) and not isinstance(node.this, exp.Tuple):
            listed = [node.args["query"]] if node.args.get("query") else node.expressions
            pairs = [(node.this, element) for element in listed]
        for one, other in pairs:
            literal = is_literal(one) or is_literal(other)
            self.names.open_types.meet(self.type_of(one), self.type_of(other), literal=literal)


def with_outputs(query: typed_nodes.Query, outputs: Sequence[Expr]) -> typed_nodes.Query:
    """Replace the outputs of a query, and convert those of united queries to the same types."""
    united = tuple(
        with_outputs(
            other, [converted(own, new.type) for own, new in zip(other.outputs, outputs, strict=True)]
        )
        for other in query.united
    )
    return replace(query, outputs=tuple(outputs), united=united)
