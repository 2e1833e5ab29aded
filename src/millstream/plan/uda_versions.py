"""Choice of the version of a user-defined aggregate over a window (semantics, section 7).

It is the table of figure 2 of the ESL paper, with a row for each strategy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum, auto

from millstream.analysis.queries.call_nodes import Bodies, OverCall
from millstream.codegen.udas.derive_window_version import derived_window_version
from millstream.ir.python_aggregate import PythonBody
from millstream.ir.typed_nodes import Body
from millstream.quantity import Distance, Duration, Quantity, Rows


class UdaStrategy(Enum):
    RUNNING = auto()
    """The base version runs for ever, with TERMINATE after every tuple."""
    WINDOW = auto()
    """The window version follows the window."""
    CONTENT = auto()
    """The base version is recomputed over the content of each window."""
    TUMBLE = auto()
    """The base version is restarted for each tumbling window."""
    PANES = auto()
    """One version computes panes, another combines the panes of a window."""
    TIME_PANES = auto()
    """One version computes panes of time, another combines them with the tuples at the edges."""
    ACTIVE = auto()
    """The window version follows the window, and also returns rows when a tuple expires."""


@dataclass(frozen=True)
class UdaVersion:
    """The strategy of an aggregate, and the body that it runs."""

    way: UdaStrategy
    body: Body | PythonBody
    derived: str = ""
    """Explanation of a derived window version, in words."""
    pane: int = 0
    """Tuples in a pane."""
    over: int = 0
    """Panes in a window."""
    slide: Quantity | None = None
    """Length of a pane of time."""

    @property
    def follows(self) -> bool:
        """Return whether the body follows a window."""
        return self.body.goes_along if isinstance(self.body, PythonBody) else self.body.window


def over_version(over: OverCall) -> UdaVersion:
    """Return the version that runs for a call with OVER."""
    bodies, reach = over.call.bodies, over.frame.preceding
    assert bodies is not None
    base = bodies.base or bodies.window
    assert base is not None
    in_python = isinstance(base, PythonBody)
    if over.frame.until is not None:
        return UdaVersion(UdaStrategy.CONTENT, base)
    if over.call.filter is not None or over.call.distinct:
        # A filtered tuple still has a result: that of its window.
        paned = None if over.call.distinct else _in_panes_of_time(over)
        return paned or UdaVersion(UdaStrategy.CONTENT, base)
    if reach is None:
        if isinstance(base, PythonBody) and base.needs_content:
            return UdaVersion(UdaStrategy.CONTENT, base)
        # Without a base version, the window version runs with a window that no tuple leaves.
        return UdaVersion(UdaStrategy.RUNNING if bodies.base is not None else UdaStrategy.WINDOW, base)
    if over.active_expiration:
        return UdaVersion(UdaStrategy.ACTIVE, bodies.window or base)
    if is_tumble(over):
        counted = isinstance(over.slide, Rows) and over.emit_every is None and not in_python
        return UdaVersion(UdaStrategy.TUMBLE if counted else UdaStrategy.CONTENT, base)
    pane = pane_of(over)
    if pane > 1 and bodies.panes is not None:
        assert isinstance(reach, Rows)
        combined = window_version(bodies.panes.combined)
        body = combined.body if combined is not None else bodies.panes.combined.base
        assert body is not None
        derived = combined.derived if combined is not None else ""
        return UdaVersion(UdaStrategy.PANES, body, derived, pane, (reach.count + 1) // pane)
    return window_version(bodies) or _in_panes_of_time(over) or UdaVersion(UdaStrategy.CONTENT, base)


def _in_panes_of_time(over: OverCall) -> UdaVersion | None:
    """Return the version that combines panes of time, if a window has more than its edges."""
    bodies, reach = over.call.bodies, over.frame.preceding
    if bodies is None or bodies.panes is None or over.slide is None or isinstance(over.slide, Rows):
        return None
    if reach is None or is_tumble(over) or over.active_expiration:
        return None
    body = bodies.panes.combined.base or bodies.panes.combined.window
    if not isinstance(body, Body):
        return None
    return UdaVersion(UdaStrategy.TIME_PANES, body, slide=over.slide)


def described(over: OverCall) -> str:
    """Describe the computation of a call."""
    return described_version(over_version(over))


def described_version(version: UdaVersion) -> str:
    """Describe the computation of a version."""
    own = "window version" if version.follows else "base version"
    if version.derived:
        own += f" ({version.derived})"
    match version.way:
        case UdaStrategy.RUNNING:
            return "base version, TERMINATE after every tuple"
        case UdaStrategy.WINDOW:
            return own
        case UdaStrategy.CONTENT:
            return f"{own}, recomputed from the content, O(w)"
        case UdaStrategy.TUMBLE:
            return f"{own}, restarted each slot"
        case UdaStrategy.PANES:
            again = "" if version.follows else ", recomputed from their results, O(w)"
            return f"panes of {version.pane} tuples, {own} over {version.over} of them{again}"
        case UdaStrategy.TIME_PANES:
            return f"panes of {version.slide}, combined with the tuples at the edges"
        case UdaStrategy.ACTIVE:
            again = "" if version.follows else ", recomputed from what is left, O(w)"
            return f"{own}, also when a tuple leaves{again}"


def window_version(bodies: Bodies) -> UdaVersion | None:
    """Return the declared window version, or a derived one."""
    if bodies.window is not None:
        return UdaVersion(UdaStrategy.WINDOW, bodies.window)
    derived = derived_window_version(bodies.base) if isinstance(bodies.base, Body) else None
    return None if derived is None else UdaVersion(UdaStrategy.WINDOW, derived.body, derived.why)


def is_tumble(over: OverCall) -> bool:
    """Return whether no tuple is in two windows: the slide is not shorter than the window."""
    match over.slide, over.frame.preceding:
        case Rows(slide), Rows(reach):
            return slide > reach
        case Distance(slide), Distance(reach):
            return slide > reach
        case Duration() as slide, Duration() as reach:
            return (slide.months, reach.months) == (0, 0) and slide.microseconds >= reach.microseconds
    return False


def pane_of(over: OverCall) -> int:
    """Return the number of tuples in a pane if windows and slides are counted in tuples; 0 if not."""
    match over.slide, over.frame.preceding:
        case Rows(slide), Rows(reach):
            emit = over.emit_every.count if isinstance(over.emit_every, Rows) else 0
            return math.gcd(slide, reach + 1, emit)
    return 0
