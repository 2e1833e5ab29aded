"""Relations that vary with time, derived from the contents of windows (semantics, section 9)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from millstream.analysis.queries.resolved_expression import of_column
from millstream.analysis.queries.resolved_query import GroupKey
from millstream.plan import nodes
from millstream.windows.window_properties import empties, has_ends, slides
from millstream.windows.window_spec import Window

_MAINTAINED = (
    nodes.Rename,
    nodes.Filter,
    nodes.Project,
    nodes.TableJoin,
    nodes.WindowJoin,
    nodes.Distinct,
    nodes.WindowSetOperation,
    nodes.WindowAggregate,
)
ISTREAM, DSTREAM, RSTREAM, CHANGES = "ISTREAM", "DSTREAM", "RSTREAM", "CHANGES"
VIEW = "VIEW"
"""Changes for a materialized result: each with the identity of its row."""

WITH_ENDS = (DSTREAM, CHANGES, VIEW)
"""Kinds of streams that need the expiry of every row."""


def varies(node: nodes.Node) -> bool:
    """Return whether a node produces a relation that varies with time, rather than a stream or a table.

    An aggregate over one window produces a row for each window, which is a stream; over a derived relation it
    is maintained, and also if its groups are processed further.
    """
    match node:
        case nodes.Windowed():
            return node.streaming
        case nodes.WindowAggregate():
            return _has_window(node) and not is_reported(node)
        case nodes.Distinct() | nodes.WindowSetOperation() | nodes.WindowJoin():
            return _has_window(node)
        case nodes.Rename() | nodes.Filter() | nodes.Project() | nodes.TableJoin():
            return any(map(varies, node.inputs))
        case _:
            return False


def _has_window(node: nodes.Node) -> bool:
    return any(isinstance(below, nodes.Windowed) and below.streaming for below in maintained(node))


def is_reported(node: nodes.WindowAggregate) -> bool:
    """Return whether a window is reported when it ends: it is a single one, and it ends."""
    windowed = node.windowed
    if node.current or windowed is None:
        return False
    return has_ends(windowed.window)


def default_stream(node: nodes.Node) -> str:
    """Return the default conversion of a varying result to a stream: RSTREAM for sliding aggregates."""
    aggregated = any(isinstance(n, nodes.WindowAggregate) for n in maintained(node))
    return RSTREAM if aggregated and any(map(slides, windows_in(node))) else ISTREAM


def maintained(node: nodes.Node) -> Iterator[nodes.Node]:
    """Yield the nodes of a varying result, down to its windows and tables."""
    yield node
    if isinstance(node, _MAINTAINED):
        for below in node.inputs:
            yield from maintained(below)


def changed_below(node: nodes.Node, change: Callable[[nodes.Node], nodes.Node]) -> nodes.Node:
    """Apply a change to all nodes below, down to windows and tables."""

    def throughout(below: nodes.Node) -> nodes.Node:
        changed = change(below)
        return changed.map_inputs(throughout) if isinstance(changed, _MAINTAINED) else changed

    return node.map_inputs(throughout)


def as_stream(node: nodes.Node, kind: str) -> nodes.RelationToStream:
    """Convert a varying result to a stream. Its aggregates are those of the current content.

    An aggregate over one sliding window is reported window by window in a query by itself. With ISTREAM,
    DSTREAM or CHANGES, a group disappears when its last row leaves.
    """
    return nodes.RelationToStream(as_current(node), kind)


def as_current(node: nodes.Node) -> nodes.Node:
    """Aggregate the current content at every instant."""
    return changed_below(current(node), current)


def current(node: nodes.Node) -> nodes.Node:
    """Aggregate the current content at every instant, if a node is an aggregate over windows."""
    if isinstance(node, nodes.WindowAggregate) and node.streaming:
        return replace(node, current=True, group_by=(*node.group_by, *_partition_keys(node)))
    return node


def _partition_keys(node: nodes.WindowAggregate) -> Iterator[GroupKey]:
    """Yield the columns of PATTR that GROUP BY does not name: PATTR partitions as GROUP BY does."""
    grouped = {key.expr.column for key in node.group_by}
    for column in node.windowed.partition if node.windowed is not None else ():
        if column not in grouped:
            yield GroupKey(column.name, of_column(column))


def is_scalar(node: nodes.Node) -> bool:
    """Return whether a node has one row at every instant, as aggregates without GROUP BY have in SQL.

    A user-defined aggregate returns no row for an empty relation.
    """
    match node:
        case nodes.WindowAggregate(current=True, group_by=(), aggregates=calls):
            return bool(calls) and all(call.user is None for call in calls)
        case _:
            return False


def windows_in(node: nodes.Node) -> list[Window]:
    return [n.window for n in maintained(node) if isinstance(n, nodes.Windowed)]


def runs_dry(node: nodes.Node) -> bool:
    """Return whether a result becomes empty some time after the last tuple."""
    match node:
        case nodes.Windowed():
            return empties(node.window)
        case nodes.WindowAggregate() if is_scalar(node):
            return False
        case nodes.TableJoin():
            return all(runs_dry(side) for side in node.inputs if side.streaming)
        case nodes.WindowJoin(kind="inner" | "cross" | "semi") | nodes.WindowSetOperation(kind="INTERSECT"):
            return any(map(runs_dry, node.inputs))
        case nodes.WindowJoin(kind="left" | "anti") | nodes.WindowSetOperation(kind="EXCEPT"):
            return runs_dry(node.inputs[0])
        case _:
            return bool(node.inputs) and all(map(runs_dry, node.inputs))
