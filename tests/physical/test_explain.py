"""EXPLAIN PHYSICAL: stages, kernels, partitions and columns of a query, told without Spark."""

from __future__ import annotations

import re
from inspect import cleandoc

import pytest

from millstream.physical.explain import explained
from tests.physical.planning import plans_of

SCRIPT = """
CREATE STREAM s (k INT, name STRING, v INT, t TIMESTAMP) USING csv OPTIONS (path 'x.csv')
    ORDER BY t SLACK INTERVAL 5 SECONDS;
CREATE TABLE prices (name STRING, price INT) USING csv OPTIONS (path 'y.csv');
CREATE AGGREGATE total(x INT) : INT {
    TABLE state(s INT);
    INITIALIZE : { INSERT INTO state VALUES (x); }
    ITERATE    : { UPDATE state SET s = s + x; }
    TERMINATE  : { INSERT INTO RETURN SELECT s FROM state; }
};
"""

EXPECTED = {
    "SELECT v FROM s WHERE v > 3": """
        Output  order by time
        └─ Compute  v := c0
           └─ Stage 1  any shard
              │  tuples that are in time
              └─ Compute c0 := v  late pending
                 └─ Compute  v := s.v  where s.v > 3  late pending
                    └─ Scan  s from csv 'x.csv'  time t TIMESTAMP  slack 5 SECONDS  late pending
    """,
    "SELECT k, avg(v) AS a FROM s [RANGE 5 MINUTES SLIDE 1 MINUTE] WHERE v > 3 GROUP BY k": """
        Output  order by time, g0
        └─ Compute  k := g0, a := r0
           └─ Stage 1  partition by s.k (INT, the value itself)
              │  WindowAggregate  SlidingWindows range 300000000 slide 60000000; r0 = avg(a0)
              │  avg(v): difference of running totals, O(1)
              │  input: as it comes (panes take any order)
              │  late tuples: dropped and counted
              └─ Compute g0 := s.k, a0 := s.v  late pending
                 └─ Compute  where s.v > 3  late pending
                    └─ Scan  s from csv 'x.csv'  time t TIMESTAMP  slack 5 SECONDS  late pending
    """,
    "SELECT name, total(v) OVER (PARTITION BY name ROWS 9 PRECEDING) AS r FROM s": """
        Output  order by time
        └─ Compute  name := c0, r := r0_0
           └─ Stage 1  partition by s.name (STRING, hash)
              │  Reorder
              │  OverUda  total over 9 rows before
              │    program total DIGEST (N lines, rows, compiled)
              │  total(v): window version (derived: EXPIRE undoes UPDATE state SET s = s + x)
              └─ Compute c0 := s.name, a0_0 := s.v  late pending
                 └─ Scan  s from csv 'x.csv'  time t TIMESTAMP  slack 5 SECONDS  late pending
    """,
    "SELECT X.v, Z.v FROM s PARTITION BY k AS (X, *Y, Z) WHERE Y.v > Y.previous.v AND Z.v < 3": """
        Output  order by time
        └─ Compute  v := r0, v := r1
           └─ Stage 1  partition by s.k (INT, the value itself)
              │  Reorder
              │  PatternMatch
              │    program (X, *Y, Z) DIGEST (N lines, pattern, compiled)
              │  pattern: (X, *Y, Z)
              └─ Compute a0 := s.v  late pending
                 └─ Scan  s from csv 'x.csv'  time t TIMESTAMP  slack 5 SECONDS  late pending
    """,
    "SELECT ISTREAM DISTINCT k FROM s [RANGE 1 MINUTE SLIDE 1 MINUTE] WHERE v > 0": """
        Output  order by time, op, k
        └─ Compute  where __ms_op > 0
           └─ Compute  k := c0
              └─ Stage 1  partition by c0 (INT, the value itself)
                 │  Reorder
                 │  SetOperation  UNION
                 └─ Compute c0 := c0  late pending
                    └─ Compute  c0 := k  late pending
                       └─ Compute  k := s.k  where s.v > 0  late pending
                          └─ Scan  s from csv 'x.csv'  time t TIMESTAMP  slack 5 SECONDS  late pending
    """,
    "SELECT k, sum(price) AS p FROM s [TUMBLE 1 HOUR], prices WHERE s.name = prices.name GROUP BY k": """
        Output  order by time, g0
        └─ Compute  k := g0, p := r0
           └─ Stage 2  partition by s.k (INT, the value itself)
              │  WindowAggregate  SlidingWindows range 3600000000 slide 3600000000; r0 = sum(a0)
              │  sum(price): difference of running totals, O(1)
              │  input: as it comes (panes take any order)
              │  late tuples: dropped and counted
              └─ Compute g0 := s.k, a0 := prices.price
                 └─ Lookup  inner on s.name = prices.name
                    ├─ Compute  s.k := c0, s.name := c1, s.v := c2, s.t := c3
                    │  └─ Stage 1  any shard  reports to the next stage
                    │     │  tuples that are in time
                    │     └─ Compute c0 := s.k, c1 := s.name, c2 := s.v, c3 := s.t  late pending
                    │        └─ Scan  s from csv 'x.csv'  time t TIMESTAMP  slack 5 SECONDS  late pending
                    └─ TableScan  prices
    """,
    "SELECT v FROM s UNION ALL SELECT k FROM s": """
        Output  order by time
        └─ Compute  v := c0
           └─ Stage 1  any shard
              │  tuples that are in time
              ├─ Compute c0 := v  late pending
              │  └─ Align  v INT
              │     └─ Compute  v := s.v  late pending
              │        └─ Scan  s from csv 'x.csv'  time t TIMESTAMP  slack 5 SECONDS  late pending
              └─ Compute c0 := v  late pending
                 └─ Align  v INT
                    └─ Compute  k := s.k  late pending
                       └─ Scan  s from csv 'x.csv'  time t TIMESTAMP  slack 5 SECONDS  late pending
    """,
}


@pytest.mark.parametrize("query", EXPECTED)
def test_the_physical_plan_of_a_query(query: str) -> None:
    (plan,) = plans_of(f"{SCRIPT}{query};")
    said = re.sub(r" [0-9a-f]{8} \(\d+ lines", " DIGEST (N lines", explained(plan.physical))
    assert said == cleandoc(EXPECTED[query])


def test_a_type_that_only_spark_knows_is_a_question_mark() -> None:
    (plan,) = plans_of(f"{SCRIPT}SELECT max(from_json(name, 'a INT')) AS m FROM s [TUMBLE 1 HOUR];")
    assert plan.unknown.questions
    assert "a0 := from_json(s.name, 'a INT') ?" in explained(plan.physical)
