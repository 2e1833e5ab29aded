"""OVER windows that slide (semantics, section 5): the tuples with a result, and the state."""

import math

import numpy as np
import pyarrow as pa
import pytest
from brute import DoesNotFitError, close, over
from checks import Chain, Store, check, cut, ended, results, run, same_rows, stream, tuples_of
from hypothesis import given, settings
from hypothesis import strategies as st
from test_over import STRING, call, calls, ordered_batches

from millstream.kernels.core import state_chunks
from millstream.kernels.core.kernel import BEGINNING, END, Frontier, Tuples
from millstream.kernels.core.kernel_errors import KernelError
from millstream.kernels.core.reorder import Reorder
from millstream.kernels.over.over_aggregate import OverAggregate
from millstream.kernels.specs import SlideSpec


def column(wanted, tuples, slide, *frontiers, columns="time r"):
    """All tuples come at first; then punctuation, and the end."""
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    first, *others = [*map(Frontier, frontiers), END]
    batches = [(tuples, first), *((cut(tuples, 0, 0), other) for other in others)]
    return results(OverAggregate(wanted, slide), *batches, columns=columns)


BIDS = stream("""
    time  key  price
    1     1    10
    2     2    20
    2     1    30
    5     1    -
    6     2    40
    7     1    50
    9     1    60
""")


def test_the_last_tuple_of_every_slot_of_its_partition_gives_a_result():
    # The slots of key 1 are (1, 2), (5, 7) and (9), which never fills; that of key 2 is (2, 6).
    assert column(call("sum", "price", rows=2), BIDS, SlideSpec(rows=2)) == [(2, 40), (6, 60), (7, 80)]
    assert column(call("sum", "price"), BIDS, SlideSpec(rows=2)) == [(2, 40), (6, 60), (7, 90)]
    assert column(call("sum", "price", range=2), BIDS, SlideSpec(rows=2)) == [(2, 40), (6, 40), (7, 50)]


def test_a_slide_of_one_gives_every_tuple():
    assert [row[0] for row in column(call("sum", "price", rows=2), BIDS, SlideSpec(rows=1))] == [
        1, 2, 2, 5, 6, 7, 9,
    ]  # fmt: skip


ONES = stream("time v\n" + "\n".join(f"{i} 1" for i in range(1, 101)))


def test_a_pane_window_of_50_every_10():
    """Example 14 of the ESL paper."""
    assert column(call("sum", "v", rows=49), ONES, SlideSpec(rows=10)) == [
        (10 * i, min(10 * i, 50)) for i in range(1, 11)
    ]


def test_a_tumble_of_10_every_28():
    """The first 18 tuples of a slot do not matter."""
    numbers = stream("time v\n" + "\n".join(f"{i} {i}" for i in range(1, 101)))
    assert column(call("sum", "v", rows=9), numbers, SlideSpec(rows=28)) == [
        (28, sum(range(19, 29))),
        (56, sum(range(47, 57))),
        (84, sum(range(75, 85))),
    ]


def test_windows_of_different_sizes_share_their_panes():
    wanted = (
        call("sum", "v", rows=49, name="a"),
        call("min", "v", rows=24, name="b"),
        call("sum", "v", name="c"),
    )
    numbers = stream("time v\n" + "\n".join(f"{i} {i}" for i in range(1, 101)))
    assert column(wanted, numbers, SlideSpec(rows=30), columns="a b c") == [
        (sum(range(1, 31)), 6, sum(range(1, 31))),
        (sum(range(11, 61)), 36, sum(range(1, 61))),
        (sum(range(41, 91)), 66, sum(range(1, 91))),
    ]


def test_the_last_tuple_of_a_slot_of_time_gives_a_result_when_time_has_passed_the_slot():
    wanted = call("sum", "price", rows=2)
    kernel = OverAggregate((wanted,), SlideSpec(time=5))
    assert results(kernel, (BIDS, Frontier(4)), columns="time r") == []
    nothing = cut(BIDS, 0, 0)
    assert results(kernel, (nothing, Frontier(5)), columns="time r") == [(2, 20), (2, 40)]
    assert results(kernel, (nothing, Frontier(9)), columns="time r") == []
    assert results(kernel, (nothing, END), columns="time r") == [(6, 60), (9, 110)]


def test_slots_of_time_are_counted_from_the_epoch():
    tuples = stream("time v\n -6 1\n -5 2\n -1 4\n 0 8\n 4 16\n 12 32")
    assert column(call("sum", "v"), tuples, SlideSpec(time=5)) == [(-6, 1), (-1, 7), (4, 31), (12, 63)]
    assert column(call("sum", "v", range=4), tuples, SlideSpec(time=5)) == [
        (-6, 1),
        (-1, 6),
        (4, 24),
        (12, 32),
    ]


def test_nothing_is_promised_beyond_the_beginning_of_the_slot_that_is_open():
    kernel = OverAggregate((call("count", None, rows=1),), SlideSpec(time=5))
    assert kernel.passes(Frontier(13, 7)) == Frontier(10, -1)
    assert kernel.passes(Frontier(-1, 7)) == Frontier(-5, -1)
    assert kernel.passes(Frontier(-math.inf, -1)) == Frontier(-math.inf, -1)
    assert kernel.passes(END) == END
    rows = OverAggregate((call("count", None, rows=1),), SlideSpec(rows=5))
    assert rows.passes(Frontier(13, 7)) == Frontier(13, 7), "a slot of tuples is complete at once"


# ------------------------------------------------------------ EMIT EVERY


def test_partial_results_every_so_many_tuples():
    slide = SlideSpec(rows=4, emit=3, complete="complete")
    numbers = stream("time v\n" + "\n".join(f"{i} {i}" for i in range(1, 14)))
    assert column(call("sum", "v", rows=4), numbers, slide, columns="time r complete") == [
        (3, 6, False),
        (4, 10, True),
        (6, 20, False),
        (8, 30, True),
        (9, 35, False),
        (12, 50, True),
    ]


def test_partial_results_of_a_tumble():
    numbers = stream("time v\n" + "\n".join(f"{i} {i}" for i in range(1, 18)))
    for rows, slide, emit in ((1, 12, 4), (3, 12, 4), (1, 4, 12), (1, 8, 12)):
        wanted = SlideSpec(rows=slide, emit=emit, complete="complete")
        assert column(call("sum", "v", rows=rows), numbers, wanted, columns="time r complete") == [
            (i, sum(range(i - rows, i + 1)), i % slide == 0)
            for i in range(1, 18)
            if i % slide == 0 or i % emit == 0
        ]


def test_partial_results_every_so_often_about_the_last_tuple_of_the_slot_so_far():
    slide = SlideSpec(time=10, emit=4, complete="complete")
    tuples = stream("""
        time  key  v
        1     1    1
        3     2    2
        5     1    4
        13    1    8
        14    1    16
    """)
    assert column(call("sum", "v"), tuples, slide, 15, columns="time v r complete") == [
        (4, 1, 1, False),
        (4, 2, 2, False),
        (8, 2, 2, False),
        (8, 4, 5, False),
        (3, 2, 2, True),
        (5, 4, 5, True),
        # At 12 the slot has no tuple yet, and time does not come to 16 before the end.
        (14, 16, 29, True),
    ]


def test_an_instant_at_the_end_of_a_slot_gives_the_whole_result_only():
    slide = SlideSpec(time=6, emit=3, complete="complete")
    tuples = stream("time v\n 1 1\n 5 2\n 6 4")
    assert column(call("sum", "v"), tuples, slide, 20, columns="time r complete") == [
        (3, 1, False),
        (5, 3, True),
        (9, 7, False),
        (6, 7, True),
    ]


def test_the_end_of_the_input_makes_no_partial_results_of_tuples_that_waited_for_it():
    slide = SlideSpec(time=10, emit=2, complete="complete")
    kernel = Chain(Reorder(), OverAggregate((call("count", None),), slide))
    tuples = stream("time\n 1\n 7")
    out = run(kernel, [(tuples, Frontier(3)), (cut(tuples, 0, 0), END)])
    assert [(row["time"], row["r"], row["complete"]) for row in out] == [(2, 1, False), (7, 2, True)]


# ------------------------------------------------------------ errors


def test_only_what_is_given_out_must_fit_its_type():
    values = stream("""
        time  v
        1     9223372036854775807
        2     6
        3     -9
        4     0
    """)
    for slide in (SlideSpec(rows=4), SlideSpec(time=10)):
        for reach in ({"rows": 5}, {"range": 9}, {}):
            [(time, total)] = column(call("sum", "v", **reach), values, slide)
            assert (time, total) == (4, 2**63 - 4)


@pytest.mark.parametrize("reach", [{"rows": 5}, {"range": 9}, {}])
def test_a_result_of_a_slot_that_does_not_fit_is_an_error_when_the_slot_is_complete(reach):
    values = stream("""
        time  v
        1     9223372036854775807
        2     6
        3     -9
        4     4
    """)
    kernel, store = OverAggregate((call("sum", "v", **reach),), SlideSpec(time=10)), Store()
    for i in range(4):
        assert run(kernel, [(cut(values, i, i + 1), Frontier(i + 1, 0))]) == []
        store.write(kernel.snapshot())
    restored = OverAggregate((call("sum", "v", **reach),), SlideSpec(time=10))
    restored.restore(*store.read())
    for one in (kernel, restored):
        with pytest.raises(KernelError, match=r"sum\(v\) does not fit its type bigint") as caught:
            one.process(cut(values, 0, 0), END)
        assert caught.value.position == (4, 0, 3)


# ------------------------------------------------------------ state


def rows_kept(slide, monkeypatch, size=40_000):
    """The most rows of state along a stream of three times a window's size, in memory and in the store."""
    monkeypatch.setattr(state_chunks, "SPARE", 10)
    kernel, store = OverAggregate((call("sum", "v", rows=size - 1),), slide), Store()
    most = 0
    for start in range(0, 3 * size, 8_000):
        times = pa.array(range(start, start + 8_000))
        kernel.process(tuples_of({"time": times, "v": times}, 8_000), Frontier(start + 7_999, 0))
        store.write(kernel.snapshot())
        most = max(most, kernel.rows, store.rows)
    return most


def test_with_panes_a_window_of_40_000_that_slides_by_10_000_keeps_a_hundredth_at_most(monkeypatch):
    every_tuple = rows_kept(SlideSpec(rows=1), monkeypatch)
    assert every_tuple >= 39_999
    assert rows_kept(SlideSpec(rows=10_000), monkeypatch) <= every_tuple / 100
    assert rows_kept(SlideSpec(rows=10_000), monkeypatch) <= 2 * (3 + 1) + 20
    # Slide and size need not have a common divisor.
    assert rows_kept(SlideSpec(rows=10_001), monkeypatch) <= 2 * (2 * 4 + 1) + 20
    assert rows_kept(SlideSpec(rows=50_000), monkeypatch) <= 2 * 1 + 20, "a tumble keeps one row"


def test_of_slots_of_time_one_tuple_of_each_key_is_kept(monkeypatch):
    monkeypatch.setattr(state_chunks, "SPARE", 10)
    kernel, store = OverAggregate((call("sum", "v"),), SlideSpec(time=1000)), Store()
    for start in range(0, 5000, 100):
        times = pa.array(range(start, start + 100))
        keys = pa.array([t % 7 for t in times.to_pylist()])
        kernel.process(tuples_of({"time": times, "v": times, "key": keys}, 100), Frontier(start + 99, 0))
        store.write(kernel.snapshot())
        assert kernel.rows <= 7 + 7
        assert store.rows <= 2 * (2 * 7 + 10)
    kernel.process(tuples_of({"time": times[:0], "v": times[:0], "key": keys[:0]}, 0), END)
    store.write(kernel.snapshot())
    assert (kernel.rows, store.chunks) == (0, {})


# ------------------------------------------------------------ against the definition


def slots_of_tuples(rows, slide):
    """(row, stamp, complete) of those that give a result."""
    counts, chosen = {}, []
    for i, row in enumerate(rows):
        count = counts[row.get("key")] = counts.get(row.get("key"), 0) + 1
        if count % slide.rows == 0:
            chosen.append((i, row["time"], True))
        elif slide.emit and count % slide.emit == 0:
            chosen.append((i, row["time"], False))
    return chosen


def slots_of_time(rows, slide, reached):
    """(row, stamp, complete), by the instant when it is due; time has ``reached`` so far before the end."""
    events = []
    for key in {row.get("key") for row in rows}:
        mine = [(i, row["time"]) for i, row in enumerate(rows) if row.get("key") == key]
        for slot in {time // slide.time for _, time in mine}:
            inside = [(i, time) for i, time in mine if time // slide.time == slot]
            events.append(((slot + 1) * slide.time, *inside[-1], True))
            for instant in range(slot * slide.time + 1, (slot + 1) * slide.time):
                before = [i for i, time in inside if time < instant]
                if slide.emit and instant % slide.emit == 0 and instant <= reached and before:
                    events.append((instant, before[-1], instant, False))
    return [event[1:] for event in sorted(events)]


slides = st.one_of(
    st.builds(
        SlideSpec, rows=st.integers(1, 12), emit=st.none() | st.integers(1, 8), complete=st.just("complete")
    ),
    st.builds(
        SlideSpec, time=st.integers(1, 9), emit=st.none() | st.integers(1, 9), complete=st.just("complete")
    ),
)


@st.composite
def dense_batches(draw):
    """Many tuples of two keys that follow each other closely, and punctuation that lags behind them."""
    steps = draw(st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=10, max_size=50))
    rows, time = [], draw(st.integers(-30, 0))
    for number, (step, key) in enumerate(steps):
        time += step
        rows.append({"time": time, "key": int(key), "v": 2**number, "number": number})
    batches, start, frontier = [], 0, BEGINNING
    while start < len(rows):
        end = min(start + draw(st.integers(1, 20)), len(rows))
        columns = {name: pa.array([row[name] for row in rows[start:end]]) for name in rows[0]}
        lag = draw(st.sampled_from([0, 0, 1, 5]))
        frontier = max(frontier, Frontier(rows[end - 1]["time"] - lag, 0))
        batches.append((tuples_of(columns, end - start), frontier))
        start = end
    return rows, ended(*batches)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.integers(0, 11), min_size=1, max_size=2),
    st.sampled_from([{"rows": 5}, {"range": 4}, {}]),
    slides,
    dense_batches(),
)
def test_slots_panes_and_instants(reaches, other, slide, made):
    """Every sum tells exactly which tuples it is of."""
    rows, batches = made
    wanted = (
        *(call("sum", "v", rows=n, name=f"r{i}") for i, n in enumerate(reaches)),
        call("sum", "v", **other),
    )
    reached = max(frontier.time for _, frontier in batches[:-1])
    chosen = slots_of_tuples(rows, slide) if slide.rows else slots_of_time(rows, slide, reached)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state_chunks, "SPARE", 3)
        out = check(lambda: OverAggregate(wanted, slide), batches, end_apart=True)
    assert [(row["number"], row["time"], row["complete"]) for row in out] == chosen
    for one in wanted:
        name = one.aggregate.result
        assert [row[name] for row in out] == over(rows, one, [i for i, _, _ in chosen])


@settings(max_examples=150, deadline=None)
@given(calls(), slides, ordered_batches())
def test_contract_and_definition(wanted, slide, made):
    rows, batches = made
    reached = max(frontier.time for _, frontier in batches[:-1])
    if slide.rows:
        chosen = slots_of_tuples(rows, slide)
    else:
        reached = min(reached, 200)
        batches = [(tuples, min(frontier, Frontier(200, 0))) for tuples, frontier in batches[:-1]] + batches[
            -1:
        ]
        chosen = slots_of_time(rows, slide, reached)
    expected = {}
    try:
        for one in wanted:
            expected[one.aggregate.result] = over(rows, one, [i for i, _, _ in chosen])
    except DoesNotFitError:
        with pytest.raises(KernelError):
            run(OverAggregate(wanted, slide), batches)
        return
    magnitude = max((abs(row["f"]) for row in rows if row["f"] and math.isfinite(row["f"])), default=0.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state_chunks, "SPARE", 3)
        out = check(lambda: OverAggregate(wanted, slide), batches, magnitude, end_apart=True)
    assert [(row["number"], row["time"], row["complete"]) for row in out] == chosen
    for name, results_ in expected.items():
        for row, exact in zip(out, results_, strict=True):
            assert close(row[name], exact, magnitude), (name, row, exact)


def over_of(rows, one, chosen):
    """The definition for some of the rows, so that others need not fit their type."""
    out = {}
    for i in set(chosen):
        mine = [row for row in rows[: i + 1] if row.get("key") == rows[i].get("key")]
        out[i] = over(mine, one, last_only=True)[-1]
    return [out[i] for i in chosen]


@settings(max_examples=30, deadline=None)
@given(st.randoms(), st.integers(0, 20), slides)
def test_disorder_within_the_slack_makes_no_difference(random, slack, slide):
    tuples = stream("time key v number\n" + "\n".join(f"{i // 2} {i % 3} {i * i} {i}" for i in range(40)))
    wanted = (call("sum", "v", range=4, name="a"), call("last", "v", rows=2, name="b"))
    slide = SlideSpec(slide.rows, slide.time, None if slide.time else slide.emit, "complete")

    def make():
        return Chain(Reorder(), OverAggregate(wanted, slide))

    expected = run(make(), [(tuples, END)])
    arrival = sorted(range(40), key=lambda i: i // 2 + random.uniform(0, slack))
    batches, seen = [], -(10**6)
    for start in range(0, 40, 10):
        part = tuples.take(np.array(arrival[start : start + 10]))
        seen = max(seen, int(part.time.max()))
        batches.append((part, Frontier(seen - slack - 1, 0)))
    same_rows(check(make, ended(*batches), end_apart=True), expected)


def test_strings_go_through_panes():
    words = stream(
        """
        time  w
        1     pear
        2     apple
        3     fig
        4     -
        5     zebra
        6     kiwi
    """,
        w=STRING,
    )
    wanted = (
        call("min", "w", STRING, rows=3, name="a"),
        call("last", "w", STRING, rows=3, name="b"),
        call("count", "w", rows=3, name="c"),
        call("first", "w", STRING, rows=3, name="d"),
    )
    assert column(wanted, words, SlideSpec(rows=2), columns="a b c d") == [
        ("apple", "apple", 2, "pear"),
        ("apple", None, 3, "pear"),
        ("fig", "kiwi", 3, "fig"),
    ]


def test_an_empty_batch_may_declare_its_columns_differently():
    """Nothing that Spark reads says that a key is not NULL; what it computes does."""
    kernel = OverAggregate((call("sum", "price"),), SlideSpec(time=5))
    assert run(kernel, [(BIDS, Frontier(9, 0))]) != []
    nothing = cut(BIDS, 0, 0)
    strict = pa.schema([field.with_nullable(False) for field in nothing.columns.schema])
    last = Tuples(nothing.columns.cast(strict), nothing.time, nothing.origin, nothing.number)
    assert results(kernel, (last, END), columns="time r") == [(6, 60), (9, 150)]
