"""Keys of GROUP BY as expressions, and the refusal of grouping sets that would change windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from millstream.analysis.error_collector import error_at
from millstream.analysis.queries.grouping.group_clause import Sets, groupings, without_copies
from millstream.analysis.queries.name_resolver import Resolver
from millstream.analysis.queries.relation_kind import reads_relation, window_of
from millstream.analysis.queries.resolved_query import FromItem, GroupKey, JoinClause
from millstream.analysis.queries.window_bounds import WindowBounds, aggregates_in
from millstream.windows.window_properties import is_contextual
from millstream.windows.window_spec import RangeWindow, Window


@dataclass
class GroupKeys:
    """Resolves the GROUP BY of a SELECT."""

    node: exp.Select
    resolver: Resolver
    bounds: WindowBounds
    keys: list[GroupKey] = field(default_factory=list)
    sets: Sets = ()

    def resolve(self) -> None:
        group = self.node.args.get("group")
        if group is None:
            return
        clause = groupings(group, self.node.expressions, self._is_key)
        is_all = bool(group.args.get("all"))
        bound = (lambda node: self.bounds.in_select(node, ())) if is_all else self.bounds.in_group_by
        scope = replace(self.resolver.scope, bound=bound)
        resolver = self.resolver.with_aggregates(None, "in GROUP BY", scope)
        for node in clause.keys:
            if isinstance(node, exp.Tuple) and not node.expressions:
                continue  # GROUP BY () has no keys
            with resolver.collected():
                expr = resolver.resolve(node if is_all else self._selected(node))
                if is_all and not any(expr.columns()):
                    continue
                column = expr.column
                self.keys.append(GroupKey(column.name if column else f"__group{len(self.keys)}", expr))
        if clause.sets and len(self.keys) == len(clause.keys):
            self.keys, self.sets = without_copies(self.keys, clause.sets)

    def _is_key(self, item: exp.Expr) -> bool:
        return item.find(exp.Window) is None and not aggregates_in(item, self.resolver.catalog)

    def _selected(self, node: exp.Expr) -> exp.Expr:
        """Resolve a position or an alias of SELECT in GROUP BY, as Spark does."""
        items: list[exp.Expr] = self.node.expressions
        if isinstance(node, exp.Literal) and not node.is_string:
            position = int(node.name) if node.name.isdigit() else 0
            if not 1 <= position <= len(items):
                raise error_at(node, f"GROUP BY {node.name} names no column of SELECT")
            return _unaliased(items[position - 1])
        if isinstance(node, exp.Column) and not node.table:
            known = any(r.find(node.name) for r in self.resolver.scope.relations)
            aliased = (i for i in items if isinstance(i, exp.Alias) and i.alias.lower() == node.name.lower())
            match = None if known else next(aliased, None)
            if match is not None:
                return _unaliased(match)
        return node

    def check_sets(
        self, source: FromItem, joins: Sequence[JoinClause], *, maintained: bool, reports: bool
    ) -> None:
        """Refuse grouping sets of relations whose tuples cannot be copied before they are in a window."""
        if not self.sets:
            return
        group = self.node.args["group"]
        for number, key in enumerate(self.keys):
            if self.bounds.are_all_of(key.expr) and not all(number in one for one in self.sets):
                raise error_at(
                    group,
                    f"the bound '{key.expr}' of the window is not in every grouping set",
                    hint="write it before the sets: GROUP BY window_end, ROLLUP (...)",
                )
        items = (source, *(join.item for join in joins))
        windows = [window for window in map(window_of, items) if window is not None]
        refused = None
        if any(map(is_contextual, windows)) and (maintained or not reports):
            refused = "a maintained window that depends on other tuples"
        elif any(window_of(item) is None and reads_relation(item, items) for item in items):
            refused = "a maintained query in FROM"
        elif maintained and any(join.kind in ("right", "full") for join in joins):
            refused = "an outer join that keeps the right side"
        if refused is not None:
            raise error_at(
                group,
                f"GROUPING SETS, ROLLUP and CUBE do not go with {refused}",
                hint="write a query for each grouping, and combine them with UNION ALL",
            )


def check_empty(node: exp.Select, window: Window, *, grouped: bool, aggregated: bool) -> None:
    """Refuse EMIT EMPTY where nothing is known of a window without tuples."""
    if not isinstance(window, RangeWindow) or not window.emit_empty:
        return
    if grouped or window.partition_by:
        raise error_at(
            node,
            "EMIT EMPTY does not go with groups: those of a window without tuples are not known",
            hint="leave GROUP BY and PATTR out, and count with FILTER: count(*) FILTER (WHERE k = 1)",
        )
    if not aggregated:
        raise error_at(node, "EMIT EMPTY needs an aggregate: a window without tuples has no rows")


def _unaliased(item: exp.Expr) -> exp.Expr:
    value = item.unalias()
    assert isinstance(value, exp.Expr)
    return value
