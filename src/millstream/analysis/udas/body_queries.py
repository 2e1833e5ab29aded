"""SELECT inside the body of an aggregate: over local tables and tables of the catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from millstream.analysis.queries.name_resolver import aggregate_name, is_aggregate_call
from millstream.analysis.queries.scope import Scope, ScopeRelation
from millstream.analysis.types.coercion import common_type
from millstream.analysis.udas.body_expressions import INWINDOW, BodyNames, BodyTyper, Fields, walk
from millstream.catalog.entries import Stream
from millstream.errors import AnalysisError, UnknownNameError, did_you_mean
from millstream.syntax import nodes, to_sql
from millstream.syntax.spans import span_of
from millstream.types import Field

if TYPE_CHECKING:
    from millstream.analysis.queries.resolved_expression import ColumnRef

_CLAUSES = frozenset(
    {"expressions", "from_", "joins", "where", "group", "having", "order", "limit", "distinct"}
)
"""The parts of a SELECT that a body knows; any other is refused by name."""


class BodyQueries:
    """Checks the queries of a body and gives their columns, or None where only Spark knows them."""

    def __init__(self, names: BodyNames) -> None:
        self.names = names

    def fields(self, node: exp.Expr, outer: Scope | None = None) -> Fields | None:
        node = node.unnest()
        if isinstance(node, exp.SetOperation):
            return self._united(node, self.fields(node.this, outer), self.fields(node.expression, outer))
        if not isinstance(node, exp.Select):
            raise AnalysisError("this kind of query is not for aggregates", span=span_of(node))
        return _BodySelect(node, self, outer).fields()

    def typer(self, scope: Scope) -> BodyTyper:
        return BodyTyper(self.names, scope, self.fields)

    def _united(self, node: exp.SetOperation, left: Fields | None, right: Fields | None) -> Fields | None:
        if left is None or right is None:
            return None
        kind = node.key.upper()
        if len(left) != len(right):
            raise AnalysisError(
                f"{kind} of {len(left)} columns with {len(right)}", span=span_of(node.expression)
            )
        united = []
        for a, b in zip(left, right, strict=True):
            self.names.open_types.meet(a.type, b.type)
            type_ = common_type(a.type, b.type)
            if type_ is None:
                raise AnalysisError(f"{kind} of {a.type} with {b.type}", span=span_of(node.expression))
            united.append(Field(a.name, type_))
        return tuple(united)


class _BodySelect:
    """One SELECT."""

    def __init__(self, node: exp.Select, queries: BodyQueries, outer: Scope | None) -> None:
        self.node = node
        self.queries = queries
        self.names = queries.names
        self.scope = Scope(outer=outer)
        self.typer = queries.typer(self.scope)

    def fields(self) -> Fields | None:
        self._check_clauses()
        self._read_from()
        where, group = self.node.args.get("where"), self.node.args.get("group")
        if where is not None:
            self.typer.condition(where.this, "WHERE")
        keys = [self._selected(key) for key in group.expressions] if group else []
        for key in keys:
            self.typer.plain(key, "in GROUP BY")
        fields = self._outputs()
        self._check_having_order_limit()
        self._check_grouping(keys)
        return fields

    def _check_clauses(self) -> None:
        for name, value in self.node.args.items():
            if value and name not in _CLAUSES:
                part = value[0] if isinstance(value, list) else value
                clause = name.strip("_").upper().replace("_", " ")
                raise AnalysisError(
                    f"{clause} cannot be used in an aggregate",
                    span=(span_of(part) if isinstance(part, exp.Expr) else None) or span_of(self.node),
                )
        for part in self.node.walk(prune=lambda part: isinstance(part, exp.Query) and part is not self.node):
            if isinstance(part, exp.Window):
                raise AnalysisError(
                    "OVER cannot be used in an aggregate",
                    span=span_of(part),
                    hint="the table inwindow of a window aggregate is the content of its window",
                )

    # ------------------------------------------------------------ FROM

    def _read_from(self) -> None:
        clause = self.node.args.get("from_")
        if clause is None:
            return
        self._read(clause.this)
        for join in (*(clause.this.args.get("joins") or ()), *(self.node.args.get("joins") or ())):
            if join.method:
                raise AnalysisError(
                    f"{join.method.upper()} JOIN cannot be used in an aggregate",
                    span=span_of(join.this),
                    hint="name the columns: ON or USING",
                )
            before = list(self.scope.relations)
            self._read(join.this)
            for column in join.args.get("using") or ():
                self._merge(column, before)
            if join.args.get("on") is not None:
                self.typer.condition(join.args["on"], "ON")

    def _read(self, node: exp.Expr) -> None:
        if isinstance(node, exp.Subquery) and not isinstance(node, nodes.WindowedSubquery):
            alias = node.alias or f"__query{len(self.scope.relations)}"
            self.scope.add(ScopeRelation(alias, self.queries.fields(node.this)), node)
            return
        window_or_pattern = node.args.get("window") or node.args.get("pattern")
        if window_or_pattern or not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            raise AnalysisError("an aggregate reads plain tables only", span=span_of(node))
        self.scope.add(ScopeRelation(node.alias or node.name, self._columns(node)), node)

    def _columns(self, node: exp.Table) -> Fields | None:
        local = self.names.table(node.name)
        if local is not None:
            return self.names.settled(local.fields)
        if node.name.lower() == "return":
            raise AnalysisError(
                "RETURN cannot be read", span=span_of(node), hint="what goes there goes out at once"
            )
        entry = self.names.catalog.relation(node.name)
        if entry is None:
            known = [*(t.name for t in self.names.tables), *self.names.catalog.relation_names()]
            hint = did_you_mean(node.name, known)
            if node.name.lower() == INWINDOW:
                hint = "a window aggregate declares it, with a column for each parameter: TABLE inwindow(...)"
            raise UnknownNameError("table", node.name, span=span_of(node), hint=hint)
        if isinstance(entry, Stream):
            raise AnalysisError(
                f"'{entry.name}' is a stream, and an aggregate reads tables only",
                span=span_of(node),
                hint="what it needs of a stream comes in through its parameters",
            )
        return entry.schema

    def _merge(self, column: exp.Identifier, before: list[ScopeRelation]) -> None:
        left = next((c for c in (r.find(column.name) for r in before) if c is not None), None)
        if left is None or self.scope.relations[-1].find(column.name) is None:
            raise AnalysisError(
                f"USING column '{column.name}' is not on both sides of the join", span=span_of(column)
            )
        self.scope.merged[column.name.lower()] = left.relation

    # ------------------------------------------------------------ columns

    def _outputs(self) -> Fields | None:
        fields: list[Field] = []
        known = True
        for item in self.node.expressions:
            if item.is_star:
                expanded = self._expanded(item)
                known = known and expanded is not None
                fields += expanded or ()
                continue
            value = item.unalias()
            type_ = self.typer.type_of(value)
            user = self.names.catalog.aggregate(value.name) if isinstance(value, exp.Anonymous) else None
            if user is not None and user.returns_row and value is item:
                fields += user.returns
            else:
                fields.append(Field(item.alias_or_name or to_sql(value), type_))
        return tuple(fields) if known else None

    def _expanded(self, item: exp.Expr) -> Fields | None:
        table = item.table if isinstance(item, exp.Column) else ""
        relations = [r for r in self.scope.relations if not table or r.alias.lower() == table.lower()]
        if not relations:
            raise AnalysisError(f"unknown table '{table}' in this query", span=span_of(item))
        if any(relation.fields is None for relation in relations):
            return None
        return tuple(
            column
            for relation in relations
            for column in relation.fields or ()
            if table or self.scope.merged.get(column.name.lower(), relation.alias) == relation.alias
        )

    def _selected(self, node: exp.Expr) -> exp.Expr:
        """GROUP BY may name a column of SELECT by its position or alias, as in Spark."""
        items = self.node.expressions
        if isinstance(node, exp.Literal) and node.name.isdigit():
            if not 1 <= int(node.name) <= len(items):
                raise AnalysisError(f"there is no column {node.name} in SELECT", span=span_of(node))
            chosen: exp.Expr = items[int(node.name) - 1]
            return chosen.unalias()
        if isinstance(node, exp.Column) and not any(r.find(node.name) for r in self.scope.relations):
            named = (i for i in items if isinstance(i, exp.Alias) and i.alias.lower() == node.name.lower())
            return next((item.this for item in named), node)
        return node

    def _check_having_order_limit(self) -> None:
        having, order, limit = (self.node.args.get(name) for name in ("having", "order", "limit"))
        if having is not None:
            self.typer.condition(having.this, "HAVING", aggregates=True)
        for ordered in order.expressions if order else ():
            self.typer.type_of(self._selected(ordered.this))
        if limit is not None:
            type_ = self.queries.typer(Scope()).plain(limit.expression, "in LIMIT")
            if type_.is_known and not type_.is_integral:
                raise AnalysisError(
                    f"LIMIT must be a whole number, not {type_}", span=span_of(limit.expression)
                )
            if isinstance(limit.expression, exp.Neg):
                raise AnalysisError("LIMIT must not be negative", span=span_of(limit.expression))

    # ------------------------------------------------------------ groups

    def _check_grouping(self, keys: list[exp.Expr]) -> None:
        having, order = self.node.args.get("having"), self.node.args.get("order")
        parts = [*self.node.expressions, *([having.this] if having else ())]
        parts += [self._selected(ordered.this) for ordered in (order.expressions if order else ())]
        calls = [p for part in parts for p in walk(part) if is_aggregate_call(p, self.names.catalog)]
        for call in calls:
            self._check_not_nested(call)
        # Beside aggregates that return something with every tuple stand columns of that tuple.
        if not (keys or calls) or (calls and all(map(self._is_streaming, calls))):
            return
        grouped = {column for column in map(self._column, keys) if column is not None}
        for part in parts:
            self._check_grouped(part, keys, grouped)

    def _is_streaming(self, call: exp.Expr) -> bool:
        user = self.names.catalog.aggregate(aggregate_name(call))
        return user is not None and not user.blocking

    def _check_grouped(self, node: exp.Expr, keys: list[exp.Expr], grouped: set[ColumnRef]) -> None:
        if node in keys or isinstance(node, exp.Query) or is_aggregate_call(node, self.names.catalog):
            return
        column = self._column(node)
        if node.is_star or (column is not None and column not in grouped):
            name = column.name if column is not None else "*"
            raise AnalysisError(
                f"column '{name}' is neither grouped nor aggregated",
                span=span_of(node),
                hint="add it to GROUP BY, or use it in an aggregate such as max()",
            )
        for child in node.iter_expressions():
            self._check_grouped(child, keys, grouped)

    def _check_not_nested(self, node: exp.Expr) -> None:
        calls = [
            part
            for part in walk(node)
            if isinstance(part, exp.Anonymous) and is_aggregate_call(part, self.names.catalog)
        ]
        if len(calls) > 1:
            raise AnalysisError(
                f"aggregate '{calls[1].name}' inside '{calls[0].name}'", span=span_of(calls[1])
            )

    def _column(self, node: exp.Expr) -> ColumnRef | None:
        """The column of this query's own tables that a node is, if it is one."""
        if not isinstance(node, exp.Column) or node.is_star:
            return None
        head = node.parts[0].name
        if len(node.parts) > 1 and self.scope.relation(head) is None:
            return None
        if len(node.parts) == 1 and not any(r.find(head) for r in self.scope.relations):
            return None
        found = self.scope.resolve(node)
        return found.column if found is not None else None
