import pyarrow as pa
import pytest
from checks import Store, check, ended, results, rows, stream, tuples_of
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.kernels.core import state_chunks
from millstream.kernels.core.kernel import END, Frontier
from millstream.kernels.relational.stream_union import StreamUnion


def test_the_first_of_equal_tuples_passes_at_once():
    kernel = StreamUnion()
    first = stream("""
        time  key  v
        5     1    1
        5     2    2
        5     1    3
        6     1    4
    """)
    assert results(kernel, (first, Frontier(5, 0)), columns="v") == [(1,), (2,), (4,)]
    second = stream("time key v\n 6 1 5\n 5 2 6\n 7 1 7")
    assert results(kernel, (second, Frontier(7, 0)), columns="v") == [(7,)]
    assert kernel.process(stream("time key v\n 9 1 8"), END).columns["v"].to_pylist() == [8]
    assert kernel.rows == 0


def test_what_is_all_new_passes_untouched():
    tuples = stream("time key v\n 5 1 1\n 5 2 2")
    assert StreamUnion().process(tuples, Frontier(0, 0)) is tuples


def test_late_tuples_of_generous_streams_always_pass():
    tuples = stream("time key v hold\n 5 1 1 -\n 2 1 2 4\n 5 1 3 -\n 2 1 4 4")
    assert results(StreamUnion(), (tuples, END), columns="v") == [(1,), (2,), (4,)]


def test_state_is_bounded_by_what_may_still_come(monkeypatch):
    monkeypatch.setattr(state_chunks, "SPARE", 10)
    kernel, store = StreamUnion(), Store()
    for start in range(0, 5000, 100):
        times = pa.array(range(start, start + 100))
        kernel.process(tuples_of({"time": times, "key": times, "key2": times}, 100), Frontier(start + 50, 0))
        store.write(kernel.snapshot())
        assert kernel.rows <= 2 * 150 + 10
        assert store.rows <= 4 * 150 + 30


@st.composite
def arrivals(draw, is_float=False):
    promise, made, number = 0, [], 0
    for size, step in draw(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 3)), min_size=1, max_size=5)):
        times = draw(st.lists(st.integers(promise, promise + 3), min_size=size, max_size=size))
        keys = draw(st.lists(st.sampled_from([None, 0, 1]), min_size=size, max_size=size))
        columns = {
            "time": pa.array(times, pa.float64() if is_float else pa.int64()),
            "key": pa.array(keys, pa.int64()),
            "number": pa.array(range(number, number + size), pa.int64()),
            "k": pa.array(keys, pa.int64()),
        }
        number += size
        promise += step
        made.append((tuples_of(columns, size), Frontier(float(promise) if is_float else promise, 0)))
    return ended(*made)


@settings(max_examples=60, deadline=None)
@given(st.booleans().flatmap(arrivals))
def test_contract_and_definition(batches):
    expected, seen = [], set()
    for row in (row for tuples, _ in batches for row in rows(tuples)):
        if (row["time"], row["k"]) not in seen:
            seen.add((row["time"], row["k"]))
            expected.append(row["number"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state_chunks, "SPARE", 2)
        assert [row["number"] for row in check(StreamUnion, batches)] == expected
