"""Errors at run time are shown where their cause is written."""

from __future__ import annotations

import pytest

from millstream.analysis.definitions.statement_analyzer import RunQuery, analyse
from millstream.catalog import Catalog
from millstream.runtime.queries.query_request import QueryRequest
from millstream.syntax import parse_script

SCRIPT = """CREATE STREAM s (k STRING, d DATE) ORDER BY d USING csv OPTIONS (path 's.csv', header 'true');
SELECT k, count(*) AS n FROM s [TUMBLE 1 DAY] GROUP BY k;
"""
HEADER = (
    "CSV header does not conform to the schema.\n Header: a, d\n Schema: k, d\nExpected: k\nCSV file: /s.csv"
)


def request() -> QueryRequest:
    catalog = Catalog()
    *_, (meaning, statement) = [
        (analyse(statement, catalog).meaning, statement) for statement in parse_script(SCRIPT)
    ]
    assert isinstance(meaning, RunQuery)
    return QueryRequest(meaning.query, statement.source, statement.span, "q1")


@pytest.mark.parametrize(
    "text", [HEADER, "Unknown pattern letter: b", "All week-based patterns are unsupported since Spark 3.0"]
)
def test_what_is_wrong_in_a_declaration_is_shown_there(text: str) -> None:
    error = request().explain(ValueError(text))
    assert error.place is not None
    assert error.place.line == 1


def test_what_is_wrong_in_a_query_is_shown_there() -> None:
    error = request().explain(ValueError("Division by zero"))
    assert error.place is not None
    assert error.place.line == 2
