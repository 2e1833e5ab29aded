"""Logical plan nodes: immutable, typed, each with its schema derived from its inputs.

A node's output columns are addressed by (relation, name), as in the expressions of its parents; the timestamp
and the order of arrival are hidden and belong to no schema.
"""

from millstream.plan.nodes.lateral import Extend, Generate
from millstream.plan.nodes.plan_node import Node, PlanError, Schema
from millstream.plan.nodes.scans import SparkQuery, StreamScan, TableScan
from millstream.plan.nodes.stateful import (
    BaseAggregate,
    Distinct,
    GroupingSets,
    OverAggregate,
    PatternMatch,
    RelationToStream,
    StreamLimit,
    StreamUnion,
    WindowAggregate,
    Windowed,
    WindowJoin,
    WindowRank,
    WindowRows,
    WindowSetOperation,
    edge_field,
    windows_seen,
)
from millstream.plan.nodes.stateless import (
    Arranged,
    Filter,
    InOrder,
    Project,
    Rename,
    TableJoin,
    TableStream,
    filtered,
)

__all__ = [
    "Arranged",
    "BaseAggregate",
    "Distinct",
    "Extend",
    "Filter",
    "Generate",
    "GroupingSets",
    "InOrder",
    "Node",
    "OverAggregate",
    "PatternMatch",
    "PlanError",
    "Project",
    "RelationToStream",
    "Rename",
    "Schema",
    "SparkQuery",
    "StreamLimit",
    "StreamScan",
    "StreamUnion",
    "TableJoin",
    "TableScan",
    "TableStream",
    "WindowAggregate",
    "WindowJoin",
    "WindowRank",
    "WindowRows",
    "WindowSetOperation",
    "Windowed",
    "edge_field",
    "filtered",
    "windows_seen",
]
