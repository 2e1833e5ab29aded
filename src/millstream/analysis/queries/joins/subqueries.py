"""Queries in expressions that read streams or views, as joins with SQL's logic of NULL.

``x IN (SELECT y ...)`` and EXISTS are semi joins, NOT EXISTS is an anti join. NOT IN holds if there is no row
at all, or if x is not NULL and neither equal to any y nor compared with a NULL: three anti joins. A query for
one value is the right side of a LEFT join.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Protocol

from sqlglot import exp

from millstream.analysis.error_collector import error_at
from millstream.analysis.queries.from_clause import columns_of, facts_of
from millstream.analysis.queries.joins.scalar_subqueries import Scalar, both, conjuncts, scalar
from millstream.analysis.queries.name_resolver import Resolver
from millstream.analysis.queries.relation_kind import has_content, reads_relation, window_of
from millstream.analysis.queries.resolved_expression import ColumnRef, Expr, Part, of_column
from millstream.analysis.queries.resolved_query import FromItem, JoinClause, Query, ReadQuery
from millstream.analysis.queries.scope import UNNAMED, Scope
from millstream.analysis.queries.window_bounds import aggregates_anything, aggregates_in
from millstream.analysis.types.coercion import common_type
from millstream.catalog import Catalog
from millstream.errors import AnalysisError, Span
from millstream.syntax.spans import span_of
from millstream.types import BOOLEAN

_NOT_SIMPLE = (
    "joins",
    "group",
    "having",
    "distinct",
    "limit",
    "offset",
    "qualify",
    "with_",
    "windows",
    "laterals",
)


class Analyser(Protocol):
    """The part of the analyser of the outer query that joins need."""

    catalog: Catalog

    def from_item(self, node: exp.Expr, scope: Scope) -> FromItem: ...

    def resolver(self, scope: Scope) -> Resolver: ...

    def inner(self, node: exp.Expr) -> Query: ...

    def reads_changing(self, node: exp.Expr) -> bool: ...


@dataclass
class Inner:
    """A query in IN or EXISTS: what it reads, its conditions, and its columns."""

    item: FromItem
    conditions: tuple[Expr, ...]
    columns: tuple[Expr, ...]


@dataclass
class SubqueryJoins:
    """The joins for the queries in the expressions of one SELECT; ``scope`` has its FROM."""

    analyser: Analyser
    scope: Scope
    joins: list[JoinClause] = field(default_factory=list)
    values: dict[Span | None, Expr] = field(default_factory=dict)
    """Columns with the values of queries, by the places of these."""

    def taken_from(self, select: exp.Select) -> exp.Select:
        """Turn queries of WHERE and SELECT into joins; return the SELECT without conditions that are."""
        if not any(relation.is_stream for relation in self.scope.relations):
            return select
        where = select.args.get("where")
        conditions = list(conjuncts(where.this)) if where is not None else []
        kept = [number for number, one in enumerate(conditions) if not self._take(one)]
        is_aggregated = aggregates_anything(select, self.analyser.catalog)
        for part in (*(conditions[number] for number in kept), *select.expressions):
            for query in filter(self.analyser.reads_changing, _queries(part)):
                _check_place(query)
                if is_aggregated and part in select.expressions:
                    raise error_at(
                        query,
                        "a query over a stream or view beside an aggregate in SELECT",
                        hint="join it with the result of the aggregate: FROM (SELECT ...) q, (SELECT ...)",
                    )
                self._take_value(query)
        if len(kept) == len(conditions):
            return select
        select = select.copy()
        rest = list(conjuncts(select.args["where"].this))
        rest = [rest[number] for number in kept]
        select.set("where", exp.Where(this=reduce(both, rest)) if rest else None)
        return select

    # ------------------------------------------------------------ IN and EXISTS

    def _take(self, condition: exp.Expr) -> bool:
        """Turn a condition into joins, if it is IN or EXISTS with a query over streams or views."""
        inside, negated = condition.unnest(), False
        while isinstance(inside, exp.Not):
            inside, negated = inside.this.unnest(), not negated
        query = inside.this if isinstance(inside, exp.Exists) else inside.args.get("query")
        if not isinstance(inside, exp.Exists | exp.In) or not isinstance(query, exp.Query):
            return False
        if not self.analyser.reads_changing(query):
            return False
        inner = self._inner(query.unnest())
        self._check_content(inner.item, query)
        if isinstance(inside, exp.Exists):
            self._join("anti" if negated else "semi", inner, ())
        elif negated:
            self._not_in(inside, inner)
        else:
            self._join("semi", inner, self._equal(inside, inner))
        return True

    def _inner(self, query: exp.Expr) -> Inner:
        taken = {relation.alias.lower() for relation in (*self.scope.relations, *self.scope.hidden)}
        if isinstance(query, exp.Select) and self._is_simple(query):
            scope = Scope(outer=self.scope)
            item = self.analyser.from_item(query.args["from_"].this, scope)
            if item.alias.lower() not in taken:
                return self._simple(query, item, scope)
        found = self.analyser.inner(query)
        item = ReadQuery(f"{UNNAMED}_in{len(self.joins)}", found, span=span_of(query))
        columns = columns_of(item)
        if columns is None:
            raise error_at(query, "the columns of this query are not known before Spark reads it")
        return Inner(item, (), tuple(of_column(ColumnRef(item.alias, f.name, f.type)) for f in columns))

    def _simple(self, query: exp.Select, item: FromItem, scope: Scope) -> Inner:
        """Return a query over one relation, whose conditions become those of the join."""
        resolver = self.analyser.resolver(scope).with_aggregates(None, "in WHERE")
        where = query.args.get("where")
        conditions = resolver.conditions(where.this, "WHERE") if where is not None else ()
        relation = scope.relations[0]
        columns: list[Expr] = []
        for output in query.expressions:
            if output.is_star:
                columns += [
                    of_column(ColumnRef(relation.alias, f.name, f.type)) for f in relation.fields or ()
                ]
            else:
                columns.append(resolver.resolve(output.unalias()))
        self.scope.hidden.append(relation)
        return Inner(item, conditions, tuple(columns))

    def _is_simple(self, query: exp.Select) -> bool:
        if query.args.get("from_") is None or any(query.args.get(name) for name in _NOT_SIMPLE):
            return False
        if query.args.get("operation_modifiers") or query.args["from_"].this.args.get("joins"):
            return False
        if query.args["from_"].this.args.get("pattern") is not None:
            return False
        parts = query.expressions
        return not any(p.find(exp.Window) or aggregates_in(p, self.analyser.catalog) for p in parts)

    def _check_content(self, item: FromItem, query: exp.Expr) -> None:
        """Refuse reports of windows, which have no content at an instant."""
        if facts_of(item) is None or has_content(item) or window_of(item) is not None:
            return
        if isinstance(item, ReadQuery) and not reads_relation(item, [item, item]):
            raise error_at(
                query,
                "a query in an expression needs a content at every instant",
                hint="use a window that moves with every instant: [RANGE r] without SLIDE, or [UNBOUNDED]",
            )

    def _join(self, kind: str, inner: Inner, conditions: Sequence[Expr]) -> None:
        self.joins.append(JoinClause(kind, inner.item, (*inner.conditions, *conditions)))

    def _values(self, node: exp.Expr, inner: Inner) -> list[tuple[Expr, Expr]]:
        """Return the values on the left of IN, each with the column that it is compared with."""
        resolver = self.analyser.resolver(self.scope).with_aggregates(None, "in WHERE")
        given = node.this.expressions if isinstance(node.this, exp.Tuple) else [node.this]
        if len(given) != len(inner.columns):
            raise error_at(node, f"IN compares rows of {len(given)} and of {len(inner.columns)} columns")
        pairs = [(resolver.resolve(one), column) for one, column in zip(given, inner.columns, strict=True)]
        for one, column in pairs:
            if common_type(one.type, column.type) is None:
                raise error_at(node, f"IN compares {one.type} with {column.type}", hint="CAST one of them")
        return pairs

    def _equal(self, node: exp.Expr, inner: Inner) -> list[Expr]:
        return [_equality(one, column) for one, column in self._values(node, inner)]

    def _not_in(self, node: exp.Expr, inner: Inner) -> None:
        pairs = self._values(node, inner)
        if len(pairs) > 1:
            raise error_at(node, "NOT IN with several values over a stream or view", hint="use NOT EXISTS")
        ((value, column),) = pairs
        equal, unknown = _equality(value, column), [_is_null(value), _is_null(column)]
        if facts_of(inner.item) is None:
            parts = [*equal.parts, " OR ", *unknown[0].parts, " OR ", *unknown[1].parts]
            self._join("anti", inner, [Expr(("(", *parts, ")"), BOOLEAN)])
            return
        for condition in (equal, *unknown):
            self._join("anti", inner, [condition])

    # ------------------------------------------------------------ values

    def _take_value(self, query: exp.Expr) -> None:
        """Join a query that gives one value, and note the column in its place."""
        found = scalar(query.unnest(), self.analyser.catalog, self._is_outside)
        item = ReadQuery(
            f"{UNNAMED}_value{len(self.joins)}", self.analyser.inner(found.query), span=span_of(query)
        )
        if not found.outside:
            self._check_content(item, query)
        span = span_of(query.unnest())
        assert span is not None
        columns = columns_of(item)
        if columns is None:
            raise error_at(query, "the type of this query is not known before Spark reads it")
        if found.outside and facts_of(item) is None:
            raise error_at(
                query,
                "a query over a view in an expression cannot name columns of the stream outside",
                hint="join with the view instead",
            )
        value = ColumnRef(item.alias, columns[-1].name, columns[-1].type)
        self.values[span] = (
            Expr(("coalesce(", value, ", 0)"), value.type) if found.is_count else of_column(value)
        )
        self.joins.append(JoinClause("left", item, tuple(self._correlated(found, item))))

    def _correlated(self, found: Scalar, item: FromItem) -> Iterator[Expr]:
        resolver = self.analyser.resolver(self.scope).with_aggregates(None, "in WHERE")
        for (name, node), column in zip(found.outside, columns_of(item) or (), strict=False):
            yield _equality(resolver.resolve(node), of_column(ColumnRef(item.alias, name, column.type)))

    def _is_outside(self, query: exp.Select) -> Callable[[exp.Column], bool]:
        """Return a test of the columns in a query: whether they are of the query outside."""
        scope = Scope()
        for node in (query.args["from_"].this, *(join.this for join in query.args.get("joins") or ())):
            self.analyser.from_item(node, scope)

        def is_outside(column: exp.Column) -> bool:
            try:
                scope.resolve(column)
            except AnalysisError:
                try:
                    return self.scope.resolve(column) is not None
                except AnalysisError:
                    return False
            return False

        return is_outside


def _check_place(query: exp.Expr) -> None:
    """Refuse IN and EXISTS that are no conditions of WHERE by themselves."""
    above = query.parent
    while isinstance(above, exp.Paren | exp.Subquery):
        above = above.parent
    if isinstance(above, exp.Exists | exp.In):
        raise error_at(
            above,
            "IN and EXISTS over a stream or view are conditions between the ANDs of WHERE",
            hint="elsewhere count the rows: (SELECT count(*) FROM ... WHERE y = x) > 0",
        )
    if isinstance(above, exp.Any | exp.All):
        raise error_at(
            above, "ANY and ALL of a query are not in Spark SQL", hint="compare with its min or max"
        )


def _queries(node: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the outermost queries in an expression."""
    if isinstance(node, exp.Query):
        yield node
        return
    for child in node.iter_expressions():
        yield from _queries(child)


def _equality(one: Expr, other: Expr) -> Expr:
    if one.column is not None and other.column is not None:
        return Expr((one.column, " = ", other.column), BOOLEAN, span=one.span)
    parts: tuple[Part, ...] = ("(", *one.parts, ") = (", *other.parts, ")")
    calls_python = one.calls_python or other.calls_python
    return Expr(
        parts, BOOLEAN, span=one.span, movable=one.movable and other.movable, calls_python=calls_python
    )


def _is_null(one: Expr) -> Expr:
    parts: tuple[Part, ...] = (
        (one.column, " IS NULL") if one.column is not None else ("(", *one.parts, ") IS NULL")
    )
    return replace(one, parts=parts, type=BOOLEAN, tree=None)
