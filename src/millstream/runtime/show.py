"""Answers to SHOW and DESCRIBE."""

from __future__ import annotations

from collections.abc import Sequence

from millstream.analysis.definitions.statement_analyzer import DescribeOne, Meaning, ShowList
from millstream.catalog import Catalog, kind_of
from millstream.catalog.entries import Aggregate, Entry, ScalarFunction, Sink, Stream, Table, View
from millstream.runtime.queries.running_query import RunningQuery
from millstream.types import Field

_KINDS: dict[str, type] = {
    "STREAMS": Stream,
    "TABLES": Table,
    "VIEWS": View,
    "SINKS": Sink,
    "FUNCTIONS": ScalarFunction,
    "AGGREGATES": Aggregate,
}


def answer(meaning: Meaning, catalog: Catalog, queries: Sequence[RunningQuery] = ()) -> str | None:
    """Return the answer to a statement, as text."""
    match meaning:
        case ShowList("QUERIES"):
            return "\n".join(map(repr, queries)) or "no queries"
        case ShowList("VIEWS"):
            return "\n".join(_view(e, queries) for e in catalog.entries(View)) or "no views"
        case ShowList(what):
            return "\n".join(summary(e) for e in catalog.entries(_KINDS[what])) or f"no {what.lower()}"
        case DescribeOne(entries):
            return "\n".join(description(entry) for entry in entries)
        case _:
            return None


def _view(entry: Entry, queries: Sequence[RunningQuery]) -> str:
    """Return a view as a line, with its state: the last query of its name is the present one."""
    if isinstance(entry, View) and not entry.maintained:
        return f"{summary(entry)}: evaluated when it is read"
    behind = [query for query in queries if query.name == entry.name and query.current is not None]
    if not behind:
        return summary(entry)
    rows = behind[-1].progress.rows_out
    return f"{summary(entry)}: {behind[-1].state}, {rows} {'row' if rows == 1 else 'rows'}"


def summary(entry: Entry) -> str:
    """Return an entry as one line."""
    match entry:
        case Stream() | Table():
            return f"{entry.name} ({_fields(entry.schema)}) from {entry.origin}"
        case View():
            return f"{entry.name} ({_fields(entry.schema)})"
        case Sink():
            return f"{entry.name} using {entry.format}"
        case ScalarFunction():
            return f"{entry.name}({_fields(entry.parameters)}) : {entry.returns}"
        case Aggregate():
            kind = "blocking" if entry.blocking else "non-blocking"
            result = ", ".join(str(f.type) for f in entry.returns)
            return f"{entry.name}({_fields(entry.parameters)}) : {result} ({kind} {entry.label})"


def description(entry: Entry) -> str:
    """Return an entry in full: a line for its name, then its columns or parameters."""
    fields = (
        entry.parameters if isinstance(entry, ScalarFunction | Aggregate) else getattr(entry, "schema", None)
    )
    lines = [f"{kind_of(entry)} {summary(entry)}"]
    computed = (
        {c.name: f"  AS ({c.expr})" for c in entry.computed} if isinstance(entry, Stream | Table) else {}
    )
    lines += [f"  {field.name}  {field.type}{computed.get(field.name, '')}" for field in fields or ()]
    if isinstance(entry, Stream):
        column = f" in {entry.timestamp.column}" if entry.timestamp.column else ""
        lines.append(f"  {entry.timestamp.kind.value} timestamp{column}")
    return "\n".join(lines)


def _fields(fields: Sequence[Field] | None) -> str:
    return ", ".join(map(str, fields)) if fields is not None else "columns known to Spark"
