"""Two ways to write a query agree: branches of UNION alone and merged, a query in FROM and CREATE STREAM.

Streams of every kind are drawn, and run by the engine without Spark. Nothing is planned as a whole on both
sides, so that a mistake of analysis or planning cannot hide behind an oracle that repeats it.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from millstream.plan.optimize import optimize
from millstream.plan.refusals import why_not
from oracle import Arrivals, Input, Row
from tests.engine import simulated
from tests.engine.test_invariants import same
from tests.engine.test_maintained_queries import planned

pytestmark = pytest.mark.usefixtures("uncompiled")

SEEDS = range(40)
BASE = """
CREATE AGGREGATE running(x INT) : INT {
  TABLE st(m INT);
  INITIALIZE : { INSERT INTO st VALUES (x); INSERT INTO RETURN VALUES (x); }
  ITERATE : { UPDATE st SET m = m + x; INSERT INTO RETURN SELECT m FROM st; }
};
CREATE STREAM m (k STRING, n BIGINT, t INT) ORDER BY t;
"""
BRANCHES = (
    "SELECT k, CAST(v AS BIGINT) AS n FROM {s}",
    "SELECT k, CAST(v AS BIGINT) AS n FROM {s} WHERE v > 2",
    "SELECT k, sum(v) AS n FROM {s} [TUMBLE {i}] GROUP BY k",
    "SELECT k, sum(v) AS n FROM {s} [TUMBLE {i}] GROUP BY k, window_end HAVING sum(v) > 2",
    "SELECT k, count(*) AS n FROM {s} [RANGE {j} SLIDE {i}] GROUP BY k",
    "SELECT max(k) AS k, sum(v) AS n FROM {s} [ROWS {i}]",
    "SELECT k, sum(v) AS n FROM {s} [SESSION GAP {i}] GROUP BY k",
    "SELECT k, count(*) AS n FROM {s} [LANDMARK START AT 2 SLIDE {i}] GROUP BY k",
    "SELECT x.k AS k, x.v + CAST(y.v AS BIGINT) AS n FROM {s} [RANGE {i}] x JOIN {o} [RANGE {j}] y USING (k)",
    "SELECT DISTINCT k, CAST(v AS BIGINT) AS n FROM {s} [RANGE {i}]",
    "SELECT k, count(*) AS n FROM {s} [RANGE {i}] GROUP BY k",
    "SELECT DSTREAM k, CAST(v AS BIGINT) AS n FROM {s} [RANGE {i}]",
    "SELECT k, sum(v) OVER (PARTITION BY k RANGE {i} PRECEDING) AS n FROM {s}",
    "SELECT k, sum(v) OVER (PARTITION BY k ROWS {i} PRECEDING SLIDE 2) AS n FROM {s}",
    "SELECT X.k AS k, CAST(Y.v AS BIGINT) AS n FROM {s} PARTITION BY k AS (X, Y) WHERE Y.v > X.v",
    "SELECT k, CAST(running(v) AS BIGINT) AS n FROM {s} GROUP BY k",
    "SELECT k, CAST(v AS BIGINT) AS n FROM {s} UNION ALL SELECT k, sum(v) FROM {o} [TUMBLE {i}] GROUP BY k",
)
ABOVE = (
    "SELECT k, n FROM {} WHERE n > 2",
    "SELECT window_end, k, count(*) AS c, sum(n) AS s FROM {} [TUMBLE 4] GROUP BY k",
    "SELECT window_end, sum(n) AS s FROM {} [RANGE 6 SLIDE 2]",
    "SELECT window_end, count(*) AS c FROM {} [SESSION GAP 2]",
    "SELECT k, n FROM {} [NOW]",
    "SELECT DISTINCT k FROM {} [RANGE 3]",
    "SELECT CHANGES k, count(*) AS c FROM {} [RANGE 4] GROUP BY k",
    "SELECT x.k, x.n, b.v FROM {} [RANGE 3] x JOIN b [RANGE 3] ON x.k = b.k",
)
IN_ORDER = (
    "SELECT k, n, count(*) OVER (ROWS 2 PRECEDING) AS c FROM {}",
    "SELECT k, sum(n) OVER (PARTITION BY k RANGE 3 PRECEDING) AS s FROM {}",
    "SELECT sum(n) AS s FROM {} [ROWS 3 SLIDE 2]",
)
"""Operators that tell tuples with the same time apart."""

Rows = list[tuple[Any, ...]]


class Drawn:
    """Streams a and b in little disorder, and queries over them."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        slacks = self.chance.choices(["", "SLACK 2", "SLACK 5"], k=2)
        self.script = BASE + "".join(
            f"CREATE STREAM {name} (k STRING, v INT, t INT) ORDER BY t {slack};\n"
            for name, slack in zip("ab", slacks, strict=True)
        )
        self.inputs: dict[str, Input] = {name: self._arrivals() for name in "ab"}

    def _arrivals(self) -> Arrivals:
        rows, now = [], 0
        for _ in range(self.chance.randint(0, 12)):
            now += self.chance.choice([0, 1, 1, 2, 4])
            time = max(0, now - self.chance.choice([0, 0, 1, 3]))
            rows.append(Row({"k": self.chance.choice("xyz"), "v": self.chance.randint(0, 5), "t": time}))
        return Arrivals([rows])

    def branch(self) -> str:
        streams = self.chance.sample("ab", 2)
        i, j = self.chance.randint(1, 6), self.chance.randint(1, 8)
        return self.chance.choice(BRANCHES).format(s=streams[0], o=streams[1], i=i, j=j)

    def rows(self, query: str, definitions: str = "", merged: Rows | None = None) -> Rows:
        """The rows of a query, each with its timestamp; ``merged`` is given as the stream m."""
        plan = planned(f"{self.script}{definitions}{query};")
        assert why_not(plan) is None
        assert why_not(optimize(plan)) is None
        plan = optimize(plan) if self.chance.random() < 0.5 else plan
        inputs = dict(self.inputs)
        if merged is not None:
            ordered = sorted(merged, key=lambda row: row[0])
            inputs["m"] = Arrivals([[Row({"t": t, "k": k, "n": n}) for t, k, n in ordered]])
        return simulated.run(plan, inputs, self.chance)


def _united(chance: random.Random, branches: list[str]) -> tuple[str, str]:
    """Definitions and a union of branches; each branch is a derived stream or stands in the union itself."""
    definitions, sides = "", []
    for number, branch in enumerate(branches):
        definitions += f"CREATE STREAM d{number} AS {branch};\n"
        derived = chance.random() < 0.5 or "[" in branch or "UNION" in branch
        sides.append(f"SELECT k, n FROM d{number}" if derived else branch)
    return definitions, " UNION ALL ".join(sides)


def _above(chance: random.Random, rows: Rows) -> str:
    apart = len({row[0] for row in rows}) == len(rows)
    return chance.choice(ABOVE + IN_ORDER if apart else ABOVE)


@pytest.mark.parametrize("seed", SEEDS)
def test_branches_of_a_union_alone_and_merged(seed: int) -> None:
    drawn = Drawn(seed)
    branches = [drawn.branch() for _ in range(drawn.chance.choice([2, 2, 3, 4]))]
    merged = [row for branch in branches for row in drawn.rows(branch)]
    definitions, union = _united(drawn.chance, branches)
    same(drawn.rows(union, definitions), merged)
    once = drawn.rows(union.replace("UNION ALL", "UNION"), definitions)
    assert Counter(once) == Counter(set(merged))
    definitions += f"CREATE STREAM u AS {union};\n"
    query = _above(drawn.chance, merged)
    expected = drawn.rows(query.format("m"), merged=merged)
    same(drawn.rows(query.format("u"), definitions), expected)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_query_in_from_and_the_same_as_a_stream(seed: int) -> None:
    drawn = Drawn(seed)
    inner = drawn.branch()
    rows = drawn.rows(inner)
    query = _above(drawn.chance, rows)
    expected = drawn.rows(query.format("m"), merged=rows)
    same(drawn.rows(query.format("d"), f"CREATE STREAM d AS {inner};\n"), expected)
    same(drawn.rows(query.format(f"({inner})")), expected)
