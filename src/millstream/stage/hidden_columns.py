"""Names of columns that travel along unseen, and the order that they give to results."""

from __future__ import annotations

from collections.abc import Iterable

from millstream.stage.pipeline import FILE, NUMBER, ORIGIN, PARTITION, SEGMENT, TIME

PREFIX = "__ms_"
ROW = "__ms_row"
SORT = "__ms_sort"
"""Prefix of columns by which results with the same timestamp are sorted: the keys of their groups."""

_ORDER = (TIME, SORT, ORIGIN, NUMBER, PARTITION, SEGMENT, FILE, ROW)


def is_hidden(name: str) -> bool:
    """Tell whether a column is not the user's."""
    return name.startswith(PREFIX)


def hidden(names: Iterable[str]) -> list[str]:
    """Return the hidden ones among these."""
    return [name for name in names if is_hidden(name)]


def sort_keys(names: Iterable[str]) -> list[str]:
    """Return those that give the order of results, the most important first."""
    places = {name: i for i, name in enumerate(_ORDER)}

    def place(name: str) -> tuple[int, str]:
        return (places[SORT], name) if name.startswith(SORT) else (places[name], "")

    return sorted((n for n in names if n in places or n.startswith(SORT)), key=place)
