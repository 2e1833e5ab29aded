"""Aggregation of tuples into panes: the changes of a batch to each pane of each key, as a table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.jit import njit
from millstream.kernels.aggregates.accumulator_selection import argument_types, plan, with_arguments
from millstream.kernels.column_names import INSIDE, KEY, KEY2, PART, PART2
from millstream.kernels.core.buffers import Codes, Integers, frozen
from millstream.kernels.core.kernel import STREAM, Tuples
from millstream.kernels.core.key_table import KeyTable
from millstream.kernels.core.radix_sort import changes, ordering
from millstream.kernels.specs import AggregateSpec
from millstream.kernels.windows.window_assigner import Assignment

ENTER = "__ms_enter"
UNTIL = "__ms_until"
"""Visit at which a pane enters, and the last at which it is there."""

_STEPS = 16
_FEW = 8


def to_panes(
    tuples: Tuples, assignment: Assignment, group_by: Sequence[str], aggregates: Sequence[AggregateSpec]
) -> pa.Table:
    """Aggregate the tuples of each pane and key to one row of key, group, visits and accumulators.

    There may be several rows for a pane of a key; the caller merges them anyway.
    """
    enters, untils, wanted = assignment.enters, assignment.untils, assignment.inside
    if INSIDE in tuples.columns.column_names:
        wanted = wanted & np.asarray(pc.fill_null(tuples.columns[INSIDE], False))
    if not wanted.all():
        tuples, enters, untils = tuples.take(wanted), enters[wanted], untils[wanted]
    keys = KeyTable()
    codes = frozen(keys.of(tuples.columns))
    groups, rows = _groups(codes, enters, untils, len(keys))
    present = tuples.columns.column_names
    names = [name for name in (KEY, KEY2, PART, PART2, STREAM) if name in present]
    kept = tuples.columns.select([*names, *group_by]).take(pa.array(rows))
    columns = dict(zip(kept.column_names, kept.columns, strict=True))
    columns |= {ENTER: pa.array(enters[rows]), UNTIL: pa.array(untils[rows])}
    types = argument_types(aggregates, tuples.columns.schema)
    for measure in plan(aggregates, types, in_order=False)[0]:
        # Empty parts would be left out of the table: where there are no panes, one is made and cut off.
        parts = measure.zeros(max(len(rows), 1))
        measure.fold(groups, measure.of_tuples(tuples), parts, running=False)
        columns |= {name: column[: len(rows)] for name, column in measure.to_table(parts).items()}
    return with_arguments(pa.table(columns), types)


def _groups(codes: Codes, enters: Integers, untils: Integers, keys: int) -> tuple[Codes, Integers]:
    """Return the group of each tuple by key and pane, and the first tuple of each group."""
    groups, rows, is_lost = _find(codes, frozen(enters), frozen(untils), keys)
    if not is_lost:
        return groups, rows
    # In great disorder sorting is better; panes that wait have to be sorted in any case.
    order = ordering(enters, codes.astype(np.int64), untils)
    if order is None:
        order = np.arange(len(codes))
    is_new = changes(enters[order], codes[order], untils[order])
    groups[order] = np.cumsum(is_new) - 1
    return groups, order[is_new]


@njit(cache=True)
def _find(codes: Codes, enters: Integers, untils: Integers, keys: int) -> tuple[Codes, Integers, bool]:
    """Return the groups, or that it is not worth looking for them any longer.

    A tuple is mostly in the latest pane of its key, or one of the few before it: looking there is faster than
    any hash table, and a miss does no harm if it is rare.
    """
    groups, firsts = np.empty(len(codes), np.int32), np.empty(len(codes), np.int64)
    before = np.empty(len(codes), np.int32)
    latest = np.full(keys, -1, np.int32)
    highest = np.empty(keys, np.int64)
    count = lost = 0
    for i in range(len(codes)):
        key, enter, until = codes[i], enters[i], untils[i]
        group = latest[key]
        is_found = is_last = False
        if group >= 0 and enter <= highest[key]:
            for _ in range(_STEPS):
                first = firsts[group]
                is_found = enters[first] == enter and untils[first] == until
                is_last = before[group] < 0
                if is_found or is_last:
                    break
                group = before[group]
            lost += not is_found and not is_last
            if _FEW * lost > len(codes):
                return groups, firsts[:0], True
        if not is_found:
            highest[key] = enter if latest[key] < 0 else max(enter, highest[key])
            group = count
            firsts[group] = i
            before[group] = latest[key]
            latest[key] = group
            count += 1
        groups[i] = group
    return groups, firsts[:count], False
