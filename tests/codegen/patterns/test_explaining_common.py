"""What `explain` says at the end of a script: what its patterns ask in common."""

from __future__ import annotations

from inspect import cleandoc

from millstream.analysis.definitions.statement_analyzer import RunQuery, analyse
from millstream.catalog import Catalog
from millstream.plan.builder import build
from millstream.plan.explain.explain_common import explained_common
from millstream.plan.optimize import optimize
from millstream.syntax import parse_script

STREAM = "CREATE STREAM s (k INT, v INT, name STRING, t TIMESTAMP) ORDER BY t USING csv OPTIONS (path 'x');"


def common(*queries: str) -> str:
    catalog, plans = Catalog(), []
    for statement in parse_script(";\n".join([STREAM.rstrip(";"), *queries])):
        meaning = analyse(statement, catalog).meaning
        if isinstance(meaning, RunQuery):
            plans.append((f"q{len(plans) + 1}", optimize(build(meaning.query))))
    return explained_common(plans)


def test_what_is_asked_once_and_what_is_not_asked() -> None:
    said = common(
        "SELECT X.t FROM s PARTITION BY k AS (X, *Y) WHERE X.v > 5 AND X.name = 'a' AND Y.v > Y.previous.v",
        "SELECT X.t FROM s PARTITION BY k AS (X) WHERE X.v > 5 AND X.v < 100 / X.k",
        "SELECT X.t, max(*Y.v) FROM s PARTITION BY k AS (X, *Y) WHERE X.v > 3 AND Y.v < X.v AND Y.name = 'b'",
    )
    assert said == cleandoc("""
        -- q1, q2, q3: in the same tuples
        asked once
          tuple.v > 5  q1, q2
        not asked
          tuple.v > 5                       fails in q1, q2  if tuple.v > 3 fails, in q3
          tuple.name = 'a'                  fails in q1      if tuple.name = 'b' holds, in q3
          tuple.v > 5 AND tuple.name = 'a'  fails in q1      if tuple.v > 3 fails, in q3
          tuple.v > 5 AND tuple.name = 'a'  fails in q1      if tuple.name = 'b' holds, in q3
          tuple.v > 3                       holds in q3      if tuple.v > 5 holds, in q1, q2
          tuple.v > 3                       holds in q3      if tuple.v > 5 AND tuple.name = 'a' holds, in q1
          tuple.name = 'b'                  fails in q3      if tuple.name = 'a' holds, in q1
          tuple.name = 'b'                  fails in q3      if tuple.v > 5 AND tuple.name = 'a' holds, in q1
        """)


def test_other_partitions_and_other_tuples_are_other_searches() -> None:
    plain = "SELECT X.t FROM s PARTITION BY k AS (X) WHERE X.v > 5"
    assert not common(plain, plain.replace("BY k", "BY name"))
    assert not common(plain, "SELECT X.t FROM s AS (X) WHERE X.v > 5", "SELECT v FROM s WHERE v > 5")
    assert common(plain, plain.replace("v > 5", "name = 'a'")).endswith("nothing is asked in common")
