"""Runs of plans without Spark."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Mapping
from contextvars import copy_context
from dataclasses import dataclass

import pyarrow as pa

from millstream.catalog import Catalog
from millstream.catalog.entries import Stream, Table
from millstream.errors import ExecutionError, NotExecutableError
from millstream.kernels.core.kernel_errors import GapError, KernelError, hint_for
from millstream.kernels.udas.compiled_machine import UserAggregateError
from millstream.local.course import Course
from millstream.local.expressions import CLOCK, FUNCTIONS
from millstream.local.frame import Frame, to_table
from millstream.local.sources import Sources
from millstream.local.stage_runner import StageRunner
from millstream.local.translator import Translation
from millstream.physical.programs import Programs
from millstream.physical.query_plan import QueryPlan
from millstream.plan.nodes import Node
from millstream.program.jit_loader import COMPILES
from millstream.program.python_program import Dumps

FindStream = Callable[[str], Stream | None]
FindTable = Callable[[str], Table | None]


@dataclass(frozen=True)
class LocalResult:
    """The results of a plan with their hidden columns, and the late tuples of each stream."""

    frame: Frame
    late: Mapping[str, int]


def run_plan(
    plan: Node,
    sources: Sources,
    course: Course,
    streams: FindStream,
    tables: FindTable = lambda name: None,
    partitions: Mapping[str, int] | None = None,
    now: int | None = None,
    dumps: Dumps = pickle.dumps,
    catalog: Catalog | None = None,
) -> LocalResult:
    """Run a plan to the end of its input.

    ``streams`` finds the stream that rejected some records; ``tables`` finds tables that aggregates read.
    ``now`` is the clock of the run in microseconds, by default that of the machine. ``dumps`` pickles the
    Python code of aggregates. The ``catalog`` has the user-defined functions.
    """
    query = QueryPlan(plan, streams, Programs(dumps))
    if query.unknown.questions:
        text = query.unknown.questions[0].text
        raise NotExecutableError(
            f"only Spark knows the type of '{text}'", hint="CAST it to a type, or run without --engine local"
        )

    def read_table(name: str) -> pa.Table:
        table = tables(name)
        assert table is not None, "the analysis has found it"
        return to_table(sources.table(table).shown)

    def run() -> LocalResult:
        CLOCK.set(time.time_ns() // 1000 if now is None else now)
        FUNCTIONS.set(catalog)
        COMPILES.set(False)
        stages = StageRunner(course, read_table, partitions or {})
        return LocalResult(Translation(sources, stages).frame(query.physical), stages.late)

    try:
        return copy_context().run(run)
    except (KernelError, UserAggregateError, GapError) as error:
        raise ExecutionError(str(error), hint=hint_for(type(error).__name__, str(error))) from None
