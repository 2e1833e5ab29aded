"""What the four states of an aggregate in Python see: the window, tables of their own, a way to return."""

from __future__ import annotations

import itertools
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from millstream.types import Field

Tuple = tuple[Any, ...]
"""The arguments of a call for one tuple of the stream."""

AsRow = Callable[[Tuple], Any]


def as_rows(parameters: Sequence[Field]) -> AsRow:
    """How tuples are shown: the value itself if there is one parameter, else a row with named columns."""
    if len(parameters) == 1:
        return _alone
    # A named tuple has no room for names that Python has a meaning for.
    row = namedtuple("row", [p.name for p in parameters], rename=True)  # type: ignore[misc]
    return row._make


def _alone(values: Tuple) -> Any:
    return values[0]


class Window:
    """The tuples in the window of an instance, oldest first, each with its number and its place."""

    def __init__(self, content: OrderedDict[int, tuple[int, Tuple]] | None = None) -> None:
        self.content: OrderedDict[int, tuple[int, Tuple]] = OrderedDict() if content is None else content
        self.gone: list[int] = []
        """The numbers of tuples that are there no more, until somebody asks."""

    def __len__(self) -> int:
        return len(self.content)

    def insert(self, number: int, place: int, values: Tuple) -> None:
        self.content[number] = place, values

    def remove(self, number: int) -> None:
        del self.content[number]
        self.gone.append(number)

    def tuples(self) -> Iterator[Tuple]:
        return (values for _, values in self.content.values())


class WindowTuples(Sequence[Any]):
    """The tuples in the window, as the user's code may see them and delete them."""

    def __init__(self, window: Window, as_row: AsRow) -> None:
        self._window, self._as_row = window, as_row

    def __len__(self) -> int:
        return len(self._window)

    def __iter__(self) -> Iterator[Any]:
        return map(self._as_row, list(self._window.tuples()))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return list(self)[index]
        number = self._number(index)
        return self._as_row(self._window.content[number][1])

    def __delitem__(self, index: Any) -> None:
        if isinstance(index, slice):
            for number in list(self._window.content)[index]:
                self._window.remove(number)
        else:
            self._window.remove(self._number(index))

    def _number(self, index: int) -> int:
        count = len(self)
        if not -count <= index < count:
            raise IndexError("there are not so many tuples in the window")
        if index < 0:
            return next(itertools.islice(reversed(self._window.content), -index - 1, None))
        return next(itertools.islice(self._window.content, index, None))

    def delete(self, unwanted: Callable[[Any], bool]) -> int:
        """Delete the tuples for which that holds, as DELETE FROM inwindow WHERE does; gives how many."""
        content = self._window.content
        numbers = [n for n, (_, values) in content.items() if unwanted(self._as_row(values))]
        for number in numbers:
            self._window.remove(number)
        return len(numbers)


class Tables:
    """Tables of an instance by name, ``ctx.tables.seen`` or ``ctx.tables["seen"]``: lists that begin empty.

    Anything else may be put there instead.
    """

    def __init__(self, content: dict[str, Any] | None = None) -> None:
        object.__setattr__(self, "content", {} if content is None else content)

    content: dict[str, Any]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.content.setdefault(name, [])

    def __setattr__(self, name: str, value: Any) -> None:
        self.content[name] = value

    def __getitem__(self, name: str) -> Any:
        return self.content.setdefault(name, [])

    def __setitem__(self, name: str, value: Any) -> None:
        self.content[name] = value

    def __delattr__(self, name: str) -> None:
        self.content.pop(name, None)

    def __contains__(self, name: str) -> bool:
        return name in self.content


class Context:
    """What a method is given as ``ctx``."""

    def __init__(self, window: Window, tables: Tables, as_row: AsRow) -> None:
        self.tables = tables
        self.inwindow = WindowTuples(window, as_row)
        self.returned: list[Any] = []

    def oldest(self, n: int = 1) -> Any:
        """The n-th oldest tuple in the window, None if there are fewer."""
        return self.inwindow[n - 1] if 1 <= n <= len(self.inwindow) else None

    def ret(self, *row: Any) -> None:
        """Return a row: a value, or the values of several columns, one by one or together."""
        self.returned.append(row[0] if len(row) == 1 else row)
