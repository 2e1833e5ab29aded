"""The built-in aggregates that are compiled, by their names."""

from __future__ import annotations

from millstream.codegen.udas.accumulator_emitter import Average, Count, Edge, Extreme, Scalar, Sum
from millstream.codegen.udas.choice_emitter import Bits, Chosen, KnownEdge
from millstream.codegen.udas.moment_emitter import MOMENTS

ACCUMULATORS: dict[str, type[Scalar]] = {
    "count": Count,
    "sum": Sum,
    "avg": Average,
    "min": Extreme,
    "max": Extreme,
    "first": Edge,
    "any_value": Edge,
    "last": Edge,
    "first_known": KnownEdge,
    "last_known": KnownEdge,
    "min_by": Chosen,
    "max_by": Chosen,
    "bit_and": Bits,
    "bit_or": Bits,
    "bit_xor": Bits,
    **MOMENTS,
}
