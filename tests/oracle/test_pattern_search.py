"""The search for patterns beside two that are written differently: by regular expressions, and by coroutines.

Where conditions are about a tuple and the one before it, a partition is a text: a letter says which elements
may take the tuple. A star that never gives back is a possessive repetition. For conditions that look back at
what was taken, all attempts run side by side, tuple by tuple, and only then it is decided which of them were
made.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from statistics import fmean

from hypothesis import given, settings
from hypothesis import strategies as st

from oracle import Arrivals, Row, answer

Values = Sequence[int | None]
Spans = list[list[int]]
"""The positions that each element has taken, the last of them the one in question."""
Test = Callable[[Values, Spans], bool]
NAMES = ("A", "AB", "AB", "ABC", "ABC", "ABCD")


@dataclass(frozen=True)
class Condition:
    text: str
    test: Test


@dataclass(frozen=True)
class Element:
    name: str
    star: bool
    of_tuple: tuple[Condition, ...] = ()
    running: tuple[Condition, ...] = ()
    final: tuple[Condition, ...] = ()

    @property
    def conditions(self) -> tuple[Condition, ...]:
        return (*self.of_tuple, *self.running, *self.final)


def by_the_oracle(elements: Sequence[Element], values: Values) -> list[list[tuple[int, int]]]:
    """The first and last position of each element, in all matches."""
    ends = ", ".join(
        f"FIRST({e.name}).t AS a{i}, LAST({e.name}).t AS b{i}"
        if e.star
        else f"{e.name}.t AS a{i}, {e.name}.t AS b{i}"
        for i, e in enumerate(elements)
    )
    names = ", ".join(f"{'*' if e.star else ''}{e.name}" for e in elements)
    where = " AND ".join(f"({condition.text})" for e in elements for condition in e.conditions)
    query = f"SELECT {ends} FROM s AS ({names}){f' WHERE {where}' if where else ''}"
    rows = [Row({"v": value, "t": t}) for t, value in enumerate(values)]
    found = answer(f"CREATE STREAM s (v INT, t INT) ORDER BY t; {query}", {"s": Arrivals([rows])})
    return [list(zip(row[::2], row[1::2], strict=True)) for row in found.values]


# ---------------------------------------------------------------- conditions


def known(*values: int | float | None) -> bool:
    return None not in values


def compared(holds: Callable[..., bool], *values: int | float | None) -> bool:
    return known(*values) and holds(*values)


def now(values: Values, spans: Spans) -> int | None:
    return values[spans[-1][-1]]


def before(values: Values, spans: Spans) -> int | None:
    return values[spans[-1][-1] - 1] if spans[-1][-1] else None


def numbers(values: Values, span: Sequence[int]) -> list[int]:
    return [value for i in span if (value := values[i]) is not None]


@st.composite
def of_tuple(draw: st.DrawFn, x: str) -> Condition:
    n = draw(st.integers(-2, 2))
    return draw(
        st.sampled_from(
            [
                Condition(f"{x}.v > {n}", lambda v, s: compared(int.__gt__, now(v, s), n)),
                Condition(f"{x}.v <= {n}", lambda v, s: compared(int.__le__, now(v, s), n)),
                Condition(f"{x}.v <> {n}", lambda v, s: compared(int.__ne__, now(v, s), n)),
                Condition(f"{x}.v IS NULL OR {x}.v >= 0", lambda v, s: (now(v, s) or 0) >= 0),
                Condition(
                    f"{x}.v < {x}.previous.v", lambda v, s: compared(int.__lt__, now(v, s), before(v, s))
                ),
                Condition(
                    f"{x}.v >= {x}.previous.v", lambda v, s: compared(int.__ge__, now(v, s), before(v, s))
                ),
                Condition(f"{x}.previous.v IS NULL", lambda v, s: before(v, s) is None),
            ]
        )
    )


@st.composite
def of_earlier(draw: st.DrawFn, x: str, earlier: Sequence[Element]) -> Condition:
    e = draw(st.integers(0, len(earlier) - 1))
    name = earlier[e].name
    last = Condition(f"{x}.v > {name}.v", lambda v, s: compared(int.__gt__, now(v, s), v[s[e][-1]]))
    if not earlier[e].star:
        return last

    def above_average(v: Values, s: Spans) -> bool:
        taken = numbers(v, s[e])
        return compared(lambda a, b: a > b, now(v, s), fmean(taken) if taken else None)

    first = Condition(f"{x}.v <= FIRST({name}).v", lambda v, s: compared(int.__le__, now(v, s), v[s[e][0]]))
    return draw(st.sampled_from([last, first, Condition(f"{x}.v > avg(*{name}.v)", above_average)]))


@st.composite
def running(draw: st.DrawFn, x: str) -> Condition:
    n = draw(st.integers(1, 4))

    def sums(v: Values, s: Spans) -> bool:
        taken = numbers(v, s[-1])
        return bool(taken) and sum(taken) < n

    def moves(v: Values, s: Spans) -> bool:
        taken = numbers(v, s[-1][-2:])
        return bool(taken) and max(taken) < n

    return draw(
        st.sampled_from(
            [
                Condition(f"ccount({x}) <= {n}", lambda v, s: len(s[-1]) <= n),
                Condition(f"csum({x}.v) < {n}", sums),
                Condition(f"max({x}.v) OVER (ROWS 1 PRECEDING) < {n}", moves),
            ]
        )
    )


@st.composite
def final(draw: st.DrawFn, x: str) -> Condition:
    n = draw(st.integers(1, 4))

    def rises(v: Values, s: Spans) -> bool:
        return compared(int.__gt__, v[s[-1][-1]], v[s[-1][0]])

    return draw(
        st.sampled_from(
            [
                Condition(f"count(*{x}) >= {n}", lambda v, s: len(s[-1]) >= n),
                Condition(f"count(*{x}) < {n}", lambda v, s: len(s[-1]) < n),
                Condition(f"count(*{x}.v) <> {n}", lambda v, s: len(numbers(v, s[-1])) != n),
                Condition(f"LAST({x}).v > FIRST({x}).v", rises),
            ]
        )
    )


@st.composite
def elements(draw: st.DrawFn) -> list[Element]:
    made: list[Element] = []
    for name in draw(st.sampled_from(NAMES)):
        star = draw(st.booleans())
        own = draw(st.lists(of_tuple(name), max_size=1))
        own += draw(st.lists(of_earlier(name, made), max_size=1)) if made else []
        along = draw(st.lists(running(name), max_size=1)) if star else []
        at_last = draw(st.lists(final(name), max_size=1)) if star else []
        made.append(Element(name, star, tuple(own), tuple(along), tuple(at_last)))
    return made


def random_values(count: int, seed: int) -> Values:
    """Hypothesis makes short lists with many equal elements, in which little is found."""
    return random.Random(seed).choices([None, -2, -1, 0, 1, 2, 3, 0, 1, 2], k=count)


VALUES = st.builds(random_values, st.integers(10, 30) | st.integers(0, 10), st.integers(0, 2**32))


# ---------------------------------------------------------------- regular expressions


@dataclass(frozen=True)
class Counted:
    """An element whose tuples are judged one by one, with bounds for how many a star takes."""

    star: bool
    condition: Condition
    least: int
    most: int


@st.composite
def counted(draw: st.DrawFn, name: str) -> Counted:
    least = draw(st.integers(1, 2))
    return Counted(draw(st.booleans()), draw(of_tuple(name)), least, least + draw(st.integers(0, 9)))


def by_regular_expressions(pattern: Sequence[Counted], values: Values) -> list[list[tuple[int, int]]]:
    truths = [[one.condition.test(values, [[i]]) for one in pattern] for i in range(len(values))]
    text = "".join(chr(ord("A") + sum(true << i for i, true in enumerate(row))) for row in truths)
    classes = [
        "[" + "".join(chr(ord("A") + mask) for mask in range(16) if mask >> i & 1) + "]"
        for i in range(len(pattern))
    ]
    parts = [
        f"(?=(?:{letters}){{{one.least},{one.most}}}(?!{letters}))({letters}++)"
        if one.star
        else f"({letters})"
        for one, letters in zip(pattern, classes, strict=True)
    ]
    anywhere = re.compile("".join(parts))
    maximal = re.compile((f"(?<!{classes[0]})" if pattern[0].star else "") + "".join(parts))
    found, at = [], 0
    while match := anywhere.match(text, at) or maximal.search(text, at + 1):
        found.append([(match.start(i + 1), match.end(i + 1) - 1) for i in range(len(pattern))])
        at = match.end()
    return found


@settings(deadline=None)
@given(st.sampled_from(NAMES).flatmap(lambda names: st.tuples(*map(counted, names))), VALUES)
def test_patterns_of_single_tuples_are_regular_expressions(
    pattern: Sequence[Counted], values: Values
) -> None:
    written = []
    for name, one in zip("ABCD", pattern, strict=False):
        bounds = Condition(f"count(*{name}) BETWEEN {one.least} AND {one.most}", lambda v, s: True)
        written.append(Element(name, one.star, (one.condition,), (), (bounds,) if one.star else ()))
    assert by_the_oracle(written, values) == by_regular_expressions(pattern, values)


# ---------------------------------------------------------------- coroutines


def attempt(elements: Sequence[Element], values: Values) -> Generator[None, int | None, Spans | None]:
    """Is told of tuples one by one, by their positions, and at last (None) of the end; returns its match."""
    taken: Spans = []
    position = yield
    for element in elements:
        span: list[int] = []
        tests = (*element.of_tuple, *element.running)
        while position is not None and (element.star or not span):
            if not all(condition.test(values, [*taken, [*span, position]]) for condition in tests):
                break
            span.append(position)
            position = yield
        taken.append(span)
        if not span or not all(condition.test(values, taken) for condition in element.final):
            return None
    return taken


def by_coroutines(elements: Sequence[Element], values: Values) -> list[list[tuple[int, int]]]:
    results: dict[int, Spans] = {}
    going: dict[int, Generator[None, int | None, Spans | None]] = {}
    for position in (*range(len(values)), None):
        if position is not None:
            going[position] = attempt(elements, values)
            next(going[position])
        for start, one in list(going.items()):
            try:
                one.send(position)
            except StopIteration as stopped:
                del going[start]
                if stopped.value is not None:
                    results[start] = stopped.value
    found: list[list[tuple[int, int]]] = []
    consumed = -1
    for start, spans in sorted(results.items()):
        leads = elements[0].star and start - 1 > consumed
        if start <= consumed or (
            leads and all(condition.test(values, [[start - 1]]) for condition in elements[0].of_tuple)
        ):
            continue
        found.append([(span[0], span[-1]) for span in spans])
        consumed = spans[-1][-1]
    return found


@settings(deadline=None)
@given(elements(), VALUES)
def test_all_attempts_side_by_side_find_the_same(elements: list[Element], values: Values) -> None:
    assert by_the_oracle(elements, values) == by_coroutines(elements, values)


def test_both_find_something() -> None:
    """Two searches that never find anything agree too."""
    falls = Condition("A.v < A.previous.v", lambda v, s: compared(int.__lt__, now(v, s), before(v, s)))
    rises = Condition("B.v >= B.previous.v", lambda v, s: compared(int.__ge__, now(v, s), before(v, s)))
    values = [3, 2, 1, 2, 3, 1, 1, 0]
    expected = [[(1, 2), (3, 4)], [(5, 5), (6, 6)]]
    pattern = [Element("A", True, (falls,)), Element("B", True, (rises,))]
    assert by_the_oracle(pattern, values) == expected
    assert by_coroutines(pattern, values) == expected
    assert (
        by_regular_expressions([Counted(True, falls, 1, 9), Counted(True, rises, 1, 9)], values) == expected
    )
