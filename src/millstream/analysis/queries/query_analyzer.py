"""Queries and the queries inside them: which are about streams, and which are Spark's own affair."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from millstream.analysis.error_collector import ErrorCollector, error_at
from millstream.analysis.patterns.pattern_analyzer import analyse_pattern_query
from millstream.analysis.queries.from_clause import (
    columns_of,
    facts_of,
    in_declared_order,
    is_declared,
    is_true,
    join_kind,
    joins_of,
    order_of_table,
    refuse_on_streams,
    refuse_variables_in_joins,
    tables_of,
    with_window,
)
from millstream.analysis.queries.joins.asof_join import ASOF, is_of_times, latest_of_keys, refuse_on_tables
from millstream.analysis.queries.joins.implied_windows import facts_of_rows, implied_beside
from millstream.analysis.queries.joins.joined_items import (
    common_columns,
    equal_columns,
    facts_of_joined,
    refuse_whole_table,
)
from millstream.analysis.queries.joins.subqueries import SubqueryJoins
from millstream.analysis.queries.lateral.inline_values import inline_values
from millstream.analysis.queries.lateral.lateral_items import LateralItems, check_windows, is_lateral
from millstream.analysis.queries.lateral.spark_generators import is_plain, spark_text
from millstream.analysis.queries.name_resolver import Resolver
from millstream.analysis.queries.relation_kind import is_on_windows, is_relation
from millstream.analysis.queries.resolved_expression import Expr
from millstream.analysis.queries.resolved_query import (
    FromItem,
    JoinClause,
    Query,
    ReadQuery,
    ReadStream,
    ReadTable,
    Select,
    SetOperation,
    TableQuery,
)
from millstream.analysis.queries.scope import UNNAMED, Scope, ScopeRelation
from millstream.analysis.queries.select_analyzer import SelectAnalyser
from millstream.analysis.queries.set_operations import require_windows, united, united_facts, without_keyword
from millstream.analysis.queries.table_queries import is_checked, is_simple
from millstream.analysis.queries.view_queries import all_rows, over_all_tuples, refuse_order_inside
from millstream.analysis.queries.window_clause import (
    UNKNOWN_COLUMNS,
    WindowAnalyser,
    implicit_columns,
)
from millstream.catalog import Catalog
from millstream.catalog.entries import Relation, Stream, View
from millstream.errors import AnalysisError, Source, Span, UnknownNameError, did_you_mean
from millstream.syntax import nodes
from millstream.syntax.spans import span_of
from millstream.syntax.spark_only_queries import is_plain_spark
from millstream.types import UNKNOWN, Field, Type


def analyse_query(node: exp.Expr, catalog: Catalog, source: Source, *, in_view: bool = False) -> Query:
    """Analyse a query, or one ``in_view``; an AnalysisError says which rule it breaks."""
    return QueryAnalyser(catalog, source, in_view=in_view).query(node)


class QueryAnalyser:
    """Analyser of a query and the queries inside it."""

    def __init__(
        self,
        catalog: Catalog,
        source: Source,
        named: dict[str, Query] | None = None,
        outer: Scope | None = None,
        *,
        for_spark: bool = False,
        in_view: bool = False,
    ) -> None:
        self.for_spark = for_spark
        """True if Spark gets the query as it is written, and it is only checked here."""

        self.in_view = in_view
        """True if the current result of the query is asked for."""

        self.catalog = catalog
        self.source = source
        self.named = named or {}
        self.outer = outer
        self._subqueries: dict[tuple[int, int], tuple[exp.Query, Scope, Type]] = {}
        """Types of subqueries by node and scope, which are kept so that their identities stay theirs."""
        self._values: dict[Span | None, Expr] = {}
        """The columns that stand for queries in expressions, by the places of these."""
        self.mistakes = ErrorCollector()

    def elsewhere(self, source: Source) -> QueryAnalyser:
        """Return an analyser of another text with the same catalog."""
        return QueryAnalyser(self.catalog, source)

    def query(self, node: exp.Expr) -> Query:
        while isinstance(node, exp.Subquery) and not isinstance(node, nodes.StreamSubquery):
            node = node.this
        if is_plain_spark(node) and self._reads(node, Stream):
            raise error_at(
                node,
                "this query uses a part of Spark SQL that is for tables only",
                hint="PIVOT, time travel, pipes and paths into variants do not go with streams",
            )
        if not self._reads(node, Stream) and is_plain(node, self.catalog):
            refuse_on_tables(node)
            return self._table_query(node)
        inner = self._with(node)
        if isinstance(node, exp.SetOperation):
            return inner._set_operation(node)
        if isinstance(node, exp.Select):
            return inner._select(node)
        raise error_at(node, "this kind of query is not for streams")

    # ------------------------------------------------------------ what it reads

    def _reads(self, node: exp.Expr, *kinds: type) -> bool:
        names = [t.name for t in node.find_all(exp.Table)]
        return any(
            isinstance(self.catalog.named(name), kinds)
            or (name.lower() in self.named and self.named[name.lower()].facts is not None)
            for name in names
        )

    def _with(self, node: exp.Expr) -> QueryAnalyser:
        """Return an analyser that also knows the queries named by WITH."""
        clause = node.args.get("with_")
        if clause is None:
            return self
        if clause.args.get("recursive"):
            raise error_at(clause, "WITH RECURSIVE is not for streams")
        named = dict(self.named)
        for cte in clause.expressions:
            refuse_on_streams(cte)
            with_bracket = any(t.args.get("window") for t in node.find_all(exp.Table) if t.name == cte.alias)
            in_view = self.in_view and not with_bracket
            inner = QueryAnalyser(self.catalog, self.source, named, self.outer, in_view=in_view)
            named[cte.alias.lower()] = inner.query(cte.this)
        return QueryAnalyser(self.catalog, self.source, named, self.outer, in_view=self.in_view)

    # ------------------------------------------------------------ tables only

    def _table_query(self, node: exp.Expr) -> TableQuery:
        ctes = {cte.alias.lower() for cte in node.find_all(exp.CTE)}
        tables = [
            t
            for t in node.find_all(exp.Table)
            if t.name.lower() not in ctes and isinstance(t.this, exp.Identifier)
        ]
        for table in tables:
            if not table.db:
                with self.mistakes.collected():
                    self._entry(table)
        self.mistakes.check()
        return TableQuery(
            text=spark_text(node, self),
            tables=tuple(dict.fromkeys(t.name for t in tables)),
            fields=self._table_fields(node),
            simple=self._simple(node),
            span=span_of(node),
        )

    def _simple(self, node: exp.Expr) -> Select | None:
        """Return a query over one table without aggregates in the form that needs no Spark, if it has one."""
        if not isinstance(node, exp.Select) or not is_simple(node):
            return None
        try:
            select = QueryAnalyser(self.catalog, self.source, self.named, self.outer)._select(node)
        except AnalysisError:
            return None
        return None if select.aggregates or columns_of(select.source) is None else select

    def _table_fields(self, node: exp.Expr) -> tuple[Field, ...] | None:
        """Return the columns of a query over tables, checked where the query is of a simple shape."""
        if isinstance(node, exp.SetOperation) and not node.args.get("with_") and not is_plain_spark(node):
            left = QueryAnalyser(self.catalog, self.source, self.named).query(node.this).fields
            right = QueryAnalyser(self.catalog, self.source, self.named).query(node.expression).fields
            return united(node, left, right) if left is not None and right is not None else None
        if not isinstance(node, exp.Select) or not is_checked(node):
            return None
        read = [self.catalog.relation(table.name) for table in node.find_all(exp.Table)]
        if node.find(exp.Star) and any(entry is not None and entry.schema is None for entry in read):
            return None
        if node.args.get("from_") is None:
            resolver = self.resolver(Scope())
            fields = tuple(
                Field(item.alias_or_name or "column", resolver.type_of(item.unalias()))
                for item in node.expressions
            )
            self.mistakes.check()
            return fields
        checking = QueryAnalyser(self.catalog, self.source, self.named, self.outer, for_spark=True)
        select = checking._select(node, checked_only=True)
        return None if any(columns_of(item) is None for item in select.items()) else select.fields

    # ------------------------------------------------------------ SELECT

    def _select(self, node: exp.Select, *, checked_only: bool = False) -> Select:
        clause = node.args.get("from_")
        if clause is None:
            raise error_at(node, "a query over a stream needs FROM")
        scope = Scope(outer=self.outer)
        pattern = next((t for t in tables_of(node) if t.args.get("pattern") is not None), None)
        source, joins = self._from(node, clause, scope)
        if isinstance(pattern, nodes.StreamTable | nodes.StreamSubquery):
            refuse_variables_in_joins(pattern, joins_of(node, clause))
        resolver = self.resolver(scope)
        if self._unclear:
            self._check_names(node, resolver)
        implied = None
        if self.in_view and pattern is None:
            source, joins = over_all_tuples(node, source, joins, self.catalog)
        asked: list[JoinClause] = []
        if pattern is None:
            if not self.for_spark:
                found = SubqueryJoins(self, scope)
                node, asked = found.taken_from(node), found.joins
                self._values |= found.values
            implied = implied_beside(node, source, joins, asked, scope, self.catalog)
        joins = [*joins, *asked]
        if implied is not None and implied.grouped and self.in_view:
            implied = None  # the groups of a view are those of all tuples
        if implied is not None:
            source, joins = implied.source, list(implied.joins)
        check_windows(source, joins)
        facts = facts_of_joined([source, *(join.item for join in joins)], node)
        if implied is not None and facts is not None and joins:
            facts = facts_of_rows(facts, implied)
        if isinstance(pattern, nodes.StreamTable | nodes.StreamSubquery):
            return analyse_pattern_query(node, pattern, source, joins, resolver, facts)
        how = {"checked_only": checked_only, "current": self.in_view}
        select = SelectAnalyser(node, source, joins, resolver, facts, implied=implied, **how).analyse()
        if self.in_view:
            refuse_order_inside(select)
        return select

    def _from(self, node: exp.Select, clause: exp.Expr, scope: Scope) -> tuple[FromItem, list[JoinClause]]:
        """Resolve the relations of FROM; an unknown one ends the analysis of the query."""
        self._unclear = False
        items: list[FromItem] = []
        joins: list[JoinClause] = []
        with self.mistakes.collected():
            items.append(self.from_item(clause.this, scope))
        lateral = LateralItems(self, scope, beside_window=any(t.args.get("window") for t in tables_of(node)))
        failed = not items
        for join in (*joins_of(node, clause), *(node.args.get("laterals") or ())):
            before = self.mistakes.count
            with self.mistakes.collected():
                if failed:
                    self.from_item(join if isinstance(join, exp.Lateral) else join.this, scope)
                elif isinstance(join, exp.Lateral):
                    joins += lateral.joined(join)
                elif is_lateral(join.this):
                    joins += lateral.joined(join.this, join)
                else:
                    joins.append(self.join(join, scope, items[0]))
            failed = failed or self.mistakes.count > before
        if failed:
            self.mistakes.check()
        return in_declared_order(node, items[0], scope, self.catalog), joins

    def _check_names(self, node: exp.Select, resolver: Resolver) -> None:
        """Look at the names of a query with a mistake in its windows, where rules would mean nothing."""
        for item in node.expressions:
            value = item.unalias()
            if not value.is_star and not isinstance(value, exp.Aliases):
                typed = resolver.type_of(value)
                resolver.aliases.setdefault(item.alias_or_name.lower(), Expr((), typed))
        for clause in ("where", "having"):
            if node.args.get(clause) is not None:
                resolver.type_of(node.args[clause].this)
        group = node.args.get("group")
        for key in group.expressions if group is not None else ():
            resolver.type_of(key)
        self.mistakes.check()

    def resolver(self, scope: Scope) -> Resolver:
        """Return a resolver of names, which also knows queries in expressions."""
        return Resolver(scope, self.catalog, self.source, on_subquery=self._subquery, collector=self.mistakes)

    def inner(self, node: exp.Expr) -> Query:
        """Analyse a query that is read as a relation of its own."""
        return QueryAnalyser(self.catalog, self.source, self.named, in_view=self.in_view).query(node)

    def reads_changing(self, node: exp.Expr) -> bool:
        """Tell whether a query reads streams or views."""
        return self._reads(node, Stream, View)

    def _subquery(self, node: exp.Query, scope: Scope) -> Type | Expr:
        """Return the type of a query inside an expression, which is analysed once, or what stands for it."""
        value = self._values.get(span_of(node.unnest()))
        if value is not None:
            return value
        key = id(node.unnest()), id(scope)
        if key not in self._subqueries:
            self._subqueries[key] = node, scope, self._subquery_type(node, scope)
        return self._subqueries[key][2]

    def _subquery_type(self, node: exp.Query, scope: Scope) -> Type:
        """Return a query inside an expression: over tables only, and possibly about the tuple outside."""
        if self._reads(node, Stream):
            raise error_at(
                node,
                "a stream cannot be read inside an expression",
                hint="join the two streams over windows instead",
            )
        if not self.for_spark and self._reads(node, View):
            raise error_at(
                node,
                "a view cannot be read inside an expression of this query",
                hint="join with the view instead: JOIN, SEMI JOIN or ANTI JOIN",
            )
        for item in node.find_all(exp.Unnest, nodes.TableCall):
            raise error_at(
                item,
                "Spark runs the queries in expressions, and does not know this table function",
                hint="write Spark's own: FROM explode(items) AS q(item)",
            )
        for part in node.find_all(exp.Anonymous):
            if self.catalog.has_aggregate(part.name):
                raise error_at(
                    part,
                    f"'{part.name}' is an aggregate of your own, and Spark runs the queries in expressions",
                    hint="put the query into FROM (SELECT ...) and join with it",
                )
        inner = QueryAnalyser(self.catalog, self.source, self.named, outer=scope)
        fields = inner.query(node).fields
        return fields[0].type if fields else UNKNOWN

    # ------------------------------------------------------------ FROM

    def from_item(self, node: exp.Expr, scope: Scope) -> FromItem:
        """Resolve an item of FROM, and enter it into a scope."""
        if isinstance(node, exp.Subquery):
            return self._from_query(node, scope)
        if isinstance(node, exp.Values):
            return self._windowed(node, scope, inline_values(node, self.resolver(Scope()), scope))
        if is_lateral(node):
            raise error_at(
                node,
                "a table function stands behind the stream or table of whose rows it is computed",
                hint="write it second: FROM s, TABLE(f(s.v)) AS q(x)",
            )
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            raise error_at(node, "this cannot be read together with a stream")
        refuse_on_streams(node)
        alias = node.alias or node.name
        named = self.named.get(node.name.lower())
        if named is not None and not node.db:
            return self._windowed(node, scope, ReadQuery(alias, named, span=span_of(node)))
        entry = self._entry(node)
        if isinstance(entry, Stream):
            return self._windowed(node, scope, ReadStream(alias, entry, span=span_of(node)))
        return self._windowed(node, scope, ReadTable(alias, entry, span=span_of(node)))

    def _from_query(self, node: exp.Subquery, scope: Scope) -> FromItem:
        refuse_on_streams(node)
        in_view = self.in_view and node.args.get("window") is None
        query = QueryAnalyser(self.catalog, self.source, self.named, in_view=in_view).query(node.this)
        alias = node.alias or f"{UNNAMED}{len(scope.relations)}"
        return self._windowed(node, scope, ReadQuery(alias, query, span=span_of(node)))

    def _windowed(self, node: exp.Expr, scope: Scope, item: FromItem) -> FromItem:
        """Enter an item into the scope, with its window if it has one."""
        facts = facts_of(item)
        relation = ScopeRelation(item.alias, columns_of(item), is_stream=facts is not None)
        bracket = node.args.get("window")
        if not isinstance(bracket, nodes.StreamWindow):
            scope.add(relation, node)
            return item
        if facts is None:
            facts = order_of_table(bracket, item, relation)
            relation = replace(relation, is_stream=True)
        alone = Scope([relation])
        try:
            window = WindowAnalyser(bracket, relation, facts, declared=is_declared(item)).analyse(
                self.resolver(alone)
            )
        except AnalysisError as error:
            self.mistakes.add(error)
            self._unclear = True
            scope.add(replace(relation, implicit=UNKNOWN_COLUMNS), node)
            return item
        scope.add(
            ScopeRelation(
                relation.alias,
                relation.fields,
                implicit_columns(window, facts, relation),
                is_stream=relation.is_stream,
            ),
            node,
        )
        return with_window(item, window, facts.timestamp if facts.stored else None)

    def _entry(self, node: exp.Table) -> Relation:
        # A name with dots is one of Spark's catalog.
        entry = self.catalog.relation(".".join(part.name for part in node.parts))
        if entry is None:
            sink = self.catalog.sink(node.name)
            if sink is not None:
                raise error_at(node.this, f"'{node.name}' is a sink and cannot be read")
            raise UnknownNameError(
                "stream or table",
                node.name,
                span=span_of(node.this),
                hint=did_you_mean(node.name, self.catalog.relation_names())
                or "create it first: CREATE STREAM or CREATE TABLE",
            )
        return entry

    def join(self, join: exp.Join, scope: Scope, left: FromItem | None = None) -> JoinClause:
        kind = join_kind(join)
        before = list(scope.relations)
        item = self.from_item(join.this, scope)
        right = scope.relations[-1]
        using = join.args.get("using")
        conditions: tuple[Expr, ...] = ()
        if join.method == "NATURAL":
            conditions = equal_columns(common_columns(join, before, right), kind, before, right, scope)
        elif using:
            conditions = equal_columns(using, kind, before, right, scope)
        elif join.args.get("on") is not None and not is_true(join.args["on"]):
            resolver = self.resolver(scope).with_aggregates(None, "in ON")
            conditions = resolver.conditions(join.args["on"], "ON")
        if join.method == ASOF:
            equal = tuple(one for one in conditions if not is_of_times(one))
            return JoinClause(kind, latest_of_keys(join, item, left, equal, scope), equal, asof=True)
        refuse_whole_table(join, kind, before, right)
        if kind in ("semi", "anti"):
            scope.hide(right)
        return JoinClause(kind, item, conditions)

    # ------------------------------------------------------------ set operations

    def _set_operation(self, node: exp.SetOperation) -> SetOperation:
        kind = node.key.upper()
        with self.mistakes.collected():
            left = self.query(node.this)
        with self.mistakes.collected():
            right = self.query(node.expression)
        self.mistakes.check()
        left, to_stream = without_keyword(left)
        if without_keyword(right)[1] is not None:
            raise AnalysisError(
                f"{without_keyword(right)[1]} behind {kind}",
                span=right.span,
                hint="on the first SELECT it is about the whole result",
            )
        if self.in_view and node.args.get("distinct"):
            left, right = all_rows(left), all_rows(right)
        if (left.facts is None) != (right.facts is None):
            raise error_at(
                node,
                f"{kind} of a stream and a table",
                hint="a table has no order to merge by; join the stream with the table instead",
            )
        asked = kind != "UNION" or to_stream is not None
        maintained = asked or is_relation(left) or is_relation(right)
        for argument in ("limit", "offset", *(("order",) if left.facts is None else ())):
            if node.args.get(argument):
                if left.facts is None:
                    raise error_at(
                        node,
                        f"{argument.upper()} behind {kind} does not go with an aggregate of your own",
                        hint="put it outside: SELECT * FROM (SELECT ...)",
                    )
                raise error_at(
                    node,
                    f"{argument.upper()} behind {kind} of streams",
                    hint=f"put it outside: SELECT * FROM (SELECT ... {kind} ...) {argument.upper()} n",
                )
        assert left.fields is not None
        assert right.fields is not None
        fields = united(node, left.fields, right.fields)
        operation = SetOperation(
            kind=kind,
            all=not node.args.get("distinct"),
            left=left,
            right=right,
            columns=fields,
            to_stream=to_stream,
            facts=united_facts(node, left, right, maintained=maintained),
            span=span_of(node),
        )
        if is_on_windows(operation):
            require_windows(operation, kind)
        return operation
