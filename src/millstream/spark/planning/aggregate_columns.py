"""From calls of aggregates to what kernels compute: which columns are shipped, and what is asked of them.

Spark prepares arguments as far as it can, so that kernels know few functions: count_if is a count of what is
not NULL, bool_and the smallest boolean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 (Spark's own custom)
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.pandas.types import to_arrow_schema

from millstream.analysis.queries.call_nodes import AggregateCall
from millstream.analysis.types.builtin_aggregates import DOUBLES, IGNORED, NUMBERS, SAME, SUMS
from millstream.errors import NotExecutableError
from millstream.kernels.specs import AggregateSpec, Function, Order
from millstream.plan.aggregate_strategies import constants as constants_of

_TAKE_NULLS = frozenset({"first", "last", "collect_list", "approx_top_k"})


@dataclass(frozen=True)
class _Prepared:
    """The arguments of a call, as columns, and those that are constants, as values."""

    function: str
    columns: tuple[Column, ...]
    parameters: tuple[Any, ...] = ()


def aggregate(
    frame: DataFrame, call: AggregateCall, argument: str, result: str
) -> tuple[dict[str, Column], AggregateSpec]:
    """An aggregate as kernels know it, and the columns that it needs, whose names begin with ``argument``."""
    prepared = _prepared(frame, call)
    function, columns = prepared.function, list(prepared.columns)
    condition = None if call.filter is None else F.expr(call.filter.sql)
    names = [argument, *(f"{argument}_{i}" for i in range(1, len(columns)))]
    where = None
    if condition is not None and function in _TAKE_NULLS:
        where = f"{argument}_where"
    elif condition is not None and not columns:
        columns = [F.when(condition, F.lit(1))]
    elif condition is not None:
        # A tuple that does not count is one without the value that it would be counted by.
        by = 1 if function in ("min_by", "max_by") else 0
        columns[by] = F.when(condition, columns[by])
    spec = AggregateSpec(
        cast(Function, function),
        argument if columns else None,
        result,
        _result_type(frame, call),
        ignore_nulls=call.ignore_nulls,
        text=str(call.arguments[0]) if call.arguments else None,
        others=tuple(names[1:]) if columns else (),
        parameters=prepared.parameters,
        distinct=call.distinct or call.name == "approx_count_distinct",
        order=tuple(Order(key.descending, key.nulls_first) for key in call.within),
        condition=where,
    )
    shipped = dict(zip(names, columns, strict=False))
    return shipped | ({where: condition} if where is not None and condition is not None else {}), spec


def _prepared(frame: DataFrame, call: AggregateCall) -> _Prepared:
    name = call.name.lower()
    texts = [argument.sql for argument in call.arguments]
    function = SAME.get(name, name)
    fixed = constants_of(call)
    constants = [_constant(frame, argument.sql) for argument in fixed] if name not in IGNORED else []
    columns = [
        F.expr(argument.sql) for argument in call.arguments if not any(argument is one for one in fixed)
    ]
    if name == "percentile" and len(texts) == 3:
        return _Prepared(
            "percentile_of_counts", (columns[0].cast("double"), columns[1].cast("bigint")), _shares(constants)
        )
    match name:
        case "count" if not call.distinct:
            return _Prepared("count", _counted(texts, columns))
        case "count_if":
            return _Prepared("count", (F.when(columns[0], F.lit(1)),))
        case "regr_count":
            return _Prepared("count", _counted(texts, columns))
        case "regr_avgx" | "regr_sxx":
            return _Prepared(function, (F.when(columns[0].isNotNull(), columns[1].cast("double")),))
        case "regr_avgy" | "regr_syy":
            return _Prepared(function, (F.when(columns[1].isNotNull(), columns[0].cast("double")),))
        case "median":
            return _Prepared(function, _numbers(frame, columns), (0.5,))
        case "listagg" | "string_agg":
            return _Prepared(function, tuple(columns), tuple(constants) or (_nothing(frame, columns[0]),))
        case "approx_top_k":
            return _Prepared(function, tuple(columns), tuple(constants[:1]) or (5,))
    if function in ("percentile", "percentile_disc", "percentile_approx"):
        constants = list(_shares(constants))
    if function in DOUBLES:
        columns = [column.cast("double") for column in columns]
    elif function in NUMBERS or function in SUMS:
        columns = list(_numbers(frame, columns, function in SUMS))
    return _Prepared(function, tuple(columns), tuple(constants))


def _counted(texts: Sequence[str], columns: Sequence[Column]) -> tuple[Column, ...]:
    """What is counted: every tuple, or those that have all of the values."""
    if not columns or texts[0] in ("*", "1"):
        return ()
    if len(columns) == 1:
        return (columns[0],)
    present = columns[0].isNotNull()
    for column in columns[1:]:
        present = present & column.isNotNull()
    return (F.when(present, F.lit(1)),)


def _numbers(frame: DataFrame, columns: Sequence[Column], exact: bool = False) -> tuple[Column, ...]:
    """Numbers as doubles, unless they are to be added exactly; intervals as they are."""
    kind = _kind(frame, columns[0])
    plain = isinstance(kind, T.DayTimeIntervalType) or (exact and isinstance(kind, T.NumericType))
    return (columns[0] if plain else columns[0].cast("double"), *columns[1:])


def _kind(frame: DataFrame, column: Column) -> T.DataType:
    return frame.select(column.alias("a")).schema["a"].dataType


def _nothing(frame: DataFrame, column: Column) -> str | bytes:
    """The separator if none is given."""
    return b"" if isinstance(_kind(frame, column), T.BinaryType) else ""


def _constant(frame: DataFrame, text: str) -> Any:
    row = frame.sparkSession.sql(f"SELECT {text} AS v").head()
    assert row is not None, "a query without FROM has one row"
    return row["v"]


def _shares(constants: Sequence[Any]) -> tuple[float, ...]:
    """Percentages, one or several."""
    given = constants[0]
    shares = [float(share) for share in (given if isinstance(given, list) else [given])]
    if not all(0 <= share <= 1 for share in shares):
        raise NotExecutableError("a percentage lies between 0 and 1", hint="the median is 0.5")
    return tuple(shares)


def _result_type(frame: DataFrame, call: AggregateCall) -> pa.DataType:
    """What Spark says: a call is text again, without DISTINCT and FILTER, which make no difference to it."""
    name = call.name.lower()
    texts = [argument.sql for argument in call.arguments]
    within = ""
    if call.within:
        count = len(call.within)
        ordered, texts = (texts[-count:], texts[:-count]) if name in ("listagg", "string_agg") else (
            texts[:count], texts[count:]
        )  # fmt: skip
        keys = [
            f"{text}{' DESC' if key.descending else ''}"
            for text, key in zip(ordered, call.within, strict=True)
        ]
        within = f" WITHIN GROUP (ORDER BY {', '.join(keys)})"
    sql = "count(1)" if name == "count" else f"{name}({', '.join(texts)}){within}"
    schema = frame.agg(F.expr(sql).alias("r")).schema
    return to_arrow_schema(schema, timezone="UTC").field(0).type
