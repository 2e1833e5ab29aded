"""Binding of arrays to the functions of a program.

They are given the addresses of all of them, then that of the function that makes more room, and how many rows
there is room for among those that are returned. A program that is not compiled gets the arrays themselves.

Each function only calls another one with pointers, which may then assume that no two of them lead to the same
place: what it has just written can stay in a register.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

START, END = "arrays):\n    UNPACK", "return out, returned"
"""Lines around a function while its arrays are not known yet."""

_PLACE, _GROW, _ROOM = "PLACE_OF_", "more", "returned"


def room() -> str:
    """Return the code for the number of rows that can be returned."""
    return f"arrays[{_PLACE}{_ROOM}]"


def larger(arrays: Mapping[str, str]) -> list[str]:
    """Return lines that ask for larger arrays, given by name and type, which grow together."""
    first = next(iter(arrays))
    lines = [f"more_room(arrays[{_PLACE}{_GROW}], {_PLACE}{first})"]
    return [*lines, *(_taken(name, dtype) for name, dtype in arrays.items())]


def with_arrays(source: str, arrays: Mapping[str, str]) -> str:
    """Return a source whose functions take these arrays, given by name and type."""
    pointers = ", ".join(f"{dtype}_at(at[{place}])" for place, dtype in enumerate(arrays.values()))

    def divided(found: re.Match[str]) -> str:
        name, others = found["name"], found["others"]
        given = ["    at = pointer(arrays)", f"    return {name}_loop({others}, address(arrays), {pointers})"]
        own = f"def {name}_loop({others}, arrays, {', '.join(arrays)}):\n    arrays = int64_at(arrays)"
        return "\n".join([f"def {name}({others}, arrays):", *given, "", "", "@apart", own])

    head = rf"def (?P<name>\w+)\((?P<others>.*), {re.escape(START)}"
    source = re.sub(head, divided, source).replace(END, "return out")
    places = _places((*arrays, _GROW, _ROOM))
    # A draft names arrays that are found to be needed while it is written.
    return re.sub(rf"{_PLACE}(\w+)", lambda found: places.get(found[1], found[0]), source)


def _taken(name: str, dtype: str) -> str:
    return f"{name} = {dtype}_at(arrays[{_PLACE}{name}])"


def _places(names: Iterable[str]) -> dict[str, str]:
    return {name: str(place) for place, name in enumerate(names)}
