"""Algorithms of aggregates in Python, chosen by the methods of their code and by their windows."""

from __future__ import annotations

from collections.abc import Iterable

from millstream.analysis.queries.call_nodes import AggregateCall, OverCall
from millstream.catalog.builtin_aggregates import RECOMPUTED, RUNNING, Strategy
from millstream.ir.python_aggregate import ANEW, DELTA, EXPIRE, STACKS, PythonBody
from millstream.plan.uda_versions import UdaStrategy, over_version

_WAYS = {
    DELTA: Strategy("delta maintenance with its remove", "O(1)"),
    STACKS: Strategy("two stacks with its merge", "O(1)"),
    EXPIRE: Strategy("its own expire", "as it costs"),
    ANEW: RECOMPUTED,
}


def notes(calls: Iterable[tuple[AggregateCall, OverCall | None]]) -> list[str]:
    """Return a line for each call of an aggregate in Python; without OVER it aggregates windows' contents."""
    lines = []
    for call, over in calls:
        body = None if call.bodies is None else call.bodies.window or call.bodies.base
        if isinstance(body, PythonBody):
            lines.append(f"{call.result}: in Python, {_strategy(body, over)}")
    return lines


def _strategy(body: PythonBody, over: OverCall | None) -> Strategy:
    way = UdaStrategy.CONTENT if over is None else over_version(over).way
    if way is UdaStrategy.CONTENT:
        return RECOMPUTED
    return RUNNING if way is UdaStrategy.RUNNING else _WAYS[body.python.way]
