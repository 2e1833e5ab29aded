"""Whole plans without Spark, over rows in memory, on a course that is drawn at random.

Pieces of a micro-batch are read by different tasks, stages have some shards, and their state is written and
read back.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

import pyarrow as pa

from millstream.analysis.queries.resolved_expression import ColumnRef
from millstream.catalog import Catalog
from millstream.catalog.entries import Stream, Table, source_columns
from millstream.kernels.core.arrow_types import arrow_type
from millstream.local.computed_columns import with_computed
from millstream.local.course import Course, SentHeartbeat
from millstream.local.frame import BATCH, Frame, to_table
from millstream.local.plan_runner import run_plan
from millstream.local.sources import SourceFrames, classify, no_bad_records, stored
from millstream.local.stage_runner import StageRunner
from millstream.local.translator import Translation
from millstream.physical.scan_sharing import SharedPlan
from millstream.plan import nodes
from millstream.runtime.results.external_sort import argsort
from millstream.stage.hidden_columns import sort_keys
from millstream.stage.pipeline import PARTITION, SEGMENT, TIME
from millstream.types import BIGINT, TIMESTAMP, Field
from oracle import Arrivals, Heartbeat, Input, Row
from oracle.values.points import to_point

Rows = list[tuple[Any, ...]]
NOON = 1_767_268_800_000_000
"""The clock of all runs: noon of the first day of 2026, in microseconds."""


Arrived = tuple[int, int, Row | Heartbeat]
"""Source partition, micro-batch, and a row or a heartbeat in it."""


@dataclass(frozen=True)
class GivenSources:
    """Relations whose rows are given, with streams cut into micro-batches."""

    tables: Mapping[str, Input]
    streams: Mapping[str, Sequence[Arrived]]
    read: dict[str, SourceFrames]

    def stream(self, stream: Stream) -> SourceFrames:
        if stream.name not in self.read:
            rows = [
                (*(arrival.values[f.name] for f in _read(stream.read)), partition, batch, batch)
                for partition, batch, arrival in self.streams[stream.read.name]
                if isinstance(arrival, Row)
            ]
            hidden = (Field(name, BIGINT) for name in (PARTITION, SEGMENT, BATCH))
            frame = frame_of((*_read(stream.read), *hidden), rows)
            self.read[stream.name] = classify(frame, stream, no_bad_records())
        return self.read[stream.name]

    def table(self, table: Table) -> Frame:
        given = self.tables[table.name]
        assert not isinstance(given, Arrivals)
        fields = _read(table)
        frame = frame_of(fields, [tuple(row[f.name] for f in fields) for row in given])
        frame = with_computed(frame, table.computed, table.schema or ())
        return stored(frame.without_hidden(lambda name: True))


def _read(relation: Stream | Table) -> tuple[Field, ...]:
    """Return the columns that are given: an internal timestamp is, too."""
    return source_columns(relation.schema or (), relation.computed)


def frame_of(fields: tuple[Field, ...], rows: Rows) -> Frame:
    columns = list(zip(*rows, strict=True)) or [()] * len(fields)
    arrays = [pa.array(column, arrow_type(f.type)) for f, column in zip(fields, columns, strict=True)]
    refs = (ColumnRef("", f.name, f.type) for f in fields)
    return Frame.of(zip(refs, arrays, strict=True), len(rows))


def run(
    plan: nodes.Node,
    inputs: Mapping[str, Input],
    chance: random.Random,
    course: Course | None = None,
    catalog: Catalog | None = None,
    *,
    ended: bool = True,
) -> Rows:
    """Timestamps and columns of the results of a plan; batches, tasks, shards and failures are drawn.

    Of a given ``course`` only the cuts between micro-batches and the tasks are. The ``catalog`` describes the
    streams whose late tuples or bad records are read.
    """
    return _rows(_run(plan, inputs, chance, course, catalog, ended=ended))


def changes(
    plan: nodes.Node,
    inputs: Mapping[str, Input],
    chance: random.Random,
    course: Course | None = None,
    catalog: Catalog | None = None,
) -> pa.Table:
    """All columns of the results of a plan, those included that travel along unseen."""
    return to_table(_run(plan, inputs, chance, course, catalog).pairs)


def run_shared(
    shared: SharedPlan, inputs: Mapping[str, Input], chance: random.Random, *, ended: bool = True
) -> list[Rows]:
    """Results of each of several plans that share stages."""
    given = Given.drawn(inputs, chance, None, ended=ended)
    to = Translation(given.sources, StageRunner(given.course, _no_table, given.partitions))
    to = replace(to, shared=tuple(to.frame(one.stage) for one in shared.stages))
    return [_rows(to.frame(plan)) for plan in shared.plans]


def _no_table(name: str) -> pa.Table:
    raise AssertionError(f"no aggregate reads '{name}'")


def _rows(frame: Frame) -> Rows:
    """Return timestamps and columns in the order of results, which hidden columns tell."""
    order = argsort(pa.table({key: frame.hidden[key] for key in sort_keys(frame.hidden)}))
    columns = [frame.hidden[TIME], *(column for _, column in frame.shown)]
    return list(zip(*(column.take(order).to_pylist() for column in columns), strict=True))


def _run(
    plan: nodes.Node,
    inputs: Mapping[str, Input],
    chance: random.Random,
    course: Course | None,
    catalog: Catalog | None,
    *,
    ended: bool = True,
) -> Frame:
    given = Given.drawn(inputs, chance, course, ended=ended)
    rejecting = partial(_rejecting, catalog=catalog)
    return run_plan(plan, given.sources, given.course, rejecting, partitions=given.partitions, now=NOON).frame


def _rejecting(name: str, catalog: Catalog | None) -> Stream | None:
    """Return the stream that rejected some tuples."""
    entry = catalog.relation(name) if catalog else None
    return entry if isinstance(entry, Stream) else None


# ---------------------------------------------------------------- micro-batches


@dataclass(frozen=True)
class Given:
    """Sources, the course of a run over them, and the number of source partitions of each stream."""

    sources: GivenSources
    course: Course
    partitions: Mapping[str, int]

    @staticmethod
    def drawn(
        inputs: Mapping[str, Input], chance: random.Random, course: Course | None, *, ended: bool
    ) -> Given:
        """Draw a course, unless it is given, and the micro-batches of all arrivals."""
        streams = {name: given for name, given in inputs.items() if isinstance(given, Arrivals)}
        beats = max((len(_ends(one)) for given in streams.values() for one in given.partitions), default=0)
        course = course or Course(chance.randint(1, 4) + beats + 1, shards=None, forgetful=True)
        busy = [number for number in range(course.batches - 1) if number not in course.pauses]
        arrived = {name: _cut(given, busy, chance) for name, given in streams.items()}
        heartbeats = {name: _heartbeats(found) for name, found in arrived.items()}
        course = replace(course, chance=chance, ended=ended, heartbeats=heartbeats)
        partitions = {name: len(given.partitions) for name, given in streams.items()}
        return Given(GivenSources(inputs, arrived, {}), course, partitions)


def _cut(given: Arrivals, busy: Sequence[int], chance: random.Random) -> list[Arrived]:
    """Cut source partitions into micro-batches anywhere, and behind each heartbeat."""
    found: list[Arrived] = []
    for number, partition in enumerate(given.partitions):
        ends = _ends(partition)
        assert not ends or len(given.partitions) == 1, "the engine takes a heartbeat for all partitions"
        drawn = (chance.randint(0, len(partition)) for _ in busy[1 + len(ends) :])
        bounds = itertools.pairwise([0, *sorted([*ends, *drawn]), len(partition)])
        for batch, (start, end) in zip(busy, bounds, strict=True):
            found += [(number, batch, arrival) for arrival in partition[start:end]]
    return found


def _ends(partition: Sequence[Row | Heartbeat]) -> list[int]:
    """Return the places behind heartbeats."""
    return [place for place, one in enumerate(partition, 1) if isinstance(one, Heartbeat)]


def _heartbeats(arrived: Sequence[Arrived]) -> list[SentHeartbeat]:
    return [
        SentHeartbeat(batch, _instant(one.time), one.on)
        for _, batch, one in arrived
        if isinstance(one, Heartbeat)
    ]


def _instant(time: Any) -> int:
    """Return the time of a heartbeat as stages count it."""
    point = to_point(time, TIMESTAMP if isinstance(time, datetime) else BIGINT)
    assert isinstance(point, int)
    return point
