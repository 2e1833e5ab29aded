"""OverAggregate: for each tuple, or for some, aggregates of it and the tuples before it in its partition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.kernels.aggregates.accumulator_selection import check
from millstream.kernels.core.buffers import Array
from millstream.kernels.core.kernel import Change, Frontier, Kernel, Tuples
from millstream.kernels.over.following_frames import FollowingFrames
from millstream.kernels.over.frame_aggregates import FrameAggregates
from millstream.kernels.over.offset_frames import OffsetFrames
from millstream.kernels.over.requested_results import RequestedResults
from millstream.kernels.over.row_slots import WHOLE, RowSlots
from millstream.kernels.over.running_aggregates import RunningAggregates
from millstream.kernels.over.time_slots import UNFIT, TimeSlots
from millstream.kernels.specs import OverSpec, SlideSpec
from millstream.windows.slot_panes import Panes

_GROUPS = ("running", "sliding", "paned", "offset", "following")
"""Ways to compute calls, each with a state of its own."""


class OverAggregate(Kernel):
    """A kernel that takes tuples in order and adds a result of every call (semantics, section 5).

    With SLIDE only the last tuple of a slot is emitted, and with EMIT EVERY some others. Keys and values are
    in arrays over all partitions of the shard; the cost of a batch is proportional to its tuples, however
    large windows are and however many partitions there are. If a frame ends after its tuple, all calls wait
    for it.
    """

    def __init__(
        self,
        calls: tuple[OverSpec, ...],
        slide: SlideSpec | None = None,
        first: tuple[str, int] | None = None,
    ) -> None:
        check(call.aggregate for call in calls)
        self._calls = calls
        self._first = first
        self._slide = slide
        panes = _panes(calls, slide)
        groups: dict[str, list[OverSpec]] = {name: [] for name in _GROUPS}
        follows = any(call.follows for call in calls)
        self._groups = ["following" if follows else _group(call, panes) for call in calls]
        for call, group in zip(calls, self._groups, strict=True):
            groups[group].append(call)
        self._running = RunningAggregates(groups["running"])
        self._sliding = FrameAggregates(groups["sliding"], "log")
        self._paned = FrameAggregates(groups["paned"], "panes", panes)
        self._offset = OffsetFrames(groups["offset"], "before")
        self._following = FollowingFrames(groups["following"])
        self._filling: RowSlots | None = None
        self._holding: TimeSlots | None = None
        if slide is not None and (slide.rows or 0) > 1:
            paned = groups["paned"]
            reach = max(((call.rows or 0) + 1 for call in paned), default=0)
            self._filling = RowSlots(slide, panes, [call.aggregate for call in paned], reach)
        elif slide is not None and slide.time is not None:
            self._holding = TimeSlots(slide, {call.aggregate.result: call.aggregate for call in calls})

    def process(self, tuples: Tuples, frontier: Frontier) -> Tuples:
        if "following" in self._groups:
            ready, results = self._following.results(tuples, frontier)
            columns = ready.columns
            for call, result in zip(self._calls, results, strict=True):
                columns = columns.append_column(call.aggregate.result, result)
            return replace(ready, columns=columns)
        if self._filling is not None:
            return self._of_slots(self._filling, tuples, frontier)
        if self._holding is not None:
            return self._of_slots_of_time(self._holding, tuples, frontier)
        given = self._results(RequestedResults.all_of(tuples), frontier)
        if self._first is not None:
            name, most = self._first
            return given.take(np.asarray(pc.less_equal(given.columns[name], most)))
        return self._marked(given, np.ones(len(tuples), np.bool_))

    def _of_slots(self, slots: RowSlots, tuples: Tuples, frontier: Frontier) -> Tuples:
        filled = slots.fill(tuples, frontier)
        chosen = np.flatnonzero(filled.gives)
        paned: list[pa.Array] = []
        if "paned" in self._groups:
            ends = np.flatnonzero(filled.gives[filled.lasts])
            paned = self._paned.results(
                RequestedResults(tuples.take(filled.lasts), ends), frontier, filled.panes
            )
        results = self._results(RequestedResults(tuples, chosen), frontier, paned)
        return self._marked(results, filled.gives[chosen] == WHOLE)

    def _of_slots_of_time(self, slots: TimeSlots, tuples: Tuples, frontier: Frontier) -> Tuples:
        wanted = RequestedResults(tuples, slots.candidates(tuples), is_final=False)
        results = self._results(wanted, frontier)
        unfit = pa.nulls(len(results), pa.string())
        if wanted.unfit:
            unfit = pa.array([wanted.unfit.get(row) for row in range(len(results))], pa.string())
        return slots.process(_with(results, UNFIT, unfit), frontier)

    def _marked(self, results: Tuples, complete: Array) -> Tuples:
        """Add the column that tells complete results from partial ones, if the query has it."""
        if self._slide is None or self._slide.complete is None:
            return results
        return _with(results, self._slide.complete, pa.array(complete))

    def _results(
        self, requested: RequestedResults, frontier: Frontier, paned: Iterable[pa.Array] = ()
    ) -> Tuples:
        """Return the requested tuples, with the results of all calls."""
        results = {
            "running": iter(self._running.results(requested, frontier) if "running" in self._groups else ()),
            "sliding": iter(self._sliding.results(requested, frontier) if "sliding" in self._groups else ()),
            "offset": iter(self._offset.results(requested, frontier) if "offset" in self._groups else ()),
            "paned": iter(paned),
        }
        tuples = requested.tuples if requested.are_all else requested.tuples.take(requested.rows)
        columns = tuples.columns
        for call, group in zip(self._calls, self._groups, strict=True):
            columns = columns.append_column(call.aggregate.result, next(results[group]))
        return Tuples(columns, tuples.time, tuples.origin, tuples.number)

    def passes(self, frontier: Frontier) -> Frontier:
        if "following" in self._groups:
            return self._following.passes(frontier)
        return frontier if self._holding is None else self._holding.passes(frontier)

    @property
    def _parts(self) -> list[_Part]:
        parts: list[_Part | None] = [
            self._sliding if "sliding" in self._groups else None,
            self._paned if "paned" in self._groups else None,
            self._offset if "offset" in self._groups else None,
            self._following if "following" in self._groups else None,
            self._running if "running" in self._groups else None,
            self._filling,
            self._holding,
        ]
        return [part for part in parts if part is not None]

    def snapshot(self) -> Change:
        changes = [part.snapshot() for part in self._parts]
        return Change(
            {name: table for change in changes for name, table in change.added.items()},
            tuple(name for change in changes for name in change.dropped),
            {name: value for change in changes for name, value in change.meta.items()},
        )

    def restore(self, meta: Mapping[str, Any], chunks: Mapping[str, pa.Table]) -> None:
        for part in self._parts:
            part.restore(meta, chunks)

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self._parts)


class _Part(Protocol):
    """An owner of a part of the state."""

    def snapshot(self) -> Change: ...

    def restore(self, meta: Mapping[str, Any], chunks: Mapping[str, pa.Table]) -> None: ...

    @property
    def rows(self) -> int: ...


def _with(tuples: Tuples, name: str, column: pa.Array) -> Tuples:
    columns = tuples.columns.append_column(name, column)
    return Tuples(columns, tuples.time, tuples.origin, tuples.number)


def _panes(calls: Iterable[OverSpec], slide: SlideSpec | None) -> Panes | None:
    """Return the panes that windows of rows share; None if there would be as many as tuples."""
    sizes = [call.rows + 1 for call in calls if call.rows is not None and not call.is_offset]
    if slide is None or slide.rows is None or not sizes:
        return None
    panes = Panes.of(slide.rows, slide.emit, sizes)
    return panes if panes.save_something else None


def _group(call: OverSpec, panes: Panes | None) -> str:
    if call.is_offset:
        return "offset"
    if call.is_unbounded:
        return "running"
    return "sliding" if call.rows is None or panes is None else "paned"
