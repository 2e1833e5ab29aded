"""What is kept of tuples for aggregates: of one, of a pane, of a key, or along a log of them.

An aggregate is computed from one measure or two (avg: a sum and a count), and aggregates share measures. A
measure is a monoid on a few arrays, its parts, whose zeros are the neutral element. A part that follows from
the others, as the upper half of a single integer, may be an empty array.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from millstream.kernels.core import arrow_buffers
from millstream.kernels.core.buffers import Array, Buffer, Bytes, Codes, frozen
from millstream.kernels.core.kernel import Tuples

Parts = tuple[Array, ...]


@dataclass(frozen=True)
class WindowBatch:
    """Windows whose aggregates are wanted: of a key, from one row of the log to another that is its latest.

    ``previous`` leads from each row of the log to the one before it of the same key. Where ``rebuild`` is set
    (it may be empty) rows have been put in among those that the key had.
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
        """For compiled loops: codes, starts, ends and rebuild."""
        return frozen_parts((self.codes, self.starts, self.ends, self.rebuild))


class Accumulator(ABC):
    """A monoid over an argument."""

    parts: ClassVar[Mapping[str, type]]
    """Its arrays and their types."""

    def __init__(self, argument: str | None) -> None:
        self.argument = argument

    @property
    def name(self) -> str:
        """Tells measures apart, in tables too."""
        return f"{type(self).__name__}({self.argument or '*'})"

    @property
    def arguments(self) -> tuple[str, ...]:
        """The columns of tuples that it looks at."""
        return () if self.argument is None else (self.argument,)

    @property
    def words(self) -> int:
        """How many values its dictionary has, those included that are not needed any more."""
        return 0

    @abstractmethod
    def of_tuples(self, tuples: Tuples) -> Parts:
        """The parts of single tuples."""

    @abstractmethod
    def fold(self, groups: Codes, parts: Parts, into: Parts, *, running: bool) -> Parts:
        """Add rows to their groups; if ``running``, gives for each row what the group is then."""

    @abstractmethod
    def trail(self, windows: int) -> AccumulatorLog:
        """The measure along a log, for so many different windows."""

    def zeros(self, count: int) -> Parts:
        return tuple(np.zeros(count, dtype) for dtype in self.parts.values())

    def to_table(self, parts: Parts) -> dict[str, pa.Array]:
        """As columns, to be written down; parts that are left out are left out."""
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


class AccumulatorLog(ABC):
    """A measure along a log: the rows of all keys in the order of their coming."""

    def __init__(self, accumulator: Accumulator) -> None:
        self._parts = tuple(Buffer(dtype) for dtype in accumulator.parts.values())

    @property
    def parts(self) -> Parts:
        return tuple(part.view for part in self._parts)

    def append(self, parts: Parts, previous: Codes) -> None:
        for buffer, part in zip(self._parts, parts, strict=True):
            buffer.extend(part)

    def rows(self, indices: Array) -> Parts:
        """Some rows of the log."""
        return tuple(part[indices] if len(part) else part for part in self.parts)

    @abstractmethod
    def ask(self, window: int, batch: WindowBatch) -> Parts:
        """The measure over windows, in the order in which they end. Each window has a number of its own."""


def frozen_parts(parts: Parts) -> Parts:
    return tuple(frozen(part) for part in parts)


def some(parts: Parts, rows: Array) -> Parts:
    """Some rows of a measure; parts that are left out stay so. What has no fixed width is Arrow's."""
    return tuple(
        part.take(pa.array(rows)) if isinstance(part, pa.Array) else part[rows] if len(part) else part
        for part in parts
    )
