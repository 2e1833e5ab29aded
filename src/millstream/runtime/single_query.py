"""Single queries passed as text by Python code."""

from __future__ import annotations

from sqlglot import exp

from millstream.analysis.definitions.fence import check_fence
from millstream.analysis.definitions.statement_analyzer import AnalysedStatement, RunQuery
from millstream.analysis.queries.query_analyzer import analyse_query
from millstream.analysis.queries.resolved_query import Query
from millstream.catalog import Catalog
from millstream.errors import AnalysisError, MillstreamError
from millstream.syntax import parse_script


def single_query(text: str, catalog: Catalog) -> tuple[AnalysedStatement, Query]:
    """Analyse a text that is one query; return the statement and the query."""
    statements = parse_script(text, "<query>")
    if len(statements) != 1:
        raise AnalysisError(f"expected one query, not {len(statements)} statements", hint="use execute()")
    statement = statements[0]
    if not isinstance(statement.tree, exp.Query):
        raise AnalysisError("expected a query", span=statement.span, hint="use execute()").locate(
            statement.source
        )
    try:
        check_fence(statement, catalog)
        query = analyse_query(statement.tree, catalog, statement.source)
    except MillstreamError as error:
        raise error.locate(statement.source) from None
    return AnalysedStatement(RunQuery(query), statement.source, statement.span), query
