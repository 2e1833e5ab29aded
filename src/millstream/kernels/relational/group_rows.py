"""Rows of groups: grouping columns and results of aggregates, and the changes between them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.jit import njit
from millstream.kernels.aggregates.accumulator import Accumulator, Parts
from millstream.kernels.aggregates.accumulator_selection import Aggregate
from millstream.kernels.aggregates.finalize import result
from millstream.kernels.core import arrow_buffers
from millstream.kernels.core.buffers import Array, Codes, Integers, frozen
from millstream.kernels.core.key_table import KeyTable
from millstream.kernels.relational.incremental_relation import change_marks, mixed
from millstream.kernels.relational.multi_row_groups import expand_rows
from millstream.kernels.specs import USER, GroupSpec

_NOTHING = "__ms_nothing"


def results_of(
    measures: Sequence[Accumulator], aggregates: Sequence[Aggregate], parts: Sequence[Parts], times: Array
) -> list[pa.Array]:
    """Return the results of aggregates from the parts of all accumulators; errors name the times."""

    def position(row: int) -> tuple[int | float, ...]:
        return (times[row].item(), 0, row)

    return [
        result(one, measures[one.measures[0]], [parts[number] for number in one.measures], position)
        for one in aggregates
    ]


def group_rows(
    spec: GroupSpec, count: int, groups: Sequence[pa.ChunkedArray], results: Sequence[pa.Array]
) -> pa.Table:
    """Return ``count`` rows of groups; without columns they have one of NULLs."""
    names = [*spec.group_by, *(one.result for one in spec.aggregates)]
    columns = dict(zip(names, [*groups, *results], strict=True))
    return pa.table(columns or {_NOTHING: pa.nulls(count, pa.bool_())})


def as_changes(
    spec: GroupSpec, rows: pa.Table, keys: KeyTable, codes: Codes, signs: Array, events: Array
) -> tuple[dict[str, pa.Array], Array]:
    """Return rows of groups that enter (1) and leave (-1) at events as changes, and the position of each.

    A group has one row, unless its aggregates return several; of these only the different ones change.
    """
    one, two = keys.first.view[codes], keys.second.view[codes]
    is_null = (codes == keys.absent).astype(np.int64)
    ids = mixed(one, two), mixed(two, one, is_null)
    changes: Array = np.arange(len(signs))
    if any(aggregate.function == USER for aggregate in spec.aggregates):
        single = expand_rows(rows, spec.aggregates)
        ids = ids[0][single.changes], mixed(ids[1][single.changes], single.values)
        changed = single.unequal(events, ids)
        ids = ids[0][changed], ids[1][changed]
        rows, changes = single.columns.take(pa.array(changed)), single.changes[changed]
    columns = dict(zip(rows.column_names, rows.columns, strict=True))
    columns.pop(_NOTHING, None)
    columns |= change_marks(signs[changes], None, ids)
    return columns, changes


def differences(
    spec: GroupSpec, rows: pa.Table, first: int, groups: Codes, sizes: Integers, place: Codes
) -> tuple[Codes, Codes, Array]:
    """Return the changes by successive rows of groups: which of them, the row, and 1 or -1.

    The new rows are those of ``rows`` from ``first`` on. ``place`` has the current row of each group, -1 for
    none. A group of size 0 has no row.
    """
    numbers = equality_codes(rows.select([one.result for one in spec.aggregates]))
    return _differences(frozen(groups), frozen(sizes), first, frozen(numbers), place)


def equality_codes(table: pa.Table) -> Array:
    """Return a code for each value of each column; equal values have equal codes."""
    columns = [_numbered(arrow_buffers.single(column)) for column in table.columns]
    return np.stack(columns, axis=1) if columns else np.zeros((table.num_rows, 0), np.int32)


def _numbered(column: pa.Array) -> Array:
    if pa.types.is_floating(column.type):
        column = pc.add(column, pa.scalar(0.0, column.type))  # there are two zeros
    try:
        codes = pc.dictionary_encode(column, null_encoding="encode").indices
    except pa.ArrowNotImplementedError:
        known: dict[str, int] = {}
        return np.array([known.setdefault(repr(value), len(known)) for value in column.to_pylist()], np.int32)
    numbers: Array = codes.to_numpy(zero_copy_only=False).astype(np.int32)
    return numbers


@njit(cache=True)
def _differences(
    groups: Codes, sizes: Integers, first: int, numbers: Array, place: Codes
) -> tuple[Codes, Codes, Array]:
    """Return the rows that are replaced or whose group is empty, and the rows that enter."""
    room = 2 * len(groups)
    at, places, signs = np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.int8)
    count = 0
    for i in range(len(groups)):
        group = groups[i]
        old, new = place[group], first + i
        if old >= 0 and sizes[i] > 0:
            same = True
            for column in range(numbers.shape[1]):
                same &= numbers[old, column] == numbers[new, column]
            if same:
                continue
        if old >= 0:
            at[count], places[count], signs[count] = i, old, -1
            count += 1
        place[group] = -1
        if sizes[i] > 0:
            at[count], places[count], signs[count] = i, new, 1
            count += 1
            place[group] = new
    return at[:count], places[:count], signs[:count]
