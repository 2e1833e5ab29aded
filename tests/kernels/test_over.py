import math

import numpy as np
import pyarrow as pa
import pytest
from brute import DoesNotFitError, close, over
from checks import Chain, Store, check, ended, results, run, stream, tuples_of
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.kernels.core import state_chunks
from millstream.kernels.core.kernel import END, Frontier
from millstream.kernels.core.kernel_errors import KernelError
from millstream.kernels.core.reorder import Reorder
from millstream.kernels.over.over_aggregate import OverAggregate
from millstream.kernels.specs import AggregateSpec, OverSpec

BIGINT, DOUBLE, STRING = pa.int64(), pa.float64(), pa.string()


def call(function, argument, type_=BIGINT, *, ignore_nulls=False, name="r", **reach):
    return OverSpec(AggregateSpec(function, argument, name, type_, ignore_nulls), **reach)


def column(calls, tuples, frontier=END, columns="r"):
    calls = calls if isinstance(calls, tuple) else (calls,)
    out = results(OverAggregate(calls), (tuples, frontier), columns=columns)
    return [row[0] for row in out] if " " not in columns else out


PRICES = stream("""
    time  key  price
    1     1    10
    2     2    20
    2     1    30
    5     1    -
    6     2    40
    7     1    50
""")


def test_rows_preceding_are_the_tuple_and_those_before_it_in_its_partition():
    assert column(call("sum", "price", rows=1), PRICES) == [10, 20, 40, 30, 60, 50]
    assert column(call("sum", "price", rows=0), PRICES) == [10, 20, 30, None, 40, 50]
    assert column(call("count", None, rows=2), PRICES) == [1, 1, 2, 3, 2, 3]


def test_range_preceding_reaches_back_in_time_from_the_tuple():
    assert column(call("sum", "price", range=3), PRICES) == [10, 20, 40, 30, 40, 50]
    assert column(call("count", "price", range=4), PRICES) == [1, 1, 2, 2, 2, 1]
    assert column(call("sum", "price", range=100), PRICES) == [10, 20, 40, 40, 60, 90]


def test_a_tuple_does_not_see_later_tuples_of_its_own_time():
    ties = stream("""
        time  v
        1     1
        1     2
        1     3
    """)
    assert column(call("sum", "v", range=0), ties) == [1, 3, 6]


def test_unbounded_preceding_is_everything_so_far():
    assert column(call("sum", "price"), PRICES) == [10, 20, 40, 40, 60, 90]
    assert column(call("max", "price"), PRICES) == [10, 20, 30, 30, 40, 50]
    assert column(call("first", "price"), PRICES) == [10, 20, 10, 10, 20, 10]
    assert column(call("last", "price"), PRICES) == [10, 20, 30, None, 40, 50]
    assert column(call("avg", "price", DOUBLE), PRICES) == [10, 20, 20, 20, 30, 30]


def test_first_and_last_take_nulls_into_account_unless_told_otherwise():
    values = stream("""
        time  v
        1     -
        2     7
        3     -
        4     8
        5     -
    """)
    assert column(call("first", "v", rows=1), values) == [None, None, 7, None, 8]
    assert column(call("first", "v", rows=1, ignore_nulls=True), values) == [None, 7, 7, 8, 8]
    assert column(call("last", "v", rows=1), values) == [None, 7, None, 8, None]
    assert column(call("last", "v", rows=1, ignore_nulls=True), values) == [None, 7, 7, 8, 8]
    assert column(call("last", "v", ignore_nulls=True), values) == [None, 7, 7, 8, 8]
    assert column(call("first", "v", range=1, ignore_nulls=True), values) == [None, 7, 7, 8, 8]


def test_nan_and_infinities_that_have_left_leave_no_trace():
    values = stream(
        """
        time  v
        1     1
        2     inf
        3     nan
        4     -inf
        5     1e300
        6     1e308
        7     1e308
        8     5
        9     6
        10    7
    """,
        v=DOUBLE,
    )
    sums = column(call("sum", "v", DOUBLE, rows=1), values)
    first, then = ["1.0", "inf", "nan", "nan", "-inf"], ["1.00000001e+308", "inf", "1e+308", "11.0", "13.0"]
    assert [str(value) for value in sums] == [*first, *then]


def test_min_and_max_have_sparks_order():
    values = stream(
        """
        time  v
        1     -0.0
        2     0.0
        3     nan
        4     1
        5     inf
    """,
        v=DOUBLE,
    )
    assert str(column(call("max", "v", DOUBLE, rows=1), values)) == "[-0.0, -0.0, nan, nan, inf]"
    assert str(column(call("min", "v", DOUBLE, rows=1), values)) == "[-0.0, -0.0, 0.0, 1.0, 1.0]"
    assert str(column(call("max", "v", DOUBLE), values)) == "[-0.0, -0.0, nan, nan, nan]"


def test_strings():
    words = stream(
        """
        time  w
        1     pear
        2     apple
        3     -
        4     zebra
        5     fig
    """,
        w=STRING,
    )
    assert column(call("min", "w", STRING, rows=2), words) == ["pear", "apple", "apple", "apple", "fig"]
    assert column(call("max", "w", STRING, range=1), words) == ["pear", "pear", "apple", "zebra", "zebra"]
    assert column(call("first", "w", STRING, rows=1), words) == ["pear", "pear", "apple", None, "zebra"]
    assert column(call("count", "w", rows=9), words) == [1, 2, 2, 3, 4]


def test_the_columns_of_the_input_stay():
    out = run(OverAggregate((call("count", None, rows=1),)), [(PRICES, END)])
    assert out[2] == {"time": 2, "origin": 0, "number": 2, "price": 30, "r": 2}


def test_several_windows_together():
    calls = (
        call("sum", "price", rows=1, name="a"),
        call("sum", "price", range=3, name="b"),
        call("sum", "price", name="c"),
        call("avg", "price", DOUBLE, rows=1, name="d"),
        call("min", "price", range=4, name="e"),
    )
    assert column(calls, PRICES, columns="a b c d e") == [
        (10, 10, 10, 10.0, 10),
        (20, 20, 20, 20.0, 20),
        (40, 40, 40, 20.0, 10),
        (30, 30, 40, 30.0, 10),
        (60, 40, 60, 30.0, 20),
        (50, 50, 90, 50.0, 50),
    ]


def test_a_range_may_reach_beyond_all_times():
    least, most = -(2**63), 2**63 - 1
    extremes = stream(f"time v\n {least} 1\n {least + 1} 2\n 0 4\n {most} 8")
    assert column(call("sum", "v", range=most), extremes) == [1, 3, 6, 12]
    assert column(call("sum", "v", range=2**70), extremes) == [1, 3, 7, 15]
    assert column(call("sum", "v", range=2**63), extremes) == [1, 3, 7, 12]
    assert column(call("sum", "v", range=2**64 - 1), extremes) == [1, 3, 7, 15]
    assert column(call("sum", "v", range=0.5), extremes) == [1, 2, 4, 8]


def test_times_may_be_doubles():
    times = pa.array([-math.inf, -0.0, 0.0, 0.1, 0.3, 0.4, math.inf, math.inf, math.nan, math.nan])
    tuples = tuples_of({"time": times, "v": pa.array([2**i for i in range(10)])}, 10)
    assert column(call("sum", "v", range=0.25), tuples) == [1, 2, 6, 14, 24, 48, 64, 192, 256, 768]


@pytest.mark.parametrize("reach", [{"rows": 5}, {"range": 5}, {}])
def test_a_sum_that_does_not_fit_is_an_error_that_names_the_tuple(reach):
    values = stream("""
        time  v
        3     9223372036854775807
        4     -5
        5     6
    """)
    with pytest.raises(KernelError, match=r"sum\(v\) does not fit its type bigint") as caught:
        column(call("sum", "v", **reach), values)
    assert caught.value.position == (5, 0, 2)
    assert (caught.value.function, caught.value.argument) == ("sum", "v")


def test_a_sum_may_pass_its_limits_on_the_way():
    values = stream("""
        time  v
        3     9223372036854775807
        4     9223372036854775807
        5     -5
    """)
    assert column(call("sum", "v", rows=0), values) == [2**63 - 1, 2**63 - 1, -5]
    assert column(call("avg", "v", DOUBLE, rows=5), values) == [2.0**63, 2.0**63, (2.0**64 - 7) / 3]


def test_types_that_cannot_be_kept_are_refused_at_once():
    with pytest.raises(NotImplementedError):
        OverAggregate((call("first", "v", pa.list_(pa.month_day_nano_interval()), rows=1),))


def test_state_is_bounded_by_the_windows(monkeypatch):
    monkeypatch.setattr(state_chunks, "SPARE", 10)
    kernel, store = OverAggregate((call("sum", "v", range=100), call("max", "w", STRING, range=50))), Store()
    for start in range(0, 5000, 100):
        times = pa.array(range(start, start + 100))
        words = pa.array([f"w{t}" for t in times.to_pylist()])
        columns = {"time": times, "v": times, "key": times, "w": words}
        kernel.process(tuples_of(columns, 100), Frontier(start + 99, 0))
        store.write(kernel.snapshot())
        assert kernel.rows <= 101
        assert len(kernel._sliding._log) <= 2 * 101 + 10
        assert len(kernel._sliding._keys) <= 2 * 101 + 10, "keys without rows are forgotten"
        assert store.rows <= 2 * 101 + 10
    kernel.process(tuples_of({name: column[:0] for name, column in columns.items()}, 0), END)
    store.write(kernel.snapshot())
    assert (kernel.rows, store.chunks) == (0, {})


def test_a_restart_after_any_batch_changes_nothing(monkeypatch):
    """The kernel goes on meanwhile, and removes rows that have left from its memory now and then."""
    monkeypatch.setattr(state_chunks, "SPARE", 10)
    wanted = (call("sum", "v", range=100),)
    kernel, store = OverAggregate(wanted), Store()
    for start in range(0, 1000, 20):
        times = pa.array(range(start, start + 20))
        batch = tuples_of({"time": times, "v": times, "number": times}, 20), Frontier(start + 19, 0)
        restarted = OverAggregate(wanted)
        restarted.restore(*store.read())
        assert run(restarted, [batch]) == run(kernel, [batch])
        store.write(kernel.snapshot())


def test_state_of_row_windows_is_bounded_by_the_keys(monkeypatch):
    monkeypatch.setattr(state_chunks, "SPARE", 10)
    kernel, store = OverAggregate((call("sum", "v", rows=3), call("min", "w", STRING))), Store()
    for start in range(0, 5000, 100):
        times = pa.array(range(start, start + 100))
        words = pa.array([f"w{9999 - t}" for t in times.to_pylist()])
        keys = pa.array([t % 7 for t in times.to_pylist()])
        tuples = tuples_of({"time": times, "v": times, "key": keys, "w": words}, 100)
        kernel.process(tuples, Frontier(start + 99, 0))
        store.write(kernel.snapshot())
        assert kernel.rows <= 3 * 7 + 7
        assert len(kernel._sliding._log) <= 2 * 3 * 7 + 10
        assert store.rows <= 2 * 3 * 7 + 10 + 2 * 7 + 10
        assert len(kernel._running._measures[0].column.dictionary) <= 2 * 7 + 10


# ------------------------------------------------------------ against the definition

values = {
    "i": (BIGINT, st.one_of(st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1))),
    "s": (pa.int16(), st.integers(-(2**15), 2**15 - 1)),
    "f": (DOUBLE, st.one_of(st.integers(-3, 3).map(float), st.floats(), st.sampled_from([1e300, -1e300]))),
    "w": (STRING, st.text(st.characters(codec="utf-8"), max_size=3)),
    "m": (BIGINT, st.integers(-(10**6), 10**6)),
}
functions = [
    ("count", "f", BIGINT),
    ("sum", "m", BIGINT),
    ("sum", "i", BIGINT),
    ("sum", "s", BIGINT),
    ("sum", "f", DOUBLE),
    ("avg", "f", DOUBLE),
    ("avg", "i", DOUBLE),
    ("min", "i", BIGINT),
    ("max", "f", DOUBLE),
    ("min", "f", DOUBLE),
    ("max", "w", STRING),
    ("min", "s", pa.int16()),
    ("first", "i", BIGINT),
    ("last", "w", STRING),
    ("first", "f", DOUBLE),
]


@st.composite
def calls(draw):
    made = []
    for i in range(draw(st.integers(1, 4))):
        function, argument, type_ = draw(st.sampled_from(functions))
        rows, range_ = draw(
            st.sampled_from([(None, None), (0, None), (1, None), (4, None), (None, 0), (None, 3), (None, 20)])
        )
        options = {"rows": rows, "range": range_, "ignore_nulls": draw(st.booleans())}
        made.append(call(function, argument, type_, name=f"r{i}", **options))
    return tuple(made)


@st.composite
def ordered_batches(draw, is_float=False):
    rows, time = [], 0
    for step in draw(st.lists(st.integers(0, 6).map(lambda s: max(s - 3, 0)), max_size=30)):
        time += step
        row = {name: draw(st.one_of(st.none(), strategy)) for name, (_, strategy) in values.items()}
        row |= {"time": time / 2 if is_float else time, "key": draw(st.sampled_from([0, 1, None]))}
        rows.append(row)
    types = {"time": DOUBLE if is_float else BIGINT, "key": BIGINT, **{n: t for n, (t, _) in values.items()}}
    cuts = sorted(draw(st.lists(st.integers(0, len(rows)), max_size=4)))
    batches, reached = [], -1
    for start, end in zip([0, *cuts], [*cuts, len(rows)], strict=True):
        arrays = {n: pa.array([row[n] for row in rows[start:end]], t) for n, t in types.items()}
        arrays["number"] = pa.array(range(start, end), BIGINT)
        times = [row["time"] for row in rows]
        low, high = (times[end - 1] if end else -1), (times[end] if end < len(rows) else 10**6)
        reached = max(reached, draw(st.sampled_from([low, high])))
        batches.append((tuples_of(arrays, end - start), Frontier(reached, 0)))
    return rows, ended(*batches)


@settings(max_examples=150, deadline=None)
@given(calls(), st.booleans().flatmap(ordered_batches))
def test_contract_and_definition(wanted, made):
    rows, batches = made
    expected = {}
    try:
        for one in wanted:
            expected[one.aggregate.result] = over(rows, one)
    except DoesNotFitError:
        with pytest.raises(KernelError):
            run(OverAggregate(wanted), batches)
        return
    magnitude = max((abs(row["f"]) for row in rows if row["f"] and math.isfinite(row["f"])), default=0.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state_chunks, "SPARE", 3)
        out = check(lambda: OverAggregate(wanted), batches, magnitude)
    assert len(out) == len(rows)
    for name, results_ in expected.items():
        for row, exact in zip(out, results_, strict=True):
            assert close(row[name], exact, magnitude), (name, row, exact)


@settings(max_examples=40, deadline=None)
@given(st.randoms(), st.integers(0, 20))
def test_disorder_within_the_slack_makes_no_difference(random, slack):
    """Invariant 7: Reorder before OverAggregate, tuples as much too late as the slack allows."""
    tuples = stream("time key v number\n" + "\n".join(f"{i // 2} {i % 3} {i * i} {i}" for i in range(40)))
    wanted = (call("sum", "v", range=4, name="a"), call("last", "v", rows=2, name="b"))

    def make():
        return Chain(Reorder(), OverAggregate(wanted))

    expected = run(make(), [(tuples, END)])
    arrival = sorted(range(40), key=lambda i: i // 2 + random.uniform(0, slack))
    batches, seen = [], -(10**6)
    for start in range(0, 40, 10):
        part = tuples.take(np.array(arrival[start : start + 10]))
        seen = max(seen, int(part.time.max()))
        batches.append((part, Frontier(seen - slack - 1, 0)))
    assert check(make, ended(*batches)) == expected


@pytest.mark.slow
def test_ten_million_slides_do_not_rot():
    random = np.random.default_rng(5)
    kernel = OverAggregate((call("sum", "v", DOUBLE, rows=999),))
    count, done, tail = 500_000, 0, np.zeros(0)
    while done < 10_000_000:
        values = random.normal(size=count) * 10.0 ** random.integers(-8, 9, count)
        columns = {"time": pa.array(np.arange(done, done + count)), "v": pa.array(values)}
        out = kernel.process(tuples_of(columns, count), Frontier(done + count, 0))
        done += count
        recent = np.concatenate([tail, values])
        for row in range(count - 1000, count, 10):
            end = len(tail) + row + 1
            exact = math.fsum(recent[end - 1000 : end])
            assert math.isclose(out.columns["r"][row].as_py(), exact, rel_tol=1e-9)
        tail = values[-1000:]
