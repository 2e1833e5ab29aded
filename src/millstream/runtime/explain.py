"""EXPLAIN PHYSICAL and EXPLAIN CODE: what is run for a query, told without Spark."""

from __future__ import annotations

from collections.abc import Callable

from millstream.catalog import Catalog
from millstream.codegen.udas.explain_code import NO_PROGRAMS, listing
from millstream.physical.explain import explained
from millstream.physical.query_plan import plan_without_spark
from millstream.plan.nodes import Node


def code(plan: Node, catalog: Catalog) -> str:
    """Return the source of all patterns and aggregates of the user's in a query."""
    return listing(plan_without_spark(plan, catalog).programs) or NO_PROGRAMS


def physical(plan: Node, catalog: Catalog) -> str:
    """Return the physical plan of a query: its stages with their kernels, and the columns between them."""
    return explained(plan_without_spark(plan, catalog).physical)


EXPLAINED: dict[str, Callable[[Node, Catalog], str]] = {"CODE": code, "PHYSICAL": physical}
"""By the mode of EXPLAIN."""
