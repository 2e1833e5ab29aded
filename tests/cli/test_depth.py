"""Deep and long queries pass the front end in little time; what is too deep is refused in words."""

from __future__ import annotations

import time

import pytest

from millstream.cli.check_command import check_script, explain_script
from millstream.errors import AnalysisError, EslSyntaxError

PRELUDE = """
CREATE STREAM s (a INT, b INT, t INT) ORDER BY t USING csv OPTIONS (path 's.csv');
CREATE TABLE k (a INT, b INT) USING csv OPTIONS (path 'k.csv');
"""


def in_body(value: str) -> str:
    return f"""CREATE AGGREGATE g(x INT) : BIGINT {{ TABLE w(m BIGINT);
        INITIALIZE : {{ INSERT INTO w VALUES (x); }}
        ITERATE    : {{ UPDATE w SET m = {value}; }}
        TERMINATE  : {{ INSERT INTO RETURN SELECT m FROM w; }} }};
    EXPLAIN CODE SELECT g(a) OVER (ROWS 3 PRECEDING) FROM s"""


def chain(streams: int, query: str) -> str:
    """Streams of which each is made of the one before."""
    made = [f"CREATE STREAM s{i} AS {query.format('s' if i == 0 else f's{i - 1}')};" for i in range(streams)]
    return "\n".join([*made, f"SELECT a FROM s{streams - 1}"])


DEEP = {
    "parentheses": "SELECT " + "(" * 200 + "a" + ")" * 200 + " FROM s",
    "calls": "SELECT " + "coalesce(b, " * 200 + "a" + ")" * 200 + " FROM s",
    "cases": "SELECT " + "CASE WHEN a > 1 THEN " * 200 + "a" + " ELSE 1 END" * 200 + " FROM s",
    "terms": "SELECT " + "a + " * 999 + "a FROM s",
    "conditions": "SELECT a FROM s WHERE " + "a > 1 AND b > 1 OR " * 499 + "a > 2",
    "aggregates": "SELECT " + "sum(a) + " * 999 + "1 FROM s [TUMBLE 10]",
    "unions of streams": " UNION ALL ".join(["SELECT a, t FROM s"] * 300),
    "unions of tables": " UNION ALL ".join(["SELECT a FROM k"] * 300),
    "queries in FROM": "SELECT a FROM " + "(SELECT a + 1 AS a, t FROM " * 50 + "s" + " WHERE a > 1)" * 50,
    "queries in WHERE": "SELECT a FROM s WHERE a IN " + "(SELECT a FROM k WHERE b IN " * 49 + "(1" + ")" * 50,
    "terms of a pattern": "SELECT X.a FROM s AS (X, *Y) WHERE Y.a > " + "X.a + " * 999 + "1",
    "terms in a body": in_body("m + " * 999 + "x"),
    "parentheses in a body": in_body("(x + " * 200 + "m" + ")" * 200),
    "streams": chain(100, "SELECT a + 1 AS a, b, t FROM {} WHERE a > 0"),
    "streams that double": chain(100, "SELECT a + a AS a, b, t FROM {} WHERE a > 0"),
}


@pytest.mark.parametrize("query", DEEP.values(), ids=DEEP.keys())
def test_deep_queries_pass(query: str, capsys: pytest.CaptureFixture[str]) -> None:
    began = time.process_time()
    check_script(f"{PRELUDE}{query};", "deep.esl")
    assert time.process_time() - began < 20
    assert "note" not in capsys.readouterr().err


TOO_DEEP = {
    "parentheses": "SELECT " + "(" * 300 + "a" + ")" * 300 + " FROM s",
    "terms": "SELECT " + "a + " * 1_300 + "a FROM s",
    "queries": "SELECT a FROM " + "(SELECT a FROM " * 300 + "s" + ")" * 300,
}


@pytest.mark.parametrize("query", TOO_DEEP.values(), ids=TOO_DEEP.keys())
def test_what_is_too_deep_is_refused(query: str) -> None:
    with pytest.raises(EslSyntaxError, match="this is nested too deeply"):
        check_script(f"{PRELUDE}{query};", "deep.esl")


def test_a_plan_that_is_too_deep_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_deep(*_: object) -> None:
        raise RecursionError

    monkeypatch.setattr("millstream.plan.planner.optimize", too_deep)
    with pytest.raises(AnalysisError, match="too many derived streams and subqueries"):
        check_script(f"{PRELUDE}SELECT a FROM s;", "deep.esl")


@pytest.mark.parametrize(
    ("statement", "shown"),
    [
        (in_body("m + x"), "# aggregate  g(x int)"),
        ("EXPLAIN CODE SELECT X.a FROM s AS (X, *Y) WHERE Y.a > X.a", "# pattern    "),
        ("EXPLAIN CODE SELECT a FROM s", "this query has neither aggregates of your own nor patterns"),
        ("EXPLAIN PHYSICAL SELECT a FROM s", "Output  order by time\n└─ Compute  a := c0"),
    ],
)
def test_explain_without_spark(statement: str, shown: str, capsys: pytest.CaptureFixture[str]) -> None:
    explain_script(f"{PRELUDE}{statement};", "deep.esl")
    assert shown in capsys.readouterr().out
