"""Accumulators: the state of aggregates for a tuple, a pane, a key, or along a log of tuples.

An aggregate is computed from one accumulator or two (avg: a sum and a count), and aggregates share
accumulators. An accumulator is a monoid on a few arrays, its parts, whose zeros are the neutral element. A
part that follows from the others, such as the upper half of a single integer, may be an empty array.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import pyarrow as pa

from millstream.jit import njit
from millstream.kernels.core import arrow_buffers
from millstream.kernels.core.buffers import Array, Buffer, Bytes, Codes, Whole, frozen
from millstream.kernels.core.kernel import Tuples

Parts = tuple[Array, ...]


@dataclass(frozen=True)
class WindowBatch:
    """Windows to aggregate: of a key, from one row of the log to another, which is its latest.

    ``previous`` links each row of the log to the one before it of the same key. Where ``rebuild`` is set (it
    may be empty), rows have been inserted among those that the key had.
    """

    keys: int
    codes: Codes
    starts: Codes
    ends: Codes
    previous: Codes
    rebuild: Bytes

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def windows(self) -> Parts:
        """Codes, starts, ends and rebuild, for compiled loops."""
        return frozen_parts((self.codes, self.starts, self.ends, self.rebuild))


class PartRows(Protocol):
    """Parts as compiled loops see them: a named tuple with ``compiled_methods``, made of values by row.

    A value is a number or a tuple of numbers.
    """

    def value(self, row: Whole) -> Any:
        """Return the value of a row."""

    def put(self, row: Whole, value: Any) -> None:
        """Write the value of a row."""

    def merge(self, value: Any, later: Any) -> Any:
        """Return the value of both, of which the second came later."""


class Accumulator(ABC):
    """A monoid over an argument."""

    parts: ClassVar[Mapping[str, type]]
    """Arrays of the state and their types."""

    def __init__(self, argument: str | None) -> None:
        self.argument = argument

    @property
    def name(self) -> str:
        """Identity of the accumulator, also the name of its columns in tables."""
        return f"{type(self).__name__}({self.argument or '*'})"

    @property
    def arguments(self) -> tuple[str, ...]:
        """Columns of tuples that it reads."""
        return () if self.argument is None else (self.argument,)

    @property
    def words(self) -> int:
        """Number of values in its dictionary, including those no longer needed."""
        return 0

    @abstractmethod
    def of_tuples(self, tuples: Tuples) -> Parts:
        """Return the parts of single tuples."""

    @abstractmethod
    def fold(self, groups: Codes, parts: Parts, into: Parts, *, running: bool) -> Parts:
        """Merge rows into their groups; if ``running``, return the state of the group after each row."""

    @abstractmethod
    def trail(self, windows: int) -> AccumulatorLog:
        """Return a log of this accumulator, for a number of different windows."""

    def zeros(self, count: int) -> Parts:
        return tuple(np.zeros(count, dtype) for dtype in self.parts.values())

    def to_table(self, parts: Parts) -> dict[str, pa.Array]:
        """Return parts as columns of state; empty parts are left out."""
        return {
            f"{self.name}.{name}": arrow_buffers.build(pa.from_numpy_dtype(part.dtype), part)
            for name, part in zip(self.parts, parts, strict=True)
            if len(part)
        }

    def of_table(self, table: pa.Table) -> Parts:
        parts = []
        for name, dtype in self.parts.items():
            column = f"{self.name}.{name}"
            known = column in table.column_names
            parts.append(
                arrow_buffers.values(arrow_buffers.single(table[column]), dtype)
                if known
                else np.zeros(0, dtype)
            )
        return tuple(parts)


class FixedWidthAccumulator(Accumulator):
    """An accumulator whose values have a fixed width, so that compiled loops can merge them."""

    @abstractmethod
    def rows(self, parts: Parts) -> Any:
        """Return parts for compiled loops, as ``PartRows``."""

    def fold(self, groups: Codes, parts: Parts, into: Parts, *, running: bool) -> Parts:
        out = self.zeros(len(groups) if running else 0)
        fold(frozen(groups), self.rows(frozen_parts(parts)), self.rows(into), self.rows(out), running)
        return out


class AccumulatorLog(ABC):
    """An accumulator along a log: the rows of all keys in order of arrival."""

    def __init__(self, accumulator: Accumulator) -> None:
        self._parts = tuple(Buffer(dtype) for dtype in accumulator.parts.values())

    @property
    def parts(self) -> Parts:
        return tuple(part.view for part in self._parts)

    def append(self, parts: Parts, previous: Codes) -> None:
        for buffer, part in zip(self._parts, parts, strict=True):
            buffer.extend(part)

    def rows(self, indices: Array) -> Parts:
        """Return some rows of the log."""
        return tuple(part[indices] if len(part) else part for part in self.parts)

    @abstractmethod
    def ask(self, window: int, batch: WindowBatch) -> Parts:
        """Return the aggregates of windows, in the order in which they end.

        ``window`` is the number of the window.
        """


def frozen_parts(parts: Parts) -> Parts:
    return tuple(frozen(part) for part in parts)


def some(parts: Parts, rows: Array) -> Parts:
    """Return some rows of parts; empty parts stay empty. Parts without a fixed width are Arrow arrays."""
    return tuple(
        part.take(pa.array(rows)) if isinstance(part, pa.Array) else part[rows] if len(part) else part
        for part in parts
    )


@njit(cache=True, allocates=False)
def fold(groups: Codes, rows: PartRows, into: PartRows, out: PartRows, running: bool) -> None:
    """Merge rows into their groups."""
    for i in range(len(groups)):
        group = groups[i]
        total = rows.merge(into.value(group), rows.value(i))
        into.put(group, total)
        if running:
            out.put(i, total)
