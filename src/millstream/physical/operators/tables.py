"""Operators on tables beside aggregates of the user's: order, groups, set operations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from millstream.analysis.queries.resolved_expression import ColumnRef, Expr, of_column
from millstream.physical import expressions as ex
from millstream.physical import nodes as physical
from millstream.physical.flow import Flow, FlowInput, merged, named, of_node
from millstream.physical.node import Column, PhysicalNode, Role
from millstream.physical.nodes import ALL
from millstream.plan import nodes
from millstream.stage.hidden_columns import PREFIX
from millstream.stage.pipeline import TIME
from millstream.types import BIGINT, Field
from millstream.windows.window_spec import LandmarkWindow

if TYPE_CHECKING:
    from millstream.physical.planner import RequiredOutput


TABLE_OPERATORS = (
    nodes.InOrder,
    nodes.TableStream,
    nodes.Arranged,
    nodes.Distinct,
    nodes.WindowSetOperation,
)
"""Operators that there are for tables only."""


def plan_table_operator(
    node: nodes.Node, flow_of: Callable[[nodes.Node, RequiredOutput], Flow], required: RequiredOutput
) -> Flow:
    """Plan an operator that there is for tables only."""
    match node:
        case nodes.InOrder():
            flow = flow_of(node.input, replace(required, staged=False))
            window = nodes.Windowed(node, "", LandmarkWindow(), Field("edge", BIGINT))
            return replace(flow.map(lambda one: _in_order(one, node.column)), window=window)
        case nodes.TableStream(column=column):
            rows = flow_of(node.input, replace(required, staged=False, needed=None))
            return rows.map(lambda one: _in_order(one, column))
        case nodes.Arranged():
            below = merged(flow_of(node.input, replace(required, needed=None)))
            return of_node(physical.Arrange(below, node.arrangement))
        case nodes.Distinct():
            return of_node(physical.Distinct(merged(flow_of(node.input, replace(required, needed=None)))))
        case nodes.WindowSetOperation():
            sides = [
                physical.Align(
                    merged(flow_of(side, replace(required, needed=None, staged=False))),
                    node.fields,
                    drops=(PREFIX,),
                )
                for side in node.inputs
            ]
            return of_node(physical.TableSetOperation(sides[0], sides[1], node.kind, node.all))
    raise AssertionError(f"{type(node).__name__} is not only for tables")


def whole_table(below: PhysicalNode, node: nodes.WindowAggregate) -> Flow:
    """Plan groups of a table whose aggregates are all Spark's: over nothing at all they have values too."""
    keys = [key.expr.column or ColumnRef("", key.name, key.expr.type) for key in node.group_by]
    columns = [(key, f"g{i}") for i, key in enumerate(keys)]
    columns += [(call.result, f"r{i}") for i, call in enumerate(node.aggregates)]
    return of_node(named(physical.TableGroups(below, node.group_by, node.aggregates), columns))


def timed(one: FlowInput, time: Expr) -> FlowInput:
    """Return a table with the time of its rows; whatever it comes from, it is now stored."""
    stamp = Column(TIME, time.type, time, Role.TIME)
    return replace(one.set_hidden(stamp, drops=(ALL,)), staged=False, marked=False)


def _in_order(one: FlowInput, column: ColumnRef | None) -> FlowInput:
    """Return a table as stages take it: the column is the time of its rows, or all have the same."""
    if column is None:
        return timed(one, ex.constant("CAST(0 AS BIGINT)", BIGINT))
    value = of_column(column)
    message = ex.text_literal(f"a row has no place in the order of '{column.name}', where it is NULL")
    parts = ("CASE WHEN ", *ex.has_place(value).parts, " THEN ", *value.parts)
    return timed(one, Expr((*parts, f" ELSE CAST(raise_error({message}) AS {value.type}) END"), value.type))
