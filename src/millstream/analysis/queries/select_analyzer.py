"""One SELECT: its columns, groups and aggregates, and what a stream allows of them."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from millstream.analysis.error_collector import error_at
from millstream.analysis.queries.aggregate_calls import aggregate_call, check_several_rows
from millstream.analysis.queries.call_nodes import COMPLETE, AggregateCall, OverCall, is_running
from millstream.analysis.queries.from_clause import facts_of
from millstream.analysis.queries.grouping.group_clause import Sets, grouping_calls
from millstream.analysis.queries.grouping.group_keys import GroupKeys, check_empty
from millstream.analysis.queries.joins.implied_windows import (
    APART,
    Implied,
    joined_hint,
    refuse_ranks_of_joins,
)
from millstream.analysis.queries.name_resolver import Resolver, aggregate_name, is_aggregate_call
from millstream.analysis.queries.named_windows import with_windows
from millstream.analysis.queries.output_order import order_of_instants, order_of_tuples, order_of_windows
from millstream.analysis.queries.over_clause import analyse_over, check_together, emits_early, refuse_on_table
from millstream.analysis.queries.ranking_clauses import RankingClauses
from millstream.analysis.queries.ranks_along import is_rank_along, rank_along
from millstream.analysis.queries.relation_kind import reads_relation, window_of
from millstream.analysis.queries.resolved_expression import ColumnRef, Expr, of_column, part_of
from millstream.analysis.queries.resolved_query import (
    FromItem,
    GroupKey,
    InstantColumn,
    JoinClause,
    Output,
    Select,
)
from millstream.analysis.queries.scope import Scope, ScopeRelation
from millstream.analysis.queries.select_items import expanded, instant_column, placed, star_of
from millstream.analysis.queries.table_queries import (
    arrangement,
    order_of_window,
    refuse_beside_own,
    refuse_other_windows,
)
from millstream.analysis.queries.unsupported_clauses import (
    instead_of_alias,
    refuse_clauses,
    refuse_ranks,
    window_hint,
)
from millstream.analysis.queries.window_bounds import WindowBounds, aggregates_anything
from millstream.analysis.queries.window_clause import StreamFacts
from millstream.catalog.entries import Aggregate
from millstream.errors import AnalysisError
from millstream.quantity import Distance, Duration
from millstream.syntax.spans import span_of
from millstream.types import UNKNOWN, Field, Kind, Type
from millstream.windows.window_properties import has_ends, slides
from millstream.windows.window_spec import RangeWindow


class SelectAnalyser:
    """Analyser of a SELECT whose FROM clause has been resolved into a scope."""

    def __init__(
        self,
        node: exp.Select,
        source: FromItem,
        joins: list[JoinClause],
        resolver: Resolver,
        facts: StreamFacts | None,
        *,
        implied: Implied | None = None,
        checked_only: bool = False,
        current: bool = False,
    ) -> None:
        self.implied = implied
        self.node = node = node if checked_only else with_windows(node)
        self.current = current
        """True if it is a part of a view, where aggregates are those of the content at every instant."""

        self.checked_only = checked_only
        self.source = source
        self.joins = joins
        self.resolver = resolver
        self.facts = facts
        self.instant: InstantColumn | None = None
        items = (source, *(join.item for join in joins))
        is_stream = implied is not None and not implied.grouped
        self.windows = [] if is_stream else [w for w in map(window_of, items) if w is not None]
        self.has_content = bool(self.windows) or (
            not is_stream and any(reads_relation(item, items) for item in items)
        )
        """True if there is a content at every instant that can be aggregated."""

        self._streams = sum(facts_of(item) is not None for item in items)
        self.bounds = WindowBounds(resolver.scope, resolver.catalog, self._reports())
        self.aggregates: list[AggregateCall] = []
        self.overs: list[OverCall] = []
        self.ranking = RankingClauses(node, facts, bool(self.windows), self.has_content, checked_only)
        self.group_by: list[GroupKey] = []
        self.sets: Sets = ()

    def analyse(self) -> Select:
        if self.facts is not None:
            refuse_clauses(self.node, self.resolver, has_content=self.has_content)
        where = self._where()
        if self.facts is None and not self.checked_only:
            refuse_other_windows(self.node, self._is_own)
        outputs, having = self._columns()
        self._check_aggregation(outputs)
        self._by_window = self._is_by_window(outputs, where)
        self._check_contents()
        keys = [key for key in self.group_by if not self.bounds.are_all_of(key.expr)]
        for window in self.windows:
            check_empty(self.node, window, grouped=bool(keys), aggregated=bool(self.aggregates))
        check_together(self.overs)
        refuse_ranks_of_joins(self.node, self.ranking, self.implied)
        arranged = None
        if self.facts is None and not self.checked_only:
            refuse_beside_own(self.node)
            arranged = None if self.windows else arrangement(self.node, outputs, self._written)
        facts = self._result_facts(outputs, self.facts) if self.facts is not None else None
        to_stream = self._to_stream()
        self.ranking.check_distinct(outputs)
        self.ranking.check_word(to_stream)
        return Select(
            source=self.source,
            joins=tuple(self.joins),
            outputs=tuple(outputs),
            where=where,
            group_by=tuple(self.group_by),
            grouping_sets=self.sets,
            having=having,
            aggregates=tuple(self.aggregates),
            overs=tuple(self.overs),
            ranks=tuple(self.ranking.calls),
            qualify=self.ranking.qualify,
            top=self.ranking.top,
            limit=self.ranking.limit,
            distinct=self.node.args.get("distinct") is not None,
            by_window=self._by_window,
            to_stream=to_stream,
            instant=self.instant,
            arrangement=arranged,
            current=self.current and facts is not None,
            implied=self.implied is not None,
            unmatched=self.implied.unmatched if self.implied is not None else (),
            facts=facts,
            span=span_of(self.node),
        )

    def _reports(self) -> bool:
        """Tell whether there is a row for each window and group, which has the bounds of its window."""
        return self._may_report() and aggregates_anything(self.node, self.resolver.catalog)

    def _may_report(self) -> bool:
        """Tell whether there is one window, which ends, so that its bounds can be known."""
        return (
            len(self.windows) == 1
            and not self.current
            and self._streams <= 1
            and has_ends(self.windows[0])
            and not self.node.args.get("operation_modifiers")
        )

    def _is_by_window(self, outputs: list[Output], where: tuple[Expr, ...]) -> bool:
        """Tell whether rows of a window are reported with its bounds, because the query names them."""
        if self.aggregates or self.group_by or self.overs or not self._may_report():
            return False
        asked = (*where, *(c for join in self.joins for c in join.conditions), *self.ranking.expressions())
        used = (column for expr in (*asked, *(o.expr for o in outputs)) for column in expr.columns())
        varies = any(isinstance(window, RangeWindow) and window.cases for window in self.windows)
        is_named = varies or not self.bounds.columns().isdisjoint(used)
        if is_named and self.ranking.is_asked and self.node.args.get("distinct") is not None:
            raise error_at(
                self.node.args["distinct"],
                "DISTINCT of rows with the bounds of their window does not go with an order",
                hint="write GROUP BY with these columns instead of DISTINCT",
            )
        return is_named

    # ------------------------------------------------------------ clauses

    def _where(self) -> tuple[Expr, ...]:
        where = self.node.args.get("where")
        if where is None:
            return ()
        scope = replace(
            self.resolver.scope,
            advice=lambda column: instead_of_alias(column, self.node, self.resolver, self._written),
        )
        return self.resolver.with_aggregates(None, "in WHERE", scope).conditions(where.this, "WHERE")

    def _columns(self) -> tuple[list[Output], tuple[Expr, ...]]:
        self._group_keys()
        resolver = self._in_select = self.resolver.with_aggregates(self._take_aggregate, scope=self._scope())
        calls = (self.node.args.get(clause) for clause in ("having", "qualify", "order"))
        asked = (*self.node.expressions, *(call for call in calls if call is not None))
        resolver.stand_ins = [
            *grouping_calls(asked, self.group_by, self.sets, resolver.resolve),
            *(
                (key.expr.tree, of_column(ColumnRef("", key.name, key.expr.type)))
                for key in self.group_by
                if key.expr.column is None
                and key.expr.tree is not None
                and not self.bounds.are_all_of(key.expr)
            ),
        ]
        if emits_early(self.node.expressions):
            resolver.aliases[COMPLETE.name] = of_column(COMPLETE)
        outputs: list[Output] = []
        for item in self.node.expressions:
            with resolver.collected():
                instant = instant_column(item, self.node, self.resolver.scope, self.facts)
                if instant is not None:
                    self.instant = placed(instant, len(outputs), self.instant, item)
                    continue
                for output in self._outputs(item, resolver):
                    outputs.append(output)
                    resolver.aliases.setdefault(output.name.lower(), output.expr)
                continue
            # It was given up, but may be named all the same.
            resolver.aliases.setdefault(item.alias_or_name.lower(), Expr((), UNKNOWN))
        having = self.node.args.get("having")
        conditions = resolver.conditions(having.this, "HAVING") if having else ()
        self.ranking.resolve(outputs, resolver, self.overs)
        self._check_mistakes()
        if not outputs:
            raise error_at(self.node, "this SELECT has no columns")
        for output in outputs:
            if output.name.lower().startswith("__ms_"):
                raise AnalysisError(
                    f"the name '{output.name}' is reserved", span=output.expr.span, hint="rename it with AS"
                )
        if having and not self.aggregates and not self.group_by:
            raise error_at(having, "HAVING without an aggregate", hint="use WHERE")
        return outputs, conditions

    def _check_mistakes(self) -> None:
        """Stop if an expression has a mistake: rules about the whole would only add to the confusion."""
        if self.resolver.mistakes is not None:
            self.resolver.mistakes.check()

    def _scope(self) -> Scope:
        """Return the names that SELECT knows: where OVER emits early, ``complete`` is one of them."""
        scope = replace(self.resolver.scope, bound=lambda node: self.bounds.in_select(node, self.group_by))
        if self.facts is None or not emits_early(self.node.expressions):
            return scope
        if any(relation.fields and relation.find(COMPLETE.name) for relation in scope.relations):
            return scope  # it is a column already
        implicit = ScopeRelation("", (), (Field(COMPLETE.name, COMPLETE.type),))
        return replace(scope, relations=[*scope.relations, implicit])

    def _outputs(self, item: exp.Expr, resolver: Resolver) -> list[Output]:
        star = star_of(item)
        if star is not None:
            return expanded(item, star, self.resolver.scope)
        if isinstance(item, exp.Aliases):
            raise error_at(
                item,
                "several names for one column",
                hint="a generator of several columns stands in FROM: FROM s, posexplode(items) AS q(i, x)",
            )
        alias = item.alias if isinstance(item, exp.Alias) else None
        value = item.this if isinstance(item, exp.Alias) else item
        expr = resolver.resolve(value)
        if alias is None and self._returns_row(value) and expr.type.kind is Kind.STRUCT:
            return [Output(f.name, part_of(expr, f)) for f in expr.type.fields]
        if alias is None:
            alias = value.name if isinstance(value, exp.Column | exp.Dot) else self._title(value)
        return [Output(alias, expr)]

    def _title(self, node: exp.Expr) -> str:
        """Name a column by its text, or as an aggregate names its result."""
        user = self._user(node)
        if user is not None and not user.returns_row and user.returns[0].name != user.name:
            return user.returns[0].name
        return str(self._written(node))

    def _returns_row(self, node: exp.Expr) -> bool:
        user = self._user(node)
        return user is not None and user.returns_row

    def _user(self, node: exp.Expr) -> Aggregate | None:
        """Return the user's aggregate that a node calls, if it is nothing but a call."""
        catalog = self.resolver.catalog
        if not is_aggregate_call(node, catalog):
            return None
        name = aggregate_name(node)
        return catalog.aggregate(name) or catalog.aggregate(name, window=True)

    def _written(self, node: exp.Expr) -> str:
        span = span_of(node)
        text = self.resolver.source.text[span[0] : span[1] + 1] if span else node.key
        return " ".join(text.split())

    def _group_keys(self) -> None:
        keys = GroupKeys(self.node, self.resolver, self.bounds)
        keys.resolve()
        maintained = self._streams > 1 or self.current or bool(self.node.args.get("operation_modifiers"))
        keys.check_sets(self.source, self.joins, maintained=maintained, reports=self._may_report())
        self.group_by, self.sets = keys.keys, keys.sets

    def _to_stream(self) -> str | None:
        modifiers = self.node.args.get("operation_modifiers") or []
        if any(modifier.name == "EACH" for modifier in modifiers):
            raise error_at(
                modifiers[0],
                "EACH is about a star at the end of a pattern",
                hint="SELECT EACH Y.v FROM s PARTITION BY k AS (X, *Y)",
            )
        if not modifiers:
            return None
        if self.facts is None:
            raise error_at(self.node, f"{modifiers[0].name} is for streams")
        if len(modifiers) > 1:
            raise error_at(self.node, "one of ISTREAM, DSTREAM, RSTREAM and CHANGES")
        if not self.has_content or self.implied is not None:
            raise error_at(
                self.node,
                f"{modifiers[0].name} needs a window",
                hint="a stream without a window only grows: it is its own ISTREAM",
            )
        return str(modifiers[0].name)

    # ------------------------------------------------------------ aggregates

    def _take_aggregate(self, node: exp.Expr, type_: Type) -> ColumnRef | None:
        """Take an aggregate call out of an expression, and put a column in its place."""
        if isinstance(node, exp.Window) and self.ranking.takes(node, self._inside_over()):
            return self.ranking.take(node, type_, self._inside_over(), self._written)
        name = f"__agg{len(self.aggregates) + len(self.overs)}"
        if isinstance(node, exp.Window) and self.facts is not None:
            refuse_ranks(node, self.resolver)
            if is_rank_along(node, self.resolver):
                inner = self.resolver.with_aggregates(None, "inside OVER")
                self.overs.append(rank_along(node, type_, self.facts, inner, name, self._written))
                return self.overs[-1].call.result
        call = aggregate_call(node, type_, self.resolver, name, self._written)
        if isinstance(node, exp.Window):
            if self.facts is None:
                refuse_on_table(node)
                return self._over_table(node, call) if call.user is not None else None
            if self.windows or self._streams > 1:
                if self.implied is not None:
                    raise error_at(node, "OVER does not go with a join of streams", hint=APART)
                raise error_at(
                    node,
                    "OVER does not go with a window on the stream",
                    hint="use one of the two: the bracket, or OVER on a bare stream",
                )
            self.overs.append(analyse_over(node, call, self.facts, self.resolver.with_aggregates(None)))
            return call.result
        if self.facts is not None and not self.has_content:
            self._check_unwindowed(call)
        if self.facts is None and not self.windows:
            self._check_base_version(call)
        if call.distinct and is_running(call) and not self.windows:
            raise AnalysisError(
                f"DISTINCT with '{call.name}', which speaks with every tuple",
                span=call.span,
                hint="all values ever seen would have to be kept; the aggregate can remember what it needs",
            )
        for known in self.aggregates:
            if replace(known, result=call.result) == call:
                return known.result
        self.aggregates.append(call)
        return call.result

    def _inside_over(self) -> Resolver:
        """Return a resolver for the window of a ranking function, which may name aggregates and aliases."""
        resolver = self.resolver.with_aggregates(self._take_inside_over, scope=self._in_select.scope)
        resolver.aliases, resolver.stand_ins = self._in_select.aliases, self._in_select.stand_ins
        return resolver

    def _take_inside_over(self, node: exp.Expr, type_: Type) -> ColumnRef | None:
        if isinstance(node, exp.Window):
            raise error_at(node, "OVER inside OVER", hint="compute the inner one in FROM (SELECT ...)")
        return self._take_aggregate(node, type_)

    def _over_table(self, node: exp.Window, call: AggregateCall) -> ColumnRef:
        """Return a user's aggregate over a window of a table, with the order of the window."""
        resolver = self.resolver.with_aggregates(None)
        column, facts = order_of_window(node, call.name, resolver)
        if self.overs and self.overs[0].along != column:
            raise AnalysisError(
                "all OVER windows of a SELECT on a table have the same ORDER BY",
                span=call.span,
                hint="write a query for each order",
            )
        self.overs.append(replace(analyse_over(node, call, facts, resolver), along=column))
        return call.result

    def _is_own(self, window: exp.Window) -> bool:
        return self.resolver.catalog.has_aggregate(aggregate_name(window))

    def _check_unwindowed(self, call: AggregateCall) -> None:
        """Refuse blocking aggregates over a bare stream, which has no end (ESL paper, section 3)."""
        if call.user is not None and not call.user.window and not call.user.blocking:
            return
        self._check_base_version(call)
        why = (
            "its TERMINATE is not empty"
            if call.user is not None and not call.user.python
            else "it gives its result after the last tuple"
        )
        item = self._unwindowed()
        raise AnalysisError(
            f"'{call.name}' is blocking ({why}) and a stream has no last tuple",
            span=call.span,
            hint=window_hint(item, call.text) if self.implied is None else joined_hint(item, self.implied),
        )

    def _unwindowed(self) -> FromItem:
        """Return the stream that a window is missing on."""
        items = (self.source, *(join.item for join in self.joins))
        return next(item for item in items if facts_of(item) is not None)

    def _check_base_version(self, call: AggregateCall) -> None:
        if call.user is not None and call.user.window and self.resolver.catalog.aggregate(call.name) is None:
            raise AnalysisError(
                f"'{call.name}' has only a window version",
                span=call.span,
                hint=f"call it over a window: {call.text} OVER (ROWS 99 PRECEDING)",
            )

    def _check_aggregation(self, outputs: list[Output]) -> None:
        grouped = self.facts is None and not all(map(is_running, self.aggregates))
        windowed = bool(self.aggregates) and (self.has_content or bool(self.windows) or grouped)
        if self.overs and (self.aggregates or self.group_by):
            raise AnalysisError(
                "OVER does not go with GROUP BY or a plain aggregate in one SELECT",
                span=self.overs[0].call.span,
                hint="PARTITION BY inside OVER divides its windows",
            )
        if self.group_by and not self.aggregates:
            if self.facts is not None and not self.has_content:
                raise error_at(self.node.args["group"], "GROUP BY on a stream without an aggregate")
            windowed = True
        if not windowed:
            check_several_rows(self.aggregates)
            return
        allowed = {key.expr.column for key in self.group_by} | self.bounds.columns()
        alone = self._streams <= 1  # PATTR of windows that are joined divides the windows only
        allowed |= {
            ColumnRef(item.alias, name)
            for item in (self.source, *(j.item for j in self.joins))
            if alone and (window := window_of(item)) is not None
            for name in window.partition_by
        }
        for expr in (*(output.expr for output in outputs), *self.ranking.expressions()):
            for column in expr.columns():
                if column.relation and column not in allowed:
                    raise AnalysisError(
                        f"column '{column.name}' is neither grouped nor aggregated",
                        span=expr.span,
                        hint=f"add it to GROUP BY, or use it in an aggregate such as max({column.name})",
                    )

    def _check_contents(self) -> None:
        """Check that windows without aggregates have a content at every instant."""
        lacking = [window for window in self.windows if not window.has_state]
        aggregated = self.aggregates or self.group_by or self._by_window
        if self.facts is not None and lacking and not aggregated:
            raise error_at(
                self.node,
                f"a {type(lacking[0]).__name__.removesuffix('Window').upper()} window has no content at an"
                " instant: its rows are known when it ends",
                hint="use an aggregate, or select window_end beside the columns of each row",
            )

    # ------------------------------------------------------------ order

    def _result_facts(self, outputs: list[Output], facts: StreamFacts) -> StreamFacts:
        if self.implied is not None:
            return order_of_instants(outputs, facts, self.implied.instants)
        reported = (self.aggregates or self.group_by or self._by_window) and not self.current
        if reported and self.windows:
            return order_of_windows(outputs, facts, self.windows[0], self.resolver.scope)
        unchanged = not (
            self.overs or self.aggregates or self.joins or self.ranking.is_asked or self.ranking.limit
        )
        return order_of_tuples(outputs, facts, unchanged=unchanged, stamped=self._is_stamped_anew())

    def _is_stamped_anew(self) -> bool:
        """Tell whether rows come at other instants than a column tells.

        A partial result has the instant of its emission, and what is made of the contents of windows that of
        its entering: when a window slides, another row comes, or one leaves.
        """
        if any(isinstance(over.emit_every, Duration | Distance) for over in self.overs):
            return True
        asked = self.node.args.get("operation_modifiers") or self.node.args.get("distinct") is not None
        made = asked or self.ranking.is_asked or self._streams > 1 or self.aggregates or self.group_by
        return self.has_content and (bool(made) or any(map(slides, self.windows)))
