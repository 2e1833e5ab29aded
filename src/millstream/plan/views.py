"""Plans of materialized results: views, and queries started with a snapshot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from millstream.analysis.queries.resolved_query import Query
from millstream.catalog.entries import View
from millstream.errors import AnalysisError
from millstream.plan.builder import build, relation
from millstream.plan.nodes import Node, RelationToStream
from millstream.plan.relation_variance import RSTREAM, VIEW, as_current, varies


def build_view(query: Query) -> RelationToStream:
    """Build the plan of a view: the current result of its query.

    In a query, aggregates over one sliding window are reported window by window. In a view they are those of
    the current content, so a group disappears when its last row leaves.
    """
    plan = relation(query, on_windows=True)
    if isinstance(plan, RelationToStream):
        raise AnalysisError(
            f"a view shows a current result, but {plan.kind} makes a stream",
            span=query.span,
            hint=f"leave {plan.kind} out",
        )
    plan = as_current(plan)
    if not varies(plan):
        raise AnalysisError(
            "a view shows the current contents of windows, but this query returns a stream",
            span=query.span,
            hint="put a window behind every stream: FROM s [RANGE 1 MINUTE]",
        )
    return RelationToStream(plan, VIEW)


def form_of(view: View) -> Callable[[Query], Node]:
    """Return how the query of a view is planned: its result is maintained, or evaluated when it is read."""
    return build_view if view.maintained else build


def build_kept(query: Query) -> RelationToStream:
    """Build the plan of a query whose result is materialized beside its rows."""
    return replace(_with_rows(query), kind=VIEW)


def rows_beside(query: Query) -> str:
    """Return the kind of rows of such a query: ISTREAM, DSTREAM or CHANGES of its result."""
    return _with_rows(query).kind


def _with_rows(query: Query) -> RelationToStream:
    plan = build(query)
    if not isinstance(plan, RelationToStream) or plan.kind == RSTREAM:
        raise AnalysisError(
            "the current result of this query cannot be materialized beside its rows",
            span=query.span,
            hint="its rows are reports of windows, or a stream: make a view of it, CREATE VIEW v AS ...",
        )
    return plan
