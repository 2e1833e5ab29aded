"""Cutting and joining tuples, and writing them down as tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from millstream.kernels.core import arrow_buffers
from millstream.kernels.core.buffers import Array
from millstream.kernels.core.kernel import BEGINNING, Frontier, Tuples

TIME = "__ms_time"
ORIGIN = "__ms_origin"
NUMBER = "__ms_number"


def cut(tuples: Tuples, start: int, end: int) -> Tuples:
    """Some tuples in a row, without a copy."""
    return Tuples(
        tuples.columns.slice(start, end - start),
        tuples.time[start:end],
        tuples.origin[start:end],
        tuples.number[start:end],
        None if tuples.hold is None else tuples.hold[start:end],
    )


def joined(parts: Sequence[Tuples]) -> Tuples:
    """One after the other; the columns are not copied. None of them is held."""
    if len(parts) == 1:
        return parts[0]
    return Tuples(
        pa.concat_tables([part.columns for part in parts]),
        np.concatenate([part.time for part in parts]),
        np.concatenate([part.origin for part in parts]),
        np.concatenate([part.number for part in parts]),
    )


def is_held(tuples: Tuples) -> Array | None:
    """Which tuples must wait (late tuples of generous streams); None if none of them."""
    if tuples.hold is None:
        return None
    held: Array = tuples.hold > (-np.inf if tuples.hold.dtype == np.float64 else np.iinfo(np.int64).min)
    return held if held.any() else None


def as_table(tuples: Tuples) -> pa.Table:
    table = tuples.columns
    for name, values in ((TIME, tuples.time), (ORIGIN, tuples.origin), (NUMBER, tuples.number)):
        table = table.append_column(name, pa.array(values))
    return table


def from_table(table: pa.Table) -> Tuples:
    time, origin, number = (arrow_buffers.single(table[name]).to_numpy() for name in (TIME, ORIGIN, NUMBER))
    return Tuples(table.drop_columns([TIME, ORIGIN, NUMBER]), time, origin, number)


def frontier_as_data(frontier: Frontier) -> list[int | float | str]:
    """For JSON, which knows no infinities."""
    time = frontier.time
    return [time if np.isfinite(time) else repr(float(time)), frontier.origin]


def frontier_from_data(data: Sequence[int | float | str] | None) -> Frontier:
    if data is None:
        return BEGINNING
    time, origin = data
    return Frontier(float(time) if isinstance(time, str) else time, int(origin))
