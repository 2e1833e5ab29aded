"""Descriptions of bracket windows, resolved and checked, for planner and kernels alike.

The names follow the Window-ID paper: RANGE, SLIDE, WATTR/RATTR/SATTR and PATTR. Section 6 of the
semantics gives the extent of each.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from millstream.quantity import Distance, Duration, Quantity, Rows
from millstream.types import BIGINT, Type, bound_type

Constant = str
"""An instant on the window's attribute, as text in the attribute's own form."""


@dataclass(frozen=True)
class Window(ABC):
    """The common part of windows: an attribute (None: stream order), partitions, frequent emission."""

    attribute: str | None = None
    partition_by: tuple[str, ...] = ()
    emit_every: Quantity | None = None

    has_state = True
    """True if the window has a content at every instant, so that it can be joined (semantics, section 9)."""

    @abstractmethod
    def headline(self) -> str:
        """Return the kind of window and its measure."""

    def edge_type(self, attribute: Type) -> Type:
        """Return the type of window_start and window_end for a type of the attribute."""
        return bound_type(attribute)

    def wid_type(self, edge: Type) -> Type:
        """Return the type of the window id for a type of the bounds."""
        return BIGINT

    def __str__(self) -> str:
        parts = [self.headline()]
        if self.attribute:
            parts.append(f"WATTR {self.attribute}")
        if self.partition_by:
            parts.append(f"PATTR {', '.join(self.partition_by)}")
        if self.emit_every:
            parts.append(f"EMIT EVERY {self.emit_every}")
        return f"[{' '.join(parts)}]"


@dataclass(frozen=True)
class RangeWindow(Window):
    """RANGE r [SLIDE s] on one ordered attribute; without SLIDE it moves with every instant."""

    range: Duration | Distance = Duration()
    slide: Duration | Distance | None = None
    origin: Constant | None = None
    lag: Duration | Distance | None = None
    """Distance between the end of a window and its report."""
    stamp_last: bool = False
    """True if reports have the timestamp of the last instant of their window."""
    emit_empty: bool = False
    """True if windows without tuples are reported, too."""
    cases: tuple[tuple[object, Duration | Distance], ...] = ()
    """Conditions on window_end, resolved by the layers above, with the ranges of windows for which they hold.

    The first that holds counts, and the last is None; ``range`` is the longest."""

    def headline(self) -> str:
        parts = [f"RANGE {self._varying() if self.cases else self.range}"]
        parts += [f"SLIDE {self.slide}"] if self.slide else []
        parts += [f"LAG {self.lag}"] if self.lag else []
        parts += [f"ORIGIN {self.origin}"] if self.origin else []
        parts += ["STAMP LAST"] if self.stamp_last else []
        parts += ["EMIT EMPTY"] if self.emit_empty else []
        return " ".join(parts)

    def _varying(self) -> str:
        *cases, (_, last) = self.cases
        return f"CASE {' '.join(f'WHEN {when} THEN {size}' for when, size in cases)} ELSE {last} END"


@dataclass(frozen=True)
class RowWindow(Window):
    """ROWS n SLIDE m, in stream order or (RANGE n ROWS ... WATTR row_num) in order of arrival."""

    range: Rows = Rows(1)
    slide: Rows = Rows(1)
    by_arrival: bool = False

    def edge_type(self, attribute: Type) -> Type:
        return BIGINT

    def headline(self) -> str:
        return f"ROWS {self.range.count} SLIDE {self.slide.count}{' BY ARRIVAL' if self.by_arrival else ''}"


@dataclass(frozen=True)
class TupleSlideWindow(Window):
    """RANGE r RATTR a SLIDE n ROWS SATTR row_num | rank(a): every n-th tuple ends a window."""

    range: Duration | Distance = Duration()
    every: Rows = Rows(1)
    by_rank: bool = False

    has_state = False

    def wid_type(self, edge: Type) -> Type:
        return edge

    def headline(self) -> str:
        return f"RANGE {self.range} SLIDE {self.every} SATTR {'rank' if self.by_rank else 'row_num'}"


@dataclass(frozen=True)
class NowWindow(Window):
    """The current instant, or the one that is ``lag`` ago."""

    lag: Duration | Distance | None = None

    def wid_type(self, edge: Type) -> Type:
        return edge

    def headline(self) -> str:
        return f"NOW LAG {self.lag}" if self.lag else "NOW"


@dataclass(frozen=True)
class LandmarkWindow(Window):
    """LANDMARK START AT x END AT y SLIDE s; with neither bound it is UNBOUNDED."""

    start: Constant | None = None
    end: Constant | None = None
    slide: Duration | Distance | None = None
    inclusive: bool = False
    """True if tuples at the end belong to the window, which ends with the next instant."""

    def headline(self) -> str:
        if self.start is None and self.end is None:
            return f"UNBOUNDED{f' SLIDE {self.slide}' if self.slide else ''}"
        start = f" START AT {self.start}" if self.start is not None else ""
        end = f" END AT {self.end}{' INCLUSIVE' if self.inclusive else ''}" if self.end is not None else ""
        return f"LANDMARK{start}{end}{f' SLIDE {self.slide}' if self.slide else ''}"


@dataclass(frozen=True)
class SessionWindow(Window):
    """SESSION GAP g: closed by a silence longer than g."""

    gap: Duration | Distance = Duration()

    has_state = False

    def headline(self) -> str:
        return f"SESSION GAP {self.gap}"


@dataclass(frozen=True)
class PredicateWindow(Window):
    """START WHEN c1 END WHEN c2; the conditions are resolved expressions of the layers above."""

    start_when: object = None
    end_when: object = None

    has_state = False

    def headline(self) -> str:
        return f"START WHEN {self.start_when} END WHEN {self.end_when}"
