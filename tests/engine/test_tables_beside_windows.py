"""Tables in one FROM with joins of windows, DISTINCT, set operations and aggregates."""

from __future__ import annotations

import random

import pytest

from tests.engine.test_maintained_queries import STREAMS, arrivals, compare, planned
from tests.oracle.generate import Case, TableDeclaration

NAMES = TableDeclaration("names", "k INT, name STRING")
QUERIES = (
    "a.v, b.w, n.name FROM a [RANGE 3], b [RANGE 3], names n WHERE a.k = b.k AND a.k = n.k",
    "a.v, b.w, n.name FROM a [ROWS 2] JOIN b [RANGE 3] ON a.k = b.k LEFT JOIN names n ON a.k = n.k",
    "a.v, b.w, n.name FROM a [RANGE 3] LEFT JOIN b [RANGE 3] ON a.k = b.k LEFT JOIN names n ON b.k = n.k",
    (
        "a.v, b.w, m.name FROM names m, a [RANGE 4 SLIDE 2], names n, b [RANGE 3]"
        " WHERE a.k = b.k AND (a.k = n.k OR n.k IS NULL) AND b.k <= m.k"
    ),
    "n.name, d.c FROM (SELECT k, count(*) AS c FROM a [RANGE 3] GROUP BY k) d JOIN names n ON d.k = n.k",
    (
        "n.name, count(*) AS c FROM (SELECT DISTINCT k, v FROM a [RANGE 3]) d JOIN names n ON d.k = n.k"
        " GROUP BY n.name"
    ),
    (
        "d.k, d.v FROM (SELECT k, v FROM a [RANGE 3] EXCEPT SELECT k, w FROM b [RANGE 4]) d"
        " LEFT ANTI JOIN names n ON d.k = n.k"
    ),
    "d.k, d.v FROM (SELECT k, v FROM a [ROWS 3]) d LEFT SEMI JOIN names n ON d.k = n.k",
    "a.v FROM a [RANGE 3] LEFT SEMI JOIN names n ON a.k = n.k",
    (
        "d.v, e.v FROM (SELECT a.k, a.v FROM a [ROWS 3] JOIN names n ON a.k = n.k) d"
        " FULL JOIN b [RANGE 3] e ON d.k = e.k"
    ),
)


@pytest.mark.parametrize("kind", ["", "CHANGES", "RSTREAM"])
@pytest.mark.parametrize("query", QUERIES)
def test_tables_beside_maintained_results(query: str, kind: str) -> None:
    for seed in range(3):
        chance = random.Random(seed)
        names = [
            {"k": chance.choice([1, 1, 2, 3, None]), "name": chance.choice("xy")}
            for _ in range(chance.randint(0, 4))
        ]
        given = {"a": arrivals(chance, "kvt"), "b": arrivals(chance, "kvwt"), "names": names}
        case = Case((*STREAMS, NAMES), (), (f"SELECT {kind} {query}",), given)
        compare(case, planned(case.script), chance)
