"""Physical plans of scripts, without Spark."""

from __future__ import annotations

from millstream.analysis.definitions.statement_analyzer import RunQuery, analyse
from millstream.catalog import Catalog
from millstream.physical.query_plan import QueryPlan, plan_without_spark
from millstream.plan.builder import build
from millstream.plan.optimize import optimize
from millstream.syntax import parse_script


def plans_of(script: str) -> list[QueryPlan]:
    """Return the plan of each query of a script."""
    catalog, plans = Catalog(), []
    for statement in parse_script(script):
        meaning = analyse(statement, catalog).meaning
        if isinstance(meaning, RunQuery):
            plans.append(plan_without_spark(optimize(build(meaning.query)), catalog))
    return plans
