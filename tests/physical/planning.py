"""Plans of scripts, without Spark."""

from __future__ import annotations

from millstream.analysis.definitions.statement_analyzer import RunQuery, analyse
from millstream.catalog import Catalog
from millstream.physical.nodes import Stage, stages_of
from millstream.physical.query_plan import QueryPlan, plan_without_spark
from millstream.plan.builder import build
from millstream.plan.nodes import Node
from millstream.plan.optimize import optimize
from millstream.syntax import parse_script


def plans_of(script: str) -> list[QueryPlan]:
    """Return the plan of each query of a script."""
    catalog = Catalog()
    return [plan_without_spark(plan, catalog) for plan in _optimized(script, catalog)]


def planned(script: str) -> Node:
    """Return the optimized logical plan of the query that a script ends with."""
    return _optimized(script, Catalog())[-1]


def stage_of(script: str) -> Stage:
    """Return the only stage of the query that a script ends with."""
    (stage,) = stages_of(plans_of(script)[-1].physical)
    return stage


def _optimized(script: str, catalog: Catalog) -> list[Node]:
    meanings = [analyse(statement, catalog).meaning for statement in parse_script(script)]
    return [optimize(build(meaning.query)) for meaning in meanings if isinstance(meaning, RunQuery)]
