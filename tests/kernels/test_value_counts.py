"""Windows that slide by tuples, over tuples in any order: bins of values instead of tuples that wait."""

import numpy as np
import pyarrow as pa
import pytest
from checks import Chain, Store, check, ended, results, run, stream, tuples_of
from definitions import aggregate
from hypothesis import event, given, settings
from hypothesis import strategies as st

from millstream.kernels.column_names import BY_KEY, BY_PART, INSIDE, PART, WHOLE
from millstream.kernels.core import state_chunks
from millstream.kernels.core.kernel import END, Frontier
from millstream.kernels.specs import AggregateSpec, WindowSpec
from millstream.kernels.window_specs import TupleSlideWindows
from millstream.kernels.windows.arrival_numbers import ArrivalNumbers
from millstream.kernels.windows.window_aggregate import WindowAggregate

BIGINT, DOUBLE, STRING = pa.int64(), pa.float64(), pa.string()
LEAST, MOST = -(2**63), 2**63 - 1
COUNT = AggregateSpec("count", None, "n", BIGINT)
SUM = AggregateSpec("sum", "v", "total", BIGINT)


def windows(placing, *aggregates, group_by=(), edges=BIGINT):
    """The kernels of such windows, as a stage has them."""
    spec = WindowSpec(placing, edges, group_by, aggregates or (COUNT, SUM), edges)
    marks = () if placing.by_rank else (ArrivalNumbers(placing.every, placing.per),)
    return Chain(*marks, WindowAggregate(spec))


def test_q3_tuples_in_disorder_are_in_all_windows_that_reach_them():
    """As in figure 4 of the Window-ID paper: the tuple at 2 comes last, and is in the windows 2, 3 and 4."""
    tuples = stream("time v\n 1 1\n 3 2\n 4 4\n 7 8\n 2 16")
    kernel = windows(TupleSlideWindows(4, 1, by_rank=True))
    assert results(kernel, (tuples, Frontier(4, 0)), columns="wid total") == [(1, 1), (2, 17), (3, 19)]
    assert results(kernel, (tuples.take(tuples.time < 0), END), columns="wid total") == [(4, 23), (7, 12)]


def test_the_last_bins_before_punctuation_are_the_base_of_later_ones():
    kernel = windows(TupleSlideWindows(10, 1, by_rank=True))
    first, second = stream("time v\n 3 1\n 1 2"), stream("time v number\n 9 4 3\n 5 8 4")
    assert results(kernel, (first, Frontier(5, 0)), columns="wid total") == [(1, 2), (3, 3)]
    assert results(kernel, (second, Frontier(12, 0)), columns="wid total") == [(5, 11), (9, 15)]


def test_a_bin_is_there_until_punctuation_is_beyond_the_last_window_that_may_have_it():
    """Of range 4: the tuple at 1 can be in a window at 4, and a tuple of that value may still come."""
    kernel = windows(TupleSlideWindows(4, 1, by_rank=True))
    results(kernel, (stream("time v\n 1 1"), Frontier(4, 0)), columns="wid total")
    late = stream("time v number\n 4 2 1\n 5 4 2")
    assert results(kernel, (late, END), columns="wid total") == [(4, 3), (5, 6)]


def test_ranks_are_those_of_all_tuples_however_they_come():
    """In the order of time: 1 2 2 3 5 6, of which the second and fourth end windows, and the sixth."""
    tuples = stream("time v\n 5 1\n 2 2\n 3 4\n 1 8\n 6 16\n 2 32")
    kernel = windows(TupleSlideWindows(2, 2, by_rank=True))
    assert results(kernel, (tuples, END), columns="wid n total") == [(2, 3, 42), (3, 3, 38), (6, 2, 17)]


def test_an_end_by_arrival_may_come_before_the_tuples_below_it():
    tuples = stream("time v\n 9 1\n 8 2\n 1 4\n 4 8\n 7 16")
    kernel = windows(TupleSlideWindows(4, 2, by_rank=False))
    assert results(kernel, (tuples, Frontier(8, 0)), columns="wid total") == [(4, 12)]
    assert results(kernel, (tuples.take(tuples.time < 0), END), columns="wid total") == [(8, 18)]


def test_tuples_that_are_not_wanted_have_ranks_all_the_same():
    tuples = stream(f"time v {INSIDE}\n 2 1 0\n 1 2 1\n 4 4 1\n 3 8 0", **{INSIDE: BIGINT})
    wanted = tuples.columns[INSIDE].cast(pa.bool_())
    columns = tuples.columns.set_column(tuples.columns.column_names.index(INSIDE), INSIDE, wanted)
    tuples = tuples.__class__(columns, tuples.time, tuples.origin, tuples.number)
    kernel = windows(TupleSlideWindows(9, 2, by_rank=True))
    assert results(kernel, (tuples, END), columns="wid total") == [(2, 2), (4, 6)]


def test_late_tuples_neither_count_nor_end_windows():
    tuples = stream("time v hold\n 2 1 -\n 1 2 5\n 3 4 -\n 4 8 -\n 5 16 -")
    kernel = windows(TupleSlideWindows(9, 2, by_rank=True))
    assert results(kernel, (tuples, END), columns="wid total") == [(3, 5), (5, 29)]
    kernel = windows(TupleSlideWindows(9, 2, by_rank=False))
    assert results(kernel, (tuples, END), columns="wid total") == [(4, 13)]


def test_values_at_the_limits():
    tuples = stream(f"time key v\n {MOST} 1 1\n {LEAST} 1 2\n {LEAST} 2 4\n 0 2 8")
    for per, expected in (
        (WHOLE, [(LEAST, 2), (LEAST, 4), (MOST, 1)]),
        (BY_KEY, [(0, 8), (MOST, 1)]),
    ):
        kernel = windows(TupleSlideWindows(3, 2, by_rank=True, per=per))
        out = results(kernel, (tuples, Frontier(1, 0)), columns="wid total")
        assert out + results(kernel, (tuples.take(tuples.time == 1), END), columns="wid total") == expected


def test_doubles_have_windows_too():
    tuples = stream("time v\n 0.5 1\n -0.25 2\n 0.25 4", time=DOUBLE)
    kernel = windows(TupleSlideWindows(0.5, 1, by_rank=True), edges=DOUBLE)
    assert results(kernel, (tuples, END), columns="wid total") == [(-0.25, 2), (0.25, 4), (0.5, 5)]


# ------------------------------------------------------------ state

STEPS = 20_000


def shuffled(values, keys):
    """Tuples whose values are far from being in order."""
    random = np.random.default_rng(5)
    times, key = random.integers(0, values, STEPS), random.integers(0, keys, STEPS)
    columns = {"time": times, "key": key, "v": times}
    return tuples_of({name: pa.array(column) for name, column in columns.items()}, STEPS)


@pytest.mark.parametrize("by_rank", [True, False])
@pytest.mark.parametrize("per", [WHOLE, BY_KEY])
def test_while_punctuation_is_awaited_there_are_bins_and_not_tuples(by_rank, per):
    """20,000 tuples have 300 values in 3 groups."""
    kernel, store, tuples = windows(TupleSlideWindows(50, 7, by_rank, per)), Store(), shuffled(300, 3)
    for start in range(0, STEPS, 2000):
        kernel.process(tuples.take(np.arange(start, start + 2000)), Frontier(-1, 0))
        store.write(kernel.snapshot())
        assert kernel.rows <= 2 * (3 + 3) * 300 + 3, "each bin at most twice, in runs not yet merged"
    assert store.rows <= 2 * (3 + 3) * 300 + state_chunks.SPARE * 3
    in_order = tuples.take(np.argsort(tuples.time, kind="stable"))
    out = run(kernel, [(tuples.take(tuples.time < 0), END)])
    if by_rank:
        assert out == run(windows(TupleSlideWindows(50, 7, by_rank, per)), [(in_order, END)])
    assert kernel.kernels[-1].rows == 0
    store.write(kernel.snapshot())
    assert {name[2:].split("-")[0] for name in store.chunks} <= {"partitions"}


def test_state_is_bounded_by_the_range_and_what_waits(monkeypatch):
    """Nothing is kept of partitions that end no window any more, but how many tuples they have had."""
    monkeypatch.setattr(state_chunks, "SPARE", 10)
    kernel, store = windows(TupleSlideWindows(100, 3, by_rank=True, per=BY_KEY), SUM), Store()
    random = np.random.default_rng(2)
    for start in range(0, 5000, 50):
        times = start + random.permutation(50)
        columns = {"time": times, "v": times, "key": start // 10 + times % 5}
        batch = tuples_of({name: pa.array(column) for name, column in columns.items()}, 50)
        kernel.process(batch, Frontier(start + 30, 0))
        store.write(kernel.snapshot())
        assert kernel.rows <= 200
        partitions = [table.num_rows for name, table in store.read()[1].items() if "partitions" in name]
        assert store.rows - sum(partitions) <= 2 * 200 + 20


# ------------------------------------------------------------ against the definition

AGGREGATES = [
    COUNT,
    AggregateSpec("sum", "i", "sum", BIGINT),
    AggregateSpec("min", "i", "min", BIGINT),
    AggregateSpec("first", "i", "first", BIGINT),
    AggregateSpec("last", "w", "last", STRING, ignore_nulls=True),
    AggregateSpec("collect_list", "w", "list", pa.list_(STRING), ignore_nulls=True),
    AggregateSpec("percentile", "i", "median", DOUBLE, parameters=(0.5,)),
]


@st.composite
def slides(draw):
    lengths = st.one_of(st.integers(1, 4), st.sampled_from([7, 20]))
    per = draw(st.sampled_from([WHOLE, BY_KEY, BY_PART]))
    return TupleSlideWindows(draw(lengths), draw(st.integers(1, 4)), draw(st.booleans()), per)


@st.composite
def arrivals(draw):
    """Tuples in any order above what has been promised, often of the same value."""
    made, promise, number = [], 0, 0
    spread = draw(st.sampled_from([2, 12]))
    for size, step in draw(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 8)), min_size=1, max_size=5)):
        batch = []
        for _ in range(size):
            key = draw(st.sampled_from([None, 0, 1, 2]))
            row = {"time": promise + draw(st.integers(0, spread)), "number": number, "key": key}
            row |= {"i": draw(st.one_of(st.none(), st.integers(-9, 9))), "w": draw(st.sampled_from("abc"))}
            row |= {"g": f"g{key}", PART: 7 if key in (0, 1) else None, INSIDE: draw(st.integers(0, 3)) > 0}
            batch.append(row)
            number += 1
        promise += step
        made.append((batch, Frontier(promise, 0)))
    return made


TYPES = {"time": BIGINT, "number": BIGINT, "key": BIGINT, "i": BIGINT, "w": STRING, "g": STRING}
TYPES |= {PART: BIGINT, INSIDE: pa.bool_()}


def batches_of(made, slide):
    names = [name for name in TYPES if name != PART or slide.per == BY_PART]
    batches = []
    for batch, frontier in made:
        columns = {name: pa.array([row[name] for row in batch], TYPES[name]) for name in names}
        batches.append((tuples_of(columns, len(batch)), frontier))
    return batches


def windows_by_definition(slide, rows, aggregates):
    """Rows (end, group, results) in order; the rows are given as they arrive."""
    column = {WHOLE: None, BY_KEY: "key", BY_PART: PART}[slide.per]
    out = []
    for partition in {row.get(column) for row in rows}:
        members = [row for row in rows if row.get(column) == partition]
        counted = sorted(members, key=lambda row: row["time"]) if slide.by_rank else members
        for end in {row["time"] for row in counted[slide.every - 1 :: slide.every]}:
            inside = [row for row in members if end - slide.range < row["time"] <= end and row[INSIDE]]
            for key in {row["key"] for row in inside}:
                content = [row for row in inside if row["key"] == key]
                content.sort(key=lambda row: (row["time"], row["number"]))
                place = end, key is not None, key or 0
                out.append((place, end, f"g{key}", *(aggregate(a, content) for a in aggregates)))
    return [row[1:] for row in sorted(out, key=lambda row: row[0])]


@settings(max_examples=60, deadline=None)
@given(slides(), st.lists(st.sampled_from(AGGREGATES), min_size=1, max_size=3, unique=True), arrivals())
def test_contract_and_definition(slide, aggregates, made):
    expected = windows_by_definition(slide, [row for batch, _ in made for row in batch], aggregates)
    event(f"windows: {min(len(expected), 3)} or more")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state_chunks, "SPARE", 3)
        out = check(lambda: windows(slide, *aggregates, group_by=("g",)), ended(*batches_of(made, slide)))
    names = ["window_end", "g", *(a.result for a in aggregates)]
    assert [tuple(row[name] for name in names) for row in out] == expected


@settings(max_examples=60, deadline=None)
@given(slides(), arrivals())
def test_a_window_is_out_as_soon_as_punctuation_is_beyond_it(slide, made):
    kernel = windows(slide, COUNT, group_by=("g",))
    rows, told = [], []
    for (batch, frontier), (tuples, _) in zip(made, batches_of(made, slide), strict=True):
        rows += batch
        told += results(kernel, (tuples, frontier), columns="wid g")
        assert told == [row for row in windows_by_definition(slide, rows, []) if row[0] < frontier.time]
