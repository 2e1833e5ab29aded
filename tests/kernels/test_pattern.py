"""The kernel that searches for patterns: its contract, its promises, and how little it keeps."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from checks import check, ended, results, run, stream

from millstream.codegen.patterns.pattern_compiler import compile_pattern
from millstream.ir.pattern import Pattern
from millstream.kernels.column_names import KEY
from millstream.kernels.core.kernel import END, Frontier, Tuples
from millstream.kernels.patterns.pattern_match import PatternError, PatternMatch
from millstream.types import BIGINT, DOUBLE, STRING
from tests.codegen.patterns.forms import Patterns
from tests.codegen.patterns.running import spec_of, uncompiled


def falls() -> Pattern:
    """A value above 5, then smaller and smaller ones down to 2 or less."""
    made = Patterns("X *Y", v=BIGINT, name=STRING)
    x, y = made.variables()
    conditions = [x.v > 5, y.v < y.previous.v, y.last.v <= 2]
    return made.made(conditions, [x.v, y.last.v, made.measure("count", y), x.name])


def peaks() -> Pattern:
    """Some that rise, and one that is lower than the first of them."""
    made = Patterns("*A B", v=BIGINT, name=STRING)
    a, b = made.variables()
    return made.made([a.v > a.previous.v, b.v < a.first.v], [a.first.v, a.v, b.v, b.name])


def kernel(pattern: Pattern) -> PatternMatch:
    with uncompiled():
        return PatternMatch(spec_of(compile_pattern(pattern)))


FALLS = """
    time  number  key  v  name
    0     0       1    9  a
    0     1       2    7  b
    1     2       1    4  c
    1     3       2    6  d
    2     4       1    2  e
    3     5       2    1  f
    4     6       1    8  g
    5     7       1    1  h
    """


def test_a_match_is_stamped_as_its_last_tuple_is_and_comes_when_it_is_known() -> None:
    tuples = stream(FALLS, name=pa.string())
    found = results(kernel(falls()), (tuples, Frontier(5, 0)), columns="time number r0 r1 r2 r3")
    assert found == [(2, 4, 9, 2, 2, "a")]
    ends = results(kernel(falls()), (tuples, END), columns="time number r0 r1 r2 r3")
    assert ends == [(2, 4, 9, 2, 2, "a"), (3, 5, 7, 1, 2, "b"), (5, 7, 8, 1, 1, "g")]


def test_nothing_is_promised_about_the_end_of_an_open_star() -> None:
    """Partition 2 is silent after time 3: its match, if it is one, will have that time."""
    search = kernel(falls())
    search.process(stream(FALLS, name=pa.string()), Frontier(5, 0))
    assert search.passes(Frontier(5, 0)) == Frontier(3, -1)
    assert search.passes(Frontier(1, 0)) == Frontier(1, 0)
    search.process(stream("time number key v name\n6 8 2 9 i\n6 9 1 9 j", name=pa.string()), Frontier(6, 0))
    assert search.passes(Frontier(6, 0)) == Frontier(6, 0)


@pytest.mark.parametrize("pattern", [falls(), peaks()], ids=["falls", "peaks"])
def test_the_contract_of_kernels(pattern: Pattern) -> None:
    rng = np.random.default_rng(5)
    lines = [
        f"{i // 3} {i} {rng.choice(['1', '2', '-'])} {rng.choice([*'123456789', '-'])} n{i}"
        for i in range(80)
    ]
    tuples = stream("time number key v name\n" + "\n".join(lines), name=pa.string())
    batches = [
        (tuples.take(np.arange(i, min(i + 13, 80))), Frontier(min(i + 13, 79) // 3, -1))
        for i in range(0, 80, 13)
    ]
    program = compile_pattern(pattern)
    with uncompiled():
        assert check(lambda: PatternMatch(spec_of(program)), ended(*batches))


def test_a_partition_of_which_nothing_is_needed_is_forgotten() -> None:
    made = Patterns("X Y", v=BIGINT)
    x, y = made.variables()
    search = kernel(made.made([x.v == 1, y.v == 2], [x.v]))
    tuples = stream("time key v\n0 1 1\n0 2 5\n0 3 1\n1 3 7")
    assert run(search, [(tuples, Frontier(1, 0))]) == []
    assert search.rows == 2  # the first partition, and its attempt


def test_conditions_may_multiply() -> None:
    made = Patterns("X Y", v=BIGINT)
    x, y = made.variables()
    search = kernel(made.made([y.v > x.v * 2], [x.v, y.v]))
    assert results(search, (stream("time number v\n0 0 3\n1 1 6\n2 2 13"), END), columns="r0 r1") == [(6, 13)]


def test_a_failure_names_the_tuple() -> None:
    made = Patterns("X Y", v=BIGINT, w=BIGINT)
    x, y = made.variables()
    search = kernel(made.made([x.v + 1 > 0, y.v / y.w > 1.0], [x.v]))
    wrong = rf"pattern \(X, Y\): .* for the tuple \(v {2**63 - 1}, w 4\), in X\.v \+ 1 > 0"
    with pytest.raises(PatternError, match=wrong):
        search.process(stream(f"time v w\n0 {2**63 - 1} 4"), Frontier(1, 0))


# ---------------------------------------------------------------- long stars


def star_of(count: int, batch: int, values: np.ndarray) -> list[tuple[Tuples, Frontier]]:
    batches = []
    for start in range(0, count, batch):
        numbers = np.arange(start, min(start + batch, count))
        columns = pa.table({KEY: np.zeros(len(numbers), np.int64), "v": values[numbers]})
        batches.append((Tuples(columns, numbers, np.zeros(len(numbers), np.int32), numbers), Frontier(start)))
    return batches


def endings() -> dict[str, Pattern]:
    """Patterns with a star that goes on for as long as values rise."""
    found = {}
    for name in ("plain", "at least", "at most", "trailing", "leading"):
        elements = {"trailing": "X *Y", "leading": "*Y Z"}.get(name, "X *Y Z")
        made = Patterns(elements, v=DOUBLE)
        y = made.variables()[0 if name == "leading" else 1]
        count = made.measure("count", y)
        where = [y.v >= y.previous.v]
        if name != "leading":
            where.append(made.variables()[0].v >= 0.0)
        where += {"at least": [count >= 5], "at most": [count <= 5]}.get(name, [])
        if name != "trailing":
            where.append(made.variables()[-1].v < 0.0)
        found[name] = made.made(where, [y.first.v, y.last.v, count, made.measure("sum", y, "v")])
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", ["plain", "at least", "at most", "trailing", "leading"])
def test_what_is_kept_does_not_grow_with_a_star_of_a_million(name: str) -> None:
    count = 1_000_000
    values = np.arange(count, dtype=np.float64)
    values[-1] = -1.0
    search = PatternMatch(spec_of(compile_pattern(endings()[name])))
    found = []
    for batch in star_of(count, 100_000, values):
        found += run(search, [batch])
        assert search.rows <= 10
        change = search.snapshot()
        assert sum(table.num_rows for table in change.added.values()) <= 20
    longest = 5 if name == "at most" else count - 2
    assert [row["r2"] for row in found] == [longest]


@pytest.mark.slow
def test_too_many_open_attempts_are_an_error_that_says_so() -> None:
    """Each tuple may be an X whose Z is still to come."""
    made = Patterns("X *Y Z", v=DOUBLE)
    x, y, z = made.variables()
    search = kernel(made.made([y.v >= y.previous.v, z.v < x.v - 1000000.0], [x.v]))
    values = np.arange(10_100, dtype=np.float64)
    few, many = star_of(100, 100, values)[0], star_of(len(values), len(values), values)[0]
    search.process(*few)
    assert search.rows == 101
    program = PatternMatch(
        spec_of(compile_pattern(made.made([y.v >= y.previous.v, z.v < x.v - 1000000.0], [x.v])))
    )
    with pytest.raises(PatternError, match=r"more than 10,000 attempts are open in a partition"):
        program.process(*many)
