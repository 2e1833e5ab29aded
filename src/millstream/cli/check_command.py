"""``check`` and ``explain``: everything that can be known of a script without Spark."""

from __future__ import annotations

import sys
from pathlib import Path

from millstream.analysis.definitions.script_analyzer import analyse_script
from millstream.analysis.definitions.statement_analyzer import (
    AnalysedStatement,
    Definition,
    ExplainQuery,
    InsertQuery,
    RunQuery,
)
from millstream.analysis.notes import notes_of
from millstream.analysis.queries.resolved_query import Query
from millstream.catalog import Catalog
from millstream.codegen.udas.explain_code import NO_PROGRAMS, listing
from millstream.errors import MillstreamError
from millstream.plan.builder import build
from millstream.plan.explain.explain_common import explained_common
from millstream.plan.explain.explain_pattern import MODES, explained_patterns
from millstream.plan.explain.plan_report import explained
from millstream.plan.generated_programs import programs_of
from millstream.plan.nodes import Node
from millstream.plan.planner import best_plan
from millstream.plan.refusals import in_words, why_not
from millstream.plan.views import build_view


def check_script(text: str, name: str) -> None:
    """Find the mistakes of a script; of what is right but cannot be run yet, say so."""
    statements = _analysed(text, name)
    queries = 0
    for statement in statements:
        for note in notes_of(statement):
            _tell(f"{note.place}: note: {note}")
        query = query_of(statement)
        if query is None:
            continue
        queries += 1
        reason = why_not(planned(statement, query))
        if isinstance(statement.meaning, ExplainQuery):
            reason = None if statement.meaning.mode in ("LOGICAL", *MODES) else reason
        if reason is not None:
            place = statement.source.place(query.span or statement.span)
            _tell(f"{place}: note: {in_words(reason)}")
    _tell(
        f"{name}: {_count(len(statements), 'statement')}, {_count(queries, 'query', 'queries')}, no mistakes"
    )


def explain_script(text: str, name: str) -> None:
    """Print what EXPLAIN says of every query, of others the logical plan, and what patterns share."""
    number = 0
    running: list[tuple[str, Node]] = []
    for statement in _analysed(text, name):
        query = query_of(statement)
        if query is None:
            continue
        match statement.meaning:
            case InsertQuery(sink, _):
                title = f"INSERT INTO {sink.name}"
            case ExplainQuery(mode, _):
                title = f"EXPLAIN {mode}"
            case Definition() as definition:
                title = f"VIEW {next(definition.views)[0]}"
            case _:
                number += 1
                title = f"q{number}"
        print(f"-- {title}")  # noqa: T201
        plan = planned(statement, query)
        mode = statement.meaning.mode if isinstance(statement.meaning, ExplainQuery) else "LOGICAL"
        print(_explained(plan, mode))  # noqa: T201
        if isinstance(statement.meaning, RunQuery):
            running.append((title, plan))
    if together := explained_common(running):
        print(together)  # noqa: T201


def _explained(plan: Node, mode: str) -> str:
    if mode in MODES:
        return explained_patterns(plan, mode)
    if mode == "CODE":
        reason = why_not(plan)
        return in_words(reason) if reason is not None else listing(programs_of(plan)) or NO_PROGRAMS
    if mode == "PHYSICAL":
        return f"{explained(plan)}\n-- the physical plan needs Spark: millstream run prints it"
    return explained(plan)


def _analysed(text: str, name: str) -> list[AnalysedStatement]:
    # Classes in Python that the script names may stand beside it.
    sys.path.insert(0, str(Path(name).resolve().parent))
    return analyse_script(text, name, Catalog(), _plan)


def _plan(statement: AnalysedStatement) -> None:
    query = query_of(statement)
    if query is not None:
        planned(statement, query)


def query_of(statement: AnalysedStatement) -> Query | None:
    """What a statement asks for, or shows as a view."""
    meaning = statement.meaning
    if isinstance(meaning, Definition):
        return next((query for _, query in meaning.views), None)
    return meaning.query if isinstance(meaning, RunQuery | InsertQuery | ExplainQuery) else None


def planned(statement: AnalysedStatement, query: Query) -> Node:
    form = build_view if isinstance(statement.meaning, Definition) else build
    try:
        return best_plan(query, form)
    except MillstreamError as error:
        raise error.locate(statement.source) from None


def _count(number: int, one: str, many: str | None = None) -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


def _tell(message: str) -> None:
    print(message, file=sys.stderr)  # noqa: T201
