"""Maintained relations against the operator computed from scratch."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from checks import Chain, check, ended, stream
from varying import (
    Fed,
    batches,
    changes,
    combined,
    drawn,
    grouped,
    joined,
    lived,
    restated,
    told,
    unmatched,
)

from millstream.kernels.column_names import ID, ID2, KEY, OP, SIDE, UNTIL
from millstream.kernels.core import state_chunks
from millstream.kernels.core.kernel import END, Frontier, Kernel, Tuples
from millstream.kernels.core.tuple_batch import cut
from millstream.kernels.relational.append_only_join import AppendOnlyJoin
from millstream.kernels.relational.changelog import Changelog, RowChangelog
from millstream.kernels.relational.distinct_and_set_operations import SetOperation
from millstream.kernels.relational.group_aggregate import GroupAggregate
from millstream.kernels.relational.inner_join import InnerJoin
from millstream.kernels.relational.lifetimes import Lifetime, RowLifetime, SlideInstants
from millstream.kernels.relational.outer_join import OuterJoin
from millstream.kernels.relational.rstream import RStream
from millstream.kernels.relational.sampled_changelog import SampledChangelog
from millstream.kernels.relational.semi_anti_join import SemiAntiJoin
from millstream.kernels.specs import (
    AggregateSpec,
    AppendOnlyJoinSpec,
    GroupSpec,
    InnerJoinSpec,
    OuterJoinSpec,
    SemiAntiJoinSpec,
    SetOperationSpec,
)

EVERY_TWO, EVERY_THREE = SlideInstants(2), SlideInstants(3)
SLIDING = [
    Lifetime(4, EVERY_TWO),
    Lifetime(3, EVERY_TWO),
    Lifetime(6, EVERY_THREE),
    Lifetime(None, EVERY_TWO),
]
MOVING = [Lifetime(3), Lifetime(0), Lifetime(None), RowLifetime(2), RowLifetime(1)]
PAIRS = [
    *((one, MOVING[0]) for one in [*MOVING, *SLIDING]),
    *((one, RowLifetime(2)) for one in [*MOVING, *SLIDING]),
    *((one, SLIDING[0]) for one in SLIDING),
]
SEEDS = range(2)
WANTED = {"left": (-1, 0), "right": (0, -1), "full": (-1, -1), "semi": (1, 0), "anti": (-1, 0)}


@pytest.fixture(autouse=True)
def tidy_all_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_chunks, "SPARE", 1)


def slides_of(*stays: Lifetime | RowLifetime) -> tuple[SlideInstants, ...]:
    found = (stay.slides for stay in stays if isinstance(stay, Lifetime) and stay.slides)
    return tuple(dict.fromkeys(found))


def fed(stays: tuple[Lifetime | RowLifetime, ...], make: Callable[..., Kernel]) -> Callable[[], Kernel]:
    """A kernel of two relations, of which windows of rows come as changes."""
    slides = slides_of(*stays)
    known = tuple(None if isinstance(stay, RowLifetime) else stay for stay in stays)

    def made() -> Kernel:
        fronts = {
            side: RowChangelog(stay, ("k", "v", "__ms_key", "__ms_side"), slides)
            for side, stay in enumerate(stays)
            if isinstance(stay, RowLifetime)
        }
        return Fed(fronts, make(known, slides=slides, signed=bool(fronts)))

    return made


def pairs(known: tuple[Lifetime | None, ...], *, slides: tuple[SlideInstants, ...], signed: bool) -> Kernel:
    return InnerJoin(InnerJoinSpec((known[0], known[1]), ({"a": "v"}, {"b": "v"}), slides, signed))


def copies(
    kind: str,
    all_: bool,
    known: tuple[Lifetime | None, ...],
    *,
    slides: tuple[SlideInstants, ...],
    signed: bool,
) -> Kernel:
    return SetOperation(SetOperationSpec(kind, all_, ("k",)), known, slides)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("stays", PAIRS, ids=str)
def test_pairs(stays: tuple[Lifetime | RowLifetime, Lifetime | RowLifetime], seed: int) -> None:
    chance = random.Random(seed)
    tuples = drawn(chance, 24)
    sides = [[t for t in tuples if t.side == side] for side in (0, 1)]
    found = check(fed(stays, pairs), batches(tuples, chance))
    slides = slides_of(*stays)
    expected = changes([lived(side, stay, slides) for side, stay in zip(sides, stays, strict=True)], joined)
    assert told(found, "a b") == expected


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("all_", [False, True], ids=["", "ALL"])
@pytest.mark.parametrize("kind", ["UNION", "INTERSECT", "EXCEPT"])
@pytest.mark.parametrize("stays", PAIRS[::4], ids=str)
def test_copies(
    stays: tuple[Lifetime | RowLifetime, Lifetime | RowLifetime], kind: str, all_: bool, seed: int
) -> None:
    chance = random.Random(seed)
    tuples = drawn(chance, 24)
    sides = [[t for t in tuples if t.side == side] for side in (0, 1)]
    found = check(fed(stays, partial(copies, kind, all_)), batches(tuples, chance))
    slides = slides_of(*stays)
    expected = changes(
        [lived(side, stay, slides) for side, stay in zip(sides, stays, strict=True)], combined(kind, all_)
    )
    assert told(found, "k") == expected


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("stay", [*MOVING, *SLIDING, RowLifetime(3, 2), RowLifetime(1, 3)], ids=str)
def test_tuples_that_enter_and_leave(stay: Lifetime | RowLifetime, seed: int) -> None:
    chance = random.Random(seed)
    tuples = drawn(chance, 24, sides=1)
    slides = slides_of(stay)
    make = (
        partial(RowChangelog, stay, ("v",))
        if isinstance(stay, RowLifetime)
        else partial(Changelog, (stay,), ("v",), slides, all_=True)
    )
    found = check(make, batches(tuples, chance))
    expected = changes([lived(tuples, stay, slides)], lambda now: {t.number: (t.value,) for t in now})
    said = told([{**row, "__ms_until": 2**63 - 1} for row in found], "v")
    assert said == expected


def outer(
    kind: str, known: tuple[Lifetime | None, ...], *, slides: tuple[SlideInstants, ...], signed: bool
) -> Kernel:
    spec = InnerJoinSpec((known[0], known[1]), ({"a": "v"}, {"b": "v"}), slides, signed=True, parts=True)
    columns = ("a",) if kind in ("semi", "anti") else ("a", "b")
    lasting = lasts(known[0]) and lasts(known[1])
    wanted = OuterJoinSpec(columns, kind in ("left", "right", "full"), *WANTED[kind], lasting=lasting)
    return Chain(InnerJoin(spec), OuterJoin(wanted))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", WANTED)
@pytest.mark.parametrize("stays", [*PAIRS[::4], (Lifetime(None), Lifetime(None))], ids=str)
def test_rows_without_a_match(
    stays: tuple[Lifetime | RowLifetime, Lifetime | RowLifetime], kind: str, seed: int
) -> None:
    chance = random.Random(seed)
    tuples = drawn(chance, 24)
    sides = [[t for t in tuples if t.side == side] for side in (0, 1)]
    found = check(fed(stays, partial(outer, kind)), batches(tuples, chance))
    slides = slides_of(*stays)
    expected = changes(
        [lived(side, stay, slides) for side, stay in zip(sides, stays, strict=True)], unmatched(kind)
    )
    assert told(found, "a" if kind in ("semi", "anti") else "a b") == expected


def matched(
    kind: str, known: tuple[Lifetime | None, ...], *, slides: tuple[SlideInstants, ...], signed: bool
) -> Kernel:
    lasting = lasts(known[0]), lasts(known[1])
    return SemiAntiJoin(SemiAntiJoinSpec((known[0], known[1]), ("v",), kind == "anti", slides, lasting))


def lasts(lifetime: Lifetime | None) -> bool:
    return lifetime is not None and lifetime.reach is None


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", ["semi", "anti"])
@pytest.mark.parametrize(
    "stays", [*PAIRS, *((b, a) for a, b in PAIRS), (Lifetime(None), Lifetime(None))], ids=str
)
def test_keys_that_have_a_match(
    stays: tuple[Lifetime | RowLifetime, Lifetime | RowLifetime], kind: str, seed: int
) -> None:
    chance = random.Random(seed)
    tuples = drawn(chance, 24)
    sides = [[t for t in tuples if t.side == side] for side in (0, 1)]
    found = check(fed(stays, partial(matched, kind)), batches(tuples, chance))
    lives = [lived(side, stay, slides_of(*stays)) for side, stay in zip(sides, stays, strict=True)]
    assert told(found, "v") == changes(lives, unmatched(kind))


@pytest.mark.parametrize("kind", ["semi", "anti"])
@pytest.mark.parametrize("left", [Lifetime(None), Lifetime(5)], ids=str)
def test_what_is_decided_for_good_is_forgotten(left: Lifetime, kind: str) -> None:
    """There are three keys, which soon are all on the right side."""
    kernel = matched(kind, (left, Lifetime(None)), slides=(), signed=False)
    _is_bounded(kernel, lambda: kernel.rows)


@pytest.mark.parametrize("kind", WANTED)
def test_pairs_that_last_are_not_kept(kind: str) -> None:
    chain = outer(kind, (Lifetime(None), Lifetime(None)), slides=(), signed=False)
    assert isinstance(chain, Chain)
    _is_bounded(chain, lambda: chain.kernels[1].rows)


def _is_bounded(kernel: Kernel, rows: Callable[[], int]) -> None:
    for number in range(20):
        batch, _ = batches(drawn(random.Random(number), 60), random.Random(0))[0]
        later = Tuples(batch.columns, batch.time + 100 * number, batch.origin, batch.number)
        kernel.process(later, Frontier(int(later.time[-1]), 0))
        kernel.snapshot()
        of_last_instants = int((later.time > later.time[-1] - 5).sum())
        assert number < 3 or rows() <= 3 + of_last_instants


@pytest.mark.parametrize(
    "kernel",
    [
        AppendOnlyJoin(AppendOnlyJoinSpec((3, 3), ({"a": "v"}, {"b": "v"}))),
        pairs((Lifetime(3), Lifetime(3)), slides=(), signed=False),
    ],
)
def test_a_batch_may_say_that_there_are_no_nulls_and_another_one_not(kernel: Kernel) -> None:
    """Spark does so: a batch of nothing is made by hand, and does not know."""
    tuples = batches(drawn(random.Random(1), 24), random.Random(1))[0][0]
    strict = pa.schema([pa.field(f.name, f.type, nullable=f.name != KEY) for f in tuples.columns.schema])
    told_so = Tuples(tuples.columns.cast(strict), tuples.time, tuples.origin, tuples.number)
    kernel.process(cut(tuples, 0, 0), Frontier(0, 0))
    assert len(kernel.process(told_so, END)) > 0


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("follows", [True, False], ids=["followed", "windows of a log"])
@pytest.mark.parametrize("stay", [Lifetime(3), Lifetime(None), *SLIDING], ids=str)
def test_groups(stay: Lifetime, follows: bool, seed: int) -> None:
    """Counts and sums follow insertions and deletions; with a maximum, windows of a log."""
    chance = random.Random(seed)
    tuples = drawn(chance, 24, sides=1)
    aggregates = [
        AggregateSpec("count", None, "n", pa.int64()),
        AggregateSpec("sum", "v", "s", pa.int64()),
        *([] if follows else [AggregateSpec("max", "v", "m", pa.int64())]),
    ]
    spec = GroupSpec(("k",), tuple(aggregates))
    found = check(lambda: GroupAggregate(spec, stay, slides_of(stay)), batches(tuples, chance))
    columns = 3 if follows else 4
    expected = changes([lived(tuples, stay, slides_of(stay))], partial(grouped, columns=columns))
    assert told(found, "k n s" if follows else "k n s m") == expected


@pytest.mark.parametrize("seed", SEEDS)
def test_groups_whose_rows_leave_in_another_order_than_they_came(seed: int) -> None:
    """What comes from other operators is told to leave whenever these say so."""
    chance = random.Random(seed)
    present: list[int] = []
    lines, given, now = [], [], 0
    contents: dict[int, list[int]] = {}
    for value in range(40):
        now += chance.randint(1, 2)
        if present and chance.random() < 0.4:
            gone = present.pop(chance.randrange(len(present)))
            lines.append(f"{now} -1 {2**63 - 1} {gone} {gone} 1 1 {gone * 7 % 11}")
        else:
            present.append(value)
            lines.append(f"{now} 1 {2**63 - 1} {value} {value} 1 1 {value * 7 % 11}")
        contents[now] = [one * 7 % 11 for one in present]
        if chance.random() < 0.3:
            given.append((lines, now + 1))
            lines = []
    given.append((lines, now + 1))
    names = f"time {OP} {UNTIL} {ID} {ID2} {KEY} k v"
    spec = GroupSpec(("k",), (AggregateSpec("max", "v", "m", pa.int64()),))
    streams = [
        (stream("\n".join((names, *some)), **{OP: pa.int8()}), Frontier(until, 0)) for some, until in given
    ]
    found = check(lambda: GroupAggregate(spec, None), ended(*streams))
    expected, shown = [], None
    for instant, values in contents.items():
        largest = max(values, default=None)
        if largest != shown:
            expected += [(instant, -1, shown)] if shown is not None else []
            expected += [(instant, 1, largest)] if largest is not None else []
            shown = largest
    assert [(row["time"], row[OP], row["m"]) for row in found if row["time"] <= now] == expected


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("stay", [Lifetime(3), Lifetime(0), *SLIDING[:3]], ids=str)
def test_all_of_it_every_time(stay: Lifetime, seed: int) -> None:
    chance = random.Random(seed)
    tuples = drawn(chance, 24, sides=1)
    slides = slides_of(stay)
    found = check(lambda: RStream((stay,), ("v",), slides), batches(tuples, chance))
    assert Counter((row["time"], row["v"]) for row in found) == restated(lived(tuples, stay, slides), slides)


@pytest.mark.parametrize("stay", [Lifetime(None), Lifetime(1000), None], ids=str)
def test_of_equal_rows_only_one_is_kept(stay: Lifetime | None) -> None:
    """A landmark window has no end, and its distinct values are few; so are those of what is made of it."""
    spec = SetOperationSpec("UNION", False, ("k",), lasting=(stay is None,))
    kernel = SetOperation(spec, (stay,))
    for tuples, frontier in batches(drawn(random.Random(2), 60, sides=1), random.Random(2))[:-1]:
        kernel.process(tuples, frontier)
        kernel.snapshot()
    # Three keys, and what is not complete yet.
    assert kernel.rows <= 3 + 4


def test_rows_that_no_slide_has_seen_are_dropped() -> None:
    kernel = SampledChangelog(Lifetime(3), ("v",))
    for time in range(200):
        table = pa.table({"v": [time], SIDE: pa.array([0], pa.int8())})
        times = np.array([time], np.int64)
        kernel.process(Tuples(table, times, np.zeros(1, np.int32), times), Frontier(time, 0))
        kernel.snapshot()
    assert kernel.rows < 40


def test_what_has_left_before_a_restart_does_not_come_back() -> None:
    """Also if nothing is left at all, and all that is known of the end of a row is that it was told."""

    def changes_at(*told: tuple[int, int, int]) -> Tuples:
        lines = [f"{time} {op} {2**63 - 1} {value} {value} {value}" for time, op, value in told]
        names = f"time {OP} {UNTIL} {ID} {ID2} v"
        return stream("\n".join((names, *lines)), **{OP: pa.int8()})

    given = [
        (changes_at((1, 1, 7)), Frontier(2, 0)),
        (changes_at((3, -1, 7)), Frontier(4, 0)),
        (changes_at((5, 1, 8), (6, -1, 8), (6, 1, 9)), Frontier(7, 0)),
    ]
    found = check(lambda: RStream((None,), ("v",)), ended(*given))
    assert [(row["time"], row["v"]) for row in found] == [(1, 7), (5, 8), (6, 9)]
