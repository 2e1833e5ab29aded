"""Queries of an aggregate's body in their checked form."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sqlglot import exp

from millstream.analysis.queries.name_resolver import aggregate_name, is_aggregate_call
from millstream.analysis.queries.scope import Scope, ScopeRelation
from millstream.analysis.types.builtin_aggregates import built_in, written_arguments
from millstream.analysis.types.coercion import common_type
from millstream.analysis.types.implicit_casts import converted
from millstream.analysis.udas.body_expression_elaborator import BodyExpressionElaborator, Scans, with_outputs
from millstream.analysis.udas.body_expressions import walk
from millstream.analysis.udas.body_queries import BodyQueries
from millstream.codegen.udas.body_facts import returns_growing_table
from millstream.errors import AnalysisError
from millstream.ir import typed_nodes
from millstream.syntax.spans import span_of
from millstream.types import BIGINT, BOOLEAN, Field

AGGREGATES = ("count", "sum", "avg", "min", "max", "first", "last", "any_value")
"""The built-in aggregates of queries in bodies."""


class BodyQueryElaborator:
    """One SELECT, read in the order in which it is computed."""

    def __init__(
        self,
        node: exp.Select,
        queries: BodyQueries,
        body: typed_nodes.Body,
        numbers: Iterator[int],
        outer: Scans | None,
    ) -> None:
        self._node, self._queries, self._body, self._numbers = node, queries, body, numbers
        self._scans = Scans(Scope(outer=None if outer is None else outer.scope), {}, outer)
        self._typer = queries.typer(self._scans.scope)
        self._aggregates: list[typed_nodes.Aggregation] = []
        self._keys: list[exp.Expr] = []

    @classmethod
    def query(
        cls,
        node: exp.Expr,
        queries: BodyQueries,
        body: typed_nodes.Body,
        numbers: Iterator[int],
        outer: Scans | None = None,
    ) -> typed_nodes.Query:
        node = node.unnest()
        if isinstance(node, exp.SetOperation):
            arranged = node.args.get("order") or node.args.get("limit")
            if not isinstance(node, exp.Union) or node.args.get("distinct") or arranged:
                raise AnalysisError(
                    f"{node.key.upper()} in this form cannot be used in an aggregate yet",
                    span=span_of(node),
                    hint="UNION ALL can; IN, NOT IN and EXISTS do the work of the others",
                )
            left, right = (
                cls.query(side, queries, body, numbers, outer) for side in (node.this, node.expression)
            )
            return _united(left, right)
        assert isinstance(node, exp.Select), "the checker has seen to it"
        return cls(node, queries, body, numbers, outer)._query()

    # ------------------------------------------------------------ the parts

    def _query(self) -> typed_nodes.Query:
        scans = self._from()
        plain = self._values()
        where = self._node.args.get("where")
        conditions = plain.conditions(where.this if where is not None else None)
        group = self._node.args.get("group")
        self._keys = [self._selected(key) for key in group.expressions] if group else []
        keys = tuple(plain.of(key) for key in self._keys)
        is_grouped = bool(self._keys) or any(self._calls())
        values = self._values(grouped=is_grouped)
        outputs, names = self._outputs(values)
        having = self._node.args.get("having")
        order = self._node.args.get("order")
        sorting = tuple(
            typed_nodes.Sorting(
                values.of(self._selected(part.this)),
                bool(part.args.get("desc")),
                bool(part.args.get("nulls_first", not part.args.get("desc"))),
            )
            for part in (order.expressions if order else ())
        )
        limit = self._node.args.get("limit")
        return typed_nodes.Query(
            scans,
            conditions,
            tuple(outputs),
            tuple(names),
            is_grouped,
            keys,
            having=None if having is None else values.condition(having.this),
            distinct=bool(self._node.args.get("distinct")),
            order=sorting,
            limit=None if limit is None else self._values().as_(limit.expression, BIGINT),
            aggregates=tuple(self._aggregates),
        )

    def _values(self, grouped: bool = False) -> BodyExpressionElaborator:
        def inner(node: exp.Expr, outer: Scans) -> typed_nodes.Query:
            return self.query(node, self._queries, self._body, self._numbers, outer)

        if not grouped:
            return BodyExpressionElaborator(self._typer, self._scans, inner)
        return BodyExpressionElaborator(self._typer, self._scans, inner, self._in_groups)

    def _calls(self) -> Iterator[exp.Expr]:
        having = self._node.args.get("having")
        parts = [*self._node.expressions, *([having.this] if having is not None else ())]
        order = self._node.args.get("order")
        parts += [self._selected(ordered.this) for ordered in (order.expressions if order else ())]
        catalog = self._queries.names.catalog
        return (part for whole in parts for part in walk(whole) if is_aggregate_call(part, catalog))

    # ------------------------------------------------------------ FROM

    def _from(self) -> tuple[typed_nodes.Scan, ...]:
        clause = self._node.args.get("from_")
        if clause is None:
            return ()
        joins = (*(clause.this.args.get("joins") or ()), *(self._node.args.get("joins") or ()))
        first = self._scan(clause.this)
        return (first, *(self._join(join) for join in joins))

    def _join(self, join: exp.Join) -> typed_nodes.Scan:
        side, kind = (join.side or "").upper(), (join.kind or "").upper()
        if side not in ("", "LEFT") or kind not in ("", "INNER", "CROSS", "OUTER"):
            raise AnalysisError(
                f"{f'{side} {kind}'.strip()} JOIN cannot be used in an aggregate yet",
                span=span_of(join.this),
                hint="LEFT and INNER joins can; EXISTS and NOT EXISTS do the work of SEMI and ANTI",
            )
        before = list(self._scans.scope.relations)
        scan = self._scan(join.this, left=side == "LEFT")
        on: list[typed_nodes.Expr] = []
        for column in join.args.get("using") or ():
            left = next(c for c in (r.find(column.name) for r in before) if c is not None)
            one = self._scans.column(left.relation, left.name)
            other = next(
                typed_nodes.Column(scan.number, i, f.type)
                for i, f in enumerate(scan.fields)
                if f.name.lower() == column.name.lower()
            )
            assert one is not None
            common = common_type(one.type, other.type)
            assert common is not None
            on.append(typed_nodes.Call("=", (converted(one, common), converted(other, common)), BOOLEAN))
            self._scans.scope.merged[column.name.lower()] = left.relation
        on += self._values().conditions(join.args.get("on"))
        return replace(scan, on=tuple(on))

    def _scan(self, node: exp.Expr, *, left: bool = False) -> typed_nodes.Scan:
        number = next(self._numbers)
        if isinstance(node, exp.Subquery):
            query = self.query(node.this, self._queries, self._body, self._numbers)
            alias = node.alias or f"__query{len(self._scans.scope.relations)}"
            fields = tuple(Field(n, o.type) for n, o in zip(query.names, query.outputs, strict=True))
            scan = typed_nodes.Scan(number, query=query, fields=fields, left=left)
        else:
            alias = node.alias or node.name
            every = (*self._body.tables, *self._body.given)
            table = next(t for t in every if t.name == node.name.lower())
            scan = typed_nodes.Scan(number, table.name, fields=table.fields, left=left)
        self._scans.scope.add(ScopeRelation(alias, scan.fields), node)
        self._scans.numbers[alias.lower()] = scan
        return scan

    # ------------------------------------------------------------ SELECT

    def _outputs(self, values: BodyExpressionElaborator) -> tuple[list[typed_nodes.Expr], list[str]]:
        outputs: list[typed_nodes.Expr] = []
        names: list[str] = []
        for item in self._node.expressions:
            if item.is_star:
                table = item.table if isinstance(item, exp.Column) else ""
                for alias, scan in self._scans.numbers.items():
                    if table and alias != table.lower():
                        continue
                    for i, column in enumerate(scan.fields):
                        home = self._scans.scope.merged.get(column.name.lower())
                        if not table and home is not None and home.lower() != alias:
                            continue
                        outputs.append(typed_nodes.Column(scan.number, i, column.type))
                        names.append(column.name)
                continue
            outputs.append(values.of(item.unalias()))
            names.append(item.alias_or_name or f"column{len(names)}")
        return outputs, names

    def _selected(self, node: exp.Expr) -> exp.Expr:
        """GROUP BY and ORDER BY may name a column of SELECT by its position or alias, as in Spark."""
        items = self._node.expressions
        if isinstance(node, exp.Literal) and node.name.isdigit():
            chosen: exp.Expr = items[int(node.name) - 1]
            return chosen.unalias()
        if isinstance(node, exp.Column) and not any(r.find(node.name) for r in self._scans.scope.relations):
            named = (i for i in items if isinstance(i, exp.Alias) and i.alias.lower() == node.name.lower())
            return next((item.this for item in named), node)
        return node

    # ------------------------------------------------------------ groups

    def _in_groups(self, node: exp.Expr) -> typed_nodes.Expr | None:
        for i, key in enumerate(self._keys):
            if node == key:
                return typed_nodes.GroupColumn(i, self._values().of(key).type)
        if is_aggregate_call(node, self._queries.names.catalog):
            return self._aggregate(node)
        return None

    def _aggregate(self, node: exp.Expr) -> typed_nodes.Expr:
        condition: typed_nodes.Expr | None = None
        call = node
        if isinstance(call, exp.Filter):
            condition = self._values().condition(call.expression.this)
            call = call.this
        name = aggregate_name(call).lower()
        if not isinstance(call, exp.Anonymous):
            raise AnalysisError(
                f"this form of '{name}' cannot be used in an aggregate yet", span=span_of(node)
            )
        written, distinct = written_arguments(call)
        values = self._values()
        arguments = () if written and written[0].is_star else tuple(values.of(part) for part in written)
        found = self._user(name, arguments, node)
        if found is None:
            if name not in AGGREGATES:
                raise AnalysisError(
                    f"'{name}' over a table cannot be used in an aggregate yet",
                    span=span_of(node),
                    hint=f"these can: {', '.join(AGGREGATES)}, and aggregates of your own",
                )
            found = built_in(name, arguments, values.type_of(node))
        found = replace(found, distinct=distinct, filter=condition)
        if found not in self._aggregates:
            self._aggregates.append(found)
        return typed_nodes.GroupColumn(len(self._keys) + self._aggregates.index(found), found.type)

    def _user(
        self, name: str, arguments: tuple[typed_nodes.Expr, ...], node: exp.Expr
    ) -> typed_nodes.Aggregation | None:
        from millstream.analysis.udas.body_elaborator import checked_body

        entry = self._queries.names.catalog.aggregate(name)
        if entry is None:
            return None
        if entry.python is not None:
            raise AnalysisError(
                f"'{name}' is in Python and cannot be called from an aggregate in ESL yet", span=span_of(node)
            )
        body = checked_body(entry, [a.type for a in arguments], self._queries.names.catalog)
        given = tuple(converted(a, p.type) for a, p in zip(arguments, body.parameters, strict=True))
        if len(body.returns) > 1:
            raise AnalysisError(
                f"'{name}' returns rows, which an aggregate cannot take from another yet", span=span_of(node)
            )
        if returns_growing_table(body):
            raise SeveralRowsError(
                f"'{name}' returns several rows, and a call in an aggregate takes one",
                span=span_of(node),
                hint=f"select the rows from a table, or let '{name}' return only one",
            )
        return typed_nodes.Aggregation(name, given, body.returns[0].type, user=body)


class SeveralRowsError(AnalysisError):
    """A call of an aggregate that stands for one value, and has more."""


def _united(left: typed_nodes.Query, right: typed_nodes.Query) -> typed_nodes.Query:
    types = []
    for a, b in zip(left.outputs, right.outputs, strict=True):
        common = common_type(a.type, b.type)
        assert common is not None, "the checker has seen to it"
        types.append(common)
    one = with_outputs(left, [converted(o, t) for o, t in zip(left.outputs, types, strict=True)])
    other = with_outputs(right, [converted(o, t) for o, t in zip(right.outputs, types, strict=True)])
    return replace(one, united=(*one.united, replace(other, united=()), *other.united))
