"""Whole plans without Spark: lowering is the engine's own, but frames are rows in memory.

Where a stage is wanted it is run at once, micro-batch after micro-batch, through shards as `simulation` has
them: pieces read by different tasks, state written and read back. What comes out tells its micro-batch, so
that the next stage has the same ones.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from millstream.analysis.queries.resolved_expression import ColumnRef
from millstream.catalog import Catalog
from millstream.catalog.entries import Rejected, Stream
from millstream.plan import nodes
from millstream.spark.lowering.frames import InputFrame
from millstream.spark.lowering.translator import Lowerer
from millstream.spark.planning.stage_builder import StageBuilder, StageRequest
from millstream.spark.sources.hidden_columns import NUMBER, PARTITION, SEGMENT, TIME, is_hidden
from millstream.stage.input_progress import ENDED, Blob
from millstream.stage.packer import Packer, note, pack
from millstream.stage.pipeline import Input as StageInput
from millstream.types import BIGINT
from oracle import Arrivals, Input, Row
from tests.engine.frames import Column, Frame, Session, from_arrow, instead_of_spark
from tests.engine.simulation import Hosted, blobs_in

BATCH = f"{NUMBER}_of_batch"
"""The micro-batch that a row has come out of; named such that it travels from stage to stage."""

Rows = list[tuple[Any, ...]]
Place = tuple[int, tuple[int, ...]]
"""The number of an input among those of its stage, and the shards of that."""


@dataclass(frozen=True)
class Course:
    """The way of a run. ``batches`` counts micro-batches; the last one is the end of the input.

    Before those in ``restarts`` all stages are read back from what they have written, and in those in
    ``pauses`` nothing arrives. Without a number of ``shards`` each stage has a random one.
    """

    batches: int
    shards: int | None = None
    restarts: frozenset[int] = frozenset()
    pauses: frozenset[int] = frozenset()
    forgetful: bool = True
    """Whether shards are lost now and then, each by itself."""


@dataclass
class SimulatedStages(StageBuilder):
    """Stages that are run when they are made."""

    course: Course = field(default_factory=lambda: Course(1))
    partitions: Mapping[str, int] = field(default_factory=dict)
    chance: random.Random = field(default_factory=lambda: random.Random(0))

    def _stage(self, request: StageRequest) -> Frame:  # type: ignore[override]
        sources = tuple(
            replace(source, partitions=self.partitions.get(source.name, 1))
            for source in request.pipeline.inputs
        )
        pipeline = replace(request.pipeline, inputs=sources)
        tables = [frame.toArrow() for frame in request.frames]
        course = self.course
        shards = (course.shards or self.chance.randint(1, 3)) if request.parallel else 1
        names = tuple(range(shards))
        hosted = Hosted(pipeline, shards, self.chance, forgetful=course.forgetful)
        results = []
        for number in range(course.batches):
            if number in course.restarts:
                hosted.restart()
            blobs = [
                blob
                for i, (source, table) in enumerate(zip(sources, tables, strict=True))
                for blob in self._blobs(number, table, source, (i, names))
            ]
            if number == course.batches - 1:
                ends = [i for i, source in enumerate(sources) if not source.chained]
                marks = (note({"kind": ENDED}, i, names) for i in ends)
                blobs += [(s, Blob.of(head, None, None)) for s, head in itertools.chain(*marks)]
            made = hosted.process(blobs)
            results += [t.append_column(BATCH, pa.array([number] * len(t), pa.int64())) for t in made]
        return from_arrow(pa.concat_tables(results))

    def late(self, leg: InputFrame, names: Sequence[str]) -> Frame:  # type: ignore[override]
        """Late tuples, read like any stream, in the micro-batches in which they were found."""
        found: Any = super().late(leg, names)
        return found.withColumn(SEGMENT, Column(f"`{BATCH}`")).drop(BATCH)  # type: ignore[no-any-return]

    def _blobs(
        self, number: int, table: pa.Table, source: StageInput, place: Place
    ) -> list[tuple[int, Blob]]:
        """The rows of a micro-batch, as tasks pack them: one or two for each source partition."""
        if BATCH in table.column_names:
            mine = table.filter(pc.equal(table.column(BATCH), number)).drop_columns([BATCH])
            return blobs_in(pack(mine.to_batches(), {"": Packer(source, *place)}))
        mine = table.filter(pc.equal(table.column(SEGMENT), number))
        found = []
        if PARTITION not in mine.column_names:
            mine = mine.append_column(PARTITION, pa.array([0] * len(mine), pa.int64()))
        for partition in pc.unique(mine.column(PARTITION)).to_pylist():
            rows = mine.filter(pc.equal(mine.column(PARTITION), partition))
            cut = self.chance.randint(0, len(rows))
            for i, piece in enumerate((rows.slice(0, cut), rows.slice(cut))):
                segments = pa.array([2 * number + i] * len(piece), pa.int64())
                read = piece.set_column(piece.column_names.index(SEGMENT), SEGMENT, segments).to_batches()
                found.append(blobs_in(pack(read, {"": Packer(source, *place)})))
        self.chance.shuffle(found)
        return [blob for task in found for blob in task]


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
    frame = _lowered(plan, inputs, chance, course, catalog)
    # By number, because two columns may have the same name.
    places = [frame.columns.index(TIME), *(i for i, n in enumerate(frame.columns) if not is_hidden(n))]
    return [tuple(row[place] for place in places) for row in frame.rows]


def changes(
    plan: nodes.Node,
    inputs: Mapping[str, Input],
    chance: random.Random,
    course: Course | None = None,
    catalog: Catalog | None = None,
) -> pa.Table:
    """All columns of the results of a plan, those included that travel along unseen."""
    return _lowered(plan, inputs, chance, course, catalog).toArrow()


def _lowered(
    plan: nodes.Node,
    inputs: Mapping[str, Input],
    chance: random.Random,
    course: Course | None = None,
    catalog: Catalog | None = None,
) -> Frame:
    course = course or Course(chance.randint(1, 4) + 1)
    arrivals = {name: given for name, given in inputs.items() if isinstance(given, Arrivals)}
    read = [_read(n.stream, catalog) for n in plan.walk() if isinstance(n, nodes.StreamScan)]
    streams = {stream.name: stream for stream in read}
    frames = {name: _frame(stream, arrivals[name], course, chance) for name, stream in streams.items()}
    for node in plan.walk():
        if isinstance(node, nodes.TableScan):
            frames[node.table.name] = _table(node, inputs[node.table.name])
    with instead_of_spark():
        lowerer = Lowerer(Session(), _no_ports, frames, streams.get)  # type: ignore[arg-type]
        lowerer.stages = SimulatedStages(
            Session(),  # type: ignore[arg-type]
            course=course,
            partitions={name: len(given.partitions) for name, given in arrivals.items()},
            chance=chance,
        )
        return lowerer.lower(plan)  # type: ignore[return-value]


def _read(stream: Stream, catalog: Catalog | None) -> Stream:
    """The stream that is read for another one: of rejected tuples, the one that rejects them."""
    if not isinstance(stream.origin, Rejected):
        return stream
    rejecting = catalog.relation(stream.origin.stream) if catalog else None
    assert isinstance(rejecting, Stream)
    return rejecting


def _frame(stream: Stream, given: Arrivals, course: Course, chance: random.Random) -> Frame:
    """What arrives in a stream: partitions, and in each of them micro-batches, cut anywhere."""
    rows = []
    busy = [number for number in range(course.batches - 1) if number not in course.pauses]
    for number, partition in enumerate(given.partitions):
        cuts = sorted(chance.randint(0, len(partition)) for _ in busy[1:])
        bounds = itertools.pairwise([0, *cuts, len(partition)])
        for batch, (start, end) in zip(busy, bounds, strict=True):
            for row in partition[start:end]:
                assert isinstance(row, Row)
                rows.append((*(row.values[one.name] for one in stream.schema), number, batch))
    refs = [ColumnRef("", one.name, one.type) for one in stream.schema]
    return Frame((*refs, ColumnRef("", PARTITION, BIGINT), ColumnRef("", SEGMENT, BIGINT)), rows)


def _table(scan: nodes.TableScan, given: Input) -> Frame:
    assert not isinstance(given, Arrivals)
    fields = scan.table.schema
    rows = [tuple(row[one.name] for one in fields) for row in given]
    return Frame(tuple(ColumnRef("", one.name, one.type) for one in fields), rows)


def _no_ports(*_: object) -> Any:
    raise AssertionError("nothing is read from ports")
