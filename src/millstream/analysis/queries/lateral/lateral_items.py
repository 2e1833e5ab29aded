"""Items of FROM that are computed for each row of the items before them: generators, functions, VALUES.

A generator is a list with a row for each element. A query behind LATERAL, or of a table function in SQL,
becomes a part of the query around it: its tables are joined, and its columns are computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from millstream.analysis.error_collector import error_at
from millstream.analysis.queries.aggregate_calls import aggregate_call
from millstream.analysis.queries.call_nodes import Frame, OverCall
from millstream.analysis.queries.from_clause import join_kind
from millstream.analysis.queries.relation_kind import has_content, window_of
from millstream.analysis.queries.resolved_expression import ColumnRef, Expr, of_column, part_of
from millstream.analysis.queries.resolved_query import FromItem, JoinClause, Output, ReadLateral
from millstream.analysis.queries.scope import Scope, ScopeRelation
from millstream.analysis.types.coercion import converts
from millstream.errors import AnalysisError, Source
from millstream.quantity import Rows
from millstream.syntax.spans import span_of
from millstream.types import INT, Field, Kind, array, struct
from millstream.windows.window_properties import is_contextual

if TYPE_CHECKING:
    from millstream.analysis.queries.query_analyzer import QueryAnalyser
    from millstream.catalog import Catalog
    from millstream.catalog.entries import ScalarFunction

GENERATORS = ("explode", "posexplode", "inline")
"""Generators of lists; each has a variant that keeps rows whose list is empty."""

_OUTER = "_outer"
_OWN_CLAUSES = ("group", "having", "distinct", "order", "limit", "offset", "qualify", "with_", "laterals")


def is_lateral(node: exp.Expr) -> bool:
    """Tell whether an item of FROM is computed from the items before it."""
    if isinstance(node, exp.Lateral | exp.Unnest):
        return True
    return isinstance(node, exp.Table) and isinstance(node.this, exp.Anonymous)


def is_own(name: str, catalog: Catalog) -> bool:
    """Tell whether a call is of an aggregate or a table function of the user's."""
    function = catalog.function(name)
    return catalog.has_aggregate(name) or (function is not None and bool(function.columns))


@dataclass(frozen=True)
class TableFunctionQuery:
    """The query of a table function in SQL, with the text in which it stands."""

    query: exp.Select
    source: Source


class LateralItems:
    """Analyser of such an item behind others, which are in a scope."""

    def __init__(self, analyser: QueryAnalyser, scope: Scope, *, beside_window: bool = False) -> None:
        self._analyser = analyser
        self._scope = scope
        self._beside_window = beside_window

    def joined(self, node: exp.Expr, join: exp.Join | None = None) -> list[JoinClause]:
        """Return the joins that an item becomes, and enter its columns into the scope."""
        kind = "inner" if join is None else join_kind(join)
        if kind not in ("inner", "cross", "left"):
            raise error_at(
                node,
                f"a {kind.upper()} join cannot be computed for each row of what stands before it",
                hint="write CROSS JOIN, or LEFT JOIN ... ON true",
            )
        condition = None if join is None else join.args.get("on")
        if isinstance(condition, exp.Boolean) and bool(condition.this):
            condition = None
        if join is not None and join.args.get("using"):
            raise error_at(
                node, "USING does not go with a table function", hint="compare the columns in WHERE"
            )
        if kind == "left" and condition is not None:
            raise error_at(condition, "LEFT JOIN of a table function takes ON true only")
        clauses = self._clauses(node, kind)
        if condition is not None:
            resolver = self._analyser.resolver(self._scope).with_aggregates(None, "in ON")
            last = clauses[-1]
            asked = (*last.conditions, *resolver.conditions(condition, "ON"))
            clauses[-1] = replace(last, conditions=asked)
        return clauses

    def _clauses(self, node: exp.Expr, kind: str) -> list[JoinClause]:
        inner = node.this if isinstance(node, exp.Lateral) else node
        outer = kind == "left" or bool(node.args.get("outer"))
        alias = node.args.get("alias") or inner.args.get("alias")
        if isinstance(inner, exp.Subquery):
            named = _Named(node, alias, self._alias(alias, None))
            return self._query(inner.this, named, self._analyser, self._scope, kind)
        if isinstance(inner, exp.Unnest):
            call: exp.Expr = inner
            name = "unnest"
        else:
            call = inner.this if isinstance(inner, exp.Table) else inner
            name = call.name.lower()
        named = _Named(node, alias, self._alias(alias, name))
        function = self._analyser.catalog.function(name)
        if function is not None and function.columns:
            return self._function(function, call, named, kind)
        if self._analyser.catalog.has_aggregate(name):
            return [self._aggregate(call, named, outer=outer)]
        if isinstance(inner, exp.Unnest) or name.removesuffix(_OUTER) in GENERATORS:
            return [self._generator(name, call, named, outer=outer)]
        raise error_at(
            call,
            f"'{name}' cannot stand in FROM of this query",
            hint="table functions are explode, posexplode, inline, UNNEST, aggregates of your own, and"
            " CREATE FUNCTION f(...) : TABLE (...)",
        )

    def _alias(self, alias: exp.TableAlias | None, name: str | None) -> str:
        if alias is not None and alias.this is not None:
            return str(alias.name)
        return name or f"__lateral{len(self._scope.relations)}"

    # ------------------------------------------------------------ lists

    def _generator(self, name: str, node: exp.Expr, named: _Named, *, outer: bool) -> JoinClause:
        arguments = node.expressions
        if len(arguments) != 1:
            raise error_at(node, f"'{name}' in FROM takes one list, not {len(arguments)}")
        value = self._analyser.resolver(self._scope).with_aggregates(None, "in FROM").resolve(arguments[0])
        self._analyser.mistakes.check()
        base = name.removesuffix(_OUTER)
        element, columns, items = _elements(base, value, arguments[0], named)
        counted = node.args.get("offset") if isinstance(node, exp.Unnest) else base == "posexplode" or None
        position = ColumnRef("", f"__{named.alias}_place", INT) if counted else None
        outputs = list(columns(element))
        if position is not None and counted is True:
            outputs.insert(0, Output("pos", of_column(position)))
        elif position is not None and counted == "ORDINALITY":
            outputs.append(Output("ordinality", Expr((position, " + 1"), INT)))
        elif position is not None:
            outputs.append(Output("offset" if counted == "OFFSET" else str(counted), of_column(position)))
        outer = outer or name.endswith(_OUTER)
        item = ReadLateral(
            named.alias, named.renamed(outputs), items, element, position, outer, span=named.span
        )
        return self._entered(item, named)

    def _entered(self, item: ReadLateral, named: _Named, conditions: tuple[Expr, ...] = ()) -> JoinClause:
        fields = tuple(output.field for output in item.outputs)
        self._scope.add(ScopeRelation(item.alias, fields), named.node)
        return JoinClause("left" if item.outer else "inner", item, conditions)

    # ------------------------------------------------------------ aggregates of the user's

    def _aggregate(self, call: exp.Expr, named: _Named, *, outer: bool) -> JoinClause:
        """Return an aggregate over each row by itself."""
        name = call.name
        if outer:
            raise error_at(
                named.node,
                f"LEFT JOIN with the aggregate '{name}'",
                hint="an aggregate that returns nothing drops the row: write CROSS JOIN",
            )
        if self._beside_window:
            shown = self._text(call)
            raise error_at(
                call,
                f"the aggregate '{name}' in FROM beside a window",
                hint=f"an aggregate of a window stands in SELECT: FROM (SELECT {shown} FROM s [...]) AS q",
            )
        resolver = self._analyser.resolver(self._scope).with_aggregates(None, "in FROM")
        type_ = resolver.type_of(call)
        self._analyser.mistakes.check()
        made = aggregate_call(call, type_, resolver, f"__{named.alias}_row", self._text)
        over = OverCall(made, (), Frame(rows=True, preceding=Rows(0)))
        whole = of_column(made.result)
        returns = made.type.fields if made.user is not None and made.user.returns_row else ()
        outputs = [Output(field.name, part_of(whole, field)) for field in returns]
        if not outputs:
            assert made.user is not None
            outputs = [Output(made.user.returns[0].name or name, whole)]
        return self._entered(
            ReadLateral(named.alias, named.renamed(outputs), call=over, span=named.span), named
        )

    def _text(self, node: exp.Expr) -> str:
        span = span_of(node)
        return self._analyser.source.text[span[0] : span[1] + 1] if span else node.key

    # ------------------------------------------------------------ queries

    def _function(
        self, function: ScalarFunction, call: exp.Expr, named: _Named, kind: str
    ) -> list[JoinClause]:
        """Return a table function of the user's: its list in Python, or its query in SQL."""
        arguments = call.expressions
        if len(arguments) != len(function.parameters):
            count = len(function.parameters)
            raise error_at(
                call, f"'{function.name}' takes {count} argument{'s' * (count != 1)}, not {len(arguments)}"
            )
        resolver = self._analyser.resolver(self._scope).with_aggregates(None, "in FROM")
        given = []
        for parameter, argument in zip(function.parameters, arguments, strict=True):
            value = resolver.resolve(argument)
            self._analyser.mistakes.check()
            if not converts(value.type, parameter.type):
                raise error_at(
                    argument,
                    f"'{function.name}' takes {parameter.type} as '{parameter.name}', not {value.type}",
                )
            same = value.type == parameter.type
            cast = value if same else replace(value, parts=("CAST(", *value.parts, f" AS {parameter.type})"))
            given.append(Output(parameter.name, replace(cast, type=parameter.type)))
        if function.python is not None:
            return [self._in_python(function, given, named, outer=kind == "left")]
        return self._in_sql(function, call, given, named, kind)

    @classmethod
    def check_function(cls, function: ScalarFunction, analyser: QueryAnalyser) -> None:
        """Check the query of a function with any arguments."""
        assert isinstance(function.definition, TableFunctionQuery)
        node = function.definition.query
        given = [Output(p.name, Expr((f"CAST(NULL AS {p.type})",), p.type)) for p in function.parameters]
        named = _Named(node, None, function.name)
        cls(analyser, Scope())._in_sql(function, None, given, named, "inner")

    def _in_sql(
        self,
        function: ScalarFunction,
        call: exp.Expr | None,
        given: Sequence[Output],
        named: _Named,
        kind: str,
    ) -> list[JoinClause]:
        hidden = f"__{named.alias}_given"
        parameters = JoinClause("inner", ReadLateral(hidden, tuple(given), span=named.span))
        known = ScopeRelation(function.name, function.parameters, source=hidden)
        assert isinstance(function.definition, TableFunctionQuery)
        query = function.definition.query
        inside = self._analyser.elsewhere(function.definition.source)
        declared = _Declared(named, function.columns)
        try:
            clauses = self._query(query, declared, inside, Scope([known] if given else []), kind)
        except AnalysisError as error:
            if call is None:
                raise
            error.span = span_of(call)
            error.message = f"in '{function.name}': {error.message}"
            raise
        return [*([parameters] if given else []), *clauses]

    def _in_python(
        self, function: ScalarFunction, given: Sequence[Output], named: _Named, *, outer: bool
    ) -> JoinClause:
        parts: list[str | ColumnRef] = []
        for output in given:
            parts += [*([", "] if parts else []), *output.expr.parts]
        row = struct(*function.columns)
        items = Expr((f"{function.name}(", *parts, ")"), array(row), span=named.span, calls_python=True)
        element = ColumnRef("", f"__{named.alias}_item", row)
        outputs = [Output(field.name, part_of(of_column(element), field)) for field in function.columns]
        item = ReadLateral(named.alias, named.renamed(outputs), items, element, None, outer, span=named.span)
        return self._entered(item, named)

    def _query(
        self, node: exp.Expr, named: _Named, analyser: QueryAnalyser, outside: Scope, kind: str
    ) -> list[JoinClause]:
        """Return the joins and columns of a query without a result of its own to be computed first."""
        while isinstance(node, exp.Subquery):
            node = node.this
        clause = next((c for c in _OWN_CLAUSES if isinstance(node, exp.Select) and node.args.get(c)), None)
        if not isinstance(node, exp.Select) or clause is not None:
            what = "a set operation" if clause is None else _WORDS.get(clause, clause.upper())
            raise error_at(
                node,
                f"{what} in a query that is computed for each row",
                hint="such a query has SELECT, FROM (tables and table functions) and WHERE",
            )
        inner = Scope(outer=outside)
        clauses = self._sources(node, named, analyser, inner)
        resolver = analyser.resolver(inner).with_aggregates(None, "in a query that is computed for each row")
        where = node.args.get("where")
        conditions = resolver.conditions(where.this, "WHERE") if where is not None else ()
        outputs = []
        for expression in node.expressions:
            if expression.is_star:
                fields = [(r, f) for r in inner.relations for f in r.fields or ()]
                outputs += [
                    Output(f.name, of_column(column)) for r, f in fields if (column := r.find(f.name))
                ]
                continue
            value = expression.unalias()
            outputs.append(
                Output(expression.alias_or_name or f"col{len(outputs) + 1}", resolver.resolve(value))
            )
        analyser.mistakes.check()
        if kind == "left":
            if len(clauses) > 1 or (conditions and clauses and isinstance(clauses[0].item, ReadLateral)):
                raise error_at(
                    named.node, "LEFT JOIN with a query of several tables", hint="write an inner join"
                )
            clauses = [replace(c, kind="left", item=_outer(c)) for c in clauses]
        if conditions and clauses:
            last = clauses[-1]
            clauses[-1] = replace(last, conditions=(*last.conditions, *conditions))
        item = ReadLateral(named.alias, named.renamed(outputs), span=named.span)
        final = self._entered(item, named, () if clauses else conditions)
        return [*clauses, replace(final, kind="inner")]

    def _sources(
        self, node: exp.Select, named: _Named, analyser: QueryAnalyser, inner: Scope
    ) -> list[JoinClause]:
        """Return the tables and table functions in FROM, under names that no others have."""
        clause = node.args.get("from_")
        if clause is None:
            return []
        first = exp.Join(this=clause.this, kind="CROSS")
        clauses: list[JoinClause] = []
        for join in (first, *(clause.this.args.get("joins") or ()), *(node.args.get("joins") or ())):
            if is_lateral(join.this):
                found = LateralItems(analyser, inner).joined(join.this, None if join is first else join)
            else:
                found = [analyser.join(join, inner)]
                if inner.relations and inner.relations[-1].is_stream:
                    raise error_at(
                        join.this,
                        "a stream in a query that is computed for each row",
                        hint="join the streams over windows",
                    )
            clauses += found
        if any(c.kind not in ("inner", "cross") for c in clauses):
            raise error_at(node, "an outer join in a query that is computed for each row")
        names = {relation.alias: f"__{named.alias}_{relation.alias}" for relation in inner.relations}
        inner.relations[:] = [replace(r, source=names[r.alias]) for r in inner.relations]
        return [_renamed(c, names, named.alias) for c in clauses]


def check_windows(source: FromItem, joins: Sequence[JoinClause]) -> None:
    """Refuse items computed from windows whose content depends on which tuples there are."""
    homes: dict[str, set[str]] = {source.alias: {source.alias}}
    items = {item.alias: item for item in (source, *(join.item for join in joins))}
    if not any(has_content(item) for item in items.values()):
        return
    for join in joins:
        item = join.item
        if not isinstance(item, ReadLateral):
            homes[item.alias] = {item.alias}
            continue
        exprs = [*(output.expr for output in item.outputs), *([] if item.items is None else [item.items])]
        named = {relation for expr in exprs for relation in expr.relations() if relation}
        home = {alias for relation in named for alias in homes[relation]} or {source.alias}
        homes[item.alias] = home
        if len(home) > 1:
            raise AnalysisError(
                f"'{item.alias}' is computed from columns of {' and '.join(sorted(home))}, which are joined",
                span=item.span,
                hint="join them in a query in FROM, and write it behind: FROM (SELECT ...) q, TABLE(...)",
            )
        owner = items[next(iter(home))]
        window = window_of(owner)
        if has_content(owner) and (window is None or is_contextual(window)):
            what = "a query over windows" if window is None else f"the window {window}"
            raise AnalysisError(
                f"'{item.alias}' cannot be computed for each row of {what}",
                span=item.span,
                hint="compute it before: FROM (SELECT ... FROM s, TABLE(f(s.v)) AS q) [...]",
            )


def _outer(clause: JoinClause) -> FromItem:
    return replace(clause.item, outer=True) if isinstance(clause.item, ReadLateral) else clause.item


def _renamed(clause: JoinClause, names: dict[str, str], owner: str) -> JoinClause:
    """Return a join whose relations and intermediate columns have other names in the plan."""

    def other(column: ColumnRef) -> ColumnRef:
        if not column.relation and column.name.startswith("__"):
            return replace(column, name=f"__{owner}{column.name}")
        return replace(column, relation=names.get(column.relation, column.relation))

    item = replace(clause.item, alias=names.get(clause.item.alias, clause.item.alias))
    if isinstance(item, ReadLateral):
        call = item.call
        if call is not None:
            arguments = tuple(argument.substitute(other) for argument in call.call.arguments)
            own = replace(call.call, result=other(call.call.result), arguments=arguments)
            call = replace(call, call=own)
        item = replace(
            item,
            outputs=tuple(replace(o, expr=o.expr.substitute(other)) for o in item.outputs),
            items=None if item.items is None else item.items.substitute(other),
            element=None if item.element is None else other(item.element),
            position=None if item.position is None else other(item.position),
            call=call,
        )
    return JoinClause(clause.kind, item, tuple(c.substitute(other) for c in clause.conditions))


_WORDS = {"group": "GROUP BY", "order": "ORDER BY", "with_": "WITH", "laterals": "LATERAL VIEW"}


class _Named:
    """An item with its name, and the names that it gives to columns."""

    def __init__(self, node: exp.Expr, alias: exp.TableAlias | None, name: str) -> None:
        self.node = node
        self.alias = name
        self.span = span_of(node)
        self.is_named = alias is not None and alias.this is not None
        self._columns = [c.name for c in (alias.args.get("columns") or ())] if alias is not None else []

    def renamed(self, outputs: Sequence[Output]) -> tuple[Output, ...]:
        if not self._columns:
            return tuple(outputs)
        if len(self._columns) != len(outputs):
            listed = ", ".join(output.name for output in outputs)
            raise error_at(
                self.node,
                f"'{self.alias}' names {len(self._columns)} column{'s' * (len(self._columns) > 1)}, and there"
                f" {'is' if len(outputs) == 1 else 'are'} {len(outputs)}",
                hint=f"the columns are {listed}",
            )
        return tuple(replace(o, name=name) for o, name in zip(outputs, self._columns, strict=True))


class _Declared(_Named):
    """A call of a table function, which declares its columns."""

    def __init__(self, named: _Named, returns: Sequence[Field]) -> None:
        self.__dict__.update(named.__dict__)
        self._returns = returns

    def renamed(self, outputs: Sequence[Output]) -> tuple[Output, ...]:
        declared = []
        if len(outputs) != len(self._returns):
            raise error_at(
                self.node,
                f"the query has {len(outputs)} of the {len(self._returns)} columns",
            )
        for field, output in zip(self._returns, outputs, strict=True):
            expr = output.expr
            if expr.type != field.type:
                expr = Expr(
                    ("CAST(", *expr.parts, f" AS {field.type})"), field.type, calls_python=expr.calls_python
                )
            declared.append(Output(field.name, expr))
        return super().renamed(declared)


def _elements(
    name: str, value: Expr, node: exp.Expr, named: _Named
) -> tuple[ColumnRef, Callable[[ColumnRef], list[Output]], Expr]:
    """Return the element of a list, a function of its columns, and the list itself."""
    type_ = value.type
    if type_.kind is Kind.MAP and name in ("explode", "posexplode", "unnest"):
        assert type_.key is not None
        assert type_.element is not None
        row = struct(Field("key", type_.key), Field("value", type_.element))
        value = replace(value, parts=("map_entries(", *value.parts, ")"), type=array(row))
        is_row = True
    else:
        if type_.kind is not Kind.ARRAY or type_.element is None or not type_.element.is_known:
            known = type_.is_known and type_.kind is not Kind.ARRAY
            reason = (
                f"'{name}' takes a list, not {type_}" if known else "only Spark knows the type of this list"
            )
            raise error_at(node, reason, hint=None if known else "convert it: CAST(... AS ARRAY<STRING>)")
        row = type_.element
        is_row = name == "inline" or (name == "unnest" and row.kind is Kind.STRUCT)
        if name == "inline" and row.kind is not Kind.STRUCT:
            raise error_at(node, f"'inline' takes a list of structs, not {type_}")
    element = ColumnRef("", f"__{named.alias}_item", row)

    def columns(item: ColumnRef) -> list[Output]:
        whole = of_column(item)
        if is_row:
            return [Output(field.name, part_of(whole, field)) for field in row.fields]
        return [Output(named.alias if name == "unnest" and named.is_named else "col", whole)]

    return element, columns, value
