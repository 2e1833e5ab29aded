"""Functions on batches of tuples: slice, join, store as tables."""

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
    """Return consecutive tuples, without a copy."""
    return Tuples(
        tuples.columns.slice(start, end - start),
        tuples.time[start:end],
        tuples.origin[start:end],
        tuples.number[start:end],
        None if tuples.hold is None else tuples.hold[start:end],
    )


def joined(parts: Sequence[Tuples]) -> Tuples:
    """Concatenate tuples; columns are not copied."""
    if len(parts) == 1:
        return parts[0]
    hold = None
    if any(part.hold is not None for part in parts):
        hold = np.concatenate([_hold(part) for part in parts])
    return Tuples(
        pa.concat_tables([part.columns for part in parts]),
        np.concatenate([part.time for part in parts]),
        np.concatenate([part.origin for part in parts]),
        np.concatenate([part.number for part in parts]),
        hold,
    )


def _hold(tuples: Tuples) -> Array:
    if tuples.hold is not None:
        return tuples.hold
    return np.full_like(tuples.time, -np.inf if tuples.time.dtype == np.float64 else np.iinfo(np.int64).min)


def is_held(tuples: Tuples) -> Array | None:
    """Tell which tuples are held (late tuples of generous streams); None if none is."""
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
    """Return a frontier as data for JSON, which has no infinities."""
    time = frontier.time
    return [time if np.isfinite(time) else repr(float(time)), frontier.origin]


def frontier_from_data(data: Sequence[int | float | str] | None) -> Frontier:
    if data is None:
        return BEGINNING
    time, origin = data
    return Frontier(float(time) if isinstance(time, str) else time, int(origin))
