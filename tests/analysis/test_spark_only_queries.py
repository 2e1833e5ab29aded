"""A query over tables may use whatever Spark SQL has, also what ESL's own parser does not know."""

import pytest

from millstream.analysis.definitions.statement_analyzer import RunQuery, analyse
from millstream.analysis.queries.resolved_query import TableQuery
from millstream.catalog import Catalog
from millstream.errors import AnalysisError, EslSyntaxError
from millstream.syntax import parse_script

PRELUDE = """
    CREATE TABLE t (k STRING, v INT) USING csv OPTIONS (path 't.csv');
    CREATE STREAM s (k STRING, v INT) USING kafka;
"""


def meaning(query: str) -> object:
    catalog = Catalog()
    statements = parse_script(PRELUDE + query + "; SHOW TABLES;", "q.esl")
    return [analyse(statement, catalog).meaning for statement in statements][2]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM t PIVOT (sum(v) FOR k IN ('a', 'b'))",
        "SELECT * FROM t UNPIVOT (x FOR y IN (k, v))",
        "FROM t |> WHERE v > 1 |> SELECT k",
        "SELECT * FROM t VERSION AS OF 3",
        "SELECT v BETWEEN SYMMETRIC 2 AND 1 FROM t",
        "SELECT parse_json(k):a.b FROM t",
    ],
)
def test_spark_gets_the_text_as_it_was_written(query: str) -> None:
    found = meaning(query)
    assert isinstance(found, RunQuery)
    assert isinstance(found.query, TableQuery)
    assert found.query.text == query
    assert found.query.tables == ("t",)


def test_it_is_not_for_streams() -> None:
    with pytest.raises(AnalysisError, match=r"q.esl:5:1: .*for tables only"):
        meaning("\nSELECT * FROM s PIVOT (sum(v) FOR k IN ('a', 'b'))")


def test_tables_must_be_known() -> None:
    with pytest.raises(AnalysisError, match="unknown stream or table 'tt'"):
        meaning("SELECT * FROM tt PIVOT (sum(v) FOR k IN ('a', 'b'))")


def test_a_slip_is_still_a_slip() -> None:
    with pytest.raises(EslSyntaxError, match="did not expect"):
        meaning("SELECT k v w FROM t")
