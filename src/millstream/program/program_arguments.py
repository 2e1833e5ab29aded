"""Arrays of a machine, as arguments of a call of its program."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from millstream.program.program import Program

Array = npt.NDArray[Any]

_Grow = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)


class ProgramArguments:
    """Arrays as a program takes them (``array_binding``); while it runs it may request larger ones.

    ``room`` is the number of rows that can be returned. ``grow`` makes more room, given the name of a full
    array: it returns all arrays that are larger now, and the room.
    """

    def __init__(
        self,
        program: Program,
        arrays: Mapping[str, Array],
        room: int,
        grow: Callable[[str], tuple[Mapping[str, Array], int]],
    ) -> None:
        self._program, self._room, self._grow = program, room, grow
        self._arrays = dict(arrays)
        self._taken: Any = None
        self.problem: Exception | None = None
        """Failure to make more room, to be raised when the program has stopped."""

    def themselves(self) -> list[Any]:
        """Return the arrays for an interpreted program."""
        self._taken = [*(self._arrays[name] for name in self._program.arrays), self._enlarge, self._room]
        return self._taken  # type: ignore[no-any-return]

    def addresses(self) -> npt.NDArray[np.int64]:
        """Return the addresses of arrays for a compiled program."""
        more = 0
        if self._program.grows:
            self._asked = _Grow(self._more)
            more = ctypes.cast(self._asked, ctypes.c_void_p).value or 0
        known = [self._address(name) for name in self._program.arrays]
        self._taken = np.array([*known, more, self._room], np.int64)
        return self._taken  # type: ignore[no-any-return]

    def _address(self, name: str) -> int:
        """Return the address of an array after checking its type, which the program trusts."""
        array = self._arrays[name]
        if array.dtype != self._program.arrays[name] or not array.flags.c_contiguous:
            raise TypeError(f"{name} is an array of {array.dtype}")
        return array.ctypes.data

    def _more(self, place: int) -> int:
        try:
            for at, name in self._enlarged(place):
                self._taken[at] = self._address(name)
        except Exception as problem:  # noqa: BLE001 (nothing can be raised through a program)
            self.problem = problem
            return 0
        return 1

    def _enlarge(self, place: int) -> None:
        for at, name in self._enlarged(place):
            self._taken[at] = self._arrays[name]

    def _enlarged(self, place: int) -> list[tuple[int, str]]:
        """Make more room for a full array; return the places and names of the arrays that are larger now."""
        names = list(self._program.arrays)
        larger, self._taken[-1] = self._grow(names[place])
        self._arrays.update(larger)
        return [(at, name) for at, name in enumerate(names) if name in larger]
