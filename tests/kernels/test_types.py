"""Arguments of all types: whatever they are inside, what comes out is what went in."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from brute import DIGITS, DoesNotFitError, aggregate, over
from checks import check, ended, results, run, tuples_of
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.kernels.core.dictionary import Dictionary
from millstream.kernels.core.kernel import END, Frontier, Tuples
from millstream.kernels.core.kernel_errors import KernelError
from millstream.kernels.over.over_aggregate import OverAggregate
from millstream.kernels.specs import AggregateSpec, OverSpec, WindowSpec
from millstream.kernels.window_specs import SlidingWindows
from millstream.kernels.windows.window_aggregate import WindowAggregate

D = Decimal
ORDERED = [
    (pa.bool_(), [False, True]),
    (pa.int8(), [-128, 127]),
    (pa.int32(), [-(2**31), 2**31 - 1]),
    (pa.int64(), [-(2**63), 2**63 - 1]),
    (pa.float32(), [-1.5, 0.25]),
    (pa.date32(), [dt.date(1900, 1, 1), dt.date(2100, 1, 1)]),
    (pa.timestamp("us"), [dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1)]),  # noqa: DTZ001
    (
        pa.timestamp("us", "UTC"),
        [dt.datetime(1900, 1, 1, tzinfo=dt.UTC), dt.datetime(2100, 1, 1, tzinfo=dt.UTC)],
    ),
    (pa.duration("us"), [dt.timedelta(days=-3), dt.timedelta(seconds=5)]),
    (pa.decimal128(18, 2), [D("-9999999999999999.99"), D("0.01")]),
    (pa.decimal128(38, 4), [D("-1234567890123456789012345678901234.5678"), D("0.0001")]),
    (pa.string(), ["", "é", "\U0001f600"]),
    (pa.large_string(), ["a", "b"]),
    (pa.binary(), [b"", b"\x00", b"\xff"]),
    (pa.null(), []),
]


@pytest.mark.parametrize(("type_", "ordered"), ORDERED, ids=str)
@pytest.mark.parametrize("function", ["min", "max", "first", "last"])
def test_values_come_out_as_they_went_in(type_, ordered, function):
    content = [*ordered[::-1], None, *ordered, None, None, *ordered[:1]]
    tuples = tuples_of({"time": pa.array(range(len(content))), "v": pa.array(content, type_)}, len(content))
    spec = AggregateSpec(function, "v", "r", type_)
    calls = tuple(OverSpec(spec, *reach) for reach in ((1, None), (None, 2), (None, None)))
    halves = [(tuples.take(np.arange(3)), Frontier(2, 0)), (tuples.take(np.arange(3, len(content))), END)]
    rows = [{"time": i, "v": value} for i, value in enumerate(content)]
    for call in calls:
        kernel = OverAggregate((call,))
        assert kernel.process(*halves[0]).columns["r"].type == type_
        out = check(lambda call=call: OverAggregate((call,)), halves)
        assert [row["r"] for row in out] == over(rows, call)
    panes = WindowSpec(SlidingWindows(4, 2), pa.int64(), (), (spec,))
    for row in check(lambda: WindowAggregate(panes), halves):
        inside = [value for i, value in enumerate(content) if row["window_start"] <= i < row["window_end"]]
        assert row["r"] == aggregate(spec, inside)


decimals = {
    "short": (pa.decimal128(10, 2), pa.decimal128(20, 2), pa.decimal128(14, 6)),
    "edge": (pa.decimal128(18, 0), pa.decimal128(28, 0), pa.decimal128(22, 4)),
    "long": (pa.decimal128(19, 3), pa.decimal128(29, 3), pa.decimal128(23, 7)),
    "longest": (pa.decimal128(38, 0), pa.decimal128(38, 0), pa.decimal128(38, 4)),
}


@st.composite
def decimal_columns(draw, kind):
    type_, *_ = decimals[kind]
    most = 10**type_.precision - 1
    numbers = st.one_of(st.integers(-most, most), st.integers(-5, 5), st.sampled_from([most, -most]))
    content = draw(st.lists(st.one_of(st.none(), numbers), max_size=12))
    return [None if n is None else Decimal(n).scaleb(-type_.scale, DIGITS) for n in content]


def test_a_null_among_long_decimals_adds_nothing():
    type_, sum_type, _ = decimals["long"]
    content = pa.array([Decimal("1.000"), None, Decimal("2.500"), None], type_)
    tuples = tuples_of({"time": pa.array(range(4)), "v": content}, 4)
    kernel = OverAggregate((OverSpec(AggregateSpec("sum", "v", "r", sum_type), rows=2),))
    assert [str(row["r"]) for row in run(kernel, [(tuples, END)])] == ["1.000", "1.000", "3.500", "2.500"]


@settings(max_examples=60, deadline=None)
@given(st.data(), st.sampled_from(list(decimals)), st.sampled_from(["sum", "avg"]))
def test_sums_and_means_of_decimals_are_exact(data, kind, function):
    content = data.draw(decimal_columns(kind))
    type_, sum_type, mean_type = decimals[kind]
    spec = AggregateSpec(function, "v", "r", sum_type if function == "sum" else mean_type)
    rows = [{"time": i, "key": i % 2, "v": value} for i, value in enumerate(content)]
    columns = {name: pa.array([row[name] for row in rows], pa.int64()) for name in ("time", "key")}
    tuples = tuples_of(columns | {"v": pa.array(content, type_)}, len(rows))
    for reach in ((2, None), (None, 3), (None, None)):
        call = OverSpec(spec, *reach)
        try:
            expected = over(rows, call)
        except DoesNotFitError:
            with pytest.raises(KernelError, match="does not fit its type decimal"):
                run(OverAggregate((call,)), [(tuples, END)])
            continue
        middle = len(rows) // 2
        batches = [
            (tuples.take(np.arange(middle)), Frontier(middle, 0)),
            (tuples.take(np.arange(middle, len(rows))), END),
        ]
        out = check(lambda call=call: OverAggregate((call,)), batches)
        assert [row["r"] for row in out] == expected
    kernel = WindowAggregate(WindowSpec(SlidingWindows(6, 3), pa.int64(), ("k",), (spec,)))
    grouped = tuples.columns.append_column("k", columns["key"])
    tuples = Tuples(grouped, tuples.time, tuples.origin, tuples.number)
    windows = [(end, key) for end in range(3, len(rows) + 6, 3) for key in (0, 1)]
    inside = {w: [r["v"] for r in rows if w[0] - 6 <= r["time"] < w[0] and r["key"] == w[1]] for w in windows}
    try:
        expected = {window: aggregate(spec, values) for window, values in inside.items() if values}
    except DoesNotFitError:
        with pytest.raises(KernelError):
            run(kernel, [(tuples, END)])
    else:
        out = run(kernel, [(tuples, END)])
        assert {(row["window_end"], row["k"]): row["r"] for row in out} == expected


def test_means_are_rounded_half_up():
    tuples = tuples_of(
        {"time": pa.array([1, 2, 3]), "v": pa.array([D("0.1"), D("0.2"), D("-0.5")], pa.decimal128(3, 1))}, 3
    )
    call = OverSpec(AggregateSpec("avg", "v", "r", pa.decimal128(4, 1)), 1)
    out = run(OverAggregate((call,)), [(tuples, END)])
    assert [row["r"] for row in out] == [D("0.1"), D("0.2"), D("-0.2")]


def test_intervals_can_be_added_up():
    days = [dt.timedelta(days=1), None, dt.timedelta(days=2), dt.timedelta(microseconds=1)]
    tuples = tuples_of({"time": pa.array(range(4)), "v": pa.array(days, pa.duration("us"))}, 4)
    calls = tuple(OverSpec(AggregateSpec(f, "v", f, pa.duration("us")), 1) for f in ("sum", "avg"))
    assert results(OverAggregate(calls), (tuples, END), columns="sum avg") == [
        (days[0], days[0]),
        (days[0], days[0]),
        (days[2], days[2]),
        (days[2] + days[3], dt.timedelta(days=1, microseconds=1)),
    ]


def test_nothing_can_be_added_up():
    tuples = tuples_of({"time": pa.array(range(2)), "v": pa.nulls(2)}, 2)
    calls = tuple(OverSpec(AggregateSpec(f, "v", f, pa.float64()), 1) for f in ("sum", "avg"))
    assert results(OverAggregate(calls), (tuples, END), columns="sum avg") == [(None, None)] * 2


def test_what_has_no_sum_is_refused():
    tuples = tuples_of({"time": pa.array([1]), "v": pa.array(["a"])}, 1)
    with pytest.raises(NotImplementedError, match="sum of string"):
        run(OverAggregate((OverSpec(AggregateSpec("sum", "v", "r", pa.int64()), 1),)), ended((tuples, END)))


@settings(deadline=None)
@given(st.lists(st.lists(st.text(max_size=4), max_size=30), max_size=5))
def test_labels_are_in_the_order_of_the_values(batches):
    words = Dictionary(pa.string())
    seen = []
    for batch in batches:
        codes = words.codes(pa.array(batch, pa.string()))
        seen += [word for word in dict.fromkeys(batch) if word not in seen]
        assert [seen[code] for code in codes] == batch
        assert sorted(range(len(seen)), key=lambda c: words.labels[c]) == sorted(
            range(len(seen)), key=lambda c: seen[c].encode()
        )


def test_labels_do_not_run_out():
    """Always between the same two neighbours: halving leads to nothing after some thirty times."""
    words = Dictionary(pa.binary())
    content = [b"\x00", b"\xff"] + [b"\x80" * i + b"\x00" for i in range(1, 300)]
    for word in content:
        words.codes(pa.array([word]))
    order = sorted(range(len(content)), key=lambda code: content[code])
    assert (np.diff(words.labels[order]) > 0).all()
    for word in reversed([i.to_bytes(4) for i in range(3000)]):
        words.codes(pa.array([word]))
    values = words.values(np.arange(len(words)), np.ones(len(words), bool)).to_pylist()
    assert [values[code] for code in np.argsort(words.labels[: len(words)])] == sorted(values)
