"""Frames of which some end after the current tuple, so that tuples wait for those that follow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from millstream.kernels.core.kernel import Change, Frontier, Tuples
from millstream.kernels.over.held_tuples import HeldTuples
from millstream.kernels.over.offset_frames import OffsetFrames
from millstream.kernels.over.requested_results import RequestedResults
from millstream.kernels.specs import OverSpec


class FollowingFrames:
    """All calls of a SELECT with a frame that ends after the current tuple.

    A tuple is held until all its frames are complete: so many tuples of its partition have followed, or the
    frontier has passed the end of its frames, or the input has ended.
    """

    def __init__(self, calls: Sequence[OverSpec]) -> None:
        self._frames = OffsetFrames(calls, "log")
        self._held = HeldTuples()

    def results(self, tuples: Tuples, frontier: Frontier) -> tuple[Tuples, list[pa.Array]]:
        """Return the tuples whose frames are complete, and the results of all calls for them."""
        frames, held = self._frames, self._held
        held.add(tuples, frames.add(tuples, frontier).ordinals)
        assert held.tuples is not None, "tuples have been added"
        places = frames.places_of(held.tuples, held.ordinals)
        is_ready = frames.are_ready(places)
        ready = held.release(is_ready)
        results = frames.ask(RequestedResults.all_of(ready), places.take(is_ready))
        frames.expire(held.tuples, held.ordinals)
        return ready, results

    def passes(self, frontier: Frontier) -> Frontier:
        return self._held.passes(frontier)

    def snapshot(self) -> Change:
        frames, held = self._frames.snapshot(), self._held.snapshot()
        return Change(
            {**frames.added, **held.added}, frames.dropped + held.dropped, {**frames.meta, **held.meta}
        )

    def restore(self, meta: Mapping[str, Any], chunks: Mapping[str, pa.Table]) -> None:
        self._frames.restore(meta, chunks)
        self._held.restore(meta, chunks)
        if len(self._held):
            self._frames.expire(self._held.tuples, self._held.ordinals)

    @property
    def rows(self) -> int:
        return self._frames.rows + len(self._held)
