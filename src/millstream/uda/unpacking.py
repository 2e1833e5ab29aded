"""How the functions of a program get at their arrays.

They are given the addresses of all of them, then that of the function that makes more room, and how many rows
there is room for among those that are returned. A program that is not compiled gets the arrays themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

START, END = "    UNPACK", "return out, returned"
"""The lines with which functions are written, when nobody knows yet which arrays they will need."""

_PLACE, _GROW, _ROOM = "PLACE_OF_", "more", "returned"


def room() -> str:
    """How many rows can be returned."""
    return f"arrays[{_PLACE}{_ROOM}]"


def larger(arrays: Mapping[str, str]) -> list[str]:
    """Lines that ask for larger arrays, which are given by name and type and grow together."""
    first = next(iter(arrays))
    lines = [f"more_room(arrays[{_PLACE}{_GROW}], {_PLACE}{first})"]
    return [*lines, *(_taken(name, dtype) for name, dtype in arrays.items())]


def with_arrays(source: str, arrays: Mapping[str, str]) -> str:
    """A source whose functions take these arrays, given by name and type."""
    lines = ["arrays = pointer(arrays)", *(_taken(name, dtype) for name, dtype in arrays.items())]
    source = source.replace(START, "\n".join(f"    {line}" for line in lines)).replace(END, "return out")
    places = _places((*arrays, _GROW, _ROOM))
    # A draft names arrays that are found to be needed while it is written.
    return re.sub(rf"{_PLACE}(\w+)", lambda found: places.get(found[1], found[0]), source)


def _taken(name: str, dtype: str) -> str:
    return f"{name} = {dtype}_at(arrays[{_PLACE}{name}])"


def _places(names: Iterable[str]) -> dict[str, str]:
    return {name: str(place) for place, name in enumerate(names)}
