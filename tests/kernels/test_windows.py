import datetime as dt
import math

import numpy as np
import pyarrow as pa
import pytest
from brute import DoesNotFitError, aggregate, close
from checks import Store, check, ended, results, run, stream, tuples_of
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.kernels.core import state_chunks
from millstream.kernels.core.kernel import END, Frontier
from millstream.kernels.core.kernel_errors import KernelError
from millstream.kernels.specs import AggregateSpec, WindowSpec
from millstream.kernels.window_specs import SlidingWindows
from millstream.kernels.windows.window_aggregate import WindowAggregate

BIGINT, DOUBLE, STRING = pa.int64(), pa.float64(), pa.string()
DAY = 86_400_000_000
LEAST, MOST = -(2**63), 2**63 - 1


def spec(*aggregates, range=4, slide=2, origin=0, group_by=("g",), edges=BIGINT):  # noqa: A002
    return WindowSpec(SlidingWindows(range, slide, origin), edges, group_by, aggregates or (COUNT,))


COUNT = AggregateSpec("count", None, "n", BIGINT)
SUM = AggregateSpec("sum", "v", "total", BIGINT)
BIDS = stream(
    """
    time  key  g  v
    1     1    a  10
    2     2    b  20
    3     1    a  -
    7     1    a  40
    """,
    g=STRING,
)


def test_a_window_has_the_tuples_of_its_extent():
    """Windows of 4 every 2: window 0 is [-2, 2), window 1 is [0, 4)."""
    kernel = WindowAggregate(spec(COUNT, SUM))
    assert results(kernel, (BIDS, END), columns="wid window_start window_end g n total") == [
        (0, -2, 2, "a", 1, 10),
        (1, 0, 4, "a", 2, 10),
        (1, 0, 4, "b", 1, 20),
        (2, 2, 6, "a", 1, None),
        (2, 2, 6, "b", 1, 20),
        (3, 4, 8, "a", 1, 40),
        (4, 6, 10, "a", 1, 40),
    ]


def test_a_result_is_stamped_with_the_end_of_its_window():
    kernel = WindowAggregate(spec())
    out = run(kernel, [(BIDS, Frontier(4, 0))])
    assert [(row["time"], row["origin"], row["number"]) for row in out] == [(2, 0, 0), (4, 0, 1), (4, 0, 2)]
    out = run(kernel, [(BIDS.take(np.array([], int)), END)])
    assert [(row["time"], row["number"]) for row in out] == [(6, 3), (6, 4), (8, 5), (10, 6)]


def test_a_result_comes_when_the_frontier_reaches_the_end_and_not_before():
    kernel, nothing = WindowAggregate(spec()), BIDS.take(np.array([], int))
    assert run(kernel, [(BIDS, Frontier(1, 5))]) == []
    assert results(kernel, (nothing, Frontier(2, 0)), columns="wid") == [(0,)]
    assert results(kernel, (nothing, Frontier(3, 9)), columns="wid") == []
    assert results(kernel, (nothing, Frontier(4, 0)), columns="wid") == [(1,), (1,)]
    assert kernel.passes(Frontier(4, 0)) >= Frontier(4, 10**6), "nothing more of that time will come"


def test_without_group_by_there_is_one_row_a_window():
    kernel = WindowAggregate(spec(SUM, range=5, slide=5, group_by=()))
    assert results(kernel, (BIDS.take(np.arange(4)), END), columns="wid total") == [(0, 10), (0, 20), (1, 40)]
    everything = stream("time v\n 1 10\n 2 20\n 7 40")
    kernel = WindowAggregate(spec(SUM, range=5, slide=5, group_by=()))
    assert results(kernel, (everything, END), columns="wid total") == [(0, 30), (1, 40)]


def test_tuples_between_windows_belong_to_none():
    tuples = stream("time v\n 0 1\n 7 2\n 8 4\n 9 8\n 10 16\n 19 32")
    kernel = WindowAggregate(spec(SUM, range=2, slide=10, group_by=()))
    assert results(kernel, (tuples, END), columns="window_start total") == [(8, 12), (18, 32)]
    assert kernel.rows == 0


def test_windows_have_an_origin():
    tuples = stream("time v\n 3 1\n 12 2")
    kernel = WindowAggregate(spec(SUM, range=10, slide=10, origin=3, group_by=()))
    assert results(kernel, (tuples, END), columns="wid window_start window_end total") == [(0, 3, 13, 3)]
    kernel = WindowAggregate(spec(SUM, range=10, slide=10, origin=-97, group_by=()))
    assert results(kernel, (tuples, END), columns="wid window_start total") == [(10, 3, 3)]


def test_edges_have_the_type_of_the_attribute():
    tuples = stream("time v\n 1000000 1")
    for type_, start in (
        (pa.timestamp("us", "UTC"), dt.datetime(1970, 1, 1, tzinfo=dt.UTC)),
        (pa.timestamp("us"), dt.datetime(1970, 1, 1)),  # noqa: DTZ001
        (pa.int32(), 0),
        (pa.decimal128(20, 0), 0),
    ):
        kernel = WindowAggregate(spec(range=2_000_000, slide=2_000_000, group_by=(), edges=type_))
        out = kernel.process(tuples, END).columns
        assert out["window_start"].type == out["window_end"].type == type_
        assert out["window_start"].to_pylist() == [start]
    kernel = WindowAggregate(spec(range=7 * DAY, slide=7 * DAY, group_by=(), edges=pa.date32()))
    out = kernel.process(stream(f"time v\n {3 * DAY} 1"), END).columns
    assert out["window_end"].to_pylist() == [dt.date(1970, 1, 8)]


def test_stretches_of_time_without_tuples_cost_nothing():
    tuples = stream(f"time v\n {-(2**62)} 1\n 0 2\n {2**62} 4")
    kernel = WindowAggregate(spec(SUM, range=2, slide=1, group_by=()))
    assert results(kernel, (tuples, END), columns="window_start total") == [
        (-(2**62) - 1, 1),
        (-(2**62), 1),
        (-1, 2),
        (0, 2),
        (2**62 - 1, 4),
        (2**62, 4),
    ]


def test_times_at_the_limits_do_not_overflow():
    tuples = stream(f"time v\n {LEAST} 1\n {MOST} 2")
    kernel = WindowAggregate(spec(SUM, range=10, slide=10, origin=3, group_by=()))
    out = results(kernel, (tuples, END), columns="window_start window_end total time")
    assert out == [(LEAST, LEAST + 1, 1, LEAST + 1), (MOST - 4, MOST, 2, MOST)]


def test_late_tuples_count_in_the_windows_that_are_still_open():
    """The tuple of time 3 came when 5 had been promised: of its windows, [0, 4) is over and [2, 6) is not."""
    early = stream("time key g v\n 1 1 a 1\n 5 1 a 10", g=STRING)
    late = stream("time key g v hold number\n 3 1 a 100 5 2\n 6 1 a 1000 - 3", g=STRING)
    kernel = WindowAggregate(spec(SUM))
    assert results(kernel, (early, Frontier(5, 0)), columns="window_end total") == [(2, 1), (4, 1)]
    assert results(kernel, (late, END), columns="window_end total") == [(6, 110), (8, 1010), (10, 1000)]


def test_late_tuples_do_not_wake_windows_that_are_over():
    late = stream("time key g v hold number\n 1 1 a 1 5 0", g=STRING)
    assert run(WindowAggregate(spec(SUM)), [(late, END)]) == []


def test_a_late_tuple_counts_from_its_own_hold_on_however_batches_are_cut():
    """The window that ends at 4 is over for the tuple of hold 5, though no frontier has said so yet."""
    tuples = stream("time key g v hold\n 1 1 a 1 -\n 5 1 a 10 -\n 3 1 a 100 5", g=STRING)
    kernel = WindowAggregate(spec(SUM))
    assert results(kernel, (tuples, END), columns="window_end total") == [(2, 1), (4, 1), (6, 110), (8, 10)]


def test_first_and_last_go_by_position_however_tuples_arrive():
    tuples = stream("""
        time  origin  number  v
        3     1       5       1
        3     0       9       2
        1     1       4       3
        3     1       6       4
    """)
    first, last = AggregateSpec("first", "v", "f", BIGINT), AggregateSpec("last", "v", "l", BIGINT)
    kernel = WindowAggregate(spec(first, last, group_by=(), range=4, slide=1))
    assert results(kernel, (tuples, END), columns="window_end f l") == [
        (2, 3, 3),
        (3, 3, 3),
        (4, 3, 4),
        (5, 3, 4),
        (6, 2, 4),
        (7, 2, 4),
    ]


def test_a_sum_that_does_not_fit_names_the_window():
    tuples = stream(f"time v\n 3 {MOST}\n 3 1")
    with pytest.raises(KernelError, match=r"sum\(v\) does not fit its type bigint") as caught:
        run(WindowAggregate(spec(SUM, group_by=())), [(tuples, END)])
    assert caught.value.position == (4, 1)


def test_keys_come_in_their_order():
    tuples = stream("time key g v\n 1 9 i 1\n 1 -5 e 1\n 1 - n 1\n 1 3 c 1\n 4 0 z 1\n 4 9 i 1", g=STRING)
    out = results(WindowAggregate(spec(range=6, slide=3)), (tuples, END), columns="wid g")
    windows = ["".join(g for wid, g in out if wid == w) for w in range(3)]
    assert windows == ["neci", "nezci", "zi"]


def test_state_is_bounded_by_the_open_windows(monkeypatch):
    monkeypatch.setattr(state_chunks, "SPARE", 10)
    words = AggregateSpec("max", "w", "m", STRING)
    kernel, store = WindowAggregate(spec(SUM, words, range=100, slide=10)), Store()
    for start in range(0, 5000, 50):
        times = pa.array(range(start, start + 50))
        texts = pa.array([f"w{time}" for time in times.to_pylist()])
        columns = {"time": times, "v": times, "key": times, "g": texts, "w": texts}
        kernel.process(tuples_of(columns, 50), Frontier(start + 49, 0))
        store.write(kernel.snapshot())
        assert kernel.rows <= 160
        assert len(kernel._log) <= 2 * 160 + 10
        assert len(kernel._keys) <= 3 * 160, "keys without panes are forgotten"
        assert store.rows <= 2 * 160 + 10
    kernel.process(tuples_of({name: column[:0] for name, column in columns.items()}, 0), END)
    store.write(kernel.snapshot())
    assert (kernel.rows, store.chunks) == (0, {})


def test_panes_of_many_batches_become_one():
    kernel = WindowAggregate(spec(SUM, range=1000, slide=1000))
    for time in range(200):
        kernel.process(stream(f"time key g v\n {time} 1 a 1", g=STRING), Frontier(time, 0))
    assert kernel.rows < 3
    assert results(kernel, (BIDS.take(np.array([], int)), END), columns="total") == [(200,)]


def test_great_disorder_makes_no_difference():
    times = np.repeat(np.arange(500), 4)
    columns = {"time": times, "v": times * times, "key": np.arange(2000) % 3, "number": np.arange(2000)}
    tuples = tuples_of({name: pa.array(column) for name, column in columns.items()}, 2000)
    wanted = spec(SUM, AggregateSpec("first", "v", "f", BIGINT), range=7, slide=2, group_by=())
    shuffled = tuples.take(np.random.default_rng(8).permutation(2000))
    assert run(WindowAggregate(wanted), [(shuffled, END)]) == run(WindowAggregate(wanted), [(tuples, END)])


# ------------------------------------------------------------ against the definition

values = {
    "i": (BIGINT, st.one_of(st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1))),
    "f": (DOUBLE, st.one_of(st.integers(-3, 3).map(float), st.floats(), st.sampled_from([1e300, -1e300]))),
    "w": (STRING, st.text(st.characters(codec="utf-8"), max_size=3)),
    "m": (BIGINT, st.integers(-(10**6), 10**6)),
}
functions = [
    ("count", None, BIGINT),
    ("count", "f", BIGINT),
    ("sum", "m", BIGINT),
    ("sum", "i", BIGINT),
    ("sum", "f", DOUBLE),
    ("avg", "f", DOUBLE),
    ("avg", "i", DOUBLE),
    ("min", "i", BIGINT),
    ("max", "f", DOUBLE),
    ("max", "w", STRING),
    ("min", "w", STRING),
    ("first", "i", BIGINT),
    ("last", "w", STRING),
    ("first", "f", DOUBLE),
]


@st.composite
def specs(draw):
    aggregates = []
    for i in range(draw(st.integers(1, 3))):
        function, argument, type_ = draw(st.sampled_from(functions))
        aggregates.append(AggregateSpec(function, argument, f"r{i}", type_, draw(st.booleans())))
    lengths = st.one_of(st.integers(1, 4), st.sampled_from([6, 9, 10, 12]))
    return spec(*aggregates, range=draw(lengths), slide=draw(lengths), origin=draw(st.integers(-20, 20)))


@st.composite
def arrivals(draw):
    """Tuples out of order in batches; some of those that come too late are held, as in generous streams."""
    made, promise, number = [], 0, 0
    for size, step in draw(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 8)), min_size=1, max_size=5)):
        batch = []
        for _ in range(size):
            row = {name: draw(st.one_of(st.none(), strategy)) for name, (_, strategy) in values.items()}
            time = promise + draw(st.integers(-8, 12))
            held = None if time >= promise else promise + draw(st.integers(0, 4))
            key = draw(st.sampled_from([None, 0, 1, 2]))
            row |= {"time": time, "hold": held, "key": key, "g": f"g{key}", "number": number}
            batch.append(row)
            number += 1
        promise += step
        made.append((batch, Frontier(promise, 0)))
    return made


def windows_by_definition(wanted, tuples):
    """Rows (end, wid, group, results), in order: for every window the tuples of its extent, by key."""
    out = []
    times = [row["time"] for row in tuples]
    low = (min(times, default=0) - wanted.assigner.origin) // wanted.assigner.slide - 2
    high = (
        max(times, default=0) + wanted.assigner.range - wanted.assigner.origin
    ) // wanted.assigner.slide + 2
    for wid in range(low, high):
        end = wanted.assigner.origin + (wid + 1) * wanted.assigner.slide
        inside = [
            row
            for row in tuples
            if end - wanted.assigner.range <= row["time"] < end and (row["hold"] is None or end > row["hold"])
        ]
        for key in sorted({row["key"] for row in inside}, key=lambda key: (key is not None, key)):
            content = [row for row in inside if row["key"] == key]
            content.sort(key=lambda row: (row["time"], row["number"]))
            values = [aggregate(a, [row[a.argument or "key"] for row in content]) for a in wanted.aggregates]
            out.append((end, wid, f"g{key}", *values))
    return out


def test_many_late_tuples():
    """Panes enter among others that are in their windows already, again and again, and of many keys."""
    random = np.random.default_rng(3)
    aggregates = [AggregateSpec("sum", "f", "a", DOUBLE), AggregateSpec("min", "i", "b", BIGINT)]
    aggregates += [AggregateSpec("last", "i", "c", BIGINT), AggregateSpec("sum", "i", "d", BIGINT)]
    wanted, promise, made, number = spec(*aggregates, range=30, slide=4), 0, [], 0
    for _ in range(40):
        batch = []
        for time in promise + random.integers(-30, 10, 12):
            hold = None if time >= promise else promise
            key, value = int(random.integers(3)), int(random.integers(-99, 99))
            row = {"time": int(time), "hold": hold, "key": key, "g": f"g{key}", "number": number}
            batch.append(row | {"i": value, "f": value / 4})
            number += 1
        promise += int(random.integers(8))
        made.append((batch, Frontier(promise, 0)))
    names = ["window_end", "wid", "g", *"abcd"]
    out = results(WindowAggregate(wanted), *ended(*batches_of(made)), columns=" ".join(names))
    assert out == windows_by_definition(wanted, [row for batch, _ in made for row in batch])


def batches_of(made):
    types = {"time": BIGINT, "hold": BIGINT, "key": BIGINT, "g": STRING, "number": BIGINT}
    types |= {name: type_ for name, (type_, _) in values.items()}
    batches = []
    for batch, frontier in made:
        columns = {name: pa.array([row.get(name) for row in batch], type_) for name, type_ in types.items()}
        batches.append((tuples_of(columns, len(batch)), frontier))
    return batches


@settings(max_examples=80, deadline=None)
@given(specs(), arrivals())
def test_contract_and_definition(wanted, made):
    batches = batches_of(made)
    tuples = [row for batch, _ in made for row in batch]
    try:
        expected = windows_by_definition(wanted, tuples)
    except DoesNotFitError:
        with pytest.raises(KernelError):
            run(WindowAggregate(wanted), ended(*batches))
        return
    magnitude = max((abs(row["f"]) for row in tuples if row["f"] and math.isfinite(row["f"])), default=0.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state_chunks, "SPARE", 3)
        out = check(lambda: WindowAggregate(wanted), ended(*batches), magnitude)
    names = ["window_end", "wid", "g", *(a.result for a in wanted.aggregates)]
    assert len(out) == len(expected)
    for row, exact in zip(out, expected, strict=True):
        for name, value in zip(names, exact, strict=True):
            assert close(row[name], value, magnitude), (name, row, exact)
