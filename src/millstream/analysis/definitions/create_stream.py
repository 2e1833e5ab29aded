"""CREATE STREAM, TABLE and SINK: schemas, timestamps, sources, and what is promised about disorder."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from millstream.analysis.definitions.computed_columns import ColumnAnalyzer
from millstream.analysis.definitions.declared_promises import declared_field, promises_of
from millstream.analysis.definitions.source_options import misspelt_path
from millstream.analysis.error_collector import CollectingBlock, ErrorCollector, error_at
from millstream.analysis.types.data_types import from_datatype
from millstream.analysis.types.quantities import positive_duration
from millstream.catalog import Catalog
from millstream.catalog.entries import (
    FILE_FORMATS,
    LATENT,
    ComputedColumn,
    Options,
    Origin,
    Port,
    Promise,
    Reader,
    Registered,
    Rejected,
    Sink,
    Stored,
    Stream,
    Table,
    Timestamp,
    TimestampKind,
)
from millstream.errors import AnalysisError, Source, did_you_mean
from millstream.quantity import Duration
from millstream.syntax import nodes
from millstream.syntax.spans import span_of
from millstream.types import STRING, TIMESTAMP, UNKNOWN, Field, Kind

_NOT_STORED = frozenset({Kind.VARIANT, Kind.YEAR_MONTH_INTERVAL})
"""Kinds of values that a table of the session's own cannot store."""

INTERNAL_TIMESTAMP = "current_time"
"""The reserved column of the papers: stamped by the system when a tuple arrives."""
RESERVED_PREFIX = "__ms_"
BAD_RECORD = (Field("record", STRING), Field("reason", STRING))
"""The schema of a stream of bad records."""

FORMATS = FILE_FORMATS | {
    *(
        "kafka",
        "socket",
        "rate",
        "rate-micro-batch",
        "memory",
        "console",
        "noop",
        "jdbc",
        "delta",
        "deltasharing",
    ),
    *("iceberg", "hudi", "kinesis", "pulsar", "eventhubs", "pubsub", "cloudfiles", "statestore", "mongodb"),
}
"""Formats that Spark brings along, and those of well-known packages, in lower case."""
INFERRED = frozenset({"parquet", "csv", "json"})
"""Formats whose columns are inferred from their files."""
_ANY_SOURCE = frozenset({"csv", "text", "json", "xml"})
_OUR_OPTIONS = frozenset({"mode", "columnnameofcorruptrecord"})
_NESTED = (Kind.ARRAY, Kind.MAP, Kind.STRUCT, Kind.VARIANT, Kind.BINARY)


def analyse_stream(node: nodes.CreateStream, catalog: Catalog, source: Source) -> tuple[Stream, ...]:
    """Return the stream with a source of its own, and the streams of its late tuples and bad records."""
    mistakes = ErrorCollector()
    declared = node.args.get("columns") or []
    origin: Origin = Registered()
    with mistakes.collected():
        origin = _origin(node)
    given = _inferred(node, origin, catalog)
    if given is None and not declared:
        mistakes.check()
        raise error_at(
            node.this,
            f"stream '{node.name}' has neither columns nor a query",
            hint="CREATE STREAM s (a INT, t TIMESTAMP) ORDER BY t USING ..., or CREATE STREAM s AS ...",
        )
    analyzer = ColumnAnalyzer(catalog, source, mistakes)
    schema, computed = analyzer.columns(columns(declared, mistakes, given or ()), declared, given or ())
    with mistakes.collected():
        _check_format(origin, schema[len(given or ()) :], node)
    return with_clauses(node, Stream(node.name, schema, origin, computed=computed), catalog, source, mistakes)


def _inferred(
    node: nodes.CreateStream | nodes.CreateTable, origin: Origin, catalog: Catalog
) -> tuple[Field, ...] | None:
    """Return the columns of the source if none of them is declared and they can be inferred."""
    declared = node.args.get("columns") or ()
    is_left_out = all(column.args.get("computed") is not None for column in declared)
    if not is_left_out or catalog.infer is None or not isinstance(origin, Reader):
        return None
    if origin.format.lower() not in INFERRED or not origin.option("path"):
        return None
    try:
        return catalog.infer(origin)
    except AnalysisError as error:
        error.span = span_of(node.args["format"])
        raise


def with_clauses(
    node: nodes.CreateStream, stream: Stream, catalog: Catalog, source: Source, mistakes: ErrorCollector
) -> tuple[Stream, ...]:
    """Return a stream with its order and promises, and the streams of its late tuples and bad records."""
    schema, timestamp = stream.schema, LATENT
    promises: tuple[Promise, ...] = ()
    with mistakes.collected():
        timestamp = _timestamp(node, schema)
        promises = promises_of(node, schema, timestamp, catalog, source)
    mistakes.check()
    late, bad = node.args.get("late"), node.args.get("bad")
    stream = replace(
        stream,
        timestamp=timestamp,
        promises=promises,
        late_into=late.name if late is not None and late.this else None,
        late_drop=late is not None and not late.this,
        bad_into=bad.name if bad is not None else None,
    )
    others = []
    if late is not None and stream.late_into:
        if timestamp.kind is TimestampKind.LATENT and not promises:
            raise error_at(
                late,
                "a stream without a timestamp has no late tuples",
                hint="add ORDER BY, or a promise ON an attribute",
            )
        rejected = Rejected(stream.name, "late", stream.is_bounded)
        others.append(Stream(stream.late_into, schema, rejected))
    if stream.bad_into:
        others.append(Stream(stream.bad_into, BAD_RECORD, Rejected(stream.name, "bad", stream.is_bounded)))
    return (stream, *others)


def analyse_table(node: nodes.CreateTable, catalog: Catalog, source: Source) -> Table:
    mistakes = ErrorCollector()
    schema: tuple[Field, ...] | None = None
    computed: tuple[ComputedColumn, ...] = ()
    declared = node.args.get("columns") or []
    given = _inferred_of_table(node, catalog)
    if declared or given is not None:
        analyzer = ColumnAnalyzer(catalog, source, mistakes)
        schema, computed = analyzer.columns(columns(declared, mistakes, given or ()), declared, given or ())
    if node.args.get("format") is None:
        if schema is None:
            raise error_at(
                node.this,
                f"table '{node.name}' has neither columns nor a source",
                hint="CREATE TABLE t (a INT) USING csv OPTIONS (path 't.csv'), or CREATE TABLE t AS ...",
            )
        if node.args.get("refresh") is not None:
            raise error_at(
                node.args["refresh"],
                f"table '{node.name}' cannot be read again, because it has no source",
                hint="add USING format OPTIONS (...)",
            )
        mistakes.check()
        if computed:
            raise error_at(
                node.this,
                f"table '{node.name}' has computed columns, but no source that they are computed from",
                hint="add USING format OPTIONS (...), or compute them in INSERT INTO",
            )
        for field, column in zip(schema, declared or (), strict=True):
            if field.type.kind in _NOT_STORED:
                raise error_at(column, f"a table without USING cannot store values of type {field.type}")
        # Old listings declare tables without saying where they are, and columns without types.
        is_typed = all(field.type.is_known for field in schema)
        return Table(node.name, schema, Stored() if is_typed else Registered(is_bounded=True))
    reader = Reader(node.args["format"].name)
    with mistakes.collected():
        reader = replace(reader, options=options(node.args.get("options")))
        _check_path(reader, node)
    if schema is not None:
        with mistakes.collected():
            _check_format(reader, schema[len(given or ()) :], node)
    mistakes.check()
    if schema is None and reader.format.lower() in _ANY_SOURCE:
        raise error_at(node.this, f"a {reader.format} table needs its columns", hint="name them with types")
    return Table(node.name, schema, reader, refresh=refresh_of(node), computed=computed)


def ordered(table: Table, node: nodes.CreateTable) -> Table:
    """Return a table with the order that it is declared with."""
    order = node.args.get("order_by")
    if order is None:
        return table
    if table.schema is not None:
        field = declared_field(order, table.schema)
        if field is None:
            hint = did_you_mean(order.name, [f.name for f in table.schema])
            raise error_at(order, f"unknown column '{order.name}' in ORDER BY", hint=hint)
        if not field.type.is_ordered:
            raise error_at(
                order,
                f"a table cannot be ordered by '{field.name}', which is of type {field.type}",
                hint="order it by a timestamp, a date or a number",
            )
    return replace(table, order=order.name)


def _inferred_of_table(node: nodes.CreateTable, catalog: Catalog) -> tuple[Field, ...] | None:
    """Return the columns of a table's files; Spark finds those of formats with types of their own, too."""
    if node.args.get("format") is None:
        return None
    reader = Reader(node.args["format"].name, options(node.args.get("options")))
    try:
        return _inferred(node, reader, catalog)
    except AnalysisError:
        if node.args.get("columns") or reader.format.lower() in _ANY_SOURCE:
            raise
        return None


def refresh_of(node: nodes.CreateTable) -> Duration | None:
    """Return the interval of REFRESH EVERY."""
    every = node.args.get("refresh")
    if every is None:
        return None
    interval = positive_duration(every, "REFRESH EVERY")
    if interval.months:
        raise error_at(every, "REFRESH EVERY counts days and less, not months")
    return interval


def analyse_sink(node: nodes.CreateSink) -> Sink:
    sink = Sink(node.name, node.args["format"].name, options(node.args.get("options")))
    _check_path(Reader(sink.format, sink.options), node)
    return sink


def columns(
    declared: Sequence[nodes.ColumnDeclaration],
    collector: ErrorCollector | None = None,
    before: Sequence[Field] = (),
) -> tuple[Field, ...]:
    """Return the columns ``before`` and the declared ones; old listings may leave out types.

    A column with a mistake that is collected is there all the same, of a type that is unknown.
    """
    fields: list[Field] = list(before)
    for column in declared:
        type_ = UNKNOWN
        with CollectingBlock(collector):
            _check_column(column, fields)
            kind = column.args.get("kind")
            type_ = from_datatype(kind) if kind is not None else UNKNOWN
        fields.append(Field(column.name, type_))
    return tuple(fields)


def _check_column(column: nodes.ColumnDeclaration, before: Sequence[Field]) -> None:
    if any(column.name.lower() == known.name.lower() for known in before):
        raise error_at(column, f"column '{column.name}' is declared twice")
    if column.name.lower().startswith(RESERVED_PREFIX):
        raise error_at(column, f"column names that begin with '{RESERVED_PREFIX}' are reserved")


def options(declared: Sequence[nodes.Option] | None) -> Options:
    found: dict[str, tuple[str, str]] = {}
    for option in declared or ():
        key = option.name
        if key.lower() in found:
            raise error_at(option, f"option '{key}' is given twice")
        found[key.lower()] = (key, option.args["value"].name)
    return tuple(found.values())


def _origin(node: nodes.CreateStream) -> Origin:
    source, format_ = node.args.get("source"), node.args.get("format")
    if source is not None and format_ is not None:
        raise error_at(source, "a stream has SOURCE or USING, not both")
    if node.args.get("options") and format_ is None:
        raise error_at(node.args["options"][0], "OPTIONS belong to USING format")
    if source is not None:
        match = re.fullmatch(r"port\s*(\d+)", source.name.strip(), re.IGNORECASE)
        number = int(match[1]) if match else 0
        if not 1 <= number <= 65535:
            raise error_at(source, f"'{source.name}' is not a source", hint="write SOURCE 'port4445'")
        return Port(number)
    if format_ is None:
        # A declaration only, as in the papers; it can be planned but not run.
        return Registered()
    reader = Reader(format_.name, options(node.args.get("options")))
    _check_path(reader, node)
    for option in node.args.get("options") or ():
        if option.name.lower() in _OUR_OPTIONS:
            raise error_at(
                option,
                f"option '{option.name}' is not for streams, where bad records are neither lost nor fatal",
                hint="BAD INTO makes a stream of them",
            )
    return reader


def _check_path(reader: Reader, node: exp.Expression) -> None:
    _check_spelling(node.args["format"])
    if reader.format.lower() in FILE_FORMATS and not reader.option("path"):
        raise error_at(
            node.args["format"],
            f"format {reader.format} needs a path",
            hint=f"option '{misspelt}': did you mean 'path'?"
            if (misspelt := misspelt_path(reader.options))
            else f"USING {reader.format} OPTIONS (path 'data.{reader.format}')",
        )


def _check_spelling(node: exp.Identifier) -> None:
    """Refuse a format that is nearly a known one; in backquotes it is taken as it is."""
    taken = node.quoted or "." in node.name or node.name.lower() in FORMATS
    similar = None if taken else did_you_mean(node.name, sorted(FORMATS))
    if similar is not None:
        raise error_at(
            node,
            f"unknown format '{node.name}'",
            hint=f"{similar} A format of your own stands in backquotes: USING `{node.name}`",
        )


def _check_format(origin: Origin, schema: tuple[Field, ...], node: exp.Expression) -> None:
    if not isinstance(origin, Reader):
        return
    for column, declared in zip(schema, node.args.get("columns") or (), strict=True):
        if declared.args.get("computed") is not None:
            continue
        if declared.args.get("kind") is None:
            raise error_at(
                declared, f"column '{column.name}' needs a type to be read", hint="a INT, b STRING, ..."
            )
        if origin.format.lower() == "csv" and column.type.kind in _NESTED:
            raise error_at(
                declared,
                f"a csv column cannot be of type {column.type}",
                hint="read it as STRING and use from_json",
            )


def _timestamp(node: nodes.CreateStream, schema: tuple[Field, ...]) -> Timestamp:
    order = node.args.get("order_by")
    if order is None:
        return LATENT
    field = declared_field(order, schema)
    if field is not None and field.name.lower() == INTERNAL_TIMESTAMP:
        given = node.args.get("columns") or ()
        declared = next((one for one in given if one.name.lower() == INTERNAL_TIMESTAMP), None)
        if declared is None:
            raise error_at(
                order,
                f"'{INTERNAL_TIMESTAMP}' is stamped on arrival, before a query sees a tuple",
                hint="leave ORDER BY out: the query keeps the order of the stream that it reads",
            )
        if declared.args.get("computed") is not None:
            raise error_at(
                declared,
                f"'{INTERNAL_TIMESTAMP}' is stamped on arrival, and not computed",
                hint="give the column another name",
            )
    if field is None:
        hint = did_you_mean(order.name, [f.name for f in schema])
        if order.name.lower() == INTERNAL_TIMESTAMP:
            hint = "declare it among the columns: current_time TIMESTAMP"
        raise error_at(order, f"unknown column '{order.name}' in ORDER BY", hint=hint)
    if not field.type.is_ordered:
        raise error_at(
            order,
            f"a stream cannot be ordered by '{field.name}', which is of type {field.type}",
            hint="the timestamp must be a timestamp, a date or a number",
        )
    if field.name.lower() == INTERNAL_TIMESTAMP:
        if field.type not in (TIMESTAMP, UNKNOWN):
            raise error_at(order, f"'{INTERNAL_TIMESTAMP}' is stamped on arrival and must be a TIMESTAMP")
        return Timestamp(TimestampKind.INTERNAL, field.name, TIMESTAMP)
    return Timestamp(TimestampKind.EXTERNAL, field.name, field.type)
