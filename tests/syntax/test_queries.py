"""Queries as in Spark SQL: their trees, and their way through the printer."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlglot import exp

from millstream.syntax import to_sql

Check = Callable[[str], exp.Expr]

# These are printed as they are.
PLAIN = """
SELECT 1
SELECT a, b AS c, * FROM t
SELECT DISTINCT a FROM t
SELECT * EXCEPT (a, b), t.* EXCEPT (c), t.* FROM t
SELECT explode(m) AS (k, v) FROM t
SELECT /*+ BROADCAST(t), COALESCE(3) */ a FROM t
SELECT a FROM c.d.t AS x
SELECT a FROM range(10) AS r(i)
SELECT a FROM t TABLESAMPLE (10 PERCENT) AS x
SELECT a FROM t TABLESAMPLE (5 ROWS)
SELECT a FROM a JOIN b ON a.x = b.x LEFT JOIN c USING (x, y) RIGHT OUTER JOIN d ON TRUE
SELECT a FROM a FULL OUTER JOIN b ON a.x = b.x LEFT SEMI JOIN c ON a.x = c.x LEFT ANTI JOIN d ON a.x = d.x
SELECT a FROM a CROSS JOIN b NATURAL JOIN c ANTI JOIN d ON TRUE INNER JOIN e ON TRUE JOIN f
SELECT a FROM (a JOIN b ON a.x = b.x) JOIN c ON TRUE
SELECT a FROM (SELECT b FROM t) AS q JOIN LATERAL (SELECT q.b) AS r ON TRUE
SELECT a FROM t JOIN LATERAL explode(t.xs) AS e(x)
SELECT a FROM t CROSS JOIN UNNEST(xs) WITH ORDINALITY AS e(x, n) CROSS JOIN UNNEST(ys) AS y WITH OFFSET AS m
SELECT a FROM t CROSS JOIN UNNEST(zs) AS z WITH OFFSET
SELECT a FROM t CROSS JOIN TABLE(f(t.a)) AS q(x) LEFT JOIN LATERAL TABLE(g(q.x, 1)) AS r ON TRUE
SELECT a FROM t JOIN LATERAL UNNEST(t.xs) AS e(x)
SELECT a FROM t LATERAL VIEW explode(xs) e AS x LATERAL VIEW OUTER explode(ys) f
SELECT a FROM VALUES (1, 'a'), (2, 'b') AS t(n, s)
SELECT a FROM t WHERE a > 1 GROUP BY a HAVING count(*) > 1 ORDER BY a DESC, b NULLS LAST LIMIT 5 OFFSET 3
SELECT a FROM t GROUP BY a, ROLLUP (b, c), CUBE (d, e), GROUPING SETS ((a, b), (a), ())
SELECT a FROM t GROUP BY ALL ORDER BY ALL LIMIT ALL
SELECT a FROM t GROUP BY a, b WITH ROLLUP
SELECT a FROM t GROUP BY a, b WITH CUBE
SELECT a FROM t GROUP BY a, b GROUPING SETS ((a), (b))
SELECT a FROM t CLUSTER BY a
SELECT a FROM t DISTRIBUTE BY a SORT BY b DESC
SELECT a FROM t WINDOW w AS (PARTITION BY b ORDER BY c ROWS BETWEEN 3 PRECEDING AND CURRENT ROW), v AS ()
SELECT a FROM t UNION SELECT b FROM u UNION ALL SELECT c FROM v EXCEPT SELECT d FROM w
SELECT a FROM t INTERSECT ALL SELECT b FROM u EXCEPT ALL SELECT c FROM v ORDER BY a LIMIT 1
(SELECT a FROM t LIMIT 1) UNION ALL (SELECT b FROM u ORDER BY b) ORDER BY a
((SELECT 1))
WITH a AS (SELECT 1), b(x, y) AS (SELECT 2, 3 UNION SELECT 4, 5) SELECT * FROM a CROSS JOIN b
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT n FROM r
SELECT ((SELECT 1) UNION (SELECT 2)) IN ((SELECT 1) EXCEPT (SELECT 2)), (WITH a AS (SELECT 1) SELECT * FROM a)
"""


@pytest.mark.parametrize("text", PLAIN.strip().splitlines())
def test_printed_as_written(text: str, again: Check) -> None:
    assert to_sql(again(text)) == text


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("SELECT ALL a FROM t x, u", "SELECT a FROM t AS x CROSS JOIN u"),
        ("SELECT a MINUS SELECT b", "SELECT a EXCEPT SELECT b"),
        ("SELECT a UNION DISTINCT SELECT b", "SELECT a UNION SELECT b"),
        (
            "SELECT a FROM (VALUES (1) UNION SELECT 2) AS q",
            "SELECT a FROM (SELECT * FROM VALUES (1) AS _values UNION SELECT 2) AS q",
        ),
        ("SELECT 1 UNION SELECT 2 INTERSECT SELECT 3", "SELECT 1 UNION (SELECT 2 INTERSECT SELECT 3)"),
        ("SELECT 1 FROM (VALUES 1, (2)) t(a)", "SELECT 1 FROM VALUES (1), (2) AS t(a)"),
        ("VALUES (1, 2)", "SELECT * FROM VALUES (1, 2) AS _values"),
        ("SELECT a ORDER BY b ASC NULLS FIRST", "SELECT a ORDER BY b ASC"),
        ("SELECT a FROM t GROUP BY ROLLUP(a)", "SELECT a FROM t GROUP BY ROLLUP (a)"),
        (
            "SELECT a window, b offset, c sort FROM t cluster",
            "SELECT a AS window, b AS offset, c AS sort FROM t AS cluster",
        ),
    ],
)
def test_printed_otherwise_but_the_same(text: str, printed: str, again: Check) -> None:
    assert to_sql(again(text)) == printed


def test_order_and_limit_belong_to_the_whole_of_a_set_operation(again: Check) -> None:
    union = again("SELECT a FROM t UNION ALL SELECT b FROM u ORDER BY 1 LIMIT 5")
    assert isinstance(union, exp.Union)
    assert union.args["order"]
    assert union.args["limit"]
    assert not union.expression.args.get("limit")


def test_with_belongs_to_the_query_behind_it(again: Check) -> None:
    tree = again("WITH a AS (SELECT 1 AS x) SELECT x FROM a UNION SELECT 2")
    assert [cte.alias for cte in tree.args["with_"].expressions] == ["a"]
    assert isinstance(tree, exp.Union)


def test_named_windows_are_kept_with_their_select(again: Check) -> None:
    tree = again("SELECT sum(a) OVER w FROM t WINDOW w AS (PARTITION BY b)")
    [window] = tree.args["windows"]
    assert window.this.name == "w"
    assert tree.expressions[0].args["alias"].name == "w"
