"""Selection of the assigner that knows a kind of windows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from millstream.kernels import window_specs
from millstream.kernels.windows.landmark_assigner import LandmarkAssigner, NowAssigner
from millstream.kernels.windows.row_assigner import RowAssigner
from millstream.kernels.windows.session_or_predicate_assigner import SessionOrPredicateAssigner
from millstream.kernels.windows.sliding_assigner import SlidingAssigner
from millstream.kernels.windows.substream_assigner import SubstreamAssigner
from millstream.kernels.windows.tuple_slide_assigner import TupleSlideAssigner
from millstream.kernels.windows.window_assigner import WindowAssigner

_ASSIGNERS: dict[type, Callable[[Any], WindowAssigner]] = {
    window_specs.SlidingWindows: SlidingAssigner,
    window_specs.SubstreamWindows: SubstreamAssigner,
    window_specs.LandmarkWindows: LandmarkAssigner,
    window_specs.NowWindows: NowAssigner,
    window_specs.RowWindows: RowAssigner,
    window_specs.SessionOrPredicateWindows: SessionOrPredicateAssigner,
    window_specs.TupleSlideWindows: TupleSlideAssigner,
}


def assigner_of(spec: window_specs.AssignerSpec) -> WindowAssigner:
    """Make the assigner of a kind of windows."""
    return _ASSIGNERS[type(spec)](spec)
