"""Several patterns over the same tuples: each has the matches that it would have by itself."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from checks import check, ended, stream
from tests.pattern.forms import Patterns
from tests.pattern.random_patterns import stream as random_rows
from tests.pattern.running import defined, spec_of, tuples_of, uncompiled

from millstream.kernels.base import END, KEY, Frontier, Tuples
from millstream.kernels.patterns import WHOSE, PatternMatches
from millstream.kernels.specs import PatternSpec
from millstream.kernels.tuples import cut
from millstream.pattern.compiler import compiled
from millstream.pattern.form import Pattern
from millstream.types import BIGINT


def bottoms() -> Pattern:
    """A trailing star: its matches are known late."""
    made = Patterns("*A *B", v=BIGINT, w=BIGINT)
    a, b = made.variables()
    conditions = [a.v < a.previous.v, b.v > b.previous.v]
    return made.made(conditions, [a.first.w, b.last.w, made.measure("count", b)])


def falls() -> Pattern:
    made = Patterns("X Y", v=BIGINT, w=BIGINT)
    x, y = made.variables()
    return made.made([x.v > 0, y.v < y.previous.v], [x.w])


PATTERNS = (bottoms(), falls())


def specs() -> tuple[PatternSpec, ...]:
    """Columns of results are named by their pattern."""
    made = [spec_of(compiled(pattern)) for pattern in PATTERNS]
    return tuple(
        replace(spec, results=tuple(f"r{i}_{j}" for j in range(len(spec.results))))
        for i, spec in enumerate(made)
    )


def test_each_pattern_has_the_matches_that_it_would_have_by_itself() -> None:
    rows = random_rows(random.Random(4), 200)
    fields = PATTERNS[0].fields
    with uncompiled():
        out = PatternMatches(specs()).process(tuples_of(fields, rows), END)
    table = out.columns.append_column("number", pa.array(out.number)).to_pylist()
    for i, pattern in enumerate(PATTERNS):
        own, others = ([n for n in out.columns.column_names if n.startswith(f"r{j}_")] for j in (i, 1 - i))
        mine = [row for row in table if row[WHOSE] == i]
        assert {row[name] for row in mine for name in others} == {None}
        expected = defined(pattern, rows)
        assert len(expected) == 2
        for key, matches in expected.items():
            found = [(r["number"], tuple(r[name] for name in own)) for r in mine if r[KEY] == key]
            assert found == matches


class OfOne(PatternMatches):
    """What becomes of the matches: each pattern takes its own."""

    whose = 0

    def process(self, tuples: Tuples, frontier: Frontier) -> Tuples:
        out = super().process(tuples, frontier)
        return out.take(np.asarray(out.columns[WHOSE]) == self.whose)


@pytest.mark.parametrize("whose", range(2))
def test_the_contract_of_kernels(whose: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OfOne, "whose", whose)
    chance = random.Random(7)
    lines = [f"{i // 3} {i} {chance.choice('12-')} {chance.choice('123456-')} {i}" for i in range(80)]
    tuples = stream("time number key v w\n" + "\n".join(lines))
    batches = [
        (cut(tuples, i, min(i + 13, 80)), Frontier(min(i + 13, 79) // 3, -1)) for i in range(0, 80, 13)
    ]
    made = specs()
    with uncompiled():
        assert check(lambda: OfOne(made), ended(*batches))


def test_no_more_is_promised_than_the_slowest_of_them_promises() -> None:
    with uncompiled():
        kernel = PatternMatches(specs())
        kernel.process(stream("time key v w\n1 1 5 0\n2 1 3 1\n3 1 4 2\n4 2 4 2"), Frontier(4, 0))
    assert kernel.passes(Frontier(4, 0)) == Frontier(3, -1)
