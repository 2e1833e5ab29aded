"""Streams and tables of the catalog as frames: tuples with their times and promises, and bad records."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from millstream.analysis.queries.resolved_expression import ColumnRef, Expr
from millstream.catalog.entries import (
    NO_TIMESTAMP,
    NOT_FINITE,
    OUTERMOST,
    OrderedPerPromise,
    Promise,
    PunctuationPromise,
    Stream,
    Table,
    TimestampKind,
    View,
    source_columns,
)
from millstream.errors import NotExecutableError
from millstream.kernels.core.arrow_types import arrow_type
from millstream.kernels.windows.time_codec import has_value
from millstream.local.computed_columns import FAILED, INDEX, prepared, with_computed
from millstream.local.course import Course
from millstream.local.file_sources import BAD_SCHEMA, read_stream_files, read_table_files
from millstream.local.frame import BATCH, Frame, from_table
from millstream.stage.hidden_columns import ROW
from millstream.stage.pipeline import KEEP, LINE, PARTITION, PROMISE, SEGMENT, SUBSTREAM, TIME
from millstream.types import BIGINT, BOOLEAN, STRING, TIMESTAMP


@dataclass(frozen=True)
class SourceFrames:
    """The tuples of a stream, and its bad records."""

    good: Frame
    bad: Frame


class Sources(Protocol):
    """The relations that a plan reads."""

    def stream(self, stream: Stream) -> SourceFrames:
        """Return the tuples and bad records of a stream."""

    def table(self, table: Table | View) -> Frame:
        """Return the rows of a table, or the current result of a view."""


@dataclass
class FileSources:
    """Relations in files. Each file of a stream is a segment; files are spread over the micro-batches."""

    course: Course
    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    """Tables and views in memory, by name in lower case; they stand for those of the catalog."""
    read: dict[str, SourceFrames] = field(default_factory=dict)
    """Streams that have been read, by name."""

    def stream(self, stream: Stream) -> SourceFrames:
        if stream.name not in self.read:
            if stream.read.timestamp.kind is TimestampKind.INTERNAL:
                raise NotExecutableError(
                    f"stream '{stream.read.name}' is stamped on arrival, and the local engine has no clock",
                    hint="order it by a column, or run without --engine local",
                )
            files = read_stream_files(stream)
            good = _numbered([file.rows for file in files], self.course)
            bad = _numbered([file.bad for file in files], self.course)
            refs = [ColumnRef("", f.name, f.type) for f in stream.source_fields]
            self.read[stream.name] = classify(_with_arrival(good, refs), stream, _bad_frame(bad))
        return self.read[stream.name]

    def table(self, table: Table | View) -> Frame:
        key = table.name.lower()
        if isinstance(table, View):
            refs = [ColumnRef("", f.name, f.type) for f in table.schema or ()]
            return stored(from_table(self.tables[key], refs))
        rows = self.tables[key] if key in self.tables else read_table_files(table)
        fields = source_columns(table.schema or (), table.computed)
        refs = [ColumnRef("", f.name, f.type) for f in fields]
        schema = pa.schema([(f.name, arrow_type(f.type)) for f in fields])
        frame = with_computed(from_table(rows.cast(schema), refs), table.computed, table.schema or ())
        return stored(frame.without_hidden(lambda name: True))


def stored(frame: Frame) -> Frame:
    """Return the rows of a table, which are all there at once."""
    return frame.with_hidden(BATCH, BIGINT, pa.array([0] * frame.count, pa.int64()))


def _numbered(tables: Sequence[pa.Table], course: Course) -> pa.Table:
    """Put files together, with the micro-batch and the number of each."""
    batches = max(1, course.batches - 1)
    numbered = []
    for number, table in enumerate(tables):
        batch = number * batches // len(tables)
        segments, own = (pa.array([value] * len(table), pa.int64()) for value in (number, batch))
        numbered.append(table.append_column(SEGMENT, segments).append_column(BATCH, own))
    return pa.concat_tables(numbered)


def _with_arrival(table: pa.Table, refs: Sequence[ColumnRef]) -> Frame:
    hidden = [ColumnRef("", name, BIGINT) for name in (ROW, SEGMENT, BATCH)]
    return from_table(table, [*refs, *hidden])


def _bad_frame(table: pa.Table) -> Frame:
    return _with_arrival(table, [ColumnRef("", name, STRING) for name in ("record", "reason")])


def no_bad_records() -> Frame:
    """Return the bad records of a source that has none."""
    return _bad_frame(_numbered([BAD_SCHEMA.empty_table()], Course()))


# ---------------------------------------------------------------- tuples


def classify(frame: Frame, stream: Stream, bad: Frame) -> SourceFrames:
    """Give tuples their times and promises, and put rows without a time among the bad records."""
    if PARTITION not in frame.hidden:
        frame = frame.with_hidden(PARTITION, BIGINT, pa.array([0] * frame.count, pa.int64()))
    records = frame
    frame = prepared(frame, stream)
    column = stream.timestamp.column
    if column is None:
        frame = frame.with_hidden(TIME, TIMESTAMP, pa.nulls(frame.count, arrow_type(TIMESTAMP)))
    else:
        ref, values = next((r, c) for r, c in frame.pairs if r.name.lower() == column.lower())
        frame = frame.with_hidden(TIME, ref.type, values)
    frame = _with_promises(frame, stream)
    reasons: list[str | None] = frame.hidden[FAILED].to_pylist()
    if stream.timestamp.kind is TimestampKind.EXTERNAL:
        reasons = [failed or reason for failed, reason in zip(reasons, _reasons(frame), strict=True)]
    if any(reasons):
        is_bad = pa.array([reason is not None for reason in reasons], pa.bool_())
        rows = records.take(frame.where(is_bad).hidden[INDEX].to_pylist())
        bad = _with_rows(bad, rows, [one for one in reasons if one is not None])
        frame = frame.where(pc.invert(is_bad))
    frame = frame.without_hidden(lambda name: name in (INDEX, FAILED))
    return SourceFrames(frame, bad.with_hidden(TIME, TIMESTAMP, pa.nulls(bad.count, arrow_type(TIMESTAMP))))


def _reasons(frame: Frame) -> list[str | None]:
    """Tell why a row is no tuple; a promise without a time is the last word of its sub-stream."""
    times = frame.hidden[TIME]
    present = times.is_valid()
    placed = has_value(times)
    data = frame.hidden.get(KEEP, pa.array([True] * frame.count, pa.bool_()))
    without_place = NOT_FINITE if pa.types.is_floating(times.type) else OUTERMOST
    rows = zip(present.to_pylist(), placed.to_pylist(), data.to_pylist(), strict=True)
    return [
        None if is_placed or not is_data else without_place if is_present else NO_TIMESTAMP
        for is_present, is_placed, is_data in rows
    ]


def _with_rows(bad: Frame, rows: Frame, reasons: Sequence[str]) -> Frame:
    """Add rows to the bad records, as JSON."""
    names = [ref.name for ref, _ in rows.shown]
    values = zip(*(column.to_pylist() for _, column in rows.shown), strict=True)
    texts = [json.dumps(_present(names, row), default=str, separators=(",", ":")) for row in values]
    columns = {
        "record": pa.array([*bad.columns[0].to_pylist(), *texts], pa.string()),
        "reason": pa.array([*bad.columns[1].to_pylist(), *reasons], pa.string()),
    }
    for name in (ROW, SEGMENT, BATCH):
        own = rows.hidden.get(name, pa.array([0] * rows.count, pa.int64()))
        columns[name] = pa.concat_arrays([bad.hidden[name], own])
    return _bad_frame(pa.table(columns))


def _present(names: Iterable[str], row: Iterable[Any]) -> dict[str, Any]:
    return {name: value for name, value in zip(names, row, strict=True) if value is not None}


def _with_promises(frame: Frame, stream: Stream) -> Frame:
    """Tell which tuples are promises, and the sub-stream of each, for each promised attribute."""
    frame = _with_clauses(frame, stream.own_promises, "")
    for number, (attribute, promises) in enumerate(stream.promises_on_others.items()):
        ref, values = next((r, c) for r, c in frame.shown if r.name.lower() == attribute)
        frame = frame.with_hidden(f"{LINE}{number}", ref.type, values)
        frame = _with_clauses(frame, promises, str(number))
    marks = [column for name, column in frame.hidden.items() if name.startswith(PROMISE)]
    if not marks:
        return frame
    any_mark = marks[0]
    for mark in marks[1:]:
        any_mark = pc.or_(any_mark, mark)
    return frame.with_hidden(KEEP, BOOLEAN, pc.invert(any_mark))


def _with_clauses(frame: Frame, promises: Iterable[Promise], suffix: str) -> Frame:
    for promise in promises:
        match promise:
            case PunctuationPromise(predicate, per):
                assert isinstance(predicate, Expr)
                frame = frame.with_hidden(PROMISE + suffix, BOOLEAN, frame.holds(predicate))
            case OrderedPerPromise(per):
                pass
            case _:
                continue
        if per:
            frame = frame.with_hidden(SUBSTREAM + suffix, STRING, _substreams(frame, per))
    return frame


def _substreams(frame: Frame, per: Sequence[str]) -> pa.Array:
    """Return a text for each sub-stream."""
    names = [name.lower() for name in per]
    columns = [next(c for r, c in frame.shown if r.name.lower() == name) for name in names]
    rows = zip(*(column.to_pylist() for column in columns), strict=True)
    return pa.array([json.dumps(_present(names, row), default=str) for row in rows], pa.string())
