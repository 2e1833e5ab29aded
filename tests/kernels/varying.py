"""Relations that vary, by their definition: everything is computed anew at every instant."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from checks import Batch, ended

from millstream.kernels.column_names import ID, ID2, KEY, OP, SIDE, UNTIL
from millstream.kernels.core.kernel import Change, Frontier, Kernel, Tuples
from millstream.kernels.core.reorder import Reorder
from millstream.kernels.relational.lifetimes import Lifetime, RowLifetime, SlideInstants

State = dict[Any, tuple[Any, ...]]
"""What is in a relation, by what it is."""


@dataclass(frozen=True)
class Tuple:
    time: int
    side: int
    key: int
    value: int
    number: int


@dataclass(frozen=True)
class Lived:
    """A tuple in its window: from an instant until another one, at which it is gone."""

    tuple: Tuple
    enters: float
    leaves: float


def drawn(chance: random.Random, count: int, sides: int = 2) -> list[Tuple]:
    times = sorted(chance.randint(0, count // 2) for _ in range(count))
    return [
        Tuple(time, chance.randrange(sides), chance.randint(0, 2), chance.randint(0, 4), number)
        for number, time in enumerate(times)
    ]


def batches(tuples: Sequence[Tuple], chance: random.Random) -> list[Batch]:
    """In order, cut anywhere; another tuple of the last instant may always come."""
    columns = pa.table(
        {
            KEY: pa.array([t.key for t in tuples], pa.int64()),
            SIDE: pa.array([t.side for t in tuples], pa.int8()),
            "k": pa.array([t.key for t in tuples], pa.int64()),
            "v": pa.array([t.value for t in tuples], pa.int64()),
        }
    )
    time = np.array([t.time for t in tuples], np.int64)
    all_ = Tuples(columns, time, np.zeros(len(tuples), np.int32), np.arange(len(tuples)))
    cuts = sorted({0, len(tuples), *(chance.randint(1, len(tuples) - 1) for _ in range(4))})
    parts = itertools.pairwise(cuts)
    return ended(*((all_.take(np.arange(a, b)), Frontier(int(time[b - 1]), 0)) for a, b in parts))


# ---------------------------------------------------------------- windows, by their definition


def lived(
    tuples: Sequence[Tuple], stay: Lifetime | RowLifetime, slides: Sequence[SlideInstants]
) -> list[Lived]:
    """Return the lifetimes of tuples of one side, as seen at slides."""
    found = _by_rows(tuples, stay) if isinstance(stay, RowLifetime) else [_by_time(t, stay) for t in tuples]
    if slides:
        found = [Lived(one.tuple, seen(one.enters, slides), seen(one.leaves, slides)) for one in found]
    return [one for one in found if one.enters < one.leaves]


def seen(instant: float, slides: Sequence[SlideInstants]) -> float:
    """The first slide at or behind an instant."""
    if instant == math.inf:
        return math.inf
    return min(math.ceil(instant / one.step) * one.step for one in slides)


def _by_time(tuple_: Tuple, lifetime: Lifetime) -> Lived:
    time, reach = tuple_.time, lifetime.reach
    leaves = math.inf if reach is None else time + max(reach, 1)
    if lifetime.slides is None:
        return Lived(tuple_, time, leaves)
    step = lifetime.slides.step
    gone = math.inf if reach is None else (time + reach) // step * step + step
    return Lived(tuple_, time // step * step + step, gone)


def _by_rows(tuples: Sequence[Tuple], lifetime: RowLifetime) -> list[Lived]:
    found = []
    for key in {t.key for t in tuples}:
        mine = [t for t in tuples if t.key == key]

        def at(count: int, mine: list[Tuple] = mine) -> float:
            place = -(-count // lifetime.slide) * lifetime.slide
            return mine[place - 1].time if place <= len(mine) else math.inf

        found += [Lived(t, at(i + 1), at(i + 1 + lifetime.count)) for i, t in enumerate(mine)]
    return found


# ---------------------------------------------------------------- what happens


def changes(
    sides: Sequence[Sequence[Lived]], operator: Callable[..., State]
) -> Counter[tuple[float, int, tuple[Any, ...]]]:
    """Return the changes of a result, recomputed whenever an input changes."""
    instants = {i for side in sides for one in side for i in (one.enters, one.leaves) if i < math.inf}
    found: Counter[tuple[float, int, tuple[Any, ...]]] = Counter()
    before: State = {}
    for instant in sorted(instants):
        now = operator(*([o.tuple for o in side if o.enters <= instant < o.leaves] for side in sides))
        found.update((instant, -1, row) for what, row in before.items() if what not in now)
        found.update((instant, 1, row) for what, row in now.items() if what not in before)
        before = now
    return found


def joined(left: Sequence[Tuple], right: Sequence[Tuple]) -> State:
    pairs = ((a, b) for a in left for b in right if a.key == b.key)
    return {(a.number, b.number): (a.value, b.value) for a, b in pairs}


def unmatched(kind: str) -> Callable[..., State]:
    def operator(left: Sequence[Tuple], right: Sequence[Tuple]) -> State:
        pairs = joined(left, right)
        met = {a for a, _ in pairs}, {b for _, b in pairs}
        if kind in ("semi", "anti"):
            return {t.number: (t.value,) for t in left if (t.number in met[0]) == (kind == "semi")}
        if kind in ("left", "full"):
            pairs |= {(t.number, None): (t.value, None) for t in left if t.number not in met[0]}
        if kind in ("right", "full"):
            pairs |= {(None, t.number): (None, t.value) for t in right if t.number not in met[1]}
        return pairs

    return operator


def combined(kind: str, all_: bool) -> Callable[..., State]:
    def operator(*sides: Sequence[Tuple]) -> State:
        one, other = (Counter(t.key for t in side) for side in (*sides, [])[:2])
        if not all_:
            one, other = (Counter(set(side)) for side in (one, other))
        wanted = {
            "UNION": one + other if all_ else one | other,
            "INTERSECT": one & other,
            "EXCEPT": one - other,
        }
        return {(k, copy): (k,) for k, count in wanted[kind].items() for copy in range(count)}

    return operator


def grouped(content: Sequence[Tuple], columns: int) -> State:
    rows = {}
    for key in {t.key for t in content}:
        values = [t.value for t in content if t.key == key]
        rows[key] = (key, len(values), sum(values), max(values))[:columns]
    return {row: row for row in rows.values()}


def restated(rows: Sequence[Lived], slides: Sequence[SlideInstants]) -> Counter[tuple[float, int]]:
    """All that is there, at every slide or whenever something changes."""
    ends = {i for one in rows for i in (one.enters, one.leaves)}
    last = int(max(ends))
    instants = {n for one in slides for n in range(0, last + 1, one.step)} if slides else ends
    return Counter((t, one.tuple.value) for t in instants for one in rows if one.enters <= t < one.leaves)


# ---------------------------------------------------------------- what kernels say


class Fed(Kernel):
    """A kernel for two relations of which some come as changes, each made by a kernel of its own."""

    def __init__(self, fronts: Mapping[int, Kernel], kernel: Kernel) -> None:
        self.fronts, self.reorder, self.kernel = dict(fronts), Reorder(), kernel

    def process(self, tuples: Tuples, frontier: Frontier) -> Tuples:
        sides = tuples.columns[SIDE].to_numpy()
        parts = []
        for side in (0, 1):
            mine = tuples.take(sides == side)
            front = self.fronts.get(side)
            if front is not None:
                mine = front.process(mine, frontier)
            elif self.fronts:
                ones, none = np.ones(len(mine), np.int8), np.full(len(mine), np.iinfo(np.int64).max)
                marked = mine.columns
                for name, values in ((OP, ones), (UNTIL, none), (ID, none), (ID2, none)):
                    marked = marked.append_column(name, pa.array(values))
                mine = Tuples(marked, mine.time, mine.origin, mine.number)
            parts.append(mine)
        names = sorted(set(parts[0].columns.column_names) & set(parts[1].columns.column_names))
        together = Tuples(
            pa.concat_tables([part.columns.select(names) for part in parts]),
            np.concatenate([part.time for part in parts]),
            np.repeat(np.arange(2, dtype=np.int32), [len(part) for part in parts]),
            np.concatenate([part.number for part in parts]),
        )
        before = Frontier(frontier.time, frontier.origin if frontier.is_end else -1)
        return self.kernel.process(self.reorder.process(together, before), frontier)

    def snapshot(self) -> Change:
        added, dropped, meta = {}, [], {}
        for name, kernel in self._kernels():
            change = kernel.snapshot()
            added |= {f"{name}.{chunk}": table for chunk, table in change.added.items()}
            dropped += [f"{name}.{chunk}" for chunk in change.dropped]
            meta[name] = dict(change.meta)
        return Change(added, tuple(dropped), meta)

    def restore(self, meta: Any, chunks: Any) -> None:
        for name, kernel in self._kernels():
            mine = {n.removeprefix(f"{name}."): t for n, t in chunks.items() if n.startswith(f"{name}.")}
            kernel.restore(meta[name], mine)

    def _kernels(self) -> list[tuple[str, Kernel]]:
        return [
            *((str(side), kernel) for side, kernel in self.fronts.items()),
            ("order", self.reorder),
            ("all", self.kernel),
        ]

    @property
    def rows(self) -> int:
        return sum(kernel.rows for _, kernel in self._kernels())


def told(rows: Sequence[Mapping[str, Any]], columns: str) -> Counter[tuple[float, int, tuple[Any, ...]]]:
    """Return the changes of a kernel, and the expiries that were known in advance."""
    names = columns.split()
    found: Counter[tuple[float, int, tuple[Any, ...]]] = Counter()
    ends: dict[tuple[int, int], tuple[float, tuple[Any, ...]]] = {}
    most = np.iinfo(np.int64).max
    for row in rows:
        values = tuple(row[name] for name in names)
        op = row.get(OP, 1)
        found[(row["time"], op, values)] += 1
        what = (row[ID], row[ID2]) if ID in row else (len(ends), -1)
        if op > 0:
            ends[what] = row[UNTIL] + 1 if row[UNTIL] < most else math.inf, values
        else:
            ends.pop(what)
        due = [one for one, (end, _) in ends.items() if end < math.inf and op < 0 and end == row["time"]]
        assert what not in due, "what has an end need not be told to leave"
    found.update((end, -1, values) for end, values in ends.values() if end < math.inf)
    return found
