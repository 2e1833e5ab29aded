"""User-defined aggregates over windows in time of a stream: one restart per window, or panes.

Figure 2 of the ESL paper: a base version is restarted for each tumbling window, and an ALGEBRAIC aggregate is
computed in panes, whose results another version combines. Only tables and results are stored then.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from millstream.analysis.queries.call_nodes import AggregateCall, Bodies
from millstream.analysis.queries.resolved_expression import ColumnRef
from millstream.catalog.builtin_aggregates import RECOMPUTED, Strategy
from millstream.catalog.entries import SlackPromise
from millstream.ir.typed_nodes import Body
from millstream.plan import nodes
from millstream.plan.time_attributes import attribute_beside_time, is_apart
from millstream.quantity import Distance, Duration, Quantity, size
from millstream.types import Kind
from millstream.windows.slot_panes import Panes
from millstream.windows.window_properties import is_of_months
from millstream.windows.window_spec import RangeWindow


@dataclass(frozen=True)
class TimePanes:
    """The body that computes a pane, and the one that combines panes; none if a window is one pane."""

    pane: Body
    combined: Body | None
    strategy: Strategy


def time_panes(node: nodes.WindowAggregate, call: AggregateCall) -> TimePanes | None:
    """Return the panes of a call, None if it is recomputed from the content of its windows."""
    windowed, bodies = node.windowed, call.bodies
    if windowed is None or bodies is None or bodies.unfit is not None or call.distinct or node.current:
        return None
    window = windowed.window
    if is_of_months(window):
        return None
    if not isinstance(window, RangeWindow) or window.slide is None or not _takes_order(node, windowed):
        return None
    base = bodies.base or bodies.window
    if window.emit_every is None and size(window.slide) >= size(window.range):
        if not isinstance(base, Body):
            return None
        return TimePanes(base, None, Strategy("base version, restarted for each window", "O(1)"))
    return _combined(bodies, window, window.slide)


def strategy(node: nodes.WindowAggregate, call: AggregateCall) -> Strategy:
    """Return how a user-defined aggregate over the windows of a stream is computed."""
    panes = time_panes(node, call)
    return RECOMPUTED if panes is None else panes.strategy


def _combined(bodies: Bodies, window: RangeWindow, slide: Duration | Distance) -> TimePanes | None:
    """Return panes that end where windows begin and end: at most two for each slide."""
    if bodies.panes is None:
        return None
    body = bodies.panes.combined.base or bodies.panes.combined.window
    emit = window.emit_every
    if not isinstance(body, Body) or not _is_exact(window.range, slide, emit):
        return None
    digits = max(
        0, *(-int(size(amount).as_tuple().exponent) for amount in (window.range, slide, emit or slide))
    )
    range_, step, often = (
        int(size(amount).scaleb(digits)) for amount in (window.range, slide, emit or slide)
    )
    panes = Panes.of(step, often, [range_])
    lengths = [_amount(Decimal(length).scaleb(-digits), slide) for length in sorted(set(panes.sizes))]
    count = panes.count(range_)
    text = f"panes of {' and '.join(map(str, lengths))}, combined {count} at a time"
    return TimePanes(bodies.panes.pane, body, Strategy(text, f"O({count})"))


def _is_exact(*amounts: Quantity | None) -> bool:
    """Tell whether amounts have a length that is always the same."""
    return not any(isinstance(amount, Duration) and amount.months for amount in amounts)


def _amount(value: Decimal, like: Duration | Distance) -> Duration | Distance:
    return Duration(int(value)) if isinstance(like, Duration) else Distance(value)


def _takes_order(node: nodes.WindowAggregate, windowed: nodes.Windowed) -> bool:
    """Tell whether tuples can come to the windows in the order of their timestamps, and all of them.

    Late tuples of GENEROUS streams come out of order, and groups of sub-streams do not wait for each other.
    """
    is_double = windowed.edge.type.kind in (Kind.FLOAT, Kind.DOUBLE)
    if not node.streaming or is_double or attribute_beside_time(windowed) is not None:
        return False
    streams = [below.stream for below in windowed.walk() if isinstance(below, nodes.StreamScan)]
    if any(isinstance(p, SlackPromise) and p.generous for stream in streams for p in stream.promises):
        return False
    keys = [key.expr.column or ColumnRef("", key.name, key.expr.type) for key in node.group_by]
    return len(streams) != 1 or not is_apart(streams[0], windowed, [*keys, *windowed.partition])
