"""The plan of every construct, as EXPLAIN LOGICAL shows it."""

from collections.abc import Callable
from textwrap import dedent

import pytest

from millstream.analysis.queries.resolved_expression import ColumnRef, Expr
from millstream.plan.explain.plan_report import tree
from millstream.plan.nodes import Filter, Node, PlanError, TableJoin

Plan = Callable[[str], Node]

PLANS = {
    "SELECT sum(b) + 1 AS x FROM s [RANGE 5 MINUTES SLIDE 1 MINUTE]": """
        Project __agg0 + 1 AS x
        └─ WindowAggregate sum(b) AS __agg0
           └─ Windowed [RANGE 5 MINUTES SLIDE 1 MINUTE WATTR t]
              └─ StreamScan s from kafka ORDER BY t
    """,
    "SELECT a, max(b), max(b) - min(b) FROM s [TUMBLE 10 SECONDS] GROUP BY a HAVING count(*) > 3": """
        Project s.a, __agg0 AS max(b), __agg0 - __agg1 AS max(b) - min(b)
        └─ Filter __agg2 > 3
           └─ WindowAggregate max(b) AS __agg0, min(b) AS __agg1, count(*) AS __agg2 GROUP BY s.a
              └─ Windowed [RANGE 10 SECONDS SLIDE 10 SECONDS WATTR t]
                 └─ StreamScan s from kafka ORDER BY t
    """,
    "SELECT a, avg(b) OVER (PARTITION BY a ROWS 9 PRECEDING SLIDE 12) AS m FROM s WHERE b > 0": """
        Project s.a, __agg0 AS m
        └─ OverAggregate avg(b) OVER (PARTITION BY s.a ROWS 9 PRECEDING SLIDE 12 ROWS) AS __agg0 [tumble]
           └─ Filter s.b > 0
              └─ StreamScan s from kafka ORDER BY t
    """,
    "SELECT *, b + 1 AS d FROM s [NOW] SEMI JOIN r [RANGE 5 SECONDS] USING (a) WHERE b > 0": """
        RelationToStream ISTREAM
        └─ Project s.a, s.b, s.c, s.t, s.b + 1 AS d
           └─ Filter s.b > 0
              └─ WindowJoin semi ON s.a = r.a
                 ├─ Windowed [NOW]
                 │  └─ StreamScan s from kafka ORDER BY t
                 └─ Windowed [RANGE 5 SECONDS WATTR u]
                    └─ StreamScan r from kafka ORDER BY u
    """,
    "SELECT sum(b) OVER (ROWS 49 PRECEDING SLIDE 15) AS m FROM s": """
        Project __agg0 AS m
        └─ OverAggregate sum(b) OVER (ROWS 49 PRECEDING SLIDE 15 ROWS) AS __agg0 [panes of 5 and 10 tuples]
           └─ StreamScan s from kafka ORDER BY t
    """,
    "SELECT a, t FROM s UNION ALL SELECT a, u FROM r": """
        StreamUnion ALL, merged by timestamp
        ├─ Project s.a, s.t
        │  └─ StreamScan s from kafka ORDER BY t
        └─ Project r.a, r.u
           └─ StreamScan r from kafka ORDER BY u
    """,
    "SELECT DISTINCT c FROM s [ROWS 100 PATTR c]": """
        RelationToStream ISTREAM
        └─ Distinct
           └─ Project s.c
              └─ Windowed [ROWS 100 SLIDE 1 PATTR c]
                 └─ StreamScan s from kafka ORDER BY t
    """,
    "SELECT DSTREAM s.a, d FROM s [RANGE 1 MINUTE] JOIN r [NOW] ON s.a = r.a": """
        RelationToStream DSTREAM
        └─ Project s.a, r.d
           └─ WindowJoin inner ON s.a = r.a
              ├─ Windowed [RANGE 1 MINUTE WATTR t]
              │  └─ StreamScan s from kafka ORDER BY t
              └─ Windowed [NOW]
                 └─ StreamScan r from kafka ORDER BY u
    """,
    "SELECT a FROM s [LANDMARK START AT '2026-01-01'] EXCEPT SELECT a FROM r [UNBOUNDED]": """
        RelationToStream ISTREAM
        └─ WindowSetOperation EXCEPT
           ├─ Project s.a
           │  └─ Windowed [LANDMARK START AT '2026-01-01' WATTR t]
           │     └─ StreamScan s from kafka ORDER BY t
           └─ Project r.a
              └─ Windowed [UNBOUNDED WATTR u]
                 └─ StreamScan r from kafka ORDER BY u
    """,
    "SELECT X.a FROM s PARTITION BY c AS (X, *Y) WHERE X.b > 5 AND Y.b < Y.previous.b": """
        PatternMatch PARTITION BY c AS (X, *Y) WHERE X.b > 5 AND Y.b < Y.previous.b RETURNING X.a
        └─ StreamScan s from kafka ORDER BY t
    """,
    "SELECT name, count(*) FROM k GROUP BY name": """
        SparkQuery SELECT name, count(*) FROM k GROUP BY name
    """,
    "SELECT sum(id) OVER (v ROWS 1 PRECEDING) FROM k WINDOW w AS (ORDER BY a), v AS (w)": """
        SparkQuery SELECT sum(id) OVER (ORDER BY a ROWS 1 PRECEDING) FROM k WINDOW w AS (ORDER BY a), v AS (w)
    """,
}


@pytest.mark.parametrize("query", PLANS)
def test_plan(plan: Plan, query: str) -> None:
    assert tree(plan(query)) == dedent(PLANS[query]).strip("\n")


def test_a_node_that_makes_no_sense_cannot_be_made(plan: Plan) -> None:
    scan = plan("SELECT a FROM s").inputs[0]
    with pytest.raises(PlanError, match=r"Filter has no column s\.zzz"):
        Filter(scan, (Expr((ColumnRef("s", "zzz"), " > 1")),))
    with pytest.raises(PlanError, match="a filter without a condition"):
        Filter(scan, ())
    with pytest.raises(PlanError, match="two streams are joined over windows"):
        TableJoin(scan, scan, "inner", None)
