"""Several searches in the same tuples: each finds what it finds by itself, and together they ask less."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.codegen.patterns.pattern_compiler import compile_pattern, compile_shared_pattern
from millstream.codegen.patterns.shared_conditions import shared_conditions
from millstream.ir.pattern import Pattern
from millstream.kernels.core.kernel import BEGINNING, END, Frontier
from millstream.kernels.patterns.pattern_match import PatternMatches
from millstream.kernels.patterns.tagged_rows import BRANCH, Branch, branch_name
from millstream.kernels.udas.compiled_machine import returned_fields
from millstream.types import BIGINT, STRING
from tests.codegen.patterns import random_patterns
from tests.codegen.patterns.forms import Patterns, Term, Variable
from tests.codegen.patterns.running import Match, by_partition, defined, spec_of, tuples_of, uncompiled

Rows = list[dict[str, Any]]

any_patterns = st.one_of(random_patterns.patterns(), random_patterns.related_patterns())


def together(
    patterns: Sequence[Pattern], *, ops: bool = True, counted: bool = False, shared: bool = True
) -> Callable[[], PatternMatches]:
    """Makes a kernel for all of them; answers are ``shared`` where that is of use."""
    sharing = [compile_shared_pattern(pattern, ops=ops, counted=counted) for pattern in patterns]
    places = shared_conditions([own.questions for own in sharing], ops=ops)
    branches = []
    for pattern, own, place in zip(patterns, sharing, places, strict=True):
        is_alone = place is None or not shared
        program = compile_pattern(pattern, ops=ops, counted=counted) if is_alone else own.program
        spec = spec_of(program, None if is_alone else place)
        branches.append(Branch(spec, pa.schema(returned_fields(spec.program, spec.results))))
    return partial(PatternMatches, tuple(branches))


def searched(
    patterns: Sequence[Pattern],
    rows: Rows,
    cuts: Sequence[int] = (),
    lost_at: Sequence[int] = (),
    **how: bool,
) -> list[dict[int, list[Match]]]:
    """What each finds. Rows are cut into batches; after some the kernel is lost, after others pickled."""
    make = together(patterns, **how)
    kernel = make()
    found: list[list[tuple[int, Match]]] = [[] for _ in patterns]
    chunks: dict[str, pa.Table] = {}
    promised = BEGINNING
    bounds = [0, *sorted(cuts), len(rows)]
    for i, (start, end) in enumerate(zip(bounds, [*bounds[1:], len(rows)], strict=True)):
        frontier = END if i == len(bounds) - 1 else Frontier(max(end - 1, 0) // 2, -1)
        out = kernel.process(tuples_of(patterns[0].fields, rows[start:end], start), frontier)
        assert all(Frontier(time, 0) > promised for time in out.time.tolist())
        promised = kernel.passes(frontier)
        assert promised <= frontier
        # Keys are not among the results of branches.
        for number, row in zip(out.number.tolist(), out.columns.to_pylist(), strict=True):
            branch = row[BRANCH]
            names = [branch_name(branch, field.name) for field in patterns[branch].returns]
            assert all(row[name] is None for name in row if name not in (*names, BRANCH))
            found[branch].append((rows[number].get("key", 0), (number, tuple(row[n] for n in names))))
        change = kernel.snapshot()
        for name in change.dropped:
            del chunks[name]
        chunks |= change.added
        if i in lost_at:
            kernel = make()
            kernel.restore(change.meta, chunks)
        else:
            kernel = pickle.loads(pickle.dumps(kernel))
    return [by_partition(branch) for branch in found]


def asked(patterns: Sequence[Pattern], rows: Rows, *, ops: bool = True, shared: bool = True) -> int:
    """How many questions all of them ask."""
    with uncompiled():
        kernel = together(patterns, ops=ops, counted=True, shared=shared)()
        kernel.process(tuples_of(patterns[0].fields, rows), END)
    return kernel.asked


@given(st.lists(any_patterns, min_size=2, max_size=5), st.integers(0, 2**32), st.booleans())
@settings(max_examples=40, deadline=None)
def test_each_finds_what_the_definition_says(patterns: list[Pattern], seed: int, ops: bool) -> None:
    chance = random.Random(seed)
    rows = random_patterns.stream(chance)
    cuts = [chance.randrange(len(rows) + 1) for _ in range(chance.randrange(4))]
    lost_at = [i for i in range(len(cuts) + 1) if chance.random() < 0.5]
    with (
        uncompiled(),
        # Searches start over, with other numbers for partitions, whenever that is said to be worth it.
        mock.patch(
            "millstream.kernels.patterns.matcher_group.is_wasteful",
            side_effect=lambda *_: chance.random() < 0.3,
        ),
    ):
        found = searched(patterns, rows, cuts, lost_at, ops=ops)
        alone = searched(patterns, rows, cuts, lost_at, ops=ops, shared=False)
    assert found == alone
    assert found == [defined(pattern, rows) for pattern in patterns]


@given(st.lists(any_patterns, min_size=2, max_size=4), st.integers(0, 2**32), st.booleans())
@settings(max_examples=20, deadline=None)
def test_nobody_asks_more_than_by_itself(patterns: list[Pattern], seed: int, ops: bool) -> None:
    rows = random_patterns.stream(random.Random(seed))
    assert asked(patterns, rows, ops=ops) <= asked(patterns, rows, ops=ops, shared=False)


@given(any_patterns)
@settings(max_examples=40, deadline=None)
def test_what_is_kept_is_the_same_alone_and_together(pattern: Pattern) -> None:
    """So a state does not tell in which company a pattern was searched for."""
    alone, shared = compile_pattern(pattern), compile_shared_pattern(pattern).program
    assert (alone.tables, alone.parameters, alone.texts) == (shared.tables, shared.parameters, shared.texts)


# ---------------------------------------------------------------- what is asked once


def pattern(elements: str, *conditions: Any) -> Pattern:
    """Conditions are functions of the variables, in their order; a tuple gives its ``w``."""
    made = Patterns(elements, v=BIGINT, w=BIGINT, name=STRING)
    variables = made.variables()
    where: list[Term] = [condition(*variables) for condition in conditions]
    return made.made(where, [variables[0].first.w, variables[-1].last.w])


def falls(y: Variable) -> Term:
    return y.v < y.previous.v


FOUR = [
    pattern("X *Y", lambda x, y: falls(y)),
    pattern("X *Y Z", lambda x, y, z: falls(y), lambda x, y, z: z.v > z.previous.v),
    pattern("*Y Z", lambda y, z: falls(y), lambda y, z: z.v >= z.previous.v),
    pattern("X Y", lambda x, y: falls(x), lambda x, y: y.v > 3),
]
"""What falls does not rise, whosever question it is."""

WALK = [{"v": (7 * i * i + 3 * i) % 11, "w": i, "name": "ab"[i % 2]} for i in range(200)]


def test_four_patterns_ask_less_than_each_by_itself() -> None:
    each = sum(asked([one], WALK) for one in FOUR)
    assert asked(FOUR, WALK, shared=False) == each
    equal_ones_once = asked(FOUR, WALK, ops=False)
    assert equal_ones_once < each
    assert asked(FOUR, WALK) < equal_ones_once


def test_the_same_pattern_twice_asks_once() -> None:
    assert asked([FOUR[0], FOUR[0]], WALK) == asked([FOUR[0]], WALK)


def test_an_answer_of_one_pattern_is_one_of_another() -> None:
    """Above 5 is above 3, and not below 4: only what is not above 5 is asked about once more."""
    above = pattern("X", lambda x: x.v > 5)
    others = sum(row["v"] <= 5 for row in WALK)
    assert asked([above, pattern("X", lambda x: x.v > 3)], WALK) == len(WALK) + others
    assert asked([above, pattern("X", lambda x: x.v < 4)], WALK) == len(WALK) + others
    # What is NULL is neither above 5 nor not.
    assert asked([above, pattern("X", lambda x: x.v <= 5)], WALK) == len(WALK) + others


def test_a_part_of_what_is_asked_together_is_known() -> None:
    """Two conditions of an element, of which another asks one: only the other is left to be asked."""
    parts = [
        pattern("X", lambda x: x.name == "a"),
        pattern("X", lambda x: x.name == "a", lambda x: x.v > 5),
        pattern("X", lambda x: x.v > 5, lambda x: x.name == "a"),
    ]
    of_name = sum(row["name"] == "a" for row in WALK)
    above = sum(row["v"] > 5 for row in WALK)
    assert above > 0
    # The third knows what the second has asked; where the name was wrong, nothing is left to be asked.
    assert asked(parts[:2], WALK) == len(WALK) + of_name
    assert asked(parts, WALK) == len(WALK) + of_name


def test_texts_of_searches_have_the_same_codes() -> None:
    names = [pattern("X Y", lambda x, y, n=n: x.name == n, lambda x, y: y.name != x.name) for n in "ab"]
    with uncompiled():
        found = searched(names, WALK, [50, 120], [0, 1])
    assert found == [defined(one, WALK) for one in names]


# ---------------------------------------------------------------- what has something in common


def test_who_has_nothing_in_common_is_left_alone() -> None:
    one, other = pattern("X", lambda x: x.v > 5), pattern("X", lambda x: x.name == "a")
    questions = [compile_shared_pattern(made).questions for made in (one, other, one)]
    first, second, third = shared_conditions(questions)
    assert second is None
    assert first == third
    assert first is not None
    assert first.numbers == (0,)


def test_more_questions_than_there_are_bits_for_are_several_groups() -> None:
    many = [pattern("X", lambda x, n=n: x.v == n) for n in range(70)]
    found = shared_conditions([compile_shared_pattern(made).questions for made in many])
    assert {place.group for place in found if place is not None} == {0, 1, 2}
    assert all(told < 2**62 for place in found if place is not None for told in place.told)
    with uncompiled():
        assert searched(many[:40], WALK, [30], [0]) == [defined(made, WALK) for made in many[:40]]


def test_a_pattern_with_too_many_questions_asks_for_itself() -> None:
    large = pattern("X", *(lambda x, n=n: x.v != n for n in range(100, 140)))
    asking = [compile_shared_pattern(made).questions for made in (large, *FOUR[:2])]
    assert [place is None for place in shared_conditions(asking)] == [True, False, False]
    with uncompiled():
        assert searched([large, *FOUR], WALK) == [defined(made, WALK) for made in (large, *FOUR)]


@pytest.mark.slow
def test_compiled_they_find_the_same() -> None:
    found = searched(FOUR, WALK, [10, 90], [1])
    assert found == [defined(made, WALK) for made in FOUR]


def test_as_much_is_promised_as_all_of_them_promise() -> None:
    """A trailing star that is still open may end with a tuple that is long gone for the other search."""
    plain = pattern("X", lambda x: x.v > 5)
    star = pattern("X *Y", lambda x, y: x.v == 1, lambda x, y: y.v == 1)
    rows = [{"v": 1, "w": i, "name": "a"} for i in range(4)]
    with uncompiled():
        kernel = together([plain, star])()
        kernel.process(tuples_of(plain.fields, rows), Frontier(9, -1))
        assert kernel.passes(Frontier(9, -1)) < Frontier(2, 0)
