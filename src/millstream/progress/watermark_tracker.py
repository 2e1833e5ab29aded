"""Follows one source partition: what it has promised, and which of its tuples break a promise.

A tuple is judged by what came before it in its own source partition and by nothing else, so it does not
matter in which pieces the tuples are shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from millstream.jit import njit
from millstream.progress.disorder_clauses import (
    Heartbeats,
    InOrder,
    OrderedPer,
    Promises,
    Punctuated,
    RowSlack,
)
from millstream.progress.plain_data import as_data, from_data

Times = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Piece:
    """Consecutive tuples of a source partition.

    ``streams`` are the codes of their sub-streams; ``promises`` marks the tuples that are promises, ``ends``
    those of them without a time, which end their sub-stream.
    """

    time: Times
    streams: Codes | None = None
    promises: Mask | None = None
    ends: Mask | None = None


@dataclass(frozen=True)
class Verdict:
    """Which tuples of a piece are late, and what had been promised before each."""

    late: Mask
    promised: Times


def smallest(time: Times) -> Any:
    """The time before all others, of the same kind as these."""
    return -np.inf if time.dtype == np.float64 else np.iinfo(np.int64).min


def minus(time: Times, slack: float) -> Times:
    """Earlier by the slack, but never beyond the smallest time."""
    if not slack:
        return time
    if time.dtype == np.float64:
        return time - slack
    return np.where(time < smallest(time) + np.int64(slack), smallest(time), time - np.int64(slack))


def newest_before(time: Times, newest: Any) -> Times:
    """For each tuple the largest time before it, starting with that of the pieces before."""
    before = np.empty_like(time)
    if len(time):
        before[0] = newest
        np.maximum.accumulate(time[:-1], out=before[1:])
        np.maximum(before, newest, out=before)
    return before


@dataclass
class Tracker:
    """The promises of one source partition so far."""

    promises: Promises
    is_float: bool = False
    parts: list[Any] = field(init=False)
    promised: Any = field(init=False)
    timed: Any = field(init=False)
    """Promise without the last word of the source partition, which has no time."""

    def __post_init__(self) -> None:
        self.promised = self.timed = self.lowest
        self.parts = [_follower(clause, self.is_float) for clause in self.promises.clauses]

    @property
    def lowest(self) -> Any:
        """Before all times: nothing is promised."""
        return -np.inf if self.is_float else int(np.iinfo(np.int64).min)

    @property
    def highest(self) -> Any:
        """After all times: what the end of the input promises."""
        return np.inf if self.is_float else int(np.iinfo(np.int64).max)

    def show(self, piece: Piece) -> Verdict:
        """Judge the next tuples, and follow them."""
        late = np.zeros(len(piece.time), np.bool_)
        promised = np.full(len(piece.time), self.promised, np.float64 if self.is_float else np.int64)
        for part in self.parts:
            own_late, before = part.show(piece)
            if own_late is not None:
                late |= own_late
            np.maximum(promised, before, out=promised)
        np.maximum.accumulate(promised, out=promised)
        late |= piece.time < promised
        if piece.promises is not None:
            late &= ~piece.promises
        self._settle()
        if self.has_last_word:
            # The last word is none of the promises before it, and what follows it promises nothing.
            before = promised[promised < self.highest]
            self.timed = before[-1].item() if len(before) else self.timed
        return Verdict(late, promised)

    @property
    def has_last_word(self) -> bool:
        """True if punctuation has ended the whole partition; the largest timestamp alone does not."""
        return any(isinstance(part, _Promised) and part.ended for part in self.parts)

    def judge(self, time: Times, *, broken: Mask | None = None, newest: Times | None = None) -> Verdict:
        """Judge tuples of a piece without seeing the rest of it; only for promises with a slack.

        Either is known of them: which break a promise of the piece itself, or the newest before each in it.
        """
        promised = np.full(len(time), self.promised, np.float64 if self.is_float else np.int64)
        if newest is not None:
            slack = self.promises.slack
            assert slack is not None
            np.maximum(promised, minus(newest, slack), out=promised)
        late = time < promised
        return Verdict(late if broken is None else late | broken, promised)

    def pass_over(self, newest: Any) -> None:
        """Follow a piece of which only the newest time is known."""
        self.show(Piece(np.array([newest], np.float64 if self.is_float else np.int64)))

    def heartbeat(self, time: Any) -> None:
        """Progress that comes from outside."""
        for part in self.parts:
            if isinstance(part, _HeartbeatTracker):
                part.promised = max(part.promised, time)
        self._settle()

    def of_streams(self, count: int) -> Times:
        """What each of the first so many sub-streams has promised, by its code."""
        promised = np.full(count, self.promised, np.float64 if self.is_float else np.int64)
        for part in self.parts:
            if isinstance(part, _PerStream | _PromisedPerStream):
                own = part.own()[:count]
                np.maximum(promised[: len(own)], own, out=promised[: len(own)])
        return promised

    def as_data(self) -> dict[str, Any]:
        """The state as plain data: what has been promised, and the state of each clause in their order."""
        return {
            "promised": as_data(self.promised),
            "timed": as_data(self.timed),
            "clauses": [part.as_data() for part in self.parts],
        }

    def restore(self, data: Mapping[str, Any]) -> None:
        """Become the tracker whose state was written."""
        self.promised = from_data(data["promised"])
        self.timed = from_data(data["timed"])
        for part, written in zip(self.parts, data["clauses"], strict=True):
            part.restore(written)

    def _settle(self) -> None:
        self.promised = max([self.promised, *(part.promised for part in self.parts)])
        self.promised = float(self.promised) if self.is_float else int(self.promised)
        if not self.has_last_word:
            self.timed = self.promised


def _follower(clause: object, is_float: bool) -> Any:
    lowest = -np.inf if is_float else int(np.iinfo(np.int64).min)
    match clause:
        case InOrder(slack):
            return _Newest(slack, lowest)
        case RowSlack(rows):
            return _Ranked(rows, lowest, is_float)
        case OrderedPer(idle_after):
            return _PerStream(idle_after, lowest, is_float)
        case Punctuated(per):
            return _PromisedPerStream(lowest, is_float) if per else _Promised(lowest)
        case Heartbeats():
            return _HeartbeatTracker(lowest)
        case _:
            raise AssertionError(clause)


class _ClauseTracker:
    """Follows one clause; ``kept`` names the attributes that are its state."""

    kept: ClassVar[tuple[str, ...]] = ("promised",)

    def as_data(self) -> dict[str, Any]:
        return {name: as_data(getattr(self, name)) for name in self.kept}

    def restore(self, data: Mapping[str, Any]) -> None:
        for name in self.kept:
            setattr(self, name, from_data(data[name]))


@dataclass
class _HeartbeatTracker(_ClauseTracker):
    """Heartbeats: tuples change nothing."""

    promised: Any

    def show(self, piece: Piece) -> tuple[Mask | None, Times]:
        return None, np.full_like(piece.time, self.promised)


@dataclass
class _Newest(_ClauseTracker):
    """Order, and SLACK INTERVAL: the newest tuple, less the slack."""

    kept = ("promised", "newest")
    slack: Any
    promised: Any
    newest: Any = None

    def show(self, piece: Piece) -> tuple[Mask | None, Times]:
        lowest = smallest(piece.time)
        before = newest_before(piece.time, lowest if self.newest is None else self.newest)
        if len(piece.time):
            self.newest = max(before[-1], piece.time[-1]).item()
            self.promised = minus(np.array([self.newest], piece.time.dtype), self.slack)[0].item()
        return None, minus(before, self.slack)


@dataclass
class _Promised(_ClauseTracker):
    """PUNCTUATED BY: the largest time among the tuples that are promises, and whether one had none."""

    kept = ("promised", "ended")
    promised: Any
    ended: bool = False

    def show(self, piece: Piece) -> tuple[Mask | None, Times]:
        assert piece.promises is not None
        counts = piece.promises if piece.ends is None else piece.promises & ~piece.ends
        values = np.where(counts, piece.time, smallest(piece.time))
        if piece.ends is not None:
            # A promise without a time is the last word of the whole partition.
            last = np.inf if piece.time.dtype == np.float64 else np.iinfo(np.int64).max
            ends = piece.promises & piece.ends
            values = np.where(ends, last, values)
            self.ended = self.ended or bool(ends.any())
        before = newest_before(values, self.promised)
        if len(values):
            self.promised = max(before[-1], values[-1]).item()
        return None, before


@dataclass
class _Ranked(_ClauseTracker):
    """SLACK n ROWS: the (n+1)-th largest time so far."""

    kept = ("promised", "ranked")
    rows: int
    promised: Any
    is_float: bool
    largest: Times = field(init=False)
    count: int = 0

    def __post_init__(self) -> None:
        # Twice the room that is needed: the list moves along it and is brought back when it reaches the end.
        self.largest = np.empty(2 * (self.rows + 1), np.float64 if self.is_float else np.int64)

    @property
    def ranked(self) -> Times:
        """The times that are kept, in ascending order."""
        return self.largest[: self.count]

    @ranked.setter
    def ranked(self, times: Times) -> None:
        self.count = len(times)
        self.largest[: self.count] = times

    def show(self, piece: Piece) -> tuple[Mask | None, Times]:
        # A promise is no tuple, and overtakes none.
        counts = np.ones(len(piece.time), np.bool_) if piece.promises is None else ~piece.promises
        before = np.empty_like(piece.time)
        self.count = _rank(piece.time, counts, self.largest, self.count, self.rows + 1, self.promised, before)
        if self.count == self.rows + 1:
            self.promised = self.largest[0].item()
        return None, before


@njit(cache=True)
def _rank(time, counts, largest, count, room, promised, before):  # type: ignore[no-untyped-def] # pragma: no cover
    """Keep the ``room`` largest times in ascending order; an insertion costs as much as the tuple lags."""
    first = 0
    for i in range(len(time)):
        before[i] = promised
        if not counts[i]:
            continue
        t = time[i]
        if count == room and t <= largest[first]:
            continue
        if first + count == len(largest):
            for j in range(count):
                largest[j] = largest[first + j]
            first = 0
        at = first + count
        while at > first and largest[at - 1] > t:
            largest[at] = largest[at - 1]
            at -= 1
        largest[at] = t
        if count == room:
            first += 1
        else:
            count += 1
        if count == room:
            promised = largest[first]
    for j in range(count):
        largest[j] = largest[first + j]
    return count


@dataclass
class _Minima:
    """A value for each sub-stream, and the smallest of them at the root of a tree."""

    is_float: bool
    tree: Times = field(init=False)

    def __post_init__(self) -> None:
        self.tree = np.full(2, self.highest, np.float64 if self.is_float else np.int64)

    @property
    def highest(self) -> Any:
        """The value of a sub-stream that does not count."""
        return np.inf if self.is_float else np.iinfo(np.int64).max

    def make_room(self, streams: Codes) -> int:
        """Room for these sub-streams; returns for how many there is room now."""
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


class _FollowerOfMinima(_ClauseTracker):
    """Follows a clause about sub-streams."""

    minima: _Minima

    @property
    def tree(self) -> Times:
        return self.minima.tree

    @tree.setter
    def tree(self, tree: Times) -> None:
        self.minima.tree = tree


@dataclass
class _PerStream(_FollowerOfMinima):
    """ORDERED PER: the sub-stream that is furthest behind, of those that are not idle."""

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
        """What each sub-stream has promised: its newest."""
        return self.newest


@njit(cache=True)
def _per_stream(time, streams, counts, newest, tree, idle, values, late, before):  # type: ignore[no-untyped-def] # pragma: no cover
    """The newest time of each sub-stream is in the tree, unless it is idle."""
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
        # A sub-stream that begins too late has been seen all the same, and is waited for from now on.
        newest[s] = t
        _put(tree, s, t)
        top = max(top, t)
        if idle >= 0:
            # Integers wrap around below the smallest.
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
class _PromisedPerStream(_FollowerOfMinima):
    """PUNCTUATED BY ... PER: the smallest promise among the sub-streams that have not ended."""

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
        """What each sub-stream has promised; one that has ended promises everything."""
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
