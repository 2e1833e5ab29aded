"""Rows and columns that are computed for each row of FROM."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from millstream.analysis.queries.resolved_expression import ColumnRef, of_column
from millstream.physical.flow import FlowInput, named
from millstream.physical.node import Column
from millstream.physical.nodes import Explode
from millstream.plan import nodes

_ITEM, _PLACE = "item", "place"


def generated(node: nodes.Generate, kept: Sequence[ColumnRef], one: FlowInput) -> FlowInput:
    """Return a row for each element of a list, with the columns of the row that has it."""
    columns = [Column(f"c{i}", one.type_of(ref), of_column(ref)) for i, ref in enumerate(kept)]
    items = Column(_ITEM, node.items.type, node.items)
    place = None if node.position is None else _PLACE
    below = one.compute((*columns, items)).node
    exploded = Explode(below, _ITEM, node.element.type, one.marked, node.outer, place)
    names = [(ref, f"c{i}") for i, ref in enumerate(kept)]
    names.append((node.element, _ITEM))
    if node.position is not None:
        names.append((node.position, _PLACE))
    return replace(one, node=named(exploded, names))


def extended(node: nodes.Extend, kept: Sequence[ColumnRef], one: FlowInput) -> FlowInput:
    """Return the columns that there are, and others."""
    columns = [Column(r.name, one.type_of(r), of_column(r), relation=r.relation) for r in kept]
    made = [Column(o.name, o.expr.type, o.expr, relation=node.alias) for o in node.outputs]
    return one.compute((*columns, *made))
