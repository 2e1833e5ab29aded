"""WindowAssigner: at which visits the tuples of a batch enter and leave, and which visits are due.

This is what kinds of windows differ in. All else (cells, the sweep, aggregates, state) they have in common.
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
from millstream.kernels.core.time_order import LEAST
from millstream.kernels.windows.pane_sweep import DueWindows

MICROSECONDS_PER_DAY = 86_400_000_000


@dataclass(frozen=True)
class Assignment:
    """The visits of each tuple: where it enters, and until when it is there; or points (DueWindows).

    Tuples that are in no window are not ``inside``.
    """

    enters: Integers
    untils: Integers
    inside: Array


@dataclass(frozen=True)
class WindowEdges:
    """What there is to say of each result besides its group and its aggregates.

    A window without a beginning has no ``start``. ``keep`` says which results there are after all: the end of
    the input makes no partial ones.
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
    """Instants in their own type, or the nearest that it has."""
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
    """One kind of windows."""

    merges = False
    """Whether cells of a key that have entered need not be told apart any more, as they leave together."""

    @abstractmethod
    def place(self, tuples: Tuples, frontier: Frontier) -> Assignment:
        """Take the tuples of a batch."""

    @abstractmethod
    def due(self, frontier: Frontier) -> DueWindows:
        """What is due after that batch."""

    @abstractmethod
    def edges(self, visits: Integers, partitions: Codes) -> WindowEdges:
        """Of visits that are due."""

    def finish(self) -> None:  # noqa: B027 (most have nothing to do)
        """The visits that were due have been made."""

    def passes(self, frontier: Frontier) -> Frontier:
        """What may be told about the results: every window that ends at the frontier or before it is out."""
        return frontier if frontier.is_end else Frontier(frontier.time, LAST)

    @abstractmethod
    def first_open(self, partitions: Codes) -> Integers:
        """The first visit that has not been made (or a point before it), of each of these partitions."""

    def is_alive(self, untils: Integers, partitions: Codes) -> Array:
        """Which cells a window still to come may have."""
        alive: Array = untils >= self.first_open(partitions)
        return alive

    def horizon(self) -> int:
        """Cells that are there until some point before it are in no window to come, in any partition."""
        return LEAST

    def partitions(self, table: pa.Table) -> Codes:
        """The partition in which windows of tuples or cells are counted; most kinds have only one."""
        return np.zeros(table.num_rows, np.int32)

    def partition_columns(self, partitions: Codes) -> dict[str, pa.Array]:
        """What tells partitions apart in a table, where it is not the key."""
        return {}

    def forget(self) -> None:  # noqa: B027
        """Let go of partitions that need not be remembered; the others may get new codes."""

    @property
    def rows(self) -> int:
        """How many rows of state there are besides the cells."""
        return 0

    def snapshot(self) -> Change:
        return Change()

    def restore(self, meta: Mapping[str, Any], chunks: Mapping[str, pa.Table]) -> None:  # noqa: B027
        """Become what it was when that was written."""
