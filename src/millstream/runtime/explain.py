"""EXPLAIN in all its modes, without Spark."""

from __future__ import annotations

from collections.abc import Callable

from millstream.analysis.definitions.statement_analyzer import ExplainQuery
from millstream.catalog import Catalog
from millstream.codegen.udas.explain_code import NO_PROGRAMS, listing
from millstream.errors import MillstreamError, NotExecutableError, Source
from millstream.masking import masked
from millstream.physical.explain import explained
from millstream.physical.query_plan import plan_without_spark
from millstream.plan.explain import plan_report
from millstream.plan.explain.explain_pattern import MODES, explained_patterns
from millstream.plan.nodes import Node
from millstream.plan.planner import best_plan
from millstream.plan.refusals import require_executable


def code(plan: Node, catalog: Catalog) -> str:
    """Return the source of all patterns and aggregates of the user's in a query."""
    return listing(plan_without_spark(plan, catalog).programs) or NO_PROGRAMS


def physical(plan: Node, catalog: Catalog) -> str:
    """Return the physical plan of a query: its stages with their kernels, and the columns between them."""
    return explained(plan_without_spark(plan, catalog).physical)


EXPLAINED: dict[str, Callable[[Node, Catalog], str]] = {"CODE": code, "PHYSICAL": physical}
"""Modes of EXPLAIN that show what is run."""


def located_explanation(statement: ExplainQuery, catalog: Catalog, source: Source) -> str:
    """Return the answer to EXPLAIN; an error has its place in the source."""
    try:
        return explanation(statement, catalog)
    except MillstreamError as error:
        raise error.locate(source) from None


def explanation(statement: ExplainQuery, catalog: Catalog) -> str:
    """Return the answer to EXPLAIN: the logical plan, the sequence patterns, or what is run."""
    plan = best_plan(statement.query)
    if statement.mode in MODES:
        return explained_patterns(plan, statement.mode)
    if statement.mode == "LOGICAL":
        return plan_report.explained(plan)
    if statement.mode not in EXPLAINED:
        raise NotExecutableError(
            f"unknown mode EXPLAIN {statement.mode}",
            span=statement.query.span,
            hint="LOGICAL shows the plan, PATTERN the sequence patterns, PHYSICAL and CODE what is run",
        )
    require_executable(plan, statement.query)
    return masked(EXPLAINED[statement.mode](plan, catalog))
