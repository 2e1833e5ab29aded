"""Every node knows the piece of text that it was made from."""

from __future__ import annotations

import pytest
from sqlglot import exp

from millstream.syntax import nodes, parse_expression, parse_script
from millstream.syntax.spans import span_of

TEXT = """
WITH c(x) AS (SELECT 1)
SELECT  a.b  AS  c , upper( trim( d ) ) , `e f` , 'it''s' 'x' , -1.5 ,
  count( * ) OVER ( ROWS 3 PRECEDING SLIDE 2 ) w, CASE WHEN a > 1 THEN INTERVAL 5 MINUTES END,
  CAST( a AS DECIMAL(3, 1) ), t.*, (SELECT 2), g.h( 1 ), a.b.c.d.e
FROM  s  [ RANGE 5 MINUTES SLIDE 1 ROW WATTR ts ]  AS  x , u AS (X, *Y)
JOIN t ON x.a = t.a
WHERE  ( a + b ) * 2 > 1 AND c NOT IN ( 1 , 2 )
GROUP BY  a , b
HAVING  sum( a ) > 3
ORDER BY  a DESC
LIMIT  5
"""


def text_of(node: exp.Expr) -> str:
    span = span_of(node)
    assert span is not None
    return TEXT[span[0] : span[1] + 1]


@pytest.fixture(scope="module")
def tree() -> exp.Expr:
    [statement] = parse_script(TEXT)
    return statement.tree


def test_the_whole_statement(tree: exp.Expr) -> None:
    assert text_of(tree) == TEXT.strip()


def test_items(tree: exp.Expr) -> None:
    assert [text_of(item) for item in tree.expressions] == [
        "a.b  AS  c",
        "upper( trim( d ) )",
        "`e f`",
        "'it''s' 'x'",
        "-1.5",
        "count( * ) OVER ( ROWS 3 PRECEDING SLIDE 2 ) w",
        "CASE WHEN a > 1 THEN INTERVAL 5 MINUTES END",
        "CAST( a AS DECIMAL(3, 1) )",
        "t.*",
        "(SELECT 2)",
        "g.h( 1 )",
        "a.b.c.d.e",
    ]


def test_clauses(tree: exp.Expr) -> None:
    assert text_of(tree.args["with_"]) == "WITH c(x) AS (SELECT 1)"
    assert text_of(tree.args["from_"]) == "FROM  s  [ RANGE 5 MINUTES SLIDE 1 ROW WATTR ts ]  AS  x"
    assert [text_of(join) for join in tree.args["joins"]] == ["u AS (X, *Y)", "JOIN t ON x.a = t.a"]
    assert text_of(tree.args["where"]) == "WHERE  ( a + b ) * 2 > 1 AND c NOT IN ( 1 , 2 )"
    assert text_of(tree.args["group"]) == "GROUP BY  a , b"
    assert text_of(tree.args["having"]) == "HAVING  sum( a ) > 3"
    assert text_of(tree.args["order"]) == "ORDER BY  a DESC"
    assert text_of(tree.args["limit"]) == "LIMIT  5"


def test_windows_and_patterns(tree: exp.Expr) -> None:
    [window] = tree.find_all(nodes.StreamWindow)
    assert text_of(window) == "[ RANGE 5 MINUTES SLIDE 1 ROW WATTR ts ]"
    assert text_of(window.args["range"]) == "5 MINUTES"
    assert text_of(window.args["slide"]) == "1 ROW"
    assert text_of(window.args["wattr"]) == "ts"
    [spec] = tree.find_all(nodes.OverSpec)
    assert text_of(spec) == "ROWS 3 PRECEDING SLIDE 2"
    [pattern] = tree.find_all(nodes.Pattern)
    assert text_of(pattern) == "AS (X, *Y)"
    assert [text_of(element) for element in pattern.args["elements"]] == ["X", "*Y"]


def test_names(tree: exp.Expr) -> None:
    stream, *_ = tree.find_all(nodes.StreamTable)
    assert text_of(stream.this) == "s"
    assert text_of(stream.args["alias"]) == "AS  x"


def test_parts_of_conditions(tree: exp.Expr) -> None:
    condition = tree.args["where"].this
    assert text_of(condition.left) == "( a + b ) * 2 > 1"
    assert text_of(condition.left.this) == "( a + b ) * 2"
    assert text_of(condition.left.this.this) == "( a + b )"
    assert text_of(condition.right) == "c NOT IN ( 1 , 2 )"


def test_statements_of_a_body() -> None:
    text = "AGGREGATE f(x INT) : INT { TABLE t(a INT); ITERATE : { DELETE FROM t WHERE a > x ; } }"
    [statement] = parse_script(text)
    for node, expected in (
        (statement.tree.args["parameters"][0], "x INT"),
        (statement.tree.args["tables"][0], "TABLE t(a INT)"),
        (statement.tree.args["blocks"][0], "ITERATE : { DELETE FROM t WHERE a > x ; }"),
        (statement.tree.find(exp.Delete), "DELETE FROM t WHERE a > x"),
    ):
        span = span_of(node)
        assert span is not None
        assert text[span[0] : span[1] + 1] == expected


EXPRESSIONS = (
    *(exp.Column, exp.Literal, exp.Anonymous, exp.Dot, exp.Bracket, exp.Binary, exp.Neg, exp.Not, exp.Paren),
    *(exp.In, exp.Between, exp.Case, exp.Cast, exp.Window, exp.Filter, exp.Exists, exp.Boolean, exp.Null),
)
# What stands in these is written in a shorter way than expressions are.
SHORTHAND = (nodes.StreamWindow, nodes.Option, nodes.SetOption, nodes.RowCount, exp.Interval, exp.DataType)


def test_the_text_of_an_expression_gives_the_same_expression(listing: str) -> None:
    for statement in parse_script(listing):
        for node in statement.tree.find_all(*EXPRESSIONS):
            if (
                node.find_ancestor(*SHORTHAND)
                or node.find(exp.Interval, exp.Star)
                or node.arg_key == "windows"
            ):
                continue
            span = span_of(node)
            assert span is not None
            # `a NOT IN (1)` is the text both of NOT and of IN.
            expected = node.parent if isinstance(node.parent, exp.Not) else node
            assert parse_expression(listing[span[0] : span[1] + 1]) == expected
