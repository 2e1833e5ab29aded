"""Checks of a script's statements before the first of them runs."""

from __future__ import annotations

from millstream.analysis.definitions.statement_analyzer import (
    AnalysedStatement,
    Definition,
    InsertQuery,
    RunQuery,
)
from millstream.plan.views import form_of
from millstream.runtime.queries.query_request import plan_query
from millstream.runtime.results.sinks import write_once


class Runnable:
    """Checks one statement after the other, and raises an error for one that cannot run."""

    def __init__(self) -> None:
        self._written: set[str] = set()

    def __call__(self, statement: AnalysedStatement) -> None:
        match statement.meaning:
            case RunQuery(query):
                plan_query(query, statement.source)
            case InsertQuery(sink, query):
                plan_query(query, statement.source)
                write_once(sink, self._written, statement)
            case Definition() as definition:
                for view, query in definition.views:
                    plan_query(query, statement.source, form_of(view))
