"""Notes: what is no mistake, but probably not what was meant.

They are found in statements that have been analysed, so no rule of the language depends on them.
"""

from __future__ import annotations

import difflib
import importlib.util
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sqlglot import exp

from millstream import catalog
from millstream.analysis.definitions.create_stream import FORMATS
from millstream.analysis.definitions.settings import Setting
from millstream.analysis.definitions.source_options import notes_on_options
from millstream.analysis.definitions.statement_analyzer import (
    AnalysedStatement,
    Definition,
    ExplainQuery,
    InsertQuery,
    RunQuery,
)
from millstream.analysis.queries.call_nodes import AggregateCall
from millstream.analysis.queries.from_clause import columns_of, facts_of, is_declared
from millstream.analysis.queries.relation_kind import window_of
from millstream.analysis.queries.resolved_expression import Expr
from millstream.analysis.queries.resolved_query import (
    FromItem,
    Query,
    ReadQuery,
    ReadStream,
    Select,
    SetOperation,
)
from millstream.catalog.entries import Derived, Reader, ScalarFunction, Sink, Stream, Table, TimestampKind
from millstream.catalog.functions import builtin
from millstream.errors import Place, Source, Span
from millstream.quantity import Duration
from millstream.syntax.spans import span_of
from millstream.types import Kind
from millstream.windows.window_spec import LandmarkWindow, RangeWindow, SessionWindow

_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
_STOPS = "a value that is no number stops the query"
_ALIKE = 0.92
"""Least likeness of a misspelt setting to the right one."""


@dataclass(frozen=True)
class Note:
    """A remark on a statement that is right, but may not be what was meant."""

    message: str
    hint: str | None
    place: Place

    def __str__(self) -> str:
        return self.message + (f"; {self.hint}" if self.hint else "")


def notes_of(statement: AnalysedStatement) -> list[Note]:
    """Return the notes on a statement, in the order of its text."""
    found = [
        Note(message, hint, statement.source.place(span or statement.span))
        for message, hint, span in dict.fromkeys(_found(statement))
    ]
    return sorted(found, key=lambda note: (note.place.line, note.place.column))


_Found = tuple[str, str | None, Span | None]


def _found(statement: AnalysedStatement) -> Iterator[_Found]:
    match statement.meaning:
        case RunQuery(query) | InsertQuery(_, query) | ExplainQuery(_, query):
            yield from _on_query(query, statement.source)
            yield from _on_results(query)
        case Definition(entries) as definition:
            for entry in entries:
                yield from _on_entry(entry)
                yield from _on_options(entry, statement)
                if isinstance(entry, Stream) and isinstance(entry.origin, Derived):
                    derived = entry.origin.definition
                    assert isinstance(derived, Select | SetOperation)
                    yield from _on_query(derived, statement.source)
                    yield from _on_results(derived)
            for _, query in definition.views:
                yield from _on_query(query, statement.source)
        case Setting("millstream.on_error", "bad"):
            hint = "a tuple that causes an error stops its query"
            yield "millstream.on_error = 'bad' cannot be used in this version yet", hint, None
        case Setting(key):
            yield from _on_setting(key)


def note_on_setting(key: str) -> str | None:
    """Return the note on a setting that is given from outside of a script."""
    return next((f"{message}; {hint}" for message, hint, _ in _on_setting(key)), None)


# ---------------------------------------------------------------- queries


def _on_query(query: Query, source: Source) -> Iterator[_Found]:
    if isinstance(query, SetOperation):
        yield from _on_query(query.left, source)
        yield from _on_query(query.right, source)
    if not isinstance(query, Select):
        return
    names = {field.name.lower() for item in query.items() for field in columns_of(item) or ()}
    for item in query.items():
        if isinstance(item, ReadQuery):
            yield from _on_query(item.query, source)
        yield from _on_arrival(item, query)
    for call in (*query.aggregates, *(over.call for over in query.overs)):
        yield from _on_texts_as_numbers(call)
    for expr in _expressions(query):
        yield from _on_comparisons(expr)
        yield from _on_quotes(expr, names, source)


def _expressions(query: Select) -> Iterator[Expr]:
    yield from (output.expr for output in query.outputs)
    yield from query.where
    yield from query.having
    for join in query.joins:
        yield from join.conditions


def _on_arrival(item: FromItem, query: Select) -> Iterator[_Found]:
    """Note time windows on a stream without a timestamp that has a column of times."""
    facts, window = facts_of(item), window_of(item)
    if facts is None or facts.timestamp.kind is not TimestampKind.LATENT:
        return
    times = [field.name for field in columns_of(item) or () if field.type.is_time]
    measured = isinstance(window, RangeWindow | LandmarkWindow | SessionWindow) and window.attribute is None
    measured = measured and window != LandmarkWindow()  # whatever the time, all tuples are in it
    reaching = any(isinstance(over.frame.preceding, Duration) for over in query.overs)
    if not times or not (measured or reaching):
        return
    hint = f"if '{times[0]}' is its time, "
    if is_declared(item) and isinstance(item, ReadStream) and item.stream.place is None:
        # No statement has declared it: Python code has registered it.
        hint += f"register the stream with order_by='{times[0]}'"
    elif is_declared(item):
        hint += f"declare the stream with ORDER BY {times[0]}"
    elif facts.bounded:
        on_it = f"WATTR {times[0]}"
        hint += f"write a window on it: [RANGE 1 MINUTE {on_it}]" if reaching else f"write {on_it}"
    else:
        hint += "the stream that it is read from has to be declared with ORDER BY"
    yield f"'{item.alias}' has no timestamp, so the window is on arrival", hint, item.span


def _on_results(query: Query) -> Iterator[_Found]:
    """Note reports that only the end of an endless input would bring."""
    if not isinstance(query, Select) or query.facts is None or query.facts.bounded or query.to_stream:
        return
    streams = [item for item in query.items() if facts_of(item) is not None]
    window = window_of(streams[0]) if len(streams) == 1 else None
    if not (query.aggregates or query.group_by) or not isinstance(window, LandmarkWindow):
        return
    if window.end is None and window.slide is None and window.emit_every is None:
        yield (
            "this window ends only with the input, which does not end: there will be no result",
            "add SLIDE or EMIT EVERY to the window, or write SELECT CHANGES or CREATE VIEW",
            streams[0].span,
        )


def _on_texts_as_numbers(call: AggregateCall) -> Iterator[_Found]:
    function = builtin(call.name)
    for index, argument in enumerate(call.arguments):
        if argument.type.kind is not Kind.STRING or argument.column is None:
            continue
        if call.user is not None:
            number = index < len(call.user.parameters) and call.user.parameters[index].type.is_numeric
        else:
            number = function is not None and function.parameter(index).startswith("numeric")
        if number:
            name = argument.column.name
            yield (
                f"'{call.name}' takes numbers, but '{name}' is of type string: {_STOPS}",
                f"declare '{name}' as a number, or write try_cast({name} AS DOUBLE)",
                argument.span or call.span,
            )


def _on_comparisons(expr: Expr) -> Iterator[_Found]:
    """Note comparisons of strings with numbers, which Spark converts row by row."""
    types = {column.name.lower(): column.type for column in expr.columns()}
    for node in expr.tree.find_all(*_COMPARISONS) if expr.tree is not None else ():
        for text, number in ((node.left, node.right), (node.right, node.left)):
            if not isinstance(text, exp.Column):
                continue
            given = types.get(text.name.lower())
            other = types.get(number.name.lower()) if isinstance(number, exp.Column) else None
            literal = isinstance(number, exp.Literal) and not number.is_string
            if given is None or given.kind is not Kind.STRING:
                continue
            if literal or (other is not None and other.is_numeric):
                yield (
                    f"'{text.name}' is of type string and is compared with a number: {_STOPS}",
                    f"compare it with a text, or write try_cast({text.name} AS DOUBLE)",
                    span_of(node),
                )


def _on_quotes(expr: Expr, names: set[str], source: Source) -> Iterator[_Found]:
    """Note texts in double quotes that have the name of a column."""
    for node in expr.tree.find_all(exp.Literal) if expr.tree is not None else ():
        span = span_of(node)
        if span and node.is_string and source.text[span[0]] == '"' and node.name.lower() in names:
            yield (
                f"\"{node.name}\" is a text, not the column '{node.name}'",
                f"write {node.name}, or `{node.name}` in backquotes",
                span,
            )


# ---------------------------------------------------------------- definitions and settings


def _on_entry(entry: object) -> Iterator[_Found]:
    if isinstance(entry, Stream | Table) and isinstance(entry.origin, Reader):
        yield from _on_format(entry.origin.format)
    if isinstance(entry, Sink):
        yield from _on_format(entry.format)
    if isinstance(entry, ScalarFunction) and entry.python is not None:
        module = entry.python.partition(":")[0]
        if not _is_found(module):
            yield (
                f"there is no Python module '{module}' here",
                "put it beside the script, or on PYTHONPATH",
                None,
            )


def _on_format(name: str) -> Iterator[_Found]:
    if "." not in name and name.lower() not in FORMATS:
        yield f"format '{name}' is none of Spark's own, so its package has to be installed", None, None


def _on_options(entry: object, statement: AnalysedStatement) -> Iterator[_Found]:
    if isinstance(entry, Stream | Table) and isinstance(entry.origin, Reader):
        format_, options = entry.origin.format, entry.origin.options
    elif isinstance(entry, Sink):
        format_, options = entry.format, entry.options
    else:
        return
    for key, message, hint in notes_on_options(format_, options):
        yield message, hint, _option_span(key, statement)


def _option_span(key: str, statement: AnalysedStatement) -> Span | None:
    """Find the place of an option in a statement: the catalog keeps none."""
    start, end = statement.span
    text = statement.source.text[start : end + 1]
    found = re.search(rf"\bOPTIONS\b.*?(?<!['\w])({re.escape(key)})(?!\w)", text, re.DOTALL | re.IGNORECASE)
    return (start + found.start(1), start + found.end(1) - 1) if found else None


def _is_found(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def _on_setting(key: str) -> Iterator[_Found]:
    """Note a misspelt setting of Spark's; other unknown settings may belong to packages."""
    if key.lower().startswith("spark.") and key not in _settings():
        alike = difflib.get_close_matches(key, _settings(), n=1, cutoff=_ALIKE)
        if alike:
            yield f"Spark has no setting '{key}'", f"did you mean '{alike[0]}'?", None


@cache
def _settings() -> tuple[str, ...]:
    text = Path(catalog.__file__).with_name("spark_settings.txt").read_text(encoding="utf-8")
    return tuple(line for line in text.splitlines() if not line.startswith("#"))
