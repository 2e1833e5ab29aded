"""Several patterns over the same tuples: each has the matches that it has alone."""

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

from millstream.codegen.patterns.pattern_compiler import compile_pattern
from millstream.ir.pattern import Pattern
from millstream.kernels.column_names import BRANCH
from millstream.kernels.core.kernel import BEGINNING, END, Frontier
from millstream.kernels.kernel_specs import PatternBranch
from millstream.kernels.patterns.pattern_match import PatternMatches
from millstream.kernels.patterns.tagged_rows import branch_name
from millstream.kernels.result_types import returned_fields
from millstream.types import BIGINT, STRING
from tests.codegen.patterns import random_patterns
from tests.codegen.patterns.forms import Patterns, Term, Variable
from tests.codegen.patterns.running import Match, by_partition, defined, spec_of, tuples_of, uncompiled

Rows = list[dict[str, Any]]

any_patterns = st.one_of(random_patterns.patterns(), random_patterns.related_patterns())


def together(patterns: Sequence[Pattern], *, ops: bool = True) -> Callable[[], PatternMatches]:
    """Return a factory of a kernel for all patterns."""
    branches = []
    for pattern in patterns:
        spec = spec_of(compile_pattern(pattern, ops=ops))
        branches.append(PatternBranch(spec, pa.schema(returned_fields(spec.program, spec.results))))
    return partial(PatternMatches, tuple(branches))


def searched(
    patterns: Sequence[Pattern],
    rows: Rows,
    cuts: Sequence[int] = (),
    lost_at: Sequence[int] = (),
    *,
    ops: bool = True,
) -> list[dict[int, list[Match]]]:
    """Return the matches of each. Rows are cut into batches; after each the kernel is restored or pickled."""
    make = together(patterns, ops=ops)
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
    assert found == [defined(pattern, rows) for pattern in patterns]


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
WALK = [{"v": (7 * i * i + 3 * i) % 11, "w": i, "name": "ab"[i % 2]} for i in range(200)]


def test_texts_of_searches_have_the_same_codes() -> None:
    names = [pattern("X Y", lambda x, y, n=n: x.name == n, lambda x, y: y.name != x.name) for n in "ab"]
    with uncompiled():
        found = searched(names, WALK, [50, 120], [0, 1])
    assert found == [defined(one, WALK) for one in names]


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
