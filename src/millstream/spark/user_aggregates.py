"""From calls of users' aggregates to programs, and to the columns that these are shipped."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own custom)
from pyspark.sql import types as T  # noqa: N812

from millstream.analysis.calls import AggregateCall, OverCall
from millstream.errors import ExecutionError
from millstream.kernels.specs import AggregateSpec, UserOverSpec, UserSpec
from millstream.kernels.typed import arrow_type
from millstream.kernels.user_content import rows_type
from millstream.quantity import Rows
from millstream.spark.hidden import MARK
from millstream.spark.promises import units
from millstream.uda import compiler
from millstream.uda.checked import Body
from millstream.uda.program import Program
from millstream.uda.python import PythonBody
from millstream.uda.python_program import PythonProgram

AnyBody = Body | PythonBody

MOST_GIVEN = 1_000_000
"""Rows of a table of the catalog that an aggregate may read: every shard has all of them in memory."""


def user_spec(
    call: AggregateCall, body: AnyBody, mode: str, name: str, result: str, left: AnyBody | None = None
) -> tuple[dict[str, Column], UserSpec]:
    """A call in one mode: what it is shipped, and what kernels need to know."""
    arguments = {}
    for i, (argument, parameter) in enumerate(zip(call.arguments, body.parameters, strict=True)):
        column = F.expr(argument.sql)
        if argument.type != parameter.type:
            column = column.cast(str(parameter.type))
        arguments[f"{name}_{i}"] = column
    results = tuple(f"{result}_{i}" for i in range(len(body.returns)))
    names, condition = tuple(arguments), None
    if call.filter is not None:
        condition = f"{name}_where"
        arguments[condition] = F.expr(call.filter.sql)
    return arguments, UserSpec(_program(body, mode, left), names, results, condition)


def _program(body: AnyBody, mode: str, left: AnyBody | None) -> Program | PythonProgram:
    if isinstance(body, PythonBody):
        # Lambdas and classes that are defined in a function or at the prompt can be shipped as well.
        from pyspark.cloudpickle import dumps

        return PythonProgram.of(body, mode, dumps)
    return compiler.compiled(body, mode, left if isinstance(left, Body) else None)


def read_given(program: Program, spark: SparkSession, known: dict[str, pa.Table]) -> None:
    """The tables of the catalog that a program reads, as they are now; ``known`` are those read before."""
    for given in program.given:
        if given.name in known:
            given.rows = known[given.name]
            continue
        columns = [
            F.col(f"`{column.name.replace('`', '``')}`").cast(str(column.type)).alias(f"c{i}")
            for i, column in enumerate(given.fields)
        ]
        rows = spark.table(given.name).select(*columns).limit(MOST_GIVEN + 1).toArrow()
        if rows.num_rows > MOST_GIVEN:
            raise ExecutionError(
                f"the table '{given.name}' has more than {MOST_GIVEN:,} rows, "
                f"which is too much for the aggregate '{program.name}' to read",
                hint="join with it, and hand over what is needed as an argument",
            )
        types = [pa.field(f"c{i}", arrow_type(column.type)) for i, column in enumerate(given.fields)]
        given.rows = known[given.name] = rows.cast(pa.schema(types)).combine_chunks()


def runs_by_itself(call: OverCall, *, alone: bool) -> bool:
    """Whether an aggregate goes along with its window, rather than looking at the content of each anew.

    ``alone``: there are no built-in aggregates beside it. These see to it that only some tuples come out.
    """
    bodies, reach = call.call.bodies, call.frame.preceding
    assert bodies is not None
    if call.call.filter is not None or call.call.distinct:
        return False  # a tuple that does not count has a result all the same: that of its window
    if call.active_expiration:
        return True
    if call.slide is not None:
        # A tumble is a matter for the base version.
        overlaps = (
            isinstance(call.slide, Rows) and isinstance(reach, Rows) and call.slide.count <= reach.count
        )
        return alone and overlaps and call.emit_every is None and bodies.window is not None
    if reach is None:
        return not isinstance(bodies.base, PythonBody) or not bodies.base.needs_content
    return bodies.window is not None


def over_spec(
    call: OverCall, time_type: T.DataType, name: str, result: str
) -> tuple[dict[str, Column], UserOverSpec]:
    """A call over a window of its own, in the version that the semantics choose."""
    bodies = call.call.bodies
    assert bodies is not None
    reach = call.frame.preceding
    if reach is None:
        body, mode = (
            (bodies.base, compiler.RUNNING) if bodies.base is not None else (bodies.window, compiler.ROWS)
        )
        assert body is not None
        shipped, user = user_spec(call.call, body, mode, name, result)
        return shipped, UserOverSpec(user, 2**62 if bodies.base is None else None)
    if call.active_expiration:
        # Without a window version nothing is said when a tuple comes but what the base version makes of it.
        body = bodies.window or bodies.base
        assert body is not None
        arguments, user = user_spec(call.call, body, compiler.ACTIVE, name, result, bodies.base)
        return arguments, UserOverSpec(user, range=units(reach, time_type))
    assert bodies.window is not None
    if call.frame.rows:
        shipped, user = user_spec(call.call, bodies.window, compiler.ROWS, name, result)
        slide = call.slide.count if isinstance(call.slide, Rows) else 1
        return shipped, UserOverSpec(user, rows=reach.count, slide=slide)  # type: ignore[union-attr]
    shipped, user = user_spec(call.call, bodies.window, compiler.RANGE, name, result)
    return shipped, UserOverSpec(user, range=units(reach, time_type))


def content_spec(
    call: AggregateCall, name: str, result: str, mode: str = compiler.CONTENT
) -> tuple[dict[str, Column], AggregateSpec]:
    """A call over the content of windows, as kernels compute aggregates that need all of it."""
    assert call.bodies is not None
    body = call.bodies.base or call.bodies.window
    assert body is not None
    arguments, user = user_spec(call, body, mode, name, result)
    names = user.arguments
    if not names:
        names = (f"{name}_0",)  # something has to tell how many tuples there are
        arguments[names[0]] = F.lit(True)
    spec = AggregateSpec(
        "user",
        names[0],
        result,
        rows_type(user.program),
        others=names[1:],
        parameters=(user.program,),
        distinct=call.distinct,
        condition=user.condition,
    )
    return arguments, spec


def opened(frame: DataFrame, calls: Sequence[tuple[AggregateCall, str]]) -> DataFrame:
    """A row for each that aggregates returned for a window; reports that stand among the rows pass."""
    for call, name in calls:
        marks = F.col(MARK).isNotNull() if MARK in frame.columns else F.lit(False)
        others = [F.col(column) for column in frame.columns if column != name]
        frame = frame.where(marks | (F.size(name) > 0)).select(*others, F.explode_outer(name).alias(name))
        assert call.bodies is not None
        body = call.bodies.base or call.bodies.window
        assert body is not None
        parts = [F.col(name)[f"r{i}"].alias(f.name) for i, f in enumerate(body.returns)]
        whole = F.struct(*parts) if call.user is not None and call.user.returns_row else F.col(name)["r0"]
        frame = frame.withColumn(name, whole)
    return frame


def result_fields(spec: UserSpec) -> list[pa.Field]:
    return [pa.field(n, arrow_type(f.type)) for n, f in zip(spec.results, spec.program.returns, strict=True)]


def put_together(frame: DataFrame, specs: Sequence[tuple[AggregateCall, UserSpec, str]]) -> DataFrame:
    """The columns of each result as one column, a struct if it is a row."""
    for call, spec, name in specs:
        parts = [F.col(n).alias(f.name) for n, f in zip(spec.results, spec.program.returns, strict=True)]
        whole = (
            F.struct(*parts) if call.user is not None and call.user.returns_row else F.col(spec.results[0])
        )
        frame = frame.withColumn(name, whole).drop(*spec.results)
    return frame
