"""Which version of an aggregate of the user's runs over a window (semantics, section 4).

It is the table of figure 2 of the ESL paper, a row for each way.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum, auto

from millstream.analysis.queries.call_nodes import Bodies, OverCall
from millstream.codegen.udas.derive_window_version import derived_window_version
from millstream.ir.python_aggregate import PythonBody
from millstream.ir.typed_nodes import Body
from millstream.quantity import Duration, Rows


class UdaStrategy(Enum):
    RUNNING = auto()
    """The base version goes on for ever, with TERMINATE after every tuple."""
    WINDOW = auto()
    """The window version follows the window."""
    CONTENT = auto()
    """The base version looks at the content of each window anew."""
    TUMBLE = auto()
    """The base version is restarted each slot."""
    PANES = auto()
    """One version gives the results of panes, another combines those of a window."""
    ACTIVE = auto()
    """The window version follows the window, and speaks when a tuple leaves too."""


@dataclass(frozen=True)
class UdaVersion:
    """The way an aggregate goes, and the body that goes it."""

    way: UdaStrategy
    body: Body | PythonBody
    derived: str = ""
    """What was found out to make a window version of the base version, in words."""
    pane: int = 0
    """How many tuples are a pane."""
    over: int = 0
    """How many panes are a window."""

    @property
    def follows(self) -> bool:
        """Whether the body goes along with a window."""
        return self.body.goes_along if isinstance(self.body, PythonBody) else self.body.window


def over_version(over: OverCall) -> UdaVersion:
    """The version that runs for a call over a window of its own."""
    bodies, reach = over.call.bodies, over.frame.preceding
    assert bodies is not None
    base = bodies.base or bodies.window
    assert base is not None
    in_python = isinstance(base, PythonBody)
    if over.call.filter is not None or over.call.distinct:
        # A tuple that does not count has a result all the same: that of its window.
        return UdaVersion(UdaStrategy.CONTENT, base)
    if reach is None:
        if isinstance(base, PythonBody) and base.needs_content:
            return UdaVersion(UdaStrategy.CONTENT, base)
        # Without a base version, the window version with a window that nothing ever leaves.
        return UdaVersion(UdaStrategy.RUNNING if bodies.base is not None else UdaStrategy.WINDOW, base)
    if over.active_expiration:
        return UdaVersion(UdaStrategy.ACTIVE, bodies.window or base)
    if is_tumble(over):
        counted = isinstance(over.slide, Rows) and over.emit_every is None and not in_python
        return UdaVersion(UdaStrategy.TUMBLE if counted else UdaStrategy.CONTENT, base)
    pane = pane_of(over)
    if pane > 1 and bodies.panes is not None:
        assert isinstance(reach, Rows)
        found = window_version(bodies.panes.combined)
        body = found.body if found is not None else bodies.panes.combined.base
        assert body is not None
        derived = found.derived if found is not None else ""
        return UdaVersion(UdaStrategy.PANES, body, derived, pane, (reach.count + 1) // pane)
    return window_version(bodies) or UdaVersion(UdaStrategy.CONTENT, base)


def described(over: OverCall) -> str:
    """How a call is computed, in words."""
    version = over_version(over)
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
        case UdaStrategy.ACTIVE:
            again = "" if version.follows else ", recomputed from what is left, O(w)"
            return f"{own}, also when a tuple leaves{again}"


def window_version(bodies: Bodies) -> UdaVersion | None:
    """The window version that there is, or that can be made."""
    if bodies.window is not None:
        return UdaVersion(UdaStrategy.WINDOW, bodies.window)
    derived = derived_window_version(bodies.base) if isinstance(bodies.base, Body) else None
    return None if derived is None else UdaVersion(UdaStrategy.WINDOW, derived.body, derived.why)


def is_tumble(over: OverCall) -> bool:
    """Whether no tuple is in two windows: the slide is not less than the window."""
    match over.slide, over.frame.preceding:
        case Rows(slide), Rows(reach):
            return slide > reach
        case Duration() as slide, Duration() as reach:
            return (slide.months, reach.months) == (0, 0) and slide.microseconds >= reach.microseconds
    return False


def pane_of(over: OverCall) -> int:
    """How many tuples a pane has, if windows and slides are counted in tuples; 0 if not."""
    match over.slide, over.frame.preceding:
        case Rows(slide), Rows(reach):
            emit = over.emit_every.count if isinstance(over.emit_every, Rows) else 0
            return math.gcd(slide, reach + 1, emit)
    return 0
