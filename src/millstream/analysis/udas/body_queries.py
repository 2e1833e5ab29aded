"""SELECT in a body: over local tables and tables of the catalog."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from sqlglot import exp

from millstream.analysis.error_collector import error_at
from millstream.analysis.queries.name_resolver import aggregate_name, is_aggregate_call
from millstream.analysis.queries.scope import Scope, ScopeRelation
from millstream.analysis.types.coercion import common_type
from millstream.analysis.types.implicit_casts import converted
from millstream.analysis.types.typed_aggregates import built_in, written_arguments
from millstream.analysis.udas.body_expressions import BodyExpressions
from millstream.analysis.udas.body_names import RETURN, Attempt, MistakenCallError, Scans, walk
from millstream.analysis.udas.united_queries import united_query
from millstream.catalog.builtin_aggregates import TABLE, builtin_aggregate
from millstream.catalog.entries import Stream
from millstream.codegen.udas.body_facts import returns_growing_table, returns_one_row
from millstream.errors import AnalysisError, UnknownNameError, did_you_mean
from millstream.ir import typed_nodes
from millstream.ir.typed_nodes import INWINDOW
from millstream.syntax import nodes, to_sql
from millstream.syntax.spans import span_of
from millstream.types import BIGINT, BOOLEAN, Field

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.queries.resolved_expression import ColumnRef
    from millstream.analysis.udas.body_names import BodyNames, Fields

_CLAUSES = frozenset(
    {"expressions", "from_", "joins", "where", "group", "having", "order", "limit", "distinct"}
)
"""Parts of a SELECT that a body may have; any other is refused by name."""

_AGGREGATES = [row.name for row in TABLE if row.in_bodies]
"""Built-in aggregates of queries in bodies."""

Analysed = tuple["Fields | None", Attempt[typed_nodes.Query]]
"""Columns of a query, None where only Spark knows them, and its typed form."""


_ONE_VALUE = ("group", "having", "order", "limit", "distinct")
"""Clauses beside which a call of an aggregate stands for one value."""


class BodyQueries:
    """Queries of a block."""

    def __init__(self, names: BodyNames) -> None:
        self.names = names

    def expressions(self, scans: Scans) -> BodyExpressions:
        return BodyExpressions(self.names, scans, self.analyse)

    def analyse(self, node: exp.Expr, outer: Scans | None = None) -> Analysed:
        node = node.unnest()
        if isinstance(node, exp.SetOperation):
            left, one = self.analyse(node.this, outer)
            right, other = self.analyse(node.expression, outer)
            return self._united(node, left, right), self.names.attempt(lambda: united_query(node, one, other))
        if not isinstance(node, exp.Select):
            raise error_at(node, "this kind of query is not for aggregates")
        return _BodySelect(node, self, outer).analyse()

    def _united(self, node: exp.SetOperation, left: Fields | None, right: Fields | None) -> Fields | None:
        if left is None or right is None:
            return None
        kind = node.key.upper()
        if len(left) != len(right):
            raise error_at(node.expression, f"{kind} of {len(left)} columns with {len(right)}")
        united = []
        for a, b in zip(left, right, strict=True):
            self.names.open_types.meet(a.type, b.type)
            type_ = common_type(a.type, b.type)
            if type_ is None:
                raise error_at(node.expression, f"{kind} of {a.type} with {b.type}")
            united.append(Field(a.name, type_))
        return tuple(united)


class _BodySelect:
    """One SELECT, analysed in the order in which it is computed."""

    def __init__(self, node: exp.Select, queries: BodyQueries, outer: Scans | None) -> None:
        self.node = node
        self.queries = queries
        self.names = queries.names
        self.scope = Scope(outer=None if outer is None else outer.scope)
        self._scans = Scans(self.scope, {}, outer)
        self._plain = queries.expressions(self._scans)
        self._limit = queries.expressions(Scans(Scope()))
        self._from: list[Attempt[typed_nodes.Scan]] = []
        self._keys: list[exp.Expr] = []
        self._aggregates: list[typed_nodes.Aggregation] = []

    def analyse(self) -> Analysed:
        self._check_clauses()
        self._read_from()
        self._plain.check_condition(self._clause("where"), "WHERE")
        self._keys = [self._selected(key) for key in self._listed("group")]
        for key in self._keys:
            self._plain.check_plain(key, "in GROUP BY")
        fields = self._fields()
        self._plain.check_condition(self._clause("having"), "HAVING", aggregates=True)
        for ordered in self._listed("order"):
            self._plain.check(self._selected(ordered.this))
        self._check_limit()
        calls = self._calls()
        self._check_grouping(calls)
        return fields, self.names.attempt(lambda: self._query(is_grouped=bool(self._keys or calls)))

    def _clause(self, name: str) -> exp.Expr | None:
        clause = self.node.args.get(name)
        return None if clause is None else clause.this

    def _listed(self, name: str) -> list[exp.Expr]:
        clause = self.node.args.get(name)
        return clause.expressions if clause else []

    def _query(self, *, is_grouped: bool) -> typed_nodes.Query:
        scans = tuple(scan.get() for scan in self._from)
        where = self._plain.conditions(self._clause("where"))
        keys = tuple(map(self._plain.of, self._keys))
        values = self._plain.grouped(self._in_group) if is_grouped else self._plain
        outputs, names = self._outputs(values)
        order = tuple(
            typed_nodes.Sorting(
                values.of(self._selected(part.this)),
                bool(part.args.get("desc")),
                bool(part.args.get("nulls_first", not part.args.get("desc"))),
            )
            for part in self._listed("order")
        )
        having, limit = self._clause("having"), self.node.args.get("limit")
        return typed_nodes.Query(
            scans,
            where,
            tuple(outputs),
            tuple(names),
            is_grouped,
            keys,
            having=None if having is None else values.condition(having),
            distinct=bool(self.node.args.get("distinct")),
            order=order,
            limit=None if limit is None else self._limit.as_(limit.expression, BIGINT),
            aggregates=tuple(self._aggregates),
        )

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
                raise error_at(
                    part,
                    "OVER cannot be used in an aggregate",
                    hint="the table inwindow of a window aggregate is the content of its window",
                )

    # ------------------------------------------------------------ FROM

    def _read_from(self) -> None:
        clause = self.node.args.get("from_")
        if clause is None:
            return
        self._from.append(self._read(clause.this))
        for join in (*(clause.this.args.get("joins") or ()), *(self.node.args.get("joins") or ())):
            if join.method:
                raise error_at(
                    join.this,
                    f"{join.method.upper()} JOIN cannot be used in an aggregate",
                    hint="name the columns: ON or USING",
                )
            before = list(self.scope.relations)
            scan = self._read(join.this)
            using = [self._merge(column, before) for column in join.args.get("using") or ()]
            self._plain.check_condition(join.args.get("on"), "ON")
            self._from.append(self.names.attempt(partial(self._joined, join, scan, using)))

    def _joined(
        self, join: exp.Join, scan: Attempt[typed_nodes.Scan], using: list[ColumnRef]
    ) -> typed_nodes.Scan:
        side, kind = (join.side or "").upper(), (join.kind or "").upper()
        if side not in ("", "LEFT") or kind not in ("", "INNER", "CROSS", "OUTER"):
            raise error_at(
                join.this,
                f"{f'{side} {kind}'.strip()} JOIN cannot be used in an aggregate yet",
                hint="LEFT and INNER joins can; EXISTS and NOT EXISTS do the work of SEMI and ANTI",
            )
        joined = replace(scan.get(), left=side == "LEFT")
        on: list[typed_nodes.Expr] = []
        for column in using:
            one = self._scans.column(column.relation, column.name)
            other = self._scans.column(self.scope.relations[-1].alias, column.name)
            common = None if one is None or other is None else common_type(one.type, other.type)
            if one is None or other is None or common is None:
                raise error_at(join.this, f"'{column.name}' cannot be compared")
            on.append(typed_nodes.Call("=", (converted(one, common), converted(other, common)), BOOLEAN))
        return replace(joined, on=(*on, *self._plain.conditions(join.args.get("on"))))

    def _read(self, node: exp.Expr) -> Attempt[typed_nodes.Scan]:
        number = next(self.names.scans)
        if isinstance(node, exp.Subquery) and not isinstance(node, nodes.StreamSubquery):
            alias = node.alias or f"__query{len(self.scope.relations)}"
            fields, query = self.queries.analyse(node.this)
            self.scope.add(ScopeRelation(alias, fields), node)
            scan = self.names.attempt(lambda: _scan_of(number, query.get()))
        else:
            window_or_pattern = node.args.get("window") or node.args.get("pattern")
            is_table = isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier)
            if window_or_pattern or not is_table:
                raise error_at(node, "an aggregate reads plain tables only")
            alias, fields = node.alias or node.name, self._columns(node)
            self.scope.add(ScopeRelation(alias, fields), node)
            scan = self.names.attempt(lambda: _scan_of_table(number, node, fields))
        if scan.value is not None:
            self._scans.numbers[alias.lower()] = scan.value
        return scan

    def _columns(self, node: exp.Expr) -> Fields | None:
        local = self.names.table(node.name)
        if local is not None:
            return self.names.settled(local.fields)
        if node.name.lower() == RETURN:
            raise error_at(node, "RETURN cannot be read", hint="what goes there goes out at once")
        entry = self.names.catalog.relation(node.name)
        if entry is None:
            known = [*(t.name for t in self.names.tables), *self.names.catalog.relation_names()]
            hint = did_you_mean(node.name, known)
            if node.name.lower() == INWINDOW:
                hint = "a window aggregate declares it, with a column for each parameter: TABLE inwindow(...)"
            raise UnknownNameError("table", node.name, span=span_of(node), hint=hint)
        if isinstance(entry, Stream):
            raise error_at(
                node,
                f"'{entry.name}' is a stream, and an aggregate reads tables only",
                hint="what it needs of a stream comes in through its parameters",
            )
        return entry.schema

    def _merge(self, column: exp.Identifier, before: list[ScopeRelation]) -> ColumnRef:
        left = next((c for c in (r.find(column.name) for r in before) if c is not None), None)
        if left is None or self.scope.relations[-1].find(column.name) is None:
            raise error_at(column, f"USING column '{column.name}' is not on both sides of the join")
        self.scope.merged[column.name.lower()] = left.relation
        return left

    # ------------------------------------------------------------ SELECT

    def _fields(self) -> Fields | None:
        fields: list[Field] = []
        known = True
        for item in self.node.expressions:
            if item.is_star:
                expanded = self._expanded(item)
                known = known and expanded is not None
                fields += [column for _, _, column in expanded or ()]
                continue
            value = item.unalias()
            type_ = self._plain.check(value)
            user = self.names.catalog.aggregate(value.name) if isinstance(value, exp.Anonymous) else None
            if user is not None and user.returns_row and value is item:
                fields += user.returns
            else:
                fields.append(Field(item.alias_or_name or to_sql(value), type_))
        return tuple(fields) if known else None

    def _outputs(self, values: BodyExpressions) -> tuple[list[typed_nodes.Expr], list[str]]:
        outputs: list[typed_nodes.Expr] = []
        names: list[str] = []
        for item in self.node.expressions:
            if item.is_star:
                for alias, index, _ in self._expanded(item) or ():
                    scan = self._scans.numbers[alias.lower()]
                    outputs.append(typed_nodes.Column(scan.number, index, scan.fields[index].type))
                    names.append(scan.fields[index].name)
                continue
            row = self._row_of(item)
            if row:
                outputs += [self._aggregate(item, column) for column in range(len(row))]
                names += [field.name for field in row]
                continue
            outputs.append(values.of(item.unalias()))
            names.append(item.alias_or_name or f"column{len(names)}")
        return outputs, names

    def _row_of(self, item: exp.Expr) -> Fields:
        """Return the columns of a call that returns rows, if all its rows are taken."""
        user = self.names.catalog.aggregate(item.name) if isinstance(item, exp.Anonymous) else None
        return user.returns if user is not None and user.returns_row and self._takes_rows(item) else ()

    def _expanded(self, item: exp.Expr) -> list[tuple[str, int, Field]] | None:
        """List the columns of a star with their relations and positions, if all are known."""
        table = item.table if isinstance(item, exp.Column) else ""
        relations = [r for r in self.scope.relations if not table or r.alias.lower() == table.lower()]
        if not relations:
            raise error_at(item, f"unknown table '{table}' in this query")
        if any(relation.fields is None for relation in relations):
            return None
        return [
            (relation.alias, index, column)
            for relation in relations
            for index, column in enumerate(relation.fields or ())
            if table or self.scope.merged.get(column.name.lower(), relation.alias) == relation.alias
        ]

    def _selected(self, node: exp.Expr) -> exp.Expr:
        """Resolve a position or an alias of SELECT in GROUP BY and ORDER BY, as Spark does."""
        items = self.node.expressions
        if isinstance(node, exp.Literal) and node.name.isdigit():
            if not 1 <= int(node.name) <= len(items):
                raise error_at(node, f"there is no column {node.name} in SELECT")
            chosen: exp.Expr = items[int(node.name) - 1]
            return chosen.unalias()
        if isinstance(node, exp.Column) and not any(r.find(node.name) for r in self.scope.relations):
            named = (i for i in items if isinstance(i, exp.Alias) and i.alias.lower() == node.name.lower())
            return next((item.this for item in named), node)
        return node

    def _check_limit(self) -> None:
        limit = self.node.args.get("limit")
        if limit is None:
            return
        type_ = self._limit.check_plain(limit.expression, "in LIMIT")
        if type_.is_known and not type_.is_integral:
            raise error_at(limit.expression, f"LIMIT must be a whole number, not {type_}")
        if isinstance(limit.expression, exp.Neg):
            raise error_at(limit.expression, "LIMIT must not be negative")

    # ------------------------------------------------------------ groups

    def _after_grouping(self) -> Iterator[exp.Expr]:
        """Yield the expressions that are about groups if there are any."""
        having = self._clause("having")
        yield from self.node.expressions
        yield from () if having is None else (having,)
        yield from (self._selected(ordered.this) for ordered in self._listed("order"))

    def _calls(self) -> list[exp.Expr]:
        catalog = self.names.catalog
        return [p for whole in self._after_grouping() for p in walk(whole) if is_aggregate_call(p, catalog)]

    def _check_grouping(self, calls: list[exp.Expr]) -> None:
        for call in calls:
            self._check_not_nested(call)
        # Beside aggregates that return something with every tuple stand columns of that tuple.
        if not (self._keys or calls) or (calls and all(map(self._is_streaming, calls))):
            return
        grouped = {column for column in map(self._column, self._keys) if column is not None}
        for part in self._after_grouping():
            self._check_grouped(part, grouped)

    def _is_streaming(self, call: exp.Expr) -> bool:
        user = self.names.catalog.aggregate(aggregate_name(call))
        return user is not None and not user.blocking

    def _check_grouped(self, node: exp.Expr, grouped: set[ColumnRef]) -> None:
        if node in self._keys or isinstance(node, exp.Query) or is_aggregate_call(node, self.names.catalog):
            return
        column = self._column(node)
        if node.is_star or (column is not None and column not in grouped):
            name = column.name if column is not None else "*"
            raise error_at(
                node,
                f"column '{name}' is neither grouped nor aggregated",
                hint="add it to GROUP BY, or use it in an aggregate such as max()",
            )
        for child in node.iter_expressions():
            self._check_grouped(child, grouped)

    def _check_not_nested(self, node: exp.Expr) -> None:
        calls = [
            part
            for part in walk(node)
            if isinstance(part, exp.Anonymous) and is_aggregate_call(part, self.names.catalog)
        ]
        if len(calls) > 1:
            raise error_at(calls[1], f"aggregate '{calls[1].name}' inside '{calls[0].name}'")

    def _column(self, node: exp.Expr) -> ColumnRef | None:
        """Return the column of this query's own tables that a node names, if it names one."""
        if not isinstance(node, exp.Column) or node.is_star:
            return None
        head = node.parts[0].name
        if len(node.parts) > 1 and self.scope.relation(head) is None:
            return None
        if len(node.parts) == 1 and not any(r.find(head) for r in self.scope.relations):
            return None
        found = self.scope.resolve(node)
        return found.column if found is not None else None

    def _in_group(self, node: exp.Expr) -> typed_nodes.Expr | None:
        for i, key in enumerate(self._keys):
            if node == key:
                return typed_nodes.GroupColumn(i, self._plain.of(key).type)
        if is_aggregate_call(node, self.names.catalog):
            return self._aggregate(node)
        return None

    def _aggregate(self, node: exp.Expr, column: int = 0) -> typed_nodes.Expr:
        condition: typed_nodes.Expr | None = None
        call = node
        if isinstance(call, exp.Filter):
            condition = self._plain.condition(call.expression.this)
            call = call.this
        name = aggregate_name(call).lower()
        if not isinstance(call, exp.Anonymous):
            raise error_at(node, f"this form of '{name}' cannot be used in an aggregate yet")
        written, distinct = written_arguments(call)
        arguments = () if written and written[0].is_star else tuple(map(self._plain.of, written))
        found = self._user(name, arguments, node, column)
        if found is None:
            row = builtin_aggregate(name)
            if row is None or not row.in_bodies:
                raise error_at(
                    node,
                    f"'{name}' over a table cannot be used in an aggregate yet",
                    hint=f"these can: {', '.join(_AGGREGATES)}, and aggregates of your own",
                )
            found = built_in(row.function or row.name, arguments, self._plain.known_type(node))
        found = replace(found, distinct=distinct, filter=condition)
        if found not in self._aggregates:
            self._aggregates.append(found)
        return typed_nodes.GroupColumn(len(self._keys) + self._aggregates.index(found), found.type)

    def _user(
        self, name: str, arguments: tuple[typed_nodes.Expr, ...], node: exp.Expr, column: int
    ) -> typed_nodes.Aggregation | None:
        entry = self.names.catalog.aggregate(name)
        if entry is None:
            return None
        if entry.python is not None:
            raise error_at(node, f"'{name}' is in Python and cannot be called from an aggregate in ESL yet")
        body = self.names.body_of(entry, [a.type for a in arguments])
        given = tuple(converted(a, p.type) for a, p in zip(arguments, body.parameters, strict=True))
        returned = body.returns[column].type
        if self._takes_rows(node) and (len(body.returns) > 1 or not returns_one_row(body)):
            return typed_nodes.Aggregation(name, given, returned, user=body, column=column, every=True)
        if len(body.returns) > 1:
            raise error_at(node, f"'{name}' returns rows, which an aggregate cannot take from another yet")
        if returns_growing_table(body):
            raise MistakenCallError(
                f"'{name}' returns several rows, and a call in an aggregate takes one",
                span=span_of(node),
                hint="all rows are taken where it is the only aggregate of a plain INSERT INTO ... SELECT",
            )
        return typed_nodes.Aggregation(name, given, returned, user=body)

    def _takes_rows(self, call: exp.Expr) -> bool:
        """Tell whether all rows of a call are taken: it is alone in the SELECT of an INSERT."""
        is_plain = not any(self.node.args.get(clause) for clause in _ONE_VALUE)
        distinct = call.find(exp.Distinct) is not None
        calls = [found for found in self._calls() if not isinstance(found.parent, exp.Filter)]
        alone = isinstance(self.node.parent, nodes.InsertInto) and len(calls) == 1
        return alone and is_plain and not distinct


def _scan_of(number: int, query: typed_nodes.Query) -> typed_nodes.Scan:
    fields = tuple(Field(name, output.type) for name, output in zip(query.names, query.outputs, strict=True))
    return typed_nodes.Scan(number, query=query, fields=fields)


def _scan_of_table(number: int, node: exp.Expr, fields: Fields | None) -> typed_nodes.Scan:
    if fields is None:
        raise error_at(
            node,
            f"the columns of '{node.name}' are not known before Spark reads it",
            hint="declare them with CREATE TABLE",
        )
    return typed_nodes.Scan(number, node.name.lower(), fields=fields)
