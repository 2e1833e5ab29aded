"""Trackers of clauses about sub-streams: ORDERED PER and PUNCTUATED BY ... PER."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from millstream.jit import njit
from millstream.progress.clause_tracker import ClauseTracker
from millstream.progress.piece import Codes, Mask, Piece, Times


@dataclass
class _Minima:
    """A value for each sub-stream, in a tree whose root is the smallest."""

    is_float: bool
    tree: Times = field(init=False)

    def __post_init__(self) -> None:
        self.tree = np.full(2, self.highest, np.float64 if self.is_float else np.int64)

    @property
    def highest(self) -> Any:
        """The value of a sub-stream that does not count."""
        return np.inf if self.is_float else np.iinfo(np.int64).max

    def make_room(self, streams: Codes) -> int:
        """Grow the tree for these sub-streams; return the number of its leaves."""
        leaves = len(self.tree) // 2
        needed = int(streams.max(initial=0)) + 1
        if needed > leaves:
            larger = 1 << (needed - 1).bit_length()
            tree = np.full(2 * larger, self.highest, self.tree.dtype)
            tree[larger : larger + leaves] = self.tree[leaves:]
            for i in range(larger - 1, 0, -1):
                tree[i] = min(tree[2 * i], tree[2 * i + 1])
            self.tree, leaves = tree, larger
        return leaves


def _grown(values: npt.NDArray[Any], room: int, filling: Any) -> npt.NDArray[Any]:
    added = np.full(room - len(values), filling, values.dtype)
    return np.concatenate([values, added]) if len(added) else values


@njit(cache=True)
def _put(tree, leaf, value):  # type: ignore[no-untyped-def] # pragma: no cover
    at = leaf + len(tree) // 2
    tree[at] = value
    at //= 2
    while at >= 1:
        tree[at] = min(tree[2 * at], tree[2 * at + 1])
        at //= 2


class SubstreamTracker(ClauseTracker):
    """The state of a clause about sub-streams."""

    minima: _Minima

    @abstractmethod
    def own(self) -> Times:
        """Return the watermark of each sub-stream, by its code."""

    @property
    def tree(self) -> Times:
        return self.minima.tree

    @tree.setter
    def tree(self, tree: Times) -> None:
        self.minima.tree = tree


@dataclass
class OrderedPerTracker(SubstreamTracker):
    """ORDERED PER: the smallest newest time of the sub-streams that are not idle."""

    kept = ("promised", "newest", "top", "tree")
    idle_after: Any
    promised: Any
    is_float: bool
    minima: _Minima = field(init=False)
    newest: Times = field(init=False)
    top: Any = field(init=False)
    lowest: Any = field(init=False)

    def __post_init__(self) -> None:
        self.top = self.lowest = self.promised
        self.minima = _Minima(self.is_float)
        self.newest = np.empty(0, self.minima.tree.dtype)

    def show(self, piece: Piece) -> tuple[Mask | None, Times]:
        assert piece.streams is not None
        self.newest = _grown(self.newest, self.minima.make_room(piece.streams), self.lowest)
        late = np.zeros(len(piece.time), np.bool_)
        before = np.empty_like(piece.time)
        counts = np.ones(len(piece.time), np.bool_) if piece.promises is None else ~piece.promises
        self.promised, self.top = _per_stream(
            piece.time,
            piece.streams,
            counts,
            self.newest,
            self.minima.tree,
            self.idle_after if self.idle_after is not None else -1,
            (self.promised, self.top, self.minima.highest, self.lowest),
            late,
            before,
        )
        return late, before

    def own(self) -> Times:
        return self.newest


@njit(cache=True)
def _per_stream(time, streams, counts, newest, tree, idle, values, late, before):  # type: ignore[no-untyped-def] # pragma: no cover
    """Follow tuples; the tree has the newest time of each sub-stream that is not idle."""
    promised, top, highest, lowest = values
    leaves = len(tree) // 2
    for i in range(len(time)):
        before[i] = promised
        if not counts[i]:
            continue
        t = time[i]
        s = streams[i]
        late[i] = t < newest[s] or t < promised
        if t < newest[s]:
            continue
        # A sub-stream that begins late counts from now on.
        newest[s] = t
        _put(tree, s, t)
        top = max(top, t)
        if idle >= 0:
            # The difference of integers could wrap around.
            edge = top - idle if top >= lowest + idle else lowest
            while tree[1] < edge:
                at = 1
                while at < leaves:
                    at = 2 * at if tree[2 * at] == tree[at] else 2 * at + 1
                _put(tree, at - leaves, highest)
        if tree[1] != highest and tree[1] > promised:
            promised = tree[1]
    return promised, top


@dataclass
class PunctuatedPerTracker(SubstreamTracker):
    """PUNCTUATED BY ... PER: the smallest punctuation of the sub-streams that have not ended."""

    kept = ("promised", "seen", "ended", "tree")
    promised: Any
    is_float: bool
    minima: _Minima = field(init=False)
    seen: Mask = field(init=False)
    ended: Mask = field(init=False)
    lowest: Any = field(init=False)

    def __post_init__(self) -> None:
        self.lowest = self.promised
        self.minima = _Minima(self.is_float)
        self.seen = self.ended = np.empty(0, np.bool_)

    def show(self, piece: Piece) -> tuple[Mask | None, Times]:
        assert piece.streams is not None
        assert piece.promises is not None
        room = self.minima.make_room(piece.streams)
        self.seen, self.ended = _grown(self.seen, room, False), _grown(self.ended, room, False)
        late = np.zeros(len(piece.time), np.bool_)
        before = np.empty_like(piece.time)
        ends = np.zeros(len(piece.time), np.bool_) if piece.ends is None else piece.ends
        self.promised = _promised_per_stream(
            piece.time,
            piece.streams,
            piece.promises,
            ends,
            self.seen,
            self.ended,
            self.minima.tree,
            (self.promised, self.minima.highest, self.lowest),
            late,
            before,
        )
        return late, before

    def own(self) -> Times:
        leaves = len(self.minima.tree) // 2
        promised = self.minima.tree[leaves : leaves + len(self.seen)]
        return np.where(self.seen, promised, self.lowest)


@njit(cache=True)
def _promised_per_stream(time, streams, promises, ends, seen, ended, tree, values, late, before):  # type: ignore[no-untyped-def] # pragma: no cover
    promised, highest, lowest = values
    leaves = len(tree) // 2
    for i in range(len(time)):
        before[i] = promised
        s = streams[i]
        if not seen[s]:
            seen[s] = True
            _put(tree, s, lowest)
        if not promises[i]:
            late[i] = ended[s] or time[i] < tree[leaves + s]
            continue
        if ends[i]:
            ended[s] = True
            _put(tree, s, highest)
        elif not ended[s] and time[i] > tree[leaves + s]:
            _put(tree, s, time[i])
        if tree[1] != highest and tree[1] > promised:
            promised = tree[1]
    return promised
