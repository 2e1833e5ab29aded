"""Runs of plans without Spark."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa

from millstream.analysis.queries.resolved_query import Values
from millstream.catalog import Catalog
from millstream.catalog.entries import Stream, Table
from millstream.errors import ExecutionError, NotExecutableError
from millstream.kernels.core.arrow_types import arrow_type
from millstream.kernels.core.kernel_errors import GapError, KernelError, hint_for
from millstream.kernels.udas.compiled_machine import UserAggregateError
from millstream.local.course import Course
from millstream.local.expressions import CLOCK, FUNCTIONS, compile_expression
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
_Result = TypeVar("_Result")
FindTable = Callable[[str], Table | None]


@dataclass(frozen=True)
class LocalResult:
    """The results of a plan with their hidden columns, and the late tuples of each stream.

    ``newest`` are the newest times of its streams as texts.
    """

    frame: Frame
    late: Mapping[str, int]
    newest: Sequence[str] = ()


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
        stages = StageRunner(course, read_table, partitions or {})
        return LocalResult(Translation(sources, stages).frame(query.physical), stages.late, stages.newest)

    return _in_context(run, catalog, now)


def values_table(values: Values, catalog: Catalog | None = None) -> pa.Table:
    """Return rows of constants; their columns are named by their numbers."""

    def run() -> pa.Table:
        rows = [[compile_expression(cell, ())((), 1)[0] for cell in row] for row in values.rows]
        columns = [
            pa.array([row[number].as_py() for row in rows], arrow_type(field.type))
            for number, field in enumerate(values.fields)
        ]
        return pa.table(columns, names=[str(number) for number in range(len(columns))])

    return _in_context(run, catalog)


def _in_context(run: Callable[[], _Result], catalog: Catalog | None, now: int | None = None) -> _Result:
    """Run something with the functions of a catalog, and a clock."""

    def prepared() -> _Result:
        CLOCK.set(time.time_ns() // 1000 if now is None else now)
        FUNCTIONS.set(catalog)
        COMPILES.set(False)
        return run()

    try:
        return copy_context().run(prepared)
    except (KernelError, UserAggregateError, GapError) as error:
        raise ExecutionError(str(error), hint=hint_for(type(error).__name__, str(error))) from None
