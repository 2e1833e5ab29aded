"""Union of equal windows, rewritten as a window of the union."""

from __future__ import annotations

from dataclasses import replace

from millstream.analysis.queries.resolved_expression import of_column
from millstream.analysis.queries.resolved_query import Output
from millstream.catalog.entries import TimestampKind
from millstream.plan.nodes import Node, Project, StreamScan, StreamUnion, Windowed, WindowSetOperation
from millstream.plan.time_attributes import attribute_beside_time
from millstream.windows.window_properties import has_bounds, is_contextual

_BOUNDS = frozenset({"window_start", "window_end", "wid"})


def union_of_windows(node: Node) -> Node:
    """``Windowed a UNION ALL Windowed b`` becomes ``Windowed (a UNION ALL b)``, which needs one queue.

    This holds for equal windows of time only (Patroumpas and Sellis, section 5): two windows of n rows have
    2n. Both must be on the timestamp, by which streams are merged. Projections are moved below, as they
    commute with any window. The merged stream has no column for the bounds of a landmark window, so landmark
    windows with bounds are not rewritten.
    """
    if not isinstance(node, WindowSetOperation) or node.kind != "UNION" or not node.all:
        return node
    names = [field.name.lower() for field in node.fields]
    if len(set(names)) < len(names) or not _BOUNDS.isdisjoint(names):
        return node
    match node.left, node.right:
        case (
            Project(input=Windowed() as one) as left,
            Project(input=Windowed() as other) as right,
        ) if _is_equal(one, other) and _goes_below(left, one) and _goes_below(right, other):
            union = StreamUnion(
                Project(one.input, left.outputs), Project(other.input, right.outputs), node.fields, all=True
            )
            windowed = Windowed(union, "", replace(one.window, attribute=None), one.edge)
            return Project(windowed, tuple(Output(column.name, of_column(column)) for column in union.schema))
    return node


def _is_equal(one: Windowed, other: Windowed) -> bool:
    windows = [replace(windowed.window, attribute=None) for windowed in (one, other)]
    return (
        windows[0] == windows[1]
        and one.edge == other.edge
        and not is_contextual(windows[0])
        and not has_bounds(windows[0])
        and not windows[0].partition_by
        and all(map(_is_on_timestamp, (one, other)))
    )


def _is_on_timestamp(windowed: Windowed) -> bool:
    """Return whether a window is on a timestamp that its tuples carry."""
    latent = any(
        (isinstance(node, StreamScan) and node.stream.timestamp.kind is TimestampKind.LATENT)
        or (isinstance(node, StreamUnion) and node.latent)
        for node in windowed.input.walk()
    )
    return windowed.streaming and not latent and attribute_beside_time(windowed) is None


def _goes_below(project: Project, windowed: Windowed) -> bool:
    below = {(column.relation.lower(), column.name.lower()) for column in windowed.input.schema}
    used = [(c.relation.lower(), c.name.lower()) for o in project.outputs for c in o.expr.columns()]
    return all(output.expr.movable for output in project.outputs) and below.issuperset(used)
