"""Bounds of windows as names of SELECT: window_start, window_end, wid, and complete where they emit early.

A query that reports windows has a row for each window and group, so that the bounds can be named in it. A
column of the stream may have the name of a bound. ``s.wid`` is always the column, and so is ``wid`` in WHERE,
in ON and in the arguments of aggregates, where windows have no bounds yet. In SELECT and HAVING ``wid`` is
the bound, as the column would have to be grouped.
In GROUP BY, and beside ``GROUP BY s.wid``, it is ambiguous.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlglot import exp

from millstream.analysis.error_collector import error_at
from millstream.analysis.queries.name_resolver import is_aggregate_call
from millstream.analysis.queries.resolved_expression import ColumnRef, Expr
from millstream.analysis.queries.resolved_query import GroupKey
from millstream.analysis.queries.scope import UNNAMED, Scope, ScopeRelation
from millstream.catalog import Catalog
from millstream.errors import AnalysisError


def aggregates_anything(node: exp.Select, catalog: Catalog) -> bool:
    """Tell whether a SELECT has groups or aggregates that are not over windows of their own."""
    having = node.args.get("having")
    written = [*node.expressions, *([having] if having is not None else [])]
    return node.args.get("group") is not None or any(aggregates_in(part, catalog) for part in written)


def aggregates_in(node: exp.Expr, catalog: Catalog) -> bool:
    """Tell whether an expression has an aggregate in it that is not over a window of its own."""
    if isinstance(node, exp.Query | exp.Window):
        return False
    children = node.iter_expressions()
    return is_aggregate_call(node, catalog) or any(aggregates_in(child, catalog) for child in children)


@dataclass(frozen=True)
class WindowBounds:
    """The bounds that a SELECT can name; unless it reports windows, columns go before them."""

    scope: Scope
    catalog: Catalog
    reports: bool

    def columns(self) -> frozenset[ColumnRef]:
        relations = self.scope.relations
        return frozenset(r.bound(field.name) for r in relations for field in r.implicit)

    def are_all_of(self, expr: Expr) -> bool:
        """Tell whether an expression is made of bounds only, and so has one value in a window."""
        used = set(expr.columns())
        return bool(used) and used <= self.columns()

    def in_group_by(self, node: exp.Expr) -> ColumnRef | None:
        """Refuse a bound of a window in GROUP BY that is also the name of a column."""
        relation = self._owner(node)
        if relation is None:
            return None
        raise _ambiguous(node, relation, f"no GROUP BY is needed for the {node.name} of the window")

    def in_select(self, node: exp.Expr, keys: Iterable[GroupKey]) -> ColumnRef | None:
        relation = self._owner(node)
        if relation is None or self._is_argument(node):
            return None
        own = relation.find(node.name)
        if any(own in set(key.expr.columns()) for key in keys):
            renamed = f"FROM (SELECT {node.name} AS other ...)"
            raise _ambiguous(node, relation, f"for the {node.name} of the window rename it: {renamed}")
        return relation.bound(node.name)

    def _owner(self, node: exp.Expr) -> ScopeRelation | None:
        """Return the relation that has a column with the name of a bound of its window."""
        if not self.reports:
            return None
        return next((r for r in self.scope.relations if r.hides_bound(node.name)), None)

    def _is_argument(self, node: exp.Expr) -> bool:
        above = node.parent
        while above is not None and not isinstance(above, exp.Query):
            if is_aggregate_call(above, self.catalog):
                return True
            above = above.parent
        return False


def _ambiguous(node: exp.Expr, relation: ScopeRelation, hint: str) -> AnalysisError:
    owner, column = f"'{relation.alias}'", f"{relation.alias}.{node.name}"
    if relation.alias.startswith(UNNAMED):
        owner, column = "the query in FROM", f"q.{node.name} with FROM (SELECT ...) [...] AS q"
    return error_at(
        node,
        f"'{node.name}' is ambiguous: a column of {owner} and a bound of its window",
        hint=f"the column is {column}; {hint}",
    )
