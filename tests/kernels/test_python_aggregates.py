"""Aggregates in Python: on every kind of window, what their definition says, whatever way is taken."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from checks import Batch, check, ended, restored, run, tuples_of
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.codegen.udas.uda_compiler import ACTIVE, BASE, CONTENT, RANGE, ROWS, RUNNING
from millstream.ir.python_aggregate import EXPIRE, PythonBody, examined
from millstream.kernels.core.kernel import Frontier, Kernel
from millstream.kernels.over.over_aggregate import OverAggregate
from millstream.kernels.python_udas.user_traceback import PythonAggregateError
from millstream.kernels.result_types import rows_type
from millstream.kernels.specs import AggregateSpec, OverSpec, OverUdaSpec, UdaSpec
from millstream.kernels.udas.active_uda import ActiveUda
from millstream.kernels.udas.over_uda import OverUda
from millstream.kernels.udas.stream_uda import BaseAggregate
from millstream.program.python_program import PythonProgram
from millstream.types import BIGINT, DOUBLE, STRING, Field
from oracle.python_aggregates import Instance, of_content
from tests.python_aggregates import Frequent, MySum, Newest, Range, Running, Words, middle

RETURNS: dict[Any, tuple[Field, ...]] = {
    MySum: (Field("s", BIGINT),),
    Words: (Field("w", STRING),),
    Range: (Field("low", BIGINT), Field("high", BIGINT)),
    Newest: (Field("n", BIGINT), Field("x", BIGINT)),
    Frequent: (Field("n", BIGINT), Field("x", BIGINT)),
    Running: (Field("n", BIGINT),),
    middle: (Field("m", BIGINT),),
}
EVERY = list(RETURNS)
GOING_ALONG = [MySum, Words, Newest, Frequent]

Tuple = tuple[int, int, int | None]
"""Key, time and argument."""


def body(subject: Any) -> PythonBody:
    python = examined(subject, subject.__name__, ["x"])
    return PythonBody(subject.__name__.lower(), (Field("x", BIGINT),), RETURNS[subject], python)


def user(subject: Any, mode: str) -> UdaSpec:
    return UdaSpec(
        PythonProgram.of(body(subject), mode), ("x",), tuple(f"r{i}" for i in range(len(RETURNS[subject])))
    )


@st.composite
def batches(draw: st.DrawFn) -> list[list[Tuple]]:
    keys, values = st.sampled_from([0, 0, 0, 1]), st.one_of(st.none(), st.integers(-3, 3))
    count = draw(st.sampled_from([0, 1, 3, 8, 12, 16]))
    step = st.tuples(keys, st.sampled_from([0, 0, 1, 1, 4]), values)
    steps = draw(st.lists(step, min_size=count, max_size=count))
    time, rows = 0, []
    for key, step, value in steps:
        time += step
        rows.append((key, time, value))
    cuts = sorted(draw(st.lists(st.integers(0, len(rows)), min_size=1, max_size=4)))
    bounds = [0, *cuts, len(rows)]
    return [rows[a:b] for a, b in itertools.pairwise(bounds)]


def as_batches(parts: list[list[Tuple]]) -> list[Batch]:
    out, number, time = [], 0, 0
    for part in parts:
        columns = {
            "key": pa.array([key for key, _, _ in part], pa.int64()),
            "x": pa.array([x for _, _, x in part], pa.int64()),
            "time": pa.array([t for _, t, _ in part], pa.int64()),
            "number": pa.array(np.arange(number, number + len(part)), pa.int64()),
        }
        time = part[-1][1] if part else time
        number += len(part)
        out.append((tuples_of(columns, len(part)), Frontier(time, 0)))
    return ended(*out)


def fitted(subject: Any, rows: list[Any]) -> list[Row]:
    """Rows as tuples, whatever they were returned as."""
    names = [column.name for column in RETURNS[subject]]
    if len(names) == 1:
        return [(row,) for row in rows]
    return [tuple(row[n] for n in names) if isinstance(row, dict) else tuple(row) for row in rows]


Row = tuple[Any, ...]
Inside = Callable[[list[Tuple], Tuple], list[Tuple]]
"""The content of a tuple's window, from the tuples of its partition so far."""


def contents(parts: list[list[Tuple]], inside: Inside) -> Iterator[Any]:
    """Each tuple with the content of its window."""
    history: dict[int, list[Tuple]] = {}
    for row in (row for part in parts for row in part):
        before = history.setdefault(row[0], [])
        before.append(row)
        yield row, inside(before, row)


def by_definition(subject: Any, parts: list[list[Tuple]], inside: Inside, slide: int = 1) -> list[Row]:
    """(time, argument, *result) for every row that is returned."""
    one = body(subject)
    instances: dict[int, Instance] = {}
    windows: dict[int, list[tuple[int, Tuple]]] = {}
    seen: dict[int, int] = {}
    out: list[Row] = []
    for number, (row, content) in enumerate(contents(parts, inside)):
        key, time, x = row
        seen[key] = seen.get(key, 0) + 1
        if one.python.way != EXPIRE:
            returned = of_content(one, [(value,) for _, _, value in content])
        else:
            window = windows.setdefault(key, [])
            while len(window) >= len(content):
                instances[key].leave(window.pop(0)[0])
                if not window:
                    del instances[key]
            window.append((number, row))
            instance = instances.setdefault(key, Instance(one))
            returned = [*instance.enter(number, (x,)), *instance.terminate()]
        if seen[key] % slide == 0:
            out += [(time, x, *values) for values in fitted(subject, returned)]
    return out


def results(make: Callable[[], Kernel], parts: list[list[Tuple]]) -> list[Row]:
    rows = check(make, as_batches(parts))
    return [(r["time"], r["x"], *(v for n, v in r.items() if n.startswith("r"))) for r in rows]


@pytest.mark.parametrize("subject", GOING_ALONG)
@settings(max_examples=40, deadline=None)
@given(parts=batches(), size=st.integers(0, 3), slide=st.integers(1, 3))
def test_rows(subject: Any, parts: list[list[Tuple]], size: int, slide: int) -> None:
    slide = min(slide, size + 1)
    spec = OverUdaSpec(user(subject, ROWS), rows=size, slide=slide)
    expected = by_definition(subject, parts, lambda before, row: before[-size - 1 :], slide)
    assert results(lambda: OverUda([spec]), parts) == expected


@pytest.mark.parametrize("subject", GOING_ALONG)
@settings(max_examples=40, deadline=None)
@given(parts=batches(), size=st.integers(0, 4))
def test_range(subject: Any, parts: list[list[Tuple]], size: int) -> None:
    spec = OverUdaSpec(user(subject, RANGE), range=size)
    expected = by_definition(subject, parts, lambda before, row: [b for b in before if b[1] >= row[1] - size])
    assert results(lambda: OverUda([spec]), parts) == expected


@pytest.mark.parametrize("subject", [MySum, Words, Range, Frequent])
@settings(max_examples=40, deadline=None)
@given(parts=batches())
def test_unbounded(subject: Any, parts: list[list[Tuple]]) -> None:
    spec = OverUdaSpec(user(subject, RUNNING))
    expected = by_definition(subject, parts, lambda before, row: before)
    assert results(lambda: OverUda([spec]), parts) == expected


@settings(max_examples=40, deadline=None)
@given(parts=batches())
def test_base(parts: list[list[Tuple]]) -> None:
    """Of a base aggregate what the last tuple returns goes out."""
    expected = by_definition(Running, parts, lambda before, row: before)
    assert results(lambda: BaseAggregate([user(Running, BASE)]), parts) == expected


@pytest.mark.parametrize("subject", EVERY)
@settings(max_examples=40, deadline=None)
@given(parts=batches(), size=st.integers(0, 3))
def test_the_content_of_windows(subject: Any, parts: list[list[Tuple]], size: int) -> None:
    program = PythonProgram.of(body(subject), CONTENT)
    spec = AggregateSpec("user", "x", "r", rows_type(program), parameters=(program,))
    rows = check(lambda: OverAggregate((OverSpec(spec, rows=size),)), as_batches(parts))
    expected = [
        fitted(subject, of_content(body(subject), [(x,) for _, _, x in content]))
        for _, content in contents(parts, lambda before, row: before[-size - 1 :])
    ]
    assert [[tuple(one.values()) for one in row["r"]] for row in rows] == expected


@pytest.mark.parametrize("subject", [MySum, Words, Range, middle])
@settings(max_examples=40, deadline=None)
@given(parts=batches(), size=st.integers(0, 4))
def test_active_expiration_gives_the_aggregate_of_what_is_left(
    subject: Any, parts: list[list[Tuple]], size: int
) -> None:
    spec = OverUdaSpec(user(subject, ACTIVE), range=size)
    happens = [(row[1], 0, number, row) for number, row in enumerate(r for part in parts for r in part)]
    happens += [(time + size, 1, number, row) for time, _, number, row in happens]
    window: dict[int, list[Tuple]] = {}
    expected: list[Row] = []
    for time, leaves, _, row in sorted(happens, key=lambda one: one[:3]):
        content = window.setdefault(row[0], [])
        if leaves:
            content.pop(0)
        else:
            content.append(row)
        returned = of_content(body(subject), [(x,) for _, _, x in content])
        expected += [(time, row[2], *values) for values in fitted(subject, returned)]
    assert results(lambda: ActiveUda(spec), parts) == expected


@settings(max_examples=40, deadline=None)
@given(parts=batches(), size=st.integers(0, 4))
def test_what_expire_returns_goes_out_under_active_expiration(parts: list[list[Tuple]], size: int) -> None:
    spec = OverUdaSpec(user(Newest, ACTIVE), range=size)
    happens = [(row[1], 0, number, row) for number, row in enumerate(r for part in parts for r in part)]
    happens += [(time + size, 1, number, row) for time, _, number, row in happens]
    instances: dict[int, Instance] = {}
    latest: dict[int, int] = {}
    expected: list[Row] = []
    for time, leaves, number, (key, _, x) in sorted(happens, key=lambda one: one[:3]):
        instance = instances.setdefault(key, Instance(body(Newest)))
        if leaves:
            returned = instance.leave(number)
            if latest[key] == number:
                del instances[key]
        else:
            latest[key] = number
            returned = instance.enter(number, (x,))
        expected += [(time, x, *values) for values in fitted(Newest, returned)]
    assert results(lambda: ActiveUda(spec), parts) == expected


class Doubles:
    """A sum of doubles depends on the order of additions."""

    def init(self) -> float:
        return 0.0

    def add(self, state: float, x: int) -> float:
        return state + x / 10

    def merge(self, a: float, b: float) -> float:
        return a + b


def test_after_a_restart_results_are_the_same_to_the_last_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RETURNS, Doubles, (Field("s", DOUBLE),))
    parts = [[(0, t, t * t * 37 % 11)] for t in range(40)]
    spec = OverUdaSpec(user(Doubles, ROWS), rows=6)
    expected = run(OverUda([spec]), as_batches(parts))
    assert restored(lambda: OverUda([spec]), as_batches(parts), set(range(40))) == expected


def test_only_instances_that_changed_are_written() -> None:
    kernel = OverUda([OverUdaSpec(user(MySum, ROWS), rows=100)])
    many = as_batches([[(key, key, 1) for key in range(50)], [(7, 60, 1)]])
    kernel.process(*many[0])
    assert {name: t.num_rows for name, t in kernel.snapshot().added.items()} == {
        "user0-instances-000000000": 50,
        "user0-rows0-000000000": 50,
    }
    kernel.process(*many[1])
    assert {name: t.num_rows for name, t in kernel.snapshot().added.items()} == {
        "user0-instances-000000001": 1,
        "user0-rows0-000000001": 1,
    }


class Locked:
    """A generator cannot be pickled."""

    def init(self) -> Any:
        return iter(x for x in ())

    def add(self, state: Any, x: int) -> Any:
        return state

    def result(self, state: Any) -> int:
        return 0


class Ratio:
    def init(self) -> int:
        return 12

    def add(self, state: int, x: int) -> int:
        return self.divided(state, x)

    def divided(self, state: int, x: int) -> int:
        return state // x


class Text:
    def init(self) -> str:
        return ""

    def add(self, state: str, x: int) -> str:
        return state + str(x)


def failure(subject: Any, *rows: Tuple) -> str:
    RETURNS[subject] = (Field("r", BIGINT),)
    kernel = OverUda([OverUdaSpec(user(subject, RUNNING))])
    batch = as_batches([list(rows)])[0]
    with pytest.raises(PythonAggregateError) as caught:
        (kernel.process(*batch), kernel.snapshot())
    del RETURNS[subject]
    return str(caught.value)


def test_a_failure_names_the_tuple_and_shows_the_users_own_frames() -> None:
    told = failure(Ratio, (0, 1, 3), (0, 2, 0)).splitlines()
    assert told[0].startswith("aggregate 'ratio': ZeroDivisionError: ")
    assert told[0].endswith(", for the arguments (0)")
    assert [line.split(", in ")[1] for line in told if " in " in line] == ["add", "divided"]
    assert told[-1].strip() == "return state // x"


def test_a_state_that_cannot_be_pickled_is_told() -> None:
    assert failure(Locked, (0, 1, 3)).startswith(
        "aggregate 'locked': its state cannot be pickled: TypeError: "
    )


def test_what_is_returned_has_to_be_of_the_declared_type() -> None:
    assert failure(Text, (0, 1, 3)) == (
        "aggregate 'text': it returned '3' (str), which is no bigint, for the arguments (3)"
    )
