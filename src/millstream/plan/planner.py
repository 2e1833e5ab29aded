"""Planner: from a resolved query to the optimized plan."""

from __future__ import annotations

from collections.abc import Callable

from millstream.analysis.queries.resolved_query import Query
from millstream.errors import AnalysisError
from millstream.plan.builder import build
from millstream.plan.nodes import Node
from millstream.plan.optimize import optimize


def best_plan(query: Query, form: Callable[[Query], Node] = build) -> Node:
    """Return the optimized plan of a query; refuse one that is too deep for the stack."""
    try:
        return optimize(form(query))
    except RecursionError:
        raise AnalysisError(
            "this query nests too many derived streams and subqueries",
            span=query.span,
            hint="write an intermediate stream to a sink, and read that",
        ) from None
