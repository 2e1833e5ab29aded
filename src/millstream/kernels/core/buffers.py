"""Arrays for compiled loops: growing ones for state, read-only ones for input."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Codes = npt.NDArray[np.int32]
Doubles = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Array = npt.NDArray[Any]
Whole = int | np.int64

NO_BYTES: Bytes = np.zeros(0, np.uint8)
NO_CODES: Codes = np.zeros(0, np.int32)
NO_DOUBLES: Doubles = np.zeros(0, np.float64)
NO_INTEGERS: Integers = np.zeros(0, np.int64)
"""Stand-ins for arrays that are left out: compiled loops test the length."""


def frozen(array: Array) -> Array:
    """Return a contiguous read-only view.

    Arrow's memory is read-only and ours is not, and Numba would compile a loop once for either.
    """
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


_NUMBERS: list[Integers] = [NO_INTEGERS]


def first_numbers(count: int) -> Integers:
    """Return 0, 1, 2 and so on, read-only: a slice of one shared array."""
    if count > len(_NUMBERS[0]):
        _NUMBERS[0] = frozen(np.arange(2 * count))
    return _NUMBERS[0][:count]


class Buffer:
    """An array that grows at its end, for compiled loops: ``data`` is longer than ``size``."""

    __slots__ = ("data", "fill", "size")

    def __init__(self, dtype: npt.DTypeLike, fill: int | None = None) -> None:
        self.data: Array = np.empty(16, dtype)
        self.fill = fill
        self.size = 0

    def __len__(self) -> int:
        return self.size

    def __getstate__(self) -> tuple[Array, int | None]:
        return self.view, self.fill

    def __setstate__(self, state: tuple[Array, int | None]) -> None:
        self.data, self.fill = state
        self.size = len(self.data)

    @property
    def view(self) -> Array:
        return self.data[: self.size]

    def reserve(self, size: int) -> Array:
        """Make room for ``size`` elements without counting them yet, and return ``data``."""
        if size > len(self.data):
            grown = np.empty(max(size, 2 * len(self.data)), self.data.dtype)
            grown[: self.size] = self.view
            self.data = grown
        return self.data

    def resize(self, size: int) -> Array:
        """Grow to ``size`` elements, new ones with the filling value if there is one, and return ``data``."""
        self.reserve(size)
        if self.fill is not None and size > self.size:
            self.data[self.size : size] = self.fill
        self.size = size
        return self.data

    def extend(self, values: Array) -> None:
        start = self.size
        self.reserve(start + len(values))
        self.size = start + len(values)
        self.data[start : self.size] = values
