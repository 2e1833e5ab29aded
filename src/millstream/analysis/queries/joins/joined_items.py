"""Items of FROM that are joined: the order of the result, USING, and sides that cannot be kept whole."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from millstream.analysis.error_collector import error_at
from millstream.analysis.queries.from_clause import (
    columns_of,
    facts_of,
    refuse_tables_beside_streams,
    with_bracket,
)
from millstream.analysis.queries.joins.implied_windows import bounds_hint
from millstream.analysis.queries.output_order import common_order
from millstream.analysis.queries.relation_kind import reads_relation, window_of
from millstream.analysis.queries.resolved_expression import Expr, of_column
from millstream.analysis.queries.resolved_query import FromItem
from millstream.analysis.queries.scope import UNNAMED, Scope, ScopeRelation
from millstream.analysis.queries.window_clause import StreamFacts
from millstream.analysis.types.coercion import common_type
from millstream.catalog.entries import Timestamp, TimestampKind
from millstream.errors import AnalysisError
from millstream.syntax.spans import span_of
from millstream.windows.window_properties import is_of_time


def facts_of_joined(items: list[FromItem], node: exp.Select) -> StreamFacts | None:
    """Return the order of what FROM gives; several streams can only be joined over windows."""
    streams = [item for item in items if facts_of(item) is not None]
    if not streams:
        return None
    refuse_tables_beside_streams(streams, span_of(node))
    if len(streams) > 1:
        for item in streams:
            window = window_of(item)
            if window is None and reads_relation(item, streams):
                continue
            if window is None:
                raise AnalysisError(
                    f"{_shown(item)} is joined with another stream and needs a window",
                    span=item.span or span_of(node),
                    hint=f"without one all of it would have to be kept: {with_bracket(item)}"
                    f"{bounds_hint(streams)}",
                )
            if not window.has_state:
                raise AnalysisError(
                    f"a {type(window).__name__.removesuffix('Window').upper()} window cannot be joined",
                    span=item.span,
                    hint="it has no content at an instant; use RANGE, ROWS, LANDMARK, NOW or UNBOUNDED",
                )
    facts = [f for f in map(_facts_of_content, streams) if f is not None]
    if len(facts) == 1:
        return facts[0]
    type_ = common_order(facts, streams[-1].span or span_of(node), maintained=True)
    timestamp = replace(facts[0].timestamp, type=type_)
    return StreamFacts(timestamp, frozenset(), all(f.bounded for f in facts), facts[0].stored)


def _facts_of_content(item: FromItem) -> StreamFacts | None:
    """Return the facts about an item; a window along another attribute has that as its time."""
    facts, window = facts_of(item), window_of(item)
    if facts is None or window is None or window.attribute is None or not is_of_time(window):
        return facts
    name = window.attribute.lower()
    if name == (facts.timestamp.column or "").lower():
        return facts
    column = next((field for field in columns_of(item) or () if field.name.lower() == name), None)
    if column is None:
        return facts
    timestamp = Timestamp(TimestampKind.EXTERNAL, column.name, column.type)
    return replace(facts, timestamp=timestamp, promised=frozenset({column.name.lower()}))


def equal_columns(
    names: list[exp.Identifier], kind: str, before: list[ScopeRelation], right: ScopeRelation, scope: Scope
) -> tuple[Expr, ...]:
    """Return the conditions of USING; each column is taken from the first relation that has it."""
    conditions: list[Expr] = []
    for name in names:
        left_column = next((c for c in (r.find(name.name) for r in before) if c is not None), None)
        right_column = right.find(name.name)
        if left_column is None or right_column is None:
            raise error_at(name, f"USING column '{name.name}' is not on both sides of the join")
        key = name.name.lower()
        left = scope.filled.get(key) or of_column(left_column)
        conditions.append(Expr((*left.parts, " = ", right_column)))
        scope.merged[key] = left_column.relation
        if kind == "right":
            scope.filled[key] = of_column(right_column)
        elif kind == "full":
            type_ = common_type(left.type, right_column.type) or left.type
            scope.filled[key] = Expr(("coalesce(", *left.parts, ", ", right_column, ")"), type_)
    return tuple(conditions)


def common_columns(join: exp.Join, before: list[ScopeRelation], right: ScopeRelation) -> list[exp.Identifier]:
    """Return the columns by which a NATURAL join compares: those that both sides have."""
    if right.fields is None or any(relation.fields is None for relation in before):
        raise error_at(join.this, "a NATURAL JOIN needs columns that are known", hint="name them: USING (k)")
    names = {field.name.lower() for relation in before for field in relation.fields or ()}
    shared = [exp.to_identifier(field.name) for field in right.fields if field.name.lower() in names]
    if not shared:
        raise error_at(join.this, "a NATURAL JOIN of relations without a common column", hint="use ON")
    return shared


def refuse_whole_table(join: exp.Join, kind: str, before: list[ScopeRelation], right: ScopeRelation) -> None:
    """Refuse a join that keeps all rows of a table beside a stream."""
    left_streams = any(relation.is_stream for relation in before)
    right_stream = right.is_stream
    if left_streams != right_stream:
        preserved_table = {"left": right_stream, "right": left_streams, "full": True}.get(kind, False)
        if preserved_table or (kind in ("semi", "anti") and right_stream):
            raise error_at(
                join.this,
                f"a {kind.upper()} join would keep rows of the table that no tuple has met yet",
                hint="only the stream can be the side that is kept whole",
            )


def _shown(item: FromItem) -> str:
    return "a query in an expression" if item.alias.startswith(f"{UNNAMED}_") else f"'{item.alias}'"
