"""``check`` and ``explain``: analysis and planning of a script without Spark."""

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
from millstream.errors import MillstreamError
from millstream.plan.builder import build
from millstream.plan.explain.explain_pattern import MODES, explained_patterns
from millstream.plan.explain.plan_report import explained
from millstream.plan.nodes import Node
from millstream.plan.planner import best_plan
from millstream.plan.refusals import why_not
from millstream.plan.views import form_of
from millstream.runtime.column_inference import inferred_columns


def check_script(text: str, name: str) -> None:
    """Raise the mistakes of a script, and print notes on it, among them what this version cannot run."""
    statements = _analysed(text, name, _catalog())
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
            place = statement.source.place(reason.span or query.span or statement.span)
            hint = f" (hint: {reason.hint})" if reason.hint is not None else ""
            _tell(f"{place}: note: {reason}{hint}")
    _tell(
        f"{name}: {_count(len(statements), 'statement')}, {_count(queries, 'query', 'queries')}, no mistakes"
    )


def _catalog() -> Catalog:
    catalog = Catalog()
    catalog.infer = inferred_columns
    return catalog


def explain_script(text: str, name: str, *, physical: bool = False) -> None:
    """Print the EXPLAIN of every query, logical (or ``physical``) if no other is asked for."""
    number = 0
    catalog = _catalog()
    for statement in _analysed(text, name, catalog):
        query = query_of(statement)
        if query is None:
            continue
        match statement.meaning:
            case InsertQuery(sink, _):
                title = f"INSERT INTO {sink.name}"
            case ExplainQuery(mode, _):
                title = f"EXPLAIN {mode}"
            case Definition() as definition:
                title = f"VIEW {next(definition.views)[0].name}"
            case _:
                number += 1
                title = f"q{number}"
        print(f"-- {title}")  # noqa: T201
        plan = planned(statement, query)
        usual = "PHYSICAL" if physical else "LOGICAL"
        mode = statement.meaning.mode if isinstance(statement.meaning, ExplainQuery) else usual
        print(_explained(plan, mode, catalog))  # noqa: T201


def _explained(plan: Node, mode: str, catalog: Catalog) -> str:
    if mode in MODES:
        return explained_patterns(plan, mode)
    if mode == "LOGICAL":
        return explained(plan)
    from millstream.runtime.explain import EXPLAINED  # the physical plan, which `check` does without

    reason = why_not(plan)
    return EXPLAINED[mode](plan, catalog) if reason is None else str(reason)


def _analysed(text: str, name: str, catalog: Catalog) -> list[AnalysedStatement]:
    # Classes in Python that the script names may stand beside it.
    sys.path.insert(0, str(Path(name).resolve().parent))
    return analyse_script(text, name, catalog, _plan)


def _plan(statement: AnalysedStatement) -> None:
    query = query_of(statement)
    if query is not None:
        planned(statement, query)


def query_of(statement: AnalysedStatement) -> Query | None:
    """Return the query of a statement, or of the view that it creates."""
    meaning = statement.meaning
    if isinstance(meaning, Definition):
        return next((query for _, query in meaning.views), None)
    return meaning.query if isinstance(meaning, RunQuery | InsertQuery | ExplainQuery) else None


def planned(statement: AnalysedStatement, query: Query) -> Node:
    meaning = statement.meaning
    form = form_of(next(meaning.views)[0]) if isinstance(meaning, Definition) else build
    try:
        return best_plan(query, form)
    except MillstreamError as error:
        raise error.locate(statement.source) from None


def _count(number: int, one: str, many: str | None = None) -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


def _tell(message: str) -> None:
    print(message, file=sys.stderr)  # noqa: T201
