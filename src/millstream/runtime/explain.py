"""EXPLAIN PHYSICAL and EXPLAIN CODE: what is really run for a query."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from millstream.codegen.udas.explain_code import NO_PROGRAMS, listing, summary
from millstream.runtime.queries.query_starter import QueryRequest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from millstream.spark.lowering.translator import Lowerer
    from millstream.stage.pipeline import Pipeline


def code(request: QueryRequest, lowerer: Lowerer) -> str:
    """The source of all patterns and aggregates of the user's in a query."""
    from millstream.stage.program_discovery import programs

    _lowered(request, lowerer)
    return listing(programs(lowerer.stages.pipelines)) or NO_PROGRAMS


def physical(request: QueryRequest, lowerer: Lowerer) -> str:
    """The stages of a query with their kernels, and the plan that Spark makes around them."""
    frame = _lowered(request, lowerer)
    lines = [line for i, pipeline in enumerate(lowerer.stages.pipelines) for line in _stage(i + 1, pipeline)]
    said = io.StringIO()
    with contextlib.redirect_stdout(said):  # Spark only prints it
        frame.explain()
    return "\n".join([*lines, said.getvalue().strip()])


EXPLAINED: dict[str, Callable[[QueryRequest, Lowerer], str]] = {"CODE": code, "PHYSICAL": physical}
"""By the mode of EXPLAIN."""


def _lowered(request: QueryRequest, lowerer: Lowerer) -> DataFrame:
    """Only lowered: nothing is compiled for an explanation."""
    from millstream.spark.errors.error_chain import FAILURES

    plan = request.plan
    try:
        return lowerer.lower(plan)
    except FAILURES as error:
        raise request.explain(error) from None


def _stage(number: int, pipeline: Pipeline) -> Iterator[str]:
    from millstream.stage.program_discovery import programs

    reads = [source.name or ("a stage" if source.chained else "a table") for source in pipeline.inputs]
    yield f"stage {number}, reads {', '.join(reads)}"
    made = pipeline.make_kernels
    kernels = made.args[0] if isinstance(made, partial) else ()
    for kernel in kernels:
        yield f"  {kernel.func.__name__ if isinstance(kernel, partial) else kernel}"
        yield from (f"    {summary(program)}" for program in programs(kernel))
    if not kernels:
        yield "  late tuples are told from others"
