import math

import numpy as np
import pyarrow as pa
import pytest
from checks import Store, check, ended, restored, results, rows, stream, tuples_of
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.kernels.core.kernel import END, Frontier
from millstream.kernels.core.reorder import Reorder
from millstream.kernels.core.tie_order import TieOrder


def test_tuples_wait_for_the_frontier():
    kernel = Reorder()
    first = stream("""
        time  v
        5     1
        3     2
        9     3
        4     4
    """)
    second = stream("""
        time  v  number
        6     5  4
        8     6  5
    """)
    assert results(kernel, (first, Frontier(5, 0)), columns="time v") == [(3, 2), (4, 4), (5, 1)]
    assert kernel.rows == 1
    assert results(kernel, (second, Frontier(7, 0)), columns="time v") == [(6, 5)]
    assert results(kernel, (second.take(np.array([], int)), END), columns="time v") == [(8, 6), (9, 3)]
    assert kernel.rows == 0


def test_ties_go_by_origin_and_then_by_arrival():
    both = stream("""
        time  origin  number  v
        1     1       0       1
        1     0       0       2
        1     1       1       3
        1     0       1       4
    """)
    assert results(Reorder(), (both, END), columns="v") == [(2,), (4,), (1,), (3,)]
    # Of time 1 only origin 0 is final: origin 0 may still send tuples, but they will come after its own.
    assert results(Reorder(), (both, Frontier(1, 0)), columns="v") == [(2,), (4,)]


def test_what_is_in_order_and_final_passes_untouched():
    tuples = stream("""
        time  v
        1     1
        2     2
    """)
    kernel = Reorder()
    assert kernel.process(tuples, Frontier(2, 0)) is tuples
    assert kernel.snapshot().added == {}


def test_late_tuples_of_generous_streams_are_dropped():
    tuples = stream("""
        time  hold  v
        7     -     1
        2     6     2
        8     -     3
    """)
    assert results(Reorder(), (tuples, END), columns="time v") == [(7, 1), (8, 3)]


def test_a_chunk_is_written_once_and_goes_when_all_of_it_is_final():
    kernel, store = Reorder(), Store()
    for time, frontier in ((5, 1), (7, 2), (9, 5), (9, 6), (9, 9)):
        kernel.process(stream(f"time v\n {time} 0\n {time + 1} 0"), Frontier(frontier, 0))
        store.write(kernel.snapshot())
        if frontier == 5:
            assert store.rows == 6, "half of the first chunk is still needed"
        if frontier == 6:
            assert sorted(store.chunks) == ["waiting-000000001", "waiting-000000002", "waiting-000000003"]
    kernel.process(stream("time v\n 10 0"), END)
    store.write(kernel.snapshot())
    assert store.chunks == {}


def test_ties_at_the_frontier_are_kept_through_a_restart():
    tuples = stream("""
        time  v
        4     2
        4     1
    """)
    nothing = tuples.take(np.array([], int))
    batches = [(tuples, Frontier(4, 0)), (nothing, Frontier(4, 0)), (nothing, END)]
    found = restored(lambda: TieOrder(("v",), ((0, 9),)), batches, {1})
    assert [row["v"] for row in found] == [1, 2]


def test_memory_of_a_batch_is_let_go():
    kernel = Reorder()
    for start in range(0, 50_000, 1000):
        times = pa.array(range(start, start + 1000))
        kernel.process(tuples_of({"time": times, "v": times}, 1000), Frontier(start + 990, 0))
        kernel.snapshot()
    assert sum(run.tuples.columns.get_total_buffer_size() for run in kernel._runs) < 2000


@st.composite
def arrivals(draw, is_float=False):
    """Disordered tuples of up to three origins in batches, with the frontier of a slack."""
    slack = draw(st.integers(0, 8))
    plan = draw(st.lists(st.lists(st.tuples(st.integers(0, 2), st.integers(-5, 5)), max_size=6), max_size=6))
    latest, numbers, frontier, batches = [0, 0, 0], [0, 0, 0], Frontier(-100, 2), []
    for batch in plan:
        columns = {"time": [], "origin": [], "number": [], "v": []}
        for origin, step in batch:
            time = max(latest[origin] + step, latest[origin] - slack)
            latest[origin] = max(latest[origin], time)
            columns["time"].append(time)
            columns["origin"].append(origin)
            columns["number"].append(numbers[origin])
            columns["v"].append(10 * numbers[origin] + origin)
            numbers[origin] += 1
        least = min(latest) - slack
        # The tuples of an origin at its own promise may still come; of those before it, none.
        promised = Frontier(least, next(o for o in range(3) if latest[o] - slack == least))
        frontier = max(frontier, promised)
        types = {"time": pa.float64() if is_float else pa.int64()}
        arrays = {name: pa.array(values, types.get(name, pa.int64())) for name, values in columns.items()}
        shown = Frontier(float(frontier.time), frontier.origin) if is_float else frontier
        batches.append((tuples_of(arrays, len(batch)), shown))
    return batches


@settings(max_examples=60, deadline=None)
@given(st.booleans().flatmap(arrivals))
def test_contract(batches):
    if not batches:
        return
    batches = ended(*batches)
    out = check(Reorder, batches)
    everything = [row for tuples, _ in batches for row in rows(tuples)]
    assert out == sorted(everything, key=lambda row: (row["time"], row["origin"], row["number"]))


def test_doubles_have_an_order_too():
    times = [2.5, math.inf, -math.inf, math.nan, -0.0, 0.0, 1e-300]
    tuples = tuples_of({"time": pa.array(times), "v": pa.array(range(7))}, 7)
    kernel = Reorder()
    assert [v for (v,) in results(kernel, (tuples, Frontier(2.5, 0)), columns="v")] == [2, 4, 5, 6, 0]
    assert [v for (v,) in results(kernel, (tuples.take(np.array([], int)), END), columns="v")] == [1, 3]


@pytest.mark.parametrize("spread", [10, 10**6, 2**40])
def test_large_batches(spread):
    random = np.random.default_rng(1)
    times = random.integers(-spread, spread, 50_000)
    tuples = tuples_of({"time": pa.array(times), "v": pa.array(range(50_000))}, 50_000)
    out = Reorder().process(tuples, END)
    assert np.array_equal(out.columns["v"].to_numpy(), np.argsort(times, kind="stable"))
