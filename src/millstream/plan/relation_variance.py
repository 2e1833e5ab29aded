"""Results that vary with time: relations made of the current contents of windows (semantics, section 6)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from millstream.analysis.queries.resolved_expression import of_column
from millstream.analysis.queries.resolved_query import GroupKey
from millstream.plan import nodes
from millstream.windows.window_spec import LandmarkWindow, NowWindow, RangeWindow, Window, slides

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
"""Changes for somebody who keeps the result: each with what its row is found by again."""

WITH_ENDS = (DSTREAM, CHANGES, VIEW)
"""What cannot be told without saying of every row that it leaves."""


def varies(node: nodes.Node) -> bool:
    """Whether a node gives a relation that varies with time, and not a stream or a table.

    An aggregate over one window gives a row for each window, which is a stream; over what is made of windows
    it is maintained, and so it is where something is made of its groups.
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
    """Whether windows are reported when they end: there is one, and it has ends."""
    windowed = node.windowed
    if node.current or windowed is None:
        return False
    return not (isinstance(windowed.window, RangeWindow) and windowed.window.slide is None)


def default_stream(node: nodes.Node) -> str:
    """What becomes of a varying result if the query does not say: aggregates that slide are given whole."""
    aggregated = any(isinstance(n, nodes.WindowAggregate) for n in maintained(node))
    return RSTREAM if aggregated and any(map(slides, windows_in(node))) else ISTREAM


def maintained(node: nodes.Node) -> Iterator[nodes.Node]:
    """The nodes of a varying result, down to its windows and tables."""
    yield node
    if isinstance(node, _MAINTAINED):
        for below in node.inputs:
            yield from maintained(below)


def changed_below(node: nodes.Node, change: Callable[[nodes.Node], nodes.Node]) -> nodes.Node:
    """A node over changed inputs, where the change is made everywhere down to windows and tables."""

    def throughout(below: nodes.Node) -> nodes.Node:
        changed = change(below)
        return changed.map_inputs(throughout) if isinstance(changed, _MAINTAINED) else changed

    return node.map_inputs(throughout)


def as_stream(node: nodes.Node, kind: str) -> nodes.RelationToStream:
    """What becomes of a result that varies. Aggregates in it are those of the current content.

    An aggregate over one window that slides is reported window by window in a query by itself. Where it is
    asked what enters and leaves, a group goes when nothing of it is left.
    """
    return nodes.RelationToStream(as_current(node), kind)


def as_current(node: nodes.Node) -> nodes.Node:
    """The same, with the aggregates of the current content at every instant."""
    return changed_below(_current(node), _current)


def _current(node: nodes.Node) -> nodes.Node:
    if isinstance(node, nodes.WindowAggregate) and node.streaming:
        return replace(node, current=True, group_by=(*node.group_by, *_partition_keys(node)))
    return node


def _partition_keys(node: nodes.WindowAggregate) -> Iterator[GroupKey]:
    """PATTR divides what is aggregated as GROUP BY does: its columns that GROUP BY does not name."""
    grouped = {key.expr.column for key in node.group_by}
    for column in node.windowed.partition if node.windowed is not None else ():
        if column not in grouped:
            yield GroupKey(column.name, of_column(column))


def windows_in(node: nodes.Node) -> list[Window]:
    return [n.window for n in maintained(node) if isinstance(n, nodes.Windowed)]


def is_logical(window: Window) -> bool:
    """Whether which tuples a window holds depends on no other tuples: conditions can be asked before it.

    A bound that is a time of day is on the day of the first tuple, and so depends on which that is.
    """
    match window:
        case RangeWindow() | NowWindow():
            return True
        case LandmarkWindow(start=start, end=end):
            return not any(bound is not None and ":" in bound and "-" not in bound for bound in (start, end))
        case _:
            return False


def runs_dry(node: nodes.Node) -> bool:
    """Whether a result is empty again some time after the last tuple: no window in it keeps anything."""
    match node:
        case nodes.Windowed():
            return isinstance(node.window, RangeWindow | NowWindow)
        case nodes.TableJoin():
            return all(runs_dry(side) for side in node.inputs if side.streaming)
        case nodes.WindowJoin(kind="inner" | "cross" | "semi") | nodes.WindowSetOperation(kind="INTERSECT"):
            return any(map(runs_dry, node.inputs))
        case nodes.WindowJoin(kind="left" | "anti") | nodes.WindowSetOperation(kind="EXCEPT"):
            return runs_dry(node.inputs[0])
        case _:
            return bool(node.inputs) and all(map(runs_dry, node.inputs))
