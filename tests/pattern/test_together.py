"""Several searches in the same tuples: each finds what it finds by itself."""

from __future__ import annotations

import pickle
import random
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.pattern import random_patterns
from tests.pattern.forms import Patterns
from tests.pattern.running import Match, by_partition, defined, spec_of, tuples_of, uncompiled

from millstream.kernels.base import END, Frontier
from millstream.kernels.branches import BRANCH, Branch, branch_name
from millstream.kernels.pattern import PatternMatches
from millstream.kernels.user_machine import returned_fields
from millstream.pattern.compiler import compiled
from millstream.pattern.form import Pattern
from millstream.types import BIGINT

Rows = list[dict[str, Any]]

any_patterns = st.one_of(random_patterns.patterns(), random_patterns.related_patterns())


def together(patterns: list[Pattern]) -> PatternMatches:
    branches = []
    for pattern in patterns:
        spec = spec_of(compiled(pattern))
        output = pa.schema(returned_fields(spec.program, spec.results))
        branches.append(Branch(spec, output))
    return PatternMatches(tuple(branches))


def searched(patterns: list[Pattern], rows: Rows, cut: int) -> list[dict[int, list[Match]]]:
    """What each finds, with its state lost at the cut. Keys are not among the results of branches."""
    kernel = together(patterns)
    found: list[list[tuple[int, Match]]] = [[] for _ in patterns]
    for start, end in ((0, cut), (cut, len(rows))):
        frontier = END if end == len(rows) else Frontier(max(end - 1, 0) // 2, -1)
        out = kernel.process(tuples_of(patterns[0].fields, rows[start:end], start), frontier)
        assert kernel.passes(frontier) <= frontier
        table = out.columns.to_pylist()
        for number, row in zip(out.number.tolist(), table, strict=True):
            branch = row[BRANCH]
            names = [branch_name(branch, field.name) for field in patterns[branch].returns]
            others = [name for name in row if name not in (*names, BRANCH)]
            assert all(row[name] is None for name in others)
            found[branch].append((rows[number].get("key", 0), (number, tuple(row[n] for n in names))))
        change = kernel.snapshot()
        assert not change.dropped or end == len(rows) or not start
        again = together(patterns)
        again.restore(change.meta, dict(change.added))
        kernel = again if end < len(rows) else pickle.loads(pickle.dumps(kernel))
    return [by_partition(branch) for branch in found]


@given(st.lists(any_patterns, min_size=2, max_size=4), st.integers(0, 2**32))
@settings(max_examples=40, deadline=None)
def test_each_finds_what_the_definition_says(patterns: list[Pattern], seed: int) -> None:
    chance = random.Random(seed)
    rows = random_patterns.stream(chance)
    with uncompiled():
        found = searched(patterns, rows, chance.randrange(1, len(rows)))
    assert found == [defined(pattern, rows) for pattern in patterns]


def test_as_much_is_promised_as_all_of_them_promise() -> None:
    """A trailing star that is still open may end with a tuple that is long gone for the other search."""
    made = Patterns("X", v=BIGINT, w=BIGINT)
    (x,) = made.variables()
    plain = made.made([x.v > 5], [x.v])
    made = Patterns("X *Y", v=BIGINT, w=BIGINT)
    x, y = made.variables()
    star = made.made([x.v == 1, y.v == 1], [y.w])
    rows = [{"v": v, "w": i} for i, v in enumerate([1, 1, 1, 1])]
    with uncompiled():
        kernel = together([plain, star])
        kernel.process(tuples_of(plain.fields, rows), Frontier(9, -1))
        assert kernel.passes(Frontier(9, -1)) < Frontier(2, 0)
