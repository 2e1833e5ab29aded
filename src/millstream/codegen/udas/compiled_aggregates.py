"""The built-in aggregates that are compiled, by their names."""

from __future__ import annotations

from millstream.codegen.udas.accumulator_emitter import Average, Count, FirstLast, MinMax, Scalar, Sum
from millstream.codegen.udas.choice_emitter import Bits, KnownEdge, MinMaxBy
from millstream.codegen.udas.moment_emitter import MOMENTS

ACCUMULATORS: dict[str, type[Scalar]] = {
    "count": Count,
    "sum": Sum,
    "avg": Average,
    "min": MinMax,
    "max": MinMax,
    "first": FirstLast,
    "any_value": FirstLast,
    "last": FirstLast,
    "first_known": KnownEdge,
    "last_known": KnownEdge,
    "min_by": MinMaxBy,
    "max_by": MinMaxBy,
    "bit_and": Bits,
    "bit_or": Bits,
    "bit_xor": Bits,
    **MOMENTS,
}
