"""Whole plans without Spark, over rows in memory, on a course that is drawn at random.

Pieces of a micro-batch are read by different tasks, stages have some shards, and their state is written and
read back.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa

from millstream.analysis.queries.resolved_expression import ColumnRef
from millstream.catalog import Catalog
from millstream.catalog.entries import Stream, Table
from millstream.kernels.core.arrow_types import arrow_type
from millstream.local.course import Course
from millstream.local.frame import BATCH, Frame, to_table
from millstream.local.plan_runner import run_plan
from millstream.local.sources import SourceFrames, classify, no_bad_records, stored
from millstream.plan import nodes
from millstream.stage.pipeline import PARTITION, SEGMENT, TIME
from millstream.types import BIGINT, Field
from oracle import Arrivals, Input, Row

Rows = list[tuple[Any, ...]]
NOON = 1_767_268_800_000_000
"""The clock of all runs: noon of the first day of 2026, in microseconds."""


@dataclass(frozen=True)
class GivenSources:
    """Relations whose rows are given, with streams cut into micro-batches anywhere."""

    inputs: Mapping[str, Input]
    course: Course
    chance: random.Random
    read: dict[str, SourceFrames]

    def stream(self, stream: Stream) -> SourceFrames:
        if stream.name not in self.read:
            given = self.inputs[stream.name]
            assert isinstance(given, Arrivals)
            self.read[stream.name] = classify(self._arrivals(stream, given), stream, no_bad_records())
        return self.read[stream.name]

    def _arrivals(self, stream: Stream, given: Arrivals) -> Frame:
        rows = []
        busy = [number for number in range(self.course.batches - 1) if number not in self.course.pauses]
        for number, partition in enumerate(given.partitions):
            cuts = sorted(self.chance.randint(0, len(partition)) for _ in busy[1:])
            bounds = itertools.pairwise([0, *cuts, len(partition)])
            for batch, (start, end) in zip(busy, bounds, strict=True):
                for row in partition[start:end]:
                    assert isinstance(row, Row)
                    rows.append((*(row.values[f.name] for f in stream.schema), number, batch, batch))
        hidden = (Field(name, BIGINT) for name in (PARTITION, SEGMENT, BATCH))
        return frame_of((*stream.schema, *hidden), rows)

    def table(self, table: Table) -> Frame:
        given = self.inputs[table.name]
        assert not isinstance(given, Arrivals)
        fields = table.schema or ()
        return stored(frame_of(fields, [tuple(row[f.name] for f in fields) for row in given]))


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
) -> Rows:
    """Timestamps and columns of the results of a plan; batches, tasks, shards and failures are drawn.

    Of a given ``course`` only the cuts between micro-batches and the tasks are. The ``catalog`` describes the
    streams whose late tuples or bad records are read.
    """
    frame = _run(plan, inputs, chance, course, catalog)
    columns = [frame.hidden[TIME], *(column for _, column in frame.shown)]
    return list(zip(*(column.to_pylist() for column in columns), strict=True))


def changes(
    plan: nodes.Node,
    inputs: Mapping[str, Input],
    chance: random.Random,
    course: Course | None = None,
    catalog: Catalog | None = None,
) -> pa.Table:
    """All columns of the results of a plan, those included that travel along unseen."""
    return to_table(_run(plan, inputs, chance, course, catalog).pairs)


def _run(
    plan: nodes.Node,
    inputs: Mapping[str, Input],
    chance: random.Random,
    course: Course | None,
    catalog: Catalog | None,
) -> Frame:
    course = course or Course(chance.randint(1, 4) + 1, shards=None, forgetful=True)
    course = replace(course, chance=chance)
    sources = GivenSources(inputs, course, chance, {})
    partitions = {
        name: len(given.partitions) for name, given in inputs.items() if isinstance(given, Arrivals)
    }
    rejecting = partial(_rejecting, catalog=catalog)
    return run_plan(plan, sources, course, rejecting, partitions=partitions, now=NOON).frame


def _rejecting(name: str, catalog: Catalog | None) -> Stream | None:
    """Return the stream that rejected some tuples."""
    entry = catalog.relation(name) if catalog else None
    return entry if isinstance(entry, Stream) else None
