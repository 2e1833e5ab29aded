"""Items of FROM: what they are, which columns and order they have, how they are joined."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sqlglot import exp

from millstream.analysis.error_collector import error_at
from millstream.analysis.queries.name_resolver import aggregate_name
from millstream.analysis.queries.resolved_query import (
    FromItem,
    ReadLateral,
    ReadQuery,
    ReadStream,
    ReadTable,
    Select,
    SetOperation,
)
from millstream.analysis.queries.scope import Scope, ScopeRelation
from millstream.analysis.queries.window_clause import ROW_NUM, StreamFacts
from millstream.analysis.types.quantities import example
from millstream.catalog import Catalog
from millstream.catalog.entries import Derived, Rejected, Stream, Table, Timestamp, TimestampKind
from millstream.errors import AnalysisError, Span
from millstream.syntax import nodes
from millstream.syntax.spans import span_of
from millstream.types import TIMESTAMP, UNKNOWN, Field
from millstream.windows.window_spec import Window

_ORDER_A_TABLE = "declare its order: CREATE TABLE t (...) ORDER BY column USING ..."


def tables_of(node: exp.Select) -> list[exp.Expr]:
    clause = node.args.get("from_")
    return [clause.this, *(join.this for join in joins_of(node, clause))] if clause else []


def joins_of(node: exp.Select, clause: exp.Expr) -> list[exp.Join]:
    return [*(clause.this.args.get("joins") or ()), *(node.args.get("joins") or ())]


def columns_of(item: FromItem) -> tuple[Field, ...] | None:
    match item:
        case ReadStream():
            return item.stream.schema
        case ReadTable():
            return item.table.schema
        case ReadQuery():
            return item.query.fields
        case ReadLateral():
            return tuple(output.field for output in item.outputs)


def facts_of(item: FromItem) -> StreamFacts | None:
    match item:
        case ReadStream():
            return facts_of_stream(item.stream)
        case ReadQuery(query=query) if query.facts is not None:
            return query.facts
        case ReadTable(order=Timestamp() as order) | ReadQuery(order=Timestamp() as order):
            return StreamFacts(order, frozenset(), bounded=True, stored=True)
        case _:
            return None


def facts_of_stream(stream: Stream) -> StreamFacts:
    """Return the facts about a stream of the catalog that windows need."""
    if isinstance(stream.origin, Derived) and isinstance(stream.origin.definition, Select | SetOperation):
        facts = stream.origin.definition.facts
        if facts is not None:
            return facts
    return StreamFacts(stream.timestamp, stream.promised(), stream.is_bounded)


def is_declared(item: FromItem) -> bool:
    """Tell whether an item is a stream with columns and clauses of its own."""
    return isinstance(item, ReadStream) and not isinstance(item.stream.origin, Derived | Rejected)


def with_window(item: FromItem, window: Window, order: Timestamp | None = None) -> FromItem:
    """Return an item with its window; rows of tables get an order."""
    assert not isinstance(item, ReadLateral), "it has no window"
    if isinstance(item, ReadStream) or order is None:
        return replace(item, window=window)
    return replace(item, window=window, order=order)


def order_of_table(bracket: nodes.StreamWindow, item: FromItem, relation: ScopeRelation) -> StreamFacts:
    """Return a table as a stream, in the order that it is declared with or that the window names."""
    attribute = bracket.args.get("wattr") or bracket.args.get("rattr")
    declared = item.table.order if isinstance(item, ReadTable) and isinstance(item.table, Table) else None
    if attribute is not None and attribute.name.lower() == ROW_NUM and relation.find(ROW_NUM) is None:
        raise error_at(
            attribute,
            f"'{relation.alias}' is a table, whose rows do not arrive",
            hint="count rows in the order of a column: [ROWS n SLIDE m]",
        )
    name = declared or (attribute.name if attribute is not None else None)
    if name is None:
        by_attribute = bracket.kind in ("RANGE", "TUMBLE", "LANDMARK", "UNBOUNDED", "SESSION")
        raise error_at(
            bracket,
            f"'{relation.alias}' is a table and has no order of its own",
            hint="name the attribute: [RANGE r SLIDE s WATTR a]" if by_attribute else _ORDER_A_TABLE,
        )
    column = relation.find(name)
    timestamp = Timestamp(TimestampKind.EXTERNAL, name, column.type if column else UNKNOWN)
    return StreamFacts(timestamp, frozenset(), bounded=True, stored=True)


def in_declared_order(node: exp.Select, source: FromItem, scope: Scope, catalog: Catalog) -> FromItem:
    """Return a table as a stream in its declared order, if a clause along that order needs one."""
    if not isinstance(source, ReadTable) or source.window is not None or not isinstance(source.table, Table):
        return source
    name, relation = source.table.order, scope.relations[0]
    pattern = tables_of(node)[0].args.get("pattern")
    if name is None or not (
        any(_goes_along(window, name, catalog) for window in node.find_all(exp.Window))
        if pattern is None
        else not pattern.args.get("sequence_by")
    ):
        return source
    scope.relations[0] = replace(relation, is_stream=True)
    column = relation.find(name)
    return replace(source, order=Timestamp(TimestampKind.EXTERNAL, name, column.type if column else UNKNOWN))


def _goes_along(window: exp.Window, order: str, catalog: Catalog) -> bool:
    """Tell whether only a stream has what OVER asks for: SLIDE and the like, or the order itself."""
    spec, written = window.args.get("spec"), window.args.get("order")
    if isinstance(spec, nodes.OverSpec) and any(spec.args.get(name) for name in ("slide", "active", "emit")):
        return written is None or [o.this.name.lower() for o in written.expressions] == [order.lower()]
    return written is None and catalog.has_aggregate(aggregate_name(window))


def refuse_tables_beside_streams(items: Iterable[FromItem], span: Span | None) -> None:
    """Refuse windows on tables beside streams: rows of a table are all there before the first tuple comes."""
    known = [(item, facts) for item in items if (facts := facts_of(item)) is not None]
    stored = [item for item, facts in known if facts.stored]
    if stored and len(stored) < len(known):
        raise AnalysisError(
            f"'{stored[0].alias}' is a table with a window, beside a stream",
            span=stored[0].span or span,
            hint="read it without a window, or as a stream: CREATE STREAM ... ORDER BY column USING ...",
        )


def is_true(node: exp.Expr) -> bool:
    """Tell whether a condition is the literal TRUE, which the parser also adds to a join without ON."""
    return isinstance(node, exp.Boolean) and bool(node.this)


def searched(table: nodes.StreamTable | nodes.StreamSubquery) -> str:
    """Show what a pattern is searched in."""
    return table.name if isinstance(table, nodes.StreamTable) else "(SELECT ...)"


def refuse_variables_in_joins(table: nodes.StreamTable | nodes.StreamSubquery, joins: list[exp.Join]) -> None:
    variables = {element.name.lower() for element in table.args["pattern"].args["elements"]}
    for join in joins:
        condition = join.args.get("on")
        for column in condition.find_all(exp.Column) if condition is not None else ():
            if len(column.parts) > 1 and column.parts[0].name.lower() in variables:
                raise error_at(
                    column,
                    "a pattern is joined with tables in WHERE",
                    hint=f"FROM {searched(table)} ... AS (X, *Y), t WHERE X.k = t.k",
                )


_ONLY_ON_TABLES = {
    "sample": "TABLESAMPLE",
    "pivots": "PIVOT",
    "version": "time travel",
    "when": "time travel",
}


def refuse_on_streams(node: exp.Expr) -> None:
    """Refuse clauses behind a name in FROM that do not go with a stream."""
    for argument, what in _ONLY_ON_TABLES.items():
        if node.args.get(argument):
            raise error_at(node, f"{what} cannot be used in a query over a stream")
    alias = node.args.get("alias")
    if isinstance(alias, exp.TableAlias) and alias.args.get("columns"):
        raise AnalysisError(
            "columns cannot be renamed in FROM in a query over a stream",
            span=span_of(alias) or span_of(node),
            hint="rename them where they are selected: SELECT a AS b",
        )


def with_bracket(item: FromItem) -> str:
    """Show an item of FROM with a window, for hints."""
    name = item.stream.name if isinstance(item, ReadStream) else item.alias
    alias = "" if name.lower() == item.alias.lower() else f" AS {item.alias}"
    return f"{name} [RANGE {length_on(item)}]{alias}"


def length_on(item: FromItem, time: str = "1 MINUTE", number: str = "100") -> str:
    """Return a length of a window on an item, for hints."""
    facts = facts_of(item)
    return example(facts.timestamp.type or TIMESTAMP, time, number) if facts is not None else time


def join_kind(join: exp.Join) -> str:
    side, kind = (join.side or "").lower(), (join.kind or "").lower()
    if join.method == "ASOF" and (kind or side not in ("", "left")):
        raise error_at(join.this, "there are ASOF JOIN and ASOF LEFT JOIN only")
    if kind in ("semi", "anti"):
        return kind
    if side:
        return side
    return "cross" if kind == "cross" else "inner"
