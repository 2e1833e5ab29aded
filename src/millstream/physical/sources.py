"""Sources of a plan: scans of streams, with the hidden columns that tell times and promises of tuples."""

from __future__ import annotations

from collections.abc import Sequence

from millstream.catalog.entries import Port, PunctuationPromise, Reader, Stream, TimestampKind
from millstream.physical.expressions import is_double
from millstream.physical.node import Column, Layout, Role
from millstream.physical.nodes import Scan
from millstream.stage.pipeline import KEEP, LINE, TIME
from millstream.types import BOOLEAN, TIMESTAMP, Field, Kind, Type

NATIVE_COLUMNS = {
    "text": {"value"},
    "socket": {"value", "timestamp"},
    "rate": {"timestamp", "value"},
    "rate-micro-batch": {"timestamp", "value"},
    "kafka": {"key", "value", "topic", "partition", "offset", "timestamp", "timestamptype", "headers"},
}
"""Formats whose rows are texts or come with columns of the source's own."""
LINE_FORMATS = frozenset({"text", "socket", "kafka"})
CHECKED_FORMATS = frozenset({"csv", "json", "xml"})
"""Formats whose reader tells which records it could not read."""


def scan_of(stream: Stream, alias: str, *, late_pending: bool) -> Scan:
    """Return the scan of a stream under an alias."""
    return Scan(stream, alias, _hidden(stream), late_pending, untimed=late_pending and is_untimed(stream))


def bad_records_of(rejecting: Stream, records: Stream) -> Scan:
    """Return the scan of the bad records of a stream."""
    return Scan(rejecting, "", (Column(TIME, TIMESTAMP, role=Role.TIME),), False, bad=records)


def reports_bad_records(stream: Stream) -> bool:
    """Tell whether the reader of a stream says which records are bad."""
    match stream.origin:
        case Port():
            return True
        case Reader(format=format_):
            name = format_.lower()
            declared = {f.name.lower() for f in stream.source_fields}
            lines = name in LINE_FORMATS and not declared <= NATIVE_COLUMNS.get(name, set())
            return name in CHECKED_FORMATS or (
                lines and not is_whole_line(stream.origin, stream.source_fields)
            )
    return False


def is_whole_line(reader: Reader, declared: Sequence[Field]) -> bool:
    """Tell whether the only column of a text is the line as it stands."""
    is_text = reader.format.lower() == "text" and reader.option("valueFormat") is None
    return is_text and len(declared) == 1 and declared[0].type.kind is Kind.STRING


def _hidden(stream: Stream) -> Layout:
    types = {f.name.lower(): f.type for f in stream.schema}
    time = types[stream.timestamp.column.lower()] if stream.timestamp.column else TIMESTAMP
    others = stream.promises_on_others
    lines = [_mark(f"{LINE}{i}", types[attribute]) for i, attribute in enumerate(others)]
    promises = [*stream.own_promises, *(one for several in others.values() for one in several)]
    keep = [_mark(KEEP, BOOLEAN)] if any(isinstance(p, PunctuationPromise) for p in promises) else []
    return (Column(TIME, time, role=Role.TIME), *lines, *keep)


def is_untimed(stream: Stream) -> bool:
    """Tell whether rows without a time are read like others: where nothing but their time can be bad.

    The pack step of a stage sorts them out and counts them: Spark need not look at every row.
    """
    hidden = _hidden(stream)
    return (
        stream.timestamp.kind is TimestampKind.EXTERNAL
        and not reports_bad_records(stream)
        and not stream.computed
        and stream.selection is None
        and not any(c.name == KEEP for c in hidden)
        and not is_double(hidden[0].type)
    )


def _mark(name: str, type_: Type) -> Column:
    return Column(name, type_, role=Role.MARK)
