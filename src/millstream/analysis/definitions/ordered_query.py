"""ORDER BY of a derived stream: a stateless query over a stream without a timestamp is given an order."""

from __future__ import annotations

from dataclasses import replace
from typing import NoReturn

from millstream.analysis.error_collector import error_at
from millstream.analysis.queries.resolved_expression import Expr
from millstream.analysis.queries.resolved_query import ReadStream, Select
from millstream.catalog.entries import (
    ComputedColumn,
    Derived,
    Rejected,
    Selection,
    SelectStep,
    Stream,
    TimestampKind,
)
from millstream.errors import AnalysisError
from millstream.syntax import nodes


def selecting(derived: Stream, node: nodes.CreateStream) -> Stream:
    """Return a derived stream as one that reads the source of its query's stream, and is judged behind it."""
    steps: list[SelectStep] = []
    stream = derived
    while isinstance(stream.origin, Derived):
        read = _read(stream.origin.definition, node)
        steps.insert(0, _step(read, stream, node))
        stream = read.stream
    if isinstance(stream.origin, Rejected):
        _refuse(node, f"'{stream.name}' has {stream.origin.reason} records of '{stream.origin.stream}'")
    if stream.timestamp.kind is TimestampKind.EXTERNAL or stream.promises_on_others:
        hint = f"leave ORDER BY and its clauses out of '{stream.name}', or put other columns into it with ON"
        _refuse(node, f"'{stream.name}' is ordered already, and drops its own late tuples", hint)
    selection = Selection(stream, tuple(steps))
    return replace(derived, origin=stream.origin, selection=selection)


def _read(query: object, node: nodes.CreateStream) -> ReadStream:
    """Return the only stream of a stateless query."""
    if not isinstance(query, Select):
        _refuse(node, "its query is a set operation")
    source = query.source
    if query.joins or not isinstance(source, ReadStream):
        _refuse(node, "its query reads more than one stream")
    stateful = {
        "a window": source.window,
        "aggregates": query.aggregates or query.overs or query.group_by,
        "ranks": query.ranks or query.top,
        "LIMIT": query.limit,
        "a pattern": query.pattern,
        "DISTINCT": query.distinct,
        f"{query.to_stream}": query.to_stream,
    }
    for what, given in stateful.items():
        if given:
            _refuse(node, f"its query has {what}, whose results have an order of their own")
    return source


def _step(read: ReadStream, made: Stream, node: nodes.CreateStream) -> SelectStep:
    assert isinstance(made.origin, Derived)
    query = made.origin.definition
    assert isinstance(query, Select)
    for expr in (*query.where, *(output.expr for output in query.outputs)):
        _check(expr, node)
    for field in made.schema:
        if not field.type.is_known:
            _refuse(
                node,
                f"only Spark knows the type of its column '{field.name}'",
                "convert it with CAST",
            )
    columns = tuple(
        ComputedColumn(field.name, replace(output.expr, tree=None))
        for field, output in zip(made.schema, query.outputs, strict=True)
    )
    conditions = tuple(replace(condition, tree=None) for condition in query.where)
    return SelectStep(read.alias, conditions, columns, made.schema)


def _check(expr: Expr, node: nodes.CreateStream) -> None:
    if expr.calls_python:
        _refuse(
            node,
            "its query calls a function in Python, whose failure would end the query",
            "write the function in SQL, or call it in a query that reads the ordered stream",
        )
    if not expr.movable:
        _refuse(
            node,
            f"'{expr}' would have other values when the input is read again",
            "leave out functions of chance",
        )


def _refuse(node: nodes.CreateStream, reason: str, hint: str | None = None) -> NoReturn:
    error: AnalysisError = error_at(
        node.args["order_by"],
        f"'{node.name}' cannot be ordered anew: {reason}",
        hint=hint or "order it in a stateless query over one stream: SELECT ... FROM s WHERE ...",
    )
    raise error
