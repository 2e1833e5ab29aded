"""Queries over tables that Spark runs as they are written, but for UNNEST and generators in FROM."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sqlglot import exp

from millstream.analysis.queries.from_clause import tables_of
from millstream.analysis.queries.lateral.lateral_items import GENERATORS, is_own
from millstream.analysis.queries.named_windows import written_out
from millstream.analysis.queries.scope import Scope, ScopeRelation
from millstream.errors import MillstreamError, Span
from millstream.syntax import nodes
from millstream.syntax.spans import span_of
from millstream.types import UNKNOWN, Kind, Type

if TYPE_CHECKING:
    from millstream.analysis.queries.query_analyzer import QueryAnalyser
    from millstream.catalog import Catalog


def is_plain(node: exp.Expr, catalog: Catalog) -> bool:
    """Tell whether a query has no construct that only ESL has."""
    for part in node.walk():
        if isinstance(part, nodes.StreamWindow | nodes.Pattern | nodes.Starred):
            return False
        if isinstance(part, nodes.OverSpec) and any(part.args.get(a) for a in ("slide", "active", "emit")):
            return False
        if isinstance(part, exp.Anonymous) and is_own(part.name, catalog):
            return False
        if isinstance(part, exp.Select) and part.args.get("operation_modifiers"):
            return False
    return True


def spark_text(node: exp.Expr, analyser: QueryAnalyser) -> str:
    """Return the text of a query over tables for Spark."""
    span = span_of(node)
    assert span is not None
    text, position = "", span[0]
    replacements = [*_replacements(node, analyser), *written_out(node, analyser.source.text)]
    for (start, end), replacement in sorted(replacements):
        text += analyser.source.text[position:start] + replacement
        position = end + 1
    return text + analyser.source.text[position : span[1] + 1]


def _replacements(node: exp.Expr, analyser: QueryAnalyser) -> Iterator[tuple[Span, str]]:
    for item in node.find_all(exp.Table, exp.Unnest):
        span = span_of(item)
        if span is None or not is_generator(item):
            continue
        inside = isinstance(item.parent, exp.Lateral)
        lateral = "" if inside or isinstance(item.parent, exp.From) else "LATERAL "
        if isinstance(item, exp.Unnest):
            yield span, f"{lateral}{_unnested(item, analyser)}"
            continue
        alias = span_of(item.args["alias"]) if item.args.get("alias") is not None else None
        call = span_of(item.this)
        assert call is not None
        written = analyser.source.text[call[0] : call[1] + 1]
        named = "" if alias is None else f" {analyser.source.text[alias[0] : alias[1] + 1]}"
        yield span, f"{lateral}{written}{named}"


def is_generator(item: exp.Expr) -> bool:
    """Tell whether an item of FROM is written in another way than Spark writes it."""
    if isinstance(item, exp.Unnest | nodes.TableCall):
        return True
    known = isinstance(item, exp.Table) and isinstance(item.this, exp.Anonymous)
    return known and item.this.name.lower().removesuffix("_outer") in GENERATORS


def _unnested(item: exp.Unnest, analyser: QueryAnalyser) -> str:
    argument = item.expressions[0]
    span = span_of(argument)
    assert span is not None
    items = analyser.source.text[span[0] : span[1] + 1]
    type_ = _type_of(argument, item, analyser)
    alias, offset = item.args.get("alias"), item.args.get("offset")
    columns = [c.name for c in (alias.args.get("columns") or ())] if alias is not None else []
    name = alias.name if alias is not None and alias.this is not None else ""
    fields = ["col"]
    if type_.kind is Kind.MAP:
        fields = ["key", "value"]
    elif type_.element is not None and type_.element.kind is Kind.STRUCT:
        fields = [field.name for field in type_.element.fields]
    elif name:
        fields = [name]
    is_row = len(fields) > 1 or fields[0] not in ("col", name)
    call = f"inline({items})" if is_row and type_.kind is not Kind.MAP else f"explode({items})"
    if offset:
        listed = f"map_entries({items})" if type_.kind is Kind.MAP else items
        values = [f"'{field}', e.`{field}`" for field in fields] if is_row else ["'col', e"]
        place = "i + 1" if offset == "ORDINALITY" else "i"
        row = ", ".join((*values, f"'place', {place}"))
        call = f"inline(transform({listed}, (e, i) -> named_struct({row})))"
        fields.append(offset.lower() if isinstance(offset, str) else offset.name)
    names = ", ".join(f"`{column}`" for column in columns or fields)
    return f"{call} AS `{name or 'unnest'}`({names})"


def _type_of(argument: exp.Expr, item: exp.Expr, analyser: QueryAnalyser) -> Type:
    """Return the type of a list, as far as the tables of its query have declared columns."""
    select = item.find_ancestor(exp.Select)
    relations = []
    for table in tables_of(select) if select is not None else []:
        entry = analyser.catalog.named(table.name) if isinstance(table, exp.Table) else None
        relations.append(ScopeRelation(table.alias_or_name, getattr(entry, "schema", None)))
    try:
        return analyser.resolver(Scope(relations)).type_of(argument)
    except MillstreamError:
        return UNKNOWN
