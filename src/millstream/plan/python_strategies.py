"""How aggregates in Python are computed: by what their code offers, and where their windows allow it."""

from __future__ import annotations

from collections.abc import Iterable

from millstream.analysis.calls import AggregateCall, OverCall
from millstream.plan.strategies import RECOMPUTED, RUNNING, Strategy
from millstream.quantity import Rows
from millstream.uda.python import ANEW, DELTA, EXPIRE, STACKS, PythonBody

_WAYS = {
    DELTA: Strategy("delta maintenance with its remove", "O(1)"),
    STACKS: Strategy("two stacks with its merge", "O(1)"),
    EXPIRE: Strategy("its own expire", "as it costs"),
    ANEW: RECOMPUTED,
}


def notes(calls: Iterable[tuple[AggregateCall, OverCall | None]]) -> list[str]:
    """A line for each call of an aggregate in Python; without OVER it is about the content of windows."""
    lines = []
    for call, over in calls:
        body = None if call.bodies is None else call.bodies.window or call.bodies.base
        if isinstance(body, PythonBody):
            lines.append(f"{call.result}: in Python, {_strategy(body, over)}")
    return lines


def _strategy(body: PythonBody, over: OverCall | None) -> Strategy:
    if over is None:
        return RECOMPUTED
    reach, slide = over.frame.preceding, over.slide
    if reach is None:
        return RECOMPUTED if body.needs_content else RUNNING
    overlaps = isinstance(slide, Rows) and isinstance(reach, Rows) and slide.count <= reach.count
    if slide is not None and (not overlaps or over.emit_every is not None):
        return RECOMPUTED
    return _WAYS[body.python.way]
