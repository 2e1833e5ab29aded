"""Inputs of stages: the columns that are shipped, partitions, times, and promises about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from millstream.analysis.queries.resolved_expression import Expr, of_column
from millstream.catalog.entries import Reader, Stream, TimestampKind
from millstream.kernels.column_names import KEY, KEY2
from millstream.kernels.core.arrow_types import arrow_type
from millstream.physical import expressions as ex
from millstream.physical.flow import FlowInput, WindowAttribute, is_latent
from millstream.physical.node import Column, Layout, Role
from millstream.physical.nodes import Arrival, StageInput
from millstream.physical.promise_units import promises_of, promises_on
from millstream.stage.pipeline import COUNTED, LINE, STAMP, TIME, Input, ProgressAttribute
from millstream.types import BIGINT, TIMESTAMP, Kind, Type

_UNPROMISED = "none"
"""The suffix of columns for an attribute about which nothing is promised: there are none."""


def stage_input(
    one: FlowInput,
    shipped: Sequence[Column],
    keys: Sequence[Expr],
    key: str | None,
    *,
    spread: bool,
    generous: bool,
    apart: bool,
    ties: tuple[str, ...],
    first_origin: int,
) -> StageInput:
    """Return an input with what is shipped of it, and its description for the shards."""
    columns = (*shipped, *(() if key is not None else _identity(keys)))
    times = _times(one)
    stream = one.stream
    source = Input(
        name=stream.name if stream is not None else "",
        columns=pa.schema([]),
        time_type=arrow_type(times[0].type),
        key=key,
        chained=one.staged,
        changes=one.changes,
        spread=spread,
        partitions=_partitions(stream),
        stored=not one.staged and stream is None,
        counted=one.node.has(COUNTED),
        ties=ties if one.staged else (),
        apart=apart,
        first_origin=first_origin,
    )
    own, *others = _lines(one, {c.name: c.type for c in (*times, *one.node.layout)})
    source = replace(
        source,
        promises=own.promises,
        attribute=own.attribute,
        latent=own.attribute is None and is_latent(stream),
        suffix=own.suffix,
        others=tuple(others),
    )
    # Only windows count late tuples; for everything else they are just late.
    source = source if generous else source.without_generosity()
    arrival = (
        Arrival.STAGE
        if one.staged
        else Arrival.SOURCE
        if stream is not None or one.node.streaming
        else Arrival.TABLE
    )
    return StageInput(one.node, columns, times, one.guard, arrival, source)


def _times(one: FlowInput) -> Layout:
    """Return the time of tuples, and their timestamp where that is something else.

    Promises bind tuples too that the query does not want, and of which it has no columns.
    """
    own = one.node.time_type
    stamp = ex.column(TIME, own)
    axis, stream = one.axis, one.stream
    if axis is None or stream is None:
        # Spark writes the time of a micro-batch down before running it, and uses it again in a replay.
        clock = ex.constant("current_timestamp()", TIMESTAMP)
        return (_time(TIME, clock) if one.is_latent else _time(TIME, stamp),)
    type_ = one.type_of(axis.column)
    if axis.is_time:
        return (_time(TIME, ex.cast(stamp, type_)),)
    guard = ex.constant(one.guard.value, Type(Kind.BOOLEAN))
    value = of_column(axis.column)
    time = Expr(value.parts, type_) if not one.guard.value else ex.when(guard, Expr(value.parts, type_))
    if axis.attribute is not None:
        number = list(stream.promises_on_others).index(axis.attribute)
        line = f"{LINE}{number}"
        known = next(c.type for c in one.node.layout if c.name == line)
        time = ex.cast(ex.column(line, known), type_)
    external = stream.timestamp.kind is TimestampKind.EXTERNAL
    return (_time(TIME, time), *((_time(STAMP, stamp),) if external else ()))


def _time(name: str, expr: Expr) -> Column:
    return Column(name, expr.type, expr, Role.TIME)


def _lines(one: FlowInput, types: Mapping[str, Type]) -> list[ProgressAttribute]:
    """Return the attributes about which something is promised, that of TIME first."""
    stream = one.stream
    axis: WindowAttribute | None = one.axis if stream is not None else None

    def line(attribute: str | None, name: str, suffix: str) -> ProgressAttribute:
        type_ = types[name]
        if attribute is None or stream is None:
            promises = promises_of(stream, type_)
        else:
            promises = promises_on(stream, attribute, type_)
        return ProgressAttribute(attribute, name, arrow_type(type_), promises, suffix)

    times = _times(one)
    types = {**types, **{c.name: c.type for c in times}}
    numbers = {} if stream is None else {a: str(i) for i, a in enumerate(stream.promises_on_others)}
    if axis is None or axis.is_time:
        lines = [line(None, TIME, "")]
    else:
        attribute = axis.attribute or axis.column.name.lower()
        lines = [line(attribute, TIME, numbers.pop(axis.attribute or "", _UNPROMISED))]
        lines += [line(None, STAMP, "")] if len(times) > 1 else []
    return lines + [line(attribute, f"{LINE}{number}", number) for attribute, number in numbers.items()]


def _partitions(stream: Stream | None) -> int:
    """Return how many source partitions there are: one, unless the source says otherwise."""
    if stream is None or not isinstance(stream.origin, Reader):
        return 1
    return int(stream.origin.option("partitions") or 1)


def _identity(keys: Sequence[Expr]) -> Layout:
    """Return what tells partitions apart: an integer by itself, anything else by 128 bits of hash."""
    if not keys:
        return ()
    if len(keys) == 1 and keys[0].type.is_integral:
        return (Column(KEY, BIGINT, ex.cast(keys[0], BIGINT), Role.KEY),)
    both = zip((KEY, KEY2), ex.hashes(keys), strict=True)
    return tuple(Column(name, BIGINT, expr, Role.KEY) for name, expr in both)
