"""UNION of derived streams: each is a stream, and all are merged by timestamp.

The rows are worked out by hand. The engine gives them without Spark, optimized or not, and so does the oracle
where it knows the operators.
"""

from __future__ import annotations

import random

import pytest

from millstream.errors import AnalysisError
from millstream.plan import nodes
from millstream.plan.optimize import optimize
from millstream.plan.refusals import why_not
from oracle import Arrivals, Row
from oracle import run as interpreted
from tests.engine import simulated
from tests.engine.test_invariants import same
from tests.engine.test_maintained_queries import planned

pytestmark = pytest.mark.usefixtures("uncompiled")

STREAMS = {
    "a": [(1, "x", 10, 1), (2, "y", 5, 3), (3, "x", 20, 11), (4, "y", 2, 12), (5, "x", 7, 25)],
    "b": [(11, "x", 1, 2), (12, "y", 3, 9), (13, "x", 4, 14), (14, "z", 9, 21)],
    "c": [(21, "x", 6, 4), (22, "y", 8, 7), (23, "x", 3, 13), (24, "z", 1, 23)],
    "late": [(31, "x", 1, 5), (32, "y", 2, 3), (33, "x", 3, 8), (34, "z", 4, 6)],
}
INPUTS = {
    name: Arrivals([[Row(dict(zip(("id", "k", "v", "t"), row, strict=True))) for row in rows]])
    for name, rows in STREAMS.items()
}
SCRIPT = """
CREATE STREAM a (id INT, k STRING, v INT, t INT) ORDER BY t;
CREATE STREAM b (id INT, k STRING, v INT, t INT) ORDER BY t;
CREATE STREAM c (id INT, k STRING, v INT, t INT) ORDER BY t;
CREATE STREAM late (id INT, k STRING, v INT, t INT) ORDER BY t SLACK 2;
CREATE AGGREGATE running(x INT) : INT {
  TABLE st(m INT);
  INITIALIZE : { INSERT INTO st VALUES (x); INSERT INTO RETURN VALUES (x); }
  ITERATE : { UPDATE st SET m = m + x; INSERT INTO RETURN SELECT m FROM st; }
};
CREATE STREAM tens AS SELECT window_end AS e, k, sum(v) AS n FROM a [TUMBLE 10] GROUP BY k;
CREATE STREAM fives AS SELECT window_end AS e, k, sum(v) AS n FROM b [TUMBLE 5] GROUP BY k;
CREATE STREAM rows AS SELECT max(k) AS k, sum(v) AS n FROM c [ROWS 2 SLIDE 2];
CREATE STREAM marks AS SELECT 'm' AS k, sum(v) AS n FROM a [LANDMARK START AT 2 SLIDE 10];
CREATE STREAM sessions AS SELECT 's' AS k, sum(v) AS n FROM c [SESSION GAP 5];
CREATE STREAM runs AS SELECT 'p' AS k, sum(v) AS n FROM b [START WHEN v = 1 END WHEN v = 4];
CREATE STREAM pairs AS SELECT x.k AS k, x.v + y.v AS n FROM a [RANGE 10] x JOIN b [RANGE 10] y ON x.k = y.k;
CREATE STREAM values AS SELECT DISTINCT k, 0 AS n FROM a [RANGE 10];
CREATE STREAM changing AS SELECT k, count(*) AS n FROM b [RANGE 10] GROUP BY k;
CREATE STREAM drops AS SELECT X.k AS k, Y.v AS n FROM a PARTITION BY k AS (X, Y) WHERE Y.v < X.v;
CREATE STREAM sums AS SELECT k, sum(v) OVER (PARTITION BY k ROWS 1 PRECEDING) AS n FROM a;
CREATE STREAM slots AS SELECT k, sum(v) OVER (ROWS 1 PRECEDING SLIDE 2) AS n FROM a;
CREATE STREAM totals AS SELECT 'r' AS k, running(v) AS n FROM b;
CREATE STREAM both AS SELECT k, n FROM tens UNION ALL SELECT k, n FROM fives;
"""
TENS = [(10, "x", 10), (10, "y", 5), (20, "x", 20), (20, "y", 2), (30, "x", 7)]
FIVES = [(5, "x", 1), (10, "y", 3), (15, "x", 4), (25, "z", 9)]
PAIRS = [(2, "x", 11), (9, "y", 8), (11, "x", 21), (12, "y", 5), (14, "x", 24)]
BARE = [(4, "x", 6), (7, "y", 8), (13, "x", 3), (23, "z", 1)]
DERIVED = {
    "tens": TENS,
    "fives": FIVES,
    "rows": [(7, "y", 14), (23, "z", 4)],
    "marks": [(10, "m", 5), (20, "m", 27), (30, "m", 34)],
    "sessions": [(12, "s", 14), (18, "s", 3), (28, "s", 1)],
    "runs": [(14, "p", 8)],
    "pairs": PAIRS,
    "values": [(1, "x", 0), (3, "y", 0), (25, "x", 0)],
    "changing": [(2, "x", 1), (9, "y", 1), (14, "x", 1), (21, "z", 1)],
    "drops": [(12, "y", 2), (25, "x", 7)],
    "sums": [(1, "x", 10), (3, "y", 5), (11, "x", 30), (12, "y", 7), (25, "x", 27)],
    "slots": [(3, "y", 15), (12, "y", 22)],
    "totals": [(2, "r", 1), (9, "r", 4), (14, "r", 8), (21, "r", 17)],
    "both": [*TENS, *FIVES],
}
Rows = list[tuple[object, ...]]


def check(query: str, expected: Rows) -> None:
    plan = planned(f"{SCRIPT}{query};")
    for number, one in enumerate((plan, optimize(plan), plan)):
        assert why_not(one) is None
        found = simulated.run(one, INPUTS, random.Random(number))
        same(found, expected)
    if not any(isinstance(node, nodes.BaseAggregate) for node in plan.walk()):
        same([(row.time, *row.values) for row in interpreted(plan, INPUTS).rows], expected)


@pytest.mark.parametrize("name", DERIVED)
def test_a_derived_stream_alone(name: str) -> None:
    check(f"SELECT k, n FROM {name}", list(DERIVED[name]))


@pytest.mark.parametrize("name", DERIVED)
def test_beside_a_bare_stream(name: str) -> None:
    check(f"SELECT k, n FROM {name} UNION ALL SELECT k, v FROM c", [*DERIVED[name], *BARE])


@pytest.mark.parametrize("name", DERIVED)
def test_beside_reports_of_another_slide(name: str) -> None:
    check(f"SELECT k, n FROM {name} UNION ALL SELECT k, n FROM fives", [*DERIVED[name], *FIVES])


@pytest.mark.parametrize("name", DERIVED)
def test_beside_pairs_of_windows(name: str) -> None:
    check(f"SELECT k, n FROM pairs UNION ALL SELECT k, n FROM {name}", [*PAIRS, *DERIVED[name]])


@pytest.mark.parametrize("name", DERIVED)
def test_without_all_equal_tuples_are_one(name: str) -> None:
    query = f"SELECT k, n FROM {name} UNION SELECT k, n FROM {name} UNION SELECT k, v FROM c WHERE v > 5"
    check(query, [*DERIVED[name], (4, "x", 6), (7, "y", 8)])


IN_WORDS = {
    # Reports keep their bounds.
    "SELECT e, k FROM tens UNION ALL SELECT e, k FROM fives": [
        *((t, t, k) for t, k, _ in TENS),
        *((t, t, k) for t, k, _ in FIVES),
    ],
    # No CREATE STREAM is needed for that.
    "SELECT k, sum(v) AS n FROM a [TUMBLE 10] GROUP BY k UNION ALL "
    "SELECT k, sum(v) FROM b [TUMBLE 5] GROUP BY k": [
        *TENS,
        *FIVES,
    ],
    "SELECT window_end AS e, sum(v) AS n FROM a [TUMBLE 10] UNION ALL SELECT t, v FROM b WHERE v > 3": [
        *[(10, 10, 15), (20, 20, 22), (30, 30, 7)],
        *[(14, 14, 4), (21, 21, 9)],
    ],
    "SELECT k, n FROM pairs WHERE n > 10 UNION ALL SELECT k, v FROM c WHERE v > 5": [
        *[(2, "x", 11), (4, "x", 6), (7, "y", 8), (11, "x", 21), (14, "x", 24)]
    ],
    "SELECT k, n FROM tens UNION ALL SELECT k, n FROM fives UNION ALL SELECT k, n FROM pairs UNION ALL "
    "SELECT k, v FROM c": [*TENS, *FIVES, *PAIRS, *BARE],
    "SELECT k, n FROM both UNION ALL SELECT k, n FROM both": [*TENS, *FIVES] * 2,
    "SELECT k, n FROM both UNION SELECT k, n FROM both": [*TENS, *FIVES],
    "SELECT k, n FROM tens UNION ALL (SELECT k, n FROM fives UNION SELECT k, n FROM fives)": [*TENS, *FIVES],
    # Of the stream in disorder, (6, z, 4) has waited for (8, x, 3).
    "SELECT k, n FROM fives UNION ALL SELECT k, v FROM late": [
        *FIVES,
        *[(3, "y", 2), (5, "x", 1), (6, "z", 4), (8, "x", 3)],
    ],
    "SELECT k, n FROM (SELECT k, n FROM tens UNION ALL SELECT k, n FROM fives) WHERE n > 8": [
        *[(10, "x", 10), (20, "x", 20), (25, "z", 9)]
    ],
}


@pytest.mark.parametrize("query", IN_WORDS)
def test_unions(query: str) -> None:
    check(query, IN_WORDS[query])


ABOVE = {
    "SELECT k, n, count(*) OVER (ROWS UNBOUNDED PRECEDING) AS i FROM (SELECT k, n FROM pairs UNION ALL "
    "SELECT k, v FROM c)": [
        *[(2, "x", 11, 1), (4, "x", 6, 2), (7, "y", 8, 3), (9, "y", 8, 4), (11, "x", 21, 5)],
        *[(12, "y", 5, 6), (13, "x", 3, 7), (14, "x", 24, 8), (23, "z", 1, 9)],
    ],
    "SELECT window_end, count(*), sum(n) FROM (SELECT k, n FROM pairs UNION ALL "
    "SELECT k, v FROM c) [TUMBLE 20]": [*[(20, 20, 8, 86), (40, 40, 1, 1)]],
    "SELECT window_end, count(*), sum(n) FROM both [TUMBLE 20]": [(20, 20, 5, 23), (40, 40, 4, 38)],
    "SELECT k, n, sum(n) OVER (PARTITION BY k RANGE 10 PRECEDING) AS s FROM both": [
        *[(5, "x", 1, 1), (10, "x", 10, 11), (10, "y", 5, 5), (10, "y", 3, 8), (15, "x", 4, 15)],
        *[(20, "x", 20, 34), (20, "y", 2, 10), (25, "z", 9, 9), (30, "x", 7, 27)],
    ],
    "SELECT max(n) AS m FROM both [ROWS 3 SLIDE 3]": [(10, 10), (20, 20), (30, 9)],
    "SELECT DISTINCT k FROM both [RANGE 5]": [*[(5, "x"), (10, "y"), (20, "y"), (25, "z"), (30, "x")]],
    "SELECT X.n AS p, Y.n AS q FROM both PARTITION BY k AS (X, Y) WHERE Y.n > X.n": [
        (10, 1, 10),
        (20, 4, 20),
    ],
    "SELECT u.n AS p, c.v AS q FROM both [RANGE 5] u JOIN c [RANGE 5] ON u.k = c.k": [
        *[(5, 1, 6), (10, 5, 8), (10, 3, 8), (13, 10, 3), (15, 4, 3), (25, 9, 1)]
    ],
    "SELECT window_end, sum(n) FROM both [SESSION GAP 4]": [
        *[(9, 9, 1), (14, 14, 18), (19, 19, 4), (24, 24, 22), (29, 29, 9), (34, 34, 7)]
    ],
    "SELECT CHANGES count(*) AS i FROM both [RANGE 6]": [
        *[(5, "+", 1), (10, "-", 1), (10, "+", 4), (11, "-", 4), (11, "+", 3), (15, "-", 3), (15, "+", 4)],
        *[(16, "-", 4), (16, "+", 1), (20, "-", 1), (20, "+", 3), (21, "-", 3), (21, "+", 2)],
        *[(25, "-", 2), (25, "+", 3), (26, "-", 3), (26, "+", 1), (30, "-", 1), (30, "+", 2)],
        *[(31, "-", 2), (31, "+", 1), (36, "-", 1), (36, "+", 0)],
    ],
}


@pytest.mark.parametrize("query", ABOVE)
def test_operators_above_unions(query: str) -> None:
    check(query, ABOVE[query])


# ---------------------------------------------------------------- contents of windows

CONTENTS = {
    # What is asked of the whole is about contents, also of windows that would be reported.
    "SELECT ISTREAM k, sum(v) AS n FROM a [TUMBLE 10] GROUP BY k UNION ALL "
    "SELECT k, sum(v) FROM b [TUMBLE 10] GROUP BY k": [
        *TENS,
        (10, "x", 1),
        (10, "y", 3),
        (20, "x", 4),
        (30, "z", 9),
    ],
    "SELECT CHANGES k FROM a [LANDMARK START AT 3] UNION ALL SELECT k FROM b [LANDMARK START AT 3]": [
        *[(3, "+", "y"), (9, "+", "y"), (11, "+", "x"), (12, "+", "y"), (14, "+", "x"), (21, "+", "z")],
        *[(25, "+", "x")],
    ],
    "SELECT k, n FROM tens [NOW] UNION ALL SELECT k, n FROM fives [NOW]": [*TENS, *FIVES],
    # A union inside of EXCEPT is about contents as well.
    "SELECT k, sum(v) AS n FROM a [TUMBLE 10] GROUP BY k UNION ALL "
    "SELECT k, sum(v) FROM b [TUMBLE 10] GROUP BY k EXCEPT SELECT k, sum(v) FROM a [TUMBLE 10] GROUP BY k": [
        *[(10, "x", 1), (10, "y", 3), (20, "x", 4), (30, "z", 9)]
    ],
}


@pytest.mark.parametrize("query", CONTENTS)
def test_unions_of_contents(query: str) -> None:
    check(query, CONTENTS[query])


REFUSED = {
    "SELECT k, v FROM a [RANGE 10] UNION ALL SELECT k, n FROM tens": "UNION needs a window on 'tens'",
    "SELECT k, n FROM tens EXCEPT SELECT k, n FROM fives": "EXCEPT needs a window on 'tens'",
    "SELECT k, count(*) OVER (ROWS 1 PRECEDING) AS n FROM (SELECT k FROM a [RANGE 10]) UNION ALL "
    "SELECT k, v FROM b [RANGE 10]": "UNION of contents of windows takes no stream of tuples",
    "CREATE VIEW v AS SELECT k, n FROM tens UNION ALL "
    "SELECT k, n FROM fives": "a view needs a window on 'tens'",
}


@pytest.mark.parametrize("query", REFUSED)
def test_streams_are_not_combined_with_contents(query: str) -> None:
    with pytest.raises(AnalysisError) as found:
        planned(f"{SCRIPT}{query};")
    assert found.value.message == REFUSED[query]
