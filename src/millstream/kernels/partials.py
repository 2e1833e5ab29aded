"""Tuples into panes: what a batch adds to each pane of each key, as a table. A pure function.

It may run anywhere, also before tuples are sent to the shard of their key.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numba import njit

from millstream.kernels.aggregates import argument_types, plan, with_arguments
from millstream.kernels.arrays import Codes, Integers, frozen
from millstream.kernels.base import KEY, KEY2, Tuples
from millstream.kernels.grid import Grid
from millstream.kernels.keys import KeyTable, first_rows
from millstream.kernels.specs import PaneSpec
from millstream.kernels.times import LEAST
from millstream.kernels.tuples import is_held

PANE = "__ms_pane"
WINDOW = "__ms_window"
"""The number of a pane, and of the first window that is to have it: both as the grid counts them."""

_STEPS = 16


def to_panes(spec: PaneSpec, tuples: Tuples) -> pa.Table:
    """The tuples of each pane and key as one row: key, columns of the group, pane, parts of measures.

    In great disorder there may be several rows for a pane of a key; who takes them adds them up anyway.
    A late tuple of a generous stream counts in the windows that end after the time for which it is held: it
    makes a row of its own, whose first window is the first of those.
    """
    grid = Grid(spec.range, spec.slide, spec.origin)
    panes = grid.panes(tuples.time.astype(np.int64, copy=False))
    keys = KeyTable()
    groups, rows = _group(frozen(keys.of(tuples.columns)), panes, len(keys))
    held = is_held(tuples)
    if held is None:
        windows = grid.first_windows(panes[rows])
    else:
        assert tuples.hold is not None, "it says for how long"
        after = np.where(held, grid.first_after(tuples.hold.astype(np.int64)), LEAST)
        entries = np.maximum(grid.first_windows(panes), after)
        groups = KeyTable().codes(groups.astype(np.int64), entries)
        rows = first_rows(groups)
        windows = entries[rows]
    panes = panes[rows]

    names = [name for name in (KEY, KEY2) if name in tuples.columns.column_names]
    kept = tuples.columns.select([*names, *spec.group_by]).take(pa.array(rows))
    columns = dict(zip(kept.column_names, kept.columns, strict=True))
    columns |= {PANE: pa.array(panes), WINDOW: pa.array(windows)}
    types = argument_types(spec.aggregates, tuples.columns.schema)
    for measure in plan(spec.aggregates, types, in_order=False)[0]:
        parts = measure.zeros(len(rows))
        measure.fold(groups, measure.of_tuples(tuples), parts, running=False)
        columns |= measure.to_table(parts)
    table = with_arguments(pa.table(columns), types)
    is_in_windows = grid.last_windows(panes) >= windows  # tuples may lie between windows, or be too late
    return table if is_in_windows.all() else table.filter(pa.array(is_in_windows))


@njit(cache=True)
def _group(codes: Codes, panes: Integers, keys: int) -> tuple[Codes, Integers]:
    """The group of each tuple by key and pane, and the first tuple of each group.

    A tuple is mostly in the latest pane of its key, or one of the few before it: looking there is faster than
    any hash table, and to find it nowhere does no harm.
    """
    groups, firsts = np.empty(len(codes), np.int32), np.empty(len(codes), np.int64)
    before = np.empty(len(codes), np.int32)
    latest = np.full(keys, -1, np.int32)
    highest = np.empty(keys, np.int64)
    count = 0
    for i in range(len(codes)):
        key, pane = codes[i], panes[i]
        group = latest[key]
        is_found = False
        if group >= 0 and pane <= highest[key]:
            for _ in range(_STEPS):
                is_found = panes[firsts[group]] == pane
                if is_found or before[group] < 0:
                    break
                group = before[group]
        if not is_found:
            highest[key] = pane if latest[key] < 0 else max(pane, highest[key])
            group = count
            firsts[group] = i
            before[group] = latest[key]
            latest[key] = group
            count += 1
        groups[i] = group
    return groups, firsts[:count]
