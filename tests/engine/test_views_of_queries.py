"""Views of any query: nested queries, groups without a window, set operations and joins of aggregates."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from millstream.kernels.core import state_chunks
from millstream.plan.relation_variance import CHANGES
from oracle import Arrivals, Row
from oracle import run as interpreted
from tests.engine.test_current_results import RETURNING, compare, view_of
from tests.engine.test_invariants import same
from tests.engine.test_maintained_queries import STREAMS, arrivals
from tests.oracle.generate import Case, TableDeclaration

pytestmark = pytest.mark.usefixtures("uncompiled")

QUERIES = (
    "SELECT max(n) AS m FROM (SELECT k, count(*) AS n FROM a [RANGE 4] GROUP BY k)",
    "SELECT max(n) AS m FROM (SELECT k, count(*) AS n FROM a GROUP BY k)",
    "SELECT n, count(*) AS c FROM (SELECT k, count(*) AS n FROM a GROUP BY k) GROUP BY n",
    "SELECT k, sum(v) AS n FROM a GROUP BY k HAVING count(*) > 1",
    "SELECT count(*) AS n FROM a",
    "SELECT DISTINCT v FROM a",
    "SELECT k FROM a UNION SELECT k FROM b",
    "SELECT k FROM a EXCEPT SELECT w FROM b",
    "SELECT k FROM a INTERSECT SELECT w FROM b [RANGE 3]",
    "SELECT k, sum(v) AS s FROM (SELECT k, v FROM a UNION ALL SELECT k, w FROM b) GROUP BY k",
    "SELECT k, sum(n) AS s FROM (SELECT k, sum(v) AS n FROM a [TUMBLE 3] GROUP BY k) GROUP BY k",
    "SELECT k, sum(n) AS s FROM (SELECT k, sum(v) AS n FROM a [TUMBLE 3] GROUP BY k) [RANGE 6] GROUP BY k",
    (
        "SELECT x.k, n, m FROM (SELECT k, count(*) AS n FROM a GROUP BY k) x"
        " LEFT JOIN (SELECT k, max(w) AS m FROM b GROUP BY k) y ON x.k = y.k"
    ),
    "WITH q AS (SELECT k, count(*) AS n FROM a GROUP BY k) SELECT x.k, x.n FROM q x JOIN q y ON x.n = y.n",
    "SELECT k, count(*) AS n FROM a GROUP BY k UNION ALL SELECT k, max(w) AS n FROM b [RANGE 3] GROUP BY k",
    "SELECT sum(n) AS s FROM (SELECT k, count(*) AS n FROM a GROUP BY k UNION SELECT k, w FROM b)",
    "SELECT h, count(*) AS n FROM (SELECT k, highest(v) AS h FROM a GROUP BY k) GROUP BY h",
    (
        "SELECT k, max(s) AS m FROM"
        " (SELECT k, sum(v) OVER (PARTITION BY k ROWS 2 PRECEDING) AS s FROM a) GROUP BY k"
    ),
    "SELECT name, sum(v) AS s FROM a JOIN names ON a.k = names.k GROUP BY name",
    (
        "SELECT name, max(n) AS m FROM (SELECT k, count(*) AS n FROM a GROUP BY k) q"
        " JOIN names ON q.k = names.k GROUP BY name"
    ),
)
NAMES = TableDeclaration("names", "k INT, name STRING")


@pytest.fixture(autouse=True)
def tidy_all_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_chunks, "SPARE", 1)


@pytest.mark.parametrize("query", QUERIES)
def test_views(query: str) -> None:
    for seed in range(2):
        chance = random.Random(f"{query} {seed}")
        names = [{"k": chance.randint(0, 3), "name": chance.choice("xyz")} for _ in range(3)]
        given = {"a": arrivals(chance, "kvt"), "b": arrivals(chance, "kvwt"), "names": names}
        case = Case((*STREAMS, NAMES), (RETURNING,), (f"CREATE VIEW shown AS {query}",), given)
        compare(view_of(case.script), case.inputs, chance)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        # The tuples have k = 1, 2, 1, 1.
        (
            "SELECT max(n) AS m FROM (SELECT k, count(*) AS n FROM a GROUP BY k)",
            [(1, "+", 1), (3, "-", 1), (3, "+", 2), (4, "-", 2), (4, "+", 3)],
        ),
        # At 4 those of 3 and 4 are there, at 5 that of 4, and from 6 on none: NULL is the maximum of no rows.
        (
            "SELECT max(n) AS m FROM (SELECT k, count(*) AS n FROM a [RANGE 2] GROUP BY k)",
            [(1, "+", 1), (4, "-", 1), (4, "+", 2), (5, "-", 2), (5, "+", 1), (6, "-", 1), (6, "+", None)],
        ),
        ("SELECT DISTINCT k FROM a", [(1, "+", 1), (2, "+", 2)]),
        ("SELECT k FROM a EXCEPT SELECT v FROM a WHERE t > 3", [(1, "+", 1), (2, "+", 2), (4, "-", 2)]),
    ],
)  # fmt: skip
def test_results_worked_out_by_hand(query: str, expected: list[tuple[object, ...]]) -> None:
    given = [Row(dict(zip("kvt", row, strict=True))) for row in [(1, 5, 1), (2, 5, 2), (1, 5, 3), (1, 2, 4)]]
    case = Case(STREAMS[:1], (), (f"CREATE VIEW shown AS {query}",), {"a": Arrivals([given])})
    plan = view_of(case.script)
    found = interpreted(replace(plan, kind=CHANGES), case.inputs).rows
    same([(row.time, *row.values) for row in found], expected)
    compare(plan, case.inputs, random.Random(1))
