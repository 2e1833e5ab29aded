"""WindowAssigner: the visits at which the tuples of a batch enter and leave, and the visits that are due.

Kinds of windows differ only in this. Panes, the sweep, aggregates and state are common to all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.kernels.core import arrow_buffers
from millstream.kernels.core.buffers import Array, Codes, Integers
from millstream.kernels.core.kernel import LAST, Change, Frontier, Times, Tuples
from millstream.kernels.core.partition_state import Partitions
from millstream.kernels.core.time_order import LEAST
from millstream.kernels.windows.pane_sweep import DueWindows

MICROSECONDS_PER_DAY = 86_400_000_000


@dataclass(frozen=True)
class Assignment:
    """Visits of each tuple: where it enters, and the last at which it is there; or points (DueWindows).

    Tuples that are in no window are not ``inside``.
    """

    enters: Integers
    untils: Integers
    inside: Array


@dataclass(frozen=True)
class WindowEdges:
    """Columns of results besides group and aggregates.

    A window without a beginning has no ``start``. ``keep`` tells which results to emit: the end of the input
    makes no partial ones.
    """

    start: Times | None
    end: Times
    wid: Times
    stamp: Times
    complete: Array | None = None
    keep: Array | None = None

    def ordered(self, order: Integers | None) -> WindowEdges:
        if order is None:
            return self
        columns = ((field.name, getattr(self, field.name)) for field in fields(self))
        ordered: dict[str, Any] = {name: None if c is None else c[order] for name, c in columns}
        return WindowEdges(**ordered)

    def columns(self, edge_type: pa.DataType, wid_type: pa.DataType) -> dict[str, pa.Array]:
        start = pa.nulls(len(self.end), edge_type) if self.start is None else instants(self.start, edge_type)
        columns = {
            "window_start": start,
            "window_end": instants(self.end, edge_type),
            "wid": instants(self.wid, wid_type),
        }
        if self.complete is not None:
            columns["complete"] = pa.array(self.complete, pa.bool_())
        return columns


def instants(numbers: Times, type_: pa.DataType) -> pa.Array:
    """Return instants in their own type, or the nearest that it has."""
    if pa.types.is_floating(type_):
        limit = np.finfo(type_.to_pandas_dtype()).max
        return pa.array(np.clip(numbers, -limit, limit), pa.float64()).cast(type_, safe=False)
    whole = numbers.astype(np.int64, copy=False)
    if pa.types.is_timestamp(type_) or pa.types.is_duration(type_) or type_ == pa.int64():
        return arrow_buffers.build(type_, whole)
    if pa.types.is_integer(type_) or pa.types.is_date32(type_):
        if pa.types.is_date32(type_):
            whole = whole // MICROSECONDS_PER_DAY
        limits = np.iinfo(f"int{type_.bit_width}")
        return arrow_buffers.build(type_, np.clip(whole, limits.min, limits.max).astype(limits.dtype))
    if pa.types.is_decimal(type_):
        most = 10 ** min(type_.precision, 18) - 1
        whole = np.clip(whole, -most, most)
        return arrow_buffers.build(type_, np.stack([whole, whole >> 63], axis=1))
    return pa.array(whole).cast(type_)


class WindowAssigner(ABC):
    """A kind of windows."""

    merges = False
    """True if panes of a key that have entered can be merged, as they leave together."""

    @abstractmethod
    def place(self, tuples: Tuples, frontier: Frontier) -> Assignment:
        """Assign the tuples of a batch to visits."""

    @abstractmethod
    def due(self, frontier: Frontier) -> DueWindows:
        """Return the visits that are due after that batch."""

    @abstractmethod
    def edges(self, visits: Integers, partitions: Codes) -> WindowEdges:
        """Return the edges of visits that are due."""

    def finish(self) -> None:  # noqa: B027 (most have nothing to do)
        """Note that the visits that were due have been made."""

    def passes(self, frontier: Frontier) -> Frontier:
        """Return the frontier of results: every window that ends up to the frontier has been emitted."""
        return frontier if frontier.is_end else Frontier(frontier.time, LAST)

    @abstractmethod
    def first_open(self, partitions: Codes) -> Integers:
        """Return the first visit of each partition that has not been made (or a point before it)."""

    def is_alive(self, untils: Integers, partitions: Codes) -> Array:
        """Tell which panes a window still to come may have."""
        alive: Array = untils >= self.first_open(partitions)
        return alive

    def horizon(self) -> int:
        """Return a point: panes that leave before it are in no window to come, in any partition."""
        return LEAST

    def partitions(self, table: pa.Table) -> Codes:
        """Return the partition in which windows of tuples or panes are counted; most kinds have only one."""
        return np.zeros(table.num_rows, np.int32)

    def partition_columns(self, partitions: Codes) -> dict[str, pa.Array]:
        """Return the columns that identify partitions in a table, where that is not the key."""
        return {}

    def forget(self) -> None:  # noqa: B027
        """Delete partitions that are no longer needed; the others may get new codes."""

    @property
    def rows(self) -> int:
        """Number of rows of state besides the panes."""
        return 0

    def snapshot(self) -> Change:
        return Change()

    def restore(self, meta: Mapping[str, Any], chunks: Mapping[str, pa.Table]) -> None:  # noqa: B027
        """Restore the state of snapshots."""


class PartitionedAssigner(WindowAssigner):
    """A kind of windows that follow from the tuples of each partition of the stream."""

    def __init__(self, parts: Partitions) -> None:
        self._parts = parts
        self._is_float = False

    def passes(self, frontier: Frontier) -> Frontier:
        """Return the frontier of results: tuples of its own time may still come and complete windows."""
        return frontier if frontier.is_end else Frontier(frontier.time, -1)

    def partitions(self, table: pa.Table) -> Codes:
        return self._parts.codes(table)

    def partition_columns(self, partitions: Codes) -> dict[str, pa.Array]:
        return self._parts.columns(partitions)

    def snapshot(self) -> Change:
        change = self._parts.snapshot()
        return Change(change.added, change.dropped, {**change.meta, "is_float": self._is_float})

    def restore(self, meta: Mapping[str, Any], chunks: Mapping[str, pa.Table]) -> None:
        self._is_float = bool(meta.get("is_float", False))
        self._parts.restore(meta, chunks)
