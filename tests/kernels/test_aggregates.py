"""Every aggregate on every window that kernels have, against its definition."""

import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from checks import check, ended, results, stream, tuples_of
from definitions import aggregate, close
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.kernels.core import state_chunks
from millstream.kernels.core.kernel import END, Frontier
from millstream.kernels.over.over_aggregate import OverAggregate
from millstream.kernels.specs import AggregateSpec, Order, OverSpec, WindowSpec
from millstream.kernels.window_specs import SlidingWindows
from millstream.kernels.windows.window_aggregate import WindowAggregate

BIGINT, DOUBLE, STRING, DECIMAL = pa.int64(), pa.float64(), pa.string(), pa.decimal128(20, 2)
STRUCT = pa.struct({"a": BIGINT, "b": STRING})
LAST_FIRST = (Order(descending=True, nulls_first=False),)


def one(function, argument, type_=DOUBLE, **options):
    return AggregateSpec(function, argument, "r", type_, **options)


def over(spec, tuples, **reach):
    return [row[0] for row in results(OverAggregate((OverSpec(spec, **reach),)), (tuples, END), columns="r")]


# ------------------------------------------------------------ by hand

TEMPERATURES = stream(
    """
    time  key  t   room  n
    1     1    20  a     1
    2     1    22  b     3
    3     1    22  b     -
    4     1    -   c     6
    5     1    30  -     5
    """,
    t=DOUBLE,
    room=STRING,
)


def test_variance_over_the_last_rows():
    assert over(one("var_pop", "t"), TEMPERATURES, rows=1) == [0, 1, 0, 0, 0]
    assert over(one("var_samp", "t"), TEMPERATURES, rows=1) == [None, 2, 0, None, None]
    assert over(one("stddev_pop", "t"), TEMPERATURES, rows=1) == [0, 1, 0, 0, 0]


def test_percentiles_over_the_last_rows():
    assert over(one("percentile", "t", parameters=(0.5,)), TEMPERATURES, rows=2) == [20, 21, 22, 22, 26]
    quartiles = one("percentile", "t", pa.list_(DOUBLE), parameters=(0.25, 0.75))
    assert over(quartiles, TEMPERATURES)[-1] == [21.5, 24.0]
    top = one("percentile_disc", "t", parameters=(0.25,), order=LAST_FIRST)
    assert over(top, TEMPERATURES) == [20, 22, 22, 22, 30]


def test_the_mode_is_the_lowest_of_the_most_frequent():
    assert over(one("mode", "room", STRING), TEMPERATURES, rows=1) == ["a", "a", "b", "b", "c"]
    assert over(one("mode", "room", STRING, order=LAST_FIRST), TEMPERATURES, rows=1) == list("abbcc")


def test_what_is_collected_is_in_the_order_of_the_stream():
    assert over(one("listagg", "room", STRING, parameters=("-",)), TEMPERATURES)[-1] == "a-b-b-c"
    rooms = one("collect_list", "room", pa.list_(STRING), ignore_nulls=True)
    assert over(rooms, TEMPERATURES, rows=1) == [["a"], ["a", "b"], ["b", "b"], ["b", "c"], ["c"]]
    with_nulls = one("collect_list", "room", pa.list_(STRING))
    assert over(with_nulls, TEMPERATURES, rows=1)[-1] == ["c", None]


def test_the_room_of_the_highest_number():
    assert over(one("max_by", "room", STRING, others=("n",)), TEMPERATURES, rows=2) == list("abbcc")
    best = one("min_by", "room", pa.list_(STRING), others=("n",), parameters=(2,))
    assert over(best, TEMPERATURES)[-1] == ["a", "b"]


def test_distinct_values_count_once():
    assert over(one("count", "t", BIGINT, distinct=True), TEMPERATURES, rows=2) == [1, 2, 2, 1, 2]
    assert over(one("sum", "t", distinct=True), TEMPERATURES, rows=2) == [20, 42, 42, 22, 52]
    pairs = one("count", "t", BIGINT, others=("room",), distinct=True)
    assert over(pairs, TEMPERATURES) == [1, 2, 2, 2, 2]


def test_a_sum_that_does_not_fit_is_null_if_one_tries():
    values = stream("time v\n 1 9223372036854775807\n 2 1\n 3 -1\n 4 5")
    assert over(one("try_sum", "v", BIGINT), values, rows=1) == [2**63 - 1, None, 0, 4]


def test_large_numbers_have_an_infinite_variance_as_in_spark():
    values = stream("time v\n 1 1e300\n 2 -1e300\n 3 1\n 4 2", v=DOUBLE)
    assert over(one("var_pop", "v"), values, rows=1) == [0, math.inf, math.inf, 0.25]


def test_lists_and_structs_can_be_kept_and_compared():
    column = pa.array([{"a": 2, "b": None}, {"a": 1, "b": "x"}, None, {"a": 1, "b": "x"}], STRUCT)
    tuples = tuples_of({"time": pa.array([1, 2, 3, 4]), "v": column}, 4)
    assert over(one("min", "v", STRUCT), tuples)[-1] == {"a": 1, "b": "x"}
    assert over(one("max", "v", STRUCT), tuples)[-1] == {"a": 2, "b": None}
    assert over(one("last", "v", STRUCT), tuples, rows=0) == column.to_pylist()
    assert over(one("count", "v", BIGINT, distinct=True), tuples)[-1] == 2
    lists = pa.array([[1, None], [1], [1, None], []], pa.list_(BIGINT))
    tuples = tuples_of({"time": pa.array([1, 2, 3, 4]), "v": lists}, 4)
    assert over(one("min", "v", pa.list_(BIGINT)), tuples) == [[1, None], [1], [1], []]
    assert over(one("collect_set", "v", pa.list_(pa.list_(BIGINT))), tuples)[-1] == [[1, None], [1], []]


# ------------------------------------------------------------ against the definition

SPECIAL = [math.nan, math.inf, -math.inf, -0.0]
COLUMNS = {
    "f": (DOUBLE, st.one_of(st.integers(-40, 40).map(lambda n: n / 4), st.sampled_from(SPECIAL))),
    "g": (DOUBLE, st.integers(-10**6, 10**6).map(lambda n: 1e7 + n / 8)),
    "i": (BIGINT, st.one_of(st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1))),
    "h": (pa.int16(), st.integers(-4, 4)),
    "w": (STRING, st.text("abä", max_size=2)),
    "d": (DECIMAL, st.integers(-(10**19), 10**19).map(lambda n: Decimal(n).scaleb(-2))),
    "b": (pa.bool_(), st.booleans()),
}  # fmt: skip
SPECS = [
    *(one(name, "f") for name in ("var_pop", "var_samp", "stddev_pop", "stddev_samp", "kurtosis")),
    *(one(name, "g") for name in ("var_samp", "skewness", "kurtosis", "regr_sxx")),
    *(one(name, "f", others=("g",)) for name in ("covar_pop", "covar_samp", "corr", "regr_slope", "regr_r2")),
    one("regr_sxy", "g", others=("f",)),
    *(one(name, "i", BIGINT) for name in ("bit_and", "bit_or", "bit_xor", "try_sum", "mode")),
    one("bit_xor", "h", pa.int16()),
    one("try_avg", "d", pa.decimal128(24, 6)),
    one("min", "b", pa.bool_()),
    one("first", "w", STRING, condition="b"),
    one("last", "i", BIGINT, condition="b", ignore_nulls=True),
    one("min_by", "w", STRING, others=("f",)),
    one("max_by", "i", BIGINT, others=("w",)),
    one("max_by", "h", pa.list_(pa.int16()), others=("d",), parameters=(2,)),
    one("percentile", "f", parameters=(0.5,)),
    one("percentile", "f", pa.list_(DOUBLE), parameters=(0.0, 0.3, 1.0)),
    one("percentile", "g", parameters=(0.4,), order=LAST_FIRST),
    one("percentile_disc", "f", parameters=(0.4,)),
    one("percentile_disc", "g", parameters=(0.4,), order=LAST_FIRST),
    one("percentile_approx", "d", DECIMAL, parameters=(0.9,)),
    one("percentile_approx", "h", pa.list_(pa.int16()), parameters=(0.1, 0.5)),
    one("mode", "w", STRING),
    one("mode", "h", pa.int16(), order=LAST_FIRST),
    one("collect_list", "w", pa.list_(STRING)),
    one("collect_list", "d", pa.list_(DECIMAL), ignore_nulls=True, condition="b"),
    one("collect_set", "h", pa.list_(pa.int16()), ignore_nulls=True),
    one("listagg", "w", STRING, parameters=(", ",)),
    one("listagg", "w", STRING, parameters=("",), distinct=True),
    one("listagg", "w", STRING, parameters=("+",), others=("h",), order=LAST_FIRST),
    *(one("count", name, BIGINT, distinct=True) for name in ("f", "w", "d")),
    one("count", "h", BIGINT, others=("w",), distinct=True),
    one("sum", "h", BIGINT, distinct=True),
    one("avg", "h", distinct=True),
    one("var_pop", "g", distinct=True),
    one("corr", "g", others=("f",), distinct=True),
    one("percentile", "f", parameters=(0.5,), distinct=True),
    one("collect_list", "w", pa.list_(STRING), ignore_nulls=True, distinct=True),
]
REACHES = [{"rows": 0}, {"rows": 3}, {"range": 0}, {"range": 4}, {"range": 30}, {}]


@st.composite
def chosen_specs(draw):
    chosen = draw(st.lists(st.sampled_from(SPECS), min_size=1, max_size=4))
    return [AggregateSpec(**{**vars(spec), "result": f"r{i}"}) for i, spec in enumerate(chosen)]


@st.composite
def batches(draw, *, in_order):
    """Tuples in batches, in order or in some disorder, with frontiers that hold."""
    rows, time, made = [], 0, []
    for size in draw(st.lists(st.integers(0, 8), min_size=1, max_size=4)):
        batch = []
        for _ in range(size):
            time += draw(st.integers(0, 2))
            row = {name: draw(st.one_of(st.none(), values)) for name, (_, values) in COLUMNS.items()}
            late = 0 if in_order else draw(st.integers(0, 5))
            row |= {"time": time + 5 - late, "key": draw(st.sampled_from([0, 1, None]))}
            batch.append(row | {"number": len(rows) + len(batch)})
        rows += batch
        made.append((batch, Frontier(time + 5 if in_order else time, 0)))
    types = {"time": BIGINT, "key": BIGINT, "number": BIGINT, **{n: t for n, (t, _) in COLUMNS.items()}}
    tables = [
        (
            tuples_of({n: pa.array([row[n] for row in batch], t) for n, t in types.items()}, len(batch)),
            frontier,
        )
        for batch, frontier in made
    ]
    return rows, ended(*tables)


@settings(max_examples=120, deadline=None)
@given(chosen_specs(), st.lists(st.sampled_from(REACHES), min_size=4, max_size=4), batches(in_order=True))
def test_over_windows(specs, reaches, made):
    rows, given_ = made
    calls = tuple(OverSpec(spec, **reach) for spec, reach in zip(specs, reaches, strict=False))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state_chunks, "SPARE", 3)
        out = check(lambda: OverAggregate(calls), given_, magnitude=1e12)
    for call in calls:
        for i, row in enumerate(rows):
            content = [other for other in rows[: i + 1] if other["key"] == row["key"]]
            if call.rows is not None:
                content = content[-call.rows - 1 :]
            if call.range is not None:
                content = [other for other in content if other["time"] >= row["time"] - call.range]
            exact = aggregate(call.aggregate, content)
            assert close(out[i][call.aggregate.result], exact), (call, content, out[i], exact)


@settings(max_examples=120, deadline=None)
@given(chosen_specs(), st.integers(1, 6), st.integers(1, 6), batches(in_order=False))
def test_bracket_windows(specs, range_, slide, made):
    rows, given_ = made
    spec = WindowSpec(SlidingWindows(range_, slide), BIGINT, ("key_",), tuple(specs))
    given_ = [(_with_key(tuples), frontier) for tuples, frontier in given_]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state_chunks, "SPARE", 3)
        out = check(lambda: WindowAggregate(spec), given_, magnitude=1e12)
    for row in out:
        content = [
            other
            for other in rows
            if row["window_start"] <= other["time"] < row["window_end"] and other["key"] == row["key_"]
        ]
        content.sort(key=lambda other: (other["time"], other["number"]))
        assert content
        for wanted in specs:
            exact = aggregate(wanted, content)
            assert close(row[wanted.result], exact), (wanted, content, row, exact)


def _with_key(tuples):
    from dataclasses import replace

    from millstream.kernels.column_names import KEY

    return replace(tuples, columns=tuples.columns.append_column("key_", tuples.columns[KEY]))


# ------------------------------------------------------------ over a long time


def test_order_statistics_of_many_slides():
    random = np.random.default_rng(7)
    values, keys = random.integers(0, 300, 20_000), random.integers(0, 3, 20_000)
    calls = (
        OverSpec(AggregateSpec("percentile", "v", "a", DOUBLE, parameters=(0.5,)), rows=99),
        OverSpec(AggregateSpec("count", "v", "b", BIGINT, distinct=True), range=250),
    )
    kernel = OverAggregate(calls)
    out = {"a": [], "b": []}
    for start in range(0, 20_000, 1_000):
        part = slice(start, start + 1_000)
        columns = {"v": pa.array(values[part]), "key": pa.array(keys[part])}
        columns["time"] = pa.array(np.arange(start, start + 1_000))
        done = kernel.process(tuples_of(columns, 1_000), Frontier(start + 999, 0))
        for name in out:
            out[name] += done.columns[name].to_pylist()
    for i in range(0, 20_000, 487):
        mine = np.flatnonzero(keys[: i + 1] == keys[i])
        assert out["a"][i] == np.median(values[mine[-100:]])
        assert out["b"][i] == len(set(values[mine[mine >= i - 250]]))


def test_contents_that_have_left_their_windows_are_let_go(monkeypatch):
    """Few panes with many values: what counts is the values, not the panes."""
    monkeypatch.setattr(state_chunks, "SPARE", 100)
    specs = (AggregateSpec("percentile", "v", "a", DOUBLE, parameters=(0.5,)),)
    specs += (AggregateSpec("count", "v", "b", BIGINT, distinct=True, others=("w",)),)
    kernel = WindowAggregate(WindowSpec(SlidingWindows(20, 10), BIGINT, (), specs))
    for start in range(0, 2000, 10):
        times = np.repeat(np.arange(start, start + 10), 20)
        words = pa.array([f"w{i}" for i in range(start * 20, start * 20 + 200)])
        columns = {"time": pa.array(times), "v": pa.array(np.arange(200.0) + start), "w": words}
        kernel.process(tuples_of(columns, 200), Frontier(start + 10, 0))
        assert all(len(trail._rows.columns[0]) <= 2 * 3 * 200 + 200 for trail in kernel._trails)
        assert len(kernel._measures[1].columns["w"].dictionary) <= 2 * 3 * 200 + 400


@pytest.mark.slow
def test_ten_million_slides_of_a_variance_do_not_rot():
    random = np.random.default_rng(5)
    kernel = OverAggregate((OverSpec(one("var_pop", "v"), rows=999),))
    count, done, tail = 500_000, 0, np.zeros(0)
    while done < 10_000_000:
        values = 1e9 + random.normal(size=count)
        columns = {"time": pa.array(np.arange(done, done + count)), "v": pa.array(values)}
        out = kernel.process(tuples_of(columns, count), Frontier(done + count, 0))
        done += count
        recent = np.concatenate([tail, values])
        for row in range(count - 1000, count, 100):
            window = recent[len(tail) + row + 1 - 1000 : len(tail) + row + 1]
            if len(window) == 1000:
                exact = aggregate(one("var_pop", "v"), [{"v": value} for value in window.tolist()])
                assert math.isclose(out.columns["r"][row].as_py(), exact, rel_tol=1e-9)
        tail = values[-1000:]
